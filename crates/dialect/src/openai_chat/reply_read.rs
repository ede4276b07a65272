//! Reads a whole reply, and what whole replies share with streams.

use serde::Deserialize;
use serde_json::{Number, Value};
use toolgate_model::{
    Block, Extras, Fields, Finish, Losses, Reply, ReplyHead, StopReason, Translated, TurnError,
};

use super::extras::extras;
use super::stream_read_calls::generated_id;
use super::usage::UsageIn;
use super::wire::AssistantIn;
use super::{ID, content_read_assistant, error, marks};
use crate::json::{self, Unreadable};
use crate::openai_shared::with_notes;

#[derive(Deserialize)]
struct ReplyIn {
    id: Option<String>,
    #[serde(rename = "object")]
    _object: Option<serde::de::IgnoredAny>,
    created: Option<Number>,
    model: Option<String>,
    choices: Vec<ChoiceIn>,
    usage: Option<UsageIn>,
    error: Option<Value>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Deserialize)]
struct ChoiceIn {
    index: Option<u32>,
    /// Missing if the host's filter removed it.
    message: Option<AssistantIn>,
    finish_reason: Option<String>,
    error: Option<Value>,
    #[serde(flatten)]
    extra: Fields,
}

/// Reads a reply. Only the first choice is read; the gateway itself sends one request per choice.
pub(super) fn read(body: &[u8]) -> Result<Translated<Reply>, TurnError> {
    let wire: ReplyIn = json::read(body).map_err(|error| not_a_reply(body, error))?;
    let ReplyIn { id, _object: _, created, model, choices, usage, error, extra } = wire;
    if error.is_some_and(|error| choices.is_empty() || !error::is_empty(&error.to_string())) {
        return Err(error::read_in_band(&String::from_utf8_lossy(body)));
    }
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
    let Some(ChoiceIn { index: _, message, finish_reason, error, extra: choice_fields }) = chosen else {
        return Err(TurnError::upstream("the host's reply has no choices; send the request again"));
    };
    if let Some(error) = error {
        return Err(error::read_in_band(&error.to_string()));
    }
    let stop = match finish_reason.as_deref().filter(|reason| !reason.is_empty()) {
        Some(reason) => Some(read_stop(reason)?),
        None => finish_details(&choice_fields)?,
    };
    let reply_id = id.clone().unwrap_or_default();
    let message =
        content_read_assistant::read(message.unwrap_or_default(), |call| generated_id(call, &reply_id));
    let mut blocks = without_nameless_calls(message.blocks, &mut losses);
    let has_calls = blocks.iter().any(|block| matches!(block, Block::ToolCall(_)));
    let has_refusal = blocks.iter().any(|block| matches!(block, Block::Refusal(_)));
    let mut head = ReplyHead {
        id: id.filter(|id| !id.is_empty()).map(Into::into),
        model: model.map(Into::into),
        created: created.and_then(|number| seconds(&number.to_string())),
        service_tier: service_tier(&extra),
        extras: extras(extra),
    };
    mark_head(&mut head);
    let message_fields = message.extras.known_to(ID).cloned().unwrap_or_default();
    let noted = note_last_text(&mut blocks, &choice_fields, &message_fields);
    let mut finish = Finish {
        stop: stop_of(stop, has_calls, has_refusal),
        stop_sequence: None,
        usage: usage.map(UsageIn::into_usage),
        extras: finish_extras(choice_fields, message_fields, Fields::new(), noted),
    };
    if message.extras.is_marked(ID, marks::EMPTY_CONTENT) {
        finish.extras.mark(ID, marks::EMPTY_CONTENT);
    }
    Ok(Translated { value: Reply { head, blocks, finish }, losses })
}

/// The error for a 200 response that is not a reply: the host's own error, if the body contains one.
fn not_a_reply(body: &[u8], error: Unreadable) -> TurnError {
    if let Some(error) = error::find(&String::from_utf8_lossy(body)) {
        return error;
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

/// The field of a reply with its price and speed.
pub(super) const SERVICE_TIER: &str = "service_tier";

/// Reads the price and speed; the field also stays among the unknown ones.
pub(super) fn service_tier(fields: &Fields) -> Option<String> {
    fields.get(SERVICE_TIER).and_then(Value::as_str).map(str::to_owned)
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
pub(super) fn finish_extras(mut choice: Fields, message: Fields, reply: Fields, noted: Noted) -> Extras {
    let only_notes = message.keys().all(|name| name == ANNOTATIONS);
    let envelope: &[&str] = match noted {
        Noted::No => &[REPLY],
        Noted::Yes if only_notes => &[REPLY, LOGPROBS, MESSAGE],
        Noted::Yes => &[REPLY, LOGPROBS],
    };
    for (name, fields) in [(MESSAGE, message), (REPLY, reply)] {
        if !fields.is_empty() {
            choice.insert(name.to_owned(), Value::Object(fields));
        }
    }
    extras(choice).envelope_fields(envelope)
}

/// The field of a message with the sources of its text.
pub(super) const ANNOTATIONS: &str = "annotations";
/// The field of a choice with the probabilities of its tokens.
pub(super) const LOGPROBS: &str = "logprobs";

/// Whether a text of the reply carries its notes, so that other dialects can write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    No,
    Yes,
}

/// The extras of a reply's last text: the notes on it, which are fields of the choice and the message here.
pub(super) fn text_notes(choice: &Fields, message: &Fields) -> Extras {
    let logprobs = choice.get(LOGPROBS).and_then(|logprobs| logprobs.get("content"));
    with_notes(Extras::NONE, ID, message.get(ANNOTATIONS), logprobs)
}

/// Adds the notes to the last text.
fn note_last_text(blocks: &mut [Block], choice: &Fields, message: &Fields) -> Noted {
    let notes = text_notes(choice, message);
    let is_text = |block: &&mut Block| matches!(block, Block::Text(text) if text.extras.is_empty());
    match blocks.iter_mut().rev().find(is_text) {
        Some(Block::Text(text)) if !notes.is_empty() => {
            text.extras = notes;
            Noted::Yes
        }
        _ => Noted::No,
    }
}

/// Drops calls without a name (T15): some hosts send an empty call with every message.
fn without_nameless_calls(blocks: Vec<Block>, losses: &mut Losses) -> Vec<Block> {
    let is_nameless = |block: &Block| matches!(block, Block::ToolCall(call) if call.name.as_str().is_empty());
    let (nameless, named): (Vec<Block>, Vec<Block>) = blocks.into_iter().partition(is_nameless);
    for block in nameless {
        if matches!(&block, Block::ToolCall(call) if !call.arguments.is_empty()) {
            losses.add("tool_calls[]", "the host sent no name for the call");
        }
    }
    named
}

/// Reads `finish_details`, which early vision models send in place of `finish_reason`.
fn finish_details(choice: &Fields) -> Result<Option<StopReason>, TurnError> {
    let kind = choice.get("finish_details").and_then(|details| details.get("type")?.as_str());
    kind.map(read_stop).transpose()
}

/// Reads `finish_reason`, with the names that hosts use beside those of the specification. Some of them mean that the
/// reply failed.
pub(super) fn read_stop(reason: &str) -> Result<StopReason, TurnError> {
    Ok(match reason.to_ascii_lowercase().as_str() {
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_calls" | "function_call" | "tool_use" => StopReason::ToolUse,
        "length" | "max_tokens" | "model_length" => StopReason::MaxTokens,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        "content_filter" | "sensitive" | "safety" => StopReason::ContentFilter,
        "error" | "insufficient_system_resource" | "network_error" => {
            return Err(TurnError::upstream(format!(
                "the host ended its reply with the finish reason `{reason}`; send the request again"
            )));
        }
        _ => StopReason::Other(reason.to_owned()),
    })
}

/// The stop reason. If the host gives none, a call decides. The API reports a refusal only in the message.
pub(super) fn stop_of(given: Option<StopReason>, has_calls: bool, has_refusal: bool) -> StopReason {
    match given {
        None if has_calls => StopReason::ToolUse,
        None | Some(StopReason::EndTurn) if has_refusal => StopReason::Refusal,
        None => StopReason::EndTurn,
        Some(stop) => stop,
    }
}
