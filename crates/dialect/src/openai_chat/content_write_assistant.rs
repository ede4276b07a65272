//! Writes an assistant message, in a request's history and in a whole reply.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{Block, CallKind, Extras, Fields, Losses, Seal, Text, ToolCall};

use super::content_read_assistant::is_part;
use super::content_write::{ContentOut, PartOut, TypedPart};
use super::content_write_reasoning::{self, MessageReader};
use super::extras::write_nested;
use super::reasoning_details::REASONING_DETAILS;
use super::{ID, Origin, marks, thought_signature};
use crate::NameMap;
use crate::host::{HostProfile, ReasoningRequired, ThoughtSignatures};

/// A message as it is written.
#[derive(Serialize)]
pub(super) struct AssistantOut<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "MessageContent::is_absent")]
    content: MessageContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCallOut<'a>>,
    #[serde(flatten)]
    pub(super) extra: Fields,
}

/// The content of a message. Some hosts refuse `null`, others require the field.
#[derive(Serialize)]
#[serde(untagged)]
enum MessageContent<'a> {
    Absent,
    Null,
    Present(ContentOut<'a>),
}

impl MessageContent<'_> {
    fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum CallOut<'a> {
    Function {
        id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        r#type: Option<&'static str>,
        function: FunctionCallOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
    Custom {
        id: &'a str,
        r#type: &'static str,
        custom: CustomCallOut<'a>,
        #[serde(flatten)]
        extra: Fields,
    },
    Opaque(&'a Fields),
}

#[derive(Serialize)]
struct FunctionCallOut<'a> {
    name: &'a str,
    arguments: &'a str,
    #[serde(flatten)]
    extra: Fields,
}

#[derive(Serialize)]
struct CustomCallOut<'a> {
    name: &'a str,
    input: &'a str,
    #[serde(flatten)]
    extra: Fields,
}

/// How calls are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallForm {
    /// In `tool_calls`, except those marked as legacy.
    Tools,
    /// In `function_call`, which holds one call.
    Legacy,
}

/// What writing a message depends on.
#[derive(Clone, Copy)]
pub(super) struct WriteContext<'a> {
    pub(super) origin: Origin,
    pub(super) reader: MessageReader<'a>,
    pub(super) names: &'a NameMap,
    pub(super) calls: CallForm,
    /// The path of the message in loss reports.
    pub(super) place: &'static str,
}

/// Writes a message. `id` returns the id to write for the call at a block index.
pub(super) fn write<'a>(
    blocks: &'a [Block],
    extras: &Extras,
    context: WriteContext<'a>,
    mut id: impl FnMut(usize, &'a ToolCall) -> &'a str,
    losses: &mut Losses,
) -> AssistantOut<'a> {
    let mut body = ContentBuilder::new(context.origin, blocks);
    let mut out = AssistantOut {
        role: "assistant",
        content: MessageContent::Absent,
        refusal: None,
        reasoning_content: None,
        reasoning: None,
        reasoning_text: None,
        tool_calls: Vec::new(),
        function_call: None,
        extra: extras.write(ID, context.place, losses),
    };
    if context.origin == Origin::Foreign && !blocks.iter().filter_map(rank).is_sorted() {
        losses.add(
            format!("{}.order", context.place),
            "openai-chat writes reasoning first, then text, a refusal and calls",
        );
    }
    for (index, block) in blocks.iter().enumerate() {
        match block {
            Block::Text(text) => body.text(text, context, losses),
            Block::Refusal(text) if text.extras.is_marked(ID, marks::REFUSAL_PART) => {
                let extra = text.extras.write(ID, context.place, losses);
                body.parts.push(PartOut::Typed(TypedPart::Refusal { refusal: &text.text, extra }));
            }
            Block::Refusal(text) => append(&mut out.refusal, Cow::Borrowed(&text.text), ""),
            // Written with its call.
            Block::Reasoning(reasoning)
                if reasoning.seal.as_ref().is_some_and(thought_signature::is_signature) => {}
            Block::Reasoning(reasoning) => {
                content_write_reasoning::write(reasoning, context, &mut out, &mut body, losses);
            }
            Block::ToolCall(call) => {
                body.interrupted = true;
                let signature = thought_signature::find(blocks, call);
                out.call(SignedCall { call, id: id(index, call), signature }, context, losses);
            }
            Block::Opaque(opaque) => match opaque.write(ID, context.place, losses) {
                // Calls of an unknown kind have an id; content parts do not.
                Some(fields) if fields.contains_key("id") => out.tool_calls.push(CallOut::Opaque(fields)),
                Some(fields) => body.parts.push(PartOut::Opaque(fields)),
                None => {}
            },
        }
    }
    let written = body.end();
    let is_empty = written.is_none() && out.is_empty();
    out.content = match (written, context.reader) {
        (Some(present), _) => MessageContent::Present(present),
        (None, MessageReader::Client) if extras.is_marked(ID, marks::EMPTY_CONTENT) || is_empty => {
            MessageContent::Present(ContentOut::Text(Cow::Borrowed("")))
        }
        (None, MessageReader::Client) => MessageContent::Null,
        (None, MessageReader::Host(_)) => MessageContent::Absent,
    };
    if let MessageReader::Host(profile) = context.reader {
        out.require_reasoning(profile);
    }
    out
}

/// The fixed order of a message's fields. Blocks that are not written have no rank.
fn rank(block: &Block) -> Option<u8> {
    match block {
        Block::Reasoning(reasoning)
            if reasoning.seal.as_ref().is_some_and(thought_signature::is_signature) =>
        {
            None
        }
        Block::Reasoning(_) => Some(0),
        Block::Text(_) => Some(1),
        Block::Refusal(_) => Some(2),
        Block::Opaque(opaque) if opaque.dialect != ID => None,
        Block::Opaque(_) if is_own_part(block) => Some(1),
        Block::ToolCall(_) | Block::Opaque(_) => Some(3),
    }
}

/// A call with the id to write and its signature.
#[derive(Clone, Copy)]
struct SignedCall<'a> {
    call: &'a ToolCall,
    id: &'a str,
    signature: Option<&'a Seal>,
}

impl<'a> AssistantOut<'a> {
    /// A message with this text only.
    pub(super) fn text(text: &'a str) -> Self {
        Self {
            role: "assistant",
            content: MessageContent::Present(ContentOut::Text(Cow::Borrowed(text))),
            refusal: None,
            reasoning_content: None,
            reasoning: None,
            reasoning_text: None,
            tool_calls: Vec::new(),
            function_call: None,
            extra: Fields::new(),
        }
    }

    /// True if the message has neither text nor calls.
    pub(super) fn is_empty(&self) -> bool {
        self.content.is_absent()
            && self.refusal.is_none()
            && self.tool_calls.is_empty()
            && self.function_call.is_none()
    }

    /// Marks the message as the beginning of the reply, as Mistral expects it.
    pub(super) fn mark_prefix(&mut self) {
        self.extra.insert("prefix".to_owned(), Value::Bool(true));
    }

    /// The number of seals of other dialects so far.
    pub(super) fn foreign_seals(&self) -> usize {
        self.extra.get(REASONING_DETAILS).and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// Adds the seal of another dialect.
    pub(super) fn add_foreign_seal(&mut self, detail: Value) {
        let details = self.extra.entry(REASONING_DETAILS).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(details) = details {
            details.push(detail);
        }
    }

    /// Some hosts require reasoning even where there was none.
    fn require_reasoning(&mut self, profile: &HostProfile) {
        let placeholder = match profile.reasoning_required {
            ReasoningRequired::Never => return,
            ReasoningRequired::WithCalls if self.tool_calls.is_empty() => return,
            ReasoningRequired::WithCalls => " ",
            ReasoningRequired::Always => "",
        };
        self.reasoning_content.get_or_insert(Cow::Borrowed(placeholder));
    }

    fn call(&mut self, signed: SignedCall<'a>, context: WriteContext<'a>, losses: &mut Losses) {
        let SignedCall { call, id, signature } = signed;
        let name = context.names.to_host(call.name.as_str());
        if call.kind == CallKind::Custom {
            let (extra, inner) = write_nested(&call.extras, "custom", context.place, losses);
            let custom = CustomCallOut { name, input: &call.arguments, extra: inner };
            return self.tool_calls.push(CallOut::Custom { id, r#type: "custom", custom, extra });
        }
        let (mut extra, inner) = write_nested(&call.extras, "function", context.place, losses);
        let is_first = self.tool_calls.is_empty();
        match (signature, context.reader.thought_signatures()) {
            (Some(seal), ThoughtSignatures::IfPresent | ThoughtSignatures::Required) => {
                thought_signature::put(&mut extra, &seal.data);
            }
            (None, ThoughtSignatures::Required) if is_first => {
                thought_signature::put(&mut extra, thought_signature::PLACEHOLDER);
            }
            _ => {}
        }
        let function = FunctionCallOut { name, arguments: written_arguments(&call.arguments), extra: inner };
        if context.calls == CallForm::Tools && !call.extras.is_marked(ID, marks::LEGACY) {
            let r#type = Some("function").filter(|_| !call.extras.is_marked(ID, marks::NO_TYPE));
            return self.tool_calls.push(CallOut::Function { id, r#type, function, extra });
        }
        if self.function_call.is_some() {
            return losses
                .add(format!("{}.function_call", context.place), "the legacy form has room for one call");
        }
        self.function_call = Some(function);
    }
}

/// T9: no arguments are written as an empty object.
pub(super) fn written_arguments(arguments: &str) -> &str {
    if arguments.is_empty() { "{}" } else { arguments }
}

/// Separates texts that were separate blocks.
pub(super) const PARAGRAPH: &str = "\n\n";

pub(super) fn append<'a>(to: &mut Option<Cow<'a, str>>, text: Cow<'a, str>, between: &str) {
    match to {
        None => *to = Some(text),
        Some(old) => {
            let old = old.to_mut();
            old.push_str(between);
            old.push_str(&text);
        }
    }
}

/// Builds `content`: a string wherever possible, because many hosts accept nothing else.
pub(super) struct ContentBuilder<'a> {
    form: Form,
    text: Option<Cow<'a, str>>,
    pub(super) parts: Vec<PartOut<'a>>,
    /// True if a call followed the last text.
    interrupted: bool,
}

#[derive(PartialEq)]
enum Form {
    String,
    Parts,
}

impl<'a> ContentBuilder<'a> {
    fn new(origin: Origin, blocks: &[Block]) -> Self {
        let came_in_parts = origin == Origin::Native && came_in_parts(blocks);
        let form = if came_in_parts || blocks.iter().any(is_own_part) { Form::Parts } else { Form::String };
        Self { form, text: None, parts: Vec::new(), interrupted: false }
    }

    fn text(&mut self, text: &'a Text, context: WriteContext<'a>, losses: &mut Losses) {
        let extra = match context.reader {
            // The reply's writer takes the notes.
            MessageReader::Client => text.extras.write_noted(ID, context.place, losses).0,
            MessageReader::Host(_) => text.extras.write(ID, context.place, losses),
        };
        if self.form == Form::Parts {
            return self
                .parts
                .push(PartOut::Typed(TypedPart::Text { text: Cow::Borrowed(&text.text), extra }));
        }
        let apart = self.interrupted && context.origin == Origin::Foreign;
        self.interrupted = false;
        append(&mut self.text, Cow::Borrowed(&text.text), if apart { PARAGRAPH } else { "" });
    }

    /// A thought in front of the text.
    pub(super) fn thought(&mut self, thought: &str) {
        append(&mut self.text, Cow::Owned(format!("<think>\n{thought}\n</think>\n\n")), "");
    }

    fn end(mut self) -> Option<ContentOut<'a>> {
        if self.parts.is_empty() {
            return self.text.map(ContentOut::Text);
        }
        self.parts.extend(self.text.map(PartOut::text));
        Some(ContentOut::Parts(self.parts))
    }
}

/// A content part that only this dialect knows. Texts around it must be parts too, or their order would change.
fn is_own_part(block: &Block) -> bool {
    matches!(block, Block::Opaque(opaque) if opaque.dialect == ID && !opaque.fields.contains_key("id"))
}

/// Whether `content` was an array: only then are two texts adjacent, or does a text have extra fields.
fn came_in_parts(blocks: &[Block]) -> bool {
    let is_text = |block: &Block| matches!(block, Block::Text(_));
    blocks.windows(2).any(|pair| pair.iter().all(is_text))
        || blocks.iter().any(|block| match block {
            Block::Text(text) => text.extras.known_to(ID).is_some_and(|fields| !fields.is_empty()),
            Block::Refusal(text) => text.extras.is_marked(ID, marks::REFUSAL_PART),
            Block::Reasoning(reasoning) => is_part(reasoning),
            Block::Opaque(opaque) => !opaque.fields.contains_key("id"),
            Block::ToolCall(_) => false,
        })
}
