//! Tool calls for models that only know text.
//!
//! ```text
//! TurnRequest ──prepare──▶ TurnRequest without tools ──▶ any upstream
//!                 │ ParsePlan                               │ text
//!                 └──────────▶ Interpreter ◀────────────────┘
//!                                  │
//!                     TurnEvents with tool calls
//! ```
//!
//! [`prepare`] writes the tools into the system prompt and renders the calls and results of the history as
//! text. The [`Interpreter`] parses the model's text into text, reasoning and calls while it streams. String
//! arguments are forwarded as they arrive; argument types come from the tools' schemas.
//!
//! Nothing here does I/O, reads a clock or draws random numbers: unguessable values are derived from a
//! [`Secret`]. Side requests (for a missing value or the rest of a cut answer) are only described here; the
//! caller, which owns the upstream, sends them.
//!
//! Deliberately absent: other built-in prompt formats (a template can teach one, and the parser accepts
//! several) and validation of arguments against their schemas, which the client does.

mod fault;
mod history;
mod inbound;
mod interpreter;
mod names;
mod options;
mod parse;
mod plan;
mod prompt;
mod recovery;
mod schema;
mod side;
mod trigger;
mod value;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use toolgate_model::{
    Choice, Delivery, Losses, Message, Parallel, Part, ToolChoice, Translated, TurnRequest, UsageReport,
};

pub use fault::CallFault;
pub use interpreter::Interpreter;
pub use options::{
    AfterCalls, Markerless, Placement, PromptedOptions, ReasoningTag, Repair, Secret, Strictness, Switch,
    UnknownTool,
};
pub use plan::ParsePlan;
pub use recovery::{Recovery, Truncation};
pub use schema::Notation;
pub use side::{FollowUp, FollowUpReason, MissingValue};

use inbound::Inbound;
use plan::ParseRules;
use schema::ToolSpec;

/// A request for a text-only model, and the plan for parsing its reply.
#[derive(Clone, Debug)]
pub struct PreparedRequest {
    /// The request, without tools, calls or results.
    pub request: TurnRequest,
    /// Input of the [`Interpreter`].
    pub plan: ParsePlan,
}

/// Writes the tools of a request into its text.
pub fn prepare(
    request: &TurnRequest,
    options: &PromptedOptions,
    secret: &Secret,
) -> Translated<PreparedRequest> {
    let mut losses = Losses::default();
    let inbound = Inbound::of(request);
    let markers = trigger::markers(request, &inbound, secret);
    let allowed = request.tools.iter().filter(|tool| request.tool_choice.allows(tool));
    let tools: Vec<Arc<ToolSpec>> =
        allowed.filter_map(|tool| ToolSpec::of(tool, &mut losses)).map(Arc::new).collect();
    let policy = CallPolicy::of(&request.tool_choice, &mut losses);
    let offered = !tools.is_empty() && policy != CallPolicy::Forbidden;

    let mut prepared = request.clone();
    prepared.tools = Vec::new();
    prepared.tool_choice = ToolChoice::default();
    prepared.delivery = with_usage(request.delivery);
    prepared.messages = history::render(&request.messages, &tools, &markers);
    let parallel = request.tool_choice.parallel.unwrap_or(Parallel::Allowed);
    if offered {
        let text = prompt::system(&tools, &markers.trigger, options, parallel);
        insert_prompt(&mut prepared, Part::text(text), options.system_placement);
        if let Some(line) = prompt::reminder(&markers.trigger, &policy, options) {
            append_reminder(&mut prepared.messages, &line);
        }
    }
    let rules = ParseRules {
        trigger: offered.then(|| markers.trigger.clone()),
        tools,
        forced_tool: policy.forced_tool(),
        parallel,
        markerless: markerless(options, &inbound),
        options: options.clone(),
    };
    let plan = ParsePlan {
        rules: Arc::new(rules),
        id_seed: trigger::id_seed(&inbound, secret),
        call_required: if offered && policy.requires_call() { Switch::On } else { Switch::Off },
        delivery: request.delivery,
    };
    Translated { value: PreparedRequest { request: prepared, plan }, losses }
}

/// The host always reports token counts: a turn may consist of several replies, which the client cannot count.
fn with_usage(delivery: Delivery) -> Delivery {
    match delivery {
        Delivery::Whole => Delivery::Whole,
        Delivery::Stream(_) => Delivery::Stream(UsageReport::Included),
    }
}

/// Whether the client allows or requires calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallPolicy {
    Forbidden,
    Optional,
    Required,
    Named(String),
}

impl CallPolicy {
    fn of(choice: &ToolChoice, losses: &mut Losses) -> Self {
        match &choice.choice {
            None | Some(Choice::Auto) => Self::Optional,
            Some(Choice::Any) => Self::Required,
            Some(Choice::None) => Self::Forbidden,
            Some(Choice::Named(name, _)) => Self::Named(name.as_str().to_owned()),
            Some(Choice::Provider(opaque)) => {
                losses.add(
                    format!("tool_choice[{}]", opaque.kind),
                    "this tool choice cannot be enforced for a text-only model",
                );
                Self::Optional
            }
        }
    }

    fn forced_tool(&self) -> Option<String> {
        match self {
            Self::Named(name) => Some(name.clone()),
            Self::Forbidden | Self::Optional | Self::Required => None,
        }
    }

    fn requires_call(&self) -> bool {
        match self {
            Self::Required | Self::Named(_) => true,
            Self::Forbidden | Self::Optional => false,
        }
    }
}

/// P6: a model may repeat markup from inbound text, so a page it has read could make it run commands.
fn markerless(options: &PromptedOptions, inbound: &Inbound<'_>) -> Switch {
    let enabled = options.markerless == Markerless::Guarded;
    if enabled && !inbound.contains("<invoke") { Switch::On } else { Switch::Off }
}

/// Inserts the prompt next to the client's own instructions, in `system` or in the leading system messages.
fn insert_prompt(request: &mut TurnRequest, prompt: Part, placement: Placement) {
    let leading = request.messages.iter().take_while(|message| matches!(message, Message::System(_))).count();
    match (placement, leading.checked_sub(1).and_then(|last| request.messages.get_mut(last))) {
        (Placement::First, _) => request.system.insert(0, prompt),
        (Placement::Last, Some(Message::System(message))) => message.content.push(prompt),
        (Placement::Last, _) => request.system.push(prompt),
    }
}

/// Appends the line as a paragraph to the last message that is not a system message: Claude Code sends
/// instructions after the user's message.
fn append_reminder(messages: &mut [Message], line: &str) {
    let answered = messages.iter_mut().rfind(|message| !matches!(message, Message::System(_)));
    if let Some(Message::User(message)) = answered {
        history::append_part(Part::text(format!("\n\n{line}")), &mut message.content);
    }
}
