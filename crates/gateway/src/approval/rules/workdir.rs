//! Where an agent's commands may run. The shell of an agent keeps its directory from one command to the next.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::command_line::{self, Word};
use super::super::effect::{Effect, command_of};
use super::programs;

/// More directories count as unknown.
const MAX_DIRECTORIES: usize = 4;

/// The working directory of an agent, and the directories its shell may be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workdir {
    project: PathBuf,
    home: Option<PathBuf>,
    /// Where a command may start.
    current: Vec<PathBuf>,
    /// True if it may start anywhere.
    is_lost: bool,
    shell: ShellDirectory,
}

/// What happens to the shell's directory after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShellDirectory {
    Kept,
    Reset,
}

impl Workdir {
    /// The agent starts in this folder. Relative paths of rules start here, whatever the agent does.
    pub fn new(project: &Path) -> Self {
        Self {
            project: project.to_owned(),
            home: None,
            current: vec![project.to_owned()],
            is_lost: false,
            shell: ShellDirectory::Kept,
        }
    }

    /// With the agent's home directory, which `~` stands for.
    #[must_use]
    pub fn with_home(self, home: &Path) -> Self {
        Self { home: Some(home.to_owned()), ..self }
    }

    /// For an agent whose shell returns to the working directory after every command, as Claude Code does with
    /// `CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR=1`.
    #[must_use]
    pub fn with_reset_shell(self) -> Self {
        Self { shell: ShellDirectory::Reset, ..self }
    }

    /// Call this for every tool use that was allowed: it may have changed the directory.
    pub fn after(&mut self, tool: &str, input: &Value) {
        let has_worktree =
            matches!(tool, "EnterWorktree" | "ExitWorktree") || input.get("isolation").is_some();
        self.is_lost |= has_worktree;
        let Effect::Command(_) = Effect::of(tool, input) else { return };
        if self.shell == ShellDirectory::Reset {
            return;
        }
        match command_of(input).map(command_line::read) {
            Some(Ok(commands)) => commands.iter().for_each(|words| self.after_command(words)),
            Some(Err(_)) | None => self.is_lost = true,
        }
    }

    /// The next command may start anywhere.
    pub(in super::super) fn lose(&mut self) {
        self.is_lost = true;
    }

    /// Follows a `cd`. The old directory stays possible, because a `cd` may fail or run in a subshell.
    pub(super) fn after_command(&mut self, words: &[Word]) {
        let Some(program) = words.first() else { return };
        match (program.text.as_str(), words) {
            ("cd", [_, folder]) if !folder.is_glob && !folder.text.starts_with('-') => {
                let entered: Vec<PathBuf> = self.current.iter().map(|at| at.join(&folder.text)).collect();
                for folder in entered {
                    if !self.current.contains(&folder) {
                        self.current.push(folder);
                    }
                }
                self.is_lost |= self.current.len() > MAX_DIRECTORIES;
            }
            (name, _) if programs::may_change_directory(name) => self.is_lost = true,
            _ => {}
        }
    }

    /// True if a command may start elsewhere than in the working directory.
    pub(super) fn has_moved(&self) -> bool {
        self.is_lost || self.current.len() > 1
    }

    /// The directories a command may start in, and whether these are all.
    pub(super) fn current(&self) -> (&[PathBuf], bool) {
        (&self.current, !self.is_lost)
    }

    pub(in super::super) fn project(&self) -> &Path {
        &self.project
    }

    pub(in super::super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }
}
