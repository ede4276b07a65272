//! `toolgate console` and `toolgate approvals` against a running gateway.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Output;

use serde_json::json;
use tempfile::TempDir;

use crate::gateway_process::{GatewayProcess, run};

/// A gateway that asks about everything, and the home folder of the commands, with the same config.
fn start() -> (GatewayProcess, TempDir) {
    let data = tempfile::tempdir().unwrap();
    let config = format!(
        "store = \"sqlite:{}/gate.db\"\n[approvals]\nrules = [\"ask *\"]\n[models.demo]\ndemo = true\n",
        data.path().display()
    );
    let home = || {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("toolgate.toml"), &config).unwrap();
        home
    };
    // Lives as long as the test's process, like the gateway.
    std::mem::forget(data);
    (GatewayProcess::start(home(), &["--listen", "127.0.0.1:0"]), home())
}

/// An agent elsewhere that asks and waits.
fn ask(address: SocketAddr, command: &str) -> TcpStream {
    let body = json!({
        "session_id": "s", "cwd": "/w", "hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": { "command": command },
    })
    .to_string();
    let mut client = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(client, "POST /hooks/permission-request HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").unwrap();
    client
}

fn read_answer(mut client: TcpStream) -> String {
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut client, &mut answer).unwrap();
    answer
}

fn command(home: &TempDir, gateway: &GatewayProcess, arguments: &[&str]) -> (bool, String) {
    let listen = gateway.address.to_string();
    let Output { status, stdout, stderr } = run(home, &[arguments, &["--listen", &listen]].concat());
    (status.success(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

/// Lists until a question is there, and returns the list and its id.
fn wait_for_question(home: &TempDir, gateway: &GatewayProcess) -> (String, String) {
    loop {
        let (_, listed) = command(home, gateway, &["approvals"]);
        if let Some((_, id)) = listed.split_once("  id ") {
            let id = id.lines().next().unwrap().to_owned();
            return (listed, id);
        }
    }
}

#[test]
fn questions_are_listed_in_full_and_answered() {
    let (gateway, home) = start();
    let (ok, listed) = command(&home, &gateway, &["approvals", "list"]);
    assert!(ok && listed.contains("Nothing waits"), "{listed}");
    let long = format!("echo {}\u{202e}end", "x".repeat(3_000));
    for (arguments, decision) in [
        (vec!["allow"], r#""behavior":"allow""#),
        (vec!["deny", "Use", "the", "blue", "one."], "says: Use the blue one."),
        (vec!["answer", "It says 42."], "It says 42."),
    ] {
        let client = ask(gateway.address, &long);
        let (listed, id) = wait_for_question(&home, &gateway);
        assert!(listed.contains(&format!("$ echo {}‹U+202E›end", "x".repeat(3_000))), "{listed}");
        let arguments = [&["approvals", arguments[0], &id], &arguments[1..]].concat();
        let (ok, said) = command(&home, &gateway, &arguments);
        assert!(ok && said.contains("by terminal"), "{said}");
        let answer = read_answer(client);
        assert!(answer.contains(decision), "{answer}");
        let (ok, said) = command(&home, &gateway, &arguments);
        assert!(!ok && said.contains("somebody else has answered"), "{said}");
        let (ok, shown) = command(&home, &gateway, &["approvals", "show", &id]);
        assert!(ok && shown.contains("by terminal"), "{shown}");
    }
}

#[test]
fn the_console_link_carries_a_token_that_opens_the_api() {
    let (gateway, home) = start();
    let (ok, link) = command(&home, &gateway, &["console"]);
    let (address, token) = link.trim().split_once("#token=").unwrap();
    assert!(ok);
    assert_eq!(address, format!("http://{}/console", gateway.address));
    let authorization = format!("Bearer {token}");
    let opened = gateway.get_with("/console/api/approvals", &[("authorization", &authorization)]);
    assert_eq!(opened.status, 200, "{}", opened.body);
    assert_eq!(gateway.get("/console/api/approvals").status, 401);
    assert_ne!(command(&home, &gateway, &["console"]).1, link, "every token is different");
}

#[test]
fn a_gateway_that_does_not_run_is_reported() {
    let failure = |home: &TempDir| {
        let Output { status, stderr, .. } = run(home, &["approvals", "list", "--listen", "127.0.0.1:9"]);
        assert!(!status.success());
        String::from_utf8(stderr).unwrap()
    };
    let said = failure(&tempfile::tempdir().unwrap());
    assert!(said.contains("there is no gateway yet"), "{said}");
    let (_gateway, home) = start();
    let said = failure(&home);
    assert!(said.contains("cannot reach the gateway at http://127.0.0.1:9/"), "{said}");
}

#[test]
fn a_gateway_with_a_store_in_memory_prints_its_own_token() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("toolgate.toml"), "store = \"memory\"\n[models.demo]\ndemo = true\n")
        .unwrap();
    let Output { status, stderr, .. } = run(&home, &["console"]);
    let said = String::from_utf8(stderr).unwrap();
    assert!(!status.success() && said.contains("only the gateway itself can make a token"), "{said}");
    let mut gateway = GatewayProcess::start(home, &["--listen", "127.0.0.1:0"]);
    gateway.curl_line();
    let (_, token) = gateway.greeting.split_once("/console#token=").unwrap();
    let authorization = format!("Bearer {}", token.lines().next().unwrap());
    assert_eq!(gateway.get_with("/console/api/rules", &[("authorization", &authorization)]).status, 200);
}
