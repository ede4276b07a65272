//! What hosts do differently from the specification in their streams.

use serde_json::{Value, json};
use toolgate_model::ErrorKind;

use super::read_stream;
use super::stream::{call, completed, content, created, folded, message};
use crate::UpstreamDialect;
use crate::openai_responses::DIALECT;

fn event(kind: &str, fields: Value) -> Value {
    let mut event = json!({ "type": format!("response.{kind}") });
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    event
}

fn check(events: &[Value], expect: &[&str]) {
    let mut all = vec![created()];
    all.extend_from_slice(events);
    assert_eq!(content(&folded(&all)), expect);
}

#[test]
fn a_stream_without_indexes_is_read_by_item_ids() {
    // llama.cpp
    let reasoning = |text: &str| json!({ "type": "reasoning", "id": "rs_1", "summary": [], "content": [{ "type": "reasoning_text", "text": text }] });
    let fc = |arguments: &str| json!({ "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": arguments });
    check(
        &[
            event(
                "output_item.added",
                json!({ "item": { "type": "reasoning", "id": "rs_1", "summary": [] } }),
            ),
            event("reasoning_text.delta", json!({ "item_id": "rs_1", "delta": "h" })),
            event("reasoning_text.delta", json!({ "item_id": "rs_1", "delta": "m" })),
            event("output_item.done", json!({ "item": reasoning("hm") })),
            event(
                "output_item.added",
                json!({ "item": { "type": "message", "id": "msg_1", "role": "assistant", "content": [] } }),
            ),
            event(
                "content_part.added",
                json!({ "item_id": "msg_1", "part": { "type": "output_text", "text": "" } }),
            ),
            event("output_text.delta", json!({ "item_id": "msg_1", "delta": "h" })),
            event("output_text.delta", json!({ "item_id": "msg_1", "delta": "i" })),
            event("output_text.done", json!({ "item_id": "msg_1", "text": "hi" })),
            event(
                "content_part.done",
                json!({ "item_id": "msg_1", "part": { "type": "output_text", "text": "hi" } }),
            ),
            event("output_item.done", json!({ "item": message("hi") })),
            event("output_item.added", json!({ "item": fc("") })),
            event("function_call_arguments.delta", json!({ "item_id": "fc_1", "delta": "{}" })),
            event("output_item.done", json!({ "item": fc("{}") })),
            completed(json!([reasoning("hm"), message("hi"), fc("{}")])),
        ],
        &["thought hm", "text hi", "call f {}"],
    );
    // Without ids, an event belongs to the latest item.
    check(
        &[
            event(
                "output_item.added",
                json!({ "item": { "type": "message", "role": "assistant", "content": [] } }),
            ),
            event("output_text.delta", json!({ "delta": "hi" })),
            event(
                "output_item.done",
                json!({ "item": { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "hi" }] } }),
            ),
            event(
                "output_item.added",
                json!({ "item": { "type": "function_call", "call_id": "c1", "name": "f", "arguments": "" } }),
            ),
            event("function_call_arguments.delta", json!({ "delta": "{}" })),
            completed(json!([])),
        ],
        &["text hi", "call f {}"],
    );
}

#[test]
fn text_is_not_repeated_if_events_disagree_on_an_index() {
    let text = |fields: Value| event("output_text.delta", fields);
    let done =
        |index: u32| event("output_item.done", json!({ "output_index": index, "item": message("hi") }));
    let added = event(
        "output_item.added",
        json!({ "output_index": 0, "item": { "type": "message", "id": "msg_1", "role": "assistant", "content": [] } }),
    );
    let delta = json!({ "output_index": 0, "item_id": "msg_1", "content_index": 0, "delta": "hi" });
    // The item's index.
    check(&[added.clone(), text(delta.clone()), done(1), completed(json!([message("hi")]))], &["text hi"]);
    check(&[text(delta.clone()), done(1), completed(json!([]))], &["text hi"]);
    let unnamed = json!({ "output_index": 0, "content_index": 0, "delta": "hi" });
    check(&[text(unnamed), done(1), completed(json!([]))], &["text hi"]);
    // The part's index.
    let late = json!({ "output_index": 0, "item_id": "msg_1", "content_index": 1, "delta": "hi" });
    check(&[added.clone(), text(late), done(0), completed(json!([message("hi")]))], &["text hi"]);
    // The id, as at hosts that encrypt ids anew for every event.
    let other = json!({ "type": "message", "id": "msg_9", "role": "assistant", "content": [{ "type": "output_text", "text": "hi" }] });
    let renamed = event("output_item.done", json!({ "output_index": 0, "item": other.clone() }));
    check(&[added.clone(), text(delta.clone()), renamed, completed(json!([other.clone()]))], &["text hi"]);
    // The index in the response's own output, which leaves out the first item.
    let shifted = event(
        "output_item.added",
        json!({ "output_index": 1, "item": { "type": "message", "id": "msg_1", "role": "assistant", "content": [] } }),
    );
    let delta = json!({ "output_index": 1, "item_id": "msg_1", "content_index": 0, "delta": "hi" });
    check(&[shifted, text(delta), done(1), completed(json!([other]))], &["text hi"]);
}

#[test]
fn items_that_are_only_in_the_last_event_are_read() {
    let added = event(
        "output_item.added",
        json!({ "output_index": 0, "item": { "type": "message", "id": "msg_1", "role": "assistant", "content": [] } }),
    );
    let delta = event("output_text.delta", json!({ "output_index": 0, "content_index": 0, "delta": "hi" }));
    let done = event("output_item.done", json!({ "output_index": 0, "item": message("hi") }));
    let output = json!([message("hi"), call("f", json!("{}"))]);
    check(&[added.clone(), delta.clone(), done, completed(output.clone())], &["text hi", "call f {}"]);
    check(&[added, delta, completed(output.clone())], &["text hi", "call f {}"]);
    check(&[completed(output)], &["text hi", "call f {}"]);
}

#[test]
fn errors_are_read_in_every_shape() {
    let check = |error: &str, kind: ErrorKind, message: &str| {
        let frame: Value = serde_json::from_str(error).unwrap();
        let (_, end) = read_stream(&[created(), frame]);
        let streamed = end.unwrap_err();
        let whole = DIALECT.read_reply(error.as_bytes()).unwrap_err();
        for error in [streamed, whole] {
            assert_eq!((error.kind, error.message.as_str()), (kind, message));
        }
    };
    check(r#"{"error":{"message":"no","code":429}}"#, ErrorKind::RateLimited, "no");
    check(r#"[{"error":{"message":"no","code":400}}]"#, ErrorKind::InvalidRequest, "no");
    check(r#"{"error":"no","code":"bad"}"#, ErrorKind::Upstream, "no");
    check(r#"{"message":"no","code":"rate_limit_exceeded"}"#, ErrorKind::RateLimited, "no");
    check(r#"{"error":{}}"#, ErrorKind::Upstream, "the host reported an error without a message");
    check(r#"{"error":""}"#, ErrorKind::Upstream, "the host reported an error without a message");
}
