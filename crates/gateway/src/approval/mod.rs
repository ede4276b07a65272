//! Decides whether an agent may use a tool: first the operator's rules, then a person, then a timeout.
//!
//! ```text
//! request ─▶ rules: deny ▶ ask ▶ allow, on parsed commands, paths and hosts ─▶ decision
//!                └─ ask, uncertain or not covered ─▶ waits for an answer ─▶ decision
//!                                                         └─ timeout: denied (C4)
//! ```
//!
//! Rules look at what an agent asks to do, not at what programs do. They are not a sandbox.

mod command_line;
mod effect;
mod glob;
mod path;
mod pattern;
mod rule;
mod rules;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use toolgate_backend::Decider;
use toolgate_model::approval::{Decision, ToolUse};

pub use rule::{Rule, RuleAction, RuleError, RuleOrigin};
pub use rules::{Rules, Ruling, Workdir};

/// The maximum number of requests that wait at a time. More than this is a flood, not work for people.
pub const MAX_WAITING: usize = 1_000;

/// The approval settings.
#[derive(Clone, Debug)]
pub struct ApprovalConfig {
    /// How long a request waits for an answer.
    pub timeout: Duration,
    /// Rules that decide without a person.
    pub rules: Rules,
}

impl Default for ApprovalConfig {
    /// No rules, and ten minutes for a person to answer.
    fn default() -> Self {
        Self { timeout: Duration::from_mins(10), rules: Rules::default() }
    }
}

/// Decides on the approval requests of this gateway's agents.
#[derive(Clone, Debug)]
pub struct Approvals {
    config: Arc<ApprovalConfig>,
    waiting: Arc<AtomicUsize>,
    workdir: Workdir,
}

impl Approvals {
    /// Decides by this configuration, for an agent that works in `/`.
    pub fn new(config: ApprovalConfig) -> Self {
        Self { config: Arc::new(config), waiting: Arc::default(), workdir: Workdir::new(Path::new("/")) }
    }

    /// The same for an agent with this working directory, which relative paths start from.
    #[must_use]
    pub fn in_folder(&self, workdir: &Path) -> Self {
        Self { workdir: Workdir::new(workdir), ..self.clone() }
    }

    /// Waits for an answer, and denies the request when the timeout expires (C4).
    async fn wait(self, request: ToolUse, why: String) -> Decision {
        let Some(_slot) = WaitingSlot::take(&self.waiting) else {
            tracing::warn!(
                tool = request.tool,
                session = request.session,
                "denied a tool use: too many requests are waiting"
            );
            return Decision::deny(format!(
                "Permission denied: {why}, and {MAX_WAITING} other requests are already waiting for a person. Try again later."
            ));
        };
        let timeout = self.config.timeout;
        tracing::info!(tool = request.tool, session = request.session, why, "a tool use waits for approval");
        tokio::time::sleep(timeout).await;
        tracing::warn!(
            tool = request.tool,
            session = request.session,
            why,
            "denied a tool use: nobody answered in time"
        );
        Decision::deny(format!(
            "Permission denied: {why}, and nobody answered within {timeout:?}. Do not retry it in another form. Continue \
             without it, or explain what you need it for."
        ))
    }
}

impl Decider for Approvals {
    fn decide(&self, request: ToolUse) -> BoxFuture<'static, Decision> {
        let ruling = self.config.rules.judge(&request.tool, &request.input, &self.workdir);
        let why = match ruling {
            Ruling::Decided(rule) => match rule.action {
                RuleAction::Allow => {
                    tracing::info!(tool = request.tool, session = request.session, %rule, "allowed by a rule");
                    return decided(Decision::ALLOW);
                }
                RuleAction::Deny => {
                    tracing::info!(tool = request.tool, session = request.session, %rule, "denied by a rule");
                    return decided(Decision::deny(format!(
                        "Permission denied by the operator's rule `{rule}`. Do not retry it in another form."
                    )));
                }
                RuleAction::Ask => format!("the operator's rule `{rule}` requires a person's approval"),
            },
            Ruling::Uncertain(rule) => {
                format!(
                    "the operator's rule `{rule}` may forbid it, which cannot be determined before it runs"
                )
            }
            Ruling::NotCovered => format!("no rule of the operator covers this use of {}", request.tool),
        };
        Box::pin(self.clone().wait(request, why))
    }
}

fn decided(decision: Decision) -> BoxFuture<'static, Decision> {
    Box::pin(std::future::ready(decision))
}

/// A slot among the waiting requests, released when the request is answered or withdrawn.
struct WaitingSlot(Arc<AtomicUsize>);

impl WaitingSlot {
    fn take(waiting: &Arc<AtomicUsize>) -> Option<Self> {
        let taken = waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < MAX_WAITING).then_some(count + 1)
        });
        taken.is_ok().then(|| Self(Arc::clone(waiting)))
    }
}

impl Drop for WaitingSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
