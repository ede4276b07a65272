//! What is recorded of conversations, as `[record]` says.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_gateway::config::{GatewayConfig, RecordedSessions};
use toolgate_model::observed::SessionState;
use toolgate_state::{AgentTurnRecord, CallerScope, Callers, SessionRecord, Store, StoreError};
use toolgate_testkit::{Script, ScriptedUpstream};

use crate::gate::{Gate, ask, backends, config};
use crate::hosts::HOSTS;

fn recording(sessions: RecordedSessions) -> GatewayConfig {
    let mut config = config();
    config.record.sessions = sessions;
    config
}

/// Ends the gateway, which writes everything that waits to be recorded.
async fn stopped(gate: Gate) -> Arc<dyn Store> {
    let Gate { running, store, .. } = gate;
    running.stop().await.expect("it stops");
    store
}

async fn sessions(store: &dyn Store) -> Result<Vec<SessionRecord>, StoreError> {
    Ok(store.sessions(Callers::All, None, 100).await?.sessions)
}

async fn turns(store: &dyn Store, session: &SessionRecord) -> Result<Vec<AgentTurnRecord>, StoreError> {
    Ok(store.session_turns(&session.caller, &session.id, None, 100).await?.turns)
}

fn messages(turn: &AgentTurnRecord) -> Value {
    turn.thread.as_ref().map_or(Value::Null, |part| part.messages.to_value()["messages"].clone())
}

fn reply(turn: &AgentTurnRecord) -> Value {
    turn.reply.as_ref().map_or(Value::Null, |reply| reply.to_value()["content"].clone())
}

#[tokio::test]
async fn with_all_every_api_records_its_turns_whole_and_streamed() -> Result<(), StoreError> {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::start(&recording(RecordedSessions::All), backends(&upstream));
    for stream in [false, true] {
        for (path, body) in ask("demo", stream) {
            assert_eq!(gate.post(path, &body).await.status(), 200, "{path}");
        }
    }
    let store = stopped(gate).await;
    // Conversations with the same first words are branches of one session.
    let sessions = sessions(&*store).await?;
    assert_eq!(sessions.len(), 1);
    let shown = (
        sessions[0].title.as_str(),
        sessions[0].model.as_str(),
        sessions[0].agent.as_str(),
        sessions[0].state,
    );
    assert_eq!(shown, ("hello", "demo", "", SessionState::Idle));
    let turns = turns(&*store, &sessions[0]).await?;
    assert_eq!(turns.len(), 6);
    for turn in &turns {
        assert_eq!(messages(turn)[0]["role"], "user");
        assert!(reply(turn)[0]["text"].as_str().is_some_and(|text| text.contains("Hello!")));
        assert!(turn.delivered.is_some());
        assert_eq!(turn.thread.as_ref().and_then(|part| part.continues), None);
    }
    Ok(())
}

#[tokio::test]
async fn with_all_a_conversation_is_one_session_and_each_turn_has_only_its_own_messages()
-> Result<(), StoreError> {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::start(&recording(RecordedSessions::All), backends(&upstream));
    let mut history = vec![json!({ "role": "user", "content": "hello" })];
    for next in ["second", "third"] {
        let body = json!({ "model": "demo", "max_tokens": 100, "system": "Be brief.", "messages": history });
        let answer = gate.post("/v1/messages", &body).await.json().await;
        history.push(json!({ "role": "assistant", "content": answer["content"] }));
        history.push(json!({ "role": "user", "content": next }));
    }
    let store = stopped(gate).await;
    let sessions = sessions(&*store).await?;
    assert_eq!(sessions.len(), 1);
    let turns = turns(&*store, &sessions[0]).await?;
    let sizes: Vec<usize> = turns.iter().map(|turn| messages(turn).as_array().map_or(0, Vec::len)).collect();
    assert_eq!(sizes, [1, 1]);
    let part = turns[1].thread.as_ref().expect("a part of a transcript");
    assert_eq!(part.continues, turns[0].after);
    let whole = store.turns_of_session(&sessions[0].caller, &sessions[0].id, part.thread).await?;
    assert_eq!(whole, turns);
    let first = turns[0].thread.as_ref().map(|part| part.messages.to_value()["system"].to_string());
    assert!(first.is_some_and(|system| system.contains("Be brief.")));
    Ok(())
}

#[tokio::test]
async fn with_all_relayed_replies_are_recorded_too() -> Result<(), StoreError> {
    let paths = ["/v1/messages", "/v1/chat/completions", "/v1/responses"];
    for (host, path) in HOSTS.iter().zip(paths) {
        let upstream = ScriptedUpstream::start().await;
        let gate = Gate::start(&recording(RecordedSessions::All), backends(&upstream));
        for stream in [false, true] {
            let script = (host.tail)(host.begun());
            upstream.on(if stream { script } else { Script::json(200, (host.whole)()) });
            let (_, body) = ask(host.model, stream).into_iter().find(|(of, _)| *of == path).expect("an API");
            gate.post(path, &body).await.text().await;
        }
        let store = stopped(gate).await;
        let sessions = sessions(&*store).await?;
        let turns = turns(&*store, &sessions[0]).await?;
        assert_eq!((sessions.len(), turns.len()), (1, 2), "{path}");
        for turn in &turns {
            let text = reply(turn).to_string();
            assert!(text.contains("hi there"), "{path}: {text}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn failed_turns_and_cut_replies_are_not_recorded() -> Result<(), StoreError> {
    let host = &HOSTS[0];
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::start(&recording(RecordedSessions::All), backends(&upstream));
    upstream.on(Script::json(400, (host.error)(400, "no")));
    upstream.on(host.begun().cut());
    for stream in [false, true] {
        gate.post("/v1/messages", &ask(host.model, stream)[0].1).await.text().await;
    }
    let store = stopped(gate).await;
    assert_eq!(sessions(&*store).await?, []);
    Ok(())
}

#[tokio::test]
async fn with_agents_or_none_other_models_are_not_recorded() -> Result<(), StoreError> {
    for kept in [RecordedSessions::Agents, RecordedSessions::None] {
        let upstream = ScriptedUpstream::start().await;
        let gate = Gate::start(&recording(kept), backends(&upstream));
        for (path, body) in ask("demo", true) {
            gate.post(path, &body).await.text().await;
        }
        let store = stopped(gate).await;
        assert_eq!(sessions(&*store).await?, [], "{kept:?}");
        assert_eq!(store.prune_records(toolgate_state::UnixMillis(i64::MAX)).await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn callers_have_their_own_sessions() -> Result<(), StoreError> {
    let upstream = ScriptedUpstream::start().await;
    let gate = Gate::start(&recording(RecordedSessions::All), backends(&upstream));
    gate.post("/v1/messages", &ask("demo", false)[0].1).await.text().await;
    let store = stopped(gate).await;
    let local = CallerScope::new("local");
    assert_eq!(store.sessions(Callers::One(&local), None, 9).await?.sessions.len(), 1);
    let alice = CallerScope::new("alice");
    assert_eq!(store.sessions(Callers::One(&alice), None, 9).await?.sessions, []);
    Ok(())
}
