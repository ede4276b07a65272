//! The sessions that the events are about, as rows for a list.

use std::collections::HashMap;

use toolgate_model::approval::QuestionId;
use toolgate_model::observed::{
    Observation, ObservedSession, SessionName, SessionState, Subject, TurnEndKind, TurnId, UsageCounts,
};

use crate::UnixMillis;

/// The most sessions in the list. When there are more, the older half of those without an open turn is forgotten.
pub const MAX_SESSIONS: usize = 1_000;

/// The most open questions that are counted for one session.
const MAX_QUESTIONS: usize = 256;

/// One session in a list.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// The session.
    pub session: SessionName,
    /// Its description and state.
    pub description: ObservedSession,
    /// When it appeared here.
    pub started_at: UnixMillis,
    /// When its state last changed.
    pub changed_at: UnixMillis,
    /// The turns that have not ended.
    pub open_turns: Vec<TurnId>,
    /// The ids of the questions that wait for a decision.
    pub questions: Vec<QuestionId>,
    /// The usage of its last turn.
    pub usage: Option<UsageCounts>,
}

#[derive(Debug, Default)]
pub(super) struct SessionTable {
    rows: HashMap<SessionName, SessionRow>,
}

impl SessionTable {
    /// Applies an event. Returns it unless it says nothing new about its session.
    pub(super) fn apply(
        &mut self,
        at: UnixMillis,
        subject: &Subject,
        observation: Observation,
    ) -> Option<Observation> {
        if let Observation::Session(description) = observation {
            return self.describe(at, &subject.session, description).map(Observation::Session);
        }
        let Some(row) = self.rows.get_mut(&subject.session) else { return Some(observation) };
        match &observation {
            Observation::TurnStarted(_) => {
                row.open_turns.extend(subject.turn);
                row.update(at);
            }
            Observation::TurnEnded(end) => {
                row.open_turns.retain(|turn| Some(*turn) != subject.turn);
                row.usage = end.usage.or(row.usage);
                row.description.state = match end.outcome {
                    TurnEndKind::Finished => SessionState::Idle,
                    TurnEndKind::Failed => SessionState::Failed,
                    TurnEndKind::Interrupted => SessionState::Interrupted,
                };
                row.update(at);
            }
            Observation::Asked { question, .. } if row.questions.len() < MAX_QUESTIONS => {
                row.questions.push(question.clone());
                row.update(at);
            }
            Observation::Decided { question: Some(decided), .. } => {
                row.questions.retain(|question| question != decided);
                row.update(at);
            }
            Observation::Session(_)
            | Observation::Asked { .. }
            | Observation::Decided { .. }
            | Observation::TextDelta { .. }
            | Observation::ReasoningDelta { .. }
            | Observation::CallStarted { .. }
            | Observation::InputDelta { .. }
            | Observation::InputComplete { .. }
            | Observation::Running { .. }
            | Observation::Result { .. }
            | Observation::Usage(_)
            | Observation::Losses { .. } => {}
        }
        Some(observation)
    }

    pub(super) fn is_open(&self, session: &SessionName, turn: TurnId) -> bool {
        self.rows.get(session).is_some_and(|row| row.open_turns.contains(&turn))
    }

    /// The rows, the most recently changed first.
    pub(super) fn rows(&self) -> Vec<SessionRow> {
        let mut rows: Vec<SessionRow> = self.rows.values().cloned().collect();
        rows.sort_by(|one, other| {
            other.changed_at.cmp(&one.changed_at).then_with(|| one.session.cmp(&other.session))
        });
        rows
    }

    /// Returns the description with the session's state, if it is new.
    fn describe(
        &mut self,
        at: UnixMillis,
        session: &SessionName,
        description: ObservedSession,
    ) -> Option<ObservedSession> {
        if let Some(row) = self.rows.get_mut(session) {
            // A client that names its session may send only its newest message, so the first title stays.
            let title = row.description.title.clone().or(description.title);
            let described = ObservedSession { state: row.description.state, title, ..description };
            if row.description == described {
                return None;
            }
            row.description = described.clone();
            return Some(described);
        }
        if self.rows.len() >= MAX_SESSIONS {
            self.forget_older_half();
        }
        let described = ObservedSession { state: SessionState::Starting, ..description };
        let row = SessionRow {
            session: session.clone(),
            description: described.clone(),
            started_at: at,
            changed_at: at,
            open_turns: Vec::new(),
            questions: Vec::new(),
            usage: None,
        };
        self.rows.insert(session.clone(), row);
        Some(described)
    }

    fn forget_older_half(&mut self) {
        let mut times: Vec<UnixMillis> = self.rows.values().map(|row| row.changed_at).collect();
        let (_, median, _) = times.select_nth_unstable(self.rows.len() / 2);
        let median = *median;
        self.rows.retain(|_, row| row.changed_at > median || !row.is_at_rest());
    }
}

impl SessionRow {
    /// Neither a turn nor a question is open.
    fn is_at_rest(&self) -> bool {
        self.open_turns.is_empty() && self.questions.is_empty()
    }

    /// Sets the state while a question or a turn is open.
    fn update(&mut self, at: UnixMillis) {
        self.changed_at = at;
        if !self.questions.is_empty() {
            self.description.state = SessionState::Waiting;
        } else if !self.open_turns.is_empty() {
            self.description.state = SessionState::Running;
        } else if self.description.state == SessionState::Waiting {
            self.description.state = SessionState::Idle;
        }
    }
}
