//! What an operator may choose for one model. The defaults are the measured best; most models need none of these.

/// The server's secret: it makes triggers and ids that nobody outside can guess.
#[derive(Clone)]
pub struct Secret(pub [u8; 32]);

/// How tools are given to one text-only model.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The operator's own prompt with `{tools_list}` and `{trigger_signal}` (Toolify: `features.prompt_template`).
    /// `None` takes the built-in one.
    pub prompt_template: Option<String>,
    /// Where the prompt stands in the system text.
    pub system_placement: Placement,
    /// One line on the last user message that repeats the trigger.
    pub reminder: Switch,
    /// What happens to a call of a tool that was not offered.
    pub unknown_tool: UnknownTool,
    /// What happens to prose after complete calls.
    pub after_calls: AfterCalls,
    /// Calls without a trigger.
    pub markerless: Markerless,
    /// Whether an answer that ends in a fenced call is a call.
    pub calls_in_fence: Switch,
    /// The tags a model thinks between.
    pub reasoning_tags: Vec<ReasoningTag>,
    /// Whether the host's template has opened the first reasoning tag already.
    pub starts_in_reasoning: Switch,
    /// Whether a missing value is asked for.
    pub repair: Repair,
    /// How many times a cut answer is continued.
    pub continuations: u8,
    /// How many times an answer whose call cannot be understood is asked for again, as long as nothing of a call was
    /// sent (Toolify: `features.fc_error_retry_max_attempts`).
    pub retries: u8,
    /// The operator's own words for that, with `{error_details}` and `{original_response}` (Toolify:
    /// `features.fc_error_retry_prompt_template`). `None` takes the built-in ones.
    pub retry_template: Option<String>,
    /// Whether a model that must call and does not is told so once.
    pub nudge: Switch,
    /// Refuse every heuristic: a call that is not written exactly as taught comes out as text. A call is then held
    /// until it is complete, because text that was sent as a call cannot be taken back.
    pub strictness: Strictness,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prompt_template: None,
            system_placement: Placement::Last,
            reminder: Switch::On,
            unknown_tool: UnknownTool::Fix,
            after_calls: AfterCalls::Stop,
            markerless: Markerless::Off,
            calls_in_fence: Switch::On,
            reasoning_tags: vec![
                ReasoningTag::new("<think>", "</think>"),
                ReasoningTag::new("<thinking>", "</thinking>"),
            ],
            starts_in_reasoning: Switch::Off,
            repair: Repair::Append,
            continuations: 1,
            retries: 1,
            retry_template: None,
            nudge: Switch::On,
            strictness: Strictness::Lenient,
        }
    }
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is.
    On,
    /// It is not.
    Off,
}

impl Switch {
    /// True for [`Switch::On`].
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

/// Where the prompt stands in the system text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Before the client's own.
    First,
    /// After the client's own.
    Last,
}

/// What happens to a call of a tool that was not offered (P24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownTool {
    /// A name that resembles exactly one tool becomes it; any other is passed on, and the client says no.
    Fix,
    /// Passed on as written.
    Pass,
    /// The call comes out as text.
    Text,
}

/// What happens to prose after complete calls (P27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCalls {
    /// The answer ends there: the upstream may be dropped, as what follows is often an invented result.
    Stop,
    /// It is text, and more calls may follow.
    Text,
}

/// Calls without a trigger (P6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markerless {
    /// Are text.
    Off,
    /// Run when they stand on their own line, outside fences and reasoning, name an offered tool, and nothing
    /// inbound contains such markup: otherwise a quoted page could make the model call.
    Guarded,
}

/// Whether missing values are fetched (P26).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// No: the client's validator answers.
    Off,
    /// A small side request fetches the value, which is appended; nothing sent is taken back.
    Append,
}

/// Whether heuristics are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// They are, and each use is recorded.
    Lenient,
    /// They are not.
    Strict,
}

/// A pair of tags around reasoning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReasoningTag {
    /// `<think>`.
    pub open: String,
    /// `</think>`.
    pub close: String,
}

impl ReasoningTag {
    /// A pair of tags.
    pub fn new(open: impl Into<String>, close: impl Into<String>) -> Self {
        Self { open: open.into(), close: close.into() }
    }
}
