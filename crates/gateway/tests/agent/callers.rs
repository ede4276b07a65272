//! Callers with different keys share no session, no record and no process, and none can hold all processes.

use std::time::Duration;

use serde_json::json;
use sha2::{Digest, Sha256};
use toolgate_backend::config::Builtins;
use toolgate_gateway::config::{Key, ModelPattern};

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs, start_message};

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
async fn a_session_belongs_to_one_key() {
    // agent 16
    for program in programs() {
        let harness = Harness::set(&program, |config| {
            config.config.keys = vec![key("alice"), key("bob")];
            config.agent.builtins = Builtins::Only(vec!["Read".to_owned()]);
        })
        .await;
        let note = harness.workdir().join("note.txt");
        std::fs::write(&note, "alices-own-secret").expect("a file");
        let read = json!({ "file_path": note.display().to_string() });

        let mut alice = client_of("alice", Some("ours"));
        harness.queue(message(&[Block::Text("I read."), Block::Call("toolu_r", "Read", read)]));
        harness.queue(message(&[Block::Text("And keep it.")]));
        alice.say(&harness.gate, "Read my note.").await;
        assert!(harness.model_messages()[2].to_string().contains("alices-own-secret"));
        harness.clear_requests();

        // Bob knows the name of her session, her messages and the replies.
        let mut bob = client_of("bob", Some("ours"));
        harness.queue(message(&[Block::Text("Which note?")]));
        bob.say(&harness.gate, "What was in the note?").await;
        assert_eq!(harness.model_messages(), bob.expected[..1]);
        let mut bob = client_of("bob", Some("ours"));
        harness.queue(message(&[Block::Text("I cannot.")]));
        assert_eq!(bob.say(&harness.gate, "Read my note.").await.text, "I cannot.");
        for session in [None, Some("ours")] {
            let mut bob = client_of("bob", session);
            bob.history.clone_from(&alice.history);
            bob.expected.clone_from(&alice.expected);
            harness.queue(message(&[Block::Text("I do not know.")]));
            bob.say(&harness.gate, "What was in it?").await;
            assert_eq!(
                harness.model_messages(),
                bob.expected[..3],
                "nothing of what her agent did by itself"
            );
        }
        for asked in harness.model_requests() {
            assert!(!String::from_utf8_lossy(&asked.body).contains("alices-own-secret"));
        }

        // Alice's session is unchanged.
        let mut alice = client_of("alice", Some("ours"));
        harness.queue(message(&[Block::Text("A secret.")]));
        alice.say(&harness.gate, "What was in the note?").await;
        assert!(
            harness.model_messages()[2].to_string().contains("alices-own-secret"),
            "{:?}",
            harness.model_messages()
        );
    }
}

#[tokio::test]
async fn a_free_process_goes_to_the_waiting_caller_with_the_fewest() {
    for program in programs() {
        let harness = Harness::set(&program, |config| {
            config.config.keys = vec![key("alice"), key("bob")];
            // Streams begin while their requests still wait for a process.
            config.config.limits.commit_after = Duration::from_millis(100);
            (config.agent.pool.warm, config.agent.pool.max) = (0, 2);
            config.agent.pool.queue_wait = Duration::from_mins(5);
        })
        .await;
        let ask = async |name: &str, text: &str, until: &str| {
            let mut client = client_of(name, None);
            client.delivery = Delivery::Streamed;
            client.push(json!({ "role": "user", "content": text }));
            let mut answer = client.send(&harness.gate).await;
            answer.until(until).await;
            answer
        };
        let mut busy = Vec::new();
        for text in ["one", "two"] {
            harness.queue(start_message().stall());
            busy.push(ask("alice", text, "message_start").await);
        }
        let mut alices = ask("alice", "three", "ping").await;
        let mut bobs = ask("bob", "mine", "ping").await;
        harness.queue(message(&[Block::Text("For Bob.")]));
        drop(busy.pop());
        bobs.until("For Bob.").await;
        harness.queue(message(&[Block::Text("For Alice.")]));
        alices.until("For Alice.").await;
    }
}
