//! Reads offered tools, in requests and in the items that load tools.

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use toolgate_model::json::{Tagged, read_tagged};
use toolgate_model::{CustomTool, Extras, Fields, FunctionTool, JsonText, Opaque, Tool};

use super::ID;
use super::client_tools::{self, NAMESPACE, TOOL_SEARCH};

/// An offered tool.
pub(super) enum ToolBody {
    Function(FunctionBody),
    Custom(CustomBody),
    Namespace(NamespaceBody),
    Other(String, Fields),
}

#[derive(Deserialize)]
pub(super) struct FunctionBody {
    name: String,
    description: Option<String>,
    parameters: Option<JsonText>,
    strict: Option<bool>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct CustomBody {
    name: String,
    description: Option<String>,
    format: Option<JsonText>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Deserialize)]
pub(super) struct NamespaceBody {
    name: String,
    tools: Vec<ToolBody>,
    #[serde(flatten)]
    extra: Fields,
}

impl<'de> Deserialize<'de> for ToolBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_tagged(deserializer)
    }
}

impl<'de> Tagged<'de> for ToolBody {
    fn read<D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        Ok(match tag {
            "function" => Self::Function(Deserialize::deserialize(fields)?),
            "custom" => Self::Custom(Deserialize::deserialize(fields)?),
            "namespace" => Self::Namespace(Deserialize::deserialize(fields)?),
            other => {
                let mut all = Fields::new();
                all.insert("type".to_owned(), Value::from(other));
                all.extend(Fields::deserialize(fields)?);
                Self::Other(other.to_owned(), all)
            }
        })
    }
}

/// Reads a list of tools.
pub(super) fn read(bodies: Vec<ToolBody>) -> Vec<Tool> {
    bodies.into_iter().flat_map(read_tool).collect()
}

/// Reads the tools of an item that loads them; anything else gives none.
pub(super) fn read_loaded(tools: Option<&Value>) -> Vec<Tool> {
    let bodies = tools.and_then(|tools| Vec::<ToolBody>::deserialize(tools).ok()).unwrap_or_default();
    read(bodies).into_iter().map(client_tools::loaded).collect()
}

fn read_tool(body: ToolBody) -> Vec<Tool> {
    vec![match body {
        ToolBody::Function(body) => Tool::Function(FunctionTool {
            name: body.name.into(),
            description: body.description,
            schema: body.parameters,
            strict: body.strict,
            extras: Extras::of(ID, body.extra),
        }),
        ToolBody::Custom(body) => Tool::Custom(CustomTool {
            name: body.name.into(),
            description: body.description,
            format: body.format,
            extras: Extras::of(ID, body.extra),
        }),
        ToolBody::Namespace(NamespaceBody { name, tools, extra }) => {
            let mut namespace = Fields::from_iter([
                ("type".to_owned(), Value::from(NAMESPACE)),
                ("name".to_owned(), Value::from(name.as_str())),
            ]);
            namespace.extend(extra);
            let tools = read(tools).into_iter();
            return tools.map(|tool| client_tools::in_namespace(tool, &name, &namespace)).collect();
        }
        ToolBody::Other(kind, fields) => match fields.get("execution") {
            Some(execution) if kind == TOOL_SEARCH && execution == "client" => tool_search(&fields),
            Some(_) | None => Tool::Provider(Opaque { dialect: ID, kind, fields }),
        },
    }]
}

/// A search that the client runs is a function for every host.
fn tool_search(fields: &Fields) -> Tool {
    Tool::Function(FunctionTool {
        name: TOOL_SEARCH.into(),
        description: fields.get("description").and_then(Value::as_str).map(str::to_owned),
        schema: fields.get("parameters").map(JsonText::from_value),
        strict: None,
        extras: client_tools::with_form(&Extras::NONE, json!({ TOOL_SEARCH: fields })),
    })
}
