//! The body for a host: the client's own bytes where they will do, else the request written in the host's dialect.

use bytes::Bytes;
use toolgate_dialect::UpstreamDialect;
use toolgate_model::{Losses, TurnError};

use super::calls::ClientCalls;
use super::splice::replace_model;
use crate::turn::Turn;

/// A request ready to be sent, as often as it takes.
pub(super) struct Prepared {
    pub(super) body: Bytes,
    pub(super) losses: Losses,
    pub(super) mode: Mode,
}

/// How the reply is to be treated.
pub(super) enum Mode {
    /// The client speaks the host's dialect and sees its bytes.
    Relay,
    /// The reply is read; calls get their client's form back.
    Translate(ClientCalls),
}

impl Mode {
    pub(super) fn calls(&self) -> ClientCalls {
        match self {
            Self::Relay => ClientCalls::default(),
            Self::Translate(calls) => calls.clone(),
        }
    }
}

pub(super) fn prepare(dialect: &dyn UpstreamDialect, turn: &Turn) -> Result<Prepared, TurnError> {
    let original = turn.original.as_ref().filter(|_| turn.dialect == dialect.id());
    if let Some(original) = original.and_then(|body| with_host_model(body, turn)) {
        return Ok(Prepared { body: original, losses: Losses::default(), mode: Mode::Relay });
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
    let mode = Mode::Translate(ClientCalls::new(written.names, &turn.request));
    Ok(Prepared { body, losses: written.losses, mode })
}

fn with_host_model(body: &Bytes, turn: &Turn) -> Option<Bytes> {
    match &turn.model {
        Some(model) if *model != turn.request.model => replace_model(body, model.as_str()),
        Some(_) | None => Some(body.clone()),
    }
}
