//! The messages of a conversation. The types exclude what no dialect allows: a user cannot call a tool, an assistant
//! cannot return a result (D2).

use crate::extras::{Extras, Opaque};
use crate::ids::{CallId, ToolName};
use crate::seal::Seal;
use crate::tool::CallKind;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Instructions inside the conversation.
    System(SystemMessage),
    /// From the user.
    User(UserMessage),
    /// From the model.
    Assistant(AssistantMessage),
    /// From tools: all results of one turn.
    ToolResults(ToolResults),
}

/// Instructions inside the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemMessage {
    /// `system` or `developer`; OpenAI distinguishes them.
    pub role: SystemRole,
    /// The content.
    pub content: Vec<Part>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// The role of a system message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemRole {
    /// `system`.
    System,
    /// `developer`.
    Developer,
}

/// From the user.
#[derive(Clone, Debug, PartialEq)]
pub struct UserMessage {
    /// The content.
    pub content: Vec<Part>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// From the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
    /// Text, reasoning and calls, in order (T28).
    pub content: Vec<Block>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Tool results of one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResults {
    /// In the client's order.
    pub results: Vec<ToolResult>,
}

/// The result of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The call it answers.
    pub call: CallId,
    /// The kind of that call, if the dialect states it.
    pub kind: CallKind,
    /// The content; may be empty.
    pub content: Vec<Part>,
    /// Whether the tool succeeded.
    pub outcome: ToolOutcome,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Whether a tool succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It succeeded.
    #[default]
    Success,
    /// It failed; the content describes the error.
    Error,
}

/// A part of the input to the model.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Plain text.
    Text(Text),
    /// An image.
    Image(Image),
    /// A document.
    Document(Document),
    /// Audio.
    Audio(Audio),
    /// A part that only its own dialect understands.
    Opaque(Opaque),
}

impl Part {
    /// Plain text without extras.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::new(text))
    }
}

/// A part of the model's output.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Plain text.
    Text(Text),
    /// A refusal.
    Refusal(Text),
    /// Reasoning.
    Reasoning(Reasoning),
    /// A tool call.
    ToolCall(ToolCall),
    /// A part that only its own dialect understands.
    Opaque(Opaque),
}

/// Text, with extras of its dialect (citations, annotations, cache marks).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Fields of its own dialect.
    pub extras: Extras,
}

impl Text {
    /// Text without extras.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), extras: Extras::NONE }
    }
}

/// An image.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// The source of its bytes.
    pub source: Source,
    /// How closely the model looks at it: `low`, `high`, `auto`.
    pub detail: Option<String>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

impl Image {
    /// An image without further settings.
    pub fn new(source: Source) -> Self {
        Self { source, detail: None, extras: Extras::NONE }
    }
}

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The source of its bytes.
    pub source: Source,
    /// Its title or file name.
    pub name: Option<String>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Audio.
#[derive(Clone, Debug, PartialEq)]
pub struct Audio {
    /// The bytes in base64.
    pub data: String,
    /// `wav`, `mp3`.
    pub format: String,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// The source of an image or document.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Inline bytes.
    Base64 {
        /// `image/png`.
        media_type: String,
        /// The bytes in base64.
        data: String,
    },
    /// Inline plain text.
    Text(String),
    /// A URL.
    Url(String),
    /// A file uploaded to a provider; other providers cannot access it.
    File {
        /// [`DialectId::provider`](crate::DialectId::provider) of that provider.
        provider: &'static str,
        /// The provider's id for the file.
        id: String,
    },
}

impl Source {
    /// Reads `data:…;base64,…` as inline bytes and anything else as a URL.
    pub fn from_url(url: String) -> Self {
        let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match inline {
            Some((media_type, data)) => {
                Self::Base64 { media_type: media_type.to_owned(), data: data.to_owned() }
            }
            None => Self::Url(url),
        }
    }

    /// The bytes as a `data:` URL.
    pub fn data_url(media_type: &str, data: &str) -> String {
        format!("data:{media_type};base64,{data}")
    }
}

/// The model's reasoning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reasoning {
    /// The paragraphs.
    pub parts: Vec<ReasoningPart>,
    /// The provider's seal. The provider accepts reasoning in a later request only with it.
    pub seal: Option<Seal>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

impl Reasoning {
    /// All of its text.
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join("\n\n")
    }
}

/// One paragraph of reasoning.
#[derive(Clone, Debug, PartialEq)]
pub struct ReasoningPart {
    /// Full reasoning or a summary.
    pub kind: ReasoningKind,
    /// The text.
    pub text: String,
}

/// The kind of a reasoning paragraph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReasoningKind {
    /// The reasoning itself.
    #[default]
    Full,
    /// A summary for people.
    Summary,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Identifies the call in its result.
    pub id: CallId,
    /// The tool's name.
    pub name: ToolName,
    /// Whether the input is JSON or free text.
    pub kind: CallKind,
    /// The input, byte for byte as the model wrote it. For a function it should be JSON, but may be invalid.
    pub arguments: String,
    /// Fields of its own dialect.
    pub extras: Extras,
}
