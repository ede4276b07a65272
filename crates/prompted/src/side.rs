//! Side requests: for a missing value (P26), for the rest of a truncated answer (P28), for a required call
//! (P32), or for a new answer because the call could not be parsed. They are only described here; the caller,
//! which owns the upstream, sends them.

use toolgate_model::{AssistantMessage, Block, Extras, Message, Part, Text, TurnRequest, UserMessage};

use crate::fault::CallFault;
use crate::schema::Notation;

/// A value that a call lacks. Pass the reply to
/// [`Interpreter::supply_value`](crate::Interpreter::supply_value), or call
/// [`Interpreter::decline_value`](crate::Interpreter::decline_value).
#[derive(Clone, Debug, PartialEq)]
pub struct MissingValue {
    /// The name of the tool.
    pub call: String,
    /// The name of the parameter.
    pub parameter: String,
    /// The parameter's schema, as JSON.
    pub schema: String,
    /// How to write the value.
    pub notation: Notation,
    /// What the model wrote, if it could not be parsed.
    pub written: Option<String>,
    /// The model's answer so far.
    pub answer: String,
}

impl MissingValue {
    /// The side request: the prepared request, the answer so far, and the question.
    pub fn request(&self, prepared: &TurnRequest) -> TurnRequest {
        let Self { call, parameter, schema, notation, written, answer } = self;
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
        with_question(prepared, answer, question)
    }
}

/// A second request for an answer that is not complete. Feed the events of its reply to the same interpreter.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowUp {
    /// Why it is needed.
    pub reason: FollowUpReason,
    /// The model's answer so far.
    pub answer: String,
    /// The line that starts calls.
    pub trigger: String,
    /// The operator's own text for a retry.
    pub retry_template: Option<String>,
}

/// Why an answer needs a second request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowUpReason {
    /// It was truncated inside a call.
    Truncated,
    /// A call was required, and the model made none.
    NoCall,
    /// Its call could not be parsed; the new answer replaces it.
    InvalidCall(CallFault),
}

impl FollowUp {
    /// The second request: the prepared request, the answer so far, and the instruction.
    pub fn request(&self, prepared: &TurnRequest) -> TurnRequest {
        let instruction = match &self.reason {
            FollowUpReason::Truncated => {
                "Your answer was cut off. Continue exactly where it stopped, starting with the very next character. \
                 Do not repeat anything, do not explain anything, and do not start the call again."
                    .to_owned()
            }
            FollowUpReason::NoCall => {
                format!(
                "You did not call a function, but a call is required now. Write only the call: the line {} on its own, \
                 then the call below it.",
                self.trigger
            )
            }
            FollowUpReason::InvalidCall(fault) => self.retry(fault),
        };
        with_question(prepared, &self.answer, instruction)
    }

    fn retry(&self, fault: &CallFault) -> String {
        match &self.retry_template {
            Some(template) => template
                .replace("{error_details}", &fault.to_string())
                .replace("{original_response}", &self.answer),
            None => format!(
                "Your call could not be parsed and was not run. {fault} Write the complete call again in exactly the \
                 required format, and nothing else: the line {} on its own, then the call below it.",
                self.trigger
            ),
        }
    }
}

fn with_question(prepared: &TurnRequest, answer: &str, question: String) -> TurnRequest {
    let mut request = prepared.clone();
    if !answer.is_empty() {
        let content = vec![Block::Text(Text::new(answer))];
        request.messages.push(Message::Assistant(AssistantMessage { content, extras: Extras::NONE }));
    }
    let content = vec![Part::text(question)];
    request.messages.push(Message::User(UserMessage { content, extras: Extras::NONE }));
    request
}

/// The maximum length of the overlap between an answer and its continuation.
pub(crate) const MAX_OVERLAP: usize = 400;
/// A shorter overlap may be coincidence.
const MIN_OVERLAP: usize = 16;

/// The number of bytes at the start of `next` that repeat the end of `answer`.
pub(crate) fn overlap(answer: &str, next: &str) -> usize {
    let limit = next.floor_char_boundary(MAX_OVERLAP);
    let repeated = |len: usize| {
        next.is_char_boundary(len) && answer.ends_with(&next[..len]) && !next[..len].trim().is_empty()
    };
    (MIN_OVERLAP..=limit).rev().find(|len| repeated(*len)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_overlap_is_removed() {
        let answer = "first line\nlet value = compute(";
        assert_eq!(overlap(answer, "let value = compute(1)"), "let value = compute(".len());
        assert_eq!(overlap(answer, "compute(1)"), 0);
        assert_eq!(overlap(answer, "1)"), 0);
        assert_eq!(overlap(&" ".repeat(40), &" ".repeat(40)), 0);
    }
}
