//! References to items: a request may name an item of an earlier response by its id instead of repeating it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use toolgate_model::{
    AssistantMessage, Block, ErrorKind, Extras, Fields, Losses, Message, Reasoning, Reply, TurnError,
    TurnRequest,
};

use super::content_read;
use super::content_write::{self, Recipient};
use super::stored::append;
use super::wire::{self, Item};

/// The type of a reference. It is optional in requests.
pub(super) const ITEM_REFERENCE: &str = "item_reference";

/// An item of a reply, as a later request may refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyItem {
    /// The id that the client got.
    pub id: String,
    /// The item as JSON.
    pub json: String,
}

/// The ids of the items that the request refers to.
pub fn item_references(request: &TurnRequest) -> BTreeSet<&str> {
    let blocks = request.messages.iter().filter_map(|message| match message {
        Message::Assistant(message) => Some(&message.content),
        Message::System(_) | Message::User(_) | Message::ToolResults(_) => None,
    });
    blocks.flatten().filter_map(reference).collect()
}

/// Replaces each reference by its item. References to other items stay.
pub fn resolve_references(request: &mut TurnRequest, items: &BTreeMap<&str, &str>) -> Result<(), TurnError> {
    let mut messages = Vec::with_capacity(request.messages.len());
    for message in std::mem::take(&mut request.messages) {
        match message {
            Message::Assistant(message) => {
                for block in message.content {
                    let item = reference(&block).and_then(|id| items.get(id));
                    let resolved = match item {
                        Some(item) => content_read::conversation(vec![read_item(item)?]).messages,
                        None => vec![assistant(block)],
                    };
                    append(&mut messages, resolved);
                }
            }
            other @ (Message::System(_) | Message::User(_) | Message::ToolResults(_)) => {
                append(&mut messages, vec![other]);
            }
        }
    }
    request.messages = messages;
    Ok(())
}

/// The items of a reply with the ids in `written`, which is the response that the client got. A seal is stored even if
/// the client did not ask for it: the client cannot send it back, so it must come from here.
pub fn reply_items(reply: &Reply, written: &[u8]) -> Vec<ReplyItem> {
    #[derive(Deserialize)]
    struct Output {
        #[serde(default)]
        output: Vec<Fields>,
    }
    let Ok(Output { output }) = serde_json::from_slice(written) else { return Vec::new() };
    let mut thoughts = reply.blocks.iter().filter_map(thought);
    let mut items = Vec::new();
    for mut item in output {
        if item.get("type").is_some_and(|kind| kind == "reasoning")
            && let Some(thought) = thoughts.next()
            && item.get("encrypted_content").is_none_or(Value::is_null)
        {
            item.extend(seal_of(thought).map(|seal| ("encrypted_content".to_owned(), seal)));
        }
        let Some(id) = item.get("id").and_then(Value::as_str).map(str::to_owned) else { continue };
        items.push(ReplyItem { id, json: Value::Object(item).to_string() });
    }
    items
}

fn thought(block: &Block) -> Option<&Reasoning> {
    match block {
        Block::Reasoning(reasoning) => Some(reasoning),
        Block::Text(_) | Block::Refusal(_) | Block::ToolCall(_) | Block::Opaque(_) => None,
    }
}

/// The seal as clients get it.
fn seal_of(thought: &Reasoning) -> Option<Value> {
    let item = content_write::reasoning_item(thought, Recipient::Client, &mut Losses::default());
    item?.shift_remove("encrypted_content")
}

fn reference(block: &Block) -> Option<&str> {
    match block {
        Block::Opaque(opaque) if opaque.kind == ITEM_REFERENCE => {
            Some(opaque.fields.get("id").and_then(Value::as_str).unwrap_or_default())
        }
        Block::Opaque(_) | Block::Text(_) | Block::Refusal(_) | Block::Reasoning(_) | Block::ToolCall(_) => {
            None
        }
    }
}

fn read_item(json: &str) -> Result<Item, TurnError> {
    wire::read(json.as_bytes()).map_err(|error| {
        TurnError::new(
            ErrorKind::Internal,
            "a stored item cannot be read: send the item itself instead of a reference to it",
        )
        .caused_by(error)
    })
}

fn assistant(block: Block) -> Message {
    Message::Assistant(AssistantMessage { content: vec![block], extras: Extras::NONE })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_model::{Seal, ToolCall};

    use super::*;
    use crate::ClientDialect;
    use crate::openai_responses::DIALECT;

    fn request(input: &Value) -> TurnRequest {
        let body = json!({ "model": "m", "input": input }).to_string();
        DIALECT.read_unpaired(body.as_bytes()).expect("a valid request").value
    }

    #[test]
    fn items_take_the_place_of_their_references_and_others_stay() {
        let stored = [
            ("msg_1", json!({ "type": "message", "id": "msg_1", "role": "user", "content": "hi" })),
            (
                "fc_1",
                json!({ "type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}" }),
            ),
            (
                "fco_1",
                json!({ "type": "function_call_output", "id": "fco_1", "call_id": "c", "output": "4" }),
            ),
        ];
        let reference = |id: &str| json!({ "type": "item_reference", "id": id });
        let mut named = request(&json!([
            reference("msg_1"),
            reference("fc_1"),
            reference("fco_1"),
            reference("elsewhere"),
            { "role": "user", "content": "go on" },
        ]));
        let ids = ["elsewhere", "fc_1", "fco_1", "msg_1"];
        assert_eq!(item_references(&named).into_iter().collect::<Vec<_>>(), ids);
        let texts = stored.each_ref().map(|(id, item)| (*id, item.to_string()));
        let items = texts.iter().map(|(id, text)| (*id, text.as_str())).collect();
        resolve_references(&mut named, &items).expect("valid items");
        let [(_, message), (_, call), (_, output)] = stored;
        let whole =
            json!([message, call, output, reference("elsewhere"), { "role": "user", "content": "go on" }]);
        assert_eq!(named.messages, request(&whole).messages);
        assert_eq!(item_references(&named).into_iter().collect::<Vec<_>>(), ["elsewhere"]);
    }

    #[test]
    fn a_stored_thought_has_its_seal_even_if_the_client_did_not_get_it() {
        let seal =
            Seal { owner: "elsewhere".into(), kind: "signature".into(), id: None, data: "proof".into() };
        let thought = |seal| Block::Reasoning(Reasoning { seal, ..Reasoning::default() });
        let call = ToolCall {
            id: "c".into(),
            name: "f".into(),
            kind: toolgate_model::CallKind::Function,
            arguments: "{}".into(),
            extras: Extras::NONE,
        };
        let blocks = vec![thought(None), Block::ToolCall(call), thought(Some(seal.clone()))];
        let reply = Reply { blocks, ..Reply::default() };
        let written = json!({ "output": [
            { "type": "reasoning", "id": "rs_0", "summary": [] },
            { "type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}" },
            { "type": "reasoning", "id": "rs_2", "summary": [] },
            { "type": "without an id" },
        ] });
        let items = reply_items(&reply, written.to_string().as_bytes());
        assert_eq!(items.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(), ["rs_0", "fc_1", "rs_2"]);
        let mut named = request(&json!([{ "id": "rs_2" }]));
        let stored = [("rs_2", items[2].json.as_str())].into_iter().collect();
        resolve_references(&mut named, &stored).expect("valid items");
        let [Message::Assistant(assistant)] = named.messages.as_slice() else { panic!("{named:?}") };
        assert!(
            matches!(&assistant.content[..], [Block::Reasoning(thought)] if thought.seal == Some(seal)),
            "{assistant:?}"
        );
    }

    #[test]
    fn a_reference_without_an_id_names_nothing_that_exists() {
        assert_eq!(
            item_references(&request(&json!([{ "type": "item_reference" }]))).into_iter().collect::<Vec<_>>(),
            [""]
        );
    }
}
