//! The tools a client offers, and how the model is to use them.

use crate::extras::{Extras, Opaque};
use crate::ids::ToolName;
use crate::json::JsonText;

/// A tool on offer.
#[derive(Clone, Debug, PartialEq)]
pub enum Tool {
    /// Takes a JSON object described by a schema.
    Function(FunctionTool),
    /// Takes free text (OpenAI's custom tools).
    Custom(CustomTool),
    /// Known to its own provider only: web search, code execution, `bash_20250124`.
    Provider(Opaque),
}

impl Tool {
    /// The name a call would use, where the tool has one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Function(tool) => Some(tool.name.as_str()),
            Self::Custom(tool) => Some(tool.name.as_str()),
            Self::Provider(tool) => tool.fields.get("name")?.as_str(),
        }
    }
}

/// A tool that takes JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionTool {
    /// What calls name.
    pub name: ToolName,
    /// For the model.
    pub description: Option<String>,
    /// The JSON Schema, byte for byte as the client wrote it (T37); `None` where the client gave none.
    pub schema: Option<JsonText>,
    /// Whether arguments must follow the schema exactly.
    pub strict: Option<bool>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// A tool that takes text.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomTool {
    /// What calls name.
    pub name: ToolName,
    /// For the model.
    pub description: Option<String>,
    /// The grammar its input follows, as its dialect writes it.
    pub format: Option<JsonText>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// What a call carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// A JSON object.
    #[default]
    Function,
    /// Free text.
    Custom,
}

/// How the model is to use the tools. (T31: absent parts stay absent.)
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolChoice {
    /// Whether it may, must or must not call.
    pub choice: Option<Choice>,
    /// Whether several calls may come in one turn.
    pub parallel: Option<Parallel>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Whether the model calls a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// As it likes.
    Auto,
    /// At least one.
    Any,
    /// None.
    None,
    /// This one.
    Named(ToolName, CallKind),
    /// A form only its own dialect knows (`allowed_tools`, `{"type":"web_search"}`).
    Provider(Opaque),
}

/// Whether several calls may come in one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parallel {
    /// As many as the model likes.
    Allowed,
    /// At most one.
    Forbidden,
}
