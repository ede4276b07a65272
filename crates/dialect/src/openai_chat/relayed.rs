//! The usual request for a whole reply, as a table: what has this shape is a good request, and a host of this dialect
//! can be given it unread. It is a part of what `wire.rs` takes, and must stay one.

use crate::skim::Field;
use crate::skim::Shape::{
    self, Any, CallId, Count, False, Filled, Flag, List, Model, Never, Number, Object, OneOf, ResultId,
    Tagged, Text, Word,
};

const REQUEST: Shape = Object(&[
    Field::needed("model", Model),
    Field::needed("messages", Filled(&MESSAGE)),
    Field::optional("tools", List(&TOOL)),
    Field::optional("functions", Never),
    Field::optional("tool_choice", OneOf(&[Word(&["none", "auto", "required"]), Object(&[])])),
    Field::optional("function_call", Never),
    Field::optional("parallel_tool_calls", Flag),
    Field::optional("max_tokens", Count),
    Field::optional("max_completion_tokens", Count),
    Field::optional("temperature", Number),
    Field::optional("top_p", Number),
    Field::optional("top_k", Number),
    Field::optional("frequency_penalty", Number),
    Field::optional("presence_penalty", Number),
    Field::optional("seed", Number),
    Field::optional("stop", OneOf(&[Text, List(&Text)])),
    Field::optional("response_format", FORMAT),
    Field::optional("reasoning_effort", Text),
    Field::optional("stream", False),
    Field::optional("stream_options", Never),
    Field::optional("n", Count),
    Field::optional("user", Text),
    Field::optional("safety_identifier", Text),
    Field::optional("store", Flag),
]);

const MESSAGE: Shape = Tagged(
    "role",
    &[
        ("user", PLAIN_MESSAGE),
        (
            "assistant",
            Object(&[
                Field::optional("content", CONTENT),
                Field::optional("refusal", Text),
                Field::optional("reasoning_content", Any),
                Field::optional("reasoning", Any),
                Field::optional("tool_calls", List(&CALL)),
                Field::optional("function_call", Never),
            ]),
        ),
        ("tool", Object(&[Field::needed("tool_call_id", ResultId), Field::optional("content", CONTENT)])),
        ("system", PLAIN_MESSAGE),
        ("developer", PLAIN_MESSAGE),
    ],
);

const PLAIN_MESSAGE: Shape = Object(&[Field::optional("content", CONTENT)]);

const CONTENT: Shape = OneOf(&[Text, List(&PART)]);

const PART: Shape = Tagged(
    "type",
    &[
        ("text", Object(&[Field::needed("text", Text)])),
        ("image_url", Object(&[Field::needed("image_url", Object(&[Field::needed("url", Text)]))])),
    ],
);

const CALL: Shape = Object(&[
    Field::needed("id", CallId),
    Field::needed("type", Word(&["function"])),
    Field::needed("function", Object(&[Field::needed("name", Text), Field::optional("arguments", Any)])),
]);

const TOOL: Shape = Object(&[
    Field::needed("type", Word(&["function"])),
    Field::needed(
        "function",
        Object(&[
            Field::needed("name", Text),
            Field::optional("description", Text),
            Field::optional("parameters", Any),
            Field::optional("strict", Flag),
        ]),
    ),
]);

const FORMAT: Shape = Tagged(
    "type",
    &[
        ("text", Object(&[])),
        ("json_object", Object(&[])),
        (
            "json_schema",
            Object(&[Field::needed(
                "json_schema",
                Object(&[
                    Field::optional("name", Text),
                    Field::optional("description", Text),
                    Field::optional("schema", Any),
                    Field::optional("strict", Flag),
                ]),
            )]),
        ),
    ],
);

/// The model of a request that can be relayed unread.
pub(super) fn model(body: &[u8]) -> Option<&str> {
    crate::skim::model_of(body, &REQUEST)
}
