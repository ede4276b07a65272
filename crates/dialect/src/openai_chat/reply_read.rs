//! Reads a whole reply, and what whole replies share with streams.

use serde::Deserialize;
use serde_json::{Number, Value};
use toolgate_model::{Extras, Fields, Finish, Losses, Reply, ReplyHead, StopReason, Translated, TurnError};

use super::extras::extras;
use super::stream_read_calls::generated_id;
use super::usage::UsageIn;
use super::wire::AssistantIn;
use super::{ID, content_read_assistant, error, marks};
use crate::json::{self, Unreadable};

#[derive(Deserialize)]
struct ReplyIn {
    id: Option<String>,
    #[serde(rename = "object")]
    _object: Option<serde::de::IgnoredAny>,
    created: Option<Number>,
    model: Option<String>,
    choices: Vec<ChoiceIn>,
    usage: Option<UsageIn>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Deserialize)]
struct ChoiceIn {
    index: Option<u32>,
    message: AssistantIn,
    finish_reason: Option<String>,
    #[serde(flatten)]
    extra: Fields,
}

/// Reads a reply. Only the first choice is read; the gateway itself sends one request per choice.
pub(super) fn read(body: &[u8]) -> Result<Translated<Reply>, TurnError> {
    let wire: ReplyIn = json::read(body).map_err(|error| not_a_reply(body, error))?;
    let ReplyIn { id, _object: _, created, model, choices, usage, extra } = wire;
    let mut losses = Losses::default();
    let mut chosen = None;
    for choice in choices {
        let index = choice.index.unwrap_or(0);
        if chosen.is_none() {
            chosen = Some(choice);
        } else {
            losses.add(format!("choices[{index}]"), "only the first choice is read");
        }
    }
    let Some(ChoiceIn { index: _, message, finish_reason, extra: choice_fields }) = chosen else {
        return Err(TurnError::upstream("the host's reply has no choices; send the request again"));
    };
    let reply_id = id.clone().unwrap_or_default();
    let message = content_read_assistant::read(message, |call| generated_id(call, &reply_id));
    let mut head = ReplyHead {
        id: id.filter(|id| !id.is_empty()).map(Into::into),
        model: model.map(Into::into),
        created: created.and_then(|number| seconds(&number.to_string())),
        extras: extras(extra),
    };
    mark_head(&mut head);
    let message_fields = message.extras.known_to(ID).cloned().unwrap_or_default();
    let mut finish = Finish {
        stop: finish_reason.as_deref().map_or(StopReason::EndTurn, read_stop),
        stop_sequence: None,
        usage: usage.map(UsageIn::into_usage),
        extras: finish_extras(choice_fields, message_fields, Fields::new()),
    };
    if message.extras.is_marked(ID, marks::EMPTY_CONTENT) {
        finish.extras.mark(ID, marks::EMPTY_CONTENT);
    }
    Ok(Translated { value: Reply { head, blocks: message.blocks, finish }, losses })
}

/// The error for a 200 response that is not a reply: the host's own error, if the body contains one.
fn not_a_reply(body: &[u8], error: Unreadable) -> TurnError {
    let has_error = serde_json::from_slice::<Value>(body)
        .is_ok_and(|body| body.get("error").is_some_and(|error| !error.is_null()));
    if has_error {
        return error::read_in_band(&String::from_utf8_lossy(body));
    }
    let at = error.path.map_or_else(String::new, |path| format!(" at {path}"));
    let message = format!(
        "the host's response is not a chat completion{at}; check the upstream's dialect and base_url"
    );
    TurnError::upstream(message).caused_by(error.cause)
}

/// Whole seconds since 1970; some hosts send fractions.
pub(super) fn seconds(number: &str) -> Option<u64> {
    number.split('.').next()?.parse().ok()
}

/// Marks the head as read in this dialect. Its fields are the envelope of the reply (`system_fingerprint`).
pub(super) fn mark_head(head: &mut ReplyHead) {
    head.extras.mark(ID, marks::NATIVE);
    head.extras = std::mem::take(&mut head.extras).all_envelope_fields();
}

/// The key of the message's unknown fields in a finish's extras; the choice's fields are beside it.
pub(super) const MESSAGE: &str = "message";

/// The key of the reply's unknown fields that arrived after its head.
pub(super) const REPLY: &str = "reply";

/// Combines the unknown fields that are complete only at the end.
pub(super) fn finish_extras(mut choice: Fields, message: Fields, reply: Fields) -> Extras {
    for (name, fields) in [(MESSAGE, message), (REPLY, reply)] {
        if !fields.is_empty() {
            choice.insert(name.to_owned(), Value::Object(fields));
        }
    }
    extras(choice).envelope_fields(&[REPLY])
}

/// Reads `finish_reason`.
pub(super) fn read_stop(reason: &str) -> StopReason {
    match reason {
        "stop" | "" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::ContentFilter,
        other => StopReason::Other(other.to_owned()),
    }
}
