//! The folder that an agent works in, and where the shells of its sessions may be.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::rules::Workdir;

/// Sessions whose shell has left the folder. If there are more, every other session may be anywhere.
const MAX_MOVED: usize = 1_000;

/// The folder that an agent works in.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// Where every session starts.
    start: Workdir,
    moved: Arc<Mutex<MovedSessions>>,
}

#[derive(Debug, Default)]
struct MovedSessions {
    workdirs: HashMap<String, Workdir>,
    is_full: bool,
}

impl Folder {
    pub(crate) fn new(project: &Path) -> Self {
        Self { start: Workdir::new(project), moved: Arc::default() }
    }

    /// For an agent that the gateway starts: its shell returns to the folder after every command.
    pub(crate) fn of_own_agent(project: &Path) -> Self {
        Self { start: Workdir::new(project).with_reset_shell(), moved: Arc::default() }
    }

    /// As text; `None` if it is not Unicode.
    pub(crate) fn as_str(&self) -> Option<&str> {
        self.start.project().to_str()
    }

    /// Where the next command of this session may start.
    pub(super) fn workdir(&self, session: &str) -> Workdir {
        let moved = self.moved.lock();
        if let Some(workdir) = moved.workdirs.get(session) {
            return workdir.clone();
        }
        let mut workdir = self.start.clone();
        if moved.is_full {
            workdir.lose();
        }
        workdir
    }

    /// Notes a tool use that was allowed: it may have changed the directory of the shell.
    pub(super) fn note_allowed(&self, session: &str, tool: &str, input: &Value) {
        let before = self.workdir(session);
        let mut after = before.clone();
        after.after(tool, input);
        if after == before {
            return;
        }
        let mut moved = self.moved.lock();
        if moved.workdirs.len() >= MAX_MOVED && !moved.workdirs.contains_key(session) {
            moved.is_full = true;
        } else {
            moved.workdirs.insert(session.to_owned(), after);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_that_moved_is_remembered_and_too_many_are_all_lost() {
        let folder = Folder::new(Path::new("/w"));
        let fresh = Workdir::new(Path::new("/w"));
        folder.note_allowed("a", "Bash", &json!({ "command": "ls" }));
        assert_eq!(folder.workdir("a"), fresh);
        folder.note_allowed("a", "Bash", &json!({ "command": "cd sub" }));
        assert_ne!(folder.workdir("a"), fresh);
        assert_eq!(folder.workdir("b"), fresh);
        for number in 0..MAX_MOVED {
            folder.note_allowed(&number.to_string(), "Bash", &json!({ "command": "cd sub" }));
        }
        assert_ne!(folder.workdir("b"), fresh, "it may have moved, too");
    }
}
