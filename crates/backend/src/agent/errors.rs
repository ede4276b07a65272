//! Agent failures, as errors that a client can act on.

use std::io;
use std::path::Path;
use std::process::ExitStatus;

use toolgate_dialect::claude_stream_json::TurnOutcome;
use toolgate_model::{ErrorKind, GrammarError, TurnError};

/// How a turn completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// The agent finished its answer.
    Complete,
    /// It reached its limit of model calls; the client can send the conversation back to continue (M7).
    Paused,
}

/// Whether a turn completed, or the error it ended in.
pub(super) fn completion(outcome: &TurnOutcome) -> Result<Completion, TurnError> {
    let details = details_of(outcome);
    match outcome.subtype.as_str() {
        "success" if !outcome.is_error => Ok(Completion::Complete),
        "error_max_turns" => Ok(Completion::Paused),
        // The answer is complete, so the budget does not matter any more.
        "error_max_budget_usd" if outcome.stop.as_deref() == Some("end_turn") => Ok(Completion::Complete),
        "error_max_budget_usd" => {
            Err(TurnError::new(ErrorKind::Billing, format!("the agent's budget is used up: {details}")))
        }
        _ => Err(match outcome.api_status {
            Some(status) => provider_error(status, &details),
            None if details.contains("/login") || details.contains("API key") => TurnError::new(
                ErrorKind::Authentication,
                format!(
                    "the agent is not logged in ({details}); set an API key in `env` of its [agents] section"
                ),
            ),
            None if details.starts_with("Prompt is too long") => TurnError::invalid_param(
                "messages",
                format!(
                    "messages: too long for the agent's model ({details}); send fewer or shorter messages"
                ),
            ),
            None => TurnError::upstream(format!("the agent's turn failed: {details}")),
        }),
    }
}

/// The model's API returned an error (X28: its status is kept).
fn provider_error(status: u16, details: &str) -> TurnError {
    let mut error = TurnError::new(ErrorKind::from_status(status), details);
    error.status =
        Some(status).filter(|status| *status != error.kind.status() && (400..600).contains(status));
    error
}

/// A turn that waited for the client ended without it.
pub(super) fn gave_up_on_client(outcome: &TurnOutcome) -> TurnError {
    TurnError::upstream(format!("the agent stopped waiting for tool results: {}", details_of(outcome)))
}

/// The program rejected the `initialize` request.
pub(super) fn initialize_rejected(why: &str) -> TurnError {
    TurnError::upstream(format!(
        "the agent's program rejected its setup: {why}; run `toolgate doctor` to check its version"
    ))
}

/// The program sent events in an invalid order.
pub(super) fn invalid_event_order(error: GrammarError) -> TurnError {
    TurnError::upstream("the agent sent an invalid sequence of events; send the request again")
        .caused_by(error)
}

/// The program could not be started.
pub(super) fn cannot_start(program: &Path, error: io::Error) -> TurnError {
    let shown = program.display();
    let advice = if error.kind() == io::ErrorKind::NotFound {
        "install Claude Code, or set the path of the program in `command`"
    } else {
        "check that the program is executable and that the agent's `workdir` exists"
    };
    TurnError::new(ErrorKind::Unavailable, format!("starting the agent's program {shown} failed: {advice}"))
        .caused_by(error)
}

/// The program exited during a turn.
pub(super) fn exited(status: Option<ExitStatus>, stderr: &str) -> TurnError {
    let how = status.map_or_else(|| "no exit status".to_owned(), |status| status.to_string());
    let output = if stderr.is_empty() { String::new() } else { format!("; stderr: {stderr}") };
    TurnError::upstream(format!(
        "the agent's program exited during the turn ({how}){output}; send the request again"
    ))
}

/// The program has written nothing for too long.
pub(super) fn stalled() -> TurnError {
    TurnError::new(
        ErrorKind::Timeout,
        "the agent's program stopped responding and was ended; send the request again",
    )
}

/// The program wrote a line that is not valid.
pub(super) fn unreadable_line(error: impl std::error::Error + Send + Sync + 'static) -> TurnError {
    TurnError::upstream("the agent's program wrote an invalid line; send the request again").caused_by(error)
}

/// All processes are busy and the queue is full.
pub(super) fn queue_full() -> TurnError {
    TurnError::new(
        ErrorKind::RateLimited,
        "all agent processes are busy and too many requests are waiting; try again later",
    )
}

/// No process became free in time.
pub(super) fn queue_timeout() -> TurnError {
    TurnError::new(
        ErrorKind::Overloaded,
        "no agent process became free in time; try again, or raise `max` of the agent",
    )
}

/// The gateway is shutting down.
pub(super) fn stopping() -> TurnError {
    TurnError::new(ErrorKind::Unavailable, "the gateway is shutting down; send the request again in a moment")
}

fn details_of(outcome: &TurnOutcome) -> String {
    let text = outcome.text.iter().chain(&outcome.errors).filter(|text| !text.is_empty());
    let joined = text.cloned().collect::<Vec<_>>().join("; ");
    if joined.is_empty() { outcome.subtype.clone() } else { joined }
}
