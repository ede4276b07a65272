//! Calls written as JSON (P15, P31): buffered up to the closing bracket, then parsed as if their members were
//! parameters.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::call::OpenCall;
use super::lex::{Family, Spelling};
use super::{ParsedPiece, Parser, State, Step};
use crate::fault::CallFault;
use crate::recovery::{Recovery, Truncation};
use crate::schema::Parameter;
use crate::value::{CloseKind, CloseOutcome, Encoder, MAX_BUFFERED_VALUE, Markup, coerce, repair};

/// The maximum number of calls in one array.
const MAX_CALLS: usize = 64;

/// JSON that is being buffered.
#[derive(Clone, Debug)]
pub(crate) struct JsonCall {
    /// The name of the tool, if it precedes the JSON.
    name: Option<String>,
    /// The text before the JSON, in case the call turns out to be text.
    raw_opening: String,
    text: String,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

/// The members of a JSON object as text, in order.
type Members = Vec<(String, String)>;

impl Parser {
    /// Starts to buffer JSON after a header of this length.
    pub(super) fn open_json(&mut self, name: Option<String>, header: usize) {
        let raw_opening = self.rest()[..header].to_owned();
        self.consume(header);
        let call =
            JsonCall { name, raw_opening, text: String::new(), depth: 0, in_string: false, escaped: false };
        self.state = State::Json(Box::new(call));
    }

    pub(super) fn step_json(&mut self, mut call: Box<JsonCall>, out: &mut Vec<ParsedPiece>) -> Step {
        let rest = self.rest();
        let spaces = if call.text.is_empty() { rest.len() - rest.trim_start().len() } else { 0 };
        let body = &rest[spaces..];
        // An empty `<args_json></args_json>` is a call without arguments.
        if call.text.is_empty() && body.starts_with(['<', ']']) && call.name.is_some() {
            self.consume(spaces);
            self.json_calls(vec![(call.name.take().unwrap_or_default(), Vec::new())], &call.raw_opening, out);
            return Step::Again;
        }
        let Some(end) = call.scan(body) else {
            let len = rest.len();
            call.text.push_str(body);
            self.consume(len);
            if call.text.len() > MAX_BUFFERED_VALUE {
                self.record_fault(CallFault::TooLarge);
                self.truncation = Some(Truncation::TooLarge);
                self.state = State::Tail;
            } else {
                self.state = State::Json(call);
            }
            return Step::Stop;
        };
        call.text.push_str(&body[..end]);
        self.consume(spaces + end);
        let read = self.read_json(&call);
        let written = format!("{}{}", call.raw_opening, call.text);
        if let Some(calls) = read {
            self.json_calls(calls, &written, out);
        } else {
            self.record_fault(CallFault::InvalidJson);
            self.reject_call(&written, out);
        }
        Step::Again
    }

    fn read_json(&mut self, call: &JsonCall) -> Option<Vec<(String, Members)>> {
        let strict = coerce::valid_json(&call.text).map(str::to_owned);
        let json = if let Some(json) = strict {
            json
        } else {
            let repaired = repair::json(&call.text)?;
            self.recover(Recovery::JsonRepaired);
            repaired
        };
        match &call.name {
            Some(name) => Some(vec![(name.clone(), members(&json)?)]),
            None => named_calls(&json),
        }
    }

    fn json_calls(&mut self, calls: Vec<(String, Members)>, written: &str, out: &mut Vec<ParsedPiece>) {
        let last = calls.len().saturating_sub(1);
        for (index, (name, members)) in calls.into_iter().enumerate() {
            let Some(tool) = self.resolve(&name) else {
                self.record_wrong_tool(&name);
                self.reject_call(written, out);
                return;
            };
            let mut call = Box::new(OpenCall::new(tool, Family::Invoke, Spelling::Plain, String::new()));
            self.announce(&mut call, out);
            for (key, value) in members {
                // A member that matches no parameter must not be lost silently.
                let Some(parameter) = self.parameter(&mut call, &key) else {
                    self.cut(Truncation::Malformed, out);
                    return;
                };
                self.json_member(&mut call, parameter, &value, out);
            }
            self.complete(call, out);
            // Only the last call can wait for a missing value; earlier calls in the array are completed
            // without.
            if index < last {
                self.decline_values(out);
            }
            if self.is_done() {
                return;
            }
        }
    }

    fn json_member(
        &mut self,
        call: &mut OpenCall,
        parameter: Parameter,
        value: &str,
        out: &mut Vec<ParsedPiece>,
    ) {
        let mut json = String::new();
        let string = serde_json::from_str::<String>(value).ok();
        let is_listed =
            || serde_json::from_str(value).is_ok_and(|value| parameter.enum_values.contains(&value));
        let fits =
            parameter.types.has(coerce::type_of(value)) && (parameter.enum_values.is_empty() || is_listed());
        let closed = match string {
            _ if fits && call.tool.kind == toolgate_model::CallKind::Function => {
                call.writer.member(&parameter.name, value, &mut json);
                CloseOutcome::Written
            }
            string => {
                let text = string.as_deref().unwrap_or(value);
                let markup = Markup::Cdata;
                let mut encoder = Encoder::new(parameter.clone(), call.tool.kind, markup);
                encoder.open(&mut call.writer, &mut json);
                encoder.push(text, &mut call.writer, &mut json);
                encoder.close(CloseKind::Tag, &mut call.writer, &mut json)
            }
        };
        self.emit(ParsedPiece::Arguments(json), out);
        self.value_closed(call, parameter, closed);
    }
}

impl JsonCall {
    /// The end of the JSON value, if it is in this chunk.
    fn scan(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// `{"name": …, "arguments": …}`, or an array of these.
fn named_calls(json: &str) -> Option<Vec<(String, Members)>> {
    if json.trim_start().starts_with('[') {
        let items = serde_json::from_str::<Vec<&RawValue>>(json).ok()?;
        let calls =
            items.iter().take(MAX_CALLS).map(|item| named_call(item.get())).collect::<Option<Vec<_>>>()?;
        return (!calls.is_empty()).then_some(calls);
    }
    named_call(json).map(|call| vec![call])
}

fn named_call(json: &str) -> Option<(String, Members)> {
    let mut fields: HashMap<String, String> = members(json)?.into_iter().collect();
    if let Some(function) = fields.get("function").filter(|function| function.starts_with('{')).cloned() {
        fields = members(&function)?.into_iter().collect();
    }
    let name = ["name", "tool", "function"].iter().find_map(|key| fields.get(*key))?;
    let name = serde_json::from_str::<String>(name).ok()?;
    let arguments = ["arguments", "parameters", "input", "args"].iter().find_map(|key| fields.get(*key));
    let members = match arguments {
        None => Vec::new(),
        Some(arguments) => match serde_json::from_str::<String>(arguments) {
            Ok(encoded) => members(&encoded)?,
            Err(_) => members(arguments)?,
        },
    };
    Some((name, members))
}

/// The members of an object, each value as written: large numbers keep their digits.
pub(crate) fn members(json: &str) -> Option<Members> {
    let order = serde_json::from_str::<Map<String, Value>>(json).ok()?;
    let mut written = serde_json::from_str::<HashMap<String, &RawValue>>(json).ok()?;
    let texts = order.into_iter().map(|(key, _)| {
        let text = written.remove(&key).map(|value| value.get().to_owned()).unwrap_or_default();
        (key, text)
    });
    Some(texts.collect())
}
