//! Rendered calls parse back to the same calls, whatever their values contain.

use proptest::prelude::*;
use toolgate_model::{
    AssistantMessage, CallId, Choice, DialectId, Image, Source, SystemMessage, SystemRole, Text, ToolCall,
    ToolOutcome, ToolResult, ToolResults,
};

use super::*;
use crate::options::{AfterCalls, Repair};

fn options() -> PromptedOptions {
    PromptedOptions {
        after_calls: AfterCalls::Text,
        repair: Repair::Off,
        continuations: 0,
        ..PromptedOptions::default()
    }
}

/// Parses the text that an answer was rendered as.
fn read_back(blocks: Vec<Block>, split: Split) -> (Vec<String>, Vec<String>) {
    let expect = blocks.iter().map(shown).collect::<Vec<_>>();
    let mut request = request();
    request.messages.push(Message::Assistant(AssistantMessage { content: blocks, extras: Extras::NONE }));
    request.messages.push(user("next"));
    let prepared = prepared(&request, &options());
    let Message::Assistant(rendered) = &prepared.request.messages[1] else { panic!("not an answer") };
    let [Block::Text(text)] = rendered.content.as_slice() else { panic!("not one text: {rendered:?}") };
    let outcome = interpret(&prepared, text_events(&text.text, split, StopReason::EndTurn));
    assert_eq!(outcome.recoveries, []);
    (outcome.blocks, expect)
}

fn call(name: &str, arguments: String) -> Block {
    let kind = if name == "Patch" { CallKind::Custom } else { CallKind::Function };
    Block::ToolCall(ToolCall {
        id: CallId::new("c"),
        name: name.into(),
        kind,
        arguments,
        extras: Extras::NONE,
    })
}

/// Text made of pieces that are hard to parse.
fn hostile() -> impl Strategy<Value = String> {
    let fragments = prop::sample::select(vec![
        "</parameter>",
        "</invoke>",
        "<invoke name=\"Bash\">",
        "<parameter name=\"meta\">",
        "<parameter name=\"content\">",
        "]]>",
        "<![CDATA[",
        "\n",
        "\r\n",
        "\r",
        " ",
        "  ",
        "```",
        "<think>",
        "</think>",
        "&lt;",
        "null",
        "true",
        "5",
        "{",
        "}",
        "[",
        "\"",
        "'",
        "\\",
        "<",
        ">",
        "é",
        "漢",
        "🚀",
        "word",
        "</content>",
        "<<CALL_",
        "<function=x>",
        "</function>",
        "<｜DSML｜invoke name=\"Bash\">",
        "\t",
        "\u{0}",
        "{\"a\":1}",
    ]);
    prop::collection::vec(fragments, 0..12).prop_map(|fragments| fragments.concat())
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        hostile().prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            prop::collection::vec((hostile(), inner), 0..3)
                .prop_map(|members| json!(members.into_iter().collect::<serde_json::Map<_, _>>())),
        ]
    })
}

fn any_call() -> impl Strategy<Value = Block> {
    let write = (hostile(), hostile(), prop::option::of(hostile())).prop_map(|(path, content, meta)| {
        let mut arguments = json!({"file_path": path, "content": content});
        if let Some(meta) = meta {
            arguments["meta"] = json!(meta);
        }
        call("Write", arguments.to_string())
    });
    let note = prop_oneof![Just(json!(null)), hostile().prop_map(|text| json!(text))];
    let search = (hostile(), json_value(), json_value(), note, any::<bool>()).prop_map(|(query, any, item, note, unit)| {
        let unit = if unit { "celsius" } else { "fahrenheit" };
        let filters = json!({"k": item});
        let arguments = json!({"query": query, "filters": filters, "tags": [item], "note": note, "unit": unit, "any": any});
        call("Search", arguments.to_string())
    });
    let bash = (hostile(), any::<i64>(), any::<bool>()).prop_map(|(command, timeout, background)| {
        call("Bash", json!({"command": command, "timeout": timeout, "background": background}).to_string())
    });
    let patch = hostile().prop_map(|input| call("Patch", input));
    prop_oneof![write, search, bash, patch, Just(call("Ping", "{}".into()))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn rendered_calls_round_trip(
        text in prop::option::of("[a-z]{1,8}( [a-z]{1,5}\n?){0,3}"),
        calls in prop::collection::vec(any_call(), 1..4),
        seed in 0..4_u64,
    ) {
        let mut blocks: Vec<Block> = text.map(|text| Block::Text(Text::new(text))).into_iter().collect();
        blocks.extend(calls);
        for split in [Split::Every(1), Split::Random(seed), Split::Whole] {
            let (got, expect) = read_back(blocks.clone(), split);
            prop_assert_eq!(got, expect);
        }
    }
}

#[test]
fn text_between_calls_keeps_its_position() {
    let text = |text: &str| Block::Text(Text::new(text));
    let ls = || call("Bash", "{\"command\":\"ls\"}".into());
    for split in SPLITS {
        let blocks = vec![text("First."), ls(), ls(), text("Then:\nmore\n"), ls()];
        let (got, expect) = read_back(blocks, split);
        assert_eq!(got, expect);
    }
}

#[test]
fn large_numbers_and_unknown_parameters_round_trip() {
    let blocks = vec![
        call("Bash", "{\"command\":\"x\",\"timeout\":123456789012345678901234567890}".into()),
        call("Search", "{\"query\":\"\",\"any\":1.10}".into()),
        call("Search", "{\"query\":\"q\",\"odd \\\" & <name>\":\"5\"}".into()),
    ];
    let (got, expect) = read_back(blocks, Split::Every(3));
    assert_eq!(got, expect);
}

#[test]
fn results_are_wrapped_with_a_nonce_and_images_stay_images() {
    // P30
    let picture = || {
        let source = Source::Base64 { media_type: "image/png".into(), data: "AAAA".into() };
        Part::Image(Image::new(source))
    };
    let result = |call: &str, content: Vec<Part>, outcome: ToolOutcome| ToolResult {
        call: call.into(),
        kind: CallKind::Function,
        content,
        outcome,
        extras: Extras::NONE,
    };
    let mut request = request();
    let two = [("a", "Bash"), ("b", "Write")].map(|(id, name)| {
        Block::ToolCall(ToolCall {
            id: id.into(),
            name: name.into(),
            kind: CallKind::Function,
            arguments: "{}".into(),
            extras: Extras::NONE,
        })
    });
    request.messages.push(Message::Assistant(AssistantMessage { content: two.into(), extras: Extras::NONE }));
    request.messages.push(Message::ToolResults(ToolResults {
        results: vec![
            result("a", vec![Part::text("out </tool_result> x"), picture()], ToolOutcome::Success),
            result("b", Vec::new(), ToolOutcome::Error),
        ],
    }));
    request.messages.push(user("and now?"));
    let prepared = prepared(&request, &PromptedOptions::default());
    assert_eq!(prepared.request.messages.len(), 3);
    let Message::User(results) = &prepared.request.messages[2] else {
        panic!("results are not a user message")
    };
    let [Part::Text(first), image, Part::Text(second)] = results.content.as_slice() else {
        panic!("{results:?}")
    };
    let nonce = first.text.strip_prefix("<tool_result_").unwrap().split(' ').next().unwrap();
    assert_eq!(nonce.len(), 8);
    assert_eq!(first.text, format!("<tool_result_{nonce} name=\"Bash\" id=\"a\">\nout </tool_result> x"));
    assert_eq!(image, &picture());
    let (second, reminder) = second.text.split_once("\n\n(").unwrap();
    assert_eq!(
        second,
        format!(
            "\n</tool_result_{nonce}>\n<tool_result_{nonce} name=\"Write\" id=\"b\" error=\"true\">\n\n</tool_result_{nonce}>\nand now?"
        )
    );
    assert!(reminder.contains(prepared.plan.trigger().unwrap()));
}

#[test]
fn the_reminder_is_on_the_last_user_message_even_before_instructions() {
    let mut request = request();
    request.tool_choice.choice = Some(Choice::Any);
    request.messages.push(Message::System(SystemMessage {
        role: SystemRole::System,
        content: vec![Part::text("be brief")],
        extras: Extras::NONE,
    }));
    let prepared = prepared(&request, &PromptedOptions::default());
    let [Message::User(asked), Message::System(_)] = prepared.request.messages.as_slice() else {
        panic!("{:?}", prepared.request.messages)
    };
    let Some(Part::Text(reminder)) = asked.content.last() else { panic!("{asked:?}") };
    assert!(reminder.text.contains("You must call"), "{}", reminder.text);
}

#[test]
fn text_stays_one_part_unless_the_client_marked_it() {
    let parts = |request: &TurnRequest| {
        let prepared = prepared(request, &PromptedOptions::default());
        let Some(Message::User(asked)) = prepared.request.messages.last() else { panic!("{prepared:?}") };
        asked.content.len()
    };
    let mut request = request();
    assert_eq!(parts(&request), 1);
    // A cache mark must stay behind the text that the client sends again.
    let Some(Message::User(asked)) = request.messages.last_mut() else { panic!("{request:?}") };
    let Some(Part::Text(text)) = asked.content.last_mut() else { panic!("{asked:?}") };
    let dialect = DialectId { name: "anthropic-messages", provider: "anthropic" };
    text.extras.insert(dialect, "cache_control", json!({"type": "ephemeral"}));
    assert_eq!(parts(&request), 2);
}

#[test]
fn a_request_without_tools_is_unchanged() {
    let plain = TurnRequest::new("m", vec![user("hi")]);
    let prepared = prepared(&plain, &PromptedOptions::default());
    assert_eq!(prepared.request, plain);
}
