//! What the model sees and what the client gets when neither uses built-in tools.

use serde_json::{Value, json};
use toolgate_backend::config::Builtins;

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

fn with_schema(api: Api) -> Client {
    let schema = json!({ "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] });
    let mut client = Client::new(api, Delivery::Whole);
    client.extra = match api {
        Api::Messages => {
            json!({ "output_config": { "format": { "type": "json_schema", "schema": schema } } })
        }
        Api::Chat => {
            let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
            json!({ "response_format": format })
        }
        Api::Responses => {
            json!({ "text": { "format": { "type": "json_schema", "name": "n", "schema": schema } } })
        }
    };
    client
}

#[tokio::test]
async fn a_model_that_answers_in_text_instead_of_the_object_is_not_silenced() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        for api in [Api::Messages, Api::Chat, Api::Responses] {
            harness.queue(message(&[Block::Text("I cannot say.")]));
            // The program may insist.
            for _ in 0..10 {
                harness.queue(message(&[Block::Text("I really cannot say.")]));
            }
            let mut client = with_schema(api);
            client.push(json!({ "role": "user", "content": format!("go {api:?}") }));
            let answer = client.send(&harness.gate).await;
            let (status, text) = (answer.status(), answer.text().await);
            let passed_on = status == 200 && text.contains("cannot say");
            assert!(passed_on || status >= 500, "{status}: {text}");
            harness.clear_queue();
        }
    }
}

#[tokio::test]
async fn a_model_that_gives_no_answer_at_all_is_an_error() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        for _ in 0..10 {
            harness.queue(message(&[]));
        }
        let mut client = with_schema(Api::Chat);
        client.push(json!({ "role": "user", "content": "go" }));
        let answer = client.send(&harness.gate).await;
        let (status, text) = (answer.status(), answer.text().await);
        assert!(status >= 500, "{status}: {text}");
    }
}

/// The texts of a request's `system` that are not empty.
fn system(request: &Value) -> Vec<String> {
    let text = |block: &Value| block["text"].as_str().expect("a text block").to_owned();
    let blocks: Vec<String> = match &request["system"] {
        system if system.is_null() => Vec::new(),
        system => system.as_array().expect("blocks").iter().map(text).collect(),
    };
    blocks.into_iter().filter(|text| !text.is_empty()).collect()
}

#[tokio::test]
async fn without_builtin_tools_the_model_sees_only_the_clients_instructions() {
    for program in programs() {
        let harness = Harness::with(&program, |agent| agent.builtins = Builtins::None).await;
        for instructions in [None, Some("Be brief."), Some("# Environment\nYou are on Mars.")] {
            let mut client = Client::new(Api::Messages, Delivery::Whole);
            if let Some(instructions) = instructions {
                client.extra = json!({ "system": instructions });
            }
            harness.queue(message(&[Block::Text("Yes.")]));
            client.say(&harness.gate, &format!("go {instructions:?}")).await;
            let request = harness.model_requests().last().expect("a request").json();
            assert_eq!(system(&request), instructions.map(str::to_owned).into_iter().collect::<Vec<_>>());
            let messages = request["messages"].as_array().expect("messages");
            assert_eq!(messages.len(), 1, "{messages:?}");
            assert!(messages.iter().all(|message| message["role"] == "user"), "{messages:?}");
            assert!(!request["messages"].to_string().contains("<system-reminder>"), "{messages:?}");
        }
    }
}

#[tokio::test]
async fn control_characters_in_an_option_are_a_client_error() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (api, extra) in [
            (Api::Messages, json!({ "output_config": { "effort": "hi\u{0}gh" } })),
            (Api::Chat, json!({ "reasoning_effort": "high\n" })),
            (Api::Responses, json!({ "reasoning": { "effort": "\u{0}" } })),
            (Api::Chat, json!({ "reasoning_effort": "x".repeat(200_000) })),
            (Api::Messages, json!({ "model": "age\u{0}nt" })),
        ] {
            let mut client = Client::new(api, Delivery::Whole);
            client.push(json!({ "role": "user", "content": "go" }));
            client.extra = extra;
            let answer = client.send(&harness.gate).await;
            let (status, text) = (answer.status(), answer.text().await);
            assert!([400, 404].contains(&status), "{status}: {text}");
        }
        assert!(harness.model_requests().is_empty());
    }
}
