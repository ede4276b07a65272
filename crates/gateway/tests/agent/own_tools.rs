//! The agent's own tools beside the client's, under the operator's rules; and the agent on a model of the gateway.

use serde_json::json;
use toolgate_backend::config::AgentModel;

use crate::client::{Api, Client, Delivery};
use crate::stage::{Piece, Stage, programs, says};

#[tokio::test]
async fn own_and_foreign_calls_in_one_message_each_run_where_they_belong() {
    // A11, agent 13
    for program in programs() {
        let stage = Stage::with_rules(&program, &["Bash"], &["allow Bash(touch:*)"]).await;
        let mut client = Client::new(Api::Messages, Delivery::Streamed);
        let touch = json!({ "command": "touch made-by-the-agent", "description": "d" });
        stage.on(says(&[
            Piece::Text("Both."),
            Piece::Call("toolu_b", "Bash", touch),
            Piece::Call("toolu_t", "mcp__client__get_time", json!({})),
        ]));
        let reply = client.say(&stage.gate, "go").await;
        assert_eq!(reply.calls.len(), 1, "the client sees its own call alone");
        stage.on(says(&[Piece::Text("Done.")]));
        client.answer(&stage.gate, &[("toolu_t", "12:00")]).await;
        assert!(stage.workdir().join("made-by-the-agent").exists());
        let results = &stage.heard()[2]["content"];
        assert_eq!(results.as_array().map(Vec::len), Some(2), "{results}");
    }
}

#[tokio::test]
async fn what_no_rule_covers_is_denied_and_the_model_hears_of_it() {
    // agent 22, 25
    for program in programs() {
        let stage = Stage::with_rules(&program, &["Bash"], &[]).await;
        let mut client = Client::new(Api::Chat, Delivery::Whole);
        let touch = json!({ "command": "touch made-by-the-agent", "description": "d" });
        stage.on(says(&[Piece::Call("toolu_b", "Bash", touch)]));
        stage.on(says(&[Piece::Text("Then not.")]));
        let reply = client.say(&stage.gate, "go").await;
        assert_eq!((reply.text.as_str(), reply.stop.as_str()), ("Then not.", "end_turn"));
        assert!(!stage.workdir().join("made-by-the-agent").exists());
        assert!(stage.heard()[2].to_string().contains("nobody answered"), "{:?}", stage.heard()[2]);
    }
}

#[tokio::test]
async fn a_sub_agent_has_no_client_and_is_told_so() {
    for program in programs() {
        let stage = Stage::with_rules(&program, &["Task"], &["allow *"]).await;
        let mut client = Client::new(Api::Messages, Delivery::Whole);
        let task = json!({ "description": "d", "prompt": "p", "subagent_type": "general-purpose", "run_in_background": false });
        stage.on(says(&[Piece::Call("toolu_s", "Task", task)]));
        stage.on(says(&[Piece::Call("toolu_t", "mcp__client__get_time", json!({}))]));
        stage.on(says(&[Piece::Text("I cannot.")]));
        stage.on(says(&[Piece::Text("Then I call it.")]));
        let reply = client.say(&stage.gate, "go").await;
        assert_eq!((reply.text.as_str(), reply.calls.len()), ("Then I call it.", 0));
        let told = stage.asked()[2].json()["messages"].to_string();
        assert!(told.contains("Only the main conversation can call this tool"), "{told}");
        assert_eq!(stage.asked().len(), 4);
    }
}

#[tokio::test]
async fn an_agent_can_think_with_a_model_of_the_gateway() {
    // X4
    for program in programs() {
        let stage = Stage::with(&program, |agent| agent.model = AgentModel::Gateway("demo".to_owned())).await;
        for (api, delivery) in [(Api::Messages, Delivery::Streamed), (Api::Responses, Delivery::Whole)] {
            let mut client = Client::new(api, delivery);
            let reply = client.say(&stage.gate, &format!("Please call get_weather for Paris. {api:?}")).await;
            let Some((id, name, _)) = reply.calls.first() else { panic!("no call in {reply:?}") };
            assert_eq!(name, "get_weather");
            let results: Vec<(&str, &str)> =
                reply.calls.iter().map(|(id, _, _)| (id.as_str(), "21 C")).collect();
            assert!(results.iter().any(|(answered, _)| answered == id));
            let reply = client.answer(&stage.gate, &results).await;
            assert!(reply.text.contains("21 C"), "{reply:?}");
        }
        assert!(stage.asked().is_empty(), "the agent's usual host is not asked");
    }
}
