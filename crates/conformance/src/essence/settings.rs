//! The settings of a request, under the names that loss reports use.

use toolgate_model::{Choice, OutputFormat, Parallel, ReasoningRequest, Sampling, TurnRequest};

use super::{Speaker, Statement, plain_schema};

/// Values that change nothing.
const NEUTRAL: [(&str, f64); 4] =
    [("temperature", 1.0), ("top_p", 1.0), ("frequency_penalty", 0.0), ("presence_penalty", 0.0)];

/// The request's settings, under the names that loss reports use.
pub(super) fn settings(request: &TurnRequest, statements: &mut Vec<Statement>) {
    let Sampling { temperature, top_p, top_k, frequency_penalty, presence_penalty, seed, stop } =
        &request.sampling;
    let numbers = [
        ("temperature", temperature),
        ("top_p", top_p),
        ("top_k", top_k),
        ("frequency_penalty", frequency_penalty),
        ("presence_penalty", presence_penalty),
        ("seed", seed),
    ];
    for (name, number) in numbers {
        let number = number.as_ref().and_then(serde_json::Number::as_f64);
        let number = number.filter(|number| !NEUTRAL.contains(&(name, *number)));
        statements
            .extend(number.map(|number| Statement::non_text(Speaker::Setting, name, number.to_string())));
    }
    statements.extend(stop.iter().map(|text| Statement::non_text(Speaker::Setting, "stop", text)));
    let several = request.samples.filter(|samples| *samples > 1);
    statements.extend(several.map(|samples| Statement::non_text(Speaker::Setting, "n", samples.to_string())));
    let limit = request.max_output;
    statements
        .extend(limit.map(|limit| Statement::non_text(Speaker::Setting, "max_tokens", limit.to_string())));
    let reasoning = request.reasoning.as_ref().and_then(reasoning_of);
    statements.extend(reasoning.map(|state| Statement::non_text(Speaker::Setting, "reasoning", state)));
    let may_call = !request.tools.is_empty() && request.tool_choice.choice != Some(Choice::None);
    if request.tool_choice.parallel == Some(Parallel::Forbidden) && may_call {
        statements.push(Statement::non_text(Speaker::Setting, "parallel_tool_calls", "forbidden"));
    }
    // Without tools a choice has no effect.
    if let Some(choice) = request.tool_choice.choice.as_ref().filter(|_| !request.tools.is_empty()) {
        statements.extend(choice_of(choice));
    }
    match &request.output {
        OutputFormat::Text => {}
        OutputFormat::JsonObject => {
            statements.push(Statement::non_text(Speaker::Setting, "response_format", "JSON"));
        }
        OutputFormat::JsonSchema(format) => {
            statements.push(Statement::non_text(
                Speaker::Setting,
                "response_format",
                plain_schema(Some(format.schema.to_value())).to_string(),
            ));
        }
    }
}

/// Whether the request asks the model to reason. Dialects say how much in different units.
fn reasoning_of(reasoning: &ReasoningRequest) -> Option<&'static str> {
    let ReasoningRequest { effort, budget, mode, summary: _, extras: _ } = reasoning;
    match (mode.as_deref(), effort.as_deref(), budget) {
        // Off: nothing is sent to models that do not reason by default. Adaptive: the model decides, as it does if
        // nothing is said.
        (Some("disabled"), _, _) | (None, Some("none"), _) | (None | Some("adaptive"), None, None) => None,
        (_, _, _) => Some("on"),
    }
}

fn choice_of(choice: &Choice) -> Option<Statement> {
    let setting = |detail: String| Some(Statement::non_text(Speaker::Setting, "tool_choice", detail));
    match choice {
        // The default.
        Choice::Auto => None,
        Choice::Any => setting("any".to_owned()),
        Choice::None => setting("none".to_owned()),
        Choice::Named(name, _) => setting(name.as_str().to_owned()),
        Choice::Provider(opaque) => Some(Statement::non_text(Speaker::Setting, &opaque.kind, "")),
    }
}
