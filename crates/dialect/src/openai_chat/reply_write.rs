//! Writes a whole reply, and what whole replies share with streams.

use serde::Serialize;
use serde_json::{Value, json};
use toolgate_model::{
    Block, Extras, Fields, Finish, Losses, Notes, Reply, ReplyHead, StopReason, ToolCall, Translated,
};

use super::content_write_assistant::{self, AssistantOut, CallForm, WriteContext};
use super::content_write_reasoning::MessageReader;
use super::extras::take_object;
use super::reply_read::{ANNOTATIONS, LOGPROBS, MESSAGE, REPLY, SERVICE_TIER};
use super::usage::UsageOut;
use super::{ID, Origin, marks};
use crate::openai_shared::{URL_CITATION, characters, citation_fields};
use crate::{NameMap, ReplyContext};

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
    let mut extra = head_fields(head, &mut losses);
    let FinishFields { mut choice, mut message, reply: late } = finish_fields(&finish.extras, &mut losses);
    extra.extend(late);
    let mut notes = NoteFields::default();
    for block in blocks {
        let Block::Text(text) = block else { continue };
        notes.add(text.extras.notes_for(ID), characters(&text.text));
    }
    choice.extend(notes.choice());
    message.extend(notes.message());
    let names = NameMap::default();
    let calls = call_form(context);
    let write_context = WriteContext {
        origin: Origin::of(&head.extras),
        reader: MessageReader::Client,
        names: &names,
        calls,
        place: "message",
    };
    let mut message_extras = Extras::of(ID, message);
    if finish.extras.is_marked(ID, marks::EMPTY_CONTENT) {
        message_extras.mark(ID, marks::EMPTY_CONTENT);
    }
    let message = content_write_assistant::write(
        blocks,
        &message_extras,
        write_context,
        |_, call| written_call_id(call),
        &mut losses,
    );
    let out = ReplyOut {
        id: written_id(head, context),
        object: "chat.completion",
        created: head.created.unwrap_or(context.now),
        model: head.model.as_ref().unwrap_or(&context.request.model).as_str(),
        choices: [ChoiceOut {
            index: 0,
            message,
            finish_reason: write_stop(finish, calls, refusal_form(blocks), &mut losses),
            extra: choice,
        }],
        usage: finish.usage.as_ref().map(|usage| UsageOut::new(usage, &mut losses)),
        extra,
    };
    // Serializing cannot fail: keys are strings and numbers are finite.
    let value = serde_json::to_vec(&out).unwrap_or_default();
    Translated { value, losses }
}

/// The fields of a reply beside its choices.
pub(super) fn head_fields(head: &ReplyHead, losses: &mut Losses) -> Fields {
    let mut fields = head.extras.write(ID, "", losses);
    let tier = head.service_tier.as_deref().map(|tier| (SERVICE_TIER.to_owned(), Value::from(tier)));
    fields.extend(tier.filter(|_| Origin::of(&head.extras) == Origin::Foreign));
    fields
}

/// A call without an id at the host stays without one for clients of this dialect. (In a history it gets one.)
fn written_call_id(call: &ToolCall) -> &str {
    if call.extras.is_marked(ID, marks::NO_ID) { "" } else { call.id.as_str() }
}

fn refusal_form(blocks: &[Block]) -> RefusalForm {
    let has_refusal = blocks.iter().any(|block| matches!(block, Block::Refusal(_)));
    if has_refusal { RefusalForm::Message } else { RefusalForm::FinishReason }
}

/// The parts of a finish's extras.
pub(super) struct FinishFields {
    pub(super) choice: Fields,
    pub(super) message: Fields,
    pub(super) reply: Fields,
}

/// The inverse of [`super::reply_read::finish_extras`].
pub(super) fn finish_fields(extras: &Extras, losses: &mut Losses) -> FinishFields {
    let mut choice = extras.write(ID, "finish", losses);
    let message = take_object(&mut choice, MESSAGE);
    let reply = take_object(&mut choice, REPLY);
    FinishFields { choice, message, reply }
}

/// The notes on texts of another dialect, as fields of the choice and its message.
#[derive(Default)]
pub(super) struct NoteFields {
    annotations: Vec<Value>,
    logprobs: Vec<Value>,
    /// The length of the texts so far.
    length: u64,
}

impl NoteFields {
    /// Adds the notes on the next text.
    pub(super) fn add(&mut self, notes: Option<&Notes>, length: u64) {
        let text = self.length..self.length + length;
        self.length = text.end;
        let Some(Notes { citations, logprobs }) = notes else { return };
        for citation in citations {
            let fields = citation_fields(citation, text.clone());
            self.annotations.push(json!({ "type": URL_CITATION, URL_CITATION: fields }));
        }
        self.logprobs.extend(logprobs.iter().cloned());
    }

    /// The fields of the choice.
    pub(super) fn choice(&mut self) -> Fields {
        let logprobs = std::mem::take(&mut self.logprobs);
        let has_any = !logprobs.is_empty();
        let value = json!({ "content": logprobs, "refusal": null });
        Fields::from_iter(has_any.then(|| (LOGPROBS.to_owned(), value)))
    }

    /// The fields of the message.
    pub(super) fn message(&mut self) -> Fields {
        let annotations = std::mem::take(&mut self.annotations);
        let has_any = !annotations.is_empty();
        Fields::from_iter(has_any.then(|| (ANNOTATIONS.to_owned(), Value::Array(annotations))))
    }
}

/// Writes `finish_reason`.
pub(super) fn write_stop<'a>(
    finish: &'a Finish,
    calls: CallForm,
    refusal: RefusalForm,
    losses: &mut Losses,
) -> &'a str {
    if finish.stop_sequence.is_some() {
        losses.unknown_to(ID, "stop_sequence");
    }
    match &finish.stop {
        StopReason::Refusal if refusal == RefusalForm::Message => "stop",
        StopReason::EndTurn | StopReason::StopSequence => "stop",
        StopReason::ToolUse => match calls {
            CallForm::Tools => "tool_calls",
            CallForm::Legacy => "function_call",
        },
        StopReason::MaxTokens | StopReason::ContextWindow => "length",
        StopReason::Refusal | StopReason::ContentFilter => "content_filter",
        StopReason::PauseTurn => {
            losses.add("stop_reason", "openai-chat has no value for a paused turn");
            "stop"
        }
        StopReason::Other(reason) => reason,
    }
}

/// Where a reply shows that the model refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusalForm {
    /// In the message's `refusal`; the finish reason is then an ordinary one.
    Message,
    /// In the finish reason only.
    FinishReason,
}

/// The form in which the client expects calls.
pub(super) fn call_form(context: &ReplyContext) -> CallForm {
    if context.request.extras.is_marked(ID, marks::LEGACY) { CallForm::Legacy } else { CallForm::Tools }
}

const ID_PREFIX: &str = "chatcmpl-";

/// The reply's id: a native id is kept, any other gets this dialect's prefix.
pub(super) fn written_id(head: &ReplyHead, context: &ReplyContext) -> String {
    let id = head.id.as_ref().map_or(context.fallback_id.as_str(), |id| id.as_str());
    let is_own = head.id.is_some() && Origin::of(&head.extras) == Origin::Native;
    if is_own || id.starts_with(ID_PREFIX) { id.to_owned() } else { format!("{ID_PREFIX}{id}") }
}

/// Joins several whole replies to one request into one reply with several choices. As the API defines for `n`, prompt
/// tokens count once and completion tokens add up.
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
