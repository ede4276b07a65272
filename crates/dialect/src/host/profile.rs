//! The facts about one model at one host.

use toolgate_model::DialectId;

use super::facts::{
    CallIds, Effort, Fact, ForcedCalls, Images, JsonOutput, LimitField, Param, Prefill, ReasoningField,
    ReasoningRequired, ReasoningSwitch, Reasons, SchemaPart, Set, SystemMessages, ThinkingMode,
    ThoughtSignatures,
};
use crate::{anthropic_messages, openai_responses};

/// Defines a profile, and a layer of it in which every fact may be absent.
macro_rules! facts {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// What a host accepts for one of its models.
        #[derive(Clone, Debug, PartialEq)]
        pub struct HostProfile { $($(#[$doc])* pub $name: $kind,)* }

        /// Some of the facts about a host or a model; later layers replace earlier ones.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Facts { $($(#[$doc])* pub $name: Option<$kind>,)* }

        impl Facts {
            /// No facts.
            pub const NONE: Self = Self { $($name: None,)* };

            /// The keys in the configuration.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($name),)*];

            /// Sets the fact of this key. The error lists the allowed values; `None` for an unknown key.
            pub fn set(&mut self, key: &str, text: &str) -> Option<Result<(), String>> {
                match key {
                    $(stringify!($name) => {
                        let parsed = <$kind as Fact>::parse(text);
                        Some(parsed.map(|value| self.$name = Some(value)))
                    })*
                    _ => None,
                }
            }
        }

        impl HostProfile {
            /// Adds a layer.
            pub(super) fn apply(&mut self, facts: &Facts) {
                $(if let Some(value) = facts.$name { self.$name = value; })*
            }
        }
    };
}

facts! {
    /// The field for the output limit (Chat).
    limit_field: LimitField,
    /// The largest output limit.
    max_output: u64,
    /// The smallest output limit.
    min_output: u64,
    /// Whether the model reasons without being asked.
    reasons: Reasons,
    /// The fields that control reasoning.
    reasoning_switch: ReasoningSwitch,
    /// The accepted efforts.
    efforts: Set<Effort>,
    /// The accepted values of Claude's `thinking.type`.
    thinking_modes: Set<ThinkingMode>,
    /// Whether thinking is returned without text unless `display` asks for it.
    thinking_display: bool,
    /// How earlier reasoning returns (Chat).
    reasoning_field: ReasoningField,
    /// Which assistant messages must have reasoning (Chat).
    reasoning_required: ReasoningRequired,
    /// Whether functions are refused while the model reasons.
    tools_without_reasoning: bool,
    /// Sampling settings that are always refused.
    refused: Set<Param>,
    /// Sampling settings that are refused while the model reasons.
    refused_while_reasoning: Set<Param>,
    /// Whether `temperature` and `top_p` exclude each other.
    one_of_temperature_top_p: bool,
    /// Whether `top_p` is accepted with temperature 0.
    top_p_when_greedy: bool,
    /// The highest temperature.
    max_temperature: u64,
    /// Whether `temperature` and `top_p` must be above 0 and below 1.
    sampling_inside_0_1: bool,
    /// The number of stop sequences.
    max_stops: u64,
    /// Whether text and stop sequences of white space only are accepted.
    blank_text: bool,
    /// Whether `parallel_tool_calls` is accepted.
    parallel_tool_calls: bool,
    /// Which tool choices force a call.
    forced_calls: ForcedCalls,
    /// Whether tools may take free text.
    custom_tools: bool,
    /// Whether tools may be `strict`.
    strict_tools: bool,
    /// The longest name of a tool.
    max_tool_name: u64,
    /// The parts of JSON Schema that are refused in tools.
    refused_schema: Set<SchemaPart>,
    /// The ids of calls.
    call_ids: CallIds,
    /// Whether the role `developer` is known.
    developer_role: bool,
    /// Where system messages may be.
    system_messages: SystemMessages,
    /// Whether a user message may directly follow a tool result.
    user_after_tool: bool,
    /// Whether a conversation may begin with an assistant message.
    assistant_first: bool,
    /// Whether a conversation may end with an assistant message.
    prefill: Prefill,
    /// The sources of images.
    images: Images,
    /// Whether files are accepted.
    files: bool,
    /// Whether documents are `document_url` parts, as at Mistral (Chat).
    document_urls: bool,
    /// The longest end-user id; 0 if the host has no such field.
    max_user: u64,
    /// Whether OpenAI's own fields are accepted: `store`, `metadata`, `service_tier`, `prompt_cache_key`, `verbosity`.
    openai_fields: bool,
    /// Whether `stream_options` is accepted.
    stream_options: bool,
    /// Whether tools and a JSON output format are accepted together.
    tools_with_format: bool,
    /// The JSON output formats.
    json_output: JsonOutput,
    /// Whether calls carry Gemini's thought signature (Chat).
    thought_signatures: ThoughtSignatures,
    /// Whether calls and reasoning may have a `status` (Responses).
    item_status: bool,
    /// Whether replies have the form that clients of the same dialect expect. If not, they are rewritten.
    relayed_replies: bool,
}

/// What models reject while they reason, at OpenAI and most others.
pub(super) const SAMPLING: Set<Param> = Set::<Param>::of(&[
    Param::Temperature,
    Param::TopP,
    Param::FrequencyPenalty,
    Param::PresencePenalty,
    Param::Logprobs,
]);

impl HostProfile {
    /// The form that hosts of this dialect accept most widely.
    pub fn of_dialect(dialect: DialectId) -> Self {
        let chat = Self {
            limit_field: LimitField::MaxTokens,
            max_output: u64::MAX,
            min_output: 1,
            reasons: Reasons::IfAsked,
            reasoning_switch: ReasoningSwitch::None,
            efforts: Set::<Effort>::of(&[Effort::Low, Effort::Medium, Effort::High]),
            thinking_modes: Set::<ThinkingMode>::of(&[]),
            thinking_display: false,
            reasoning_field: ReasoningField::ReasoningContent,
            reasoning_required: ReasoningRequired::Never,
            tools_without_reasoning: false,
            refused: Set::<Param>::of(&[Param::TopK]),
            refused_while_reasoning: Set::<Param>::of(&[]),
            one_of_temperature_top_p: false,
            top_p_when_greedy: true,
            max_temperature: 2,
            sampling_inside_0_1: false,
            max_stops: 4,
            blank_text: true,
            parallel_tool_calls: true,
            forced_calls: ForcedCalls::Any,
            custom_tools: false,
            strict_tools: true,
            max_tool_name: 64,
            refused_schema: Set::<SchemaPart>::of(&[]),
            call_ids: CallIds::Short,
            developer_role: false,
            system_messages: SystemMessages::Anywhere,
            user_after_tool: true,
            assistant_first: true,
            prefill: Prefill::Accepted,
            images: Images::Any,
            files: true,
            document_urls: false,
            max_user: 64,
            openai_fields: false,
            stream_options: true,
            tools_with_format: true,
            json_output: JsonOutput::Schema,
            thought_signatures: ThoughtSignatures::IfPresent,
            item_status: true,
            relayed_replies: true,
        };
        if dialect == anthropic_messages::ID {
            return Self {
                reasoning_switch: ReasoningSwitch::Claude,
                efforts: Set::<Effort>::of(&[]),
                thinking_modes: Set::<ThinkingMode>::of(&[ThinkingMode::Enabled, ThinkingMode::Disabled]),
                refused: Set::<Param>::of(&[
                    Param::FrequencyPenalty,
                    Param::PresencePenalty,
                    Param::Seed,
                    Param::Logprobs,
                ]),
                refused_while_reasoning: Set::<Param>::of(&[Param::Temperature, Param::TopP, Param::TopK]),
                max_temperature: 1,
                max_stops: u64::MAX,
                blank_text: false,
                forced_calls: ForcedCalls::NotWhileReasoning,
                max_tool_name: 128,
                call_ids: CallIds::Word,
                system_messages: SystemMessages::First,
                assistant_first: false,
                max_user: 256,
                json_output: JsonOutput::SchemaOnly,
                ..chat
            };
        }
        if dialect == openai_responses::ID {
            return Self {
                min_output: 16,
                reasoning_switch: ReasoningSwitch::Effort,
                refused: Set::<Param>::of(&[
                    Param::TopK,
                    Param::FrequencyPenalty,
                    Param::PresencePenalty,
                    Param::Seed,
                    Param::Stop,
                ]),
                custom_tools: true,
                call_ids: CallIds::Any,
                developer_role: true,
                openai_fields: true,
                ..chat
            };
        }
        chat
    }
}
