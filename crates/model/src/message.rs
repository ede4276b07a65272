//! The conversation: who said what. The types rule out what no dialect allows: a user cannot call a tool, an
//! assistant cannot return a result (D2).

use crate::extras::{DialectId, Extras, Opaque};
use crate::ids::{CallId, ToolName};
use crate::tool::CallKind;

/// One message of the history.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Instructions in the middle of a conversation.
    System(SystemMessage),
    /// From the person or program that asks.
    User(UserMessage),
    /// From the model.
    Assistant(AssistantMessage),
    /// What tools answered: all results of one turn together.
    ToolResults(ToolResults),
}

/// Instructions in the middle of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemMessage {
    /// OpenAI tells two apart.
    pub role: SystemRole,
    /// What it says.
    pub content: Vec<Part>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Who instructs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemRole {
    /// `system`.
    System,
    /// `developer`.
    Developer,
}

/// From the person or program that asks.
#[derive(Clone, Debug, PartialEq)]
pub struct UserMessage {
    /// What it says.
    pub content: Vec<Part>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// From the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
    /// What it said and called, in order (T28).
    pub content: Vec<Block>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Results that came together.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResults {
    /// In the client's order.
    pub results: Vec<ToolResult>,
}

/// What one call gave.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The call it answers.
    pub call: CallId,
    /// What kind of call that was, where the dialect says so.
    pub kind: CallKind,
    /// What it gave; may be empty.
    pub content: Vec<Part>,
    /// Whether the tool succeeded.
    pub outcome: ToolOutcome,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Whether a tool succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It did.
    #[default]
    Success,
    /// It failed, and the content says why.
    Error,
}

/// A piece of what is given to the model.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Plain text.
    Text(Text),
    /// A picture.
    Image(Image),
    /// A file to read.
    Document(Document),
    /// Sound.
    Audio(Audio),
    /// Known to its own dialect only.
    Opaque(Opaque),
}

impl Part {
    /// Plain text with nothing attached.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::new(text))
    }
}

/// A piece of what the model said.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Plain text.
    Text(Text),
    /// Why it will not answer.
    Refusal(Text),
    /// What it thought.
    Reasoning(Reasoning),
    /// A tool to run.
    ToolCall(ToolCall),
    /// Known to its own dialect only.
    Opaque(Opaque),
}

/// Text, with what its own dialect attached (citations, annotations, cache marks).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Fields of its own dialect.
    pub extras: Extras,
}

impl Text {
    /// Text with nothing attached.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), extras: Extras::NONE }
    }
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Where its bytes are.
    pub source: Source,
    /// Fields of its own dialect (`detail`).
    pub extras: Extras,
}

/// A file to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Where its bytes are.
    pub source: Source,
    /// Its title or file name.
    pub name: Option<String>,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Audio {
    /// The bytes, base64.
    pub data: String,
    /// `wav`, `mp3`.
    pub format: String,
    /// Fields of its own dialect.
    pub extras: Extras,
}

/// Where bytes are.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Here.
    Base64 {
        /// `image/png`.
        media_type: String,
        /// The bytes, base64.
        data: String,
    },
    /// Here, as plain text.
    Text(String),
    /// On the web.
    Url(String),
    /// Uploaded to a provider earlier; no other provider has it.
    File {
        /// [`DialectId::provider`] of the dialect that named it.
        provider: &'static str,
        /// The provider's id for it.
        id: String,
    },
}

impl Source {
    /// Reads `data:…;base64,…` as bytes and everything else as an address.
    pub fn from_url(url: String) -> Self {
        let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match inline {
            Some((media_type, data)) => {
                Self::Base64 { media_type: media_type.to_owned(), data: data.to_owned() }
            }
            None => Self::Url(url),
        }
    }

    /// The bytes as a `data:` address.
    pub fn data_url(media_type: &str, data: &str) -> String {
        format!("data:{media_type};base64,{data}")
    }
}

/// What the model thought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reasoning {
    /// Its paragraphs.
    pub parts: Vec<ReasoningPart>,
    /// The provider's proof, without which it will not take the reasoning back.
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
    /// Whether it is the thought or a summary of it.
    pub kind: ReasoningKind,
    /// The text.
    pub text: String,
}

/// Whether reasoning is the thought itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReasoningKind {
    /// The thought itself.
    #[default]
    Full,
    /// A summary made for people.
    Summary,
}

/// A provider's proof of its own reasoning: a signature or the encrypted thought. It goes back only to the dialect
/// that made it (T26); through a client of another dialect it travels as a [token](Seal::to_token).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// [`DialectId::name`] of its maker.
    pub owner: String,
    /// What it is there: `signature`, `redacted`, `encrypted`.
    pub kind: String,
    /// The reasoning's id there, where it has one.
    pub id: Option<String>,
    /// The proof.
    pub data: String,
}

/// What a foreign seal's token begins with; no provider's own signature contains a colon.
const TOKEN_PREFIX: &str = "toolgate:1:";

impl Seal {
    /// A seal made by `dialect`.
    pub fn new(dialect: DialectId, kind: &str, data: impl Into<String>) -> Self {
        Self { owner: dialect.name.to_owned(), kind: kind.to_owned(), id: None, data: data.into() }
    }

    /// True if `dialect` made it.
    pub fn belongs_to(&self, dialect: DialectId) -> bool {
        self.owner == dialect.name
    }

    /// One text that carries the seal through a client that knows only its own dialect's proofs.
    pub fn to_token(&self) -> String {
        let id = self.id.as_deref().unwrap_or_default();
        format!("{TOKEN_PREFIX}{}:{}:{id}:{}", self.owner, self.kind, self.data)
    }

    /// Reads back what [`Seal::to_token`] wrote; `None` for a text that is no token.
    pub fn from_token(text: &str) -> Option<Self> {
        let mut fields = text.strip_prefix(TOKEN_PREFIX)?.splitn(4, ':');
        let (owner, kind, id, data) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        Some(Self {
            owner: owner.to_owned(),
            kind: kind.to_owned(),
            id: (!id.is_empty()).then(|| id.to_owned()),
            data: data.to_owned(),
        })
    }
}

/// A tool to run.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Ties it to its result.
    pub id: CallId,
    /// The tool.
    pub name: ToolName,
    /// Whether the input is JSON or free text.
    pub kind: CallKind,
    /// The input, byte for byte as the model wrote it: JSON for a function, unless the model erred.
    pub arguments: String,
    /// Fields of its own dialect.
    pub extras: Extras,
}
