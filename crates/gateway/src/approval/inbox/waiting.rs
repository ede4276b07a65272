//! An agent that waits for the answer to its question.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use toolgate_model::approval::{Question, QuestionId, Resolution};

use super::super::folder::Folder;
use super::{Inbox, OpenQuestion};

/// An agent that waits for the answer to its question. If it stops waiting, the question is withdrawn.
pub(super) struct Waiting {
    inbox: Arc<Inbox>,
    id: QuestionId,
    slot: Option<OwnedSemaphorePermit>,
}

impl Waiting {
    pub(super) fn register(
        inbox: &Arc<Inbox>,
        question: &Question,
        folder: Folder,
        slot: OwnedSemaphorePermit,
    ) -> (Self, oneshot::Receiver<Resolution>) {
        let (resolution, resolved) = oneshot::channel();
        let (id, tool_use) = (question.id.clone(), question.tool_use.clone());
        let open = OpenQuestion { tool_use, folder, deadline: question.deadline, resolution };
        inbox.open.lock().insert(id.clone(), open);
        (Self { inbox: Arc::clone(inbox), id, slot: Some(slot) }, resolved)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let was_open = self.inbox.open.lock().remove(&self.id).is_some();
        let Some(slot) = self.slot.take().filter(|_| was_open) else { return };
        // There are as many places as slots. The worker has ended only if the gateway has; the next start closes the
        // question then.
        drop(self.inbox.withdrawals.try_send(Withdrawal { id: self.id.clone(), _slot: slot }));
    }
}

/// A question whose agent does not wait any more. It keeps its slot until that is on record.
pub(super) struct Withdrawal {
    pub(super) id: QuestionId,
    _slot: OwnedSemaphorePermit,
}
