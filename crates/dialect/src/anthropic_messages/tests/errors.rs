//! Errors, read and written.

use serde_json::{Value, json};
use toolgate_model::{ErrorKind, TurnError};

use crate::anthropic_messages::DIALECT;
use crate::{ClientDialect, UpstreamDialect};

#[test]
fn an_error_keeps_its_kind_status_and_message() {
    // T38
    let kinds = [
        (ErrorKind::InvalidRequest, "invalid_request_error"),
        (ErrorKind::Authentication, "authentication_error"),
        (ErrorKind::Billing, "billing_error"),
        (ErrorKind::Permission, "permission_error"),
        (ErrorKind::NotFound, "not_found_error"),
        (ErrorKind::Conflict, "conflict_error"),
        (ErrorKind::TooLarge, "request_too_large"),
        (ErrorKind::RateLimited, "rate_limit_error"),
        (ErrorKind::Internal, "api_error"),
        (ErrorKind::Upstream, "api_error"),
        (ErrorKind::Unavailable, "api_error"),
        (ErrorKind::Timeout, "timeout_error"),
        (ErrorKind::Overloaded, "overloaded_error"),
        (ErrorKind::Cancelled, "api_error"),
    ];
    for (kind, word) in kinds {
        let mut error = TurnError::new(kind, "why");
        error.code = Some("some_code".into());
        let body = DIALECT.write_error(&error);
        let json: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            json,
            json!({ "type": "error", "error": { "type": word, "message": "why", "details": { "error_code": "some_code" } } })
        );
        assert_eq!(DIALECT.read_error(error.status(), &body), error);
    }
}

#[test]
fn unknown_error_bodies_still_give_a_clear_error() {
    let cases: [(u16, &str, ErrorKind, &str); 5] = [
        (
            422,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"m","code":1}}"#,
            ErrorKind::InvalidRequest,
            "m",
        ),
        (418, r#"{"error":{"message":"m"}}"#, ErrorKind::InvalidRequest, "m"),
        (
            502,
            "<html>bad gateway</html>",
            ErrorKind::Upstream,
            "status 502 and a body that is not an error of the Messages API: <html>",
        ),
        (503, "", ErrorKind::Unavailable, "status 503 and an empty body"),
        (529, r#"{"error":{"type":"new_error"}}"#, ErrorKind::Overloaded, "an error without a message"),
    ];
    for (status, body, kind, message) in cases {
        let error = DIALECT.read_error(status, body.as_bytes());
        assert_eq!((error.kind, error.status()), (kind, status), "{body}");
        assert!(error.message.contains(message), "{}", error.message);
    }
}

#[test]
fn stored_replies_are_not_supported() {
    let mut request = super::request_of(Vec::new());
    assert_eq!(DIALECT.recall(&mut request, "").unwrap_err().status(), 400);
}
