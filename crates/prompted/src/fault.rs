//! Why a call cannot be understood, in words that help the model to write it again.

use std::fmt;

/// What is wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It names a tool that is not on offer, or not the one that must be called.
    WrongTool(String),
    /// Its first tag has a slip in it.
    BrokenTag,
    /// Something that belongs to no call stands between its parameters, or a closing tag is in the wrong place.
    Stray,
    /// It is written as JSON that cannot be read.
    BrokenJson,
    /// It was understood, but is not written exactly as taught, and the operator wants no guessing.
    NotAsTaught,
    /// A value is larger than can be held.
    TooLarge,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongTool(name) => write!(f, "You cannot call the function \"{name}\" now."),
            Self::BrokenTag => {
                f.write_str("The first tag after the trigger line is incomplete or misspelled.")
            }
            Self::Stray => f.write_str(
                "There is unexpected text between the parameters, or a tag is misplaced or not closed.",
            ),
            Self::BrokenJson => f.write_str("The JSON is not valid."),
            Self::NotAsTaught => f.write_str("It does not follow the required format exactly."),
            Self::TooLarge => f.write_str("One of the parameter values is too large."),
        }
    }
}
