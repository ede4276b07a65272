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
            Self::WrongTool(name) => write!(f, "\"{name}\" is not a function that you can call now"),
            Self::BrokenTag => f.write_str("the first tag after the line that begins calls is not complete"),
            Self::Stray => f.write_str(
                "between its parameters stands something that belongs to none of them, or a tag is not closed",
            ),
            Self::BrokenJson => f.write_str("its JSON is not valid"),
            Self::NotAsTaught => f.write_str("it is not written exactly in the form that you were given"),
            Self::TooLarge => f.write_str("one of its values is too large"),
        }
    }
}
