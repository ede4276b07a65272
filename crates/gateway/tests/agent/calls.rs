//! Calls of client tools: their results reach the model exactly as the client sent them.

use serde_json::json;

use crate::client::{ALL, Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

const WEATHER: &str = "mcp__client__get_weather";

#[tokio::test]
async fn a_call_and_its_result_work_in_every_api() {
    // A1, A6, A7, A8, B8, E1, E2, agent 5, 30, M6: no client here sends a session id
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (api, delivery) in ALL {
            let mut client = Client::new(api, delivery);
            let before = harness.model_requests().len();
            harness.queue(message(&[
                Block::Text("Let me look."),
                Block::Call("toolu_1", WEATHER, json!({"city": "Paris"})),
            ]));
            let reply = client.say(&harness.gate, &format!("Weather? {api:?} {delivery:?}")).await;
            assert_eq!(
                (reply.text.as_str(), reply.stop.as_str()),
                ("Let me look.", "tool_use"),
                "{api:?} {delivery:?}"
            );
            assert_eq!(reply.calls, [("toolu_1".into(), "get_weather".into(), json!({"city": "Paris"}))]);
            assert_eq!(reply.usage, (28, 7));
            assert!(!reply.session.is_empty());

            harness.queue(message(&[Block::Text("It is 21 degrees.")]));
            let reply = client.answer(&harness.gate, &[("toolu_1", "21 C")]).await;
            assert_eq!((reply.text.as_str(), reply.stop.as_str()), ("It is 21 degrees.", "end_turn"));
            assert!(reply.cost.is_some_and(|dollars| dollars > 0.0), "{reply:?}");

            harness.queue(message(&[Block::Text("Gladly.")]));
            client.say(&harness.gate, "Thanks").await;
            assert_eq!(
                harness.model_messages(),
                client.expected[..client.expected.len() - 1],
                "{api:?} {delivery:?}"
            );
            assert_eq!(harness.model_requests().len() - before, 3, "one model request per turn");
        }
    }
}

#[tokio::test]
async fn parallel_calls_come_once_and_pair_by_id_in_any_order() {
    // B2, B5, agent 1 to 4, M1 to M3: also two calls of one tool with the same input
    for program in programs() {
        let harness = Harness::new(&program).await;
        for (api, delivery) in ALL {
            let mut client = Client::new(api, delivery);
            let rome = || json!({"city": "Rome"});
            harness.queue(message(&[
                Block::Text("All three."),
                Block::Call("toolu_a", WEATHER, rome()),
                Block::Call("toolu_b", WEATHER, rome()),
                Block::Call("toolu_c", "mcp__client__get_time", json!({"zone": 1})),
            ]));
            let reply = client.say(&harness.gate, &format!("go {api:?} {delivery:?}")).await;
            let expected = [
                ("toolu_a".into(), "get_weather".into(), rome()),
                ("toolu_b".into(), "get_weather".into(), rome()),
                ("toolu_c".into(), "get_time".into(), json!({"zone": 1})),
            ];
            assert_eq!(reply.calls, expected, "{api:?} {delivery:?}");
            assert_eq!(harness.model_requests().len(), 1, "no model request before the results");
            harness.queue(message(&[Block::Text("Done.")]));
            client
                .answer(&harness.gate, &[("toolu_c", "noon"), ("toolu_b", "two"), ("toolu_a", "one")])
                .await;
            assert_eq!(harness.model_messages(), client.expected[..client.expected.len() - 1], "{api:?}");
            assert_eq!(harness.model_requests().len(), 2);
            harness.clear_requests();
        }
    }
}

#[tokio::test]
async fn text_beside_results_images_and_errors_reach_the_model_unchanged() {
    // A7, agent 11, 12
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let results = [
            json!([{ "type": "text", "text": "It failed." }]),
            json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PIXEL } }]),
            json!([{ "type": "text", "text": "x".repeat(200_000) }]),
        ];
        for (number, content) in results.into_iter().enumerate() {
            let id = format!("toolu_{number}");
            harness.queue(message(&[Block::Call(&id, WEATHER, json!({}))]));
            client.say(&harness.gate, "look").await;
            let mut result = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
            if number == 0 {
                result["is_error"] = json!(true);
            }
            let mut blocks = vec![result];
            if number == 2 {
                blocks.push(json!({ "type": "text", "text": "And hurry." }));
            }
            client.push(json!({ "role": "user", "content": blocks }));
            harness.queue(message(&[Block::Text("I see.")]));
            client.ask(&harness.gate).await;
            assert_eq!(
                harness.model_messages(),
                client.expected[..client.expected.len() - 1],
                "result {number}"
            );
        }
    }
}

#[tokio::test]
async fn unusual_tool_names_come_back_unchanged() {
    // agent 6
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        client.tools = vec!["Bash", "mcp__client__read", "bare"];
        let made = [
            ("toolu_1", "mcp__client__Bash"),
            ("toolu_2", "mcp__client__mcp__client__read"),
            ("toolu_3", "bare"),
        ];
        let blocks: Vec<Block<'_>> = made.iter().map(|(id, name)| Block::Call(id, name, json!({}))).collect();
        harness.queue(message(&blocks));
        let reply = client.say(&harness.gate, "go").await;
        let names: Vec<&str> = reply.calls.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, client.tools);
        harness.queue(message(&[Block::Text("Done.")]));
        let reply =
            client.answer(&harness.gate, &[("toolu_1", "a"), ("toolu_2", "b"), ("toolu_3", "c")]).await;
        assert_eq!(reply.text, "Done.");
    }
}

#[tokio::test]
async fn names_that_sanitise_to_the_same_text_stay_different() {
    // agent 6
    const NAMES: [&str; 3] = ["a.b", "a_b", "a b"];
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Responses, Delivery::Whole);
        client.extra = json!({ "tools": NAMES.map(|name| {
            json!({ "type": "function", "name": name, "description": name, "parameters": { "type": "object" } })
        }) });
        harness.queue(message(&[Block::Text("Which?")]));
        client.say(&harness.gate, "go").await;
        let offered = harness.model_requests()[0].json()["tools"].clone();
        let shown = NAMES.map(|name| {
            let tool = offered.as_array().expect("tools").iter().find(|tool| tool["description"] == name);
            tool.expect("the tool is offered")["name"].as_str().expect("a name").to_owned()
        });
        let ids = ["toolu_0", "toolu_1", "toolu_2"];
        let blocks: Vec<Block<'_>> =
            ids.iter().zip(&shown).map(|(id, name)| Block::Call(id, name, json!({}))).collect();
        harness.queue(message(&blocks));
        let reply = client.say(&harness.gate, "all").await;
        let names: Vec<&str> = reply.calls.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, NAMES);
        harness.queue(message(&[Block::Text("Done.")]));
        assert_eq!(client.answer(&harness.gate, &ids.map(|id| (id, id))).await.text, "Done.");
    }
}

#[tokio::test]
async fn a_call_of_an_unknown_tool_does_not_hang() {
    // agent 7
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Chat, Delivery::Streamed);
        harness.queue(message(&[Block::Call("toolu_1", "unheard_of", json!({}))]));
        harness.queue(message(&[Block::Text("Then not.")]));
        let reply = client.say(&harness.gate, "go").await;
        assert_eq!((reply.text.as_str(), reply.calls.len()), ("Then not.", 0));
        assert_eq!(reply.usage, (56, 14), "usage includes both model calls");
    }
}

#[tokio::test]
async fn a_forced_tool_choice_reaches_the_model() {
    // A9
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        client.extra = json!({ "tool_choice": { "type": "tool", "name": "get_time" }, "temperature": 0.2 });
        harness.queue(message(&[Block::Call("toolu_1", "mcp__client__get_time", json!({}))]));
        client.push(json!({ "role": "user", "content": "go" }));
        let answer = harness.gate.post("/v1/messages", &client.body()).await;
        assert_eq!(answer.header("x-toolgate-loss"), "temperature, max_tokens");
        answer.text().await;
        let asked = harness.model_requests()[0].json();
        assert_eq!(asked["tool_choice"], json!({ "type": "tool", "name": "mcp__client__get_time" }));
    }
}

#[tokio::test]
async fn structured_output_is_the_object_alone() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Chat, Delivery::Whole);
        let schema =
            json!({ "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] });
        let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
        client.extra = json!({ "response_format": format });
        harness.queue(message(&[
            Block::Text("Here:"),
            Block::Call("toolu_1", "StructuredOutput", json!({"x": 5})),
        ]));
        let reply = client.say(&harness.gate, "go").await;
        assert_eq!((reply.text.as_str(), reply.stop.as_str()), (r#"{"x":5}"#, "end_turn"));
    }
}

/// An image of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
