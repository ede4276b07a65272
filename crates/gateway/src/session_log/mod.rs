//! Records sessions: who talks to which model about what, and, if the operator wants that, the turns of models that are
//! not agents (agents store their own). Turns are queued after their last byte and written by one worker, so that no
//! client waits for the store.
//!
//! ```text
//!  TurnRecord ─ TurnNotes ─▶ SessionLog ─▶ SessionLogWorker ─▶ store
//!                                              └ plain_turn.rs: request and reply as messages
//! ```

mod plain_turn;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_backend::ClientTurn;
use toolgate_model::TurnRequest;
use toolgate_model::observed::{SessionState, opening_text, title};
use toolgate_state::{CallerScope, Label, SessionChange, SessionId, Store, UnixMillis};

use self::plain_turn::PlainTurn;
use crate::config::RecordedSessions;

/// Turns that may wait for the worker.
const QUEUE_TURNS: usize = 64;

/// The largest request and reply that are recorded together. With [`QUEUE_TURNS`], it bounds the queue's memory.
const MAX_TURN_BYTES: usize = 4 * 1024 * 1024;

/// Takes what is to be recorded. Clones share one queue.
#[derive(Clone)]
pub(crate) struct SessionLog {
    sessions: RecordedSessions,
    queue: mpsc::Sender<Entry>,
}

/// Writes to the store what a [`SessionLog`] takes.
pub(crate) struct SessionLogWorker {
    queue: mpsc::Receiver<Entry>,
    store: Arc<dyn Store>,
}

/// One write.
enum Entry {
    Session { scope: CallerScope, id: SessionId, change: SessionChange },
    Turn(Box<PlainTurn>),
}

impl SessionLog {
    pub(crate) fn new(sessions: RecordedSessions, store: Arc<dyn Store>) -> (Self, SessionLogWorker) {
        let (sender, receiver) = mpsc::channel(QUEUE_TURNS);
        (Self { sessions, queue: sender }, SessionLogWorker { queue: receiver, store })
    }

    fn add(&self, entry: Entry) {
        if self.queue.try_send(entry).is_err() {
            tracing::warn!("a turn is not recorded: the store is too slow, or the gateway is stopping");
        }
    }
}

impl SessionLogWorker {
    /// Writes until it is stopped; then writes what is in the queue.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while let Some(Some(entry)) = stop.run_until_cancelled(self.queue.recv()).await {
            self.write(entry).await;
        }
        self.queue.close();
        while let Some(entry) = self.queue.recv().await {
            self.write(entry).await;
        }
    }

    async fn write(&self, entry: Entry) {
        let written = match entry {
            Entry::Session { scope, id, change } => self.store.update_session(&scope, &id, change).await,
            Entry::Turn(turn) => turn.store(&*self.store).await,
        };
        if let Err(error) = written {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "recording a turn failed; its session is incomplete");
        }
    }
}

/// What is known of one turn until it is over. Collects nothing that is not recorded.
#[derive(Default)]
pub(crate) struct TurnNotes {
    turn: Option<ClientTurn>,
    /// The reply as it was sent; `None` once it is too large, or if it is not recorded.
    sent: Option<Vec<u8>>,
}

/// What a turn has become.
pub(crate) struct TurnFacts<'a> {
    pub(crate) scope: &'a CallerScope,
    pub(crate) at: UnixMillis,
    pub(crate) model: &'a str,
    pub(crate) upstream: Option<&'a str>,
    pub(crate) state: SessionState,
}

impl TurnNotes {
    /// Begins to collect what the log wants of this turn.
    pub(crate) fn begin(&mut self, log: &SessionLog, turn: &ClientTurn) {
        // Only the back end of an agent gives its turns a session.
        let is_agent = turn.session.is_kept();
        let is_recorded = match log.sessions {
            RecordedSessions::None => false,
            RecordedSessions::Agents => is_agent,
            RecordedSessions::All => true,
        };
        self.turn = is_recorded.then(|| turn.clone());
        self.sent = (is_recorded && !is_agent).then(Vec::new);
    }

    /// Adds bytes of the reply.
    pub(crate) fn add_sent(&mut self, bytes: &Bytes) {
        let Some(sent) = &mut self.sent else { return };
        sent.extend_from_slice(bytes);
        if sent.len() > MAX_TURN_BYTES {
            self.sent = None;
        }
    }

    /// Records an agent's session as soon as it is known, and whenever its state changes. Records any other turn when it
    /// has succeeded.
    pub(crate) fn report(&mut self, log: &SessionLog, facts: &TurnFacts<'_>) {
        let Some(turn) = &self.turn else { return };
        let label = |text: &str| Label::new(text.to_owned());
        if let Some(session) = turn.session.actual() {
            self.sent = None;
            let Ok(id) = SessionId::parse(session) else { return };
            let change = SessionChange {
                suggested_title: turn.request.as_ref().and_then(|request| session_title(request)),
                model: Some(label(facts.model)),
                agent: facts.upstream.map(label),
                state: Some(facts.state),
                at: facts.at,
            };
            log.add(Entry::Session { scope: facts.scope.clone(), id, change });
            return;
        }
        if facts.state != SessionState::Idle {
            return;
        }
        let Some(sent) = self.sent.take() else { return };
        if turn.body.as_ref().map_or(0, Bytes::len) + sent.len() > MAX_TURN_BYTES {
            return;
        }
        let scope = facts.scope.clone();
        log.add(Entry::Turn(Box::new(PlainTurn { scope, turn: turn.clone(), sent, at: facts.at })));
    }
}

fn session_title(request: &TurnRequest) -> Option<Label> {
    title(opening_text(&request.messages)).map(Label::new)
}
