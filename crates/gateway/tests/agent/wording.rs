//! The same conversation in another wording is the same conversation.

use serde_json::{Value, json};

use crate::client::{Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says};

const WEATHER: &str = "mcp__client__get_weather";

fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words, "cache_control": { "type": "ephemeral" } })
}

#[tokio::test]
async fn marks_reminders_and_another_way_to_write_json_still_find_the_live_process() {
    // A2, agent 15
    for program in programs() {
        let stage = Stage::with(&program, |agent| agent.pool.warm = 0).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        stage.on(says(&[
            Piece::Text("Hm."),
            Piece::Call("toolu_a", WEATHER, json!({ "city": "Rome", "day": 1 })),
        ]));
        client.say(&stage.gate, "Rome?").await;
        let process = stage.processes();

        let reminder = "<system-reminder>\nIt is late.\n</system-reminder>";
        let call = json!({ "type": "tool_use", "id": "toolu_a", "name": "get_weather", "input": { "day": 1, "city": "Rome" } });
        client.history = vec![
            json!({ "role": "user", "content": [text(reminder), text("Rome?")] }),
            json!({ "role": "assistant", "content": [text("Hm."), call] }),
            json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "toolu_a", "content": "20 C" }] }),
        ];
        let result = json!({ "type": "tool_result", "tool_use_id": "toolu_a", "content": [{ "type": "text", "text": "20 C" }] });
        client.said.push(json!({ "role": "user", "content": [result] }));
        stage.on(says(&[Piece::Text("Warm.")]));
        client.ask(&stage.gate).await;
        assert_eq!(stage.heard(), client.said[..3]);

        // And in another API.
        let arguments = "{ \"city\" : \"Rome\",\n  \"day\": 1 }";
        let call = json!({ "id": "toolu_a", "type": "function", "function": { "name": "get_weather", "arguments": arguments } });
        client.api = Api::Chat;
        client.history = vec![
            json!({ "role": "user", "content": "Rome?" }),
            json!({ "role": "assistant", "content": "Hm.", "tool_calls": [call] }),
            json!({ "role": "tool", "tool_call_id": "toolu_a", "content": "20 C" }),
            json!({ "role": "assistant", "content": [{ "type": "text", "text": "Warm." }] }),
        ];
        stage.on(says(&[Piece::Text("Gladly.")]));
        client.say(&stage.gate, "Thanks").await;
        assert_eq!(stage.heard(), client.said[..5]);
        assert_eq!((stage.processes(), stage.asked().len()), (process, 3));
    }
}
