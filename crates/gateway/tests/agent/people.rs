//! People who are asked what an agent may do: each request waits until the test answers it, however long that takes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use toolgate_backend::{ApprovalRequest, Decider, Decision};

/// The longest a test waits to be asked, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// More questions than any test lets wait.
const MANY: usize = 64;

/// The questions of one gateway, in the order in which they come.
pub(crate) struct People(mpsc::Receiver<Asked>);

/// A request that waits for its answer.
pub(crate) struct Asked {
    pub(crate) request: ApprovalRequest,
    answer: oneshot::Sender<Decision>,
}

impl People {
    /// The people, and how a gateway asks them.
    pub(crate) fn new() -> (Self, Arc<dyn Decider>) {
        let (ask, questions) = mpsc::channel(MANY);
        (Self(questions), Arc::new(Asking(ask)))
    }

    /// The next request.
    pub(crate) async fn asked(&mut self) -> Asked {
        let next = tokio::time::timeout(PATIENCE, self.0.recv()).await;
        next.expect("somebody is asked in time").expect("the gateway lives")
    }

    /// True where nobody was asked anything that is not answered yet.
    pub(crate) fn were_not_asked(&mut self) -> bool {
        self.0.try_recv().is_err()
    }
}

impl Asked {
    /// Allows it, and changes the rules like this.
    pub(crate) fn allow(self, updates: Vec<Value>) {
        assert!(self.answer.send(Decision::Allow { input: None, updates }).is_ok(), "the answer is wanted");
    }

    /// Denies it and ends the turn with it.
    pub(crate) fn deny_and_interrupt(self) {
        let denied = Decision::Deny { message: "Stop it.".to_owned(), interrupt: true };
        assert!(self.answer.send(denied).is_ok(), "the answer is wanted");
    }

    /// Returns when the answer is no longer wanted.
    pub(crate) async fn is_withdrawn(&mut self) {
        self.answer.closed().await;
    }

    /// The same, and then gives one all the same, as a late click would.
    pub(crate) async fn withdrawn(mut self) {
        tokio::time::timeout(PATIENCE, self.is_withdrawn()).await.expect("the request is withdrawn");
        let late = self.answer.send(Decision::Allow { input: None, updates: Vec::new() });
        assert!(late.is_err(), "a late answer goes nowhere");
    }
}

struct Asking(mpsc::Sender<Asked>);

impl Decider for Asking {
    fn decide(&self, request: ApprovalRequest) -> BoxFuture<'static, Decision> {
        let (answer, decision) = oneshot::channel();
        assert!(self.0.try_send(Asked { request, answer }).is_ok(), "the test listens");
        let nobody = Decision::Deny { message: "The test did not answer.".to_owned(), interrupt: false };
        Box::pin(async move { decision.await.unwrap_or(nobody) })
    }
}
