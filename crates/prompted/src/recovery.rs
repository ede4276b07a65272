//! The heuristics that can rescue a call, by name, so that each use can be counted and logged.

use std::fmt;

/// A heuristic that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Recovery {
    /// P3: a call at the end of reasoning that was never closed.
    CallInReasoning,
    /// P5: a call in a code fence that ends the answer.
    CallInFence,
    /// P6: a call without a trigger.
    Markerless,
    /// P7: a value without a closing tag, ended by the closing tag of the call.
    MissingValueClose,
    /// P8: a value closed by a tag with the parameter's name.
    WrongClose,
    /// P9: a value ended by the next parameter's opening tag.
    ImplicitClose,
    /// P10: a repeated closing tag.
    RepeatedClose,
    /// A call without its closing tag.
    MissingCallClose,
    /// P13: entities decoded.
    EntitiesDecoded,
    /// P14: JSON repaired.
    JsonRepaired,
    /// P15: JSON encoded as a JSON string.
    DoubleEncoded,
    /// P18, P19: a value converted to its type.
    Coerced,
    /// P23: text between the trigger and the call.
    ProseAfterTrigger,
    /// P24: a corrected tool name.
    ToolRenamed,
    /// P24: a call to an unknown tool, forwarded.
    UnknownTool,
    /// P25: a corrected parameter name.
    ParameterRenamed,
    /// A parameter written as a tag with the parameter's name.
    NamedTag,
    /// P26: a missing value, supplied by a side request.
    ValueSupplied,
    /// P26: a value that does not match its type, forwarded for the client's validator to reject.
    UnreadableValue,
    /// P27: text after the calls, dropped.
    TailDropped,
    /// P28: a truncated answer, continued.
    Continued,
    /// P31: a syntax other than the prompt's.
    ForeignSyntax,
    /// P32: a second prompt, because a call was required and the model made none.
    Nudged,
    /// A second answer, because the call in the first could not be parsed.
    Retried,
}

impl Recovery {
    /// The name in metrics and logs.
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

/// Why a call was left unfinished (P28). Its arguments are then incomplete JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The answer ended after the trigger, before a call.
    BeforeCall,
    /// The answer ended inside a call.
    InsideCall,
    /// There was unexpected text between the call's parameters.
    Malformed,
    /// A value that must be buffered exceeded the size limit.
    TooLarge,
}
