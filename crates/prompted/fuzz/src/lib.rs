//! Shared by both targets: tools with every kind of parameter, and a function that interprets one turn and
//! checks the invariants at each step.

use serde_json::{Value, json};
use toolgate_model::reply::fold;
use toolgate_model::{
    Block, BlockEnd, BlockStart, CallKind, CustomTool, Delta, Extras, Finish, FunctionTool, Grammar, JsonText,
    Message, Part, ReplyHead, StopReason, Tool, TurnEvent, TurnRequest, UserMessage,
};
use toolgate_prompted::{Interpreter, PreparedRequest, Recovery, Truncation};

/// The maximum number of bytes held back while streaming: the lookahead past a tag, and whitespace before it.
const MAX_WAITING: usize = 600;

/// A request with tools that take every kind of value.
pub fn request() -> TurnRequest {
    let content = vec![Part::text("do it")];
    let asked = Message::User(UserMessage { content, extras: Extras::NONE });
    let mut request = TurnRequest::new("m", vec![asked]);
    request.tools = tools();
    request
}

fn tools() -> Vec<Tool> {
    let write = json!({ "properties": {
        "file_path": { "type": "string" }, "content": { "type": "string" }, "meta": { "type": "string" },
    }, "required": ["file_path", "content"] });
    let search = json!({ "properties": {
        "query": { "type": "string" }, "filters": { "type": "object" }, "tags": { "type": "array" },
        "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
        "limit": { "type": ["integer", "string"] }, "ratio": { "type": "number" }, "deep": { "type": "boolean" },
        "unit": { "enum": ["celsius", "fahrenheit"] }, "level": { "enum": ["1", 1, "null", null] }, "any": {},
    }, "required": ["query"] });
    let custom = CustomTool { name: "Patch".into(), description: None, format: None, extras: Extras::NONE };
    vec![
        function("Write", &write),
        function("Search", &search),
        function("Ping", &json!({ "type": "object" })),
        Tool::Custom(custom),
    ]
}

fn function(name: &str, schema: &Value) -> Tool {
    Tool::Function(FunctionTool {
        name: name.into(),
        description: None,
        schema: Some(JsonText::from_value(schema)),
        strict: None,
        extras: Extras::NONE,
    })
}

/// The result of one turn.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// The blocks of the reply.
    pub blocks: Vec<Block>,
    /// The stop reason.
    pub stop: StopReason,
    /// The heuristics used, except dropped text after the calls: whether that arrives depends on the split.
    pub recoveries: Vec<Recovery>,
    /// Why a call was left unfinished.
    pub truncation: Option<Truncation>,
}

/// Interprets a turn whose replies arrive in chunks of `size` characters. The first reply is the answer; the
/// others answer the side requests, in order.
pub fn read(prepared: &PreparedRequest, replies: &[&str], stop: &StopReason, size: usize) -> Outcome {
    let mut interpreter = Interpreter::new(prepared.plan.clone());
    let mut out = Vec::new();
    let mut replies = replies.iter();
    let mut events = events(replies.next().copied().unwrap_or_default(), stop, size).into_iter();
    loop {
        if interpreter.missing_value().is_some() {
            match replies.next() {
                Some(value) => interpreter.supply_value(value, &mut out),
                None => interpreter.decline_value(&mut out),
            }
        } else if interpreter.follow_up().is_some() {
            let Some(reply) = replies.next() else { break };
            events = self::events(reply, stop, size).into_iter();
            // With the first event of the next reply, the interpreter leaves the truncated one.
            let Some(first) = events.next() else { break };
            interpreter.event(first, &mut out);
        } else if interpreter.wants_stop() {
            break;
        } else {
            let Some(event) = events.next() else { break };
            interpreter.event(event, &mut out);
            if size == 1 {
                assert!(interpreter.buffered_bytes() <= MAX_WAITING, "{} bytes wait", interpreter.buffered_bytes());
            }
        }
    }
    interpreter.end(&mut out);
    outcome(&interpreter, out)
}

fn outcome(interpreter: &Interpreter, events: Vec<TurnEvent>) -> Outcome {
    let mut grammar = Grammar::new();
    for event in &events {
        grammar.accept(event).expect("the interpreter keeps to the grammar");
    }
    let reply = fold(events).expect("a reply that is complete");
    let recoveries = interpreter.recoveries().filter(|recovery| *recovery != Recovery::TailDropped).collect();
    let truncation = interpreter.truncation();
    Outcome { blocks: reply.blocks, stop: reply.finish.stop, recoveries, truncation }
}

/// The events of a reply in chunks of `size` characters.
fn events(text: &str, stop: &StopReason, size: usize) -> Vec<TurnEvent> {
    let mut events =
        vec![TurnEvent::Started(ReplyHead::default()), TurnEvent::BlockStarted(BlockStart::Text)];
    let characters: Vec<char> = text.chars().collect();
    let pieces = characters.chunks(size.max(1)).map(|piece| piece.iter().collect());
    events.extend(pieces.map(|piece| TurnEvent::BlockDelta(Delta::Text(piece))));
    events.push(TurnEvent::BlockFinished(BlockEnd::default()));
    events.push(TurnEvent::Finished(Finish { stop: stop.clone(), ..Finish::default() }));
    events
}

/// The calls of a turn.
pub fn calls(outcome: &Outcome) -> impl Iterator<Item = &toolgate_model::ToolCall> {
    outcome.blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        Block::Text(_) | Block::Refusal(_) | Block::Reasoning(_) | Block::Opaque(_) => None,
    })
}

/// True if the arguments of a call are valid for its kind.
pub fn is_whole(call: &toolgate_model::ToolCall) -> bool {
    match call.kind {
        CallKind::Custom => true,
        CallKind::Function => matches!(serde_json::from_str(&call.arguments), Ok(Value::Object(_))),
    }
}
