//! Every reader, on any bytes: no panic, events the grammar accepts, the same whatever the split.
//! The first byte of the input chooses the dialect, the second is the size of the pieces, the rest is the body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_conformance::streams;
use toolgate_dialect::Translation;
use toolgate_dialect::host::HostFacts;
use toolgate_dialect::registry::ALL;
use toolgate_model::Grammar;

fuzz_target!(|input: &[u8]| {
    let [choice, size, body @ ..] = input else { return };
    let (_, dialect) = &ALL[usize::from(*choice) % ALL.len()];
    if let Ok(request) = dialect.client.read_request(body) {
        // The peek may refuse more (a repeated field the reader does not know), but never reads anything else.
        if let Ok(peek) = dialect.client.peek_request(body) {
            assert_eq!(*peek.model, *request.value.model.as_str());
        }
        for (_, other) in &ALL {
            // Refusing is fine; what is written must be readable.
            let model = &request.value.model;
            let profile = HostFacts::at(other.upstream.id(), "").profile(model.as_str());
            let mut translation = Translation::new(other.upstream);
            if let Ok(written) = translation.request(dialect.client.id(), &request.value, model, &profile) {
                assert!(serde_json_is_valid(&written.body));
            }
        }
    }
    drop(dialect.upstream.read_reply(body));
    assert!(!dialect.upstream.read_error(500, body).message.is_empty());
    let whole = streams::read(dialect, body, usize::MAX);
    let mut grammar = Grammar::new();
    for event in &whole.events {
        grammar.accept(event).expect("the reader keeps to the grammar");
    }
    assert_eq!(whole, streams::read(dialect, body, usize::from(*size).max(1)));
});

fn serde_json_is_valid(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok_and(|text| toolgate_model::JsonText::parse(text).is_ok())
}
