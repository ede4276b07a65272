//! What a user says is data: no file is read and no command run because of it.

use serde_json::json;

use crate::client::{Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says};

#[tokio::test]
async fn paths_and_commands_in_a_users_text_reach_the_model_as_plain_text() {
    for program in programs() {
        let stage = Stage::new(&program).await;
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
            stage.on(says(&[Piece::Text("Yes.")]));
            client.say(&stage.gate, text).await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1], "live: {text}");
        }
        // And again as history, on a process that knows nothing of it.
        stage.kill_all();
        client.push(json!({ "role": "user", "content": [{ "type": "text", "text": "/first" }, { "type": "text", "text": "second" }] }));
        stage.on(says(&[Piece::Text("Yes.")]));
        client.ask(&stage.gate).await;
        assert_eq!(stage.heard(), client.said[..client.said.len() - 1], "as history");
        for asked in stage.asked() {
            assert!(!String::from_utf8_lossy(&asked.body).contains("the-secret-of-the-host"));
        }
    }
}
