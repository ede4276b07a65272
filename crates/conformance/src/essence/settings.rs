//! The settings of a request, under the names that loss reports use.

use toolgate_model::{
    Choice, OpenAiOptions, OutputFormat, Parallel, ReasoningRequest, Sampling, TurnRequest,
};

use super::{Speaker, Statement, tools};

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
    options(request, statements);
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
            let schema = tools::canonical(Some(&format.schema)).to_string();
            statements.push(Statement::non_text(Speaker::Setting, "response_format", schema));
            if format.strict == Some(true) {
                statements.push(Statement::non_text(Speaker::Setting, "response_format.strict", ""));
            }
            let description = format.description.as_deref();
            statements.extend(
                description
                    .map(|text| Statement::non_text(Speaker::Setting, "response_format.description", text)),
            );
        }
    }
}

/// How much to reason, and how much of it to return.
fn reasoning_of(reasoning: &ReasoningRequest) -> Option<String> {
    let ReasoningRequest { effort, budget, mode, summary, extras: _ } = reasoning;
    let budget = budget.map(|budget| budget.to_string());
    let parts = [("mode", mode), ("effort", effort), ("budget", &budget), ("summary", summary)];
    let given: Vec<String> =
        parts.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?))).collect();
    (!given.is_empty()).then(|| given.join(", "))
}

/// The end user, and what OpenAI's dialects share.
fn options(request: &TurnRequest, statements: &mut Vec<Statement>) {
    let OpenAiOptions {
        verbosity,
        prompt_cache_key,
        prompt_cache_retention,
        service_tier,
        metadata,
        safety_identifier,
        logprobs,
        top_logprobs,
    } = &request.openai;
    let metadata = (!metadata.is_empty()).then(|| serde_json::Value::Object(metadata.clone()).to_string());
    let logprobs = logprobs.filter(|on| *on).map(|on| on.to_string());
    let top_logprobs = top_logprobs.map(|count| count.to_string());
    let all = [
        ("user", &request.user),
        ("verbosity", verbosity),
        ("prompt_cache_key", prompt_cache_key),
        ("prompt_cache_retention", prompt_cache_retention),
        ("service_tier", service_tier),
        ("metadata", &metadata),
        ("safety_identifier", safety_identifier),
        ("logprobs", &logprobs),
        ("top_logprobs", &top_logprobs),
    ];
    for (name, value) in all {
        statements.extend(value.as_ref().map(|value| Statement::non_text(Speaker::Setting, name, value)));
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
