//! Decides which differences between an original and its translation the reported losses explain. A loss explains
//! only differences at its own place.

use toolgate_model::Losses;

use crate::essence::{Content, Speaker, Statement, joined};

/// The first difference that no loss explains.
pub fn unexplained(before: &[Statement], after: &[Statement], losses: &Losses) -> Option<String> {
    let reported = Reported(losses.iter().map(|loss| loss.place.as_str()).collect());
    let after: Vec<Statement> =
        after.iter().filter(|statement| !is_default(statement, before)).cloned().collect();
    let (expected, lost) = reported.partition(before);
    let (arrived, kept) = reported.partition(&after);
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

/// True for what a dialect adds where the original says nothing: an estimate of the tokens, and the output limit that
/// the Messages API requires.
fn is_default(statement: &Statement, before: &[Statement]) -> bool {
    let is_limit = |statement: &Statement| matches!(&statement.content, Content::NonText(name, _) if name == "max_tokens");
    let is_usage = |statement: &Statement| statement.speaker == Speaker::Usage;
    let is_new = |of_kind: &dyn Fn(&Statement) -> bool| of_kind(statement) && !before.iter().any(of_kind);
    is_new(&is_limit) || is_new(&is_usage)
}

/// The places of the losses.
struct Reported<'a>(Vec<&'a str>);

impl Reported<'_> {
    /// Splits statements into those that must arrive and those that may be missing.
    fn partition(&self, statements: &[Statement]) -> (Vec<Statement>, Vec<Statement>) {
        let (mut required, mut optional) = (Vec::new(), Vec::new());
        for statement in statements {
            if self.explains(statement) {
                optional.push(statement.clone());
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

    /// A loss inside the schema of this tool.
    fn of_schema(&self, tool: &str) -> bool {
        let place = format!("tools[{tool}].");
        self.0.iter().any(|reported| reported.starts_with(&place))
    }

    /// True if the statement may be missing.
    fn explains(&self, Statement { speaker, content }: &Statement) -> bool {
        match (speaker, content) {
            (Speaker::Reasoning, Content::Text(_)) => {
                self.ends_with("reasoning") || self.ends_with("thinking")
            }
            (Speaker::ToolResult, Content::NonText(kind, _)) if kind == "error" => self.ends_with("is_error"),
            (Speaker::ToolResult | Speaker::User, Content::NonText(kind, _)) if is_attachment(kind) => {
                self.of_kind(kind) && !self.ends_with(".document")
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
                ["seal", "reasoning", "thinking"].iter().any(|name| self.ends_with(name))
            }
            (Speaker::Setting, Content::NonText(name, _)) if name == "reasoning" => {
                ["reasoning", "thinking", "reasoning_effort", "effort"]
                    .iter()
                    .any(|name| self.ends_with(name))
            }
            (Speaker::Setting, Content::NonText(name, _)) if name == "max_tokens" => {
                self.at("max_tokens") || self.at("max_output_tokens")
            }
            (Speaker::Setting, Content::NonText(name, _)) => {
                self.at(name) || self.at(&format!("tool_choice[{name}]"))
            }
            (Speaker::StopReason, Content::NonText(..)) => self.at("stop_reason"),
            (Speaker::ToolCall | Speaker::Refusal | Speaker::Usage, Content::NonText(..))
            | (_, Content::Text(_)) => false,
        }
    }

    /// The statement without text that a loss says was added.
    fn without_additions(&self, statement: &Statement) -> Option<Statement> {
        let Content::Text(text) = &statement.content else { return Some(statement.clone()) };
        let text = if statement.speaker == Speaker::User && self.at("messages[0]") {
            text.strip_prefix(FIRST_TURN).unwrap_or(text).to_owned()
        } else if statement.speaker == Speaker::System && self.at("response_format") {
            text.replacen(JSON_ONLY, "", 1)
        } else {
            text.clone()
        };
        let is_left = !text.is_empty();
        is_left.then_some(Statement { speaker: statement.speaker, content: Content::Text(text) })
    }

    /// The statement as a loss says it was rewritten. Applied to both sides before they are compared.
    fn rephrased(&self, statement: &Statement) -> Option<Statement> {
        let statement = &self.without_additions(statement)?;
        let Statement { speaker, content } = statement;
        match (speaker, content) {
            (Speaker::Refusal, Content::Text(text)) if self.at("refusal") => {
                Some(Statement { speaker: Speaker::Assistant, content: Content::Text(text.clone()) })
            }
            // Attachments of results move to a user message for hosts that accept only text from tools.
            (Speaker::ToolResult, Content::NonText(kind, _)) if is_attachment(kind) && self.at(MOVED) => {
                self.rephrased(&Statement { speaker: Speaker::User, content: content.clone() })
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
            // A schema that the host would refuse.
            (Speaker::OfferedTool, Content::NonText(name, _)) if self.of_schema(name) => {
                Some(Statement { speaker: *speaker, content: Content::NonText(name.clone(), String::new()) })
            }
            // Arguments that are not a JSON object are wrapped in one.
            (Speaker::ToolCall, Content::NonText(name, _)) if self.ends_with("tool_use.input") => {
                Some(Statement { speaker: *speaker, content: Content::NonText(name.clone(), String::new()) })
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

/// What a conversation starts with that began with an assistant turn, without white space.
const FIRST_TURN: &str = "Continue.";
/// What replaces the JSON mode of a host that has none, without white space.
const JSON_ONLY: &str = "ReplywithoneJSONobjectandnothingelse.";

fn is_attachment(kind: &str) -> bool {
    ["image", "document", "audio"].contains(&kind)
}

fn without_notes(text: String) -> String {
    ["image", "document", "audio", "attachment"]
        .iter()
        .fold(text, |text, what| text.replace(&format!("[{what}:seethenextusermessage]"), ""))
}

/// True if the statement, or all of its text, occurs in the original. A loss never adds content.
fn occurs_in(statement: &Statement, before: &[Statement]) -> bool {
    match &statement.content {
        Content::NonText(kind, _) => before.iter().any(
            |earlier| matches!(&earlier.content, Content::NonText(earlier_kind, _) if earlier_kind == kind),
        ),
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
        check(&statements, &statements[2..], &["reasoning", "output[web_search_call]"], true);
        check(&statements, &statements[..2], &["reasoning", "output[web_search_call]"], false);
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
