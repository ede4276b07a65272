//! Every heuristic that can rescue a call, by name, so that each use can be counted and seen in the log.

use std::fmt;

/// A heuristic that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Recovery {
    /// P3: a call at the end of reasoning that never closed.
    CallInReasoning,
    /// P5: a call in a fence that ends the answer.
    CallInFence,
    /// P6: a call without a trigger.
    Markerless,
    /// P7: a value without its closing tag, ended by the call's.
    MissingValueClose,
    /// P8: a value closed by its own name.
    WrongClose,
    /// P9: a value ended by the next parameter.
    ImplicitClose,
    /// P10: closing tags repeated.
    RepeatedClose,
    /// A call without its closing tag.
    MissingCallClose,
    /// P13: entities decoded.
    EntitiesDecoded,
    /// P14: JSON repaired.
    JsonRepaired,
    /// P15: JSON inside a JSON string.
    DoubleEncoded,
    /// P18, P19: a value made to fit its type.
    Coerced,
    /// P23: prose between the trigger and the call.
    ProseAfterTrigger,
    /// P24: a tool's name corrected.
    ToolRenamed,
    /// P24: a tool that was not offered, passed on.
    UnknownTool,
    /// P25: a parameter's name corrected.
    ParameterRenamed,
    /// A parameter written as a tag of its own name.
    NamedTag,
    /// P26: a missing value fetched.
    ValueSupplied,
    /// P26: a value that does not fit its type, passed on as text for the client's validator to refuse.
    UnreadableValue,
    /// P27: prose after the calls dropped.
    TailDropped,
    /// P28: a cut answer continued.
    Continued,
    /// P31: another syntax than the one taught.
    ForeignSyntax,
    /// P32: a model told that it must call.
    Nudged,
    /// An answer whose call could not be understood, asked for again.
    Retried,
}

impl Recovery {
    /// A name for metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::CallInReasoning => "call_in_reasoning",
            Self::CallInFence => "call_in_fence",
            Self::Markerless => "markerless",
            Self::MissingValueClose => "missing_value_close",
            Self::WrongClose => "wrong_close",
            Self::ImplicitClose => "implicit_close",
            Self::RepeatedClose => "repeated_close",
            Self::MissingCallClose => "missing_call_close",
            Self::EntitiesDecoded => "entities_decoded",
            Self::JsonRepaired => "json_repaired",
            Self::DoubleEncoded => "double_encoded",
            Self::Coerced => "coerced",
            Self::ProseAfterTrigger => "prose_after_trigger",
            Self::ToolRenamed => "tool_renamed",
            Self::UnknownTool => "unknown_tool",
            Self::ParameterRenamed => "parameter_renamed",
            Self::NamedTag => "named_tag",
            Self::ValueSupplied => "value_supplied",
            Self::UnreadableValue => "unreadable_value",
            Self::TailDropped => "tail_dropped",
            Self::Continued => "continued",
            Self::ForeignSyntax => "foreign_syntax",
            Self::Nudged => "nudged",
            Self::Retried => "retried",
        }
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a call was left unfinished (P28). Its arguments are then not complete JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The answer ended after the trigger, before a call.
    BeforeCall,
    /// The answer ended inside a call.
    InsideCall,
    /// A call had something between its parameters that belongs to no syntax.
    Malformed,
    /// A value that must be held to be read grew past the bound.
    TooLarge,
}
