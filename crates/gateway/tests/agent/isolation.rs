//! Nothing of whoever runs the gateway reaches the agent: no memory, settings, hooks, servers or environment.

use std::fs;
use std::path::Path;

use serde_json::json;
use toolgate_backend::config::Builtins;

use crate::client::{Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says};

/// Stands in every text that must not reach the model.
const MARK: &str = "leaked-marker";

#[tokio::test]
async fn files_for_a_persons_own_agent_do_not_reach_this_one() {
    // agent 29: where it works and in every folder above, with and without tools of its own
    for program in programs() {
        for builtins in [Builtins::None, Builtins::Only(vec!["Read".to_owned()])] {
            let project = tempfile::tempdir().expect("a folder");
            let work = project.path().join("below/work");
            fs::create_dir_all(&work).expect("folders");
            let ran = project.path().join("ran");
            for folder in work.ancestors().take(3) {
                instruct(folder, &ran);
            }
            let stage = Stage::with(&program, |agent| {
                agent.builtins = builtins.clone();
                agent.workdir = Some(work.clone());
            })
            .await;
            instruct(&stage.home(), &ran);
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            stage.on(says(&[Piece::Call("toolu_a", "mcp__client__get_time", json!({}))]));
            client.say(&stage.gate, "go").await;
            stage.on(says(&[Piece::Text("Noon.")]));
            client.answer(&stage.gate, &[("toolu_a", "12:00")]).await;
            for asked in stage.asked() {
                let text = String::from_utf8_lossy(&asked.body).into_owned();
                assert!(!text.contains(MARK), "{builtins:?}: {text:.2000}");
            }
            assert_eq!(stage.asked().len(), 2);
            assert!(!ran.exists(), "no command of theirs is run");
        }
    }
}

/// Puts into a folder whatever a person would tell their own agent there.
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
async fn the_child_sees_its_own_environment_alone() {
    // agent 29
    for program in programs() {
        let stage = Stage::with(&program, |agent| {
            agent.env.push(("LISTED_BY_THE_OPERATOR".to_owned(), "yes".to_owned().into()));
        })
        .await;
        stage.on(says(&[Piece::Text("Yes.")]));
        Client::new(Api::Messages, Delivery::Whole).say(&stage.gate, "go").await;
        let home = stage.home().display().to_string();
        let seen = stage.processes().into_iter().map(|id| fs::read_to_string(format!("/proc/{id}/environ")));
        let seen: Vec<String> = seen.flatten().collect();
        assert!(!seen.is_empty());
        for environment in seen {
            let variables: Vec<(&str, &str)> =
                environment.split('\0').filter_map(|variable| variable.split_once('=')).collect();
            let value =
                |wanted: &str| variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
            assert_eq!((value("HOME"), value("LISTED_BY_THE_OPERATOR")), (Some(home.as_str()), Some("yes")));
            assert!(value("CLAUDE_CONFIG_DIR").is_some_and(|folder| folder.starts_with(&home)));
            // What this test itself was started with.
            for foreign in ["USER", "CARGO_PKG_NAME", "CLAUDE_CODE_OLDER", "NEXTEST", "SSH_AUTH_SOCK"] {
                assert_eq!(value(foreign), None, "{foreign}");
            }
        }
    }
}
