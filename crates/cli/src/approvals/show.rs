//! A question as text, in full. What a person approves is never shortened, and every character of it is visible.

use std::io::{self, Write};

use serde_json::Value;

use crate::visible_text::{has_deceptive, visible};

/// Prints a question as of `now`.
pub(super) fn question(question: &Value, now: i64, out: &mut dyn Write) -> io::Result<()> {
    let field = |name: &str| question[name].as_str().map(visible);
    let mut head = vec![field("tool").unwrap_or_default()];
    head.extend(field("agent"));
    head.extend(field("sub_agent").map(|agent| format!("sub-agent {agent}")));
    head.extend(field("session").map(|session| format!("session {session}")));
    head.extend(age(question, now));
    writeln!(out, "{}", head.join(" · "))?;
    for (label, name) in [
        ("", "title"),
        ("", "description"),
        ("why: ", "why"),
        ("the agent's reason: ", "reason"),
        ("path: ", "blocked_path"),
        ("folder: ", "folder"),
    ] {
        if let Some(text) = field(name) {
            block(&format!("  {label}"), &text, out)?;
        }
    }
    input(question, out)?;
    if deceptive_inside(&question["input"]) {
        writeln!(out, "  note: the input contains invisible or control characters, shown as ‹U+…›")?;
    }
    writeln!(out, "  id {}", field("id").unwrap_or_default())?;
    if question["resolution"].is_object() {
        writeln!(out, "  {}", resolution(&question["resolution"]))?;
    }
    Ok(())
}

fn input(question: &Value, out: &mut dyn Write) -> io::Result<()> {
    let input = &question["input"];
    let Some(fields) = input.as_object() else { return block("  ", &visible(&input.to_string()), out) };
    for (name, value) in fields {
        let name = visible(name);
        match value.as_str() {
            Some(command) if name == "command" => block("  $ ", &visible(command), out)?,
            Some(text) if text.contains('\n') => {
                writeln!(out, "  {name}:")?;
                block("  | ", &visible(text), out)?;
            }
            Some(text) => writeln!(out, "  {name}: {}", visible(text))?,
            None => writeln!(out, "  {name}: {}", visible(&value.to_string()))?,
        }
    }
    Ok(())
}

/// Prints a text after a prefix; further lines are indented by its width.
fn block(prefix: &str, text: &str, out: &mut dyn Write) -> io::Result<()> {
    let repeats = prefix.ends_with("| ");
    let indent = " ".repeat(prefix.chars().count());
    for (index, line) in text.split('\n').enumerate() {
        let start = if index == 0 || repeats { prefix } else { &indent };
        writeln!(out, "{start}{line}")?;
    }
    Ok(())
}

fn deceptive_inside(value: &Value) -> bool {
    match value {
        Value::String(text) => has_deceptive(text),
        Value::Array(items) => items.iter().any(deceptive_inside),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| has_deceptive(name) || deceptive_inside(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn age(question: &Value, now: i64) -> Option<String> {
    let asked = question["asked_at"].as_i64()?;
    let deadline = question["deadline"].as_i64();
    let expires = deadline.map(|deadline| format!(", expires in {}", duration(deadline - now)));
    Some(format!("asked {} ago{}", duration(now - asked), expires.unwrap_or_default()))
}

fn duration(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1_000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// What became of a question, in one line.
pub(super) fn resolution(resolution: &Value) -> String {
    let field = |name: &str| resolution[name].as_str().map(visible);
    let outcome = match (resolution["outcome"].as_str(), resolution["decision"].as_str()) {
        (Some("decided"), Some("allow")) => "allowed".to_owned(),
        (Some("decided"), Some("deny")) => "denied".to_owned(),
        (Some("decided"), Some("answer")) => "answered instead".to_owned(),
        (Some("timed_out"), _) => return "timed out: nobody answered".to_owned(),
        (outcome, _) => visible(outcome.unwrap_or("ended")),
    };
    let by = field("by").map(|by| format!(" by {by}")).unwrap_or_default();
    let said = field("message").or_else(|| field("text")).filter(|said| !said.is_empty());
    format!("{outcome}{by}{}", said.map(|said| format!(": {said}")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_is_shown_in_full() {
        let command = format!("echo {}\nrm \u{202e}x", "long ".repeat(500));
        let asked = json!({
            "id": "q1", "tool": "Bash", "agent": "claude", "session": "s", "asked_at": 1_000, "deadline": 601_000,
            "why": "the rule `ask *`", "folder": "/w", "resolution": null,
            "input": { "command": command, "timeout": 5, "note": "a\nb" },
        });
        let mut out = Vec::new();
        question(&asked, 13_000, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            format!(
                "Bash · claude · session s · asked 12 s ago, expires in 9 min 48 s\n\
                 \x20 why: the rule `ask *`\n\
                 \x20 folder: /w\n\
                 \x20 $ echo {}\n\
                 \x20   rm ‹U+202E›x\n\
                 \x20 timeout: 5\n\
                 \x20 note:\n\
                 \x20 | a\n\
                 \x20 | b\n\
                 \x20 note: the input contains invisible or control characters, shown as ‹U+…›\n\
                 \x20 id q1\n",
                "long ".repeat(500)
            )
        );
    }

    #[test]
    fn an_outcome_is_one_line() {
        for (ended, expected) in [
            (json!({ "outcome": "timed_out", "by": "timeout" }), "timed out: nobody answered"),
            (json!({ "outcome": "withdrawn", "by": "agent" }), "withdrawn by agent"),
            (json!({ "outcome": "decided", "decision": "allow", "by": "api" }), "allowed by api"),
            (
                json!({ "outcome": "decided", "decision": "deny", "message": "not\u{7} now", "by": "api" }),
                "denied by api: not‹U+0007› now",
            ),
        ] {
            assert_eq!(resolution(&ended), expected);
        }
    }
}
