//! The client's tools as MCP tools, and the mapping of their names in both directions without collisions (T24).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use toolgate_model::pairing::shortened;
use toolgate_model::{JsonText, Losses, Translated};

use super::PREFIX;
use crate::tool_schema::for_host;

/// The maximum length of a tool name, prefix included.
const MAX_NAME_CHARS: usize = 64;
/// The program truncates longer descriptions.
const MAX_DESCRIPTION: usize = 2048;
/// The largest limit that a tool can declare. The program writes larger results to a file instead of the prompt.
const MAX_RESULT_CHARS: usize = 500_000;

/// The tools of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentTools {
    served: Vec<ServedTool>,
    /// Names that the model may use without the prefix.
    aliases: HashSet<String>,
    /// From the name that the model sees to the client's name.
    to_client: HashMap<String, String>,
    to_visible: HashMap<String, String>,
    /// Built-in tools that the request lists. They run inside the program (A4).
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
    /// Takes the `tools` of a Messages request. A tool whose name is in `enabled` is the built-in tool that the
    /// operator enabled; every other tool is the client's (A4).
    pub fn new(tools: &[Value], enabled: &[String]) -> Translated<Self> {
        let mut losses = Losses::default();
        let mut known = Self::default();
        let mut used = HashSet::new();
        for tool in tools {
            let Some(name) = tool["name"].as_str() else {
                losses.add("tools[]", "a tool without a name cannot be offered to the agent");
                continue;
            };
            if enabled.iter().any(|builtin| builtin == name) {
                known.builtins.push(name.to_owned());
                continue;
            }
            let Some(schema) = tool.get("input_schema") else {
                losses.add(format!("tools[{name}]"), "a provider tool, which the agent cannot run");
                continue;
            };
            if tool.get("strict").is_some_and(|strict| strict == true) {
                losses.add(format!("tools[{name}].strict"), "the agent does not enforce schemas");
            }
            let schema = without_root_choice(name, schema, &mut losses);
            let bare = bare_name(name, &mut used);
            let visible = format!("{PREFIX}{bare}");
            let description = tool["description"].as_str().unwrap_or_default();
            known.served.push(ServedTool { entry: entry(&bare, description, &schema), name: bare.clone() });
            known.to_client.insert(visible.clone(), name.to_owned());
            known.to_visible.insert(name.to_owned(), visible);
            if bare == name {
                known.to_client.entry(bare.clone()).or_insert_with(|| name.to_owned());
                known.aliases.insert(bare);
            }
        }
        // The same set of tools always has the same order, so that the prompt cache hits (M4).
        known.served.sort_by(|a, b| a.name.cmp(&b.name));
        Translated { value: known, losses }
    }

    /// The tools to serve, in a stable order.
    pub fn served(&self) -> &[ServedTool] {
        &self.served
    }

    /// Names that the model may use without the prefix, sorted.
    pub fn aliases(&self) -> Vec<String> {
        let mut names: Vec<String> = self.aliases.iter().cloned().collect();
        names.sort();
        names
    }

    /// The client's name of a called tool; `None` for built-in tools.
    pub fn client_name(&self, called: &str) -> Option<&str> {
        self.to_client.get(called).map(String::as_str)
    }

    /// The name that the model sees, also for a tool that is no longer offered.
    pub fn visible_name(&self, name: &str) -> String {
        match self.to_visible.get(name) {
            Some(visible) => visible.clone(),
            None => format!("{PREFIX}{}", shortened(name, MAX_NAME_CHARS - PREFIX.len(), is_name_char)),
        }
    }
}

/// The content of a `tool_result` block as MCP content; `None` if MCP cannot represent it exactly.
pub fn result_content(block: &Value) -> Option<Value> {
    let is_error = block["is_error"] == true;
    let parts = match &block["content"] {
        Value::Null => Vec::new(),
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(parts) => parts.iter().map(|part| result_part(part, is_error)).collect::<Option<_>>()?,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    // The program replaces an empty result by a text of its own, and writes one that is too large to a file.
    let is_representable = !parts.is_empty() && written_chars(&parts) <= MAX_RESULT_CHARS;
    is_representable.then_some(Value::Array(parts))
}

/// An upper bound of the texts' size, however the program counts it.
fn written_chars(parts: &[Value]) -> usize {
    parts.iter().filter(|part| part["type"] == "text").map(|part| part.to_string().len()).sum()
}

fn result_part(part: &Value, is_error: bool) -> Option<Value> {
    let source = &part["source"];
    match part["type"].as_str()? {
        "text" => Some(json!({ "type": "text", "text": part["text"] })),
        // The program drops everything but text from an error.
        "image" if source["type"] == "base64" && !is_error => {
            Some(json!({ "type": "image", "data": source["data"], "mimeType": source["media_type"] }))
        }
        _ => None,
    }
}

/// The schema, unchanged unless it has a choice at its root: the program would drop such a tool.
fn without_root_choice<'a>(tool: &str, schema: &'a Value, losses: &mut Losses) -> Cow<'a, Value> {
    if ["anyOf", "oneOf", "allOf"].iter().all(|choice| schema.get(choice).is_none()) {
        return Cow::Borrowed(schema);
    }
    Cow::Owned(for_host(tool, Some(&JsonText::from_value(schema)), losses).to_value())
}

/// The name without the prefix, short enough with it; different names stay different.
fn bare_name(name: &str, used: &mut HashSet<String>) -> String {
    let mut bare = shortened(name, MAX_NAME_CHARS - PREFIX.len(), is_name_char);
    while !used.insert(bare.clone()) {
        bare = shortened(&format!("{bare}."), MAX_NAME_CHARS - PREFIX.len(), is_name_char);
    }
    bare
}

fn entry(bare: &str, description: &str, schema: &Value) -> Value {
    let (description, schema) = split_long_description(description, schema);
    json!({
        "name": bare,
        "description": description,
        "inputSchema": schema,
        // Makes the program send the calls of one message together instead of one by one.
        "annotations": { "readOnlyHint": true },
        "_meta": { "anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": MAX_RESULT_CHARS },
    })
}

/// Moves the rest of a long description into the schema's description, which the program does not truncate.
fn split_long_description<'a>(description: &'a str, schema: &Value) -> (Cow<'a, str>, Value) {
    const CONTINUED: &str = " […continued in the description of the input schema]";
    // The program counts UTF-16 code units.
    if description.encode_utf16().count() <= MAX_DESCRIPTION {
        return (description.into(), schema.clone());
    }
    let mut units = 0;
    let room = MAX_DESCRIPTION - CONTINUED.encode_utf16().count();
    let fits = |(_, ch): &(usize, char)| {
        units += ch.len_utf16();
        units <= room
    };
    let end = description.char_indices().take_while(fits).last().map_or(0, |(at, ch)| at + ch.len_utf8());
    let (first, rest) = description.split_at(end);
    let mut schema = schema.clone();
    if let Some(root) = schema.as_object_mut() {
        let said = root.get("description").and_then(Value::as_str);
        let joined = said.map_or_else(|| rest.to_owned(), |said| format!("{rest}\n\n{said}"));
        root.insert("description".to_owned(), Value::from(joined));
    }
    (format!("{first}{CONTINUED}").into(), schema)
}

fn is_name_char(ch: char) -> bool {
    ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-')
}
