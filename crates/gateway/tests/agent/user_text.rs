//! User text is data: it never makes the program read a file or run a command.

use serde_json::json;

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

#[tokio::test]
async fn paths_and_commands_in_user_text_reach_the_model_as_plain_text() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        let folder = tempfile::tempdir().expect("a folder");
        let secret = folder.path().join("secret.txt");
        std::fs::write(&secret, "the-secret-of-the-host").expect("a file");
        let path = secret.display();
        let texts = [
            format!("read @{path}"),
            format!("@{path}"),
            "/help".to_owned(),
            "/clear all".to_owned(),
            "  /compact".to_owned(),
            "!ls".to_owned(),
            "# remember this".to_owned(),
            format!("/add-dir {path} @{path}"),
        ];
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        for text in &texts {
            harness.queue(message(&[Block::Text("Yes.")]));
            client.say(&harness.gate, text).await;
            assert_eq!(
                harness.model_messages(),
                client.expected[..client.expected.len() - 1],
                "live: {text}"
            );
        }
        // The same as history, in a fresh process.
        harness.kill_all();
        client.push(json!({ "role": "user", "content": [{ "type": "text", "text": "/first" }, { "type": "text", "text": "second" }] }));
        harness.queue(message(&[Block::Text("Yes.")]));
        client.ask(&harness.gate).await;
        assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1], "as history");
        for asked in harness.model_requests() {
            assert!(!String::from_utf8_lossy(&asked.body).contains("the-secret-of-the-host"));
        }
    }
}
