//! The conformance suite that every store must pass. It panics when a store breaks its contract.

pub(crate) mod questions;
mod records;
mod responses;
pub(crate) mod rules;
mod sessions;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use toolgate_model::{JsonText, PrefixHash};
use uuid::Uuid;

use crate::{
    AgentTurnRecord, CallerScope, Label, ResponseId, SessionId, Store, StoreError, StoredResponse,
    TokenCount, UnixMillis, UsageRecord,
};

/// Runs every case on its own empty store, made by `fresh`.
///
/// # Panics
/// If the store breaks its contract.
pub async fn run<F, Fresh>(fresh: F) -> Result<(), StoreError>
where
    F: Fn() -> Fresh,
    Fresh: Future<Output = Result<Arc<dyn Store>, StoreError>>,
{
    let stores: &[Case] = &[a_new_store_is_writable];
    let cases = [
        stores,
        responses::CASES,
        usage::CASES,
        records::CASES,
        sessions::CASES,
        questions::CASES,
        rules::CASES,
    ];
    for case in cases.into_iter().flatten() {
        let store = fresh().await?;
        case(&*store).await?;
        store.close().await;
    }
    Ok(())
}

fn a_new_store_is_writable(store: &dyn Store) -> BoxFuture<'_, Result<(), StoreError>> {
    store.check_writable()
}

type Case = for<'a> fn(&'a dyn Store) -> BoxFuture<'a, Result<(), StoreError>>;

/// A small response, different for each id.
pub fn response(id: &str, created_at: i64) -> StoredResponse {
    StoredResponse {
        id: ResponseId::new(id),
        previous: None,
        created_at: UnixMillis(created_at),
        model: "demo".to_owned(),
        body: format!("{{\"reply\":\"{id}\"}}"),
    }
}

/// A usage record of Alice: one input and three output tokens of the model `demo`.
pub fn record(turn: u128, at: i64) -> UsageRecord {
    UsageRecord {
        turn_id: Uuid::from_u128(turn),
        at: UnixMillis(at),
        caller: CallerScope::new("alice"),
        model: Label::new("demo"),
        upstream: Label::new("local"),
        dialect: Label::new("openai-chat"),
        status: 200,
        input: TokenCount::saturating(1),
        cache_read: TokenCount::default(),
        cache_write: TokenCount::default(),
        output: TokenCount::saturating(3),
        duration: Duration::from_millis(40),
        first_event: Some(Duration::from_millis(7)),
    }
}

/// The first number of a reply's hash in [`turn_record`].
const FIRST_REPLY: u64 = 1_000_000_000;

/// A small record of a complete turn, different for each number.
///
/// # Panics
/// If the session's name is not a session id.
pub fn turn_record(number: u64, in_session: &str, at: i64) -> AgentTurnRecord {
    AgentTurnRecord {
        run: Uuid::from_u128(number.into()),
        key: hash(number),
        after: Some(hash(FIRST_REPLY + number)),
        session: session(in_session),
        thread: None,
        steps: json(&format!("[{number}]")),
        reply: Some(json("{}")),
        at: UnixMillis(at),
        delivered: None,
    }
}

#[expect(clippy::panic, reason = "the suite panics, as tests do")]
fn session(name: &str) -> SessionId {
    SessionId::parse(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn hash(number: u64) -> PrefixHash {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    PrefixHash::from_bytes(bytes)
}

#[expect(clippy::panic, reason = "the suite panics, as tests do")]
fn json(text: &str) -> JsonText {
    JsonText::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
