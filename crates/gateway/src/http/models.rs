//! `GET /v1/models`, in the shape the caller's dialect expects.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Api, Caller, error};
use crate::service::Worker;

/// Both APIs require a date, and the gateway does not know when hosts released their models.
const UNKNOWN_DATE: &str = "1970-01-01T00:00:00Z";

/// The models this caller may use. Patterns are left out, because they name no model.
pub(super) async fn list(
    State(worker): State<Arc<Worker>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let names: Vec<&str> = worker.router.models().filter(|name| caller.may_use(name)).collect();
    let api = Api::of(&request);
    let models: Vec<Value> = names.iter().map(|name| model(api, name)).collect();
    reply(&match api {
        Api::Messages => {
            json!({ "data": models, "has_more": false, "first_id": names.first(), "last_id": names.last() })
        }
        Api::Chat | Api::Responses => json!({ "object": "list", "data": models }),
    })
}

/// One model, including one that only a pattern matches.
pub(super) async fn show(
    State(worker): State<Arc<Worker>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    match worker.router.find(&name).and_then(|_route| caller.check_model(&name)) {
        Ok(()) => reply(&model(Api::of(&request), &name)),
        Err(error) => super::refuse(&request, &error),
    }
}

fn model(api: Api, name: &str) -> Value {
    match api {
        Api::Messages => {
            json!({ "type": "model", "id": name, "display_name": name, "created_at": UNKNOWN_DATE })
        }
        Api::Chat | Api::Responses => {
            json!({ "id": name, "object": "model", "created": 0, "owned_by": "toolgate" })
        }
    }
}

fn reply(body: &impl Serialize) -> Response {
    // A `Value` always serialises: its keys are strings and its numbers are finite.
    error::json(serde_json::to_vec(body).unwrap_or_default().into())
}
