//! Errors in the shapes that hosts use, with an error status, with status 200, and inside a stream.

use toolgate_model::ErrorKind;

use super::{DIALECT, chunk, read_stream};
use crate::UpstreamDialect as _;

/// A body, and the kind, message and code of the error in it.
const SHAPES: [(&str, ErrorKind, &str, Option<&str>); 14] = [
    (
        r#"{"error":{"message":"no","type":"rate_limit_error","code":"slow"}}"#,
        ErrorKind::RateLimited,
        "no",
        Some("slow"),
    ),
    (r#"{"error":{}}"#, ErrorKind::Upstream, "the host reported an error without a message", None),
    (r#"{"error":""}"#, ErrorKind::Upstream, "the host reported an error without a message", None),
    (r#"{"error":"no"}"#, ErrorKind::Upstream, "no", None),
    (r#"{"message":"no","code":"wrong_api_format"}"#, ErrorKind::Upstream, "no", Some("wrong_api_format")),
    (
        r#"[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]"#,
        ErrorKind::InvalidRequest,
        "no",
        Some("400"),
    ),
    (r#"{"error":{"message":"no","code":429}}"#, ErrorKind::RateLimited, "no", Some("429")),
    (
        r#"{"code":"The caller lacks permission","error":"no"}"#,
        ErrorKind::Upstream,
        "no",
        Some("The caller lacks permission"),
    ),
    (r#"{"error":{"code":"1210","message":"no"}}"#, ErrorKind::InvalidRequest, "no", Some("1210")),
    (r#"{"code":1113,"msg":"no","success":false}"#, ErrorKind::Billing, "no", Some("1113")),
    (r#"{"error":{"code":"1302","message":"no"}}"#, ErrorKind::RateLimited, "no", Some("1302")),
    (r#"{"detail":"no"}"#, ErrorKind::Upstream, "no", None),
    (r#"{"error":{"message":"no"},"choices":[]}"#, ErrorKind::Upstream, "no", None),
    (
        r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#,
        ErrorKind::InvalidRequest,
        "no",
        Some("context_length_exceeded"),
    ),
];

#[test]
fn errors_are_read_with_status_200_and_inside_a_stream() {
    let text = chunk(r#"{"content":"hi"}"#);
    for (body, kind, message, code) in SHAPES {
        let whole = DIALECT.read_reply(body.as_bytes()).unwrap_err();
        let streamed = read_stream(&[&text, body, "[DONE]"]).unwrap_err();
        for error in [whole, streamed] {
            assert_eq!(
                (error.kind, error.message.as_str(), error.code.as_deref()),
                (kind, message, code),
                "{body}"
            );
        }
    }
}

#[test]
fn errors_with_a_status_keep_it() {
    for (body, _, message, code) in SHAPES {
        let error = DIALECT.read_error(422, body.as_bytes());
        assert_eq!(
            (error.status(), error.message.as_str(), error.code.as_deref()),
            (422, message, code),
            "{body}"
        );
    }
}

#[test]
fn an_error_in_a_choice_fails_the_reply() {
    let choice =
        r#"{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"no"}}"#;
    let frame = format!(r#"{{"id":"r1","choices":[{choice}]}}"#);
    let error = read_stream(&[&chunk(r#"{"content":"hi"}"#), &frame, "[DONE]"]).unwrap_err();
    assert_eq!((error.message.as_str(), error.status()), ("no", 502));
    let whole = r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":null,"error":{"code":502,"message":"no"}}]}"#;
    let error = DIALECT.read_reply(whole.as_bytes()).unwrap_err();
    assert_eq!((error.message.as_str(), error.status()), ("no", 502));
    let failed = r#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"error"}]}"#;
    assert!(DIALECT.read_reply(failed.as_bytes()).unwrap_err().message.contains("`error`"));
}

#[test]
fn groq_reports_errors_in_its_own_field() {
    let frame = r#"{"id":"r1","choices":[],"x_groq":{"error":"no"}}"#;
    assert_eq!(read_stream(&[&chunk(r#"{"content":"hi"}"#), frame]).unwrap_err().message, "no");
    let frame = r#"{"id":"r1","choices":[],"x_groq":{"error":{"message":"no"}}}"#;
    assert_eq!(read_stream(&[frame]).unwrap_err().message, "no");
}

#[test]
fn an_empty_error_beside_choices_is_none() {
    for empty in ["null", "\"\"", "{}"] {
        let choices = r#""choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]"#;
        DIALECT.read_reply(format!(r#"{{{choices},"error":{empty}}}"#).as_bytes()).unwrap();
        let frame = format!(r#"{{"id":"r1",{choices},"error":{empty}}}"#);
        read_stream(&[&frame, "[DONE]"]).unwrap();
    }
}
