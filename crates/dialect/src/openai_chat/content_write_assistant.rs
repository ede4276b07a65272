//! Writes an assistant message, in a request's history and in a whole reply.

use std::borrow::Cow;

use serde::Serialize;
use toolgate_model::{Block, CallKind, Extras, Fields, Losses, Reasoning, Seal, Text, ToolCall};

use super::content_read_assistant::is_part;
use super::content_write::{ContentOut, PartOut, ThinkingText, TypedPart};
use super::extras::write_nested;
use super::{ID, Origin, marks, thought_signature};
use crate::NameMap;

/// A message as it is written.
#[derive(Serialize)]
pub(super) struct AssistantOut<'a> {
    role: &'static str,
    content: Option<ContentOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCallOut<'a>>,
    #[serde(flatten)]
    extra: Fields,
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
        content: None,
        refusal: None,
        reasoning_content: None,
        reasoning: None,
        tool_calls: Vec::new(),
        function_call: None,
        extra: extras.write(ID, context.place, losses),
    };
    if context.origin == Origin::Foreign && !blocks.iter().filter_map(rank).is_sorted() {
        losses.add(
            format!("{}.order", context.place),
            "openai-chat writes reasoning first, then text, then calls",
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
            Block::Reasoning(reasoning) => write_reasoning(reasoning, context, &mut out, &mut body, losses),
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
    out.content = body.end();
    let is_empty = out.content.is_none()
        && out.refusal.is_none()
        && out.tool_calls.is_empty()
        && out.function_call.is_none();
    if out.content.is_none() && (extras.is_marked(ID, marks::EMPTY_CONTENT) || is_empty) {
        out.content = Some(ContentOut::Text(Cow::Borrowed("")));
    }
    out
}

/// The fixed order of a message's fields. Opaque blocks have no rank.
fn rank(block: &Block) -> Option<u8> {
    match block {
        Block::Reasoning(reasoning)
            if reasoning.seal.as_ref().is_some_and(thought_signature::is_signature) =>
        {
            None
        }
        Block::Reasoning(_) => Some(0),
        Block::Text(_) | Block::Refusal(_) => Some(1),
        Block::ToolCall(_) => Some(2),
        Block::Opaque(_) => None,
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
    fn call(&mut self, signed: SignedCall<'a>, context: WriteContext<'a>, losses: &mut Losses) {
        let SignedCall { call, id, signature } = signed;
        let name = context.names.to_host(call.name.as_str());
        if call.kind == CallKind::Custom {
            let (extra, inner) = write_nested(&call.extras, "custom", context.place, losses);
            let custom = CustomCallOut { name, input: &call.arguments, extra: inner };
            return self.tool_calls.push(CallOut::Custom { id, r#type: "custom", custom, extra });
        }
        let (mut extra, inner) = write_nested(&call.extras, "function", context.place, losses);
        if let Some(signature) = signature {
            thought_signature::put(&mut extra, signature);
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

/// Writes reasoning back, even if another provider sealed it: reasoning models expect it in the history (T27).
fn write_reasoning<'a>(
    reasoning: &'a Reasoning,
    context: WriteContext<'a>,
    out: &mut AssistantOut<'a>,
    body: &mut ContentBuilder<'a>,
    losses: &mut Losses,
) {
    let extra = reasoning.extras.write(ID, context.place, losses);
    let text = match reasoning.parts.as_slice() {
        [] => {
            return losses.add(format!("{}.reasoning", context.place), "it is sealed and has no text");
        }
        [part] => Cow::Borrowed(part.text.as_str()),
        _ => Cow::Owned(reasoning.text()),
    };
    if reasoning.seal.as_ref().is_some_and(|seal| !seal.came_from(ID)) {
        losses.add(
            format!("{}.reasoning.seal", context.place),
            "openai-chat has no field for a reasoning seal",
        );
    }
    if is_part(reasoning) {
        let thinking = [ThinkingText::new(text)];
        return body.parts.push(PartOut::Typed(TypedPart::Thinking { thinking, extra }));
    }
    let both = reasoning.extras.is_marked(ID, marks::REASONING_BOTH);
    if both || reasoning.extras.is_marked(ID, marks::REASONING) {
        append(&mut out.reasoning, text.clone(), PARAGRAPH);
    }
    if both || !reasoning.extras.is_marked(ID, marks::REASONING) {
        append(&mut out.reasoning_content, text, PARAGRAPH);
    }
}

/// Separates texts that were separate blocks.
pub(super) const PARAGRAPH: &str = "\n\n";

fn append<'a>(to: &mut Option<Cow<'a, str>>, text: Cow<'a, str>, between: &str) {
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
struct ContentBuilder<'a> {
    form: Form,
    text: Option<Cow<'a, str>>,
    parts: Vec<PartOut<'a>>,
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
        let form = if origin == Origin::Native && came_in_parts(blocks) { Form::Parts } else { Form::String };
        Self { form, text: None, parts: Vec::new(), interrupted: false }
    }

    fn text(&mut self, text: &'a Text, context: WriteContext<'a>, losses: &mut Losses) {
        let extra = text.extras.write(ID, context.place, losses);
        if self.form == Form::Parts {
            return self
                .parts
                .push(PartOut::Typed(TypedPart::Text { text: Cow::Borrowed(&text.text), extra }));
        }
        let apart = self.interrupted && context.origin == Origin::Foreign;
        self.interrupted = false;
        append(&mut self.text, Cow::Borrowed(&text.text), if apart { PARAGRAPH } else { "" });
    }

    fn end(mut self) -> Option<ContentOut<'a>> {
        if self.parts.is_empty() {
            return self.text.map(ContentOut::Text);
        }
        self.parts.extend(self.text.map(PartOut::text));
        Some(ContentOut::Parts(self.parts))
    }
}

/// Whether `content` was an array: only then are two texts adjacent, or does a text have extra fields.
fn came_in_parts(blocks: &[Block]) -> bool {
    let is_text = |block: &Block| matches!(block, Block::Text(_));
    blocks.windows(2).any(|pair| pair.iter().all(is_text))
        || blocks.iter().any(|block| match block {
            Block::Text(text) => text.extras.known_to(ID).is_some(),
            Block::Refusal(text) => text.extras.is_marked(ID, marks::REFUSAL_PART),
            Block::Reasoning(reasoning) => is_part(reasoning),
            Block::Opaque(opaque) => !opaque.fields.contains_key("id"),
            Block::ToolCall(_) => false,
        })
}
