//! Which differences between what was said and what arrived the reported losses explain: each loss speaks for what
//! stood at its place and for nothing else.

use toolgate_model::Losses;

use super::essence::{Said, What, Who, joined};

/// The first difference that no loss speaks for.
pub fn unexplained(before: &[Said], after: &[Said], losses: &Losses) -> Option<String> {
    let reported = Reported(losses.iter().map(|loss| loss.place.as_str()).collect());
    // Where the host counted no tokens a dialect may put its estimate.
    let counted = before.iter().any(|said| said.who == Who::Tokens);
    let after: Vec<Said> = after.iter().filter(|said| counted || said.who != Who::Tokens).cloned().collect();
    let (told, gone) = reported.tell(before);
    let (arrived, kept) = reported.tell(&after);
    if let Some(made_up) = kept.iter().find(|said| !stood_before(said, &gone)) {
        return Some(format!("{made_up:.120?} is reported as lost and was never said"));
    }
    if told == arrived {
        return None;
    }
    let at = told.iter().zip(&arrived).position(|(told, arrived)| told != arrived);
    let at = at.unwrap_or(told.len().min(arrived.len()));
    Some(format!(
        "{:.120?} became {:.120?}; no loss speaks of it: {:?}",
        told.get(at),
        arrived.get(at),
        reported.0
    ))
}

/// The places of the losses.
struct Reported<'a>(Vec<&'a str>);

impl Reported<'_> {
    /// What must arrive, and what may be missing.
    fn tell(&self, said: &[Said]) -> (Vec<Said>, Vec<Said>) {
        let (mut must, mut may) = (Vec::new(), Vec::new());
        for said in said {
            if self.speaks_for(said) {
                may.push(said.clone());
            } else {
                must.extend(self.in_other_words(said));
            }
        }
        if self.ends("order") {
            // Within what the model says; the turns of a conversation stay where they are.
            for said in must.chunk_by_mut(|one, next| by_model(one).is_some() == by_model(next).is_some()) {
                said.sort_by_key(by_model);
            }
        }
        (joined(must), may)
    }

    fn at(&self, place: &str) -> bool {
        self.0.contains(&place)
    }

    /// A place that ends so, as `reasoning` in `messages[].reasoning` and in `reasoning` itself.
    fn ends(&self, name: &str) -> bool {
        self.0.iter().any(|place| {
            place.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with(['.', ']']))
        })
    }

    /// A block, item or tool of this kind.
    fn of_kind(&self, kind: &str) -> bool {
        let tag = format!("[{kind}]");
        self.ends(kind) || self.0.iter().any(|place| place.ends_with(&tag))
    }

    fn speaks_for(&self, Said { who, what }: &Said) -> bool {
        match (who, what) {
            (Who::Thought, What::Text(_)) => self.ends("reasoning") || self.ends("thinking"),
            (Who::Result, What::Thing(kind, _)) if kind == "error" => self.ends("is_error"),
            // Attachments of results move to the user, where a host takes only text from tools.
            (Who::Result | Who::User, What::Thing(kind, _)) if is_attachment(kind) => {
                self.of_kind(kind) && !self.ends(".document") || self.at(MOVED)
            }
            (Who::System | Who::User | Who::Result | Who::Assistant | Who::Tool, What::Thing(kind, _)) => {
                self.of_kind(kind)
            }
            (Who::Wish, What::Thing(name, _)) => {
                self.at(name) || self.ends("tool_choice") && self.of_kind(name)
            }
            (Who::Stop, What::Thing(..)) => self.at("stop_reason"),
            (Who::Call | Who::Refusal | Who::Thought | Who::Tokens, What::Thing(..)) | (_, What::Text(_)) => {
                false
            }
        }
    }

    /// The words a loss says were used instead. Both sides are put in them, so that they can be compared.
    fn in_other_words(&self, said: &Said) -> Option<Said> {
        let Said { who, what } = said;
        match (who, what) {
            (Who::Refusal, What::Text(text)) if self.at("refusal") => {
                Some(Said { who: Who::Assistant, what: What::Text(text.clone()) })
            }
            (Who::System, What::Text(text)) if self.at("messages[].system") => {
                Some(Said { who: Who::User, what: What::Text(text.clone()) })
            }
            (_, What::Thing(kind, url)) if kind == "document" && self.ends(".document") => {
                let words = if url.is_empty() { "notavailable" } else { url };
                let colon = if url.is_empty() { "" } else { ":" };
                Some(Said { who: *who, what: What::Text(format!("[document{colon}{words}]")) })
            }
            (Who::Result, What::Text(text)) => {
                let text = if self.ends("is_error") { text.replace(ERROR_MARK, "") } else { text.clone() };
                let text = if self.at(MOVED) { without_notes(text) } else { text };
                (!text.is_empty()).then_some(Said { who: *who, what: What::Text(text) })
            }
            (Who::User, What::Text(text)) if self.at(MOVED) && text.starts_with(ATTACHED) => None,
            // Arguments that are no JSON object are wrapped.
            (Who::Call, What::Thing(name, _)) if self.ends("tool_use.input") => {
                Some(Said { who: *who, what: What::Thing(name.clone(), String::new()) })
            }
            (_, What::Text(_) | What::Thing(..)) => Some(said.clone()),
        }
    }
}

/// What the model says, in the order in which a dialect that keeps none tells it.
fn by_model(said: &Said) -> Option<u8> {
    match said.who {
        Who::Thought => Some(0),
        Who::Assistant | Who::Refusal => Some(1),
        Who::Call => Some(2),
        Who::System | Who::User | Who::Result | Who::Tool | Who::Wish | Who::Stop | Who::Tokens => None,
    }
}

/// What a failed tool's result begins with where no flag can say it.
const ERROR_MARK: &str = "[error]";
/// The place of attachments that were moved behind a result.
const MOVED: &str = "messages[].tool_result";
/// What the message that brings them begins with.
const ATTACHED: &str = "Attachedtotheresultoftoolcall";

fn is_attachment(kind: &str) -> bool {
    ["image", "document", "audio"].contains(&kind)
}

fn without_notes(text: String) -> String {
    ["image", "document", "audio", "attachment"]
        .iter()
        .fold(text, |text, what| text.replace(&format!("[{what}:seethenextusermessage]"), ""))
}

/// What arrives of something that may be lost is something of it, never something new.
fn stood_before(said: &Said, before: &[Said]) -> bool {
    match &said.what {
        What::Thing(kind, _) => before
            .iter()
            .any(|earlier| matches!(&earlier.what, What::Thing(earlier_kind, _) if earlier_kind == kind)),
        What::Text(text) => {
            let mut earlier = before.iter().filter(|earlier| earlier.who == said.who).flat_map(|earlier| {
                match &earlier.what {
                    What::Text(text) => text.chars(),
                    What::Thing(..) => "".chars(),
                }
            });
            text.chars().all(|wanted| earlier.any(|letter| letter == wanted))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(who: Who, text: &str) -> Said {
        Said { who, what: What::Text(text.to_owned()) }
    }

    fn thing(who: Who, kind: &str) -> Said {
        Said { who, what: What::Thing(kind.to_owned(), String::new()) }
    }

    fn check(before: &[Said], after: &[Said], places: &[&str], explained: bool) {
        let mut losses = Losses::default();
        for place in places {
            losses.add(*place, "test");
        }
        let found = unexplained(before, after, &losses);
        assert_eq!(found.is_none(), explained, "{before:?} → {after:?} with {places:?}: {found:?}");
    }

    #[test]
    fn a_loss_speaks_for_its_own_place_only() {
        let said =
            [text(Who::Thought, "hm"), thing(Who::Assistant, "web_search_call"), text(Who::Assistant, "a")];
        check(&said, &said, &[], true);
        check(&said, &said[1..], &["messages[].reasoning"], true);
        check(&said, &said[1..], &["messages[].reasoning.seal"], false);
        check(&said, &said[1..], &["top_k", "output[web_search_call]"], false);
        check(&said, &said[2..], &["reasoning", "output[web_search_call]"], true);
        check(&said, &said[..2], &["reasoning", "output[web_search_call]"], false);
        check(&said, &[text(Who::Thought, "else"), said[1].clone(), said[2].clone()], &["thinking"], false);
        check(&[thing(Who::Wish, "seed")], &[], &["seed"], true);
        check(&[thing(Who::Wish, "seed")], &[], &["temperature"], false);
        check(&[thing(Who::Stop, "stop")], &[], &["stop"], false);
    }

    #[test]
    fn texts_join_where_something_between_them_was_lost() {
        let said = [text(Who::Assistant, "a"), thing(Who::Assistant, "x"), text(Who::Assistant, "b")];
        check(&said, &[text(Who::Assistant, "ab")], &["content[x]"], true);
        check(&said, &[text(Who::Assistant, "ab")], &["content[y]"], false);
        check(&said, &[text(Who::Assistant, "a")], &["content[x]"], false);
    }

    #[test]
    fn another_order_is_a_loss_too() {
        let said = [text(Who::Assistant, "a"), thing(Who::Call, "f"), text(Who::Assistant, "b")];
        let sorted = [text(Who::Assistant, "ab"), thing(Who::Call, "f")];
        check(&said, &sorted, &["message.order"], true);
        check(&said, &sorted, &[], false);
        check(&said, &sorted[..1], &["message.order"], false);
    }

    #[test]
    fn other_words_are_the_same_only_where_a_loss_says_so() {
        let refusal = [text(Who::Refusal, "no")];
        check(&refusal, &[text(Who::Assistant, "no")], &["refusal"], true);
        check(&refusal, &[text(Who::Assistant, "no")], &["stop"], false);
        let failed = [thing(Who::Result, "error"), text(Who::Result, "gone")];
        check(&failed, &[text(Who::Result, "[error]gone")], &["messages[].tool_result.is_error"], true);
        check(&failed, &[text(Who::Result, "gone")], &[], false);
        let picture = [text(Who::Result, "see"), thing(Who::Result, "image")];
        let moved = [
            text(Who::Result, "see[image:seethenextusermessage]"),
            text(Who::User, "Attachedtotheresultoftoolcallx:"),
            thing(Who::User, "image"),
        ];
        check(&picture, &moved, &[MOVED], true);
        check(&picture, &moved, &[], false);
    }
}
