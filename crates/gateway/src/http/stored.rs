//! `GET` and `DELETE /v1/responses/{id}`: what the store keeps for the caller.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::json;
use toolgate_state::{Deletion, ResponseId};

use super::{Api, Caller, error, respond};
use crate::service::Worker;
use crate::turn::{StoredReply, no_such_response, store_failed};

pub(super) async fn show(
    State(worker): State<Arc<Worker>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    let id = ResponseId::new(id);
    let found = worker.shared.store.response(caller.scope(), &id).await;
    let kept = match found {
        Ok(Some(stored)) => StoredReply::read(&stored.body),
        Ok(None) => Err(no_such_response(id.as_str())),
        Err(error) => Err(store_failed(error)),
    };
    match kept {
        Ok(kept) => error::json(kept.response.get().to_owned().into()),
        Err(error) => respond(Api::Responses, &error),
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
