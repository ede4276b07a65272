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

/// Reads a reply. With several choices the first is read; asking for several is the gateway's business.
pub(super) fn read(body: &[u8]) -> Result<Translated<Reply>, TurnError> {
    let wire: ReplyIn = json::read(body).map_err(|error| no_reply(body, error))?;
    let ReplyIn { id, _object: _, created, model, choices, usage, extra } = wire;
    let mut losses = Losses::default();
    let mut chosen = None;
    for choice in choices {
        let index = choice.index.unwrap_or(0);
        if chosen.is_none() {
            chosen = Some(choice);
        } else {
            losses.add(format!("choices[{index}]"), "one answer is read from a reply");
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

/// A host may answer 200 and tell an error, or answer something else altogether.
fn no_reply(body: &[u8], error: Unreadable) -> TurnError {
    let says_error = serde_json::from_slice::<Value>(body)
        .is_ok_and(|body| body.get("error").is_some_and(|error| !error.is_null()));
    if says_error {
        return error::read_in_band(&String::from_utf8_lossy(body));
    }
    let at = error.place.map_or_else(String::new, |place| format!(" at {place}"));
    let message =
        format!("the host's answer is no chat completion{at}; check the upstream's dialect and base_url");
    TurnError::upstream(message).caused_by(error.cause)
}

/// Seconds since 1970; some hosts send fractions.
pub(super) fn seconds(number: &str) -> Option<u64> {
    number.split('.').next()?.parse().ok()
}

/// Says on the head that the reply came in this dialect.
pub(super) fn mark_head(head: &mut ReplyHead) {
    head.extras.mark(ID, marks::NATIVE);
}

/// Where the message's own fields stand in a finish's extras; beside them are the choice's.
pub(super) const MESSAGE: &str = "message";

/// Where fields of the whole reply stand that came after its head.
pub(super) const REPLY: &str = "reply";

/// Everything that is known only in the end.
pub(super) fn finish_extras(mut choice: Fields, message: Fields, reply: Fields) -> Extras {
    for (name, fields) in [(MESSAGE, message), (REPLY, reply)] {
        if !fields.is_empty() {
            choice.insert(name.to_owned(), Value::Object(fields));
        }
    }
    extras(choice)
}

/// Why the host stopped.
pub(super) fn read_stop(word: &str) -> StopReason {
    match word {
        "stop" | "" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::ContentFilter,
        other => StopReason::Other(other.to_owned()),
    }
}
