//! Which conversations have the same hash and which have different ones.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::extras::{DialectId, Extras, Fields, Opaque};
use crate::message::{
    AssistantMessage, Audio, Block, Document, Image, Part, Reasoning, ReasoningPart, Source, SystemMessage,
    SystemRole, Text, ToolCall, ToolOutcome, ToolResult, ToolResults, UserMessage,
};
use crate::tool::CallKind;

const DIALECT: DialectId = DialectId { name: "some-dialect", provider: "some" };

fn user(parts: &[&str]) -> Message {
    parts_of(parts.iter().map(|text| Part::text(*text)).collect())
}

fn parts_of(content: Vec<Part>) -> Message {
    Message::User(UserMessage { content, extras: Extras::NONE })
}

fn system(text: &str) -> Message {
    let content = vec![Part::text(text)];
    Message::System(SystemMessage { role: SystemRole::System, content, extras: Extras::NONE })
}

fn assistant(content: Vec<Block>) -> Message {
    Message::Assistant(AssistantMessage { content, extras: Extras::NONE })
}

fn text(text: &str) -> Block {
    Block::Text(Text::new(text))
}

fn call(id: &str, arguments: &str) -> Block {
    named_call(id, "weather", arguments)
}

fn named_call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        kind: CallKind::Function,
        arguments: arguments.to_owned(),
        extras: Extras::NONE,
    })
}

fn result(call: &str, text: &str) -> ToolResult {
    ToolResult {
        call: call.into(),
        kind: CallKind::Function,
        content: vec![Part::text(text)],
        outcome: ToolOutcome::Success,
        extras: Extras::NONE,
    }
}

fn results(results: Vec<ToolResult>) -> Message {
    Message::ToolResults(ToolResults { results })
}

fn reasoning() -> Block {
    let parts = vec![ReasoningPart { kind: crate::ReasoningKind::Full, text: "hm".to_owned() }];
    Block::Reasoning(Reasoning { parts, ..Reasoning::default() })
}

fn image(data: &str) -> Part {
    let source = Source::Base64 { media_type: "image/png".to_owned(), data: data.to_owned() };
    Part::Image(Image::new(source))
}

fn opaque(fields: &serde_json::Value) -> Opaque {
    let fields: Fields = fields.as_object().cloned().unwrap();
    Opaque { dialect: DIALECT, kind: "search".to_owned(), fields }
}

fn whole(messages: &[Message]) -> PrefixHash {
    Lineage::of("alice/model", messages).whole()
}

fn same(case: &str, one: &[Message], other: &[Message]) {
    assert_eq!(whole(one), whole(other), "{case}");
}

#[test]
fn formatting_does_not_count() {
    let cached = Extras::of(DIALECT, [("cache_control".to_owned(), json!({}))].into_iter().collect());
    let decorated = Part::Text(Text { text: "hi".to_owned(), extras: cached.clone() });
    let plain = [user(&["hi"])];
    same("split blocks", &[user(&["h", "i"])], &plain);
    same("split messages of one turn", &[user(&["h"]), user(&["i"])], &plain);
    same("empty text", &[user(&["hi", ""]), user(&[])], &plain);
    same("whitespace at the ends", &[user(&["\n hi", " \n"])], &plain);
    same(
        "extra fields of a dialect",
        &[Message::User(UserMessage { content: vec![decorated], extras: cached })],
        &plain,
    );
    same("system prompt", &[system("be brief"), system("and kind"), plain[0].clone()], &plain);
    same("a reminder", &[user(&["hi", "<system-reminder>\nx\n</system-reminder>\n"])], &plain);
    same("an empty message", &[plain[0].clone(), assistant(vec![reasoning(), text(" ")])], &plain);
    same(
        "an empty message between two others",
        &[user(&["h"]), assistant(vec![text("")]), user(&["i"])],
        &plain,
    );
}

#[test]
fn how_a_reply_is_split_does_not_count() {
    let plain = [user(&["hi"]), assistant(vec![text("one two"), call("c1", r#"{"a":1,"b":"é"}"#)])];
    let reply = |blocks: Vec<Block>| [user(&["hi"]), assistant(blocks)];
    let one_call = || call("c1", r#"{"a":1,"b":"é"}"#);
    same("reasoning", &reply(vec![reasoning(), text("one two"), one_call()]), &plain);
    same("text after the call", &reply(vec![text("one"), one_call(), text("\n\ntwo")]), &plain);
    same(
        "two messages",
        &[user(&["hi"]), assistant(vec![text("one two")]), assistant(vec![one_call()])],
        &plain,
    );
    for arguments in [r#" { "b" : "\u00e9", "a" : 1.0 }"#, r#"{"a":1e0,"b":"é"}"#] {
        same("arguments serialized again", &reply(vec![text("one two"), call("c1", arguments)]), &plain);
    }
    for arguments in ["", " ", "null", "{ }"] {
        same("no arguments", &reply(vec![call("c1", arguments)]), &reply(vec![call("c1", "{}")])); // T9
    }
    let mut custom = one_call();
    if let Block::ToolCall(call) = &mut custom {
        (call.kind, call.arguments) = (CallKind::Custom, "a \"b\"".to_owned());
    }
    same(
        "custom input as the only field",
        &reply(vec![custom]),
        &reply(vec![call("c1", r#"{"input":"a \"b\""}"#)]),
    );
}

#[test]
fn how_results_are_sent_does_not_count() {
    let (a, b) = (|| result("a", "1"), || result("b", "2"));
    let plain = [results(vec![a(), b()]), user(&["go on"])];
    same("order", &[results(vec![b(), a()]), user(&["go on"])], &plain);
    same("one message each", &[results(vec![a()]), results(vec![b()]), user(&["go on"])], &plain);
    same("text before", &[user(&["go"]), results(vec![b()]), user(&[" on"]), results(vec![a()])], &plain);
    let mut blocks = a();
    blocks.content = vec![Part::text(""), Part::text("1")];
    same("text in blocks", &[results(vec![blocks, b()]), user(&["go on"])], &plain);
    let marked = |mark: bool| {
        let fields = if mark { json!({"q": 1, "cache_control": {}}) } else { json!({"q": 1}) };
        [user(&["hi"]), assistant(vec![Block::Opaque(opaque(&fields))])]
    };
    same("a cache mark in an opaque block", &marked(true), &marked(false));
}

/// Conversations whose contents all differ.
fn different() -> Vec<Vec<Message>> {
    let hi = || user(&["hi"]);
    let after_hi = |message: Message| vec![hi(), message];
    let failed = ToolResult { outcome: ToolOutcome::Error, ..result("c1", "1") };
    let empty = ToolResult { content: Vec::new(), ..result("c1", "1") };
    let source = || Source::Url("http://a".to_owned());
    let document = |name: Option<&str>| {
        let name = name.map(str::to_owned);
        parts_of(vec![Part::Document(Document { source: source(), name, extras: Extras::NONE })])
    };
    let audio = Audio { data: "aGk=".to_owned(), format: "wav".to_owned(), extras: Extras::NONE };
    let file = Source::File { provider: "some", id: "http://a".to_owned() };
    vec![
        vec![],
        vec![hi()],
        vec![user(&["Hi"])],
        vec![user(&["h i"])],
        vec![user(&["hihi"])],
        vec![user(&["<system-reminder>a</system-reminder> hi <system-reminder>b</system-reminder>"])],
        vec![assistant(vec![text("hi")])],
        vec![assistant(vec![Block::Refusal(Text::new("hi"))])],
        after_hi(assistant(vec![text("hi")])),
        after_hi(system("hi")),
        vec![hi(), assistant(vec![text("hi")]), hi()],
        vec![hi(), system("hi"), hi()],
        vec![parts_of(vec![image("aGk=")])],
        vec![parts_of(vec![image("aGl=")])],
        vec![parts_of(vec![image("aGk="), Part::text("hi")])],
        vec![parts_of(vec![Part::text("hi"), image("aGk=")])],
        vec![parts_of(vec![Part::text("h"), image("aGk="), Part::text("i")])],
        vec![parts_of(vec![Part::Image(Image::new(source()))])],
        vec![parts_of(vec![Part::Image(Image::new(file))])],
        vec![document(None)],
        vec![document(Some("a.pdf"))],
        vec![parts_of(vec![Part::Audio(audio)])],
        vec![parts_of(vec![Part::Opaque(opaque(&json!({"q": 1})))])],
        vec![parts_of(vec![Part::Opaque(opaque(&json!({"q": 2})))])],
        after_hi(assistant(vec![call("c1", "{}")])),
        after_hi(assistant(vec![call("c2", "{}")])),
        after_hi(assistant(vec![named_call("c1", "time", "{}")])),
        after_hi(assistant(vec![call("c1", r#"{"a":1}"#)])),
        after_hi(assistant(vec![call("c1", r#"{"a":"1"}"#)])),
        after_hi(assistant(vec![call("c1", r#"{"a":[1]}"#)])),
        after_hi(assistant(vec![call("c1", r#"{"a":1.5}"#)])),
        after_hi(assistant(vec![call("c1", r#"{"a":-1}"#)])),
        after_hi(assistant(vec![call("c1", r#"{"a":null}"#)])),
        after_hi(assistant(vec![call("c1", r#"{"a":true}"#)])),
        after_hi(assistant(vec![call("c1", r#"{"a":{"cache_control":1}}"#)])),
        after_hi(assistant(vec![call("c1", r#"{"a":"#)])),
        after_hi(assistant(vec![call("c1", "{}"), call("c2", "{}")])),
        after_hi(assistant(vec![call("c2", "{}"), call("c1", "{}")])),
        vec![results(vec![result("c1", "1")])],
        vec![results(vec![result("c1", "2")])],
        vec![results(vec![result("c2", "1")])],
        vec![results(vec![failed])],
        vec![results(vec![empty])],
        vec![results(vec![result("c1", "1"), result("c1", "1")])],
        vec![results(vec![result("c1", "1"), result("c2", "2")])],
        vec![results(vec![result("c1", "2"), result("c2", "1")])],
    ]
}

#[test]
fn content_counts() {
    let all = different();
    for (at, one) in all.iter().enumerate() {
        for other in &all[..at] {
            assert_ne!(whole(one), whole(other), "{one:?}\n{other:?}");
        }
    }
}

#[test]
fn adjacent_values_are_not_confused() {
    let calls = |pairs: &[(&str, &str)]| {
        assistant(pairs.iter().map(|(id, name)| named_call(id, name, "{}")).collect())
    };
    assert_ne!(whole(&[calls(&[("a", "bc")])]), whole(&[calls(&[("ab", "c")])]));
    assert_ne!(whole(&[calls(&[("a", "b"), ("c", "d")])]), whole(&[calls(&[("a", "b{}cc"), ("d", "")])]));
    assert_ne!(whole(&[results(vec![result("a", "bc")])]), whole(&[results(vec![result("ab", "c")])]));
    assert_ne!(
        whole(&[results(vec![result("a", "")]), user(&["b"])]),
        whole(&[results(vec![result("a", "b")])])
    );
    let scoped = |scope: &str, text: &str| Lineage::of(scope, &[user(&[text])]).whole();
    assert_ne!(scoped("a", "bc"), scoped("ab", "c"));
}

#[test]
fn another_scope_is_another_conversation() {
    let at = |scope: &str, count| Lineage::of(scope, &[user(&["hi"])]).at(count);
    assert_ne!(at("alice", 0), at("bob", 0));
    assert_ne!(at("alice", 1), at("bob", 1));
    assert_ne!(at("alice", 0), at("alice", 1));
}

#[test]
fn a_hash_round_trips_as_hex_and_bytes() {
    let hash = whole(&[user(&["hi"])]);
    assert_eq!(PrefixHash::from_hex(&hash.to_string()), Some(hash));
    assert_eq!(PrefixHash::from_bytes(*hash.as_bytes()), hash);
    for wrong in ["", "00", &hash.to_string().to_uppercase(), &format!("{hash}0"), &"é".repeat(32)] {
        assert_eq!(PrefixHash::from_hex(wrong), None, "{wrong}");
    }
}

/// Hashes are stored: they may change only together with `VERSION`.
#[test]
fn hashes_of_this_version_are_stable() {
    let conversation = [
        user(&["hi"]),
        assistant(vec![text("one"), call("c1", r#"{"a":[1.5,true,null]}"#)]),
        results(vec![result("c1", "sun")]),
    ];
    let lineage = Lineage::of("alice/model", &conversation);
    let shown: Vec<String> =
        (0..=lineage.len()).map(|count| lineage.at(count).to_string()[..16].to_owned()).collect();
    expect_test::expect![[r"
        61bc5f4c3841c42c
        e776cdcab24eb760
        a5493f08ee30893c
        a996b63586f5678a"]]
    .assert_eq(&shown.join("\n"));
}

fn any_message() -> impl Strategy<Value = Message> {
    let words = || "[ab ]{0,4}";
    let id = || "[cd]{1,2}";
    prop_oneof![
        proptest::collection::vec(words(), 0..3)
            .prop_map(|texts| parts_of(texts.into_iter().map(Part::text).collect())),
        (words(), proptest::option::of(id())).prop_map(|(words, id)| {
            assistant(std::iter::once(text(&words)).chain(id.map(|id| call(&id, "{}"))).collect())
        }),
        proptest::collection::vec((id(), words()), 0..3)
            .prop_map(|pairs| results(pairs.iter().map(|(id, text)| result(id, text)).collect())),
        words().prop_map(|words| system(&words)),
        Just(parts_of(vec![image("aGk=")])),
    ]
}

proptest! {
    #[test]
    fn every_prefix_is_hashed_like_a_whole_conversation(messages in proptest::collection::vec(any_message(), 0..8)) {
        let lineage = Lineage::of("s", &messages);
        prop_assert_eq!(lineage.len(), messages.len());
        prop_assert_eq!(lineage.at(messages.len()), lineage.whole());
        for (count, next) in messages.iter().enumerate() {
            let shorter = Lineage::of("s", &messages[..count]);
            prop_assert_eq!(lineage.at(count), shorter.whole());
            prop_assert_eq!(lineage.at(count + 1), shorter.then(next));
        }
    }
}
