//! A client's tools as the tool server offers them, with a collision-free mapping of their names (T24).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use toolgate_model::pairing::shortened;
use toolgate_model::{JsonText, Losses, Translated};

use super::PREFIX;
use crate::tool_schema::for_host;

/// The longest tool name that the model's host accepts, prefix included.
const MAX_NAME: usize = 64;
/// The program truncates longer descriptions.
const MAX_DESCRIPTION: usize = 2048;
/// The largest result size that a tool can declare. The program writes larger results to a file instead of the model.
const MAX_RESULT_CHARS: usize = 500_000;

/// The tools of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentTools {
    served: Vec<ServedTool>,
    /// Names that a model may use without the prefix.
    aliases: HashSet<String>,
    /// From the name that the model sees to the request's name.
    own: HashMap<String, String>,
    to_visible: HashMap<String, String>,
    /// Built-in tools that the request lists; they run inside the program (A4).
    pub builtins: Vec<String>,
}

/// One tool as the server lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedTool {
    name: String,
    entry: Value,
}

impl ServedTool {
    /// Its entry in `tools/list`.
    pub fn entry(&self) -> &Value {
        &self.entry
    }
}

impl AgentTools {
    /// Reads the `tools` of a Messages request. `enabled` are the built-in tools that the operator enabled: a tool with
    /// such a name is the built-in one, every other tool is the client's (A4).
    pub fn new(tools: &[Value], enabled: &[String]) -> Translated<Self> {
        let mut losses = Losses::default();
        let mut known = Self::default();
        let mut used = HashSet::new();
        for tool in tools {
            let Some(name) = tool["name"].as_str() else {
                losses.add("tools[]", "a tool without a name cannot be offered");
                continue;
            };
            if enabled.iter().any(|builtin| builtin == name) {
                known.builtins.push(name.to_owned());
                continue;
            }
            let Some(schema) = tool.get("input_schema") else {
                losses.add(format!("tools[{name}]"), "a provider's tool, which the agent cannot run");
                continue;
            };
            if tool.get("strict").is_some_and(|strict| strict == true) {
                losses.add(format!("tools[{name}].strict"), "the agent does not enforce schemas");
            }
            let schema = served_schema(name, schema, &mut losses);
            let bare = bare_name(name, &mut used);
            let visible = format!("{PREFIX}{bare}");
            let description = tool["description"].as_str().unwrap_or_default();
            known.served.push(ServedTool { entry: entry(&bare, description, &schema), name: bare.clone() });
            known.own.insert(visible.clone(), name.to_owned());
            known.to_visible.insert(name.to_owned(), visible);
            if bare == name {
                known.own.entry(bare.clone()).or_insert_with(|| name.to_owned());
                known.aliases.insert(bare);
            }
        }
        // A stable order, so that the host's prompt cache hits (M4).
        known.served.sort_by(|a, b| a.name.cmp(&b.name));
        Translated { value: known, losses }
    }

    /// The tools to serve, in a stable order.
    pub fn served(&self) -> &[ServedTool] {
        &self.served
    }

    /// Names that a model may use without the prefix.
    pub fn aliases(&self) -> Vec<String> {
        let mut names: Vec<String> = self.aliases.iter().cloned().collect();
        names.sort();
        names
    }

    /// The request's own name for a tool that the model calls; `None` for the program's tools.
    pub fn own_name(&self, called: &str) -> Option<&str> {
        self.own.get(called).map(String::as_str)
    }

    /// The name that the model sees, also for a tool that is no longer offered.
    pub fn visible_name(&self, name: &str) -> String {
        match self.to_visible.get(name) {
            Some(visible) => visible.clone(),
            None => format!("{PREFIX}{}", shortened(name, MAX_NAME - PREFIX.len(), is_name_char)),
        }
    }
}

/// The content of a result as MCP content; `None` if MCP or the program cannot represent it unchanged.
pub fn result_content(block: &Value) -> Option<Value> {
    let is_error = block["is_error"] == true;
    let parts = match &block["content"] {
        Value::Null => Vec::new(),
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(parts) => parts.iter().map(|part| result_part(part, is_error)).collect::<Option<_>>()?,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    // The program replaces an empty result by its own text, and writes one that is too large to a file.
    let is_representable = !parts.is_empty() && written_chars(&parts) <= MAX_RESULT_CHARS;
    is_representable.then_some(Value::Array(parts))
}

/// An upper bound for the size of the texts, however the program counts it.
fn written_chars(parts: &[Value]) -> usize {
    parts.iter().filter(|part| part["type"] == "text").map(|part| part.to_string().len()).sum()
}

fn result_part(part: &Value, is_error: bool) -> Option<Value> {
    let source = &part["source"];
    match part["type"].as_str()? {
        "text" => Some(json!({ "type": "text", "text": part["text"] })),
        // The program keeps only the texts of a failed result.
        "image" if source["type"] == "base64" && !is_error => {
            Some(json!({ "type": "image", "data": source["data"], "mimeType": source["media_type"] }))
        }
        _ => None,
    }
}

/// The schema, rewritten if it has a choice at its root: the program would drop the whole tool.
fn served_schema<'a>(tool: &str, schema: &'a Value, losses: &mut Losses) -> Cow<'a, Value> {
    if ["anyOf", "oneOf", "allOf"].iter().all(|choice| schema.get(choice).is_none()) {
        return Cow::Borrowed(schema);
    }
    Cow::Owned(for_host(tool, Some(&JsonText::from_value(schema)), losses).to_value())
}

/// A unique name that is short enough with the prefix.
fn bare_name(name: &str, used: &mut HashSet<String>) -> String {
    let mut bare = shortened(name, MAX_NAME - PREFIX.len(), is_name_char);
    while !used.insert(bare.clone()) {
        bare = shortened(&format!("{bare}."), MAX_NAME - PREFIX.len(), is_name_char);
    }
    bare
}

fn entry(bare: &str, description: &str, schema: &Value) -> Value {
    let (description, schema) = fit_description(description, schema);
    json!({
        "name": bare,
        "description": description,
        "inputSchema": schema,
        // The program then sends the calls of one message in parallel.
        "annotations": { "readOnlyHint": true },
        "_meta": { "anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": MAX_RESULT_CHARS },
    })
}

/// Moves the end of a long description into the schema's description, which the program does not truncate.
fn fit_description<'a>(description: &'a str, schema: &Value) -> (Cow<'a, str>, Value) {
    const CONTINUED: &str = " […continued in the description of the input]";
    // The program counts UTF-16 code units.
    if description.encode_utf16().count() <= MAX_DESCRIPTION {
        return (description.into(), schema.clone());
    }
    let mut units = 0;
    let room = MAX_DESCRIPTION - CONTINUED.encode_utf16().count();
    let fits = |(_, character): &(usize, char)| {
        units += character.len_utf16();
        units <= room
    };
    let end = description
        .char_indices()
        .take_while(fits)
        .last()
        .map_or(0, |(at, character)| at + character.len_utf8());
    let (first, rest) = description.split_at(end);
    let mut schema = schema.clone();
    if let Some(root) = schema.as_object_mut() {
        let own = root.get("description").and_then(Value::as_str);
        let joined = own.map_or_else(|| rest.to_owned(), |own| format!("{rest}\n\n{own}"));
        root.insert("description".to_owned(), Value::from(joined));
    }
    (format!("{first}{CONTINUED}").into(), schema)
}

fn is_name_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}
