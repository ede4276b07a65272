//! Decides which differences between an original and its translation the reported losses explain. A loss explains
//! only differences at its own place.

use serde_json::Value;
use toolgate_model::Losses;

use crate::essence::{Content, Speaker, Statement, joined, parsed};

/// The first difference that no loss explains.
pub fn unexplained(before: &[Statement], after: &[Statement], losses: &Losses) -> Option<String> {
    let reported = Reported(losses.iter().map(|loss| loss.place.as_str()).collect());
    let after: Vec<Statement> =
        after.iter().filter(|statement| !is_default(statement, before)).cloned().collect();
    let is_there = |content: &Content| after.iter().any(|statement| statement.content == *content);
    let (expected, lost) = reported.partition(before, is_there);
    let (arrived, kept) = reported.partition(&after, |_| true);
    if let Some(invented) = kept.iter().find(|statement| !occurs_in(statement, &lost)) {
        return Some(format!("{invented:.120?} is reported as lost, but the original does not contain it"));
    }
    if expected == arrived {
        return None;
    }
    let at = expected.iter().zip(&arrived).position(|(expected, arrived)| expected != arrived);
    let at = at.unwrap_or(expected.len().min(arrived.len()));
    Some(format!(
        "{:.120?} became {:.120?}; no loss explains it: {:?}",
        expected.get(at),
        arrived.get(at),
        reported.0
    ))
}

/// True for what a dialect adds where the original says nothing: an estimate of the tokens.
fn is_default(statement: &Statement, before: &[Statement]) -> bool {
    let is_usage = |statement: &Statement| statement.speaker == Speaker::Usage;
    is_usage(statement) && !before.iter().any(is_usage)
}

/// The places of the losses.
struct Reported<'a>(Vec<&'a str>);

impl Reported<'_> {
    /// Splits statements into those that must arrive and those that may be missing. A document that arrives was not
    /// rewritten.
    fn partition(
        &self,
        statements: &[Statement],
        arrives: impl Fn(&Content) -> bool,
    ) -> (Vec<Statement>, Vec<Statement>) {
        let (mut required, mut optional) = (Vec::new(), Vec::new());
        for statement in statements {
            let is_document = matches!(&statement.content, Content::NonText(kind, _) if kind == "document");
            if self.explains(statement) {
                optional.push(statement.clone());
            } else if is_document && arrives(&statement.content) {
                required.push(self.moved(statement));
            } else {
                required.extend(self.rephrased(statement));
            }
        }
        if self.ends_with("order") {
            // Reorders what the model says within one turn; the turns keep their order.
            for run in required.chunk_by_mut(|one, next| rank(one).is_some() == rank(next).is_some()) {
                run.sort_by_key(rank);
            }
        }
        if self.at(MOVED) {
            let is_given =
                |statement: &Statement| [Speaker::ToolResult, Speaker::User].contains(&statement.speaker);
            for run in required.chunk_by_mut(|one, next| is_given(one) == is_given(next)) {
                run.sort_by_key(|statement| statement.speaker == Speaker::User);
            }
        }
        (joined(required), optional)
    }

    /// A loss at exactly this place.
    fn at(&self, place: &str) -> bool {
        self.0.contains(&place)
    }

    /// A loss whose place ends with this field: `reasoning` matches `messages[].reasoning` and `reasoning`.
    fn ends_with(&self, name: &str) -> bool {
        self.0.iter().any(|place| {
            place.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with(['.', ']']))
        })
    }

    /// A loss of a block, item or tool of this kind.
    fn of_kind(&self, kind: &str) -> bool {
        let tag = format!("[{kind}]");
        self.ends_with(kind) || self.0.iter().any(|place| place.ends_with(&tag))
    }

    /// A loss of what the model thought. The place `reasoning` itself is the setting.
    fn of_earlier_reasoning(&self) -> bool {
        self.ends_with("thinking") || self.0.iter().any(|place| place.ends_with(".reasoning"))
    }

    /// True if the statement may be missing.
    fn explains(&self, Statement { speaker, content }: &Statement) -> bool {
        match (speaker, content) {
            (Speaker::Reasoning, Content::Text(_)) => self.of_earlier_reasoning(),
            (Speaker::ToolResult, Content::NonText(kind, _)) if kind == "error" => self.ends_with("is_error"),
            (Speaker::ToolResult | Speaker::User, Content::NonText(kind, _)) if is_attachment(kind) => {
                let lost_image = kind == "image.detail" && self.of_kind("image");
                (lost_image || self.of_kind(kind)) && !self.ends_with(".document")
            }
            (
                Speaker::System
                | Speaker::User
                | Speaker::ToolResult
                | Speaker::Assistant
                | Speaker::OfferedTool,
                Content::NonText(kind, _),
            ) => self.of_kind(kind),
            (Speaker::Reasoning, Content::NonText(..)) => {
                self.ends_with("seal") || self.of_earlier_reasoning()
            }
            // What a loss makes of these is a rule of `adaptation`.
            (Speaker::Setting, Content::NonText(name, _)) if ADAPTED.contains(&name.as_str()) => false,
            (Speaker::Setting, Content::NonText(name, _)) => {
                self.at(name) || self.at(&format!("tool_choice[{name}]"))
            }
            (Speaker::StopReason, Content::NonText(..)) => self.at("stop_reason"),
            (Speaker::ToolCall | Speaker::Refusal | Speaker::Usage, Content::NonText(..))
            | (_, Content::Text(_)) => false,
        }
    }

    /// Attachments of results move to a user message for hosts that accept only text from tools.
    fn moved(&self, statement: &Statement) -> Statement {
        let is_moved = statement.speaker == Speaker::ToolResult && self.at(MOVED);
        let speaker = if is_moved { Speaker::User } else { statement.speaker };
        Statement { speaker, content: statement.content.clone() }
    }

    /// The statement as a loss says it was rewritten. Applied to both sides before they are compared.
    fn rephrased(&self, statement: &Statement) -> Option<Statement> {
        let Statement { speaker, content } = statement;
        match (speaker, content) {
            (Speaker::Refusal, Content::Text(text)) if self.at("refusal") => {
                Some(Statement { speaker: Speaker::Assistant, content: Content::Text(text.clone()) })
            }
            (Speaker::ToolResult, Content::NonText(kind, _)) if is_attachment(kind) && self.at(MOVED) => {
                self.rephrased(&self.moved(statement))
            }
            (Speaker::System, Content::Text(text)) if self.at("messages[].system") => {
                Some(Statement { speaker: Speaker::User, content: Content::Text(text.clone()) })
            }
            (_, Content::NonText(kind, url)) if kind == "document" && self.ends_with(".document") => {
                let words =
                    if url.starts_with("http") { format!(":{url}") } else { "notavailable".to_owned() };
                Some(Statement { speaker: *speaker, content: Content::Text(format!("[document{words}]")) })
            }
            (Speaker::ToolResult, Content::Text(text)) => {
                let text =
                    if self.ends_with("is_error") { text.replace(ERROR_MARK, "") } else { text.clone() };
                let text = if self.at(MOVED) { without_notes(text) } else { text };
                (!text.is_empty()).then_some(Statement { speaker: *speaker, content: Content::Text(text) })
            }
            (Speaker::User, Content::Text(text)) if self.at(MOVED) && text.starts_with(ATTACHED) => None,
            (Speaker::ToolCall, Content::NonText(name, detail)) if self.ends_with("tool_use.input") => {
                let content = Content::NonText(name.clone(), without_raw(detail));
                Some(Statement { speaker: *speaker, content })
            }
            (_, Content::Text(_) | Content::NonText(..)) => Some(statement.clone()),
        }
    }
}

/// The order of the model's statements in a dialect that does not keep their order.
fn rank(statement: &Statement) -> Option<u8> {
    match statement.speaker {
        // Seals follow the rest of their message.
        Speaker::Reasoning if matches!(statement.content, Content::NonText(..)) => Some(4),
        Speaker::Reasoning => Some(0),
        Speaker::Assistant => Some(1),
        Speaker::Refusal => Some(2),
        Speaker::ToolCall => Some(3),
        Speaker::System
        | Speaker::User
        | Speaker::ToolResult
        | Speaker::OfferedTool
        | Speaker::Setting
        | Speaker::StopReason
        | Speaker::Usage => None,
    }
}

/// The prefix of a failed tool's result in dialects without an error flag.
const ERROR_MARK: &str = "[error]";
/// The loss place for attachments that moved from a result to a user message.
const MOVED: &str = "messages[].tool_result";
/// The start of that user message, without white space.
const ATTACHED: &str = "Attachedtotheresultoftoolcall";

/// Settings that a loss may change, but never excuse.
const ADAPTED: [&str; 3] = ["max_tokens", "reasoning", "response_format"];

fn is_attachment(kind: &str) -> bool {
    ["image", "image.detail", "document", "audio"].contains(&kind)
}

/// The arguments of a call as they were before they were wrapped in an object.
fn without_raw(detail: &str) -> String {
    let wrapped = detail.strip_prefix("arguments ").and_then(|json| serde_json::from_str::<Value>(json).ok());
    let raw = wrapped.as_ref().and_then(|wrapped| wrapped.get("_raw")).and_then(Value::as_str);
    raw.map_or_else(|| detail.to_owned(), |raw| format!("arguments {}", parsed(raw)))
}

fn without_notes(text: String) -> String {
    ["image", "document", "audio", "attachment"]
        .iter()
        .fold(text, |text, what| text.replace(&format!("[{what}:seethenextusermessage]"), ""))
}

/// True if the statement, or all of its text, occurs in the original. A loss never adds content.
fn occurs_in(statement: &Statement, before: &[Statement]) -> bool {
    match &statement.content {
        Content::NonText(..) => before.contains(statement),
        Content::Text(text) => {
            let mut earlier =
                before.iter().filter(|earlier| earlier.speaker == statement.speaker).flat_map(|earlier| {
                    match &earlier.content {
                        Content::Text(text) => text.chars(),
                        Content::NonText(..) => "".chars(),
                    }
                });
            text.chars().all(|wanted| earlier.any(|character| character == wanted))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(speaker: Speaker, text: &str) -> Statement {
        Statement { speaker, content: Content::Text(text.to_owned()) }
    }

    fn non_text(speaker: Speaker, kind: &str) -> Statement {
        Statement { speaker, content: Content::NonText(kind.to_owned(), String::new()) }
    }

    fn check(before: &[Statement], after: &[Statement], places: &[&str], explained: bool) {
        let mut losses = Losses::default();
        for place in places {
            losses.add(*place, "test");
        }
        let found = unexplained(before, after, &losses);
        assert_eq!(found.is_none(), explained, "{before:?} → {after:?} with {places:?}: {found:?}");
    }

    #[test]
    fn a_loss_explains_only_its_own_place() {
        let statements = [
            text(Speaker::Reasoning, "hm"),
            non_text(Speaker::Assistant, "web_search_call"),
            text(Speaker::Assistant, "a"),
        ];
        check(&statements, &statements, &[], true);
        check(&statements, &statements[1..], &["messages[].reasoning"], true);
        check(&statements, &statements[1..], &["messages[].reasoning.seal"], false);
        check(&statements, &statements[1..], &["top_k", "output[web_search_call]"], false);
        check(&statements, &statements[2..], &["messages[].reasoning", "output[web_search_call]"], true);
        check(&statements, &statements[2..], &["reasoning", "output[web_search_call]"], false);
        check(&statements, &statements[..2], &["messages[].reasoning", "output[web_search_call]"], false);
        check(
            &statements,
            &[text(Speaker::Reasoning, "else"), statements[1].clone(), statements[2].clone()],
            &["thinking"],
            false,
        );
        check(&[non_text(Speaker::Setting, "seed")], &[], &["seed"], true);
        check(&[non_text(Speaker::Setting, "seed")], &[], &["temperature"], false);
        check(&[non_text(Speaker::StopReason, "stop")], &[], &["stop"], false);
    }

    #[test]
    fn a_loss_excuses_no_other_value() {
        let setting = |name: &str, detail: &str| Statement {
            speaker: Speaker::Setting,
            content: Content::NonText(name.to_owned(), detail.to_owned()),
        };
        check(&[setting("stop", "a"), setting("stop", "b")], &[setting("stop", "a")], &["stop"], true);
        check(&[setting("stop", "a")], &[setting("stop", "b")], &["stop"], false);
        check(&[setting("tool_choice", "a")], &[setting("tool_choice", "b")], &["tool_choice"], false);
        check(&[setting("max_tokens", "9")], &[setting("max_tokens", "8")], &["max_tokens"], false);
        check(&[setting("reasoning", "effort low")], &[], &["reasoning"], false);
        let offered = |detail: &str| Statement {
            speaker: Speaker::OfferedTool,
            content: Content::NonText("f".to_owned(), detail.to_owned()),
        };
        let tool = [offered("function reads"), offered("schema {}"), offered("strict")];
        check(&tool, &[], &["tools[f]"], true);
        check(&tool, &[offered("function reads"), offered("schema []")], &["tools[f].strict"], false);
        let call = |arguments: &str| Statement {
            speaker: Speaker::ToolCall,
            content: Content::NonText("f".to_owned(), format!("arguments {arguments}")),
        };
        let raw = [call(r#"{"_raw":"[1]"}"#), call(r#"{"a":1}"#)];
        check(&[call("[1]"), call(r#"{"a":1}"#)], &raw, &["tool_use.input"], true);
        check(&[call("[1]"), call(r#"{"a":2}"#)], &raw, &["tool_use.input"], false);
        check(&[call("[2]"), call(r#"{"a":1}"#)], &raw, &["tool_use.input"], false);
    }

    #[test]
    fn a_lost_document_excuses_no_other_one() {
        let document = |data: &str| Statement {
            speaker: Speaker::User,
            content: Content::NonText("document".to_owned(), data.to_owned()),
        };
        let (lost, kept) = (document("https://a"), document("application/pdf b"));
        let words = text(Speaker::User, "[document:https://a]");
        let place = "messages[].document";
        check(&[lost.clone(), kept.clone()], &[words.clone(), kept.clone()], &[place], true);
        check(&[lost, kept], &[words, document("application/pdf c")], &[place], false);
    }

    #[test]
    fn texts_join_where_a_block_between_them_was_lost() {
        let statements =
            [text(Speaker::Assistant, "a"), non_text(Speaker::Assistant, "x"), text(Speaker::Assistant, "b")];
        check(&statements, &[text(Speaker::Assistant, "ab")], &["content[x]"], true);
        check(&statements, &[text(Speaker::Assistant, "ab")], &["content[y]"], false);
        check(&statements, &[text(Speaker::Assistant, "a")], &["content[x]"], false);
    }

    #[test]
    fn a_changed_order_must_be_reported() {
        let statements =
            [text(Speaker::Assistant, "a"), non_text(Speaker::ToolCall, "f"), text(Speaker::Assistant, "b")];
        let sorted = [text(Speaker::Assistant, "ab"), non_text(Speaker::ToolCall, "f")];
        check(&statements, &sorted, &["message.order"], true);
        check(&statements, &sorted, &[], false);
        check(&statements, &sorted[..1], &["message.order"], false);
    }

    #[test]
    fn rewritten_content_must_be_reported() {
        let refusal = [text(Speaker::Refusal, "no")];
        check(&refusal, &[text(Speaker::Assistant, "no")], &["refusal"], true);
        check(&refusal, &[text(Speaker::Assistant, "no")], &["stop"], false);
        let failed = [non_text(Speaker::ToolResult, "error"), text(Speaker::ToolResult, "gone")];
        check(
            &failed,
            &[text(Speaker::ToolResult, "[error]gone")],
            &["messages[].tool_result.is_error"],
            true,
        );
        check(&failed, &[text(Speaker::ToolResult, "gone")], &[], false);
        let picture = [text(Speaker::ToolResult, "see"), non_text(Speaker::ToolResult, "image")];
        let moved = [
            text(Speaker::ToolResult, "see[image:seethenextusermessage]"),
            text(Speaker::User, "Attachedtotheresultoftoolcallx:"),
            non_text(Speaker::User, "image"),
        ];
        check(&picture, &moved, &[MOVED], true);
        check(&picture, &moved, &[], false);
    }
}
