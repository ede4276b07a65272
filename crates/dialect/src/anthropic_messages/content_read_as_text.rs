//! Blocks that other dialects do not have and that can be said in text: search results, documents made of content blocks,
//! references to tools.
//! Other hosts receive their text; hosts of this dialect receive the original block.

use serde_json::Value;
use toolgate_model::{Extras, Fields, Part, Text};

use super::ID;

/// Marks a text whose extras are the original block.
pub(super) const WHOLE_BLOCK: &str = "whole_block";
/// Fields that the text repeats.
const IN_TEXT: &[&str] = &["type", "title", "context", "source", "content"];
/// The same for a document with an image, which its text leaves out.
const IN_TEXT_WITHOUT_IMAGES: &[&str] = &["type", "title", "context"];

/// Reads a `search_result`: its title, its source and its text. Returns the fields if it has none of them.
pub(super) fn read_search_result(fields: Fields) -> Result<Part, Fields> {
    let heading = [text_field(&fields, "title"), text_field(&fields, "source")];
    let content = flatten(fields.get("content"));
    to_part("search_result", heading, content, fields)
}

/// Reads a `document` whose source is content: its title, its context and its text. Returns the fields of any other.
pub(super) fn read_document(fields: Fields) -> Result<Part, Fields> {
    let source =
        fields.get("source").filter(|source| source.get("type").is_some_and(|kind| kind == "content"));
    let Some(source) = source else { return Err(fields) };
    let content = flatten(source.get("content"));
    let heading = [text_field(&fields, "title"), text_field(&fields, "context")];
    to_part("document", heading, content, fields)
}

/// Reads a `tool_reference`, the result of a client's tool search. Returns the fields if it names no tool.
pub(super) fn read_tool_reference(mut fields: Fields) -> Result<Part, Fields> {
    let Some(name) = text_field(&fields, "tool_name") else { return Err(fields) };
    fields.insert("type".to_owned(), Value::from("tool_reference"));
    let extras = Extras::marked_by(ID, fields, vec![WHOLE_BLOCK]).envelope_fields(&["type", "tool_name"]);
    Ok(Part::Text(Text { text: format!("The tool {name} is now available."), extras }))
}

/// The text of content blocks.
struct Flat {
    text: String,
    has_other_blocks: bool,
}

fn flatten(content: Option<&Value>) -> Flat {
    match content {
        Some(Value::String(text)) => Flat { text: text.clone(), has_other_blocks: false },
        Some(Value::Array(blocks)) => {
            let texts: Vec<&str> =
                blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
            Flat { text: texts.join("\n\n"), has_other_blocks: texts.len() < blocks.len() }
        }
        _ => Flat { text: String::new(), has_other_blocks: content.is_some() },
    }
}

fn text_field(fields: &Fields, name: &str) -> Option<String> {
    fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn to_part(
    kind: &str,
    heading: [Option<String>; 2],
    content: Flat,
    mut fields: Fields,
) -> Result<Part, Fields> {
    let heading = heading.into_iter().flatten().collect::<Vec<_>>().join("\n");
    let pieces: Vec<String> = [heading, content.text].into_iter().filter(|piece| !piece.is_empty()).collect();
    if pieces.is_empty() {
        return Err(fields);
    }
    fields.retain(|_, value| !value.is_null());
    fields.insert("type".to_owned(), Value::from(kind));
    let in_text = if content.has_other_blocks { IN_TEXT_WITHOUT_IMAGES } else { IN_TEXT };
    let extras = Extras::marked_by(ID, fields, vec![WHOLE_BLOCK]).envelope_fields(in_text);
    Ok(Part::Text(Text { text: pieces.join("\n\n"), extras }))
}
