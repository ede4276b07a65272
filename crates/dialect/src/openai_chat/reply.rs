//! Whole replies, in both directions, and what they share with streams.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use toolgate_model::{
    Extras, Fields, Finish, Losses, Reply, ReplyHead, StopReason, ToolCall, Translated, TurnError,
};

use super::assistant;
use super::assistant_write::{self, AssistantOut, CallForm, Voice};
use super::calls::made_up_id;
use super::fields::{extras, take_object};
use super::usage::{UsageIn, UsageOut};
use super::wire::AssistantIn;
use super::{ID, Origin, error, marks};
use crate::json::{self, Unreadable};
use crate::{NameMap, ReplyContext};

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
    let said = assistant::read(message, |call| made_up_id(call, &reply_id));
    let mut head = ReplyHead {
        id: id.filter(|id| !id.is_empty()).map(Into::into),
        model: model.map(Into::into),
        created: created.and_then(|number| seconds(&number.to_string())),
        extras: extras(extra),
    };
    mark_head(&mut head);
    let message_fields = said.extras.known_to(ID).cloned().unwrap_or_default();
    let mut finish = Finish {
        stop: finish_reason.as_deref().map_or(StopReason::EndTurn, read_stop),
        stop_sequence: None,
        usage: usage.map(UsageIn::into_usage),
        extras: finish_extras(choice_fields, message_fields, Fields::new()),
    };
    if said.extras.is_marked(ID, marks::EMPTY_CONTENT) {
        finish.extras.mark(ID, marks::EMPTY_CONTENT);
    }
    Ok(Translated { value: Reply { head, blocks: said.blocks, finish }, losses })
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
const MESSAGE: &str = "message";
/// Where fields of the whole reply stand that came after its head.
const REPLY: &str = "reply";

/// Everything that is known only in the end.
pub(super) fn finish_extras(mut choice: Fields, message: Fields, reply: Fields) -> Extras {
    for (name, fields) in [(MESSAGE, message), (REPLY, reply)] {
        if !fields.is_empty() {
            choice.insert(name.to_owned(), Value::Object(fields));
        }
    }
    extras(choice)
}

/// What [`finish_extras`] put together.
pub(super) struct FinishFields {
    pub(super) choice: Fields,
    pub(super) message: Fields,
    pub(super) reply: Fields,
}

/// Undoes [`finish_extras`].
pub(super) fn finish_fields(extras: &Extras, losses: &mut Losses) -> FinishFields {
    let mut choice = extras.write(ID, "finish", losses);
    let message = take_object(&mut choice, MESSAGE);
    let reply = take_object(&mut choice, REPLY);
    FinishFields { choice, message, reply }
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

/// Why the reply ended, in this dialect's words.
pub(super) fn write_stop<'a>(finish: &'a Finish, calls: CallForm, losses: &mut Losses) -> &'a str {
    if finish.stop_sequence.is_some() {
        losses.unknown_to(ID, "stop_sequence");
    }
    match &finish.stop {
        StopReason::EndTurn | StopReason::StopSequence => "stop",
        StopReason::ToolUse => match calls {
            CallForm::Tools => "tool_calls",
            CallForm::Legacy => "function_call",
        },
        StopReason::MaxTokens | StopReason::ContextWindow => "length",
        StopReason::Refusal | StopReason::ContentFilter => "content_filter",
        StopReason::PauseTurn => {
            losses.add("stop_reason", "openai-chat cannot say that the turn is paused");
            "stop"
        }
        StopReason::Other(word) => word,
    }
}

/// How the client expects calls.
pub(super) fn call_form(context: &ReplyContext) -> CallForm {
    if context.request.extras.is_marked(ID, marks::LEGACY) { CallForm::Legacy } else { CallForm::Tools }
}

/// The reply's id: a host's own stays, everything else gets this dialect's prefix.
pub(super) fn written_id(head: &ReplyHead, context: &ReplyContext) -> String {
    let id = head.id.as_ref().map_or(context.fallback_id.as_str(), |id| id.as_str());
    let is_own = head.id.is_some() && Origin::of(&head.extras) == Origin::Native;
    if is_own || id.starts_with(ID_PREFIX) { id.to_owned() } else { format!("{ID_PREFIX}{id}") }
}

const ID_PREFIX: &str = "chatcmpl-";

#[derive(Serialize)]
struct ReplyOut<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [ChoiceOut<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageOut>,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
struct ChoiceOut<'a> {
    index: u32,
    message: AssistantOut<'a>,
    finish_reason: &'a str,
    #[serde(flatten)]
    extra: Fields,
}

/// Writes a reply.
pub(super) fn write(reply: &Reply, context: &ReplyContext) -> Translated<Vec<u8>> {
    let Reply { head, blocks, finish } = reply;
    let mut losses = Losses::default();
    let mut extra = head.extras.write(ID, "", &mut losses);
    let FinishFields { choice, message, reply: late } = finish_fields(&finish.extras, &mut losses);
    extra.extend(late);
    let names = NameMap::default();
    let calls = call_form(context);
    let voice = Voice { origin: Origin::of(&head.extras), names: &names, calls, place: "message" };
    let mut message_extras = Extras::of(ID, message);
    if finish.extras.is_marked(ID, marks::EMPTY_CONTENT) {
        message_extras.mark(ID, marks::EMPTY_CONTENT);
    }
    let message =
        assistant_write::write(blocks, &message_extras, voice, |_, call| written_call_id(call), &mut losses);
    let out = ReplyOut {
        id: written_id(head, context),
        object: "chat.completion",
        created: head.created.unwrap_or(context.now),
        model: head.model.as_ref().unwrap_or(&context.request.model).as_str(),
        choices: [ChoiceOut {
            index: 0,
            message,
            finish_reason: write_stop(finish, calls, &mut losses),
            extra: choice,
        }],
        usage: finish.usage.as_ref().map(|usage| UsageOut::new(usage, &mut losses)),
        extra,
    };
    // Nothing in it can fail to serialise: keys are strings and numbers finite.
    let value = serde_json::to_vec(&out).unwrap_or_default();
    Translated { value, losses }
}

/// What a host left out stays out for its own clients; in a history every call gets an id.
fn written_call_id(call: &ToolCall) -> &str {
    if call.extras.is_marked(ID, marks::NO_ID) { "" } else { call.id.as_str() }
}

/// Joins whole replies to the same request into one with several choices. As this API defines it for `n`, the
/// prompt counts once and the answers' tokens add up.
pub fn merge_choices(replies: Vec<Vec<u8>>) -> Vec<u8> {
    let mut replies = replies.into_iter().filter_map(|reply| serde_json::from_slice::<Fields>(&reply).ok());
    let Some(mut merged) = replies.next() else { return b"{}".to_vec() };
    for mut reply in replies {
        let choices = reply.get_mut("choices").map(Value::take);
        if let (Some(Value::Array(all)), Some(Value::Array(more))) = (merged.get_mut("choices"), choices) {
            all.extend(more);
        }
        add_completion(&mut merged, &reply);
    }
    if let Some(Value::Array(choices)) = merged.get_mut("choices") {
        for (index, choice) in choices.iter_mut().enumerate() {
            choice["index"] = Value::from(index);
        }
    }
    serde_json::to_vec(&merged).unwrap_or_default()
}

fn add_completion(merged: &mut Fields, reply: &Fields) {
    let (Some(total), Some(more)) = (merged.get_mut("usage"), reply.get("usage")) else { return };
    let count = |usage: &Value, path: &str| usage.pointer(path).and_then(Value::as_u64);
    let added = count(more, "/completion_tokens").unwrap_or_default();
    for path in ["/completion_tokens", "/total_tokens"] {
        let sum = count(total, path).unwrap_or_default().saturating_add(added);
        if let Some(figure) = total.pointer_mut(path) {
            *figure = Value::from(sum);
        }
    }
    let reasoning = "/completion_tokens_details/reasoning_tokens";
    if let (Some(old), Some(new)) = (count(total, reasoning), count(more, reasoning))
        && let Some(figure) = total.pointer_mut(reasoning)
    {
        *figure = Value::from(old.saturating_add(new));
    }
}
