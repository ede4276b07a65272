//! Whether an agent may use a tool: the operator's rules first, then a person, then the clock.
//!
//! ```text
//! request ─▶ rules: deny ▶ ask ▶ allow, on parsed commands, paths and hosts ─▶ decision
//!                └─ ask, in doubt or not covered ─▶ waits for an answer ─▶ decision
//!                                                        └─ the time limit: denied (C4)
//! ```
//!
//! Rules read texts. They are a fence for an agent that means well and errs, or is led astray by what it reads; they
//! are no sandbox.

mod path;
mod pattern;
mod rule;
mod rules;
mod shell;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use toolgate_backend::{ApprovalRequest, Decider, Decision};

use path::Path;
pub use rule::{Rule, RuleError, Verdict};
pub use rules::Rules;
use rules::Ruling;

/// Questions that wait at a time. Past it the gateway is not waiting for people any more, it is being flooded.
pub const MAX_WAITING: usize = 1_000;

/// How the operator decides.
#[derive(Clone, Debug)]
pub struct ApprovalConfig {
    /// How long a request waits for an answer.
    pub timeout: Duration,
    /// What is decided without a person.
    pub rules: Rules,
}

impl Default for ApprovalConfig {
    /// No rules, and ten minutes for a person.
    fn default() -> Self {
        Self { timeout: Duration::from_mins(10), rules: Rules::default() }
    }
}

/// Decides for the agents of this gateway.
#[derive(Clone, Debug)]
pub struct Approvals {
    config: Arc<ApprovalConfig>,
    waiting: Arc<AtomicUsize>,
    workdir: Option<Path>,
}

impl Approvals {
    /// Decides by these rules.
    pub fn new(config: ApprovalConfig) -> Self {
        Self { config: Arc::new(config), waiting: Arc::default(), workdir: None }
    }

    /// The same for an agent that works in this folder: relative paths start there.
    #[must_use]
    pub fn in_folder(&self, workdir: &std::path::Path) -> Self {
        Self { workdir: workdir.to_str().map(Path::read), ..self.clone() }
    }

    /// Waits until somebody answers or the time is over. // C4
    async fn wait(self, request: ApprovalRequest, why: String) -> Decision {
        let Some(_place) = Place::take(&self.waiting) else {
            tracing::warn!(tool = request.tool, session = request.session, "too many questions wait: denied");
            return deny(format!(
                "Denied: {why}, and {MAX_WAITING} other questions wait for a person already. Try again later."
            ));
        };
        let timeout = self.config.timeout;
        tracing::info!(tool = request.tool, session = request.session, why, "a request waits for an answer");
        tokio::time::sleep(timeout).await;
        tracing::warn!(
            tool = request.tool,
            session = request.session,
            why,
            "nobody answered in time: denied"
        );
        deny(format!(
            "Denied: {why}, and nobody answered within {timeout:?}. Do not try it again in another form; go on \
             without it, or say what you need it for."
        ))
    }
}

impl Decider for Approvals {
    fn decide(&self, request: ApprovalRequest) -> BoxFuture<'static, Decision> {
        let ruling = self.config.rules.judge(&request.tool, &request.input, self.workdir.as_ref());
        let why = match ruling {
            Ruling::Decided(rule) => match rule.verdict {
                Verdict::Allow => {
                    tracing::info!(tool = request.tool, session = request.session, %rule, "allowed by a rule");
                    return decided(Decision::Allow { input: None, updates: Vec::new() });
                }
                Verdict::Deny => {
                    tracing::info!(tool = request.tool, session = request.session, %rule, "denied by a rule");
                    return decided(deny(format!(
                        "Denied by the operator's rule `{rule}`. Do not try it again in another form."
                    )));
                }
                Verdict::Ask => format!("the operator's rule `{rule}` asks a person first"),
            },
            Ruling::InDoubt(rule) => {
                format!("it cannot be told beforehand whether the operator's rule `{rule}` forbids it")
            }
            Ruling::NotCovered => format!("no rule of the operator covers this use of {}", request.tool),
        };
        Box::pin(self.clone().wait(request, why))
    }
}

fn decided(decision: Decision) -> BoxFuture<'static, Decision> {
    Box::pin(std::future::ready(decision))
}

fn deny(message: String) -> Decision {
    Decision::Deny { message, interrupt: false }
}

/// A place among those who wait; given back when the request is answered or withdrawn.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(waiting: &Arc<AtomicUsize>) -> Option<Self> {
        let taken = waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < MAX_WAITING).then_some(count + 1)
        });
        taken.is_ok().then(|| Self(Arc::clone(waiting)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
