//! Limits: linear time, little buffering, and malformed text of every kind without panics or invented calls.

use super::*;

/// The maximum number of characters of a string that may be held back.
const MAX_HELD_BACK: usize = 300;

fn write(content: &str) -> String {
    format!(
        "§\n<invoke name=\"Write\">\n<parameter name=\"file_path\">a</parameter>\n<parameter name=\"content\">\n{content}\n</parameter>\n</invoke>"
    )
}

struct Run {
    arguments: String,
    scanned: usize,
    most_held: usize,
}

/// Streams a call in chunks of three characters and measures how much of it is held back.
fn stream(text: &str) -> Run {
    stream_with(text, &PromptedOptions::default())
}

fn stream_with(text: &str, options: &PromptedOptions) -> Run {
    let prepared = prepared(&request(), options);
    let text = text.replace(MARK, prepared.plan.trigger().unwrap());
    let mut interpreter = Interpreter::new(prepared.plan);
    let mut run = Run { arguments: String::new(), scanned: 0, most_held: 0 };
    let mut out = Vec::new();
    for event in text_events(&text, Split::Every(3), StopReason::EndTurn) {
        interpreter.event(event, &mut out);
        run.most_held = run.most_held.max(interpreter.buffered_bytes());
        for event in out.drain(..) {
            if let TurnEvent::BlockDelta(Delta::Arguments(json)) = event {
                run.arguments.push_str(&json);
            }
        }
    }
    run.scanned = interpreter.scanned();
    run
}

fn content_of(arguments: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(arguments).unwrap();
    value["content"].as_str().unwrap().to_owned()
}

#[test]
fn p29_parsing_is_linear_and_strings_stream() {
    let line = "if a < b && c > d { print(\"</parameter>\", '</invoke>', <b>) }\n";
    let scanned_per_byte = [100_000, 1_000_000].map(|size| {
        let content = line.repeat(size / line.len());
        let run = stream(&write(&content));
        assert_eq!(content_of(&run.arguments), content);
        assert!(run.most_held <= MAX_HELD_BACK, "{} held", run.most_held);
        run.scanned / content.len()
    });
    assert!(scanned_per_byte.iter().all(|factor| *factor <= 16), "{scanned_per_byte:?}");
    assert!(scanned_per_byte[0].abs_diff(scanned_per_byte[1]) <= 1, "{scanned_per_byte:?}");
}

#[test]
fn worst_case_text_is_scanned_in_linear_time() {
    for fragment in
        ["</parameter> ", "<", "</parameter>\n</invoke>\n</parameter>\n", "<parameter name=\"", "\n", "]]>"]
    {
        let scanned = [10_000, 100_000].map(|size| {
            let content = format!("x{}", fragment.repeat(size / fragment.len()));
            let run = stream(&write(&content));
            assert!(run.most_held <= MAX_HELD_BACK, "{} held of {fragment:?}", run.most_held);
            run.scanned
        });
        assert!(scanned[1] <= 400 * 100_000, "{fragment:?} {scanned:?}");
        assert!(scanned[1] <= 11 * scanned[0], "{fragment:?} {scanned:?}");
    }
}

#[test]
fn a_buffered_value_over_the_limit_leaves_the_call_unfinished() {
    let text = format!(
        "§\n<invoke name=\"Search\">\n<parameter name=\"filters\">{{\"a\":\"{}\"}}</parameter>\n</invoke>",
        "x".repeat(9 * 1024 * 1024)
    );
    let prepared = prepared(&request(), &PromptedOptions::default());
    let text = text.replace(MARK, prepared.plan.trigger().unwrap());
    let outcome = interpret(&prepared, text_events(&text, Split::Every(100_000), StopReason::EndTurn));
    assert_eq!((outcome.stop, outcome.truncation), (StopReason::MaxTokens, Some(Truncation::TooLarge)));
    assert_eq!(outcome.blocks, ["call Search "]);
}

#[test]
fn endless_whitespace_is_not_buffered() {
    let blank = " \n".repeat(5_000);
    let ping = "<invoke name=\"Ping\">\n</invoke>";
    for text in [
        format!("§\n{blank}"),
        format!("§\n<invoke name=\"Ping\">{blank}</invoke>"),
        format!("§\n{ping}{blank}{ping}"),
        format!("§\n<invoke name=\"Write\">{blank}<parameter name=\"content\">{blank}"),
    ] {
        for after_calls in [crate::AfterCalls::Stop, crate::AfterCalls::Text] {
            let options = PromptedOptions { after_calls, ..PromptedOptions::default() };
            let run = stream_with(&text, &options);
            assert!(run.most_held <= 2 * MAX_HELD_BACK, "{} held of {}", run.most_held, &text[..30]);
            read(&text, &options, &StopReason::EndTurn);
        }
    }
}

#[test]
fn a_value_with_much_leading_whitespace_is_a_string() {
    let call = |blank: usize| {
        let value = format!("{}{{\"a\":1}}", " ".repeat(blank));
        format!(
            "§\n<invoke name=\"Search\">\n<parameter name=\"query\">q</parameter>\n<parameter name=\"any\">{value}</parameter>\n</invoke>"
        )
    };
    let few = read(&call(60), &PromptedOptions::default(), &StopReason::EndTurn);
    assert_eq!(few.blocks, ["call Search {\"query\":\"q\",\"any\":{\"a\":1}}"]);
    let many = read(&call(70), &PromptedOptions::default(), &StopReason::EndTurn);
    assert_eq!(
        many.blocks,
        [format!("call Search {}", json!({"query": "q", "any": format!("{}{{\"a\":1}}", " ".repeat(70))}))]
    );
}

#[test]
fn too_many_parameters_leave_the_call_unfinished() {
    let parameters: Vec<String> =
        (0..300).map(|at| format!("<parameter name=\"p{at}\">x</parameter>\n")).collect();
    let parameters = parameters.concat();
    let outcome = read(
        &format!("§\n<invoke name=\"Ping\">\n{parameters}</invoke>"),
        &PromptedOptions::default(),
        &StopReason::EndTurn,
    );
    assert_eq!((outcome.stop, outcome.truncation), (StopReason::MaxTokens, Some(Truncation::Malformed)));
    let members: Vec<String> = (0..300).map(|at| format!("\"p{at}\":1")).collect();
    let text = format!("§\n{{\"name\":\"Ping\",\"arguments\":{{{}}}}}", members.join(","));
    let outcome = read(&text, &PromptedOptions::default(), &StopReason::EndTurn);
    assert_eq!((outcome.stop, outcome.truncation), (StopReason::MaxTokens, Some(Truncation::Malformed)));
}

#[test]
fn thousands_of_triggers_make_no_call() {
    let outcome = read(&"§\n".repeat(3_000), &PromptedOptions::default(), &StopReason::EndTurn);
    assert_eq!(outcome.blocks, Vec::<String>::new());
    let prose = "§ x\n".repeat(2_000);
    let outcome = read(&prose, &PromptedOptions::default(), &StopReason::EndTurn);
    assert_eq!(outcome.blocks, [format!("text {prose}")]);
}

#[test]
fn a_call_cut_anywhere_is_never_complete() {
    let text = format!("Hi.\n{}", write("a </parameter> b\n<x>"));
    let whole = text.len();
    for cut in text.char_indices().map(|(at, _)| at).chain([whole]) {
        let prepared = prepared(&request(), &PromptedOptions::default());
        let cut_text = text[..cut].replace(MARK, prepared.plan.trigger().unwrap());
        let outcome = interpret(&prepared, text_events(&cut_text, Split::Random(5), StopReason::MaxTokens));
        assert_eq!(outcome.stop, StopReason::MaxTokens);
        let complete = outcome.blocks.iter().any(|block| {
            block.starts_with("call") && serde_json::from_str::<serde_json::Value>(&block[11..]).is_ok()
        });
        assert!(!complete, "{cut}: {outcome:?}");
    }
}

#[test]
fn malformed_text_of_every_kind_gives_a_reply() {
    let fragments = [
        "§",
        "\n",
        "<invoke name=\"Bash\">",
        "</invoke>",
        "<parameter name=\"command\">",
        "</parameter>",
        "<think>",
        "</think>",
        "```",
        "<![CDATA[",
        "]]>",
        "{\"name\":\"Bash\"",
        "}",
        "[{",
        "<tool_call>",
        "<function=Write>",
        "x",
        " ",
        "＜invoke name=\"Bash\"＞",
        "<｜DSML｜",
        "<function_call><tool>Bash</tool><args_json>",
        "é",
        "~~~",
        "<parameter name=\"",
        "<invoke name=\"Search\">",
        "<parameter name=\"filters\">",
        "{'a':1}",
        "null",
    ];
    let mut random = Random(42);
    for _ in 0..600 {
        let text =
            (0..random.below(24)).map(|_| fragments[random.below(fragments.len())]).collect::<String>();
        // `read` checks that the reply is well-formed and does not depend on the split.
        read(&text, &PromptedOptions::default(), &StopReason::EndTurn);
        read(
            &text,
            &PromptedOptions { strictness: crate::Strictness::Strict, ..PromptedOptions::default() },
            &StopReason::EndTurn,
        );
    }
}
