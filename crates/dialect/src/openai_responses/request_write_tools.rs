//! Writes the offered tools and the tool choice.

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_model::{AllowedTool, CallKind, Choice, Fields, JsonText, Losses, Tool, ToolChoice, ToolName};

use super::ID;
use super::client_tools;
use super::request_write::Origin;
use crate::NameMap;
use crate::openai_shared::{ALLOWED_TOOLS, allowed_mode};

/// A tool to write.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ToolBody<'a> {
    /// A function or custom tool.
    Client {
        /// `function` or `custom`.
        r#type: &'static str,
        /// The name used in calls.
        name: &'a str,
        /// The description for the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        /// A function's schema, byte for byte (T37).
        #[serde(skip_serializing_if = "Option::is_none")]
        parameters: Option<JsonText>,
        /// Whether arguments must follow the schema.
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
        /// A custom tool's grammar.
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<JsonText>,
        /// Fields of this dialect.
        #[serde(flatten)]
        extra: Fields,
    },
    /// A tool that the provider runs.
    Provider(&'a Fields),
    /// A client's tool in its original form.
    Restored(Value),
}

/// Writes the offered tools.
pub(super) fn tools<'a>(
    tools: &'a [Tool],
    names: &'a NameMap,
    origin: Origin,
    losses: &mut Losses,
) -> Vec<ToolBody<'a>> {
    let mut bodies = Vec::new();
    for tool in tools.iter().filter(|tool| !client_tools::is_loaded(tool)) {
        match tool {
            Tool::Function(tool) => bodies.push(ToolBody::Client {
                r#type: "function",
                name: names.to_host(tool.name.as_str()),
                description: tool.description.as_deref(),
                parameters: tool.schema.clone(),
                // Absent means strict here and not strict in other dialects.
                strict: tool.strict.or((origin == Origin::Foreign).then_some(false)),
                format: None,
                extra: tool.extras.write(ID, "tools[]", losses),
            }),
            Tool::Custom(tool) => bodies.push(ToolBody::Client {
                r#type: "custom",
                name: names.to_host(tool.name.as_str()),
                description: tool.description.as_deref(),
                parameters: None,
                strict: None,
                format: tool.format.as_ref().map(flat_grammar),
                extra: tool.extras.write(ID, "tools[]", losses),
            }),
            Tool::Provider(tool) => bodies.extend(tool.write(ID, "tools", losses).map(ToolBody::Provider)),
        }
    }
    restored(bodies)
}

/// Restores the original forms of a client's tools.
fn restored(bodies: Vec<ToolBody<'_>>) -> Vec<ToolBody<'_>> {
    let mut tools = Vec::new();
    for body in bodies {
        match body {
            ToolBody::Client { ref extra, .. } if extra.contains_key(client_tools::FORM) => {
                let tool = serde_json::to_value(&body).unwrap_or_default();
                let last = match tools.last_mut() {
                    Some(ToolBody::Restored(last)) => Some(last),
                    Some(ToolBody::Client { .. } | ToolBody::Provider(_)) | None => None,
                };
                let restored = client_tools::restored(tool, last);
                tools.extend(restored.map(ToolBody::Restored));
            }
            body @ (ToolBody::Client { .. } | ToolBody::Provider(_) | ToolBody::Restored(_)) => {
                tools.push(body);
            }
        }
    }
    tools
}

/// Flattens a grammar: `{"type":"grammar","grammar":{…}}` becomes `{"type":"grammar",…}`.
fn flat_grammar(format: &JsonText) -> JsonText {
    let Value::Object(mut fields) = format.to_value() else { return format.clone() };
    let Some(Value::Object(grammar)) = fields.shift_remove("grammar") else { return format.clone() };
    fields.extend(grammar);
    JsonText::from_value(&Value::Object(fields))
}

/// Writes `tool_choice`.
pub(super) fn choice(choice: &ToolChoice, names: &NameMap, losses: &mut Losses) -> Option<Value> {
    choice.extras.write(ID, "tool_choice", losses);
    if let Some(allowed) = &choice.allowed {
        let tools: Vec<Value> = allowed.iter().filter_map(|tool| allowed_tool(tool, names, losses)).collect();
        let mode = allowed_mode(choice.choice.as_ref());
        return Some(json!({ "type": ALLOWED_TOOLS, "mode": mode, "tools": tools }));
    }
    Some(match choice.choice.as_ref()? {
        Choice::Auto => Value::from("auto"),
        Choice::Any => Value::from("required"),
        Choice::None => Value::from("none"),
        Choice::Named(name, kind) => named_tool(name, *kind, names),
        Choice::Provider(choice) => Value::Object(choice.write(ID, "tool_choice", losses)?.clone()),
    })
}

fn allowed_tool(tool: &AllowedTool, names: &NameMap, losses: &mut Losses) -> Option<Value> {
    match tool {
        AllowedTool::Named(name, kind) => Some(named_tool(name, *kind, names)),
        AllowedTool::Provider(opaque) => opaque.write(ID, "tool_choice", losses).cloned().map(Value::Object),
    }
}

fn named_tool(name: &ToolName, kind: CallKind, names: &NameMap) -> Value {
    let kind = match kind {
        CallKind::Function => "function",
        CallKind::Custom => "custom",
    };
    json!({ "type": kind, "name": names.to_host(name.as_str()) })
}
