//! Writes an assistant's message, in a history and in a whole reply.

use std::borrow::Cow;

use serde::Serialize;
use toolgate_model::{Block, CallKind, Extras, Fields, Losses, Reasoning, Text, ToolCall};

use super::assistant::is_part;
use super::content::{ContentOut, PartOut, ThinkingText, TypedPart};
use super::fields::write_nested;
use super::{ID, Origin, marks};
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

/// How calls are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallForm {
    /// In `tool_calls`, except those marked as legacy.
    Tools,
    /// The one call there is room for in `function_call`.
    Legacy,
}

/// What writing a message depends on.
#[derive(Clone, Copy)]
pub(super) struct Voice<'a> {
    pub(super) origin: Origin,
    pub(super) names: &'a NameMap,
    pub(super) calls: CallForm,
    /// Where it stands, for losses.
    pub(super) place: &'static str,
}

/// Writes a message. `id` gives the id of the call at this block.
pub(super) fn write<'a>(
    blocks: &'a [Block],
    extras: &Extras,
    voice: Voice<'a>,
    mut id: impl FnMut(usize, &'a ToolCall) -> &'a str,
    losses: &mut Losses,
) -> AssistantOut<'a> {
    let mut content = Content::new(voice.origin, blocks);
    let mut out = AssistantOut {
        role: "assistant",
        content: None,
        refusal: None,
        reasoning_content: None,
        reasoning: None,
        tool_calls: Vec::new(),
        function_call: None,
        extra: extras.write(ID, voice.place, losses),
    };
    if voice.origin == Origin::Foreign && !blocks.iter().filter_map(rank).is_sorted() {
        losses.add(
            format!("{}.order", voice.place),
            "openai-chat tells all thoughts first, then all text, then the calls",
        );
    }
    for (index, block) in blocks.iter().enumerate() {
        match block {
            Block::Text(text) => content.text(text, voice, losses),
            Block::Refusal(text) if text.extras.is_marked(ID, marks::REFUSAL_PART) => {
                let extra = text.extras.write(ID, voice.place, losses);
                content.parts.push(PartOut::Typed(TypedPart::Refusal { refusal: &text.text, extra }));
            }
            Block::Refusal(text) => append(&mut out.refusal, Cow::Borrowed(&text.text), ""),
            Block::Reasoning(thought) => write_thought(thought, voice, &mut out, &mut content, losses),
            Block::ToolCall(call) => {
                content.interrupted = true;
                out.call(call, id(index, call), voice, losses);
            }
            Block::Opaque(opaque) => match opaque.write(ID, voice.place, losses) {
                // A call of an unknown kind has an id; content parts have none.
                Some(fields) if fields.contains_key("id") => out.tool_calls.push(CallOut::Opaque(fields)),
                Some(fields) => content.parts.push(PartOut::Opaque(fields)),
                None => {}
            },
        }
    }
    out.content = content.end();
    let is_silent = out.content.is_none()
        && out.refusal.is_none()
        && out.tool_calls.is_empty()
        && out.function_call.is_none();
    if out.content.is_none() && (extras.is_marked(ID, marks::EMPTY_CONTENT) || is_silent) {
        out.content = Some(ContentOut::Text(Cow::Borrowed("")));
    }
    out
}

/// The order in which a message tells things, whatever came first. What it has no word for counts nowhere.
fn rank(block: &Block) -> Option<u8> {
    match block {
        Block::Reasoning(_) => Some(0),
        Block::Text(_) | Block::Refusal(_) => Some(1),
        Block::ToolCall(_) => Some(2),
        Block::Opaque(_) => None,
    }
}

impl<'a> AssistantOut<'a> {
    fn call(&mut self, call: &'a ToolCall, id: &'a str, voice: Voice<'a>, losses: &mut Losses) {
        let name = voice.names.to_host(call.name.as_str());
        if call.kind == CallKind::Custom {
            let (extra, inner) = write_nested(&call.extras, "custom", voice.place, losses);
            let custom = CustomCallOut { name, input: &call.arguments, extra: inner };
            return self.tool_calls.push(CallOut::Custom { id, r#type: "custom", custom, extra });
        }
        let (extra, inner) = write_nested(&call.extras, "function", voice.place, losses);
        let function = FunctionCallOut { name, arguments: written_arguments(&call.arguments), extra: inner };
        if voice.calls == CallForm::Tools && !call.extras.is_marked(ID, marks::LEGACY) {
            let r#type = Some("function").filter(|_| !call.extras.is_marked(ID, marks::NO_TYPE));
            return self.tool_calls.push(CallOut::Function { id, r#type, function, extra });
        }
        if self.function_call.is_some() {
            return losses
                .add(format!("{}.function_call", voice.place), "the legacy form has room for one call");
        }
        self.function_call = Some(function);
    }
}

/// T9: a call without arguments is a call with none.
pub(super) fn written_arguments(arguments: &str) -> &str {
    if arguments.is_empty() { "{}" } else { arguments }
}

/// T27: hosts that reason want their thoughts back, whoever sealed them.
fn write_thought<'a>(
    thought: &'a Reasoning,
    voice: Voice<'a>,
    out: &mut AssistantOut<'a>,
    content: &mut Content<'a>,
    losses: &mut Losses,
) {
    let extra = thought.extras.write(ID, voice.place, losses);
    let text = match thought.parts.as_slice() {
        [] => {
            return losses.add(format!("{}.reasoning", voice.place), "it is sealed and has no text to send");
        }
        [part] => Cow::Borrowed(part.text.as_str()),
        _ => Cow::Owned(thought.text()),
    };
    if thought.seal.is_some() {
        losses.add(
            format!("{}.reasoning.seal", voice.place),
            "openai-chat has no place for a proof of reasoning",
        );
    }
    if is_part(thought) {
        let thinking = [ThinkingText::new(text)];
        return content.parts.push(PartOut::Typed(TypedPart::Thinking { thinking, extra }));
    }
    let both = thought.extras.is_marked(ID, marks::REASONING_BOTH);
    if both || thought.extras.is_marked(ID, marks::REASONING) {
        append(&mut out.reasoning, text.clone(), PARAGRAPH);
    }
    if both || !thought.extras.is_marked(ID, marks::REASONING) {
        append(&mut out.reasoning_content, text, PARAGRAPH);
    }
}

/// What stands between texts that were apart.
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

/// Collects what was said. One string wherever possible, because many hosts take nothing else.
struct Content<'a> {
    form: Form,
    text: Option<Cow<'a, str>>,
    parts: Vec<PartOut<'a>>,
    /// A call came since the last text.
    interrupted: bool,
}

#[derive(PartialEq)]
enum Form {
    String,
    Parts,
}

impl<'a> Content<'a> {
    fn new(origin: Origin, blocks: &[Block]) -> Self {
        let form = if origin == Origin::Native && came_in_parts(blocks) { Form::Parts } else { Form::String };
        Self { form, text: None, parts: Vec::new(), interrupted: false }
    }

    fn text(&mut self, text: &'a Text, voice: Voice<'a>, losses: &mut Losses) {
        let extra = text.extras.write(ID, voice.place, losses);
        if self.form == Form::Parts {
            return self
                .parts
                .push(PartOut::Typed(TypedPart::Text { text: Cow::Borrowed(&text.text), extra }));
        }
        let apart = self.interrupted && voice.origin == Origin::Foreign;
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

/// Whether blocks of this dialect stood in an array: only there two texts are neighbours, or a text has fields.
fn came_in_parts(blocks: &[Block]) -> bool {
    let is_text = |block: &Block| matches!(block, Block::Text(_));
    blocks.windows(2).any(|pair| pair.iter().all(is_text))
        || blocks.iter().any(|block| match block {
            Block::Text(text) => text.extras.known_to(ID).is_some(),
            Block::Refusal(text) => text.extras.is_marked(ID, marks::REFUSAL_PART),
            Block::Reasoning(thought) => is_part(thought),
            Block::Opaque(opaque) => !opaque.fields.contains_key("id"),
            Block::ToolCall(_) => false,
        })
}
