//! One rule of `[approvals] rules`: `allow Bash(git status:*)`.

use std::fmt;

use thiserror::Error;
use toolgate_backend::nearest;
use toolgate_model::approval::RuleBehavior;

use super::effect::{Effect, Syntax, known_tools};
use super::glob::glob;
use super::pattern::{CommandPattern, DomainPattern, PathPattern};

const ACTIONS: [(&str, RuleAction); 3] =
    [("allow", RuleAction::Allow), ("ask", RuleAction::Ask), ("deny", RuleAction::Deny)];

/// The tool that starts a sub-agent.
const SUB_AGENT_TOOLS: [&str; 2] = ["Task", "Agent"];

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

/// Where a rule comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RuleOrigin {
    /// The configuration.
    #[default]
    Config,
    /// A person made it while the gateway ran. The store knows its scope and when it ends.
    Stored {
        /// Its id in the store.
        id: String,
    },
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    text: String,
    pub(super) action: RuleAction,
    tool: String,
    pub(super) argument: Argument,
    origin: RuleOrigin,
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
        if text.contains(char::is_control) {
            return Err(RuleError("it contains a control character".to_owned()));
        }
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
            None | Some("*" | ":*") => Argument::Any,
            Some(argument) => parse_argument(tool, argument)?,
        };
        Ok(Self {
            text: text.to_owned(),
            action,
            tool: tool.to_owned(),
            argument,
            origin: RuleOrigin::Config,
        })
    }

    /// Makes a rule of a permission update of Claude Code. There, `//x` is an absolute path, and `/x` and `x` start in
    /// the working directory.
    pub fn from_update(tool: &str, content: Option<&str>, behavior: RuleBehavior) -> Result<Self, RuleError> {
        let word = match behavior {
            RuleBehavior::Allow => "allow",
            RuleBehavior::Ask => "ask",
            RuleBehavior::Deny => "deny",
        };
        let is_on_files = matches!(Effect::of_known(tool), Some(Effect::Read | Effect::Edit));
        Self::parse(&match content {
            None => format!("{word} {tool}"),
            Some(path) if is_on_files => {
                let path = path.strip_prefix('/').unwrap_or(path);
                format!("{word} {tool}({path})")
            }
            Some(content) => format!("{word} {tool}({content})"),
        })
    }

    /// What the rule does, for a person who decides about it.
    pub fn in_words(&self) -> String {
        let verb = match self.action {
            RuleAction::Allow => "Allow",
            RuleAction::Ask => "Ask about",
            RuleAction::Deny => "Deny",
        };
        let tool = self.tool.as_str();
        let argument =
            self.text.split_once('(').map_or("", |(_, rest)| rest.strip_suffix(')').unwrap_or(rest).trim());
        let what = match &self.argument {
            Argument::Any if self.is_fallback() => "everything that no other rule covers".to_owned(),
            Argument::Any => match tool.strip_prefix("mcp__") {
                Some(server) if !server.contains("__") => format!("every tool of the MCP server `{server}`"),
                _ => match Effect::of_known(tool) {
                    Some(Effect::Command(_)) if tool == "Bash" => "every command".to_owned(),
                    Some(Effect::Read) if tool == "Read" => "reading any file".to_owned(),
                    Some(Effect::Edit) if tool == "Edit" => "editing any file".to_owned(),
                    _ => format!("every use of {tool}"),
                },
            },
            Argument::Command(pattern) if pattern.is_open() => {
                let words = argument.trim_end_matches('*').trim_end_matches([':', ' ']);
                format!("the command `{words}` with any further arguments")
            }
            Argument::Command(_) => format!("exactly the command `{argument}`"),
            Argument::Path(_) => {
                let doing = if self.is_on_edits() { "editing" } else { "reading" };
                format!("{doing} files that match `{argument}`")
            }
            Argument::Domain(_) => {
                format!("fetching pages from `{}`", argument.trim_start_matches("domain:"))
            }
        };
        format!("{verb} {what}")
    }

    /// The same rule with another origin than the configuration.
    #[must_use]
    pub fn with_origin(self, origin: RuleOrigin) -> Self {
        Self { origin, ..self }
    }

    /// Where the rule comes from.
    pub fn origin(&self) -> &RuleOrigin {
        &self.origin
    }

    /// Whether it allows, asks or denies.
    pub fn action(&self) -> RuleAction {
        self.action
    }

    /// True for a rule for `*`, which applies to what no other rule covers.
    pub(super) fn is_fallback(&self) -> bool {
        self.tool == "*"
    }

    /// True for a rule on tools that change files.
    pub(super) fn is_on_edits(&self) -> bool {
        Effect::of_known(&self.tool) == Some(Effect::Edit)
    }

    /// True if the rule applies to this tool.
    pub(super) fn applies_to(&self, tool: &str, effect: Effect) -> bool {
        match self.tool.as_str() {
            "*" => false,
            "Read" => effect == Effect::Read,
            "Edit" => effect == Effect::Edit,
            "Bash" => match effect {
                Effect::Command(Syntax::Shell) => true,
                Effect::Command(Syntax::Unknown) => self.action != RuleAction::Allow,
                Effect::Read | Effect::Edit | Effect::Fetch | Effect::Other => false,
            },
            name if name.starts_with("mcp__") => is_tool_of_server(name, tool),
            // The same tool has both names in one version of the program.
            name if SUB_AGENT_TOOLS.contains(&name) => SUB_AGENT_TOOLS.contains(&tool),
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
    let meant = known_tools().find(|known| known.eq_ignore_ascii_case(tool) && *known != tool);
    match meant {
        Some(meant) => Err(RuleError(format!("unknown tool `{tool}`; did you mean `{meant}`?"))),
        None => Ok(()),
    }
}

fn parse_argument(tool: &str, argument: &str) -> Result<Argument, RuleError> {
    let parsed = match Effect::of_known(tool) {
        Some(Effect::Command(_)) => CommandPattern::parse(argument).map(Argument::Command),
        Some(Effect::Fetch) => DomainPattern::parse(argument).map(Argument::Domain),
        Some(Effect::Read | Effect::Edit) => PathPattern::parse(argument).map(Argument::Path),
        Some(Effect::Other) | None => {
            let takes_argument = |tool: &&str| Effect::of_known(tool) != Some(Effect::Other);
            let hint = nearest(tool, known_tools().filter(takes_argument)).into_iter().next();
            return Err(RuleError(match hint {
                Some(near) => format!("unknown tool `{tool}`; did you mean `{near}({argument})`?"),
                None => format!("a rule for `{tool}` takes no argument: write `{tool}`"),
            }));
        }
    };
    parsed.map_err(|why| RuleError(format!("`{argument}` of `{tool}`: {why}")))
}
