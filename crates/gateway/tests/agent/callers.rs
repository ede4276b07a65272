//! Callers with different keys share nothing: no session, no record, no process.

use serde_json::json;
use sha2::{Digest, Sha256};
use toolgate_backend::config::Builtins;
use toolgate_gateway::config::{Key, ModelPattern};

use crate::client::{Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says};

fn key(name: &str) -> Key {
    let models = vec![ModelPattern::new("*")];
    Key { name: name.to_owned(), sha256: Sha256::digest(name).into(), models }
}

/// A client whose key is its name.
fn client_of(name: &str, session: Option<&str>) -> Client {
    let mut client = Client::new(Api::Messages, Delivery::Whole);
    client.headers = vec![("x-api-key", name.to_owned())];
    client.headers.extend(session.map(|session| ("x-session-id", session.to_owned())));
    client
}

#[tokio::test]
async fn a_session_is_known_to_its_own_key_alone() {
    // agent 16
    for program in programs() {
        let stage = Stage::set(&program, |setting| {
            setting.config.keys = vec![key("alice"), key("bob")];
            setting.agent.builtins = Builtins::Only(vec!["Read".to_owned()]);
        })
        .await;
        let note = stage.workdir().join("note.txt");
        std::fs::write(&note, "alices-own-secret").expect("a file");
        let read = json!({ "file_path": note.display().to_string() });

        let mut alice = client_of("alice", Some("ours"));
        stage.on(says(&[Piece::Text("I read."), Piece::Call("toolu_r", "Read", read)]));
        stage.on(says(&[Piece::Text("And keep it.")]));
        alice.say(&stage.gate, "Read my note.").await;
        assert!(stage.heard()[2].to_string().contains("alices-own-secret"));
        stage.forget();

        // Bob knows her session's name, her words, and even what she was told.
        let mut bob = client_of("bob", Some("ours"));
        stage.on(says(&[Piece::Text("Which note?")]));
        bob.say(&stage.gate, "What was in the note?").await;
        assert_eq!(stage.heard(), bob.said[..1]);
        let mut bob = client_of("bob", Some("ours"));
        stage.on(says(&[Piece::Text("I cannot.")]));
        assert_eq!(bob.say(&stage.gate, "Read my note.").await.text, "I cannot.");
        for session in [None, Some("ours")] {
            let mut bob = client_of("bob", session);
            bob.history.clone_from(&alice.history);
            bob.said.clone_from(&alice.said);
            stage.on(says(&[Piece::Text("I do not know.")]));
            bob.say(&stage.gate, "What was in it?").await;
            assert_eq!(stage.heard(), bob.said[..3], "nothing of what her agent did by itself");
        }
        for asked in stage.asked() {
            assert!(!String::from_utf8_lossy(&asked.body).contains("alices-own-secret"));
        }

        // Hers is as it was.
        let mut alice = client_of("alice", Some("ours"));
        stage.on(says(&[Piece::Text("A secret.")]));
        alice.say(&stage.gate, "What was in the note?").await;
        assert!(stage.heard()[2].to_string().contains("alices-own-secret"), "{:?}", stage.heard());
    }
}
