//! The usual request for a whole reply, as a table: what has this shape is a good request, and a host of this dialect
//! can be given it unread. It is a part of what `wire.rs` takes, and must stay one.

use crate::skim::Field;
use crate::skim::Shape::{
    self, Any, CallId, Closed, Count, False, Filled, Flag, List, Model, Never, Number, Object, OneOf,
    ResultId, Tagged, Text, Word,
};

const REQUEST: Shape = Object(&[
    Field::needed("model", Model),
    Field::needed("max_tokens", Count),
    Field::needed("messages", Filled(&MESSAGE)),
    Field::optional("system", OneOf(&[Text, List(&GIVEN)])),
    Field::optional("tools", List(&TOOL)),
    Field::optional("tool_choice", CHOICE),
    Field::optional("stop_sequences", List(&Text)),
    Field::optional("stream", False),
    Field::optional("temperature", Number),
    Field::optional("top_p", Number),
    Field::optional("top_k", Number),
    Field::optional(
        "thinking",
        Object(&[Field::needed("type", Text), Field::optional("budget_tokens", Count)]),
    ),
    Field::optional(
        "output_config",
        Object(&[Field::optional("effort", Text), Field::optional("format", Never)]),
    ),
    Field::optional("metadata", Object(&[Field::optional("user_id", Text)])),
]);

/// Closed, because a message that holds results has no place for unknown fields, and no field may come twice.
const MESSAGE: Shape = Tagged(
    "role",
    &[
        (
            "user",
            Closed(&[
                Field::needed("role", Text),
                Field::needed("content", OneOf(&[Text, List(&GIVEN_OR_RESULT)])),
            ]),
        ),
        (
            "assistant",
            Closed(&[Field::needed("role", Text), Field::needed("content", OneOf(&[Text, List(&SAID)]))]),
        ),
    ],
);

const GIVEN_OR_RESULT: Shape = Tagged(
    "type",
    &[
        ("text", TEXT_BLOCK),
        (
            "tool_result",
            Object(&[
                Field::needed("tool_use_id", ResultId),
                Field::optional("content", OneOf(&[Text, List(&GIVEN)])),
                Field::optional("is_error", Flag),
            ]),
        ),
        ("image", MEDIA_BLOCK),
        ("document", MEDIA_BLOCK),
    ],
);

const GIVEN: Shape =
    Tagged("type", &[("text", TEXT_BLOCK), ("image", MEDIA_BLOCK), ("document", MEDIA_BLOCK)]);

const SAID: Shape = Tagged(
    "type",
    &[
        ("text", TEXT_BLOCK),
        (
            "tool_use",
            Object(&[
                Field::needed("id", CallId),
                Field::needed("name", Text),
                Field::optional("input", Any),
            ]),
        ),
        ("thinking", Object(&[Field::needed("thinking", Text), Field::optional("signature", Text)])),
        ("redacted_thinking", Object(&[Field::needed("data", Text)])),
    ],
);

const TEXT_BLOCK: Shape = Object(&[Field::needed("text", Text)]);

const MEDIA_BLOCK: Shape = Object(&[]);

const TOOL: Shape = Object(&[
    Field::never_null("type", Word(&["custom"])),
    Field::needed("name", Text),
    Field::optional("description", Text),
    Field::optional("input_schema", Any),
    Field::optional("strict", Flag),
]);

const CHOICE: Shape = Tagged(
    "type",
    &[
        ("auto", CHOICE_FIELDS),
        ("any", CHOICE_FIELDS),
        ("none", CHOICE_FIELDS),
        ("tool", Object(&[Field::needed("name", Text), Field::optional("disable_parallel_tool_use", Flag)])),
    ],
);

const CHOICE_FIELDS: Shape = Object(&[Field::optional("disable_parallel_tool_use", Flag)]);

/// The model of a request that can be relayed unread.
pub(super) fn model(body: &[u8]) -> Option<&str> {
    crate::skim::model_of(body, &REQUEST)
}
