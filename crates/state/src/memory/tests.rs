//! The bounds of the memory store. Everything else is in the conformance suite.

use super::records::{MAX_TOTAL_RECORD_BYTES, MAX_TURN_RECORDS, RecordTable};
use super::*;
use crate::MAX_RECORD_BYTES;
use crate::conformance::{record, turn_record};

#[tokio::test]
async fn the_conformance_suite_passes() {
    crate::conformance::run(|| async { Ok(std::sync::Arc::new(MemoryStore::new()) as _) }).await.unwrap();
}

#[test]
fn the_oldest_usage_records_are_evicted_when_there_are_too_many() {
    let mut usage = UsageTable::default();
    for number in 0..=MAX_USAGE_RECORDS {
        usage.add(&record(number as u128, 0));
    }
    assert_eq!(usage.records.len(), MAX_USAGE_RECORDS);
    assert_eq!(usage.turns.len(), MAX_USAGE_RECORDS);
    assert_eq!(usage.records[0].turn_id, Uuid::from_u128(1));
}

#[test]
fn the_oldest_turns_are_evicted_when_their_bytes_exceed_the_limit() {
    let mut records = RecordTable::default();
    let scope = CallerScope::new("alice");
    let large = format!("\"{}\"", "x".repeat(MAX_RECORD_BYTES - 4));
    for number in 1..=3 {
        let mut record = turn_record(number, "s", 0);
        record.steps = toolgate_model::JsonText::parse(&large).unwrap();
        records.put(&scope, record);
    }
    let is_stored = |number| records.get(&scope, turn_record(number, "s", 0).key).is_some();
    assert_eq!([1, 2, 3].map(is_stored), [false, true, true]);
    assert_eq!(records.bytes(), MAX_TOTAL_RECORD_BYTES);
}

#[test]
fn the_oldest_turns_and_sessions_are_evicted_when_there_are_too_many() {
    let mut records = RecordTable::default();
    let scope = CallerScope::new("alice");
    let most = MAX_TURN_RECORDS as u64;
    let turn = |number: u64| turn_record(number, &format!("s{number}"), 0);
    for number in 0..=most {
        records.put(&scope, turn(number));
        let at = SessionChange::at(UnixMillis(i64::try_from(number).unwrap()));
        records.update_session(&scope, &turn(number).session, at);
    }
    let found = |number: u64| {
        let record = turn(number);
        (records.get(&scope, record.key).is_some(), records.session(&scope, &record.session).is_some())
    };
    assert_eq!(found(0), (false, false));
    assert_eq!(found(1), (true, true));
    assert_eq!(found(most), (true, true));
}
