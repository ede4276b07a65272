//! The real Claude Code behind the real binary, with the demo model: no account and no network. Needs its paths in
//! `CLAUDE_CODE_OLDER` and `CLAUDE_CODE_CURRENT`, which `cargo xtask test` sets.

mod sandbox;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway_process::GatewayProcess;

/// How long a busy machine may take to end a process.
const END_TIMEOUT: Duration = Duration::from_mins(1);

fn programs() -> Vec<String> {
    #[expect(clippy::disallowed_methods, reason = "`cargo xtask test` passes the paths in variables")]
    let named = ["CLAUDE_CODE_OLDER", "CLAUDE_CODE_CURRENT"].map(std::env::var);
    let programs: Vec<String> = named.into_iter().flatten().collect();
    assert_eq!(
        programs.len(),
        2,
        "run `cargo xtask test`, or `cargo nextest run --profile quick` without these"
    );
    programs
}

/// A gateway with an agent, and the agent's private folder.
fn gateway(program: &str) -> (GatewayProcess, String) {
    let home = tempfile::tempdir().unwrap();
    let config = format!(
        "[agents.claude]\ncommand = \"{program}\"\nmodel = \"demo\"\n[models.\"claude-code\"]\nagent = \"claude\"\n\
         [models.demo]\ndemo = true\n"
    );
    std::fs::write(home.path().join("toolgate.toml"), config).unwrap();
    let folder = home.path().join(".local/share/toolgate/agents/claude").display().to_string();
    (GatewayProcess::start(home, &["--listen", "127.0.0.1:0"]), folder)
}

fn processes(folder: &str) -> usize {
    let home = format!("HOME={folder}/run/");
    let is_ours = |process: &Path| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&home)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| is_ours(&entry.path())).count()
}

fn ask(gateway: &GatewayProcess, messages: &Value) -> Value {
    let tool = json!({ "name": "get_weather", "input_schema": { "type": "object", "properties": { "city": { "type": "string" } } } });
    let body = json!({ "model": "claude-code", "max_tokens": 100, "tools": [tool], "messages": messages });
    let reply = gateway.post("/v1/messages", &body);
    assert_eq!(reply.status, 200, "{}", reply.body);
    serde_json::from_str(&reply.body).unwrap()
}

#[test]
fn a_killed_gateway_leaves_no_process_and_another_gateway_continues_the_session() {
    // X2, X4
    for program in programs() {
        let (mut first, folder) = gateway(&program);
        let mut messages = vec![json!({ "role": "user", "content": "Please call get_weather for Paris." })];
        let reply = ask(&first, &json!(messages));
        let call =
            reply["content"].as_array().unwrap().iter().find(|block| block["type"] == "tool_use").unwrap();
        assert_eq!((&call["name"], &reply["stop_reason"]), (&json!("get_weather"), &json!("tool_use")));
        assert_ne!(processes(&folder), 0);

        first.child.kill().unwrap();
        let began = Instant::now();
        while processes(&folder) > 0 {
            assert!(began.elapsed() < END_TIMEOUT, "an agent process outlived the gateway");
            std::thread::yield_now();
        }

        messages.push(json!({ "role": "assistant", "content": reply["content"] }));
        let result = json!({ "type": "tool_result", "tool_use_id": call["id"], "content": "21 C" });
        messages.push(json!({ "role": "user", "content": [result] }));
        let (second, _) = gateway(&program);
        let reply = ask(&second, &json!(messages));
        assert_eq!(reply["stop_reason"], "end_turn");
        assert!(reply["content"].to_string().contains("21 C"), "{reply}");
    }
}
