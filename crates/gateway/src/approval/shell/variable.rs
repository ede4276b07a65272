//! Variables whose value a shell runs, or computes and runs what stands in it.

use super::{Reading, Word};

/// Names of scripts that a shell reads, texts that it expands, and numbers that it computes when they are set.
const EVALUATED: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "ZDOTDIR",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "SECONDS",
    "RANDOM",
    "SRANDOM",
    "OPTIND",
    "LINENO",
    "HISTCMD",
    "HISTSIZE",
    "SAVEHIST",
    "LINES",
    "COLUMNS",
    "SHLVL",
    "MAILCHECK",
    "TMOUT",
    "UID",
    "EUID",
    "GID",
    "EGID",
    "FUNCNEST",
    "LISTMAX",
    "KEYTIMEOUT",
    "ERRNO",
    "LOGCHECK",
    "DIRSTACKSIZE",
    "BAUD",
];

/// True if the shell may run something because of `NAME=VALUE`, now or when the variable is used.
pub(super) fn is_evaluated(assignment: &Word) -> bool {
    let Some((name, value)) = assignment.text.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_number =
        assignment.reading == Reading::Exact && value.chars().all(|letter| letter.is_ascii_digit());
    // Behind a dollar sign in single quotes there is a command for later.
    name.contains('[')
        || value.contains("$(")
        || value.contains('`')
        || (EVALUATED.contains(&name) && !is_number)
}
