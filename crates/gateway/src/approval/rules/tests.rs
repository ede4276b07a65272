//! Tables of tool uses and what the rules decide about each. The working directory is a real folder:
//!
//! ```text
//! project/  src/main.rs  sub/run  conf/.env  .env  .git/hooks/  out/  secret/key
//!           link → ../outside   out/away → ../../outside   dangling → ../outside/new   named → secret
//! outside/  notes
//! ```

mod commands;
mod files;
mod tools;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use super::*;

struct Project {
    folder: TempDir,
}

impl Project {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let project = folder.path().join("project");
        for name in ["src", "sub", "conf", ".git/hooks", "out", "secret"] {
            fs::create_dir_all(project.join(name)).unwrap();
        }
        fs::create_dir(folder.path().join("outside")).unwrap();
        for name in ["src/main.rs", "sub/run", "conf/.env", ".env", "secret/key", "../outside/notes"] {
            fs::write(project.join(name), "x").unwrap();
        }
        for (target, link) in [
            ("../outside", "link"),
            ("../../outside", "out/away"),
            ("../outside/new", "dangling"),
            ("secret", "named"),
        ] {
            symlink(target, project.join(link)).unwrap();
        }
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn workdir(&self) -> Workdir {
        Workdir::new(&self.path())
    }

    /// Replaces `PROJECT` by the folder.
    fn fill(&self, text: &str) -> String {
        text.replace("PROJECT", self.path().to_str().unwrap())
    }

    fn rules(&self, texts: &[&str]) -> Rules {
        let parse =
            |text: &&str| Rule::parse(&self.fill(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        Rules::new(texts.iter().map(parse).collect())
    }
}

/// `doubt` is a question because of a rule that may apply, `-` one because no rule applies.
fn say(rules: &Rules, tool: &str, input: &Value, workdir: &Workdir) -> &'static str {
    match rules.judge(tool, input, workdir) {
        Ruling::Decided(rule) => match rule.action {
            RuleAction::Allow => "allow",
            RuleAction::Ask => "ask",
            RuleAction::Deny => "deny",
        },
        Ruling::Uncertain(_) => "doubt",
        Ruling::NotCovered => "-",
    }
}

fn check_commands(texts: &[&str], cases: &[(&str, &str)]) {
    let project = Project::new();
    let rules = project.rules(texts);
    for (command, expected) in cases {
        let input = json!({ "command": project.fill(command) });
        assert_eq!(say(&rules, "Bash", &input, &project.workdir()), *expected, "{texts:?}: {command}");
    }
}

fn check_files(texts: &[&str], cases: &[(&str, &str, &str)]) {
    let project = Project::new();
    let rules = project.rules(texts);
    for (tool, path, expected) in cases {
        let path = project.fill(path);
        let input = match *tool {
            "Grep" => json!({ "pattern": "x", "path": path }),
            "Glob" => json!({ "pattern": "*", "path": path }),
            "NotebookEdit" => json!({ "notebook_path": path }),
            _ => json!({ "file_path": path }),
        };
        assert_eq!(say(&rules, tool, &input, &project.workdir()), *expected, "{texts:?}: {tool} {path}");
    }
}
