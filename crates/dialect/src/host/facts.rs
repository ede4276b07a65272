//! The values that facts about a host can have.

use std::fmt;

/// A fact that the configuration can set.
pub(crate) trait Fact: Sized {
    /// Parses the text of the configuration. The error lists what is allowed.
    fn parse(text: &str) -> Result<Self, String>;
}

impl Fact for bool {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "true or false".to_owned())
    }
}

impl Fact for u64 {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "a whole number".to_owned())
    }
}

/// An enum whose variants have names, and its parser.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in the configuration and on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl Fact for $name {
            fn parse(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().find(|value| value.name() == text);
                let names = || Self::ALL.iter().map(|value| value.name()).collect::<Vec<_>>().join(", ");
                found.copied().ok_or_else(names)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// Efforts, from the least to the most.
    Effort {
        /// No reasoning.
        None = "none",
        /// As little as possible.
        Minimal = "minimal",
        /// Little.
        Low = "low",
        /// The usual amount.
        Medium = "medium",
        /// Much.
        High = "high",
        /// More than `high`.
        Xhigh = "xhigh",
        /// As much as possible.
        Max = "max",
    }
}

named! {
    /// Values of Claude's `thinking.type`.
    ThinkingMode {
        /// The model decides how much to think.
        Adaptive = "adaptive",
        /// With a budget of tokens.
        Enabled = "enabled",
        /// No thinking.
        Disabled = "disabled",
        /// Thinking between calls only.
        BetweenTools = "between_tools",
    }
}

named! {
    /// Sampling settings that hosts may refuse.
    Param {
        /// `temperature`.
        Temperature = "temperature",
        /// `top_p`.
        TopP = "top_p",
        /// `top_k`.
        TopK = "top_k",
        /// `frequency_penalty`.
        FrequencyPenalty = "frequency_penalty",
        /// `presence_penalty`.
        PresencePenalty = "presence_penalty",
        /// `seed`.
        Seed = "seed",
        /// `stop`.
        Stop = "stop",
        /// `logprobs`, `top_logprobs` and `logit_bias`.
        Logprobs = "logprobs",
    }
}

named! {
    /// Parts of JSON Schema that a host refuses in a tool.
    SchemaPart {
        /// `$schema`.
        SchemaUri = "$schema",
        /// `const`: written as an `enum` with one value.
        Const = "const",
        /// `type` as an array: written as `anyOf`, or without `null`.
        TypeArray = "type-array",
        /// Numbers in an `enum`.
        NumberEnum = "number-enum",
        /// `additionalProperties: false`.
        ClosedObject = "additionalProperties",
        /// `type` beside `anyOf`.
        TypedChoice = "type-beside-anyOf",
    }
}

named! {
    /// The field of a Chat request for the output limit.
    LimitField {
        /// `max_tokens`.
        MaxTokens = "max_tokens",
        /// `max_completion_tokens`.
        MaxCompletionTokens = "max_completion_tokens",
    }
}

named! {
    /// What a model does if the request does not mention reasoning.
    Reasons {
        /// It cannot reason.
        Never = "never",
        /// It does not reason unless asked.
        IfAsked = "if-asked",
        /// It reasons unless told not to.
        ByDefault = "by-default",
        /// It always reasons.
        Always = "always",
    }
}

named! {
    /// The fields that control reasoning.
    ReasoningSwitch {
        /// None is known: the host decides.
        None = "none",
        /// `reasoning_effort`, or Responses' `reasoning.effort`.
        Effort = "effort",
        /// `reasoning: {"effort": …}` in a Chat request.
        ReasoningEffort = "reasoning.effort",
        /// `reasoning: {"enabled": …}` in a Chat request.
        ReasoningEnabled = "reasoning.enabled",
        /// `thinking: {"type": "enabled"}`, with `reasoning_effort` if the model has efforts.
        ThinkingType = "thinking.type",
        /// `thinking: {"type": "adaptive"}`.
        ThinkingAdaptive = "thinking.adaptive",
        /// `enable_thinking` and `thinking_budget`.
        EnableThinking = "enable_thinking",
        /// Claude's `thinking` and `output_config.effort`.
        Claude = "claude",
    }
}

named! {
    /// How earlier reasoning returns to a Chat host.
    ReasoningField {
        /// It does not.
        None = "none",
        /// In `reasoning_content`.
        ReasoningContent = "reasoning_content",
        /// In `reasoning`.
        Reasoning = "reasoning",
        /// In `reasoning` and `reasoning_details`.
        Details = "reasoning_details",
        /// As `thinking` parts of the content.
        ThinkingPart = "thinking-part",
        /// In the text, between `<think>` and `</think>`.
        ThinkTags = "think-tags",
    }
}

named! {
    /// Which assistant messages must have reasoning.
    ReasoningRequired {
        /// None.
        Never = "never",
        /// Those with calls.
        WithCalls = "with-calls",
        /// All.
        Always = "always",
    }
}

named! {
    /// Which tool choices force a call.
    ForcedCalls {
        /// `required` and a named tool.
        Any = "any",
        /// `required` only: a named tool is offered alone.
        RequiredOnly = "required-only",
        /// Both, but not while the model reasons.
        NotWhileReasoning = "not-while-reasoning",
        /// None: only `auto` and `none`.
        None = "none",
    }
}

named! {
    /// The ids of calls.
    CallIds {
        /// Up to 40 characters.
        Short = "40",
        /// Up to 64 characters.
        Any = "64",
        /// Up to 64 characters of `A-Z a-z 0-9 _ -`.
        Word = "word",
        /// Nine letters and digits.
        Nine = "nine",
    }
}

named! {
    /// Whether a call carries the signature that Gemini gave it.
    ThoughtSignatures {
        /// If the client returned it.
        IfPresent = "if-present",
        /// Always: without it, the documented placeholder is sent.
        Required = "required",
        /// Never.
        Refused = "refused",
    }
}

named! {
    /// Where system messages may be.
    SystemMessages {
        /// Anywhere.
        Anywhere = "anywhere",
        /// At the start, and after a user message.
        AfterUser = "after-user",
        /// At the start only.
        First = "first",
    }
}

named! {
    /// Whether a conversation may end with an assistant message.
    Prefill {
        /// The model continues the message.
        Accepted = "accepted",
        /// The message needs `prefix: true`.
        Marked = "prefix",
        /// The host refuses it.
        Refused = "refused",
    }
}

named! {
    /// The sources of images.
    Images {
        /// URLs and inline bytes.
        Any = "any",
        /// Inline bytes only.
        Inline = "inline",
    }
}

named! {
    /// The JSON output formats.
    JsonOutput {
        /// A schema, or any object.
        Schema = "json_schema",
        /// A schema only.
        SchemaOnly = "json_schema-only",
        /// Any object only.
        Object = "json_object",
        /// None.
        None = "none",
    }
}

/// A set of named values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Set<T: 'static> {
    bits: u16,
    kind: std::marker::PhantomData<T>,
}

/// A set type for one of the enums above.
macro_rules! set_of {
    ($name:ident) => {
        impl Set<$name> {
            /// The set of these values.
            pub const fn of(values: &[$name]) -> Self {
                let mut bits = 0;
                let mut index = 0;
                while index < values.len() {
                    bits |= 1 << values[index] as u16;
                    index += 1;
                }
                Self { bits, kind: std::marker::PhantomData }
            }

            /// True if the value is in the set.
            pub const fn contains(self, value: $name) -> bool {
                self.bits & (1 << value as u16) != 0
            }

            /// True if the set is empty.
            pub const fn is_empty(self) -> bool {
                self.bits == 0
            }

            /// The values, in the order of their definition.
            pub fn iter(self) -> impl DoubleEndedIterator<Item = $name> {
                $name::ALL.iter().copied().filter(move |value| self.contains(*value))
            }
        }

        impl Fact for Set<$name> {
            fn parse(text: &str) -> Result<Self, String> {
                let words = text.split([' ', ',']).filter(|word| !word.is_empty());
                let values = words.map($name::parse).collect::<Result<Vec<_>, _>>()?;
                Ok(Self::of(&values))
            }
        }

        impl fmt::Debug for Set<$name> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.iter().map($name::name).collect::<Vec<_>>().join(" "))
            }
        }
    };
}

set_of!(Effort);
set_of!(ThinkingMode);
set_of!(Param);
set_of!(SchemaPart);
