//! A conversation that is written differently is still the same conversation.

use serde_json::{Value, json};

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

const WEATHER: &str = "mcp__client__get_weather";

fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words, "cache_control": { "type": "ephemeral" } })
}

#[tokio::test]
async fn cache_markers_reminders_and_json_formatting_do_not_hide_the_live_process() {
    // A2, agent 15
    for program in programs() {
        let harness = Harness::with(&program, |agent| agent.pool.warm = 0).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        harness.queue(message(&[
            Block::Text("Hm."),
            Block::Call("toolu_a", WEATHER, json!({ "city": "Rome", "day": 1 })),
        ]));
        client.say(&harness.gate, "Rome?").await;
        let process = harness.processes();

        let reminder = "<system-reminder>\nIt is late.\n</system-reminder>";
        let call = json!({ "type": "tool_use", "id": "toolu_a", "name": "get_weather", "input": { "day": 1, "city": "Rome" } });
        client.history = vec![
            json!({ "role": "user", "content": [text(reminder), text("Rome?")] }),
            json!({ "role": "assistant", "content": [text("Hm."), call] }),
            json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "toolu_a", "content": "20 C" }] }),
        ];
        let result = json!({ "type": "tool_result", "tool_use_id": "toolu_a", "content": [{ "type": "text", "text": "20 C" }] });
        client.expected.push(json!({ "role": "user", "content": [result] }));
        harness.queue(message(&[Block::Text("Warm.")]));
        client.ask(&harness.gate).await;
        assert_eq!(harness.model_messages(), client.expected[..3]);

        // The same conversation in another API.
        let arguments = "{ \"city\" : \"Rome\",\n  \"day\": 1 }";
        let call = json!({ "id": "toolu_a", "type": "function", "function": { "name": "get_weather", "arguments": arguments } });
        client.api = Api::Chat;
        client.history = vec![
            json!({ "role": "user", "content": "Rome?" }),
            json!({ "role": "assistant", "content": "Hm.", "tool_calls": [call] }),
            json!({ "role": "tool", "tool_call_id": "toolu_a", "content": "20 C" }),
            json!({ "role": "assistant", "content": [{ "type": "text", "text": "Warm." }] }),
        ];
        harness.queue(message(&[Block::Text("Gladly.")]));
        client.say(&harness.gate, "Thanks").await;
        assert_eq!(harness.model_messages(), client.expected[..5]);
        assert_eq!((harness.processes(), harness.model_requests().len()), (process, 3));
    }
}
