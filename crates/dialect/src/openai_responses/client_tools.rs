//! Client tools in forms that only this dialect has. Every other dialect sees ordinary tools, calls and results:
//!
//! | here | elsewhere |
//! |---|---|
//! | a tool in a `namespace` | a tool named `<namespace>__<name>` |
//! | `{"type": "function_call", "namespace": …, "name": …}` | a call of that tool |
//! | `tool_search` run by the client | a function |
//! | `tool_search_call`, `tool_search_output` | a call and a result that names the found tools |
//! | tools of an `additional_tools` or `tool_search_output` item | offered tools |

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Value, json};
use toolgate_model::{Block, CallKind, CustomTool, Extras, Fields, FunctionTool, Tool, ToolCall};

use super::ID;

/// The tool's original form, in the extras of a tool.
pub(super) const FORM: &str = "client_form";
/// The namespace of a call, and of a tool in its original form.
pub(super) const NAMESPACE: &str = "namespace";
/// Marks a call or a result as an item of a tool search.
pub(super) const TOOL_SEARCH: &str = "tool_search";
/// The key of a form whose tool was loaded by an item.
const LOADED: &str = "loaded";
/// The `additional_tools` items of a request, in its extras.
pub(super) const ADDITIONAL_TOOLS: &str = "additional_tools";

/// The tool's name in other dialects.
pub(super) fn flat_name(namespace: &str, name: &str) -> String {
    format!("{}{name}", prefix(namespace))
}

fn prefix(namespace: &str) -> Cow<'_, str> {
    if namespace.ends_with("__") { Cow::Borrowed(namespace) } else { Cow::Owned(format!("{namespace}__")) }
}

/// The name that a call has beside its namespace.
pub(super) fn name_in_namespace<'a>(call: &'a ToolCall, namespace: &str) -> &'a str {
    let name = call.name.as_str();
    name.strip_prefix(&*prefix(namespace)).unwrap_or(name)
}

/// A tool of a namespace, under its name in other dialects. `fields` are those of the namespace.
pub(super) fn in_namespace(tool: Tool, namespace: &str, fields: &Fields) -> Tool {
    let form = |name: &str| json!({ NAMESPACE: fields, "name": name });
    match tool {
        Tool::Function(tool) => Tool::Function(FunctionTool {
            name: flat_name(namespace, tool.name.as_str()).into(),
            extras: with_form(&tool.extras, form(tool.name.as_str())),
            ..tool
        }),
        Tool::Custom(tool) => Tool::Custom(CustomTool {
            name: flat_name(namespace, tool.name.as_str()).into(),
            extras: with_form(&tool.extras, form(tool.name.as_str())),
            ..tool
        }),
        Tool::Provider(_) => tool,
    }
}

/// Notes that an item of the conversation loaded the tool, which is not in `tools` then.
pub(super) fn loaded(mut tool: Tool) -> Tool {
    let mut form = form(&tool).cloned().unwrap_or_else(|| json!({}));
    form[LOADED] = Value::Bool(true);
    match &mut tool {
        Tool::Function(tool) => tool.extras = with_form(&tool.extras, form),
        Tool::Custom(tool) => tool.extras = with_form(&tool.extras, form),
        Tool::Provider(_) => {}
    }
    tool
}

/// Offers loaded tools too. A tool may be loaded more than once.
pub(super) fn offer(tools: &mut Vec<Tool>, loaded: Vec<Tool>) {
    for tool in loaded {
        if tool.name().is_none_or(|name| !tools.iter().any(|other| other.name() == Some(name))) {
            tools.push(tool);
        }
    }
}

/// Takes the `additional_tools` items out of a request's fields.
pub(super) fn take_additional(fields: &mut Fields) -> Vec<Value> {
    match fields.shift_remove(ADDITIONAL_TOOLS) {
        Some(Value::Array(items)) => items,
        Some(_) | None => Vec::new(),
    }
}

/// True if an item of the conversation loaded the tool.
pub(super) fn is_loaded(tool: &Tool) -> bool {
    form(tool).is_some_and(|form| form.get(LOADED).is_some())
}

/// Extras with the form of a tool.
pub(super) fn with_form(extras: &Extras, form: Value) -> Extras {
    /// A tool's form is no content, and a tool that was found is loaded.
    const ENVELOPE: [&str; 2] = [FORM, "defer_loading"];
    let mut extras = extras.clone();
    extras.insert(ID, FORM, form);
    extras.envelope_fields(&ENVELOPE)
}

fn form(tool: &Tool) -> Option<&Value> {
    match tool {
        Tool::Function(tool) => tool.extras.field(ID, FORM),
        Tool::Custom(tool) => tool.extras.field(ID, FORM),
        Tool::Provider(_) => None,
    }
}

/// The original form of a written tool. A tool of the same namespace as the `last` one is added to that.
pub(super) fn restored(mut tool: Value, last: Option<&mut Value>) -> Option<Value> {
    let form = tool.as_object_mut().and_then(|fields| fields.shift_remove(FORM));
    let Some(Value::Object(mut form)) = form else { return Some(tool) };
    if let Some(search) = form.shift_remove(TOOL_SEARCH) {
        return Some(search);
    }
    let (Some(Value::Object(mut namespace)), Some(name)) =
        (form.shift_remove(NAMESPACE), form.shift_remove("name"))
    else {
        return Some(tool);
    };
    tool["name"] = name;
    let group = last.filter(|last| is_namespace(last, &namespace));
    if let Some(tools) = group.and_then(|last| last["tools"].as_array_mut()) {
        tools.push(tool);
        return None;
    }
    namespace.insert("tools".to_owned(), json!([tool]));
    Some(Value::Object(namespace))
}

fn is_namespace(group: &Value, namespace: &Fields) -> bool {
    group.get("tools").is_some() && namespace.iter().all(|(name, value)| group.get(name) == Some(value))
}

/// The forms that a client expects in calls, by the tool's name in other dialects.
#[derive(Default)]
pub(super) struct CallForms(HashMap<String, CallForm>);

enum CallForm {
    InNamespace(String),
    ToolSearch,
}

impl CallForms {
    /// The forms of these tools.
    pub(super) fn of(tools: &[Tool]) -> Self {
        let forms = tools.iter().filter_map(|tool| {
            let form = form(tool)?;
            let form = if form.get(TOOL_SEARCH).is_some() {
                CallForm::ToolSearch
            } else {
                CallForm::InNamespace(form.get(NAMESPACE)?.get("name")?.as_str()?.to_owned())
            };
            Some((tool.name()?.to_owned(), form))
        });
        Self(forms.collect())
    }

    /// Gives a host's call the form in which the client would send it back.
    pub(super) fn apply(&self, call: &mut ToolCall) {
        match self.0.get(call.name.as_str()) {
            Some(CallForm::InNamespace(namespace)) => {
                call.extras.insert(ID, NAMESPACE, Value::from(namespace.as_str()));
            }
            Some(CallForm::ToolSearch) => {
                call.extras.insert(ID, "execution", Value::from("client"));
                call.extras.mark(ID, TOOL_SEARCH);
            }
            None => {}
        }
    }

    /// The same for all calls of a reply.
    pub(super) fn applied<'a>(&self, blocks: Cow<'a, [Block]>) -> Cow<'a, [Block]> {
        if self.0.is_empty() {
            return blocks;
        }
        let mut blocks = blocks.into_owned();
        for block in &mut blocks {
            if let Block::ToolCall(call) = block {
                self.apply(call);
            }
        }
        Cow::Owned(blocks)
    }
}

/// True for the call of a tool search.
pub(super) fn is_search(call: &ToolCall) -> bool {
    call.kind == CallKind::Function && call.extras.is_marked(ID, TOOL_SEARCH)
}

/// What a model reads as the result of a tool search.
pub(super) fn found_text(tools: &[Tool]) -> String {
    let names: Vec<&str> = tools.iter().filter_map(Tool::name).collect();
    if names.is_empty() {
        return "No tools were found.".to_owned();
    }
    format!("These tools are now available: {}.", names.join(", "))
}
