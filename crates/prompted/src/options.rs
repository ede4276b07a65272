//! Options for one text-only model. The defaults measured best; most models need no others.

/// The server's secret, from which unguessable triggers and call ids are derived.
#[derive(Clone)]
pub struct Secret(pub [u8; 32]);

/// How tools are offered to one text-only model.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptedOptions {
    /// The operator's own prompt with `{tools_list}` and `{trigger_signal}` (Toolify:
    /// `features.prompt_template`). `None` selects the built-in prompt.
    pub prompt_template: Option<String>,
    /// Where the prompt is placed in the system text.
    pub system_placement: Placement,
    /// Whether to append a line to the last user message that repeats the trigger.
    pub reminder: Switch,
    /// What to do with a call to an unknown tool.
    pub unknown_tool: UnknownTool,
    /// What to do with text after complete calls.
    pub after_calls: AfterCalls,
    /// What to do with calls that have no trigger.
    pub markerless: Markerless,
    /// Whether a call in a code fence at the end of the answer runs.
    pub calls_in_fence: Switch,
    /// The tags around a model's reasoning.
    pub reasoning_tags: Vec<ReasoningTag>,
    /// Whether the host's chat template has already opened the first reasoning tag.
    pub starts_in_reasoning: Switch,
    /// Whether to request missing values from the model.
    pub repair: Repair,
    /// How many times to continue a truncated answer.
    pub continuations: u8,
    /// How many times to request a new answer if the call cannot be parsed and none of it has been sent to the
    /// client (Toolify: `features.fc_error_retry_max_attempts`).
    pub retries: u8,
    /// The operator's own text for that request, with `{error_details}` and `{original_response}` (Toolify:
    /// `features.fc_error_retry_prompt_template`). `None` selects the built-in text.
    pub retry_template: Option<String>,
    /// Whether to prompt a model once more if a call is required and it made none.
    pub nudge: Switch,
    /// Whether heuristics are allowed. In strict mode a call that does not follow the prompt's format exactly
    /// is forwarded as text. Each call is then buffered until it is complete, because a call that has been sent
    /// cannot be retracted.
    pub strictness: Strictness,
}

impl Default for PromptedOptions {
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

/// On or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// The feature is on.
    On,
    /// The feature is off.
    Off,
}

impl Switch {
    /// True for [`Switch::On`].
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

/// Where the prompt is placed in the system text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Before the client's system text.
    First,
    /// After the client's system text.
    Last,
}

/// What to do with a call to an unknown tool (P24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownTool {
    /// If the normalized name matches exactly one tool, call that tool. Otherwise forward the call for the
    /// client to reject.
    Fix,
    /// Forward the call as written.
    Pass,
    /// Forward the call as text.
    Text,
}

/// What to do with text after complete calls (P27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCalls {
    /// End the answer and drop the upstream: such text is often an invented result.
    Stop,
    /// Forward it as text; more calls may follow.
    Text,
}

/// What to do with calls that have no trigger (P6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markerless {
    /// Forward them as text.
    Off,
    /// Run them if they start a line outside fences and reasoning, name an offered tool, and no inbound text
    /// contains such markup. Otherwise a quoted page could make the model call a tool.
    Guarded,
}

/// Whether to request missing values from the model (P26).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// No: the client's validator reports them.
    Off,
    /// Request the value in a side request and append it. Nothing that has been sent is retracted.
    Append,
}

/// Whether heuristics are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// They are allowed, and each use is recorded.
    Lenient,
    /// They are not allowed.
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
