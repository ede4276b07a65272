//! How each host says no.

use serde_json::json;

use crate::Script;

/// The format of a host's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorFormat {
    OpenAi,
    Anthropic,
    Gemini,
    Cerebras,
    Mistral,
    Xai,
    MiniMax,
    Zai,
    /// A numeric code, as vLLM and others have it.
    NumericCode,
    /// The error is a string.
    Text,
}

/// The refusal of a request.
pub(super) fn script(format: ErrorFormat, message: &str) -> Script {
    let invalid = "invalid_request_error";
    let (status, body) = match format {
        ErrorFormat::OpenAi => {
            (400, json!({"error": {"message": message, "type": invalid, "param": null, "code": null}}))
        }
        ErrorFormat::Anthropic => (
            400,
            json!({"type": "error", "error": {"type": invalid, "message": message}, "request_id": "req_1"}),
        ),
        ErrorFormat::Gemini => {
            (400, json!([{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]))
        }
        ErrorFormat::Cerebras => {
            (422, json!({"message": message, "type": invalid, "param": "body", "code": "wrong_api_format"}))
        }
        ErrorFormat::Mistral => {
            let detail = json!({"type": "extra_forbidden", "loc": ["body"], "msg": message, "input": null});
            (
                422,
                json!({"object": "error", "message": {"detail": [detail]}, "type": invalid, "param": null, "code": null}),
            )
        }
        ErrorFormat::Xai => (400, json!({"code": "Client specified an invalid argument", "error": message})),
        ErrorFormat::MiniMax => {
            let error = json!({"type": "bad_request_error", "message": message, "http_code": "400"});
            (400, json!({"type": "error", "error": error, "request_id": "1"}))
        }
        ErrorFormat::Zai => (400, json!({"error": {"code": "1210", "message": message}})),
        ErrorFormat::NumericCode => (
            400,
            json!({"error": {"message": message, "type": "BadRequestError", "param": null, "code": 400}}),
        ),
        ErrorFormat::Text => (400, json!({"error": message})),
    };
    Script::json(status, body)
}
