//! A rule changes what it names, and only if its loss was reported.

use serde_json::{Value, json};
use toolgate_dialect::host::HostFacts;
use toolgate_dialect::registry;
use toolgate_model::{Extras, FunctionTool, JsonText, Losses, ReasoningRequest, Tool, TurnRequest};

use super::{Host, adapted};

/// What a model at an unknown host must receive, if these losses were reported.
fn sent(dialect: &str, model: &str, request: &TurnRequest, places: &[&str]) -> TurnRequest {
    let dialect = registry::find(dialect).expect("a dialect").upstream.id();
    let profile = HostFacts::at(dialect, "").profile(model);
    let mut losses = Losses::default();
    for place in places {
        losses.add(*place, "test");
    }
    adapted(request, Host { dialect, profile: &profile }, &losses)
}

fn offering(schema: &Value) -> TurnRequest {
    let mut request = TurnRequest::new("m", Vec::new());
    request.tools = vec![Tool::Function(FunctionTool {
        name: "f".into(),
        description: None,
        schema: Some(JsonText::from_value(schema)),
        strict: None,
        extras: Extras::NONE,
    })];
    request
}

fn schema_of(request: &TurnRequest) -> Value {
    match request.tools.as_slice() {
        [Tool::Function(tool)] => tool.schema.as_ref().expect("a schema").to_value(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_limit_is_raised_only_with_a_loss() {
    let request = TurnRequest { max_output: Some(1), ..TurnRequest::new("m", Vec::new()) };
    for (places, limit) in [(&[][..], 1), (&["max_tokens"], 16), (&["temperature"], 1)] {
        assert_eq!(sent("openai-responses", "m", &request, places).max_output, Some(limit), "{places:?}");
    }
}

#[test]
fn an_effort_changes_only_with_a_loss_of_the_amount() {
    let mut request = TurnRequest::new("m", Vec::new());
    request.reasoning =
        Some(ReasoningRequest { effort: Some("xhigh".to_owned()), ..ReasoningRequest::default() });
    for (places, effort) in [(&[][..], "xhigh"), (&["reasoning.effort"], "high"), (&["stop"], "xhigh")] {
        let sent = sent("openai-chat", "gpt-5", &request, places).reasoning.expect("reasoning");
        assert_eq!(sent.effort.as_deref(), Some(effort), "{places:?}");
    }
    let lost = sent("openai-chat", "gpt-5", &request, &["reasoning"]);
    assert_eq!(lost.reasoning, None);
}

#[test]
fn a_schema_keeps_everything_that_the_host_accepts() {
    let schema = json!({
        "type": "object",
        "properties": {
            "b": { "type": "string", "minLength": 2, "description": "A name." },
            "a": { "type": "object", "required": ["c"], "properties": { "c": { "maximum": 3 } } },
        },
        "required": ["b"],
        "additionalProperties": { "type": "string" },
    });
    for (dialect, _) in &registry::ALL {
        assert_eq!(schema_of(&sent(dialect, "m", &offering(&schema), &[])), schema);
    }
}

#[test]
fn variants_at_the_root_are_merged_only_with_a_loss() {
    let schema = json!({ "type": "object", "anyOf": [
        { "properties": { "a": { "type": "string" } }, "required": ["a", "b"] },
        { "properties": { "b": { "type": "string" } }, "required": ["b"] },
    ] });
    let merged = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "required": ["b"],
    });
    let request = offering(&schema);
    assert_eq!(schema_of(&sent("anthropic-messages", "m", &request, &["tools[f].strict"])), schema);
    let reported = sent("anthropic-messages", "m", &request, &["tools[f].schema.anyOf"]);
    assert_eq!(schema_of(&reported), merged);
}
