//! Records of agent turns: the agent's own steps, which the client never sees (B6), the reply, so that a repeated
//! request is answered from the record instead of running the agent again (B7), and the messages of the request, so that
//! a client may send only its new ones (E3).

use futures_util::future::BoxFuture;
use toolgate_model::{JsonText, PrefixHash};
use uuid::Uuid;

use crate::{CallerScope, Label, SessionId, StoreError, UnixMillis};

/// The largest record, messages, steps and reply together: about the largest request a model host accepts, and more than a
/// model's context holds.
pub const MAX_RECORD_BYTES: usize = 32 * 1024 * 1024;

/// Stores the turns of agents, each visible only to the caller who made the request.
///
/// The client's history remains complete without them, unless the client sends only its new messages (see [`ThreadPart`]).
pub trait RecordStore: Send + Sync {
    /// Stores a turn as the last one written, replacing an earlier state of the same caller's run. A turn with a
    /// [`ThreadPart`] creates or updates its session.
    ///
    /// An incomplete record does not replace a complete one. A run that was delivered stays so.
    ///
    /// When this returns, the record survives a crash of the process. A record over [`MAX_RECORD_BYTES`] is refused.
    fn put_record<'a>(
        &'a self,
        scope: &'a CallerScope,
        record: AgentTurnRecord,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Notes that the client has received the reply of this run in full. Only the first time is stored; an unknown run
    /// changes nothing.
    fn mark_delivered<'a>(
        &'a self,
        scope: &'a CallerScope,
        run: Uuid,
        at: UnixMillis,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The caller's record of this request. Of several, the one written last.
    fn record_for_request<'a>(
        &'a self,
        scope: &'a CallerScope,
        request: PrefixHash,
    ) -> BoxFuture<'a, Result<Option<AgentTurnRecord>, StoreError>>;

    /// The caller's records of the turns whose reply ends in one of these lineages, in the order of `replies`; unknown
    /// lineages are skipped. Of several with the same reply, the one written last.
    fn records_after<'a>(
        &'a self,
        scope: &'a CallerScope,
        replies: &'a [PrefixHash],
    ) -> BoxFuture<'a, Result<Vec<AgentTurnRecord>, StoreError>>;

    /// The turns that led to the last complete turn of this thread, oldest first. Their messages and replies, one after
    /// the other, are the conversation so far. If the first turn continues another one, that one was deleted.
    ///
    /// Turns that the client has gone back behind are not part of it.
    fn turns_of_session<'a>(
        &'a self,
        scope: &'a CallerScope,
        session: &'a SessionId,
        thread: PrefixHash,
    ) -> BoxFuture<'a, Result<Vec<AgentTurnRecord>, StoreError>>;

    /// The thread of this agent that began last in the session, for a client that does not repeat its instructions.
    fn last_thread<'a>(
        &'a self,
        scope: &'a CallerScope,
        session: &'a SessionId,
        agent: &'a Label,
    ) -> BoxFuture<'a, Result<Option<PrefixHash>, StoreError>>;

    /// Deletes all callers' sessions that were last updated before `older_than` with their turns, and older turns that
    /// belong to no session. Returns how many turns.
    fn prune_records(&self, older_than: UnixMillis) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// One turn of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentTurnRecord {
    /// The run: an equal request may run several times.
    pub run: Uuid,
    /// The lineage of the request's messages, which identifies the request.
    pub key: PrefixHash,
    /// The lineage including the reply as the client saw it; `None` if the turn is incomplete.
    pub after: Option<PrefixHash>,
    /// The session, as in `x-session-id`.
    pub session: SessionId,
    /// Its part of the session's transcript; `None` for data that belongs to no transcript.
    pub thread: Option<ThreadPart>,
    /// The messages of this turn in the agent's history, including its own calls and results: a JSON array written and
    /// read by the agent back end, opaque here.
    pub steps: JsonText,
    /// The reply as the client got it, opaque here; `None` if the turn is incomplete.
    pub reply: Option<JsonText>,
    /// When the turn began.
    pub at: UnixMillis,
    /// When the last byte of the reply was sent to the client.
    pub delivered: Option<UnixMillis>,
}

/// What a turn adds to the transcript of its session, so that a client may send only its new messages.
///
/// A session has one thread per agent and instructions: some clients use one session id for everything, also for making
/// a title or a summary (M5).
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadPart {
    /// The agent.
    pub agent: Label,
    /// The hash of the agent and the instructions.
    pub thread: PrefixHash,
    /// The reply that this turn continues: the `after` of an earlier turn of the thread. `None` if `messages` holds the
    /// conversation from its beginning.
    pub continues: Option<PrefixHash>,
    /// The messages of the request that follow the reply above: JSON written and read by the agent back end, opaque here.
    pub messages: JsonText,
}

impl AgentTurnRecord {
    /// Whether the turn ended with a reply.
    pub(crate) fn is_complete(&self) -> bool {
        self.after.is_some()
    }

    /// The size that [`MAX_RECORD_BYTES`] limits.
    pub(crate) fn bytes(&self) -> usize {
        let reply = self.reply.as_ref().map_or(0, |reply| reply.as_str().len());
        let messages = self.thread.as_ref().map_or(0, |part| part.messages.as_str().len());
        self.steps.as_str().len() + reply + messages
    }
}

/// A turn of one thread, as far as its place in the thread is concerned.
pub(crate) struct ThreadLink {
    /// Grows in the order of writing.
    pub(crate) number: i64,
    pub(crate) after: Option<PrefixHash>,
    pub(crate) continues: Option<PrefixHash>,
}

/// The numbers of the turns that led to the last complete one, oldest first. `links` are in the order of writing.
pub(crate) fn branch(links: &[ThreadLink]) -> Vec<i64> {
    let mut numbers = Vec::new();
    let mut next = links.iter().rev().find(|link| link.after.is_some());
    while let Some(link) = next {
        numbers.push(link.number);
        // Only earlier turns, so that the walk ends.
        let earlier = links.iter().rev().filter(|earlier| earlier.number < link.number);
        next =
            link.continues.and_then(|reply| earlier.into_iter().find(|earlier| earlier.after == Some(reply)));
    }
    numbers.reverse();
    numbers
}

/// The error for a record over [`MAX_RECORD_BYTES`].
pub(crate) fn too_large(record: &AgentTurnRecord) -> Option<StoreError> {
    let bytes = record.bytes();
    let session = || record.session.clone();
    (bytes > MAX_RECORD_BYTES).then(|| StoreError::RecordTooLarge { session: session(), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> PrefixHash {
        PrefixHash::from_bytes([number; 32])
    }

    /// Links of turns `(number, after, continues)`; zero is none.
    fn check(links: &[(i64, u8, u8)], expect: &[i64]) {
        let some = |number: u8| (number > 0).then(|| hash(number));
        let links: Vec<ThreadLink> = links
            .iter()
            .map(|&(number, after, continues)| ThreadLink {
                number,
                after: some(after),
                continues: some(continues),
            })
            .collect();
        assert_eq!(branch(&links), expect);
    }

    #[test]
    fn a_branch_leads_to_the_last_complete_turn() {
        check(&[], &[]);
        check(&[(1, 0, 0)], &[]);
        check(&[(1, 1, 0), (2, 2, 1), (3, 3, 2), (4, 0, 3)], &[1, 2, 3]);
    }

    #[test]
    fn turns_behind_a_return_are_left_out() {
        check(&[(1, 1, 0), (2, 2, 1), (3, 3, 1)], &[1, 3]);
        check(&[(1, 1, 0), (2, 2, 1), (3, 3, 0)], &[3]);
    }

    #[test]
    fn of_two_turns_with_the_same_reply_the_later_one_is_continued() {
        check(&[(1, 1, 0), (2, 1, 0), (3, 3, 1), (4, 1, 0)], &[4]);
        check(&[(1, 1, 0), (2, 1, 0), (3, 3, 1)], &[2, 3]);
    }

    #[test]
    fn a_missing_or_circular_predecessor_ends_the_branch() {
        check(&[(2, 2, 1), (3, 3, 2)], &[2, 3]);
        check(&[(1, 1, 2), (2, 2, 1)], &[1, 2]);
        check(&[(1, 1, 1)], &[1]);
    }
}
