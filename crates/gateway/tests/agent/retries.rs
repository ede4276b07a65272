//! Retries: a reply that the client did not get is replayed, and equal words in a new conversation run again (B7).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use toolgate_backend::config::Builtins;
use toolgate_state::{UnixMillis, UsageGroup};

use crate::client::{ALL, Api, Client, Delivery, Reply};
use crate::clock::ManualClock;
use crate::gate::Gate;
use crate::harness::{Block, Harness, message, programs, start_message};

const TIME: &str = "mcp__client__get_time";

/// What the SDKs send with their first retry.
const SDK_RETRY: (&str, &str) = ("x-stainless-retry-count", "1");

/// More than the buffers of a connection hold, so that the end of it cannot be written while the client reads nothing.
const LARGE_REPLY_BYTES: usize = 5 * 1024 * 1024;

fn asking(api: Api, delivery: Delivery, text: &str) -> Client {
    let mut client = Client::new(api, delivery);
    client.push(json!({ "role": "user", "content": text }));
    client
}

/// Sends the conversation with one more header.
async fn ask_with(client: &mut Client, (name, value): (&'static str, &str), gate: &Gate) -> Reply {
    client.headers.push((name, value.to_owned()));
    let reply = client.ask_once(gate).await;
    client.headers.pop();
    reply
}

/// Sends the conversation on a connection that breaks when this many bytes have arrived.
async fn cut_after(bytes: usize, client: &Client, gate: &Gate) {
    drop(stop_reading_after(bytes, client, gate).await);
}

/// Sends the conversation on a connection on which nothing is read after this many bytes.
async fn stop_reading_after(bytes: usize, client: &Client, gate: &Gate) -> TcpStream {
    let body = client.body().to_string();
    let own: Vec<String> =
        client.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "POST {} HTTP/1.1\r\nhost: localhost\r\n{}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        client.path(),
        own.concat(),
        body.len()
    );
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let mut connection = socket.connect(gate.running.address()).await.expect("a connection");
    connection.write_all(request.as_bytes()).await.expect("the gateway reads");
    connection.read_exact(&mut vec![0; bytes]).await.expect("the gateway replies");
    connection
}

/// One client of each API.
const SOME: [(Api, Delivery); 3] =
    [(Api::Messages, Delivery::Streamed), (Api::Chat, Delivery::Whole), (Api::Responses, Delivery::Streamed)];

#[tokio::test]
async fn equal_words_after_a_delivered_reply_are_a_new_conversation() {
    // B7, agent 14
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (api, delivery) in ALL {
            harness.clear_requests();
            let mut clients = Vec::new();
            for text in ["One.", "Two."] {
                let mut client = asking(api, delivery, &format!("Hello {api:?} {delivery:?}"));
                harness.queue(message(&[Block::Text(text)]));
                let reply = client.ask(&harness.gate).await;
                assert_eq!((reply.text.as_str(), reply.replayed), (text, false), "{api:?} {delivery:?}");
                clients.push((client, reply.session));
            }
            assert_ne!(clients[0].1, clients[1].1, "each has a session of its own");
            for (client, session) in &mut clients {
                harness.queue(message(&[Block::Text("Gladly.")]));
                let reply = client.say(&harness.gate, "Thanks").await;
                assert_eq!(
                    (harness.model_messages().as_slice(), &reply.session),
                    (&client.expected[..3], &*session)
                );
            }
            assert_eq!(harness.model_requests().len(), 4);
        }
    }
}

#[tokio::test]
async fn a_restarted_gateway_knows_what_was_delivered() {
    // B7
    let large = "x".repeat(LARGE_REPLY_BYTES);
    for program in programs() {
        let mut harness = Harness::new(&program).await;
        harness.queue(message(&[Block::Text("Hello.")]));
        let delivered = asking(Api::Messages, Delivery::Whole, "Hello");
        delivered.ask_once(&harness.gate).await;
        harness.queue(message(&[Block::Text(&large)]));
        let cut = asking(Api::Messages, Delivery::Whole, "A lot");
        cut_after(1000, &cut, &harness.gate).await;
        harness.restart().await;
        assert!(cut.ask_once(&harness.gate).await.replayed);
        harness.queue(message(&[Block::Text("Hello again.")]));
        assert_eq!(delivered.ask_once(&harness.gate).await.text, "Hello again.");
    }
}

#[tokio::test]
async fn a_retry_of_an_sdk_gets_the_reply_of_the_first_run() {
    // B7, agent 19, M9: the client did not get the reply, although the gateway wrote all of it
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (number, (api, delivery)) in ALL.into_iter().enumerate() {
            harness.clear_requests();
            let mut client = asking(api, delivery, &format!("Go {number}."));
            let call = format!("toolu_{number}");
            harness.queue(message(&[Block::Text("Once."), Block::Call(&call, TIME, json!({}))]));
            let first = client.ask_once(&harness.gate).await;
            assert!(!first.replayed);
            let again = ask_with(&mut client, SDK_RETRY, &harness.gate).await;
            assert_eq!(again, Reply { replayed: true, ..first });
            assert_eq!(harness.model_requests().len(), 1, "nothing runs twice");
            client.add_reply(&again);
            harness.queue(message(&[Block::Text("Noon.")]));
            assert_eq!(client.answer(&harness.gate, &[(&call, "12:00")]).await.text, "Noon.");
            assert_eq!(harness.model_messages(), client.expected[..3]);
        }
    }
}

#[tokio::test]
async fn a_connection_cut_at_any_byte_and_the_retry_of_an_sdk_are_one_run() {
    // B7
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (api, delivery) in ALL {
            // Within the head and in the body.
            for bytes in [200, 550] {
                harness.clear_requests();
                harness.queue(message(&[Block::Text("Once.")]));
                let mut client = asking(api, delivery, &format!("{api:?} {delivery:?} {bytes}"));
                cut_after(bytes, &client, &harness.gate).await;
                // A stream may have been cut while the model still answered. Then the turn goes on.
                harness.queue(message(&[Block::Text("Once.")]));
                let reply = ask_with(&mut client, SDK_RETRY, &harness.gate).await;
                assert_eq!(reply.text, "Once.", "{api:?} {delivery:?} {bytes}");
                assert!(reply.replayed || delivery == Delivery::Streamed, "{api:?} {bytes}");
                assert_eq!(harness.model_requests().len(), if reply.replayed { 1 } else { 2 });
                harness.clear_queue();
            }
        }
    }
}

#[tokio::test]
async fn a_reply_that_was_not_delivered_is_replayed_once() {
    // B7: no header says that it is a retry
    let large = "x".repeat(LARGE_REPLY_BYTES);
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (api, delivery) in ALL {
            harness.clear_requests();
            harness.queue(message(&[Block::Text(&large)]));
            let client = asking(api, delivery, &format!("A lot {api:?} {delivery:?}"));
            let stuck = stop_reading_after(1000, &client, &harness.gate).await;
            // A stream that is cut may be cut while the model still answers, so it is only stuck.
            let stuck = Some(stuck).filter(|_| delivery == Delivery::Streamed);
            let reply = client.ask_once(&harness.gate).await;
            assert_eq!((reply.text.len(), reply.replayed), (large.len(), true), "{api:?} {delivery:?}");
            assert_eq!(harness.model_requests().len(), 1, "{api:?} {delivery:?}");
            harness.queue(message(&[Block::Text("Enough.")]));
            let reply = client.ask_once(&harness.gate).await;
            assert_eq!((reply.text.as_str(), reply.replayed), ("Enough.", false), "it was delivered now");
            drop(stuck);
        }
    }
}

#[tokio::test]
async fn requests_with_one_idempotency_key_are_one_request() {
    // B7
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (api, delivery) in SOME {
            harness.clear_requests();
            let mut client = asking(api, delivery, "Pay.");
            let [one, other] = ["one", "other"].map(|key| format!("{key} {api:?} {delivery:?}"));
            for (key, expected, replayed) in [
                (&one, "First.", false),
                (&one, "First.", true),
                (&other, "Second.", false),
                (&one, "First.", true),
            ] {
                if !replayed {
                    harness.queue(message(&[Block::Text(expected)]));
                }
                let reply = ask_with(&mut client, ("idempotency-key", key), &harness.gate).await;
                assert_eq!((reply.text.as_str(), reply.replayed), (expected, replayed), "{key}");
            }
            assert_eq!(harness.model_requests().len(), 2);
            let mut different = asking(api, delivery, "Pay more.");
            different.headers = vec![("idempotency-key", one)];
            let answer = different.send(&harness.gate).await;
            let (status, error) = (answer.status(), answer.json().await);
            assert_eq!(status, 422, "{error}");
            assert_eq!(error_code(api, &error), "idempotency_key_reused", "{error}");
            assert_eq!(harness.model_requests().len(), 2);
        }
        let long = "k".repeat(256);
        for invalid in ["", &long] {
            let mut client = asking(Api::Chat, Delivery::Whole, "Pay.");
            client.headers = vec![("idempotency-key", invalid.to_owned())];
            assert_eq!(client.send(&harness.gate).await.status(), 400);
        }
    }
}

fn error_code(api: Api, error: &Value) -> String {
    let code = match api {
        Api::Messages => &error["error"]["details"]["error_code"],
        Api::Chat | Api::Responses => &error["error"]["code"],
    };
    code.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn several_answers_are_several_runs() {
    // B7
    for program in programs() {
        let harness = Harness::new(&program).await;
        for delivery in [Delivery::Whole, Delivery::Streamed] {
            harness.clear_requests();
            let mut client = asking(Api::Chat, delivery, &format!("Choose {delivery:?}"));
            client.extra = json!({ "n": 3 });
            let queue = || {
                (0..3)
                    .for_each(|number| harness.queue(message(&[Block::Text(&format!("Choice {number}."))])));
            };
            queue();
            let first = choices(&client, &harness.gate).await;
            assert_eq!((first.len(), harness.model_requests().len()), (3, 3), "{first:?}");
            client.headers = vec![(SDK_RETRY.0, SDK_RETRY.1.to_owned())];
            assert_eq!(choices(&client, &harness.gate).await, first);
            assert_eq!(harness.model_requests().len(), 3);
            client.headers.clear();
            queue();
            assert_eq!(choices(&client, &harness.gate).await.len(), 3);
            assert_eq!(harness.model_requests().len(), 6);
        }
    }
}

/// The different texts among the choices of a reply.
async fn choices(client: &Client, gate: &Gate) -> HashSet<String> {
    let text = client.send(gate).await.text().await;
    (0..3).map(|number| format!("Choice {number}.")).filter(|choice| text.contains(choice)).collect()
}

#[tokio::test]
async fn results_that_were_consumed_are_replayed_unless_the_client_wants_a_new_reply() {
    // B7
    for program in programs() {
        let clock = Arc::new(ManualClock::default());
        let harness =
            Harness::set(&program, |config| config.surroundings.clock = Arc::clone(&clock) as _).await;
        for (number, (api, delivery)) in ALL.into_iter().enumerate() {
            harness.clear_requests();
            let mut client = asking(api, delivery, &format!("The time, {number}?"));
            let call = format!("toolu_{number}");
            harness.queue(message(&[Block::Call(&call, TIME, json!({}))]));
            client.ask(&harness.gate).await;
            client.add_results(&[(&call, "12:00")]);
            let mut ask = async |text: &str, header: (&'static str, &str), replayed: bool| {
                harness.queue(message(&[Block::Text(text)]));
                let reply = ask_with(&mut client, header, &harness.gate).await;
                assert_eq!(reply.replayed, replayed, "{text} {api:?} {delivery:?}");
                reply.text
            };
            let none = ("x-unrelated", "x");
            assert_eq!(ask("Noon.", none, false).await, "Noon.");
            assert_eq!(ask("Twelve.", none, true).await, "Noon.");
            assert_eq!(ask("(unused)", ("cache-control", "no-cache"), false).await, "Twelve.");
            assert_eq!(ask("(unused)", none, true).await, "Twelve.", "the newest reply is the one to repeat");
            clock.advance(Duration::from_mins(11));
            assert_eq!(ask("(unused)", none, false).await, "(unused)");
            harness.clear_queue();
        }
    }
}

#[tokio::test]
async fn both_replies_to_equal_words_keep_what_the_agent_did_for_them() {
    // B6, B7: regenerated in the same session and in another one, and continued by a new process
    for program in programs() {
        for session in [None, Some("one")] {
            let harness =
                Harness::with(&program, |agent| agent.builtins = Builtins::Only(vec!["Read".to_owned()]))
                    .await;
            let file = harness.workdir().join("note.txt");
            let read = json!({ "file_path": file.display().to_string() });
            let mut base = Client::new(Api::Messages, Delivery::Whole);
            base.headers = session.iter().map(|session| ("x-session-id", (*session).to_owned())).collect();
            harness.queue(message(&[Block::Text("Ready.")]));
            base.say(&harness.gate, "Hello").await;
            let mut clients = Vec::new();
            for note in ["first-note", "second-note"] {
                std::fs::write(&file, note).expect("a file");
                let mut client = Client::new(Api::Messages, Delivery::Whole);
                (client.history, client.expected, client.headers) =
                    (base.history.clone(), base.expected.clone(), base.headers.clone());
                harness
                    .queue(message(&[Block::Text("I read."), Block::Call("toolu_r", "Read", read.clone())]));
                harness.queue(message(&[Block::Text(&format!("It is the {note}."))]));
                let reply = client.say(&harness.gate, "Read it.").await;
                assert_eq!(reply.text, format!("I read.It is the {note}."));
                clients.push((client, note));
            }
            harness.kill_all();
            for (client, note) in &mut clients {
                harness.queue(message(&[Block::Text("So it says.")]));
                client.say(&harness.gate, "And?").await;
                let result = harness.model_messages()[4].to_string();
                assert!(result.contains(&**note), "{session:?} {note}: {result}");
            }
        }
    }
}

#[tokio::test]
async fn an_interrupted_second_run_is_not_answered_by_the_first() {
    // B7: the SDK retries the second conversation, whose words are those of the first
    for program in programs() {
        let harness = Harness::new(&program).await;
        harness.queue(message(&[Block::Text("Old.")]));
        asking(Api::Messages, Delivery::Whole, "Hello").ask(&harness.gate).await;
        harness.queue(start_message().stall());
        let mut second = asking(Api::Messages, Delivery::Streamed, "Hello");
        let mut answer = second.send(&harness.gate).await;
        answer.until("message_start").await;
        drop(answer);
        harness.queue(message(&[Block::Text("New.")]));
        let reply = ask_with(&mut second, SDK_RETRY, &harness.gate).await;
        assert_eq!((reply.text.as_str(), reply.replayed), ("New.", false));
    }
}

#[tokio::test]
async fn a_short_message_is_repeated_in_its_session_or_retried() {
    // B7, E3: the client sends only its new message
    let large = "x".repeat(LARGE_REPLY_BYTES);
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (number, (api, delivery)) in ALL.into_iter().enumerate() {
            harness.clear_requests();
            let mut client = asking(api, delivery, "More.");
            client.headers = vec![("x-session-id", format!("session-{number}"))];
            let ask = async |client: &Client, text: &str| {
                harness.queue(message(&[Block::Text(text)]));
                client.ask_once(&harness.gate).await
            };
            for (number, text) in ["One.", "Two.", "Three."].into_iter().enumerate() {
                let reply = ask(&client, text).await;
                assert_eq!((reply.text.as_str(), reply.replayed), (text, false));
                assert_eq!(harness.model_messages().len(), 2 * number + 1, "a message of its own each time");
            }
            let again = ask_with(&mut client, SDK_RETRY, &harness.gate).await;
            assert_eq!((again.text.as_str(), again.replayed), ("Three.", true));

            // Not delivered: a retry without any sign of it.
            if delivery == Delivery::Whole {
                harness.queue(message(&[Block::Text(&large)]));
                cut_after(1000, &client, &harness.gate).await;
                let again = client.ask_once(&harness.gate).await;
                assert_eq!((again.text.len(), again.replayed), (large.len(), true), "{api:?}");
                assert_eq!(harness.model_requests().len(), 4, "{api:?}");
            }
            let before = harness.model_messages().len();
            let reply = ask(&client, "Four.").await;
            assert_eq!((reply.text.as_str(), reply.replayed), ("Four.", false));
            assert_eq!(harness.model_messages().len(), before + 2);
        }
    }
}

#[tokio::test]
async fn an_idempotency_key_finds_a_short_message_after_the_session_went_on() {
    // B7, E3
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = asking(Api::Chat, Delivery::Whole, "More.");
        client.headers = vec![("x-session-id", "s".to_owned())];
        for (key, text, replayed) in [
            ("a", "One.", false),
            ("b", "Two.", false),
            ("a", "One.", true),
            ("b", "Two.", true),
            ("c", "Three.", false),
        ] {
            if !replayed {
                harness.queue(message(&[Block::Text(text)]));
            }
            let reply = ask_with(&mut client, ("idempotency-key", key), &harness.gate).await;
            assert_eq!((reply.text.as_str(), reply.replayed), (text, replayed), "{key}");
        }
        assert_eq!(harness.model_messages().len(), 5);
    }
}

#[tokio::test]
async fn replies_are_delivered_over_http2_too() {
    // B7
    for program in programs() {
        let mut harness = Harness::new(&program).await;
        harness.gate = harness.gate.over_http2();
        for (api, delivery) in SOME {
            for text in ["One.", "Two."] {
                let mut client = asking(api, delivery, &format!("Hello {api:?} {delivery:?}"));
                harness.queue(message(&[Block::Text(text)]));
                let reply = client.ask(&harness.gate).await;
                assert_eq!((reply.text.as_str(), reply.replayed), (text, false), "{api:?} {delivery:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_replay_is_not_metered() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = asking(Api::Messages, Delivery::Whole, "Hello");
        harness.queue(message(&[Block::Text("Hello.")]));
        let first = client.ask_once(&harness.gate).await;
        // The requests of clients and of the agent itself are counted.
        let before = tokens_after(2, &harness.gate).await;
        let again = ask_with(&mut client, SDK_RETRY, &harness.gate).await;
        assert_eq!((again.usage, again.replayed), (first.usage, true));
        assert_eq!(tokens_after(3, &harness.gate).await, before);
        harness.queue(message(&[Block::Text("Bye.")]));
        asking(Api::Messages, Delivery::Whole, "Bye").ask(&harness.gate).await;
        // Records are written in order, so when the last one is there, none is missing.
        let turns = async || {
            let totals =
                harness.gate.store.usage_summary(UnixMillis(0), UsageGroup::Model).await.expect("totals");
            totals.iter().filter(|total| total.group == "agent").map(|total| total.turns).sum::<u64>()
        };
        while turns().await < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns().await, 2);
    }
}

/// The tokens that were counted when this many turns were.
async fn tokens_after(turns: u64, gate: &Gate) -> u64 {
    loop {
        let metrics = gate.get("/metrics").await.text().await;
        let counted = |name: &str| {
            let lines = metrics.lines().filter(|line| line.starts_with(name));
            lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum::<u64>()
        };
        if counted("toolgate_requests_total") >= turns {
            return counted("toolgate_tokens_total");
        }
    }
}
