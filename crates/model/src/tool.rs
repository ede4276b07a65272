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
    /// The tools that the model may call in this turn; `None` for all of them. The others are offered only to keep the
    /// beginning of the prompt the same.
    pub allowed: Option<Vec<AllowedTool>>,
    /// Whether one turn may contain several calls.
    pub parallel: Option<Parallel>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

impl ToolChoice {
    /// True if the model may call the tool.
    pub fn allows(&self, tool: &Tool) -> bool {
        let Some(allowed) = &self.allowed else { return true };
        allowed.iter().any(|allowed| match (allowed, tool) {
            (AllowedTool::Named(name, _), tool) => tool.name() == Some(name.as_str()),
            (AllowedTool::Provider(allowed), Tool::Provider(tool)) => {
                // An entry may name more than the type, such as one of several servers.
                allowed.dialect == tool.dialect
                    && allowed.fields.iter().all(|(name, value)| tool.fields.get(name) == Some(value))
            }
            (AllowedTool::Provider(_), Tool::Function(_) | Tool::Custom(_)) => false,
        })
    }
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub enum AllowedTool {
    /// One of the client's tools.
    Named(ToolName, CallKind),
    /// One that only its provider supports.
    Provider(Opaque),
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
    /// A form that only its own dialect supports (`{"type":"web_search"}`).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extras::{DialectId, Fields};

    const DIALECT: DialectId = DialectId { name: "d", provider: "p" };

    fn opaque(kind: &str, server: Option<&str>) -> Opaque {
        let mut fields = Fields::from_iter([("type".to_owned(), kind.into())]);
        fields.extend(server.map(|server| ("server_label".to_owned(), server.into())));
        Opaque { dialect: DIALECT, kind: kind.to_owned(), fields }
    }

    fn function(name: &str) -> Tool {
        let (description, schema, strict) = (None, None, None);
        Tool::Function(FunctionTool { name: name.into(), description, schema, strict, extras: Extras::NONE })
    }

    #[test]
    fn a_list_of_allowed_tools_excludes_all_others() {
        let check = |allowed: Option<Vec<AllowedTool>>, tool: Tool, expect: bool| {
            let choice = ToolChoice { allowed, ..ToolChoice::default() };
            assert_eq!(choice.allows(&tool), expect, "{choice:?} {tool:?}");
        };
        let named = || Some(vec![AllowedTool::Named("f".into(), CallKind::Function)]);
        let server = |label| Some(vec![AllowedTool::Provider(opaque("mcp", label))]);
        check(None, function("g"), true);
        check(named(), function("f"), true);
        check(named(), function("g"), false);
        check(named(), Tool::Provider(opaque("mcp", None)), false);
        check(server(None), Tool::Provider(opaque("mcp", Some("a"))), true);
        check(server(Some("a")), Tool::Provider(opaque("mcp", Some("a"))), true);
        check(server(Some("a")), Tool::Provider(opaque("mcp", Some("b"))), false);
        check(server(None), function("mcp"), false);
    }
}
