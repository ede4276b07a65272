//! Variables whose value the shell executes or evaluates.

use super::{Reading, Word};

/// Variables that name scripts, hold prompts that are expanded, or are evaluated as numbers when set.
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

/// True if `NAME=VALUE` may make the shell run something, now or when the variable is used.
pub(super) fn is_evaluated(assignment: &Word) -> bool {
    let Some((name, value)) = assignment.text.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_number =
        assignment.reading == Reading::Exact && value.chars().all(|letter| letter.is_ascii_digit());
    // A command substitution in single quotes may be evaluated later.
    name.contains('[')
        || value.contains("$(")
        || value.contains('`')
        || (EVALUATED.contains(&name) && !is_number)
}
