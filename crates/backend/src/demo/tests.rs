//! The demo model: greetings, calls, results and limits.

use toolgate_model::reply::fold;
use toolgate_model::{
    AssistantMessage, Block, CallKind, Choice, DialectId, Extras, FunctionTool, JsonText, Message, Parallel,
    Part, Reply, Sampling, StopReason, Tool, ToolCall, ToolOutcome, ToolResult, ToolResults, TurnRequest,
    UserMessage,
};
use uuid::Uuid;

use super::*;

const WEATHER: &str = r#"{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}"#;

fn user(text: &str) -> Message {
    Message::User(UserMessage { content: vec![Part::text(text)], extras: Extras::NONE })
}

fn tool(name: &str, schema: &str) -> Tool {
    Tool::Function(FunctionTool {
        name: name.into(),
        description: None,
        schema: Some(JsonText::parse(schema).expect("a schema")),
        strict: None,
        extras: Extras::NONE,
    })
}

fn ask(text: &str) -> TurnRequest {
    let mut request = TurnRequest::new("demo", vec![user(text)]);
    request.tools =
        vec![tool("get_weather", WEATHER), tool("get_time", r#"{"type":"object","properties":{}}"#)];
    request
}

fn reply(request: TurnRequest) -> Reply {
    let turn = Turn {
        id: Uuid::nil(),
        request: Arc::new(request),
        body: None,
        dialect: DialectId { name: "test", provider: "test" },
        model: None,
        headers: Arc::default(),
        caller: "".into(),
        session: crate::turn::SessionSlot::default(),
        identity: crate::turn::RequestIdentity::default(),
    };
    fold(reply_batches(&turn).into_iter().flatten()).expect("the grammar accepts the script")
}

fn text(reply: &Reply) -> String {
    let texts = reply.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        Block::Refusal(_) | Block::Reasoning(_) | Block::ToolCall(_) | Block::Opaque(_) => None,
    });
    texts.collect()
}

#[track_caller]
fn check_calls(request: TurnRequest, expected: &[(&str, &str)]) {
    let reply = reply(request);
    let calls: Vec<(&str, &str)> = reply
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolCall(call) => Some((call.name.as_str(), call.arguments.as_str())),
            Block::Text(_) | Block::Refusal(_) | Block::Reasoning(_) | Block::Opaque(_) => None,
        })
        .collect();
    assert_eq!(calls, expected);
    let stop = if expected.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
    assert_eq!(reply.finish.stop, stop);
}

#[test]
fn a_greeting_echoes_the_user_and_names_the_tools() {
    let said = text(&reply(ask("hello there")));
    assert!(said.contains("hello there") && said.contains("get_weather"), "{said}");
}

#[test]
fn a_named_tool_is_called_with_what_follows_for() {
    check_calls(ask("please call get_weather for Paris."), &[("get_weather", r#"{"city":"Paris"}"#)]);
}

#[test]
fn several_requests_make_several_calls() {
    check_calls(
        ask("call get_weather for Paris and Rome, then call get_time"),
        &[("get_weather", r#"{"city":"Paris"}"#), ("get_weather", r#"{"city":"Rome"}"#), ("get_time", "{}")],
    );
}

#[test]
fn json_in_the_text_becomes_the_arguments() {
    check_calls(
        ask(r#"call get_weather with {"city":"Oslo","days":3} please"#),
        &[("get_weather", r#"{"city":"Oslo","days":3}"#)],
    );
}

#[test]
fn tool_choice_is_obeyed() {
    let mut none = ask("call get_weather for Paris");
    none.tool_choice.choice = Some(Choice::None);
    check_calls(none, &[]);

    let mut named = ask("hello");
    named.tool_choice.choice = Some(Choice::Named("get_time".into(), CallKind::Function));
    check_calls(named, &[("get_time", "{}")]);

    let mut one = ask("call get_weather for Paris and Rome");
    one.tool_choice.parallel = Some(Parallel::Forbidden);
    check_calls(one, &[("get_weather", r#"{"city":"Paris"}"#)]);
}

#[test]
fn results_are_reported_and_cause_no_further_call() {
    let mut request = ask("call get_weather for Paris");
    let call = ToolCall {
        id: "c1".into(),
        name: "get_weather".into(),
        kind: CallKind::Function,
        arguments: r#"{"city":"Paris"}"#.to_owned(),
        extras: Extras::NONE,
    };
    let result = ToolResult {
        call: "c1".into(),
        kind: CallKind::Function,
        content: vec![Part::text("sunny")],
        outcome: ToolOutcome::Success,
        extras: Extras::NONE,
    };
    let content = vec![Block::ToolCall(call)];
    request.messages.push(Message::Assistant(AssistantMessage { content, extras: Extras::NONE }));
    request.messages.push(Message::ToolResults(ToolResults { results: vec![result] }));
    let reply = reply(request);
    assert_eq!(text(&reply), "Here is what I found. get_weather says: sunny");
    assert_eq!(reply.finish.stop, StopReason::EndTurn);
}

#[test]
fn max_tokens_and_stop_sequences_cut_the_text() {
    let mut short = ask("hello");
    short.max_output = Some(2);
    let short = reply(short);
    assert_eq!((text(&short).as_str(), &short.finish.stop), ("Hello! I", &StopReason::MaxTokens));

    let mut stopped = ask("hello");
    stopped.sampling = Sampling { stop: vec!["demo".to_owned()], ..Sampling::default() };
    let stopped = reply(stopped);
    assert_eq!(
        (text(&stopped).as_str(), &stopped.finish.stop),
        ("Hello! I am the ", &StopReason::StopSequence)
    );
}
