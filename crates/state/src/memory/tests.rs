//! What is special to the memory store: its bounds. The rest is in the battery.

use super::records::{MAX_RECORD_BYTES_KEPT, MAX_TURN_RECORDS_KEPT, Records};
use super::*;
use crate::MAX_RECORD_BYTES;
use crate::conformance::{record, response, turn_record};

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
        usage.add(&record(number as u128, 0));
    }
    assert_eq!(usage.records.len(), MAX_RECORDS_KEPT);
    assert_eq!(usage.turns.len(), MAX_RECORDS_KEPT);
    assert_eq!(usage.records[0].turn_id, Uuid::from_u128(1));
}

#[test]
fn past_the_bytes_kept_the_oldest_turns_give_way() {
    let mut records = Records::default();
    let scope = CallerScope::new("alice");
    let large = format!("\"{}\"", "x".repeat(MAX_RECORD_BYTES - 4));
    for number in 1..=3 {
        let mut record = turn_record(number, "s", 0);
        record.steps = toolgate_model::JsonText::parse(&large).unwrap();
        records.keep(&scope, record);
    }
    let kept = |number| records.of(&scope, turn_record(number, "s", 0).key).is_some();
    assert_eq!([1, 2, 3].map(kept), [false, true, true]);
    assert_eq!(records.bytes(), MAX_RECORD_BYTES_KEPT);
}

#[test]
fn past_the_number_kept_the_oldest_turns_and_heads_give_way() {
    let mut records = Records::default();
    let scope = CallerScope::new("alice");
    let most = MAX_TURN_RECORDS_KEPT as u64;
    for number in 0..=most {
        records.keep(&scope, turn_record(number, &format!("s{number}"), 0));
    }
    let found = |number: u64| {
        let record = turn_record(number, &format!("s{number}"), 0);
        (records.of(&scope, record.key).is_some(), records.head(&scope, &record.session).is_some())
    };
    assert_eq!(found(0), (false, false));
    assert_eq!(found(1), (true, false));
    assert_eq!(found(most), (true, true));
}
