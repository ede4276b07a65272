//! Rules on tools by their names and effects.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

fn check_tools(texts: &[&str], cases: &[(&str, Value, &str)]) {
    let project = Project::new();
    let rules = project.rules(texts);
    for (tool, input, expected) in cases {
        let input = serde_json::from_str(&project.fill(&input.to_string())).unwrap();
        assert_eq!(say(&rules, tool, &input, &project.workdir()), *expected, "{texts:?}: {tool} {input}");
    }
}

#[test]
fn every_tool_that_runs_a_command_follows_the_rules_for_bash() {
    let rules = ["allow Bash(ls:*)", "deny Bash(rm:*)", "deny Read(**/.env)"];
    check_tools(
        &rules,
        &[
            ("Bash", json!({ "command": "ls" }), "allow"),
            ("Monitor", json!({ "command": "ls", "persistent": false }), "allow"),
            ("Monitor", json!({ "command": "rm x" }), "deny"),
            ("Monitor", json!({ "command": "cat .env" }), "deny"),
            ("Monitor", json!({ "ws": { "url": "ws://x" } }), "-"),
            ("Bash", json!({}), "doubt"),
            ("Bash", json!({ "command": ["ls"] }), "doubt"),
            // Their syntax is not a shell's, or not known.
            ("PowerShell", json!({ "command": "ls" }), "doubt"),
            ("PowerShell", json!({ "command": "rm x" }), "deny"),
            ("REPL", json!({ "code": "ls" }), "doubt"),
            ("mcp__box__exec", json!({ "command": "ls" }), "doubt"),
            ("mcp__box__exec", json!({ "cmd": ["rm", "x"] }), "doubt"),
            ("NewShell", json!({ "script": "rm x" }), "deny"),
        ],
    );
    check_tools(
        &["allow Bash", "allow mcp__box__exec"],
        &[
            ("Monitor", json!({ "command": "$X" }), "allow"),
            ("PowerShell", json!({ "command": "ls" }), "-"),
            ("NewShell", json!({ "command": "ls" }), "-"),
            ("mcp__box__exec", json!({ "command": "ls" }), "allow"),
        ],
    );
}

#[test]
fn an_unknown_tool_is_allowed_only_by_name_and_asked_about_if_it_may_touch_a_denied_path() {
    check_tools(
        &["allow Read", "allow Edit", "allow Bash", "allow mcp__fs", "allow TodoWrite", "deny Read(**/.env)"],
        &[
            ("NewTool", json!({ "path": "src/main.rs" }), "-"),
            ("NewTool", json!({ "path": "src" }), "doubt"),
            ("NewTool", json!({}), "-"),
            ("TodoWrite", json!({ "todos": [{ "content": "Read .env", "status": "pending" }] }), "allow"),
            ("mcp__fs__read", json!({ "path": "src/main.rs" }), "allow"),
            ("mcp__fs__read", json!({ "path": ".env" }), "doubt"),
            ("mcp__fs__read", json!({ "options": { "files": ["a", "conf/../.env"] } }), "doubt"),
            ("mcp__fs__read", json!({ "uri": "file://PROJECT/.env" }), "doubt"),
            ("mcp__fs__search", json!({ "below": "conf" }), "doubt"),
            ("mcp__fs__search", json!({ "many": vec!["a"; 2_000] }), "doubt"),
        ],
    );
}

#[test]
fn tools_are_matched_by_name_or_by_server() {
    let texts = [
        "allow mcp__git",
        "deny mcp__git__push",
        "allow mcp__db__read_*",
        "allow mcp__*__echo",
        "ask Task",
        "allow Todo*",
    ];
    let cases = [
        ("mcp__git__log", "allow"),
        ("mcp__git__push", "deny"),
        ("mcp__github__log", "-"),
        ("mcp__git", "allow"),
        ("mcp__db__read_row", "allow"),
        ("mcp__db__write_row", "-"),
        ("mcp__any__echo", "allow"),
        ("mcp__any__echo2", "-"),
        ("Task", "ask"),
        ("Agent", "ask"),
        ("TodoWrite", "allow"),
        ("task", "-"),
    ];
    check_tools(&texts, &cases.map(|(tool, expected)| (tool, json!({}), expected)));
    check_tools(&["allow *", "ask *"], &[("Task", json!({}), "ask")]);
}

#[test]
fn urls_are_compared_by_their_host() {
    let cases = [
        ("https://example.com/x?y#z", "allow"),
        ("http://EXAMPLE.com:8080", "allow"),
        ("https://example.com./", "allow"),
        ("https://docs.rs/x", "-"),
        ("https://a.docs.rs/x", "allow"),
        ("https://evildocs.rs/x", "-"),
        ("https://example.com.evil.com", "-"),
        ("https://evil.com/example.com", "-"),
        ("https://evil.com?example.com", "-"),
        ("https://bad.com/", "deny"),
        ("https://x.worse.com/", "deny"),
        // Programs parse these differently.
        ("https://example.com@evil.com/", "doubt"),
        ("https://evil.com\\@example.com/", "doubt"),
        ("https://example.com%2eevil.com/", "doubt"),
        ("https://exämple.com/", "doubt"),
        ("https:///example.com", "doubt"),
        ("file:///etc/passwd", "doubt"),
        ("example.com", "doubt"),
    ];
    let texts = [
        "allow WebFetch(domain:example.com)",
        "allow WebFetch(domain:*.docs.rs)",
        "deny WebFetch(domain:bad.com)",
        "deny WebFetch(domain:*.worse.com)",
    ];
    check_tools(
        &texts,
        &cases.map(|(url, expected)| ("WebFetch", json!({ "url": url, "prompt": "x" }), expected)),
    );
    check_tools(
        &["allow Monitor", "deny WebFetch(domain:bad.com)"],
        &[
            ("Monitor", json!({ "ws": { "url": "https://bad.com" } }), "doubt"),
            ("Monitor", json!({ "ws": { "url": "https://good.com" } }), "allow"),
        ],
    );
}

#[test]
fn no_input_is_too_much_for_the_rules() {
    let project = Project::new();
    let rules = project.rules(&[
        "allow Bash(ls:*)",
        "deny Read(**/.env)",
        "ask Edit(src/*)",
        "deny Bash(git push:*)",
    ]);
    let texts = prop_oneof![any::<String>(), "[-a-z./*?~:=@ '\"&|;é\\[]{0,60}"];
    let uses = (prop::sample::select(&["Bash", "Read", "Write", "Grep", "Glob", "WebFetch", "X"][..]), texts);
    let config = Config { failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&uses, |(tool, text)| {
        let mut workdir = project.workdir();
        for key in ["command", "file_path", "path", "url"] {
            let input = json!({ key: text, "pattern": text });
            let ruling = say(&rules, tool, &input, &workdir);
            prop_assert!(ruling != "allow" || text.contains("ls"), "{tool} {input}");
            workdir.after(tool, &input);
        }
        Ok(())
    });
    outcome.unwrap();
}
