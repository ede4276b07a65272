//! Nothing of the operator's own account reaches the agent: no memory, settings, hooks, servers or environment.

use std::fs;
use std::path::Path;

use serde_json::json;
use toolgate_backend::config::Builtins;

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

/// Marks every text that must not reach the model.
const MARK: &str = "leaked-marker";

#[tokio::test]
async fn configuration_files_for_a_personal_agent_are_ignored() {
    // agent 29: in the working directory and every folder above, with and without built-in tools
    for program in programs() {
        for builtins in [Builtins::None, Builtins::Only(vec!["Read".to_owned()])] {
            let project = tempfile::tempdir().expect("a folder");
            let work = project.path().join("below/work");
            fs::create_dir_all(&work).expect("folders");
            let ran = project.path().join("ran");
            for folder in work.ancestors().take(3) {
                instruct(folder, &ran);
            }
            let harness = Harness::with(&program, |agent| {
                agent.builtins = builtins.clone();
                agent.workdir = Some(work.clone());
            })
            .await;
            instruct(&harness.private_folder(), &ran);
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            harness.queue(message(&[Block::Call("toolu_a", "mcp__client__get_time", json!({}))]));
            client.say(&harness.gate, "go").await;
            harness.queue(message(&[Block::Text("Noon.")]));
            client.answer(&harness.gate, &[("toolu_a", "12:00")]).await;
            for asked in harness.model_requests() {
                let text = String::from_utf8_lossy(&asked.body).into_owned();
                assert!(!text.contains(MARK), "{builtins:?}: {text:.2000}");
            }
            assert_eq!(harness.model_requests().len(), 2);
            assert!(!ran.exists(), "no configured command runs");
        }
    }
}

/// Writes every kind of configuration that a personal agent would read from a folder.
fn instruct(folder: &Path, ran: &Path) {
    let run = format!("touch {}; echo {MARK}", ran.display());
    let server = json!({ "command": "/bin/sh", "args": ["-c", run] });
    let servers = json!({ "mcpServers": { MARK: server } }).to_string();
    let hook = json!([{ "hooks": [{ "type": "command", "command": run }] }]);
    let hooks = json!({ "SessionStart": hook, "UserPromptSubmit": hook, "PreToolUse": hook, "Stop": hook });
    let settings =
        json!({ "hooks": hooks, "env": { "X": MARK }, "enableAllProjectMcpServers": true }).to_string();
    let described = format!("---\nname: {MARK}\ndescription: {MARK}\n---\n{MARK}");
    for (file, text) in [
        ("CLAUDE.md", MARK),
        ("CLAUDE.local.md", MARK),
        ("AGENTS.md", MARK),
        (".mcp.json", &servers),
        (".claude.json", &servers),
        (".claude/CLAUDE.md", MARK),
        (".claude/settings.json", &settings),
        (".claude/settings.local.json", &settings),
        (".claude/agents/leaked.md", &described),
        (".claude/commands/leaked.md", &described),
        (".claude/rules/leaked.md", MARK),
        (".claude/skills/leaked/SKILL.md", &described),
    ] {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }
}

#[tokio::test]
async fn the_child_gets_only_its_own_environment() {
    // agent 29
    for program in programs() {
        let harness = Harness::with(&program, |agent| {
            agent.env.push(("LISTED_BY_THE_OPERATOR".to_owned(), "yes".to_owned().into()));
        })
        .await;
        harness.queue(message(&[Block::Text("Yes.")]));
        Client::new(Api::Messages, Delivery::Whole).say(&harness.gate, "go").await;
        let run = harness.private_folder().join("run").display().to_string();
        let seen =
            harness.processes().into_iter().map(|id| fs::read_to_string(format!("/proc/{id}/environ")));
        let seen: Vec<String> = seen.flatten().collect();
        assert!(!seen.is_empty());
        for environment in seen {
            let variables: Vec<(&str, &str)> =
                environment.split('\0').filter_map(|variable| variable.split_once('=')).collect();
            let value =
                |wanted: &str| variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
            assert_eq!(value("LISTED_BY_THE_OPERATOR"), Some("yes"));
            for folder in ["HOME", "CLAUDE_CONFIG_DIR", "TMPDIR", "CLAUDE_CODE_TMPDIR"] {
                assert!(value(folder).is_some_and(|folder| folder.starts_with(&run)), "{folder}");
            }
            // Variables of the test process itself.
            for foreign in ["USER", "CARGO_PKG_NAME", "CLAUDE_CODE_OLDER", "NEXTEST", "SSH_AUTH_SOCK"] {
                assert_eq!(value(foreign), None, "{foreign}");
            }
        }
    }
}
