//! A client of the Responses API that names earlier items by their ids instead of repeating them.

use serde_json::{Value, json};

use crate::client::{Api, Client, Delivery};
use crate::harness::{Block, Harness, message, programs};

#[tokio::test]
async fn references_continue_a_conversation_with_an_agent() {
    for program in programs() {
        let harness = Harness::new(&program).await;
        let mut client = Client::new(Api::Responses, Delivery::Whole);
        client.extra = json!({ "store": true });
        harness.queue(message(&[
            Block::Text("Let me look."),
            Block::Call("toolu_a", "mcp__client__get_weather", json!({ "city": "Rome" })),
        ]));
        client.history.push(json!({ "role": "user", "content": "Rome?" }));
        let first = client.send(&harness.gate).await.json().await;
        let ids = first["output"].as_array().expect("items").iter().map(|item| &item["id"]);
        client.history.extend(ids.map(|id| json!({ "type": "item_reference", "id": id })));
        let result = json!({ "type": "function_call_output", "call_id": "toolu_a", "output": "20 C" });
        client.history.push(result);
        harness.queue(message(&[Block::Text("Warm.")]));
        let second = client.send(&harness.gate).await.json().await;
        assert_eq!(second["output"][0]["content"][0]["text"], "Warm.", "{second}");
        let sent: Vec<Value> = harness.model_messages();
        let expected = json!([
            { "role": "user", "content": [{ "type": "text", "text": "Rome?" }] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "Let me look." },
                { "type": "tool_use", "id": "toolu_a", "name": "get_weather", "input": { "city": "Rome" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_a", "content": [{ "type": "text", "text": "20 C" }] },
            ] },
        ]);
        assert_eq!(json!(sent), expected);
    }
}
