//! Reads lines from the program, as far as the gateway needs them.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A line from the program.
#[derive(Clone, Debug)]
pub enum Line<'a> {
    /// A turn starts. Contains the program's version.
    Init {
        /// `2.1.197`; empty if absent.
        version: String,
    },
    /// An event of the model's stream, as the model's host sent it.
    Event {
        /// The event's JSON.
        event: &'a str,
        /// The call of the sub-agent that produced it; `None` for the main conversation.
        parent: Option<String>,
    },
    /// A finished block of the model's message, or a message that the program generated for an error.
    Assistant {
        /// The message, with this block as its content.
        message: Value,
        /// The sub-agent's call.
        parent: Option<String>,
    },
    /// Results that the program added to the conversation.
    User {
        /// The message.
        message: Value,
        /// The sub-agent's call.
        parent: Option<String>,
    },
    /// A turn ended, or a history-only user message was accepted.
    Result(Box<Outcome>),
    /// A control request; the program waits for the response.
    Request {
        /// To be repeated in the response.
        id: RequestId,
        /// The request.
        ask: Ask,
    },
    /// The response to a control request from the gateway.
    Response {
        /// The id of the request.
        id: RequestId,
        /// The response or the error.
        outcome: Result<Value, String>,
    },
    /// The program cancelled a control request.
    Withdrawn(RequestId),
    /// Anything else.
    Other,
}

/// Links a control response with its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// Takes the text as it is.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A control request from the program.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// A message for a tool server.
    ToolServer {
        /// The server's name.
        server: String,
        /// The JSON-RPC message.
        message: Value,
    },
    /// A permission request for a tool call.
    Permission(PermissionAsk),
    /// A form for the user, which the gateway cannot fill in.
    Elicitation,
    /// A hook callback; the gateway registers no hooks.
    Hook,
    /// A dialog that the gateway does not support: no response is expected.
    Dialog,
    /// A subtype unknown to this version.
    Unknown(String),
}

/// A permission request for a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionAsk {
    /// The tool's name.
    pub tool: String,
    /// The tool's input.
    pub input: Value,
    /// The id of the call.
    pub call: Option<String>,
    /// Permission updates that the program suggests. Never echo them: one of them may allow everything.
    pub suggestions: Vec<Value>,
    /// The reason for the request.
    pub reason: Option<String>,
}

/// How a turn ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// `success`, `error_max_turns`, `error_during_execution`, …
    pub subtype: String,
    /// Also true for failures of the model's host, whose subtype is `success`.
    pub is_error: bool,
    /// The number of model calls; zero for a history-only user message.
    pub turns: u64,
    /// The last text, or the error of the model's host.
    pub text: Option<String>,
    /// The error status of the model's host.
    pub api_status: Option<u16>,
    /// Further errors.
    pub errors: Vec<String>,
    /// The answer that follows the requested schema.
    pub structured: Option<Value>,
    /// The model's stop reason.
    pub stop: Option<String>,
    /// The total cost of the process so far, in US dollars.
    pub cost_usd: Option<f64>,
}

/// A line that starts like an object but cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("the agent wrote a line that is not a valid message: {shown}")]
pub struct BrokenLine {
    shown: String,
    source: serde_json::Error,
}

impl<'a> Line<'a> {
    /// Reads one line. Lines that are not objects are ignored: some builds print other text.
    pub fn read(line: &'a str) -> Result<Self, BrokenLine> {
        if !line.starts_with('{') {
            return Ok(Self::Other);
        }
        let broken = |source| BrokenLine { shown: line.chars().take(SHOWN_CHARS).collect(), source };
        let head: Head<'_> = serde_json::from_str(line).map_err(broken)?;
        Ok(match &*head.kind {
            "stream_event" => match head.event {
                Some(event) => Self::Event { event: event.get(), parent: head.parent_tool_use_id },
                None => Self::Other,
            },
            "assistant" | "user" => {
                let Some(message) = head.message else { return Ok(Self::Other) };
                let message = serde_json::from_str(message.get()).map_err(broken)?;
                let parent = head.parent_tool_use_id;
                if head.kind == "assistant" {
                    Self::Assistant { message, parent }
                } else {
                    Self::User { message, parent }
                }
            }
            "system" if head.subtype.as_deref() == Some("init") => {
                Self::Init { version: head.claude_code_version.unwrap_or_default() }
            }
            "result" => {
                let result: ResultIn = serde_json::from_str(line).map_err(broken)?;
                Self::Result(Box::new(result.into()))
            }
            "control_request" => match (head.request_id, head.request) {
                (Some(id), Some(request)) => {
                    Self::Request { id: RequestId(id), ask: read_ask(request).map_err(broken)? }
                }
                _ => Self::Other,
            },
            "control_response" => match head.response {
                Some(response) => read_response(response).map_err(broken)?,
                None => Self::Other,
            },
            "control_cancel_request" => {
                head.request_id.map_or(Self::Other, |id| Self::Withdrawn(RequestId(id)))
            }
            _ => Self::Other,
        })
    }
}

/// How much of an invalid line an error quotes.
const SHOWN_CHARS: usize = 200;

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    parent_tool_use_id: Option<String>,
    request_id: Option<String>,
    claude_code_version: Option<String>,
}

#[derive(Deserialize)]
struct RequestIn<'a> {
    #[serde(borrow, default)]
    subtype: Cow<'a, str>,
    #[serde(default)]
    server_name: String,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    input: Value,
    tool_use_id: Option<String>,
    #[serde(default)]
    permission_suggestions: Option<Vec<Value>>,
    decision_reason: Option<Value>,
    description: Option<String>,
}

fn read_ask(request: &RawValue) -> Result<Ask, serde_json::Error> {
    let request: RequestIn<'_> = serde_json::from_str(request.get())?;
    Ok(match &*request.subtype {
        "mcp_message" => Ask::ToolServer { server: request.server_name, message: request.message },
        "can_use_tool" => Ask::Permission(PermissionAsk {
            tool: request.tool_name,
            input: request.input,
            call: request.tool_use_id,
            suggestions: request.permission_suggestions.unwrap_or_default(),
            reason: request
                .decision_reason
                .and_then(|reason| reason.as_str().map(str::to_owned))
                .or(request.description),
        }),
        "elicitation" => Ask::Elicitation,
        "hook_callback" => Ask::Hook,
        "request_user_dialog" => Ask::Dialog,
        other => Ask::Unknown(other.to_owned()),
    })
}

fn read_response(response: &RawValue) -> Result<Line<'static>, serde_json::Error> {
    #[derive(Deserialize)]
    struct ResponseIn<'a> {
        #[serde(borrow, default)]
        subtype: Cow<'a, str>,
        #[serde(default)]
        request_id: String,
        #[serde(default)]
        response: Value,
        error: Option<Value>,
    }
    let response: ResponseIn<'_> = serde_json::from_str(response.get())?;
    let outcome = match &*response.subtype {
        "error" => Err(response.error.map_or_else(String::new, text_of)),
        _ => Ok(response.response),
    };
    Ok(Line::Response { id: RequestId(response.request_id), outcome })
}

#[derive(Deserialize)]
struct ResultIn {
    #[serde(default)]
    subtype: String,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    num_turns: u64,
    result: Option<String>,
    api_error_status: Option<u16>,
    #[serde(default)]
    errors: Vec<Value>,
    structured_output: Option<Value>,
    stop_reason: Option<String>,
    total_cost_usd: Option<f64>,
}

impl From<ResultIn> for Outcome {
    fn from(result: ResultIn) -> Self {
        Self {
            subtype: result.subtype,
            is_error: result.is_error,
            turns: result.num_turns,
            text: result.result,
            api_status: result.api_error_status,
            errors: result.errors.into_iter().map(text_of).collect(),
            structured: result.structured_output,
            stop: result.stop_reason,
            cost_usd: result.total_cost_usd,
        }
    }
}

/// The text of an error, which is usually a string.
fn text_of(error: Value) -> String {
    if let Value::String(text) = error { text } else { error.to_string() }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
