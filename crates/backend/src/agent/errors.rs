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

/// What the program or the system reported about a failure. It may contain paths of this machine, so it is the cause of
/// an error, which only the operator's log shows.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Report(String);

/// Whether a turn completed, or the error it ended in.
pub(super) fn completion(outcome: &TurnOutcome) -> Result<Completion, TurnError> {
    let details = details_of(outcome);
    match outcome.subtype.as_str() {
        "success" if !outcome.is_error => Ok(Completion::Complete),
        "error_max_turns" => Ok(Completion::Paused),
        // The answer is complete, so the budget does not matter any more.
        "error_max_budget_usd" if outcome.stop.as_deref() == Some("end_turn") => Ok(Completion::Complete),
        "error_max_budget_usd" => {
            let message =
                "the agent's budget is used up: raise `max_budget_usd`, or ask for less in one turn";
            Err(TurnError::new(ErrorKind::Billing, message).caused_by(Report(details)))
        }
        _ => Err(match outcome.api_status {
            Some(status) => provider_error(status, outcome).caused_by(Report(details)),
            None if details.contains("/login") || details.contains("API key") => TurnError::new(
                ErrorKind::Authentication,
                "the agent is not logged in; set an API key in `env` of its [agents] section",
            )
            .caused_by(Report(details)),
            None if details.starts_with("Prompt is too long") => TurnError::invalid_param(
                "messages",
                "messages: the prompt is too long for the agent's model; send fewer or shorter messages",
            )
            .caused_by(Report(details)),
            None => TurnError::upstream(format!("the agent's turn failed ({})", outcome.subtype))
                .caused_by(Report(details)),
        }),
    }
}

/// The model's API returned an error (agent 28: its status is kept). Its text is for the client; the program's own errors
/// beside it are not.
fn provider_error(status: u16, outcome: &TurnOutcome) -> TurnError {
    let text = outcome.text.clone().filter(|text| !text.is_empty());
    let message = text.unwrap_or_else(|| format!("the agent's model answered with status {status}"));
    let mut error = TurnError::new(ErrorKind::from_status(status), message);
    error.status =
        Some(status).filter(|status| *status != error.kind.status() && (400..600).contains(status));
    error
}

/// A turn that waited for the client ended without it.
pub(super) fn gave_up_on_client(outcome: &TurnOutcome) -> TurnError {
    TurnError::upstream("the agent stopped waiting for tool results; send the request again")
        .caused_by(Report(details_of(outcome)))
}

/// The program rejected the `initialize` request.
pub(super) fn initialize_rejected(why: &str) -> TurnError {
    let message = "the agent's program rejected its setup; run `toolgate doctor` to check its version";
    TurnError::upstream(message).caused_by(Report(why.to_owned()))
}

/// The program sent events in an invalid order.
pub(super) fn invalid_event_order(error: GrammarError) -> TurnError {
    TurnError::upstream("the agent sent an invalid sequence of events; send the request again")
        .caused_by(error)
}

/// The program could not be started.
pub(super) fn cannot_start(program: &Path, error: &io::Error) -> TurnError {
    let advice = if error.kind() == io::ErrorKind::NotFound {
        "install Claude Code and restart the gateway, or set the path of the program in `command`"
    } else {
        "check that the program is executable and that the agent's `workdir` exists"
    };
    TurnError::new(ErrorKind::Unavailable, format!("starting the agent's program failed: {advice}"))
        .caused_by(Report(format!("{}: {error}", program.display())))
}

/// The program exited during a turn.
pub(super) fn exited(status: Option<ExitStatus>, stderr: &str) -> TurnError {
    let how = status.map_or_else(|| "no exit status".to_owned(), |status| status.to_string());
    TurnError::upstream(format!("the agent's program exited during the turn ({how}); send the request again"))
        .caused_by(Report(format!("stderr: {stderr}")))
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

/// The model was asked for an object that matches a schema, and gave neither an object nor text.
pub(super) fn no_structured_answer() -> TurnError {
    TurnError::upstream("the agent's model gave no answer in the requested format; send the request again")
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    /// The client's message contains none of these words; the cause, which is logged, contains all of them.
    #[track_caller]
    fn check(error: &TurnError, words: &[&str]) {
        let cause = error.source().expect("a cause").to_string();
        for word in words {
            assert!(!error.message.contains(word), "{}", error.message);
            assert!(cause.contains(word), "{cause}");
        }
    }

    #[test]
    fn paths_and_output_of_the_program_are_for_the_operator_only() {
        let not_found = io::Error::from(io::ErrorKind::NotFound);
        check(&cannot_start(Path::new("/opt/agents/claude"), &not_found), &["/opt/agents/claude"]);
        check(&exited(None, "Error at /srv/app.js:1"), &["/srv/app.js"]);
        check(&initialize_rejected("cannot read /srv/settings"), &["/srv/settings"]);
        let failed = |subtype: &str, text: &str| TurnOutcome {
            subtype: subtype.to_owned(),
            is_error: true,
            text: Some(text.to_owned()),
            errors: vec!["at /srv/agent.js:2".to_owned()],
            ..TurnOutcome::default()
        };
        for outcome in [
            failed("error_during_execution", "no"),
            failed("error_max_budget_usd", "spent"),
            failed("success", "Please run /login"),
            failed("success", "Prompt is too long"),
        ] {
            check(&completion(&outcome).expect_err("a failure"), &["/srv/agent.js"]);
            check(&gave_up_on_client(&outcome), &["/srv/agent.js"]);
            let of_the_api = TurnOutcome { api_status: Some(529), ..outcome };
            check(&completion(&of_the_api).expect_err("a failure"), &["/srv/agent.js"]);
        }
    }

    #[test]
    fn an_error_of_the_models_api_keeps_its_words_and_status() {
        let outcome = TurnOutcome {
            subtype: "success".to_owned(),
            is_error: true,
            text: Some("API Error: 529 overloaded".to_owned()),
            api_status: Some(529),
            ..TurnOutcome::default()
        };
        let error = completion(&outcome).expect_err("a failure");
        assert_eq!((error.status(), error.message.as_str()), (529, "API Error: 529 overloaded"));
    }
}
