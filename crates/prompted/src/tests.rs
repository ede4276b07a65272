//! Tests of the whole crate: model text in chunks of various sizes in, replies out.

mod bounds;
mod cases;
mod cuts;
mod enums;
mod faults;
mod history;
mod prompts;
mod retry;
mod side;
mod streams;
mod strict;

use serde_json::json;
use toolgate_model::reply::fold;
use toolgate_model::{
    Block, BlockEnd, BlockStart, CallKind, CustomTool, Delivery, Delta, Extras, Finish, FunctionTool,
    JsonText, Message, Part, ReplyHead, StopReason, Tool, TurnEvent, TurnRequest, UsageReport, UserMessage,
};

use crate::{Interpreter, PreparedRequest, PromptedOptions, Recovery, Secret, Truncation, prepare};

/// Stands for the trigger in the texts of these tests.
const MARK: &str = "§";

fn function(name: &str, schema: &serde_json::Value) -> Tool {
    Tool::Function(FunctionTool {
        name: name.into(),
        description: Some(format!("Does {name}.")),
        schema: Some(JsonText::from_value(schema)),
        strict: None,
        extras: Extras::NONE,
    })
}

fn tools() -> Vec<Tool> {
    vec![
        function(
            "Bash",
            &json!({"properties": {
            "command": {"type": "string"}, "timeout": {"type": "integer"}, "background": {"type": "boolean"},
        }, "required": ["command"]}),
        ),
        function(
            "Write",
            &json!({"properties": {
            "file_path": {"type": "string"}, "content": {"type": "string"}, "meta": {"type": "string"},
        }, "required": ["file_path", "content"]}),
        ),
        function(
            "Search",
            &json!({"properties": {
            "query": {"type": "string"}, "filters": {"type": "object"}, "tags": {"type": "array"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "any": {},
        }, "required": ["query"]}),
        ),
        function("Ping", &json!({"type": "object"})),
        Tool::Custom(CustomTool {
            name: "Patch".into(),
            description: None,
            format: None,
            extras: Extras::NONE,
        }),
    ]
}

fn user(text: &str) -> Message {
    Message::User(UserMessage { content: vec![Part::text(text)], extras: Extras::NONE })
}

fn request() -> TurnRequest {
    let mut request = TurnRequest::new("m", vec![user("do it")]);
    request.tools = tools();
    request.delivery = Delivery::Stream(UsageReport::default());
    request
}

fn prepared(request: &TurnRequest, options: &PromptedOptions) -> PreparedRequest {
    prepare(request, options, &Secret([7; 32])).value
}

/// The result of interpreting one reply.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// `text …`, `think …`, `call NAME ARGUMENTS`, in order.
    blocks: Vec<String>,
    stop: StopReason,
    recoveries: Vec<Recovery>,
    truncation: Option<Truncation>,
}

/// How a text is split into chunks.
#[derive(Clone, Copy, Debug)]
enum Split {
    Every(usize),
    Random(u64),
    Whole,
}

const SPLITS: [Split; 6] =
    [Split::Every(1), Split::Every(3), Split::Random(1), Split::Random(2), Split::Random(3), Split::Whole];

fn pieces(text: &str, split: Split) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut random = Random(match split {
        Split::Random(seed) => seed,
        Split::Every(_) | Split::Whole => 0,
    });
    let mut rest = characters.as_slice();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let size = match split {
            Split::Every(size) => size,
            Split::Random(_) => 1 + random.below(12),
            Split::Whole => rest.len(),
        };
        let (piece, more) = rest.split_at(size.min(rest.len()));
        pieces.push(piece.iter().collect());
        rest = more;
    }
    pieces
}

/// A small deterministic random number generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = self.0 ^ (self.0 >> 29);
        mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

fn text_events(text: &str, split: Split, stop: StopReason) -> Vec<TurnEvent> {
    let mut events =
        vec![TurnEvent::Started(ReplyHead::default()), TurnEvent::BlockStarted(BlockStart::Text)];
    events.extend(pieces(text, split).into_iter().map(|piece| TurnEvent::BlockDelta(Delta::Text(piece))));
    events.push(TurnEvent::BlockFinished(BlockEnd::default()));
    events.push(TurnEvent::Finished(Finish { stop, ..Finish::default() }));
    events
}

/// Feeds events until the interpreter no longer needs the upstream; declines side requests.
fn interpret(prepared: &PreparedRequest, events: Vec<TurnEvent>) -> Outcome {
    let mut interpreter = Interpreter::new(prepared.plan.clone());
    let mut out = Vec::new();
    for event in events {
        interpreter.event(event, &mut out);
        if interpreter.wants_stop() {
            break;
        }
    }
    interpreter.end(&mut out);
    outcome(&interpreter, out)
}

fn outcome(interpreter: &Interpreter, events: Vec<TurnEvent>) -> Outcome {
    let reply = fold(events).unwrap();
    Outcome {
        blocks: reply.blocks.iter().map(shown).collect(),
        stop: reply.finish.stop,
        recoveries: interpreter.recoveries().collect(),
        truncation: interpreter.truncation(),
    }
}

fn shown(block: &Block) -> String {
    match block {
        Block::Text(text) => format!("text {}", text.text),
        Block::Reasoning(reasoning) => format!("think {}", reasoning.text()),
        Block::ToolCall(call) => {
            let kind = if call.kind == CallKind::Custom { "custom" } else { "call" };
            format!("{kind} {} {}", call.name, call.arguments)
        }
        Block::Refusal(text) => format!("refusal {}", text.text),
        Block::Opaque(opaque) => format!("opaque {opaque:?}"),
    }
}

/// Interprets `text`, in which [`MARK`] stands for the trigger, split in several ways; the result must not
/// depend on the split.
fn read(text: &str, options: &PromptedOptions, stop: &StopReason) -> Outcome {
    let prepared = prepared(&request(), options);
    read_prepared(&prepared, text, stop)
}

fn read_prepared(prepared: &PreparedRequest, text: &str, stop: &StopReason) -> Outcome {
    let trigger = prepared.plan.trigger().unwrap_or("no trigger").to_owned();
    let text = text.replace(MARK, &trigger);
    let outcomes = SPLITS.map(|split| {
        let mut outcome = interpret(prepared, text_events(&text, split, stop.clone()));
        for block in &mut outcome.blocks {
            *block = block.replace(&trigger, MARK);
        }
        outcome
    });
    for (outcome, split) in outcomes.iter().zip(SPLITS) {
        // Whether dropped text after the calls arrives before the upstream is dropped depends on the split.
        let mut outcome_recoveries = outcome.recoveries.clone();
        let mut first_recoveries = outcomes[0].recoveries.clone();
        outcome_recoveries.retain(|recovery| *recovery != Recovery::TailDropped);
        first_recoveries.retain(|recovery| *recovery != Recovery::TailDropped);
        assert_eq!(outcome_recoveries, first_recoveries, "{split:?} of {text}");
        assert_eq!(outcome.blocks, outcomes[0].blocks, "{split:?} of {text}");
        assert_eq!(outcome.stop, outcomes[0].stop, "{split:?} of {text}");
        assert_eq!(outcome.truncation, outcomes[0].truncation, "{split:?} of {text}");
    }
    outcomes.into_iter().next_back().unwrap()
}
