//! Why a call could not be parsed, in sentences that help the model to correct it.

use std::fmt;

/// What is wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The tool is unknown, or not the one that must be called.
    WrongTool(String),
    /// The first tag is incomplete or misspelled.
    MalformedTag,
    /// There is unexpected text between the parameters, or a closing tag is misplaced.
    UnexpectedText,
    /// The call is written as JSON, and the JSON is not valid.
    InvalidJson,
    /// The call was understood, but does not follow the format exactly, and strict mode is on.
    NotExact,
    /// A value exceeds the size limit.
    TooLarge,
}

impl fmt::Display for CallFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongTool(name) => write!(f, "You cannot call the function \"{name}\" now."),
            Self::MalformedTag => {
                f.write_str("The first tag after the trigger line is incomplete or misspelled.")
            }
            Self::UnexpectedText => f.write_str(
                "There is unexpected text between the parameters, or a tag is misplaced or not closed.",
            ),
            Self::InvalidJson => f.write_str("The JSON is not valid."),
            Self::NotExact => f.write_str("It does not follow the required format exactly."),
            Self::TooLarge => f.write_str("One of the parameter values is too large."),
        }
    }
}
