//! Blocks and parts.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;
use toolgate_dialect::registry::ALL;
use toolgate_model::{
    Block, CallKind, Document, Extras, Image, Opaque, Part, Reasoning, ReasoningKind, ReasoningPart, Seal,
    Source, Text, ToolCall,
};

/// Any block. Calls have no id yet.
pub(crate) fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        3 => text().prop_map(Block::Text),
        1 => text().prop_map(Block::Refusal),
        2 => reasoning().prop_map(Block::Reasoning),
        3 => call().prop_map(Block::ToolCall),
        1 => opaque().prop_map(Block::Opaque),
    ]
}

/// What a user sends.
pub(crate) fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![
        4 => text().prop_map(Part::Text),
        1 => image().prop_map(Part::Image),
        1 => document().prop_map(Part::Document),
    ];
    vec(part, 1..3)
}

/// What a tool returns.
pub(crate) fn result_parts() -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![4 => text().prop_map(Part::Text), 1 => image().prop_map(Part::Image)];
    vec(part, 1..3)
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,12}( [a-z]{1,9})?", "[äöü€🙂\\\\\"<>&{}a-z]{1,8}"]
}

fn text() -> impl Strategy<Value = Text> {
    words().prop_map(Text::new)
}

fn image() -> impl Strategy<Value = Image> {
    let source = prop_oneof![
        "[A-Za-z0-9]{4}"
            .prop_map(|data| Source::Base64 { media_type: "image/png".to_owned(), data: data + "aGVsbG8=" }),
        "[a-z]{1,5}".prop_map(|name| Source::Url(format!("https://example.com/{name}.png"))),
    ];
    let detail = option::of(prop_oneof![Just("high".to_owned()), Just("auto".to_owned())]);
    (source, detail).prop_map(|(source, detail)| Image { detail, ..Image::new(source) })
}

fn document() -> impl Strategy<Value = Document> {
    let source = prop_oneof![
        "[A-Za-z0-9]{4}".prop_map(|data| Source::Base64 { media_type: "application/pdf".to_owned(), data }),
        words().prop_map(Source::Text),
        "[a-z]{1,5}".prop_map(|name| Source::Url(format!("https://example.com/{name}.pdf"))),
    ];
    (source, option::of("[a-z]{1,6}\\.pdf")).prop_map(|(source, name)| Document {
        source,
        name,
        extras: Extras::NONE,
    })
}

fn reasoning() -> impl Strategy<Value = Reasoning> {
    let kind = prop_oneof![Just(ReasoningKind::Full), Just(ReasoningKind::Summary)];
    let parts = (kind, vec(words(), 1..3)).prop_map(|(kind, texts)| {
        texts.into_iter().map(|text| ReasoningPart { kind, text }).collect::<Vec<_>>()
    });
    (parts, option::of(seal())).prop_map(|(parts, seal)| Reasoning { parts, seal, extras: Extras::NONE })
}

fn seal() -> impl Strategy<Value = Seal> {
    (0..ALL.len(), "[A-Za-z0-9]{6}").prop_map(|(dialect, data)| {
        let kinds = ["signature", "reasoning_details", "encrypted"];
        let data = if kinds[dialect] == "reasoning_details" {
            json!([{ "type": "reasoning.encrypted", "data": data }]).to_string()
        } else {
            data
        };
        Seal::new(ALL[dialect].1.client.id(), kinds[dialect], data)
    })
}

fn call() -> impl Strategy<Value = ToolCall> {
    let name = prop_oneof!["[a-z_]{1,10}", "[a-z]{60,80}", "[a-z]{1,3}\\.[a-z]{1,3}"];
    let function = prop_oneof![
        Just("{}".to_owned()),
        Just(String::new()),
        Just("[1, 2]".to_owned()),
        Just("{\"cut\": ".to_owned()),
        words().prop_map(|word| json!({ "city": word, "n": [1, {}] }).to_string()),
    ];
    let input = prop_oneof![
        function.prop_map(|arguments| (CallKind::Function, arguments)),
        words().prop_map(|text| (CallKind::Custom, text)),
    ];
    (name, input).prop_map(|(name, (kind, arguments))| ToolCall {
        id: "c".into(),
        name: name.into(),
        kind,
        arguments,
        extras: Extras::NONE,
    })
}

/// A block that only one dialect understands.
fn opaque() -> impl Strategy<Value = Opaque> {
    (0..ALL.len(), "[a-z0-9]{12}").prop_map(|(dialect, id)| {
        let objects = [
            json!({ "type": "server_tool_use", "id": format!("srvtoolu_{id}"), "name": "web_search", "input": {} }),
            json!({ "type": "cite", "number": 1 }),
            json!({ "type": "web_search_call", "id": format!("ws_{id}"), "status": "completed" }),
        ];
        let fields = objects[dialect].as_object().cloned().unwrap_or_default();
        let kind = fields["type"].as_str().unwrap_or_default().to_owned();
        Opaque { dialect: ALL[dialect].1.client.id(), kind, fields }
    })
}
