//! What can be asked of the model besides the answer itself: a value that a call lacks (P26), the rest of an answer that
//! was cut (P28), a call where there had to be one (P32) or that could not be understood. Only described here; whoever
//! owns the upstream asks.

use toolgate_model::{AssistantMessage, Block, Extras, Message, Part, Text, TurnRequest, UserMessage};

use crate::fault::Fault;
use crate::schema::Notation;

/// A value that a call lacks. Answer with [`Interpreter::supply`](crate::Interpreter::supply), or go on without.
#[derive(Clone, Debug, PartialEq)]
pub struct Missing {
    /// The tool.
    pub call: String,
    /// The parameter.
    pub parameter: String,
    /// The parameter's schema, as JSON.
    pub schema: String,
    /// How its value is to be written.
    pub notation: Notation,
    /// What the model wrote, where it could not be read.
    pub written: Option<String>,
    /// What the model has said so far.
    pub said: String,
}

impl Missing {
    /// The side request: the prepared request, what was said, and the question.
    pub fn request(&self, prepared: &TurnRequest) -> TurnRequest {
        let Self { call, parameter, schema, notation, written, said } = self;
        let fault = match written {
            Some(written) => {
                format!(
                    "Your call to {call} has an invalid value for the parameter \"{parameter}\": {written}"
                )
            }
            None => format!("Your call to {call} is missing the required parameter \"{parameter}\"."),
        };
        let form = match notation {
            Notation::Raw => "Write a string raw, and any other type as JSON.",
            Notation::Json => "Write it as JSON, strings in double quotes.",
        };
        let question = format!(
            "{fault}\nThe parameter's schema is {schema}. Reply with the value only: no tags, no code fence, no explanation. \
             {form}"
        );
        asked(prepared, said, question)
    }
}

/// How to get an answer's rest. Feed the events of the reply to the same interpreter.
#[derive(Clone, Debug, PartialEq)]
pub struct Continuation {
    /// Why there is one.
    pub reason: Reason,
    /// What the model has said so far.
    pub said: String,
    /// The line that starts calls.
    pub trigger: String,
    /// The operator's own words for a retry.
    pub retry_template: Option<String>,
}

/// Why an answer needs a second request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was cut inside a call.
    Truncated,
    /// It had to call and did not.
    NoCall,
    /// Its call cannot be understood; the new answer takes its place.
    Unreadable(Fault),
}

impl Continuation {
    /// The second request: the prepared request, what was said, and what to do now.
    pub fn request(&self, prepared: &TurnRequest) -> TurnRequest {
        let instruction = match &self.reason {
            Reason::Truncated => {
                "Your answer was cut off. Continue exactly where it stopped, starting with the very next character. \
                 Do not repeat anything, do not explain anything, and do not start the call again."
                    .to_owned()
            }
            Reason::NoCall => {
                format!(
                "You did not call a function, but a call is required now. Write only the call: the line {} on its own, \
                 then the call below it.",
                self.trigger
            )
            }
            Reason::Unreadable(fault) => self.retry(fault),
        };
        asked(prepared, &self.said, instruction)
    }

    fn retry(&self, fault: &Fault) -> String {
        match &self.retry_template {
            Some(template) => template
                .replace("{error_details}", &fault.to_string())
                .replace("{original_response}", &self.said),
            None => format!(
                "Your call could not be parsed and was not run. {fault} Write the complete call again in exactly the \
                 required format, and nothing else: the line {} on its own, then the call below it.",
                self.trigger
            ),
        }
    }
}

fn asked(prepared: &TurnRequest, said: &str, question: String) -> TurnRequest {
    let mut request = prepared.clone();
    if !said.is_empty() {
        let content = vec![Block::Text(Text::new(said))];
        request.messages.push(Message::Assistant(AssistantMessage { content, extras: Extras::NONE }));
    }
    let content = vec![Part::text(question)];
    request.messages.push(Message::User(UserMessage { content, extras: Extras::NONE }));
    request
}

/// How much of a continuation may repeat the end of what it continues.
pub(crate) const MAX_OVERLAP: usize = 400;
/// Less than this may be the same by chance.
const MIN_OVERLAP: usize = 16;

/// How many bytes at the start of `next` repeat the end of `said`.
pub(crate) fn overlap(said: &str, next: &str) -> usize {
    let limit = next.floor_char_boundary(MAX_OVERLAP);
    let repeated = |len: usize| {
        next.is_char_boundary(len) && said.ends_with(&next[..len]) && !next[..len].trim().is_empty()
    };
    (MIN_OVERLAP..=limit).rev().find(|len| repeated(*len)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_repetition_is_removed() {
        let said = "first line\nlet value = compute(";
        assert_eq!(overlap(said, "let value = compute(1)"), "let value = compute(".len());
        assert_eq!(overlap(said, "compute(1)"), 0);
        assert_eq!(overlap(said, "1)"), 0);
        assert_eq!(overlap(&" ".repeat(40), &" ".repeat(40)), 0);
    }
}
