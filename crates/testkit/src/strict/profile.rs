//! What is known about one host with one model.

use serde_json::Value;

use super::memory::ReasoningField;
use super::refusal::ErrorFormat;
use crate::Schema;

/// A host with one of its models. Names and facts are those of the real hosts.
#[derive(Debug)]
pub struct StrictProfile {
    /// The profile's name in the gateway's configuration.
    pub name: &'static str,
    /// The model that the host serves.
    pub model: &'static str,
    /// The dialect of its endpoint.
    pub dialect: StrictDialect,
    /// The vendor's request type.
    pub(super) schema: Option<Schema>,
    /// Top-level fields that the host knows beyond the vendor's type.
    pub(super) more_fields: &'static [&'static str],
    /// The top-level fields that the host knows, separated by spaces. Empty: those of the vendor's type.
    pub(super) only_fields: &'static str,
    /// What turns the model's thinking on and off.
    pub(super) thinking: Thinking,
    /// The values of `reasoning_effort`. Empty: the field is refused.
    pub(super) efforts: &'static [&'static str],
    /// Where the host puts thoughts.
    pub(super) reasoning: ReasoningField,
    /// Whether thoughts come back.
    pub(super) back: Back,
    /// Call ids as the host issues them.
    pub(super) ids: CallIds,
    /// What else it refuses.
    pub(super) rules: &'static [Rule],
    /// How its errors look.
    pub(super) errors: ErrorFormat,
    /// How its replies look.
    pub(super) style: &'static [Quirk],
}

/// The dialect of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrictDialect {
    /// Chat Completions.
    Chat,
    /// Anthropic's Messages.
    Messages,
    /// Responses.
    Responses,
}

impl StrictDialect {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Messages => "/messages",
            Self::Responses => "/responses",
        }
    }

    /// The dialect's name in the gateway's configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "openai-chat",
            Self::Messages => "anthropic-messages",
            Self::Responses => "openai-responses",
        }
    }
}

/// What turns a model's thinking on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    Never,
    Always,
    /// By the model's family, in both dialects.
    OpenAi,
    /// By the model's row.
    Claude,
    /// `reasoning_effort`, with `none` for off.
    Effort {
        default: bool,
    },
    /// `thinking.type`.
    Type {
        default: bool,
    },
    /// `enable_thinking`.
    Enable {
        default: bool,
    },
    /// `reasoning.effort` or `reasoning.enabled`.
    Reasoning {
        default: bool,
    },
}

/// Whether a host wants its thoughts back, in the field they came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Back {
    /// A request with them is refused.
    Refused,
    /// They are ignored.
    Ignored,
    /// The model is worse without them.
    Wanted,
    /// A turn with calls is refused without them.
    OnCalls,
    /// Every assistant turn is refused without the field.
    OnEveryTurn,
}

/// How call ids look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallIds {
    /// `call_…`, at most 40 characters come back.
    OpenAi,
    /// Exactly nine letters and digits.
    Mistral,
    /// `functions.NAME:N`.
    Moonshot,
    /// `toolu_…` of letters, digits, `_` and `-`.
    Claude,
}

/// Something that a host refuses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rule {
    /// By the table of `OpenAI`'s families.
    OpenAiFamily,
    /// The longest `user`.
    UserAtMost(usize),
    StopsAtMost(usize),
    NoDeveloper,
    /// `strict` in a tool.
    NoStrict,
    /// Another value of `tool_choice`; `named` allows an object.
    ToolChoices {
        words: &'static [&'static str],
        named: bool,
    },
    NoForcedToolWhileThinking,
    /// `response_format` of another type.
    Formats(&'static [&'static str]),
    ToolsNotWithFormat,
    NoStop,
    NoPenalties,
    /// `name` in a message that is no tool's.
    NameOnlyOnTools,
    /// Another temperature.
    TemperatureOneOf(&'static [f64]),
    TemperatureZeroNeedsTopPOne,
    /// `temperature` and `top_p` strictly between 0 and 1.
    SamplingInside01,
    InlineImagesOnly,
    NoLateSystem,
    NeedsUserTurn,
    AfterToolOnlyAssistant,
    LastTurnUserOrTool,
    NoTwoFinalAssistantTurns,
    ToolsNeedParameters,
    /// `tool_calls[].extra_content.google.thought_signature` returns on its call.
    ThoughtSignatures,
    /// A whole reply only with `enable_thinking: false`.
    WholeNeedsThinkingOff,
    /// Not both ways to say how much to think.
    NotThinkingAndEffort,
    /// Another `thinking.type`.
    ThinkingTypes(&'static [&'static str]),
    /// `$schema`, `const`, type arrays and numeric enums in tools.
    GeminiSchema,
    /// Root unions, tuples, keywords beside `$ref`, `type` beside `anyOf`.
    MoonshotSchema,
    /// Input items with `status`, except messages.
    NoItemStatus,
    /// `strict` tools and URL images: Claude on other clouds.
    NoStrictNoUrls,
    AssistantNotFirst,
    /// Names of tools over 64 characters.
    ShortToolNames,
}

/// A peculiarity of a host's replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quirk {
    /// Calls come whole in one chunk.
    WholeCalls,
    /// Calls without `index`.
    NoCallIndex,
    /// Calls without `type`.
    NoCallType,
    /// Arguments as an object.
    ObjectArguments,
    /// The finish reason is `""` with calls.
    EmptyFinishWithCalls,
    /// The finish reason is `eos` instead of `stop`.
    Eos,
    /// Usage in the chunk with the finish reason.
    UsageInLastChunk,
    /// Usage in `x_groq` too.
    XGroq,
    /// A first chunk with `choices: []` and filter results.
    FilterResultsFirst,
    /// Later chunks have `id: ""`.
    EmptyLaterIds,
    /// The role in every chunk.
    RoleEverywhere,
    /// SSE comments between chunks.
    Comments,
    /// Later pieces of a call have `name: ""`.
    EmptyLaterNames,
}

/// Removes the fields of a message that the host takes and the vendor's type does not have.
pub(super) fn remove_known_extensions(profile: &StrictProfile, message: &mut Value) {
    let Some(fields) = message.as_object_mut() else { return };
    if profile.back != Back::Refused {
        for name in profile.reasoning.fields() {
            fields.remove(*name);
        }
    }
    if profile.has(&Rule::ThoughtSignatures) {
        let calls = fields.get_mut("tool_calls").and_then(Value::as_array_mut);
        calls.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|call| {
            call.remove("extra_content");
        });
    }
}
