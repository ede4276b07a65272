//! The body for a host: the client's own bytes where they will do, else the request written in the host's dialect.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use toolgate_dialect::UpstreamDialect;
use toolgate_model::{Delivery, ErrorKind, Losses, TurnError};
use uuid::Uuid;

use super::calls::ClientCalls;
use super::splice::replace_model;
use crate::turn::{RelayTurn, Turn};

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

/// The client's own body, with the host's name for the model.
pub(super) fn relayed(
    RelayTurn { id, body, delivery, model, headers }: RelayTurn,
) -> Result<Prepared, TurnError> {
    let body = match model {
        Some(model) => replace_model(&body, model.as_str())
            .ok_or_else(|| TurnError::invalid_param("model", "model: this field is required"))?,
        None => body,
    };
    let (losses, mode) = (Losses::default(), Mode::Relay);
    Ok(Prepared { id, delivery, body, losses, mode, headers: Some(headers) })
}

/// The request written in the host's dialect.
pub(super) fn translated(dialect: &dyn UpstreamDialect, turn: &Turn) -> Result<Prepared, TurnError> {
    let written = dialect.write_request(&turn.request)?;
    let mut body = Bytes::from(written.body);
    if let Some(model) = turn.model.as_ref().filter(|model| **model != turn.request.model) {
        body = replace_model(&body, model.as_str()).ok_or_else(|| {
            TurnError::new(
                ErrorKind::Internal,
                format!("a request written as {} has no `model`; please report this", dialect.id()),
            )
        })?;
    }
    let (id, delivery) = (turn.id, turn.request.delivery);
    let headers = (turn.dialect == dialect.id()).then(|| Arc::clone(&turn.headers));
    let mode = Mode::Translate(Box::new(ClientCalls::new(written.names, &turn.request)));
    Ok(Prepared { id, delivery, body, losses: written.losses, mode, headers })
}
