//! A client's tools as the program serves them, and their names both ways without collisions (T24).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use toolgate_model::pairing::shortened;
use toolgate_model::{JsonText, Losses, Translated};

use super::PREFIX;
use crate::tool_schema::for_host;

/// The longest name a model's host takes, our prefix included.
const MAX_NAME: usize = 64;
/// The program cuts longer descriptions.
const MAX_DESCRIPTION: usize = 2048;
/// The most the program lets a tool declare; larger results would go into a file and not to the model.
const MAX_RESULT_CHARS: usize = 500_000;

/// The tools of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentTools {
    served: Vec<ServedTool>,
    /// Names a model may say without our prefix.
    aliases: HashSet<String>,
    /// From the name in the model's sight to the request's.
    to_client: HashMap<String, String>,
    to_visible: HashMap<String, String>,
    /// Built-in tools that the request lists: they run inside the program (A4).
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
    /// Takes the `tools` of a Messages request. `enabled` are the built-in tools the operator switched on: a tool of
    /// that name is the built-in one, every other tool is the client's (A4).
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
                losses.add(format!("tools[{name}]"), "a provider's own tool: the agent cannot run it");
                continue;
            };
            if tool.get("strict").is_some_and(|strict| strict == true) {
                losses.add(format!("tools[{name}].strict"), "the agent does not hold calls to their schema");
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
        // One order for one set of tools, so that the host's prompt cache is met (M4).
        known.served.sort_by(|a, b| a.name.cmp(&b.name));
        Translated { value: known, losses }
    }

    /// The tools to serve, in a stable order.
    pub fn served(&self) -> &[ServedTool] {
        &self.served
    }

    /// Names that a model may say without our prefix.
    pub fn aliases(&self) -> Vec<String> {
        let mut names: Vec<String> = self.aliases.iter().cloned().collect();
        names.sort();
        names
    }

    /// The request's own name for a tool that the model calls; `None` for the program's tools.
    pub fn client_name(&self, called: &str) -> Option<&str> {
        self.to_client.get(called).map(String::as_str)
    }

    /// The name in the model's sight, also for a tool that is no longer offered.
    pub fn visible_name(&self, name: &str) -> String {
        match self.to_visible.get(name) {
            Some(visible) => visible.clone(),
            None => format!("{PREFIX}{}", shortened(name, MAX_NAME - PREFIX.len(), is_name_letter)),
        }
    }
}

/// A result's content blocks as a tool server says them; `None` where it cannot say them as they are.
pub fn result_content(block: &Value) -> Option<Value> {
    let is_error = block["is_error"] == true;
    let parts = match &block["content"] {
        Value::Null => Vec::new(),
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        Value::Array(parts) => parts.iter().map(|part| result_part(part, is_error)).collect::<Option<_>>()?,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    // The program writes words of its own where a result is empty, and puts one that is too large into a file.
    let is_representable = !parts.is_empty() && written_chars(&parts) <= MAX_RESULT_CHARS;
    is_representable.then_some(Value::Array(parts))
}

/// How large the texts are at most, however the program counts them.
fn written_chars(parts: &[Value]) -> usize {
    parts.iter().filter(|part| part["type"] == "text").map(|part| part.to_string().len()).sum()
}

fn result_part(part: &Value, is_error: bool) -> Option<Value> {
    let source = &part["source"];
    match part["type"].as_str()? {
        "text" => Some(json!({ "type": "text", "text": part["text"] })),
        // The program keeps only the texts of a failure.
        "image" if source["type"] == "base64" && !is_error => {
            Some(json!({ "type": "image", "data": source["data"], "mimeType": source["media_type"] }))
        }
        _ => None,
    }
}

/// The schema as it is, but for one with a choice at its root: the program would leave out the whole tool.
fn without_root_choice<'a>(tool: &str, schema: &'a Value, losses: &mut Losses) -> Cow<'a, Value> {
    if ["anyOf", "oneOf", "allOf"].iter().all(|choice| schema.get(choice).is_none()) {
        return Cow::Borrowed(schema);
    }
    Cow::Owned(for_host(tool, Some(&JsonText::from_value(schema)), losses).to_value())
}

/// The name without our prefix, short enough for both; two names stay two.
fn bare_name(name: &str, used: &mut HashSet<String>) -> String {
    let mut bare = shortened(name, MAX_NAME - PREFIX.len(), is_name_letter);
    while !used.insert(bare.clone()) {
        bare = shortened(&format!("{bare}."), MAX_NAME - PREFIX.len(), is_name_letter);
    }
    bare
}

fn entry(bare: &str, description: &str, schema: &Value) -> Value {
    let (description, schema) = split_long_description(description, schema);
    json!({
        "name": bare,
        "description": description,
        "inputSchema": schema,
        // Calls of one message then reach us together, not one by one.
        "annotations": { "readOnlyHint": true },
        "_meta": { "anthropic/alwaysLoad": true, "anthropic/maxResultSizeChars": MAX_RESULT_CHARS },
    })
}

/// What is too long for the description goes on in the schema's, which the program leaves alone.
fn split_long_description<'a>(description: &'a str, schema: &Value) -> (Cow<'a, str>, Value) {
    const CONTINUED: &str = " […goes on in the description of the input]";
    // The program counts UTF-16 units; no character has more bytes than four times those, nor fewer.
    if description.encode_utf16().count() <= MAX_DESCRIPTION {
        return (description.into(), schema.clone());
    }
    let mut units = 0;
    let room = MAX_DESCRIPTION - CONTINUED.encode_utf16().count();
    let fits = |(_, letter): &(usize, char)| {
        units += letter.len_utf16();
        units <= room
    };
    let end =
        description.char_indices().take_while(fits).last().map_or(0, |(at, letter)| at + letter.len_utf8());
    let (first, rest) = description.split_at(end);
    let mut schema = schema.clone();
    if let Some(root) = schema.as_object_mut() {
        let said = root.get("description").and_then(Value::as_str);
        let joined = said.map_or_else(|| rest.to_owned(), |said| format!("{rest}\n\n{said}"));
        root.insert("description".to_owned(), Value::from(joined));
    }
    (format!("{first}{CONTINUED}").into(), schema)
}

fn is_name_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}
