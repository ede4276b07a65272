//! Tools for models that only know text.
//!
//! ```text
//! TurnRequest ──prepare──▶ TurnRequest without tools ──▶ any upstream
//!                 │ Plan                                    │ text
//!                 └──────────▶ Interpreter ◀────────────────┘
//!                                  │
//!                     TurnEvents with tool calls
//! ```
//!
//! [`prepare`] writes the tools into the system text and turns calls and results of the history into text; the
//! [`Interpreter`] reads the model's text back into text, reasoning and calls while it streams. Strings of arguments
//! leave at once; the arguments' types come from the tools' schemas.
//!
//! Nothing here does I/O, reads a clock or draws random numbers: what is unguessable comes from a [`Secret`]. Side
//! requests (a missing value, a cut answer) are described, and whoever owns the upstream makes them.
//!
//! Deliberately absent: other prompt formats (a template can teach one; the parser reads several) and validation of
//! arguments against their schemas, which is the client's.

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
    Choice, Delivery, Losses, Message, Parallel, Part, ToolChoice, Translated, TurnRequest,
};

pub use fault::Fault;
pub use interpreter::Interpreter;
pub use options::{
    AfterCalls, Markerless, Options, Placement, ReasoningTag, Repair, Secret, Strictness, Switch, UnknownTool,
};
pub use plan::Plan;
pub use recovery::{Recovery, Truncation};
pub use schema::Notation;
pub use side::{Continuation, Missing, Reason};

use inbound::Inbound;
use plan::Rules;
use schema::ToolSpec;

/// A request for a model that only knows text, and how to read what it answers.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The request: no tools, no calls, no results.
    pub request: TurnRequest,
    /// For the [`Interpreter`].
    pub plan: Plan,
}

/// Writes the tools of a request into its text.
pub fn prepare(request: &TurnRequest, options: &Options, secret: &Secret) -> Translated<Prepared> {
    let mut losses = Losses::default();
    let inbound = Inbound::of(request);
    let marks = trigger::marks(request, &inbound, secret);
    let tools: Vec<Arc<ToolSpec>> =
        request.tools.iter().filter_map(|tool| ToolSpec::of(tool, &mut losses)).map(Arc::new).collect();
    let demand = Demand::of(&request.tool_choice, &mut losses);
    let offered = !tools.is_empty() && demand != Demand::Nothing;

    let mut prepared = request.clone();
    prepared.tools = Vec::new();
    prepared.tool_choice = ToolChoice::default();
    prepared.messages = history::render(&request.messages, &tools, &marks);
    let parallel = request.tool_choice.parallel.unwrap_or(Parallel::Allowed);
    if offered {
        let text = prompt::system(&tools, &marks.trigger, options, parallel);
        place(&mut prepared, Part::text(text), options.system_placement);
        if let Some(line) = prompt::reminder(&marks.trigger, &demand, options) {
            remind(&mut prepared.messages, line);
        }
    }
    let rules = Rules {
        trigger: offered.then(|| marks.trigger.clone()),
        tools,
        only: demand.only(),
        parallel,
        markerless: guarded(options, &inbound),
        options: options.clone(),
    };
    let plan = Plan {
        rules: Arc::new(rules),
        id_seed: trigger::id_seed(&inbound, secret),
        call_needed: if offered && demand.is_needed() { Switch::On } else { Switch::Off },
        whole: if request.delivery == Delivery::Whole { Switch::On } else { Switch::Off },
    };
    Translated { value: Prepared { request: prepared, plan }, losses }
}

/// What the client wants done with its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    Nothing,
    Free,
    Some,
    Only(String),
}

impl Demand {
    fn of(choice: &ToolChoice, losses: &mut Losses) -> Self {
        match &choice.choice {
            None | Some(Choice::Auto) => Self::Free,
            Some(Choice::Any) => Self::Some,
            Some(Choice::None) => Self::Nothing,
            Some(Choice::Named(name, _)) => Self::Only(name.as_str().to_owned()),
            Some(Choice::Provider(opaque)) => {
                losses.add(
                    format!("tool_choice[{}]", opaque.kind),
                    "a model that is given tools as text cannot be held to it",
                );
                Self::Free
            }
        }
    }

    fn only(&self) -> Option<String> {
        match self {
            Self::Only(name) => Some(name.clone()),
            Self::Nothing | Self::Free | Self::Some => None,
        }
    }

    fn is_needed(&self) -> bool {
        match self {
            Self::Some | Self::Only(_) => true,
            Self::Nothing | Self::Free => false,
        }
    }
}

/// P6: markup in inbound text could make the model repeat it, and a page that it read would run commands.
fn guarded(options: &Options, inbound: &Inbound<'_>) -> Switch {
    let wanted = options.markerless == Markerless::Guarded;
    if wanted && !inbound.contains("<invoke") { Switch::On } else { Switch::Off }
}

/// Puts the prompt beside the client's own instructions, wherever those are.
fn place(request: &mut TurnRequest, prompt: Part, placement: Placement) {
    let leading = request.messages.iter().take_while(|message| matches!(message, Message::System(_))).count();
    match (placement, leading.checked_sub(1).and_then(|last| request.messages.get_mut(last))) {
        (Placement::First, _) => request.system.insert(0, prompt),
        (Placement::Last, Some(Message::System(message))) => message.content.push(prompt),
        (Placement::Last, _) => request.system.push(prompt),
    }
}

/// Puts the line on the message that is to be answered. Claude Code adds instructions behind it.
fn remind(messages: &mut [Message], line: String) {
    let answered = messages.iter_mut().rfind(|message| !matches!(message, Message::System(_)));
    if let Some(Message::User(message)) = answered {
        message.content.push(Part::text(line));
    }
}
