//! A decider that hands every approval request to the test, which answers it as late as it likes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use toolgate_backend::Decider;
use toolgate_model::approval::{Decision, PermissionUpdate, ToolUse};

/// The longest a test waits for a request, on a busy machine.
const TIMEOUT: Duration = Duration::from_mins(2);

/// More requests than any test leaves open.
const MANY: usize = 64;

/// The approval requests of one gateway, in order.
pub(crate) struct Approver(mpsc::Receiver<PendingRequest>);

/// A request that waits for its answer.
pub(crate) struct PendingRequest {
    pub(crate) request: ToolUse,
    answer: oneshot::Sender<Decision>,
}

impl Approver {
    /// The receiver of requests, and the decider for the gateway.
    pub(crate) fn new() -> (Self, Arc<dyn Decider>) {
        let (ask, questions) = mpsc::channel(MANY);
        (Self(questions), Arc::new(ApproverDecider(ask)))
    }

    /// The next request.
    pub(crate) async fn next_request(&mut self) -> PendingRequest {
        let next = tokio::time::timeout(TIMEOUT, self.0.recv()).await;
        next.expect("a request comes in time").expect("the gateway is alive")
    }

    /// True if no further request has come.
    pub(crate) fn has_no_request(&mut self) -> bool {
        self.0.try_recv().is_err()
    }
}

impl PendingRequest {
    /// Allows the call, with these permission updates.
    pub(crate) fn allow(self, updates: Vec<PermissionUpdate>) {
        assert!(self.answer.send(Decision::Allow { input: None, updates }).is_ok(), "the request is open");
    }

    /// Denies the call and ends the turn.
    pub(crate) fn deny_and_interrupt(self) {
        let denied = Decision::Deny { message: "Stop it.".to_owned(), interrupt: true };
        assert!(self.answer.send(denied).is_ok(), "the request is open");
    }

    /// Returns when the request is withdrawn.
    pub(crate) async fn until_withdrawn(&mut self) {
        self.answer.closed().await;
    }

    /// Waits until the request is withdrawn, then answers it anyway, like a late click.
    pub(crate) async fn expect_withdrawn(mut self) {
        tokio::time::timeout(TIMEOUT, self.until_withdrawn()).await.expect("the request is withdrawn");
        let late = self.answer.send(Decision::ALLOW);
        assert!(late.is_err(), "a late answer has no effect");
    }
}

struct ApproverDecider(mpsc::Sender<PendingRequest>);

impl Decider for ApproverDecider {
    fn decide(&self, request: ToolUse) -> BoxFuture<'static, Decision> {
        let (answer, decision) = oneshot::channel();
        assert!(self.0.try_send(PendingRequest { request, answer }).is_ok(), "the test receives requests");
        let unanswered = Decision::deny("The test did not answer.");
        Box::pin(async move { decision.await.unwrap_or(unanswered) })
    }
}
