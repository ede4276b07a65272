//! Strict mode: a call that does not follow the format exactly is forwarded as text.

use super::*;
use crate::options::Strictness;

fn check(text: &str, blocks: &[&str]) {
    let options =
        PromptedOptions { strictness: Strictness::Strict, continuations: 0, ..PromptedOptions::default() };
    let outcome = read(text, &options, &StopReason::EndTurn);
    assert_eq!(outcome.blocks, blocks, "{text}");
    assert_eq!(outcome.recoveries, [], "{text}");
}

const LS: &str = "<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\n</invoke>";

#[test]
fn exact_calls_run() {
    let bash = "call Bash {\"command\":\"ls\"}";
    check(&format!("Hm.\n§\n{LS}"), &["text Hm.", bash]);
    check(&format!("§\n{LS}\n{LS}\n"), &[bash, bash]);
}

#[test]
fn every_heuristic_is_off() {
    for text in [
        format!("§\n{}", LS.replace("Bash", "bash")),
        format!("§\n{}", LS.replace("\"command\"", "\"Command\"")),
        format!("§\n{}", LS.replace("</parameter>\n", "\n")),
        format!("§\n{}", LS.replace("</parameter>", "</command>")),
        format!("§\n{}", LS.replace("</parameter>", "</parameter></parameter>")),
        format!("§\n<function_calls>\n{LS}\n</function_calls>"),
        "§\n<tool_call>{\"name\":\"Bash\",\"arguments\":{\"command\":\"ls\"}}</tool_call>".to_owned(),
        "§\n<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\n<parameter name=\"timeout\">5.0</parameter>\n</invoke>".to_owned(),
        "§\n<invoke name=\"Bash\">\n<parameter name=\"command\">ls</parameter>\n<parameter name=\"timeout\">x</parameter>\n</invoke>".to_owned(),
        format!("§\n{LS}\nDone."),
        "§\n<invoke name=\"Bash\">\n<parameter name=\"command\">ls".to_owned(),
    ] {
        check(&text, &[&format!("text {}", text.replace("§\n", ""))]);
    }
    for text in [format!("§\nI call.\n{LS}"), format!("```\n§\n{LS}\n```")] {
        check(&text, &[&format!("text {text}")]);
    }
    let thought = format!("<think>§\n{LS}");
    check(&thought, &[&format!("think §\n{LS}")]);
}
