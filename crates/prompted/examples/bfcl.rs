//! The Berkeley function-calling ground truths, rendered as a model would write them, cut into pieces and read back.
//!
//! `cargo run -p toolgate-prompted --example bfcl -- FOLDER`, where the folder is `bfcl_eval/data` of the installed Python
//! package `bfcl-eval`. Every turn must come back exactly, whatever the pieces.
#![expect(clippy::print_stdout, reason = "a command line tool talks to the person who runs it")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value};
use toolgate_model::reply::fold;
use toolgate_model::{
    AssistantMessage, Block, BlockEnd, BlockStart, CallId, CallKind, Delta, Extras, Finish, FunctionTool,
    JsonText, Message, Part, ReplyHead, Tool, ToolCall, TurnEvent, TurnRequest, UserMessage,
};
use toolgate_prompted::{Interpreter, Options, Prepared, Secret, prepare};

/// How many characters each piece has; 0 stands for the whole text.
const PIECES: [usize; 4] = [1, 3, 17, 0];

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        println!("usage: bfcl FOLDER (bfcl_eval/data of the Python package bfcl-eval)");
        return ExitCode::from(2);
    };
    match run(Path::new(&folder)) {
        Ok(score) => {
            let Score { turns, calls, failed, skipped } = score;
            println!("{turns} turns, {calls} calls, {failed} not exact; {skipped} contradict their schema");
            if score.failed == 0 && score.turns > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(complaint) => {
            println!("{complaint}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Score {
    turns: usize,
    calls: usize,
    failed: usize,
    /// Ground truths that their own schema forbids: reading by the schema must change them.
    skipped: usize,
}

fn run(folder: &Path) -> Result<Score, String> {
    let mut score = Score::default();
    let answers = folder.join("possible_answer");
    let entries =
        fs::read_dir(&answers).map_err(|cause| format!("reading {}: {cause}", answers.display()))?;
    for entry in entries {
        let entry = entry.map_err(|cause| format!("listing {}: {cause}", answers.display()))?;
        let questions = lines(&folder.join(entry.file_name()))?;
        let tools: HashMap<String, Value> = questions
            .into_iter()
            .filter_map(|mut line| {
                Some((line.get("id")?.as_str()?.to_owned(), line.get_mut("function")?.take()))
            })
            .collect();
        for line in lines(&entry.path())? {
            let id = line.get("id").and_then(Value::as_str).unwrap_or_default();
            let Some(calls) = line.get("ground_truth").and_then(calls) else { continue };
            let Some(tools) = tools.get(id).and_then(Value::as_array) else { continue };
            if contradicts_schema(tools, &calls) {
                score.skipped += 1;
                continue;
            }
            score.turns += 1;
            score.calls += calls.len();
            if let Err(complaint) = check(tools, &calls) {
                score.failed += 1;
                println!("{id}: {complaint}");
            }
        }
    }
    Ok(score)
}

fn lines(path: &Path) -> Result<Vec<Value>, String> {
    let text = fs::read_to_string(path).map_err(|cause| format!("reading {}: {cause}", path.display()))?;
    text.lines()
        .map(|line| {
            serde_json::from_str(line).map_err(|cause| format!("reading {}: {cause}", path.display()))
        })
        .collect()
}

/// The first accepted value of each parameter; `None` for a ground truth that holds no calls of this form.
fn calls(truth: &Value) -> Option<Vec<(String, Value)>> {
    let calls = truth.as_array()?.iter().map(|call| {
        let (name, parameters) = call.as_object()?.iter().next()?;
        let mut arguments = Map::new();
        for (parameter, accepted) in parameters.as_object()? {
            let first = accepted.as_array()?.first()?;
            if first != &Value::String(String::new()) {
                arguments.insert(parameter.clone(), first.clone());
            }
        }
        Some((name.clone(), Value::Object(arguments)))
    });
    calls.collect()
}

/// True where a value is none of those its schema lists.
fn contradicts_schema(tools: &[Value], calls: &[(String, Value)]) -> bool {
    calls.iter().any(|(name, arguments)| {
        let tool = tools.iter().find(|tool| tool.get("name").and_then(Value::as_str) == Some(name));
        let properties = tool.and_then(|tool| tool.pointer("/parameters/properties"));
        arguments.as_object().into_iter().flatten().any(|(parameter, value)| {
            let listed = properties.and_then(|properties| properties.get(parameter)?.get("enum")?.as_array());
            listed.is_some_and(|listed| !listed.contains(value))
        })
    })
}

fn check(tools: &[Value], calls: &[(String, Value)]) -> Result<(), String> {
    let mut request = TurnRequest::new("m", vec![user("question")]);
    request.tools = tools.iter().filter_map(tool).collect();
    let content = calls.iter().map(|(name, arguments)| {
        Block::ToolCall(ToolCall {
            id: CallId::new("c"),
            name: name.as_str().into(),
            kind: CallKind::Function,
            arguments: arguments.to_string(),
            extras: Extras::NONE,
        })
    });
    request
        .messages
        .push(Message::Assistant(AssistantMessage { content: content.collect(), extras: Extras::NONE }));
    request.messages.push(user("next"));
    let prepared = prepare(&request, &Options::default(), &Secret([1; 32])).value;
    let Some(Message::Assistant(answer)) = prepared.request.messages.get(1) else {
        return Err("the answer was not rendered".into());
    };
    let Some(Block::Text(text)) = answer.content.first() else { return Ok(()) };
    for size in PIECES {
        let got = read(&prepared, &text.text, size)?;
        if got != calls {
            return Err(format!("pieces of {size}: {got:?} for {calls:?} from\n{}", text.text));
        }
    }
    Ok(())
}

fn read(prepared: &Prepared, text: &str, size: usize) -> Result<Vec<(String, Value)>, String> {
    let mut interpreter = Interpreter::new(prepared.plan.clone());
    let mut events = Vec::new();
    interpreter.event(TurnEvent::Started(ReplyHead::default()), &mut events);
    interpreter.event(TurnEvent::BlockStarted(BlockStart::Text), &mut events);
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(if size == 0 { characters.len().max(1) } else { size }) {
        interpreter.event(TurnEvent::BlockDelta(Delta::Text(piece.iter().collect())), &mut events);
    }
    interpreter.event(TurnEvent::BlockFinished(BlockEnd::default()), &mut events);
    interpreter.event(TurnEvent::Finished(Finish::default()), &mut events);
    interpreter.end(&mut events);
    let reply = fold(events).map_err(|error| error.to_string())?;
    let mut calls = Vec::new();
    for block in reply.blocks {
        let Block::ToolCall(call) = block else { return Err(format!("not a call: {block:?}")) };
        let arguments = serde_json::from_str(&call.arguments).map_err(|error| error.to_string())?;
        calls.push((call.name.into_string(), arguments));
    }
    Ok(calls)
}

fn tool(function: &Value) -> Option<Tool> {
    Some(Tool::Function(FunctionTool {
        name: function.get("name")?.as_str()?.into(),
        description: function.get("description").and_then(Value::as_str).map(str::to_owned),
        schema: function.get("parameters").map(JsonText::from_value),
        strict: None,
        extras: Extras::NONE,
    }))
}

fn user(text: &str) -> Message {
    Message::User(UserMessage { content: vec![Part::text(text)], extras: Extras::NONE })
}
