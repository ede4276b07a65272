//! Properties of every dialect, checked with generated requests and replies.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod generate;

use std::sync::Arc;

use proptest::prelude::*;
use toolgate_conformance::adaptation::{Host, adapted};
use toolgate_conformance::explain::unexplained;
use toolgate_conformance::{context, essence, streams};
use toolgate_dialect::frame::{MAX_FRAME_BYTES, SseDecoder};
use toolgate_dialect::host::HostFacts;
use toolgate_dialect::registry::ALL;
use toolgate_dialect::{RequestForm, Translation};
use toolgate_model::{Delta, DialectId, Grammar, Losses, ModelName, Reply, TurnEvent, TurnRequest, reply};

/// Host models: those that reason always, never, by default or on request, with efforts, budgets or a mere switch; one
/// that takes no functions while it reasons on Chat; and one that no table knows.
const MODELS: [&str; 10] = [
    "gpt-5",
    "gpt-4o-mini",
    "gpt-5.1",
    "gpt-5.5",
    "claude-sonnet-4-5",
    "claude-opus-4-6",
    "claude-opus-5",
    "deepseek-v4",
    "qwen3-32b",
    "some-model",
];

/// A client's dialect that no host speaks, so that every request is translated.
const FOREIGN: DialectId = DialectId { name: "foreign", provider: "foreign" };

fn request() -> Arc<TurnRequest> {
    Arc::new(TurnRequest::new("some-model", Vec::new()))
}

/// The content must arrive, unless a loss explains the difference.
fn same(name: &str, before: &Reply, after: &Reply, losses: &Losses) -> Result<(), TestCaseError> {
    let (before, after) = (essence::of_reply(before), essence::of_reply(after));
    prop_assert_eq!(unexplained(&before, &after, losses), None, "{}", name);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whole_and_streamed_replies_have_the_same_content(before in generate::reply()) {
        for (name, dialect) in &ALL {
            let whole = dialect.client.write_reply(&before, &context(&request()));
            let whole_read = dialect.upstream.read_reply(&whole.value).unwrap().value;
            same(name, &before, &whole_read, &whole.losses)?;
            let (bytes, losses) = streams::write(dialect, &before.clone().into_events(), &request());
            let streamed = streams::read(dialect, &bytes, usize::MAX);
            prop_assert_eq!(streamed.end, Ok(()));
            let streamed = reply::fold(streamed.events).unwrap();
            same(&format!("{name}, streamed"), &before, &streamed, &losses)?;
            let (streamed, whole_read) = (essence::of_reply(&streamed), essence::of_reply(&whole_read));
            prop_assert_eq!(unexplained(&streamed, &whole_read, &whole.losses), None);
        }
    }

    #[test]
    fn arguments_and_texts_may_be_cut_between_all_characters(before in generate::reply()) {
        let events = before.clone().into_events();
        let pieces: Vec<TurnEvent> = events.iter().cloned().flat_map(characters).collect();
        for (_, dialect) in &ALL {
            let (whole, _) = streams::write(dialect, &events, &request());
            let (cut, _) = streams::write(dialect, &pieces, &request());
            let (whole, cut) = (streams::read(dialect, &whole, usize::MAX), streams::read(dialect, &cut, usize::MAX));
            prop_assert_eq!(&cut.end, &Ok(()));
            prop_assert_eq!(reply::fold(cut.events).unwrap(), reply::fold(whole.events).unwrap());
        }
    }

    #[test]
    fn any_split_gives_the_same_events(before in generate::reply(), split in 1..40_usize) {
        for (_, dialect) in &ALL {
            let (bytes, _) = streams::write(dialect, &before.clone().into_events(), &request());
            prop_assert_eq!(streams::read(dialect, &bytes, split), streams::read(dialect, &bytes, usize::MAX));
        }
    }

    #[test]
    fn a_truncated_stream_is_never_read_as_a_different_reply(before in generate::reply(), at in 0.0..1.0_f64) {
        for (_, dialect) in &ALL {
            let (bytes, _) = streams::write(dialect, &before.clone().into_events(), &request());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a small buffer")]
            let cut = (bytes.len() as f64 * at) as usize;
            let whole = streams::read(dialect, &bytes, usize::MAX);
            let short = streams::read(dialect, &bytes[..cut], usize::MAX);
            let mut grammar = Grammar::new();
            for event in &short.events {
                grammar.accept(event).unwrap();
            }
            if short.end.is_ok() {
                let (short, whole) = (reply::fold(short.events).unwrap(), reply::fold(whole.events).unwrap());
                prop_assert_eq!(short.blocks, whole.blocks);
                prop_assert_eq!(short.finish.stop, whole.finish.stop);
            }
        }
    }

    #[test]
    fn a_written_request_round_trips(before in generate::request(), model in 0..MODELS.len()) {
        let (from, model) = (FOREIGN, ModelName::from(MODELS[model]));
        for (name, dialect) in &ALL {
            let profile = HostFacts::at(dialect.upstream.id(), "").profile(model.as_str());
            let mut translation = Translation::new(dialect.upstream);
            let first = translation.request(from, &before, &model, &profile).unwrap();
            let read = dialect.client.read_request(&first.body);
            prop_assert!(read.is_ok(), "{name}: {:?}\n{}", read.err(), String::from_utf8_lossy(&first.body));
            let read = read.unwrap().value;
            let host = Host { dialect: dialect.upstream.id(), profile: &profile };
            let sent = essence::of_request(&adapted(&before, host, &first.losses));
            let arrived = essence::of_written(&before, &read, translation.names());
            prop_assert_eq!(unexplained(&sent, &arrived, &first.losses), None, "{} for {}", name, model);
            let again = dialect.upstream.write_request(&read, RequestForm::AsRead).unwrap();
            let (first, again) = (json(&first.body), json(&again.body));
            let id = dialect.client.id();
            let found = toolgate_conformance::equivalence::difference(
                id, toolgate_conformance::equivalence::Side::Request, first, again);
            prop_assert_eq!(found, None);
        }
    }

    #[test]
    fn garbage_is_an_error_and_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), text in ".{0,200}") {
        for (_, dialect) in &ALL {
            prop_assert!(dialect.client.read_request(&bytes).is_err());
            prop_assert!(dialect.upstream.read_reply(&bytes).is_err());
            prop_assert!(!dialect.upstream.read_error(502, &bytes).message.is_empty());
            let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
            decoder.push(format!("data: {}\n\n", text.replace(['\n', '\r'], " ")).as_bytes());
            let mut reader = dialect.upstream.reply_reader();
            let mut events = Vec::new();
            let frame = decoder.next_frame().unwrap();
            let read = frame.map_or(Ok(()), |frame| reader.frame(frame, &mut events));
            prop_assert!(read.is_err() || reader.end(&mut events).is_err());
        }
    }
}

#[test]
fn an_error_always_has_a_message() {
    for (name, dialect) in &ALL {
        for body in ["", "\"\"", "{}", r#"{"error":""}"#, r#"{"error":{"message":""}}"#, r#"{"message":""}"#]
        {
            let error = dialect.upstream.read_error(500, body.as_bytes());
            assert!(!error.message.is_empty(), "{name}: {body}");
        }
    }
}

/// The event, with one delta per character.
fn characters(event: TurnEvent) -> Vec<TurnEvent> {
    let each = |text: &str, delta: fn(String) -> Delta| {
        text.chars().map(|character| TurnEvent::BlockDelta(delta(character.to_string()))).collect()
    };
    match &event {
        TurnEvent::BlockDelta(Delta::Text(text)) => each(text, Delta::Text),
        TurnEvent::BlockDelta(Delta::Arguments(text)) => each(text, Delta::Arguments),
        TurnEvent::Started(_)
        | TurnEvent::BlockStarted(_)
        | TurnEvent::BlockDelta(Delta::Paragraph(_))
        | TurnEvent::BlockFinished(_)
        | TurnEvent::Usage(_)
        | TurnEvent::Finished(_) => vec![event],
    }
}

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).unwrap()
}
