//! Items of stored replies. A request may name one by its id instead of repeating it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolgate_backend::Route;
use toolgate_dialect::openai_responses;
use toolgate_model::{ErrorKind, Reply, ReplyId, TurnError};
use toolgate_state::{ItemId, StoredItem};

use super::complete::Completed;
use super::stored_reply::{self, store_failed};
use crate::http::Caller;
use crate::service::Worker;

/// The status of OpenAI's own answer to an unknown id.
const NOT_FOUND: u16 = 404;

/// Who issued the id of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum IdIssuer {
    /// The host of the upstream with this name, whose reply was relayed: it knows the item.
    Host(String),
    /// The gateway: no host knows the item.
    Gateway,
}

/// What the store holds for one item.
#[derive(Serialize, Deserialize)]
struct ItemBody {
    id_issuer: IdIssuer,
    item: Box<RawValue>,
}

/// The items of a reply, for the store.
pub(super) fn of_reply(reply: &Reply, written: &[u8], id_issuer: &IdIssuer) -> Vec<StoredItem> {
    let items = openai_responses::reply_items(reply, written).into_iter();
    let stored = items.filter_map(|item| {
        let body = ItemBody { id_issuer: id_issuer.clone(), item: RawValue::from_string(item.json).ok()? };
        Some(StoredItem { id: ItemId::new(item.id), body: serde_json::to_string(&body).ok()? })
    });
    stored.collect()
}

/// Puts the stored items in place of the references to them.
pub(super) async fn resolve(
    worker: &Worker,
    caller: &Caller,
    route: &Route,
    completed: &mut Completed,
) -> Result<(), TurnError> {
    let named: Vec<String> =
        openai_responses::item_references(&completed.request).into_iter().map(str::to_owned).collect();
    let ids = named.iter().map(|id| ItemId::new(id.as_str())).collect();
    let stored = worker.shared.store.response_items(caller.scope(), &ids).await.map_err(store_failed)?;
    let found = stored.iter().map(|item| Ok((item.id.as_str(), read(item)?)));
    let mut found: HashMap<&str, ItemBody> = found.collect::<Result<_, TurnError>>()?;
    for id in &named {
        if found.contains_key(id.as_str()) {
            continue;
        }
        match input_item(worker, caller, id).await? {
            Some(item) => {
                found.insert(id, ItemBody { id_issuer: IdIssuer::Gateway, item });
            }
            None => completed.missing = Some(no_such_item(id)),
        }
    }
    let items = found.iter().map(|(id, body)| (*id, body.item.get())).collect();
    openai_responses::resolve_references(&mut completed.request, &items)?;
    // The host that issued an id has the item, and gets the client's bytes.
    completed.is_in_body = found.values().all(|body| match &body.id_issuer {
        IdIssuer::Host(upstream) => route.goes_only_to(upstream),
        IdIssuer::Gateway => false,
    });
    Ok(())
}

/// The input item with this id, which the gateway issued when it listed the input of a stored response.
async fn input_item(worker: &Worker, caller: &Caller, id: &str) -> Result<Option<Box<RawValue>>, TurnError> {
    let Some((responses, index)) = openai_responses::input_item_place(id) else { return Ok(None) };
    for response in responses {
        if let Some(stored) = stored_reply::find(worker, caller, &ReplyId::new(response.as_str())).await? {
            let item = stored.input_items(&response).into_iter().nth(index).filter(|item| item.id == id);
            return Ok(item.and_then(|item| RawValue::from_string(item.json).ok()));
        }
    }
    Ok(None)
}

fn read(item: &StoredItem) -> Result<ItemBody, TurnError> {
    serde_json::from_str(&item.body).map_err(|error| {
        TurnError::new(
            ErrorKind::Internal,
            "reading a stored item: it is damaged; send the item itself instead of a reference to it",
        )
        .caused_by(error)
    })
}

/// The id names nothing this caller may see. OpenAI answers in the same way.
fn no_such_item(id: &str) -> TurnError {
    const SHOWN_CHARS: usize = 100;
    let shown: String = id.chars().take(SHOWN_CHARS).collect();
    let mut error = TurnError::invalid_param(
        "input",
        format!(
            "Item with id '{shown}' not found: no stored response has it. Send the item itself instead of a reference, \
             and do not set `store` to false if you want to refer to items later."
        ),
    );
    error.status = Some(NOT_FOUND);
    error
}
