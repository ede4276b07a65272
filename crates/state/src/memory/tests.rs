//! What is special to the memory store: its bounds. The rest is in the battery.

use super::*;
use crate::conformance::{record, response};

fn keys_kept(responses: &Responses) -> Vec<&str> {
    responses.by_age.values().map(|(_, id)| id.as_str()).collect()
}

#[tokio::test]
async fn the_battery_holds() {
    crate::conformance::run(|| async { Ok(std::sync::Arc::new(MemoryStore::new()) as _) }).await.unwrap();
}

#[test]
fn past_the_bytes_kept_the_oldest_responses_give_way() {
    let mut responses = Responses::default();
    let scope = CallerScope::new("alice");
    for id in ["first", "second", "third"] {
        let mut large = response(id, 0);
        large.body = "x".repeat(MAX_RESPONSE_BYTES);
        responses.put((scope.clone(), ResponseId::new(id)), large);
    }
    assert_eq!(keys_kept(&responses), ["second", "third"]);
    assert_eq!(responses.body_bytes, MAX_BODY_BYTES_KEPT);
}

#[test]
fn past_the_number_kept_the_oldest_responses_give_way() {
    let mut responses = Responses::default();
    let scope = CallerScope::new("alice");
    for number in 0..=MAX_RESPONSES_KEPT {
        let id = number.to_string();
        responses.put((scope.clone(), ResponseId::new(id.as_str())), response(&id, 0));
    }
    assert_eq!(responses.kept.len(), MAX_RESPONSES_KEPT);
    assert_eq!(keys_kept(&responses)[0], "1");
}

#[test]
fn past_the_number_kept_the_oldest_records_give_way() {
    let mut usage = Usage::default();
    for number in 0..=MAX_RECORDS_KEPT {
        usage.add(record(number as u128, 0));
    }
    assert_eq!(usage.records.len(), MAX_RECORDS_KEPT);
    assert_eq!(usage.turns.len(), MAX_RECORDS_KEPT);
    assert_eq!(usage.records[0].turn_id, Uuid::from_u128(1));
}
