//! `GET` and `DELETE /v1/responses/{id}`, and `GET /v1/responses/{id}/input_items`: what the store keeps for the caller.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use http::Uri;
use serde_json::{Value, json};
use toolgate_dialect::openai_responses::ReplyItem;
use toolgate_model::TurnError;
use toolgate_state::{Deletion, ResponseId};

use super::{Api, Caller, error, respond};
use crate::service::Worker;
use crate::turn::{StoredReply, no_such_response, store_failed};

pub(super) async fn show(
    State(worker): State<Arc<Worker>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    match find(&worker, &caller, &id).await {
        Ok(kept) => error::json(kept.response.get().to_owned().into()),
        Err(error) => respond(Api::Responses, &error),
    }
}

pub(super) async fn input_items(
    State(worker): State<Arc<Worker>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    uri: Uri,
) -> Response {
    let listed = async {
        let paging = Paging::read(uri.query().unwrap_or_default())?;
        Ok(page(find(&worker, &caller, &id).await?.input_items(&id), &paging))
    };
    match listed.await {
        Ok(page) => error::json(page.into()),
        Err(error) => respond(Api::Responses, &error),
    }
}

/// Which input items are listed.
struct Paging<'q> {
    after: Option<&'q str>,
    order: Order,
    limit: usize,
}

#[derive(PartialEq, Eq)]
enum Order {
    Ascending,
    /// The newest first: this API's default.
    Descending,
}

impl<'q> Paging<'q> {
    /// Reads a query. Ids and numbers need no escapes; other fields (`include`) do not matter here.
    fn read(query: &'q str) -> Result<Self, TurnError> {
        const DEFAULT_ITEMS: usize = 20;
        const MAX_ITEMS: usize = 100;
        let mut paging = Self { after: None, order: Order::Descending, limit: DEFAULT_ITEMS };
        for (name, value) in query.split('&').filter_map(|field| field.split_once('=')) {
            match (name, value) {
                ("after", id) => paging.after = Some(id),
                ("order", "asc") => paging.order = Order::Ascending,
                ("order", "desc") => paging.order = Order::Descending,
                ("order", _) => {
                    return Err(TurnError::invalid_param("order", "order: use `asc` or `desc`"));
                }
                ("limit", number) => {
                    let limit = number.parse().ok().filter(|limit| (1..=MAX_ITEMS).contains(limit));
                    let wrong = || {
                        TurnError::invalid_param(
                            "limit",
                            format!("limit: use a number from 1 to {MAX_ITEMS}"),
                        )
                    };
                    paging.limit = limit.ok_or_else(wrong)?;
                }
                _ => {}
            }
        }
        Ok(paging)
    }
}

/// One page of the items.
fn page(mut items: Vec<ReplyItem>, paging: &Paging<'_>) -> String {
    if paging.order == Order::Descending {
        items.reverse();
    }
    let after = paging.after.and_then(|after| items.iter().position(|item| item.id == after));
    items.drain(..after.map_or(0, |index| index + 1));
    let has_more = items.len() > paging.limit;
    items.truncate(paging.limit);
    let data: Vec<Value> = items.iter().filter_map(|item| serde_json::from_str(&item.json).ok()).collect();
    let id = |item: Option<&ReplyItem>| item.map(|item| item.id.clone());
    let (first_id, last_id) = (id(items.first()), id(items.last()));
    json!({ "object": "list", "data": data, "first_id": first_id, "last_id": last_id, "has_more": has_more })
        .to_string()
}

async fn find(worker: &Worker, caller: &Caller, id: &str) -> Result<StoredReply, TurnError> {
    let found = worker.shared.store.response(caller.scope(), &ResponseId::new(id)).await;
    match found.map_err(store_failed)? {
        Some(stored) => StoredReply::read(&stored.body),
        None => Err(no_such_response(id)),
    }
}

pub(super) async fn delete(
    State(worker): State<Arc<Worker>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let id = ResponseId::new(id);
    let outcome = worker.shared.store.delete_response(caller.scope(), &id).await;
    match outcome {
        Ok(Deletion::Deleted) => error::json(
            json!({ "id": id.as_str(), "object": "response", "deleted": true }).to_string().into(),
        ),
        Ok(Deletion::NotFound) => respond(Api::Responses, &no_such_response(id.as_str())),
        Err(error) => respond(Api::Responses, &store_failed(error)),
    }
}
