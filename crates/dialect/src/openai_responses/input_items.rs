//! The input items of a stored response. Clients send most of them without an id; the API lists them with one, and a later
//! request may refer to it.

use serde_json::{Value, json};
use toolgate_model::{Fields, Losses, Reply};

use super::content_write;
use super::references::ReplyItem;

/// Ends the ids of input items, before their index, so that they differ from those of output items.
const MARK: &str = "_in";

/// How many items of a remembered conversation come before the reply.
pub fn input_count(conversation: &str, reply: &Reply) -> usize {
    let all = read(conversation).len();
    let output = content_write::output(&reply.blocks, "", 0, &mut Losses::default());
    all.saturating_sub(output.len())
}

/// The first `count` items of a remembered conversation, each with an id.
pub fn input_items(conversation: &str, count: usize, response_id: &str) -> Vec<ReplyItem> {
    let items = read(conversation).into_iter().take(count).enumerate();
    items.map(|(index, item)| with_id(item, response_id, index)).collect()
}

/// The responses, one of which may have this id for an input item, and the item's index there.
pub fn input_item_place(id: &str) -> Option<([String; 2], usize)> {
    let (response, index) = id.rsplit_once(MARK)?;
    let (_, response) = response.split_once('_')?;
    Some(([format!("{RESPONSE}{response}"), response.to_owned()], index.parse().ok()?))
}

/// The prefix of most responses' ids. It is not repeated in the ids of items.
const RESPONSE: &str = "resp_";

fn read(conversation: &str) -> Vec<Fields> {
    serde_json::from_str(conversation).unwrap_or_default()
}

fn with_id(item: Fields, response_id: &str, index: usize) -> ReplyItem {
    let prefix = match item.get("type").and_then(Value::as_str) {
        Some("message") | None => "msg",
        Some("function_call") => "fc",
        Some("function_call_output") => "fco",
        Some("custom_tool_call") => "ctc",
        Some("custom_tool_call_output") => "ctco",
        Some("reasoning") => "rs",
        Some(_) => "item",
    };
    let own = item.get("id").and_then(Value::as_str).map(str::to_owned);
    let response = response_id.strip_prefix(RESPONSE).unwrap_or(response_id);
    let id = own.unwrap_or_else(|| format!("{prefix}_{response}{MARK}{index}"));
    let mut fields = Fields::new();
    fields.insert("id".to_owned(), Value::from(id.as_str()));
    fields.extend(item.into_iter().filter(|(name, _)| name != "id"));
    // In requests a text may stand for a list of parts; in lists it does not.
    if let Some(Value::String(text)) = fields.get("content") {
        let parts = json!([{ "type": "input_text", "text": text }]);
        fields.insert("content".to_owned(), parts);
    }
    ReplyItem { id, json: Value::Object(fields).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_lead_back_to_their_response_and_index() {
        let conversation = json!([
            { "type": "message", "role": "user", "content": "hi" },
            { "type": "function_call", "id": "fc_own", "call_id": "c", "name": "f", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "c", "output": "4" },
            { "type": "message", "role": "assistant", "content": [] },
        ]);
        for response in ["resp_1_a", "bare"] {
            let items = input_items(&conversation.to_string(), 3, response);
            let name = response.trim_start_matches(RESPONSE);
            let ids = [format!("msg_{name}_in0"), "fc_own".to_owned(), format!("fco_{name}_in2")];
            assert_eq!(items.iter().map(|item| item.id.clone()).collect::<Vec<_>>(), ids);
            let (responses, index) = input_item_place(&ids[2]).expect("a generated id");
            assert!(responses.iter().any(|id| id == response) && index == 2, "{responses:?}");
        }
        for id in ["msg_1", "msg_1_0", "_in1", "msg_1_inx"] {
            assert_eq!(input_item_place(id), None, "{id}");
        }
    }
}
