//! What the clients ask for, independent of any dialect.

use serde_json::{Value, json};
use toolgate_testkit::HostTurn;

use super::unusual::Unusual;

/// One conversation: what the client asks for, and what the model replies turn by turn.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) thinking: Thinking,
    pub(super) tools: &'static [Tool],
    pub(super) choice: Choice,
    pub(super) extras: &'static [Extra],
    pub(super) turns: fn() -> Vec<HostTurn>,
}

/// Whether the client asks for thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    Unsaid,
    On,
    /// The newer form, with an effort.
    Adaptive,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Unsaid,
    /// Any of the tools must be called.
    Required,
    /// The weather tool must be called.
    Weather,
}

/// What a request has besides its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    Image,
    Format,
    /// Temperature.
    Sampling,
    Stop,
    /// A user id as Claude Code sends it.
    User,
    /// An output limit that no model has.
    HugeLimit,
    /// Earlier turns that another host answered.
    ForeignHistory,
    Unusual(Unusual),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Weather,
    /// A schema with all that some host refuses.
    Awkward,
    WithoutParameters,
}

impl Tool {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Weather => "get_weather",
            Self::Awkward => "book_flight",
            Self::WithoutParameters => "ping",
        }
    }

    pub(super) fn schema(self) -> Value {
        match self {
            Self::Weather => json!({
                "type": "object", "required": ["city"],
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            }),
            Self::Awkward => json!({
                "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
                "properties": {
                    "from": {"type": ["string", "null"]}, "class": {"type": "integer", "enum": [1, 2]},
                    "stops": {"type": "array"}, "kind": {"const": "return"},
                    "seat": {"anyOf": [{"type": "string"}, {"type": "integer"}], "type": "string"},
                },
            }),
            Self::WithoutParameters => json!({"type": "object"}),
        }
    }
}

const SAY: fn() -> Vec<HostTurn> = || vec![HostTurn::Text("It is sunny in Paris.")];

const ONE_CALL: fn() -> Vec<HostTurn> = || vec![HostTurn::Calls(vec![weather("Paris")])];

const PARALLEL: fn() -> Vec<HostTurn> = || vec![HostTurn::Calls(vec![weather("Paris"), weather("Tokyo")])];

const TWO_TURNS: fn() -> Vec<HostTurn> = || {
    vec![
        HostTurn::Calls(vec![weather("Paris"), weather("Tokyo")]),
        HostTurn::Text("Sunny in Paris, rain in Tokyo."),
    ]
};

const THREE_TURNS: fn() -> Vec<HostTurn> = || {
    vec![
        HostTurn::Calls(vec![weather("Paris"), weather("Tokyo")]),
        HostTurn::Calls(vec![weather("Rome"), weather("Oslo")]),
        HostTurn::Text("Sunny in Rome too."),
    ]
};

const FORMATTED: fn() -> Vec<HostTurn> =
    || vec![HostTurn::Text(r#"{"capital_city":"Paris","population":2100000}"#)];

fn weather(city: &str) -> (&'static str, Value) {
    ("get_weather", json!({"city": city}))
}

/// The schema of a structured reply.
pub(super) fn format_schema() -> Value {
    json!({
        "type": "object", "required": ["capital_city", "population"], "additionalProperties": false,
        "properties": {"capital_city": {"type": "string"}, "population": {"type": "integer", "minimum": 0}},
    })
}

/// A plain question.
const TEXT: Case = Case {
    name: "text",
    thinking: Thinking::Unsaid,
    tools: &[],
    choice: Choice::Unsaid,
    extras: &[],
    turns: SAY,
};

pub(super) const CASES: &[Case] = &[
    TEXT,
    Case { name: "thinking on", thinking: Thinking::On, ..TEXT },
    Case { name: "thinking adaptive", thinking: Thinking::Adaptive, ..TEXT },
    Case { name: "thinking off", thinking: Thinking::Off, ..TEXT },
    Case { name: "tools", tools: &[Tool::Weather], turns: ONE_CALL, ..TEXT },
    Case { name: "parallel calls", tools: &[Tool::Weather], turns: PARALLEL, ..TEXT },
    Case {
        name: "awkward tools",
        tools: &[Tool::Weather, Tool::Awkward, Tool::WithoutParameters],
        turns: ONE_CALL,
        ..TEXT
    },
    Case {
        name: "required tool",
        tools: &[Tool::Weather],
        choice: Choice::Required,
        turns: ONE_CALL,
        ..TEXT
    },
    Case { name: "named tool", tools: &[Tool::Weather], choice: Choice::Weather, turns: ONE_CALL, ..TEXT },
    Case { name: "two turns", tools: &[Tool::Weather], turns: TWO_TURNS, ..TEXT },
    Case {
        name: "two turns with thinking",
        thinking: Thinking::On,
        tools: &[Tool::Weather],
        turns: TWO_TURNS,
        ..TEXT
    },
    Case {
        name: "three turns with thinking",
        thinking: Thinking::On,
        tools: &[Tool::Weather],
        turns: THREE_TURNS,
        ..TEXT
    },
    Case {
        name: "three turns without thinking",
        thinking: Thinking::Off,
        tools: &[Tool::Weather],
        turns: THREE_TURNS,
        ..TEXT
    },
    Case { name: "image", extras: &[Extra::Image], ..TEXT },
    Case { name: "structured output", extras: &[Extra::Format], turns: FORMATTED, ..TEXT },
    Case { name: "sampling", extras: &[Extra::Sampling], ..TEXT },
    Case { name: "stop", extras: &[Extra::Stop], ..TEXT },
    Case { name: "user", extras: &[Extra::User], ..TEXT },
    Case { name: "huge limit", extras: &[Extra::HugeLimit], ..TEXT },
    Case { name: "foreign history", tools: &[Tool::Weather], extras: &[Extra::ForeignHistory], ..TEXT },
    Case {
        name: "foreign history with thinking",
        thinking: Thinking::On,
        tools: &[Tool::Weather],
        extras: &[Extra::ForeignHistory],
        ..TEXT
    },
    Case { name: "developer message", extras: &[Extra::Unusual(Unusual::Developer)], ..TEXT },
    Case { name: "late system message", extras: &[Extra::Unusual(Unusual::LateSystem)], ..TEXT },
    Case {
        name: "image in a result",
        extras: &[Extra::Unusual(Unusual::ImageInResult)],
        tools: &[Tool::Weather],
        ..TEXT
    },
    Case {
        name: "failed result",
        extras: &[Extra::Unusual(Unusual::FailedResult)],
        tools: &[Tool::Weather],
        ..TEXT
    },
    Case { name: "blank text", extras: &[Extra::Unusual(Unusual::BlankText)], ..TEXT },
    Case {
        name: "same id twice",
        extras: &[Extra::Unusual(Unusual::SameIdTwice)],
        tools: &[Tool::Weather],
        ..TEXT
    },
    Case {
        name: "long tool name",
        extras: &[Extra::Unusual(Unusual::LongToolName)],
        tools: &[Tool::Weather],
        ..TEXT
    },
    Case { name: "OpenAI's fields", extras: &[Extra::Unusual(Unusual::OpenAiFields)], ..TEXT },
    Case { name: "Claude's fields", extras: &[Extra::Unusual(Unusual::ClaudeFields)], ..TEXT },
    Case { name: "many stops", extras: &[Extra::Unusual(Unusual::ManyStops)], ..TEXT },
    Case {
        name: "custom tool",
        extras: &[Extra::Unusual(Unusual::CustomTool)],
        tools: &[Tool::Weather],
        ..TEXT
    },
    Case {
        name: "no parallel calls",
        extras: &[Extra::Unusual(Unusual::NoParallel)],
        tools: &[Tool::Weather],
        ..TEXT
    },
    Case { name: "image URL", extras: &[Extra::Unusual(Unusual::ImageUrl)], ..TEXT },
    Case { name: "PDF", extras: &[Extra::Unusual(Unusual::Pdf)], ..TEXT },
    Case { name: "prefill", extras: &[Extra::Unusual(Unusual::Prefill)], ..TEXT },
];
