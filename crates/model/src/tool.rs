//! Offered tools and the tool choice.

use crate::extras::{Extras, Opaque};
use crate::ids::ToolName;
use crate::json::JsonText;

/// An offered tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Tool {
    /// Takes a JSON object described by a schema.
    Function(FunctionTool),
    /// Takes free text (OpenAI's custom tools).
    Custom(CustomTool),
    /// A tool that only its provider supports: web search, code execution, `bash_20250124`.
    Provider(Opaque),
}

impl Tool {
    /// The name used in calls, if the tool has one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Function(tool) => Some(tool.name.as_str()),
            Self::Custom(tool) => Some(tool.name.as_str()),
            Self::Provider(tool) => tool.fields.get("name")?.as_str(),
        }
    }
}

/// A tool with JSON input.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionTool {
    /// The name used in calls.
    pub name: ToolName,
    /// The description for the model.
    pub description: Option<String>,
    /// The JSON Schema, byte for byte as the client wrote it (T37); `None` if the client sent none.
    pub schema: Option<JsonText>,
    /// Whether arguments must follow the schema exactly.
    pub strict: Option<bool>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// A tool with text input.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomTool {
    /// The name used in calls.
    pub name: ToolName,
    /// The description for the model.
    pub description: Option<String>,
    /// The grammar of its input, in the form of its dialect.
    pub format: Option<JsonText>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// The kind of a call's input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// A JSON object.
    #[default]
    Function,
    /// Free text.
    Custom,
}

/// How the model uses the tools. Absent parts stay absent (T31).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolChoice {
    /// Whether the model may, must or must not call a tool.
    pub choice: Option<Choice>,
    /// Whether one turn may contain several calls.
    pub parallel: Option<Parallel>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Whether the model calls a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// The model decides.
    Auto,
    /// At least one call.
    Any,
    /// No call.
    None,
    /// A call of this tool.
    Named(ToolName, CallKind),
    /// A form that only its own dialect supports (`allowed_tools`, `{"type":"web_search"}`).
    Provider(Opaque),
}

/// Whether one turn may contain several calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parallel {
    /// Any number.
    Allowed,
    /// At most one.
    Forbidden,
}
