//! The failure modes P1 to P32, each with its only correct result. See docs/cases.md.

use super::*;
use crate::options::{AfterCalls, Markerless, Repair, Switch, UnknownTool};
use toolgate_model::{Choice, Parallel};

/// Options without side requests.
fn plain() -> PromptedOptions {
    PromptedOptions {
        continuations: 0,
        nudge: Switch::Off,
        repair: Repair::Off,
        ..PromptedOptions::default()
    }
}

fn check(text: &str, blocks: &[&str], recoveries: &[Recovery]) {
    check_with(&plain(), text, blocks, recoveries);
}

fn check_with(options: &PromptedOptions, text: &str, blocks: &[&str], recoveries: &[Recovery]) {
    let outcome = read(text, options, &StopReason::EndTurn);
    let calls = blocks.iter().any(|block| block.starts_with("call") || block.starts_with("custom"));
    let stop = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
    assert_eq!(outcome.blocks, blocks, "{text}");
    assert_eq!(outcome.recoveries, recoveries, "{text}");
    assert_eq!((outcome.stop, outcome.truncation), (stop, None), "{text}");
}

/// Checks that a call is left unfinished and reported as truncated.
fn check_cut(text: &str, stop: &StopReason, blocks: &[&str], truncation: Truncation) {
    let outcome = read(text, &plain(), stop);
    assert_eq!(outcome.blocks, blocks, "{text}");
    assert_eq!((outcome.stop, outcome.truncation), (StopReason::MaxTokens, Some(truncation)), "{text}");
}

/// A `Write` call up to the given content.
fn write(content: &str) -> String {
    format!(
        "§\n<invoke name=\"Write\">\n<parameter name=\"file_path\">a</parameter>\n<parameter name=\"content\">{content}"
    )
}

fn written(content: &str) -> String {
    format!("call Write {{\"file_path\":\"a\",\"content\":{}}}", json!(content))
}

fn check_write(content: &str, expect: &str, recoveries: &[Recovery]) {
    check(&write(content), &[&written(expect)], recoveries);
}

const LS: &str = "<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\n</invoke>";
const CALL_LS: &str = "call Bash {\"command\":\"ls\"}";

#[test]
fn p1_a_trigger_may_be_split() {
    check(&format!("Let me look.\n§\n{LS}"), &["text Let me look.", CALL_LS], &[]);
    check(&format!("§\n{LS}"), &[CALL_LS], &[]);
    check("<<CALL_ is no trigger", &["text <<CALL_ is no trigger"], &[]);
    check("a\n<<CA", &["text a\n<<CA"], &[]);
}

#[test]
fn p2_calls_in_reasoning_do_not_run() {
    let text = format!("<think>I could §\n{LS}\nor so</think>\n\n§\n{LS}");
    check(&text, &[&format!("think I could §\n{LS}\nor so"), CALL_LS], &[]);
    check("<think>hm</think>\n\nYes.", &["think hm", "text Yes."], &[]);
    check("<thinking>hm</thinking>Yes.", &["think hm", "text Yes."], &[]);
    check("<think>\n\n</think>\n\nYes.", &["text Yes."], &[]);
    check("the <think> tag", &["text the <think> tag"], &[]);
    let options = PromptedOptions { starts_in_reasoning: Switch::On, ..plain() };
    check_with(&options, "hm\n</think>\nYes.", &["think hm\n", "text Yes."], &[]);
}

#[test]
fn p3_a_call_at_the_end_of_unclosed_reasoning_runs() {
    let text = format!("<think>I must look.\n§\n{LS}");
    let thought = format!("think I must look.\n§\n{LS}");
    check(&text, &[&thought, CALL_LS], &[Recovery::CallInReasoning]);
    let twice = format!("<think>Maybe §\n{LS}\nno, wait.\n§\n{LS}\n");
    check(
        &twice,
        &[&format!("think Maybe §\n{LS}\nno, wait.\n§\n{LS}\n"), CALL_LS],
        &[Recovery::CallInReasoning],
    );
    let talk = format!("<think>I could §\n{LS}\nbut will not.");
    check(&talk, &[&format!("think I could §\n{LS}\nbut will not.")], &[]);
    let answered = format!("Hello.\n<think>§\n{LS}");
    check(&answered, &["text Hello.\n", &format!("think §\n{LS}")], &[]);
}

#[test]
fn p4_a_trigger_in_prose_is_prose() {
    check("write § to call", &["text write § to call"], &[]);
    check("§ is the line", &["text § is the line"], &[]);
    check(&format!("say §\n{LS}"), &[&format!("text say §\n{LS}")], &[]);
    check("§<b>x</b>", &["text §<b>x</b>"], &[]);
}

#[test]
fn p5_a_fenced_call_runs_only_if_the_fence_ends_the_answer() {
    let example = format!("Like this:\n```xml\nexample:\n§\n{LS}\n```\nDone.");
    check(&example, &[&format!("text {example}")], &[]);
    let fenced = format!("I look.\n```xml\n§\n{LS}\n```\n");
    check(&fenced, &["text I look.", CALL_LS], &[Recovery::CallInFence, Recovery::ForeignSyntax]);
    let quoted = format!("```\n§\n{LS}\n```\nThat was an example.");
    check(&quoted, &[&format!("text {quoted}")], &[]);
    let after = format!("```\ncode\n```\n§\n{LS}");
    check(&after, &["text ```\ncode\n```", CALL_LS], &[]);
    let inside = format!("```\ncode\n§\n{LS}\n");
    check(&inside, &[&format!("text {inside}")], &[]);
    let off = PromptedOptions { calls_in_fence: Switch::Off, ..plain() };
    check_with(&off, &fenced, &[&format!("text {fenced}")], &[]);
    check("``not a fence`` x\n", &["text ``not a fence`` x\n"], &[]);
}

#[test]
fn p6_a_call_without_a_trigger_is_text_unless_allowed_and_safe() {
    check(&format!("Hm.\n{LS}"), &[&format!("text Hm.\n{LS}")], &[]);
    let guarded = PromptedOptions { markerless: Markerless::Guarded, ..plain() };
    check_with(&guarded, &format!("Hm.\n{LS}"), &["text Hm.", CALL_LS], &[Recovery::Markerless]);
    let unknown = "<invoke name=\"Rm\">\n</invoke>";
    check_with(&guarded, unknown, &[&format!("text {unknown}")], &[]);
    check_with(&guarded, &format!("x {LS}"), &[&format!("text x {LS}")], &[]);
    let fenced = format!("```\n{LS}\n```");
    check_with(&guarded, &fenced, &[&format!("text {fenced}")], &[]);
    let mut poisoned = request();
    poisoned.messages.push(user("the page says <invoke name=\"Bash\">"));
    let outcome = read_prepared(&prepared(&poisoned, &guarded), LS, &StopReason::EndTurn);
    assert_eq!(outcome.blocks, [format!("text {LS}")]);
}

#[test]
fn p7_the_closing_tag_of_the_call_ends_an_unclosed_value() {
    check_write("\nvalue\n</invoke>", "value", &[Recovery::MissingValueClose]);
    check_write("value\n</invoke>", "value", &[Recovery::MissingValueClose]);
    check(
        &format!("{}value\n</invoke>\n{LS}", write("")),
        &[&written("value"), CALL_LS],
        &[Recovery::MissingValueClose],
    );
}

#[test]
fn p8_a_closing_tag_with_the_parameter_name_ends_the_value() {
    let text = write("text</content>\n<parameter name=\"meta\">m</parameter>\n</invoke>");
    let expect = "call Write {\"file_path\":\"a\",\"content\":\"text\",\"meta\":\"m\"}";
    check(&text, &[expect], &[Recovery::WrongClose]);
    check_write("a </content> b</parameter>\n</invoke>", "a </content> b", &[]);
    check_write("x</content>\n</invoke>", "x", &[Recovery::WrongClose]);
}

#[test]
fn p9_the_next_parameter_ends_an_unclosed_value() {
    let text = write("\ntext\n<parameter name=\"meta\">m</parameter>\n</invoke>");
    let expect = "call Write {\"file_path\":\"a\",\"content\":\"text\",\"meta\":\"m\"}";
    check(&text, &[expect], &[Recovery::ImplicitClose]);
    let unknown = "\ntext\n<parameter name=\"other\">m</parameter>";
    check_write(&format!("{unknown}\n</parameter>\n</invoke>"), &unknown[1..], &[]);
}

#[test]
fn p10_repeated_closing_tags_count_once() {
    check_write("x</parameter>\n</parameter>\n</invoke>", "x", &[Recovery::RepeatedClose]);
}

#[test]
fn p11_markup_inside_a_value_belongs_to_it() {
    for content in [
        "echo \"</parameter>\" x",
        "</invoke> and </parameter> in prose",
        "Example:\n<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\n</invoke>\nMore prose.",
        "Inline <invoke name=\"Bash\"><parameter name=\"command\">ls</parameter></invoke>\nMore.",
        "<invoke name=\"Write\">\n<parameter name=\"file_path\">b</parameter>\n<parameter name=\"content\">\nx\n</parameter>\n</invoke>",
        "a mention of <invoke name=\"Bash\"> only",
        "a mention of <parameter name=\"x\"> only",
        "<parameter name=\"k\">v</parameter>\n<parameter name=\"l\">w</parameter>",
        "let s = \"\n<invoke name=\\\"X\\\">\n<parameter name=\\\"k\\\">V</parameter>\n</invoke>\n\nprose\";",
        "let s = \"<invoke name=\\\"Bash\\\">\\n</parameter>\\n</invoke>\";",
        "<think>x</think> ]]> ``` &lt;",
        "a </function> b <function=x> c",
        "</parameter>.\n</invoke>.",
        "ends with a bracket <",
    ] {
        check_write(&format!("\n{content}\n</parameter>\n</invoke>"), content, &[]);
        check_write(&format!("{content}</parameter>\n</invoke>"), content, &[]);
    }
}

#[test]
fn p12_cdata_at_the_start_of_a_value_is_unwrapped() {
    check_write("<![CDATA[a]]]]><![CDATA[>b]]></parameter>\n</invoke>", "a]]>b", &[]);
    check_write("\n<![CDATA[\nx\n]]>\n</parameter>\n</invoke>", "\nx\n", &[]);
    check_write(
        "<![CDATA[a]]>b</parameter>\n</invoke>\n]]></parameter>\n</invoke>",
        "a]]>b</parameter>\n</invoke>\n",
        &[],
    );
    check_write("x <![CDATA[y]]></parameter>\n</invoke>", "x <![CDATA[y]]>", &[]);
}

#[test]
fn p13_to_p19_types_come_from_the_schema() {
    let search = |parameter: &str, value: &str, json: &str, recoveries: &[Recovery]| {
        let text = format!(
            "§\n<invoke name=\"Search\">\n<parameter name=\"query\">q</parameter>\n<parameter name=\"{parameter}\">{value}</parameter>\n</invoke>"
        );
        check(&text, &[&format!("call Search {{\"query\":\"q\",\"{parameter}\":{json}}}")], recoveries);
    };
    check_write("&lt;div&gt;</parameter>\n</invoke>", "&lt;div&gt;", &[]); // P13
    search("filters", "{&quot;a&quot;:1}", "{\"a\":1}", &[Recovery::EntitiesDecoded]); // P13
    search("filters", "{\"a\":[1,{\"b\":null}]}", "{\"a\":[1,{\"b\":null}]}", &[]); // P14
    search(
        "filters",
        "{'a': True, 'b': \"x\ny\",}",
        "{\"a\":true,\"b\":\"x\\ny\"}",
        &[Recovery::JsonRepaired],
    ); // P14
    search("filters", "\"{\\\"a\\\":1}\"", "{\"a\":1}", &[Recovery::DoubleEncoded]); // P15
    for text in ["2022", "null", "true", "[1]"] {
        check_write(&format!("{text}</parameter>\n</invoke>"), text, &[]); // P16
    }
    search("note", "abc", "\"abc\"", &[]); // P17
    search("note", "null", "null", &[]); // P17
    search("note", "nul", "\"nul\"", &[]); // P17
    search("unit", "\"Celsius\"", "\"celsius\"", &[Recovery::Coerced]); // P18
    search("any", "12345678901234567890123", "12345678901234567890123", &[]); // P19
    let bash = |value: &str, json: &str, recoveries: &[Recovery]| {
        let text = format!(
            "§\n<invoke name=\"Bash\">\n<parameter name=\"command\">x</parameter>\n<parameter name=\"timeout\">{value}</parameter>\n</invoke>"
        );
        check(&text, &[&format!("call Bash {{\"command\":\"x\",\"timeout\":{json}}}")], recoveries);
    };
    bash("5.0", "5", &[Recovery::Coerced]); // P19
    bash(" 7 ", "7", &[]); // P19
    bash("soon", "\"soon\"", &[Recovery::UnreadableValue]); // The client's validator reports it.
}

#[test]
fn p20_whitespace_is_kept_except_for_one_newline_next_to_each_tag() {
    check_write("\n  x\n</parameter>\n</invoke>", "  x", &[]);
    check_write("\n\n  x\n\n</parameter>\n</invoke>", "\n  x\n", &[]);
    check_write("  x\n</parameter>\n</invoke>", "  x\n", &[]);
    check_write("</parameter>\n</invoke>", "", &[]);
}

#[test]
fn p21_text_outside_ascii_is_intact() {
    check_write("🚀 é 漢 \u{fffd}</parameter>\n</invoke>", "🚀 é 漢 \u{fffd}", &[]);
}

#[test]
fn p22_several_calls_with_or_without_more_triggers() {
    check(&format!("§\n{LS}\n{LS}"), &[CALL_LS, CALL_LS], &[]);
    check(&format!("§\n{LS}\n§\n{LS}\n"), &[CALL_LS, CALL_LS], &[]);
    check(&format!("§\n§\n{LS}"), &[CALL_LS], &[]);
}

#[test]
fn p23_prose_and_wrappers_after_the_trigger_are_skipped() {
    check(
        &format!("§\nI will call it.\n<function_calls>\n{LS}\n</function_calls>"),
        &["text I will call it.", CALL_LS],
        &[Recovery::ProseAfterTrigger, Recovery::ForeignSyntax],
    );
    check(&format!("§\n```xml\n{LS}\n```"), &[CALL_LS], &[Recovery::ForeignSyntax]);
    check("§\nI changed my mind.", &["text I changed my mind."], &[Recovery::ProseAfterTrigger]);
}

#[test]
fn p24_a_similar_tool_name_is_corrected_and_an_unknown_one_follows_the_policy() {
    for name in ["bash", "functions.Bash"] {
        check(&format!("§\n{}", LS.replace("Bash", name)), &[CALL_LS], &[Recovery::ToolRenamed]);
    }
    let unknown = format!("§\n{}", LS.replace("Bash", "Shell"));
    check(&unknown, &["call Shell {\"command\":\"ls\"}"], &[Recovery::UnknownTool]);
    let text = PromptedOptions { unknown_tool: UnknownTool::Text, ..plain() };
    check_with(&text, &unknown, &[&format!("text {}", LS.replace("Bash", "Shell"))], &[]);
}

#[test]
fn p24_a_call_to_a_tool_that_was_not_offered_does_not_swallow_the_call_before_it() {
    let other = LS.replace("Bash", "Shell");
    let call_other = "call Shell {\"command\":\"ls\"}";
    let both = format!("§\n{LS}\n{other}");
    check(&both, &[CALL_LS, call_other], &[Recovery::UnknownTool]);
    check(&format!("{both}\n{LS}"), &[CALL_LS, call_other, CALL_LS], &[Recovery::UnknownTool]);
    let wrapped = format!("§\n<function_calls>\n{LS}\n{other}\n</function_calls>");
    let recoveries = [Recovery::ForeignSyntax, Recovery::UnknownTool, Recovery::ForeignSyntax];
    check(&wrapped, &[CALL_LS, call_other], &recoveries);
    let qwen = "<function=NAME>\n<parameter=command>\nls\n</parameter>\n</function>";
    let qwen = format!("§\n{}\n{}", qwen.replace("NAME", "Bash"), qwen.replace("NAME", "Shell"));
    let recoveries = [Recovery::ForeignSyntax, Recovery::UnknownTool, Recovery::ForeignSyntax];
    check(&qwen, &[CALL_LS, call_other], &recoveries);
    let text = PromptedOptions { unknown_tool: UnknownTool::Text, ..plain() };
    check_with(&text, &both, &[CALL_LS, &format!("text {other}")], &[]);
    // In a value, examples of calls to any tool belong to the value.
    for name in ["Bash", "Shell"] {
        let example = format!("{}\n{}", LS.replace("Bash", name), other);
        check_write(&format!("\n{example}\n</parameter>\n</invoke>"), &example, &[]);
        check_write(&format!("{example}</parameter>\n</invoke>"), &example, &[]);
    }
}

#[test]
fn p25_a_similar_parameter_name_is_corrected_if_unambiguous() {
    let text = write("x</parameter>\n</invoke>").replace("file_path", "filePath");
    check(&text, &[&written("x")], &[Recovery::ParameterRenamed]);
    let unknown = write("x</parameter>\n<parameter name=\"mode\">7</parameter>\n</invoke>");
    check(&unknown, &["call Write {\"file_path\":\"a\",\"content\":\"x\",\"mode\":7}"], &[]);
}

#[test]
fn p27_text_after_the_calls_is_dropped() {
    let tail = format!("§\n{LS}\n\nHere is the result:\n<tool_result>a b</tool_result>");
    let outcome = read(&tail, &plain(), &StopReason::EndTurn);
    assert_eq!(outcome.blocks, [CALL_LS]);
    assert_eq!(outcome.stop, StopReason::ToolUse);
    let fake = format!("§\n{LS}\n<tool_result>a b</tool_result>");
    assert_eq!(read(&fake, &plain(), &StopReason::MaxTokens).blocks, [CALL_LS]);
    let text = PromptedOptions { after_calls: AfterCalls::Text, ..plain() };
    check_with(&text, &format!("§\n{LS}\nand\n§\n{LS}"), &[CALL_LS, "text and", CALL_LS], &[]);
}

#[test]
fn p28_a_truncated_call_is_never_finished() {
    let cut = StopReason::MaxTokens;
    let open = "call Write {\"file_path\":\"a\",\"content\":\"x";
    check_cut(&write("x"), &StopReason::EndTurn, &[open], Truncation::InsideCall);
    check_cut(&write("x"), &cut, &[open], Truncation::InsideCall);
    // Cut after a possible closing tag, or a line of the value.
    let closed = format!("{open}</parameter>\\n</invoke>");
    check_cut(&write("x</parameter>\n</invoke>"), &cut, &[&closed], Truncation::InsideCall);
    check_cut("§\n<invoke name=\"Write\">\n", &cut, &[], Truncation::InsideCall);
    check_cut("§\n", &StopReason::EndTurn, &[], Truncation::BeforeCall);
    check_cut("§\n<tool_call>{\"name\":\"Bash\",\"argu", &StopReason::EndTurn, &[], Truncation::InsideCall);
    // Every parameter is set and closed, and the model stopped by itself.
    let whole = write("x</parameter>\n<parameter name=\"meta\">m</parameter>\n");
    let expect = "call Write {\"file_path\":\"a\",\"content\":\"x\",\"meta\":\"m\"}";
    check(&whole, &[expect], &[Recovery::MissingCallClose]);
    let closed = "call Write {\"file_path\":\"a\",\"content\":\"x\"";
    check_cut(&write("x</parameter>\n"), &StopReason::EndTurn, &[closed], Truncation::InsideCall);
    let incomplete = "§\n<invoke name=\"Write\">\n<parameter name=\"content\">x</parameter>\n";
    check_cut(incomplete, &StopReason::EndTurn, &["call Write {\"content\":\"x\""], Truncation::InsideCall);
}

#[test]
fn unexpected_text_between_parameters_leaves_the_call_unfinished() {
    let text = write("x</parameter>\n<parameter name=\"meta\">m</parameter>\nrubbish\n</invoke>");
    let open = "call Write {\"file_path\":\"a\",\"content\":\"x\",\"meta\":\"m</parameter>\\nrubbish";
    check_cut(&text, &StopReason::EndTurn, &[open], Truncation::Malformed);
    let text = "§\n<invoke name=\"Bash\">\nrubbish\n</invoke>";
    check(text, &["text <invoke name=\"Bash\">\nrubbish\n</invoke>"], &[]);
}

#[test]
fn p31_other_syntaxes_are_accepted_after_a_trigger() {
    let foreign = |text: &str| {
        check(&format!("§\n{text}"), &[CALL_LS], &[Recovery::ForeignSyntax]);
    };
    foreign(
        "<function_calls><function_call><tool>Bash</tool><args_json><![CDATA[{\"command\":\"ls\"}]]></args_json></function_call></function_calls>",
    );
    foreign(
        "<function_call>\n<tool>Bash</tool>\n<args_json>{\"command\":\"ls\"}</args_json>\n</function_call>",
    );
    foreign("<tool_call>\n{\"name\": \"Bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>");
    foreign("{\"name\":\"Bash\",\"arguments\":\"{\\\"command\\\":\\\"ls\\\"}\"}");
    foreign("<tool_call>\n<function=Bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>");
    foreign(
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"Bash\">\n<｜DSML｜parameter name=\"command\" string=\"true\">ls</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    );
    foreign("＜invoke name=\"Bash\"＞\n＜parameter name=\"command\"＞ls＜/parameter＞\n＜/invoke＞");
    check(
        "§\n[{\"name\":\"Bash\",\"arguments\":{\"command\":\"ls\"}},{\"name\":\"Ping\",\"arguments\":{}}]",
        &[CALL_LS, "call Ping {}"],
        &[Recovery::ForeignSyntax],
    ); // P15
    check(
        "§\n<invoke name=\"Bash\">\n<command>ls</command>\n</invoke>",
        &[CALL_LS],
        &[Recovery::NamedTag, Recovery::WrongClose],
    );
    check("§\n<invoke name=\"Ping\"/>", &["call Ping {}"], &[]);
    check("§\n<invoke name=\"Ping\">\n</invoke>", &["call Ping {}"], &[]);
    check(
        "§\n<invoke name=\"Patch\">\n<parameter name=\"input\">\n*** Begin \"x\"\n</parameter>\n</invoke>",
        &["custom Patch *** Begin \"x\""],
        &[],
    );
}

#[test]
fn the_clients_tool_choice_is_obeyed() {
    let choose = |choice: Choice, parallel: Option<Parallel>, text: &str| {
        let mut request = request();
        request.tool_choice.choice = Some(choice);
        request.tool_choice.parallel = parallel;
        read_prepared(&prepared(&request, &plain()), text, &StopReason::EndTurn).blocks
    };
    let two = format!("§\n{LS}\n{LS}");
    assert_eq!(choose(Choice::Auto, Some(Parallel::Forbidden), &two), [CALL_LS]);
    let bash = || Choice::Named("Bash".into(), CallKind::Function);
    assert_eq!(choose(bash(), None, &two), [CALL_LS, CALL_LS]);
    let other = "§\n<invoke name=\"Ping\">\n</invoke>";
    assert_eq!(choose(bash(), None, other), ["text <invoke name=\"Ping\">\n</invoke>"]);
    let mut none = request();
    none.tool_choice.choice = Some(Choice::None);
    let prepared = prepared(&none, &plain());
    assert_eq!(prepared.plan.trigger(), None);
    assert_eq!(prepared.request.system, []);
    let outcome = read_prepared(&prepared, LS, &StopReason::EndTurn);
    assert_eq!(outcome.blocks, [format!("text {LS}")]);
}
