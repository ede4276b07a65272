//! A turn of a model that is not an agent, as messages of a session. The first words name the session, as in observed
//! events; conversations that begin with the same words are branches of it. A turn continues the one whose reply is the
//! last of its history.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_backend::ClientTurn;
use toolgate_dialect::frame::SseDecoder;
use toolgate_dialect::host::{HostProfile, SystemMessages};
use toolgate_dialect::{ReplyContext, Translation, registry};
use toolgate_model::lineage::{Lineage, PrefixHash};
use toolgate_model::observed::{SessionName, SessionState, opening_text};
use toolgate_model::reply::Fold;
use toolgate_model::{
    AssistantMessage, Delivery, ErrorKind, Extras, JsonText, Message, Reply, TurnError, TurnRequest,
};
use toolgate_state::{
    AgentTurnRecord, CallerScope, Label, SessionChange, SessionId, Store, StoreError, ThreadPart, UnixMillis,
};

/// The dialect in which messages and replies are stored.
const STORED_AS: &str = "anthropic-messages";

/// A turn that the client has got in full.
pub(super) struct PlainTurn {
    pub(super) scope: CallerScope,
    pub(super) turn: ClientTurn,
    /// The reply as it was sent, in the client's dialect.
    pub(super) sent: Vec<u8>,
    pub(super) at: UnixMillis,
}

impl PlainTurn {
    /// Adds the turn to its session, which is a new one if the conversation is unknown.
    pub(super) async fn store(self, store: &dyn Store) -> Result<(), StoreError> {
        let read = self.turn.request().and_then(|request| Ok((request, self.reply()?)));
        let (request, reply) = match read {
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(%error, id = %self.turn.id, "a turn is not recorded: it cannot be parsed");
                return Ok(());
            }
        };
        let lineage = Lineage::of(&format!("plain\n{}", self.scope), &request.messages);
        let is_reply = |message: &Message| matches!(message, Message::Assistant(_));
        let history = request.messages.iter().rposition(is_reply).map_or(0, |last| last + 1);
        let earlier = store.records_after(&self.scope, &[lineage.at(history)]).await?.pop();
        let new = if earlier.is_some() { history } else { 0 };
        let Some(messages) = self.messages(&request, new) else { return Ok(()) };
        let Some(written) = write_reply(&reply, &request, &self.turn) else { return Ok(()) };
        let name = SessionName::from_opening(self.scope.as_str(), opening_text(&request.messages));
        let Ok(session) = SessionId::parse(name.as_str()) else { return Ok(()) };
        let message = Message::Assistant(AssistantMessage { content: reply.blocks, extras: Extras::NONE });
        let change = SessionChange {
            suggested_title: super::session_title(&request),
            model: Some(Label::new(request.model.as_str().to_owned())),
            state: Some(SessionState::Idle),
            ..SessionChange::at(self.at)
        };
        let part = ThreadPart {
            agent: Label::new(""),
            thread: thread(&self.scope),
            continues: earlier.and_then(|earlier| earlier.after),
            messages,
        };
        let record = AgentTurnRecord {
            run: self.turn.id,
            key: lineage.whole(),
            after: Some(lineage.then(&message)),
            session,
            thread: Some(part),
            steps: JsonText::from_value(&Value::Array(Vec::new())),
            reply: Some(written),
            at: self.at,
            delivered: Some(self.at),
        };
        store.update_session(&self.scope, &record.session, change).await?;
        store.put_record(&self.scope, record).await
    }

    /// The reply, read from what the client got.
    fn reply(&self) -> Result<Reply, TurnError> {
        let Some(dialect) = registry::find(self.turn.dialect.id().name) else { return Err(unreadable()) };
        match self.turn.delivery {
            Delivery::Whole => Ok(dialect.upstream.read_reply(&self.sent)?.value),
            Delivery::Stream(_) => {
                let mut reader = dialect.upstream.reply_reader();
                let mut decoder = SseDecoder::new(self.sent.len());
                decoder.push(&self.sent);
                let mut events = Vec::new();
                while let Ok(Some(frame)) = decoder.next_frame() {
                    reader.frame(frame, &mut events)?;
                }
                reader.end(&mut events)?;
                let mut fold = Fold::new();
                for event in events {
                    fold.event(event).map_err(|error| unreadable().caused_by(error))?;
                }
                fold.end().map_err(|error| unreadable().caused_by(error))
            }
        }
    }

    /// The messages from this index on.
    fn messages(&self, request: &TurnRequest, from: usize) -> Option<JsonText> {
        let dialect = registry::find(STORED_AS)?.upstream;
        let messages = request.messages.get(from..)?.to_vec();
        let part = TurnRequest {
            system: if from == 0 { request.system.clone() } else { Vec::new() },
            ..TurnRequest::new(request.model.clone(), messages)
        };
        let profile = HostProfile {
            assistant_first: true,
            system_messages: SystemMessages::Anywhere,
            ..HostProfile::of_dialect(dialect.id())
        };
        let client = self.turn.dialect.id();
        let written = Translation::new(dialect).request(client, &part, &part.model, &profile).ok()?;
        let mut body: Value = serde_json::from_slice(&written.body).ok()?;
        let stored = json!({ "system": body["system"].take(), "messages": body["messages"].take() });
        Some(JsonText::from_value(&stored))
    }
}

fn unreadable() -> TurnError {
    TurnError::new(ErrorKind::Internal, "reading a sent reply failed; please report this bug")
}

fn write_reply(reply: &Reply, request: &Arc<TurnRequest>, turn: &ClientTurn) -> Option<JsonText> {
    let context = ReplyContext {
        request: Arc::clone(request),
        now: 0,
        fallback_id: turn.id.to_string(),
        estimated_input: 0,
    };
    let written = registry::find(STORED_AS)?.client.write_reply(reply, &context).value;
    JsonText::parse(&String::from_utf8(written).ok()?).ok()
}

/// Sessions of models that are not agents have one thread.
fn thread(scope: &CallerScope) -> PrefixHash {
    Lineage::of(&format!("plain\n{scope}"), &[]).whole()
}
