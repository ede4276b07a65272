//! The body for a host: the client's own bytes where they will do, else the request written in the host's dialect.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use toolgate_dialect::host::HostFacts;
use toolgate_dialect::{Change, HostRequest, Translation, UpstreamDialect};
use toolgate_model::{Delivery, Losses, TurnError};
use uuid::Uuid;

use super::splice::replace_model;
use super::unsupported_field;
use crate::turn::{RelayTurn, Turn};

/// A request ready to be sent, as often as it takes.
pub(super) struct Prepared {
    pub(super) id: Uuid,
    pub(super) delivery: Delivery,
    pub(super) body: Bytes,
    pub(super) losses: Losses,
    pub(super) reply: ReplyMode,
    pub(super) translation: Translation,
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

    /// Leaves out a field that the host refuses.
    pub(super) fn leave_out(&mut self, field: &str) {
        if let Some(body) = unsupported_field::without(&self.body, field) {
            self.body = body;
            self.losses.add(field, "the host refuses it: sent without");
        }
    }
}

/// What happens to the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyMode {
    /// The client speaks the host's dialect and gets its bytes.
    Relay,
    /// The reply is read and written again for the client.
    Translate,
}

/// The client's own body, with the host's name for the model.
pub(super) fn relayed(
    dialect: &'static dyn UpstreamDialect,
    facts: &HostFacts,
    RelayTurn { id, body, delivery, model, headers }: RelayTurn,
) -> Result<Prepared, TurnError> {
    let body = match model {
        Some(model) => replace_model(&body, model.as_str())
            .ok_or_else(|| TurnError::invalid_param("model", "model: this field is required"))?,
        None => body,
    };
    let reply = if facts.replies_are_standard() { ReplyMode::Relay } else { ReplyMode::Translate };
    let (losses, translation) = (Losses::default(), Translation::new(dialect));
    Ok(Prepared { id, delivery, body, losses, reply, translation, headers: Some(headers) })
}

/// The request written for the host. A client that speaks the host's dialect gets the host's bytes, and the host gets
/// the client's unless they had to change.
pub(super) fn translated(
    dialect: &'static dyn UpstreamDialect,
    facts: &HostFacts,
    turn: &Turn,
) -> Result<Prepared, TurnError> {
    let model = turn.model.as_ref().unwrap_or(&turn.request.model);
    let mut translation = Translation::new(dialect);
    let profile = facts.profile(model.as_str());
    let HostRequest { body, losses, change } =
        translation.request(turn.dialect, &turn.request, model, &profile)?;
    let own = turn.body.as_ref().filter(|_| change == Change::OnlyTheModel);
    let body = own.and_then(|own| replace_model(own, model.as_str())).unwrap_or_else(|| Bytes::from(body));
    let is_relayed = turn.body.is_some() && translation.is_plain() && facts.replies_are_standard();
    let reply = if is_relayed { ReplyMode::Relay } else { ReplyMode::Translate };
    let headers = (turn.dialect == dialect.id()).then(|| Arc::clone(&turn.headers));
    let (id, delivery) = (turn.id, turn.request.delivery);
    Ok(Prepared { id, delivery, body, losses, reply, translation, headers })
}
