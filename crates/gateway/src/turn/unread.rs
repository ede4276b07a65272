//! A turn whose request goes to its host unread. A host of the client's own dialect gets the client's bytes anyway, and
//! a whole reply goes back the same way, so of most requests nothing need be known but the model.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use toolgate_backend::{Answer, AnswerBody, Unread};
use toolgate_model::TurnError;

use super::prepare::prepare;
use super::record::TurnRecord;
use super::samples::Opened;
use super::{Asking, Reply, collect, unless_ending};
use crate::service::Worker;

/// A turn that waits for its host.
pub(super) struct PassedOn {
    answer: BoxFuture<'static, Result<Answer, TurnError>>,
    body: Bytes,
}

/// Passes the request on if it may go unread. `None` says no more than that it must be read: only then can it be said
/// what is wrong with it.
pub(super) fn pass_on(
    worker: &Worker,
    asking: &Asking,
    body: &Bytes,
    record: &mut TurnRecord,
) -> Option<PassedOn> {
    let Asking { api, caller, headers, session: _, checked: _ } = asking;
    let dialect = api.dialect();
    if !worker.router.passes_on(dialect.id()) {
        return None;
    }
    let model = dialect.skim_request(body)?;
    caller.check_model(model).ok()?;
    let route = worker.router.find(model).ok()?;
    let answer = route.pass_on(Unread {
        id: record.id(),
        dialect: dialect.id(),
        body: body.clone(),
        model: None,
        headers: Arc::clone(headers),
    })?;
    record.asked(model);
    Some(PassedOn { answer, body: body.clone() })
}

impl PassedOn {
    /// The reply, once it is there.
    pub(super) async fn reply(
        self,
        worker: &Arc<Worker>,
        asking: &Asking,
        record: &mut TurnRecord,
    ) -> Result<Reply, TurnError> {
        let answer = unless_ending(worker, self.answer).await??;
        record.answered(&answer);
        match answer.body {
            AnswerBody::Whole(body) => {
                record.read(body.usage);
                Ok(Reply::Whole(body.bytes))
            }
            // The host streams though nobody asked it to. To write that as one reply, the request must be known.
            AnswerBody::Events(_) | AnswerBody::Relay(_) => {
                let asked = prepare(worker, asking, self.body, record)?;
                collect(worker, asked, Opened { first: answer, others: Vec::new() }, record).await
            }
        }
    }
}
