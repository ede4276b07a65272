//! What a tool does: decided by its name, and for unknown names by its input.

use serde_json::Value;

/// What a use of a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It runs a command line. Rules for `Bash` apply.
    Command(Syntax),
    /// It reads a file, or searches a folder. Rules for `Read` apply.
    Read,
    /// It changes a file. Rules for `Edit` apply.
    Edit,
    /// It fetches a URL.
    Fetch,
    /// Anything else. Only rules with its name apply, and ask and deny rules for the paths and URLs in its input.
    Other,
}

/// How a command line is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// Like bash, zsh and `sh`.
    Shell,
    /// It is not known, so no rule for `Bash` allows anything.
    Unknown,
}

/// The built-in tools of Claude Code, older and newer names.
const TOOLS: &[(Effect, &[&str])] = &[
    (Effect::Command(Syntax::Shell), &["Bash", "Monitor"]),
    (Effect::Command(Syntax::Unknown), &["PowerShell", "REPL", "Workflow"]),
    (Effect::Read, &["Read", "NotebookRead", "Grep", "Glob", "LS", "LSP"]),
    (Effect::Edit, &["Edit", "Write", "MultiEdit", "NotebookEdit"]),
    (Effect::Fetch, &["WebFetch"]),
    (
        Effect::Other,
        &[
            "Agent",
            "Artifact",
            "AskUserQuestion",
            "BashOutput",
            "CronCreate",
            "CronDelete",
            "CronList",
            "EnterPlanMode",
            "EnterWorktree",
            "ExitPlanMode",
            "ExitWorktree",
            "KillBash",
            "KillShell",
            "ListAgents",
            "ListMcpResourcesTool",
            "Projects",
            "PushNotification",
            "ReadMcpResourceDirTool",
            "ReadMcpResourceTool",
            "RemoteTrigger",
            "ReportFindings",
            "ScheduleWakeup",
            "SendMessage",
            "Skill",
            "SlashCommand",
            "StructuredOutput",
            "Task",
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskOutput",
            "TaskStop",
            "TaskUpdate",
            "TodoRead",
            "TodoWrite",
            "ToolSearch",
            "WebSearch",
        ],
    ),
];

/// Input fields of unknown tools that contain something to execute.
const COMMAND_FIELDS: &[&str] = &["command", "cmd", "script", "code"];

impl Effect {
    /// The effect of this use of a tool.
    pub(super) fn of(tool: &str, input: &Value) -> Self {
        match Self::of_known(tool) {
            // It can watch a socket instead.
            Some(Self::Command(_)) if tool == "Monitor" && input.get("command").is_none() => Self::Other,
            Some(effect) => effect,
            None if COMMAND_FIELDS.iter().any(|field| input.get(field).is_some()) => {
                Self::Command(Syntax::Unknown)
            }
            None => Self::Other,
        }
    }

    /// The effect of a known tool.
    pub(super) fn of_known(tool: &str) -> Option<Self> {
        TOOLS.iter().find(|(_, names)| names.contains(&tool)).map(|(effect, _)| *effect)
    }
}

/// The names of all known tools.
pub(super) fn known_tools() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// What a tool that runs commands would run, if the input says so.
pub(super) fn command_of(input: &Value) -> Option<&str> {
    COMMAND_FIELDS.iter().find_map(|field| input.get(field)).and_then(Value::as_str)
}
