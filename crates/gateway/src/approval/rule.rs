//! One rule of `[approvals] rules`: `allow Bash(git status:*)`.

use std::fmt;

use thiserror::Error;
use toolgate_backend::nearest;

use super::pattern::{CommandPattern, DomainPattern, PathPattern, glob};

/// Tools that read a file or folder. A rule for `Read` applies to all of them.
pub(super) const READING_TOOLS: &[&str] = &["Read", "Grep", "Glob", "LS", "NotebookRead"];

/// Tools that change a file. A rule for `Edit` applies to all of them.
pub(super) const EDITING_TOOLS: &[&str] = &["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// The agent's built-in tools, to detect typos. Other names are valid too.
const KNOWN_TOOLS: &[&str] = &[
    "Bash",
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "Glob",
    "Grep",
    "LS",
    "WebFetch",
    "WebSearch",
    "Task",
    "TodoWrite",
    "TodoRead",
    "BashOutput",
    "KillShell",
    "ExitPlanMode",
    "AskUserQuestion",
];

const ACTIONS: [(&str, RuleAction); 3] =
    [("allow", RuleAction::Allow), ("ask", RuleAction::Ask), ("deny", RuleAction::Deny)];

/// The effect of a rule, from weakest to strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleAction {
    /// The tool runs.
    Allow,
    /// A person decides.
    Ask,
    /// The tool does not run.
    Deny,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    text: String,
    pub(super) action: RuleAction,
    tool: String,
    pub(super) argument: Argument,
}

/// The part of a rule in parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// Absent: the rule applies to every use of the tool.
    Any,
    Command(CommandPattern),
    Path(PathPattern),
    Domain(DomainPattern),
}

/// Why a text is not a valid rule, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct RuleError(String);

impl Rule {
    /// Parses a rule of the configuration.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let (word, what) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let action = parse_action(word)?;
        let what = what.trim();
        if what.is_empty() {
            return Err(RuleError(format!("a tool is missing: write `{word} Bash` or `{word} *`")));
        }
        let (tool, argument) = match what.split_once('(') {
            None => (what, None),
            Some((tool, rest)) => {
                let argument = rest.strip_suffix(')').ok_or_else(|| {
                    RuleError(format!("the parenthesis is not closed: write `{word} {what})`"))
                })?;
                (tool, Some(argument.trim()))
            }
        };
        check_name(tool)?;
        let argument = match argument {
            None | Some("*" | ":*" | "**") => Argument::Any,
            Some(argument) => parse_argument(tool, argument)?,
        };
        Ok(Self { text: text.to_owned(), action, tool: tool.to_owned(), argument })
    }

    /// True for a rule for `*`, which applies to what no other rule covers.
    pub(super) fn is_fallback(&self) -> bool {
        self.tool == "*"
    }

    /// True if the rule applies to this tool.
    pub(super) fn applies_to(&self, tool: &str) -> bool {
        match self.tool.as_str() {
            "*" => false,
            "Read" => READING_TOOLS.contains(&tool),
            "Edit" => EDITING_TOOLS.contains(&tool),
            name if name.starts_with("mcp__") => is_tool_of_server(name, tool),
            name => glob(name, tool),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// `mcp__server` matches every tool of the server, `mcp__server__tool` one of them.
fn is_tool_of_server(name: &str, tool: &str) -> bool {
    glob(name, tool) || (!name["mcp__".len()..].contains("__") && glob(&format!("{name}__*"), tool))
}

fn parse_action(word: &str) -> Result<RuleAction, RuleError> {
    if let Some((_, action)) = ACTIONS.iter().find(|(known, _)| *known == word) {
        return Ok(*action);
    }
    let near = nearest(word, ACTIONS.map(|(known, _)| known)).into_iter().next();
    Err(RuleError(match near {
        Some(near) => format!("it starts with `{word}`; did you mean `{near}`?"),
        None => "it must start with `allow`, `ask` or `deny`, as in `ask Bash`".to_owned(),
    }))
}

fn check_name(tool: &str) -> Result<(), RuleError> {
    let is_name = !tool.is_empty()
        && tool
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '*'));
    if !is_name {
        return Err(RuleError(format!(
            "`{tool}` is not a tool name: write it as in `Bash(git status:*)`, `mcp__server__tool` or `*`"
        )));
    }
    // Any name may exist, so only wrong letter case of a known tool is rejected.
    let meant = KNOWN_TOOLS.iter().find(|known| known.eq_ignore_ascii_case(tool) && **known != tool);
    match meant {
        Some(meant) => Err(RuleError(format!("unknown tool `{tool}`; did you mean `{meant}`?"))),
        None => Ok(()),
    }
}

fn parse_argument(tool: &str, argument: &str) -> Result<Argument, RuleError> {
    let is_on_files = READING_TOOLS.contains(&tool) || EDITING_TOOLS.contains(&tool);
    let parsed = match tool {
        "Bash" => CommandPattern::parse(argument).map(Argument::Command),
        "WebFetch" => DomainPattern::parse(argument).map(Argument::Domain),
        _ if is_on_files => PathPattern::parse(argument).map(Argument::Path),
        _ => {
            let with_argument: Vec<&str> = ["Bash", "WebFetch"]
                .into_iter()
                .chain(READING_TOOLS.iter().chain(EDITING_TOOLS).copied())
                .collect();
            let hint = nearest(tool, with_argument).into_iter().next();
            return Err(RuleError(match hint {
                Some(near) => format!("unknown tool `{tool}`; did you mean `{near}({argument})`?"),
                None => format!("a rule for `{tool}` takes no argument: write `{tool}`"),
            }));
        }
    };
    parsed.map_err(|why| RuleError(format!("`{argument}` of `{tool}`: {why}")))
}
