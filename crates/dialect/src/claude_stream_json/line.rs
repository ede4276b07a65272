//! Reads one line from the program, as far as the gateway uses it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolgate_model::approval::PermissionUpdate;

use super::progress::ToolProgress;
use super::{PREFIX, STRUCTURED_OUTPUT};

/// One line from the program.
#[derive(Clone, Debug)]
pub enum AgentLine<'a> {
    /// A turn begins. Sent before every turn, with the program's version.
    Init {
        /// `2.1.197`; empty if the program does not report it.
        version: String,
    },
    /// One event of the model's stream, as the API sent it.
    Event {
        /// The event's JSON.
        event: &'a str,
        /// The call that started the sub-agent of this stream; `None` for the main conversation.
        parent: Option<String>,
    },
    /// A finished block of the model's message, or a message that the program made to report an error.
    Assistant {
        /// The message, with this block as its content.
        message: Value,
        /// The call that started the sub-agent.
        parent: Option<String>,
    },
    /// Results that the program added to the conversation.
    User {
        /// The message.
        message: Value,
        /// The call that started the sub-agent.
        parent: Option<String>,
    },
    /// A turn is over, or a history line was accepted.
    Result(Box<TurnOutcome>),
    /// The program sends a control request and waits for our response.
    Request {
        /// Repeated in the response.
        id: RequestId,
        /// The request.
        request: ControlRequest,
    },
    /// The program responds to our control request.
    Response {
        /// The id of our request.
        id: RequestId,
        /// The response, or the error text.
        outcome: Result<Value, String>,
    },
    /// The program cancels its control request.
    Withdrawn(RequestId),
    /// A tool, or a sub-agent that a tool started, is running.
    Progress(ToolProgress),
    /// Anything that the gateway does not use.
    Other,
}

/// Ties a response to its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// Wraps the id unchanged.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A control request of the program.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlRequest {
    /// A message to one of our MCP servers.
    ToolServer {
        /// The server's name.
        server: String,
        /// The JSON-RPC message.
        message: Value,
    },
    /// Asks for permission to use a tool.
    Permission(PermissionRequest),
    /// A form for the user. The gateway cannot show one.
    Elicitation,
    /// A hook callback. The gateway registers none.
    Hook,
    /// A dialog. The protocol wants no response from a host that does not support dialogs.
    Dialog,
    /// A subtype that this version does not know.
    Unknown(String),
}

/// Asks for permission to use a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PermissionRequest {
    /// The tool's name.
    pub tool: String,
    /// The call's input.
    pub input: Value,
    /// The id of the waiting call.
    pub call: Option<String>,
    /// The sub-agent that makes the call.
    pub sub_agent: Option<String>,
    /// A sentence about the call, in newer versions.
    pub title: Option<String>,
    /// What the call is for.
    pub description: Option<String>,
    /// The program's reason for asking.
    pub reason: Option<String>,
    /// The path outside the program's folders that made it ask.
    pub blocked_path: Option<String>,
    /// Permission updates that the program proposes. Never echo them: one of them may allow everything.
    pub suggestions: Vec<PermissionUpdate>,
}

impl PermissionRequest {
    /// True for tools that do nothing on this machine: the client's, which the client runs, and the one that carries an
    /// answer with a schema.
    pub fn is_harmless(&self) -> bool {
        self.tool.starts_with(PREFIX) || self.tool == STRUCTURED_OUTPUT
    }
}

/// How a turn ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnOutcome {
    /// `success`, `error_max_turns`, `error_during_execution`, …
    pub subtype: String,
    /// Also true for API errors, whose subtype is `success`.
    pub is_error: bool,
    /// The number of model calls in this turn; 0 for a history line.
    pub turns: u64,
    /// The last text, or the API's error.
    pub text: Option<String>,
    /// The HTTP status of an API error.
    pub api_status: Option<u16>,
    /// Further errors.
    pub errors: Vec<String>,
    /// The answer that matches the requested schema.
    pub structured: Option<Value>,
    /// The API's stop reason.
    pub stop: Option<String>,
    /// The total cost of the process so far, in dollars.
    pub cost_usd: Option<f64>,
}

/// A line that starts like a JSON object but is not a valid message.
#[derive(Debug, thiserror::Error)]
#[error("the agent wrote an invalid message: {shown}")]
pub struct InvalidLine {
    shown: String,
    source: serde_json::Error,
}

impl<'a> AgentLine<'a> {
    /// Reads one line. Some builds also print debug text: a line that is not an object is ignored.
    pub fn read(line: &'a str) -> Result<Self, InvalidLine> {
        if !line.starts_with('{') {
            return Ok(Self::Other);
        }
        let broken = |source| InvalidLine { shown: line.chars().take(MAX_SHOWN_CHARS).collect(), source };
        let head: LineHead<'_> = serde_json::from_str(line).map_err(broken)?;
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
            "tool_progress" | "system"
                if ToolProgress::is_reported_by(&head.kind, head.subtype.as_deref()) =>
            {
                ToolProgress::read(line).map_or(Self::Other, Self::Progress)
            }
            "result" => {
                let result: ResultIn = serde_json::from_str(line).map_err(broken)?;
                Self::Result(Box::new(result.into()))
            }
            "control_request" => match (head.request_id, head.request) {
                (Some(id), Some(request)) => Self::Request {
                    id: RequestId(id),
                    request: read_control_request(request).map_err(broken)?,
                },
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

/// How much of an invalid line the error shows.
const MAX_SHOWN_CHARS: usize = 200;

#[derive(Deserialize)]
struct LineHead<'a> {
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
struct ControlRequestIn<'a> {
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
    agent_id: Option<String>,
    title: Option<String>,
    description: Option<String>,
    decision_reason: Option<Value>,
    blocked_path: Option<String>,
    #[serde(default)]
    permission_suggestions: Option<Vec<Value>>,
}

fn read_control_request(request: &RawValue) -> Result<ControlRequest, serde_json::Error> {
    let request: ControlRequestIn<'_> = serde_json::from_str(request.get())?;
    Ok(match &*request.subtype {
        "mcp_message" => ControlRequest::ToolServer { server: request.server_name, message: request.message },
        "can_use_tool" => ControlRequest::Permission(PermissionRequest {
            tool: request.tool_name,
            input: request.input,
            call: request.tool_use_id,
            sub_agent: request.agent_id,
            title: request.title,
            description: request.description,
            reason: request.decision_reason.and_then(|reason| reason.as_str().map(str::to_owned)),
            blocked_path: request.blocked_path,
            suggestions: read_suggestions(request.permission_suggestions.unwrap_or_default()),
        }),
        "elicitation" => ControlRequest::Elicitation,
        "hook_callback" => ControlRequest::Hook,
        "request_user_dialog" => ControlRequest::Dialog,
        other => ControlRequest::Unknown(other.to_owned()),
    })
}

/// Updates of an unknown type are left out: nobody could judge them.
fn read_suggestions(suggestions: Vec<Value>) -> Vec<PermissionUpdate> {
    suggestions.into_iter().filter_map(|update| serde_json::from_value(update).ok()).collect()
}

fn read_response(response: &RawValue) -> Result<AgentLine<'static>, serde_json::Error> {
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
    Ok(AgentLine::Response { id: RequestId(response.request_id), outcome })
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

impl From<ResultIn> for TurnOutcome {
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
