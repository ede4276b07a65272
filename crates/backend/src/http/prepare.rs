//! The body for a host: the client's own bytes where they will do, else the request written in the host's dialect.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use toolgate_dialect::UpstreamDialect;
use toolgate_model::{Delivery, Losses, TurnError};
use uuid::Uuid;

use super::calls::ClientCalls;
use super::splice::replace_model;
use crate::turn::Turn;

/// A request ready to be sent, as often as it takes.
pub(super) struct Prepared {
    pub(super) id: Uuid,
    pub(super) delivery: Delivery,
    pub(super) body: Bytes,
    pub(super) losses: Losses,
    pub(super) mode: Mode,
    /// The client's, where they mean something to the host.
    headers: Option<Arc<[(HeaderName, HeaderValue)]>>,
}

impl Prepared {
    pub(super) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        self.headers.as_deref().unwrap_or_default()
    }

    pub(super) fn is_stream(&self) -> bool {
        matches!(self.delivery, Delivery::Stream(_))
    }
}

/// How the reply is to be treated.
pub(super) enum Mode {
    /// The client speaks the host's dialect and sees its bytes.
    Relay,
    /// The reply is read; calls get their client's form back. In a box, for turns that need none.
    Translate(Box<ClientCalls>),
}

impl Mode {
    pub(super) fn calls(&self) -> ClientCalls {
        match self {
            Self::Relay => ClientCalls::default(),
            Self::Translate(calls) => ClientCalls::clone(calls),
        }
    }
}

pub(super) fn prepare(dialect: &dyn UpstreamDialect, turn: &Turn) -> Result<Prepared, TurnError> {
    let (id, delivery) = (turn.id, turn.request.delivery);
    let headers = (turn.dialect == dialect.id()).then(|| Arc::clone(&turn.headers));
    let original = turn.original.as_ref().filter(|_| turn.dialect == dialect.id());
    if let Some(original) = original.and_then(|body| with_host_model(body, turn)) {
        let (losses, mode) = (Losses::default(), Mode::Relay);
        return Ok(Prepared { id, delivery, body: original, losses, mode, headers });
    }
    let written = dialect.write_request(&turn.request)?;
    let body = Bytes::from(written.body);
    let Some(body) = with_host_model(&body, turn) else {
        return Err(TurnError::new(
            toolgate_model::ErrorKind::Internal,
            format!(
                "naming the model in a request written as {}: it has no `model`; please report this",
                dialect.id()
            ),
        ));
    };
    let mode = Mode::Translate(Box::new(ClientCalls::new(written.names, &turn.request)));
    Ok(Prepared { id, delivery, body, losses: written.losses, mode, headers })
}

fn with_host_model(body: &Bytes, turn: &Turn) -> Option<Bytes> {
    match &turn.model {
        Some(model) if *model != turn.request.model => replace_model(body, model.as_str()),
        Some(_) | None => Some(body.clone()),
    }
}
