//! What people may watch of a turn. Agents report their own steps, because they do more than the client sees.

use std::sync::Arc;

use toolgate_dialect::peek_opening;
use toolgate_model::observed::{
    Observation, ObservedSession, ReplyWatcher, RunsIn, SessionName, SessionState, Subject, TurnStart,
    new_results, opening_text, title,
};
use toolgate_model::{ToolName, TurnEvent};
use uuid::Uuid;

use super::request::RoutedTurn;
use crate::service::Shared;

/// A turn that people may watch.
pub(super) struct WatchedTurn {
    subject: Subject,
    /// `None` if the agent reports the reply.
    reply: Option<ReplyWatcher>,
}

impl WatchedTurn {
    /// Reports the start of a turn that no agent runs.
    pub(super) fn start(shared: &Shared, routed: &RoutedTurn) -> Self {
        let turn = &routed.turn;
        let peeked;
        let opening = match (&turn.request, &turn.body) {
            (Some(request), _) => opening_text(&request.messages),
            (None, body) => {
                peeked = body.as_ref().map(|body| peek_opening(body)).unwrap_or_default();
                &peeked
            }
        };
        let session = SessionName::from_opening(&turn.caller, opening);
        let watched = Self { subject: Subject::turn(session, turn.id), reply: Some(ReplyWatcher::new()) };
        let model: Arc<str> = turn.model.as_str().into();
        let description = ObservedSession {
            caller: Arc::clone(&turn.caller),
            title: title(opening),
            model: Arc::clone(&model),
            backend: routed.route.kind(),
            state: SessionState::Starting,
        };
        watched.publish(shared, Observation::Session(description));
        let start = TurnStart { model, dialect: routed.api.shared_name() };
        watched.publish(shared, Observation::TurnStarted(start));
        if let Some(request) = &turn.request {
            new_results(&request.messages).for_each(|result| watched.publish(shared, result));
        }
        watched
    }

    /// A turn in a session whose agent has reported its start.
    pub(super) fn by_agent(session: &str, turn: Uuid) -> Self {
        Self { subject: Subject::turn(SessionName::new(session), turn), reply: None }
    }

    /// Reports an event of the reply. What is being written is only for those who watch it: otherwise long replies would
    /// push everything else out of the bus.
    pub(super) fn event(&mut self, shared: &Shared, event: &TurnEvent) {
        if matches!(event, TurnEvent::BlockDelta(_)) && !shared.bus.is_watched() {
            return;
        }
        let Some(reply) = &mut self.reply else { return };
        let tool = |name: &ToolName| (name.clone(), RunsIn::Client);
        if let Some(observation) = reply.event(event, tool) {
            self.publish(shared, observation);
        }
    }

    pub(super) fn publish(&self, shared: &Shared, observation: Observation) {
        shared.bus.publish(shared.clock.now(), self.subject.clone(), observation);
    }
}
