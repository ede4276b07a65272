//! The client's tools: called, answered, and told to the model as the client sent them.

use serde_json::json;

use crate::client::{ALL, Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says};

const WEATHER: &str = "mcp__client__get_weather";

#[tokio::test]
async fn one_call_goes_out_and_its_result_comes_back_in_every_api() {
    // A1, A6, A7, A8, B8, E1, E2, agent 5, 30, M6: no client here sends a session id
    for program in programs() {
        let stage = Stage::new(&program).await;
        for (api, delivery) in ALL {
            let mut client = Client::new(api, delivery);
            let before = stage.asked().len();
            stage.on(says(&[
                Piece::Text("Let me look."),
                Piece::Call("toolu_1", WEATHER, json!({"city": "Paris"})),
            ]));
            let reply = client.say(&stage.gate, &format!("Weather? {api:?} {delivery:?}")).await;
            assert_eq!(
                (reply.text.as_str(), reply.stop.as_str()),
                ("Let me look.", "tool_use"),
                "{api:?} {delivery:?}"
            );
            assert_eq!(reply.calls, [("toolu_1".into(), "get_weather".into(), json!({"city": "Paris"}))]);
            assert_eq!(reply.usage, (28, 7));
            assert!(!reply.session.is_empty());

            stage.on(says(&[Piece::Text("It is 21 degrees.")]));
            let reply = client.answer(&stage.gate, &[("toolu_1", "21 C")]).await;
            assert_eq!((reply.text.as_str(), reply.stop.as_str()), ("It is 21 degrees.", "end_turn"));
            assert!(reply.cost.is_some_and(|dollars| dollars > 0.0), "{reply:?}");

            stage.on(says(&[Piece::Text("Gladly.")]));
            client.say(&stage.gate, "Thanks").await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1], "{api:?} {delivery:?}");
            assert_eq!(stage.asked().len() - before, 3, "one model request for each turn");
        }
    }
}

#[tokio::test]
async fn parallel_calls_come_once_each_and_pair_by_id_in_any_order() {
    // B2, B5, agent 1 to 4, M1 to M3: also two calls of one tool with the same input
    for program in programs() {
        let stage = Stage::new(&program).await;
        for (api, delivery) in ALL {
            let mut client = Client::new(api, delivery);
            let rome = || json!({"city": "Rome"});
            stage.on(says(&[
                Piece::Text("All three."),
                Piece::Call("toolu_a", WEATHER, rome()),
                Piece::Call("toolu_b", WEATHER, rome()),
                Piece::Call("toolu_c", "mcp__client__get_time", json!({"zone": 1})),
            ]));
            let reply = client.say(&stage.gate, &format!("go {api:?} {delivery:?}")).await;
            let expected = [
                ("toolu_a".into(), "get_weather".into(), rome()),
                ("toolu_b".into(), "get_weather".into(), rome()),
                ("toolu_c".into(), "get_time".into(), json!({"zone": 1})),
            ];
            assert_eq!(reply.calls, expected, "{api:?} {delivery:?}");
            assert_eq!(stage.asked().len(), 1, "nothing is asked before the results are there");
            stage.on(says(&[Piece::Text("Done.")]));
            client.answer(&stage.gate, &[("toolu_c", "noon"), ("toolu_b", "two"), ("toolu_a", "one")]).await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1], "{api:?}");
            assert_eq!(stage.asked().len(), 2);
            stage.forget();
        }
    }
}

#[tokio::test]
async fn text_beside_results_pictures_and_failures_reach_the_model_as_sent() {
    // A7, agent 11, 12
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let results = [
            json!([{ "type": "text", "text": "It failed." }]),
            json!([{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": PIXEL } }]),
            json!([{ "type": "text", "text": "x".repeat(200_000) }]),
        ];
        for (number, content) in results.into_iter().enumerate() {
            let id = format!("toolu_{number}");
            stage.on(says(&[Piece::Call(&id, WEATHER, json!({}))]));
            client.say(&stage.gate, "look").await;
            let mut result = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
            if number == 0 {
                result["is_error"] = json!(true);
            }
            let mut blocks = vec![result];
            if number == 2 {
                blocks.push(json!({ "type": "text", "text": "And hurry." }));
            }
            client.push(json!({ "role": "user", "content": blocks }));
            stage.on(says(&[Piece::Text("I see.")]));
            client.ask(&stage.gate).await;
            assert_eq!(stage.heard(), client.said[..client.said.len() - 1], "result {number}");
        }
    }
}

#[tokio::test]
async fn names_of_every_kind_work_and_come_back_as_they_were() {
    // agent 6
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        client.tools = vec!["Bash", "mcp__client__read", "bare"];
        let said = [
            ("toolu_1", "mcp__client__Bash"),
            ("toolu_2", "mcp__client__mcp__client__read"),
            ("toolu_3", "bare"),
        ];
        let pieces: Vec<Piece<'_>> = said.iter().map(|(id, name)| Piece::Call(id, name, json!({}))).collect();
        stage.on(says(&pieces));
        let reply = client.say(&stage.gate, "go").await;
        let names: Vec<&str> = reply.calls.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, client.tools);
        stage.on(says(&[Piece::Text("Done.")]));
        let reply = client.answer(&stage.gate, &[("toolu_1", "a"), ("toolu_2", "b"), ("toolu_3", "c")]).await;
        assert_eq!(reply.text, "Done.");
    }
}

#[tokio::test]
async fn names_that_the_program_would_write_alike_stay_apart() {
    // agent 6
    const NAMES: [&str; 3] = ["a.b", "a_b", "a b"];
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut client = Client::new(Api::Responses, Delivery::Whole);
        client.extra = json!({ "tools": NAMES.map(|name| {
            json!({ "type": "function", "name": name, "description": name, "parameters": { "type": "object" } })
        }) });
        stage.on(says(&[Piece::Text("Which?")]));
        client.say(&stage.gate, "go").await;
        let offered = stage.asked()[0].json()["tools"].clone();
        let shown = NAMES.map(|name| {
            let tool = offered.as_array().expect("tools").iter().find(|tool| tool["description"] == name);
            tool.expect("it is offered")["name"].as_str().expect("a name").to_owned()
        });
        let ids = ["toolu_0", "toolu_1", "toolu_2"];
        let pieces: Vec<Piece<'_>> =
            ids.iter().zip(&shown).map(|(id, name)| Piece::Call(id, name, json!({}))).collect();
        stage.on(says(&pieces));
        let reply = client.say(&stage.gate, "all").await;
        let names: Vec<&str> = reply.calls.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(names, NAMES);
        stage.on(says(&[Piece::Text("Done.")]));
        assert_eq!(client.answer(&stage.gate, &ids.map(|id| (id, id))).await.text, "Done.");
    }
}

#[tokio::test]
async fn a_call_of_a_tool_that_nobody_has_does_not_hang() {
    // agent 7
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut client = Client::new(Api::Chat, Delivery::Streamed);
        stage.on(says(&[Piece::Call("toolu_1", "unheard_of", json!({}))]));
        stage.on(says(&[Piece::Text("Then not.")]));
        let reply = client.say(&stage.gate, "go").await;
        assert_eq!((reply.text.as_str(), reply.calls.len()), ("Then not.", 0));
        assert_eq!(reply.usage, (56, 14), "both model calls are paid for");
    }
}

#[tokio::test]
async fn a_forced_call_is_forced_at_the_model() {
    // A9
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        client.extra = json!({ "tool_choice": { "type": "tool", "name": "get_time" }, "temperature": 0.2 });
        stage.on(says(&[Piece::Call("toolu_1", "mcp__client__get_time", json!({}))]));
        client.push(json!({ "role": "user", "content": "go" }));
        let answer = stage.gate.post("/v1/messages", &client.body()).await;
        assert_eq!(answer.header("x-toolgate-loss"), "temperature, max_tokens");
        answer.text().await;
        let asked = stage.asked()[0].json();
        assert_eq!(asked["tool_choice"], json!({ "type": "tool", "name": "mcp__client__get_time" }));
    }
}

#[tokio::test]
async fn an_answer_by_a_schema_is_that_object_alone() {
    for program in programs() {
        let stage = Stage::new(&program).await;
        let mut client = Client::new(Api::Chat, Delivery::Whole);
        let schema =
            json!({ "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] });
        let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
        client.extra = json!({ "response_format": format });
        stage.on(says(&[Piece::Text("Here:"), Piece::Call("toolu_1", "StructuredOutput", json!({"x": 5}))]));
        let reply = client.say(&stage.gate, "go").await;
        assert_eq!((reply.text.as_str(), reply.stop.as_str()), (r#"{"x":5}"#, "end_turn"));
    }
}

/// A picture of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
