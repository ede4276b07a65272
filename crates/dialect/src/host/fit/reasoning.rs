//! How much a model reasons, in the terms of its host.

use toolgate_model::{Delivery, DialectId, Extras, Losses, ReasoningRequest, Tool, TurnError, TurnRequest};

use super::super::facts::Fact as _;
use super::super::{Effort, HostProfile, ReasoningSwitch, Reasons, ThinkingMode};
use super::Client;
use super::budget::{budget_of_effort, budget_within, effort_of_budget};
use crate::{anthropic_messages, openai_chat, openai_responses};

/// Whether the model will reason: other settings depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// It will.
    Reasons,
    /// It will, within a budget of tokens.
    Budgeted,
    /// It will not.
    Idle,
}

/// What the client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// Nothing in particular.
    Default,
    Off,
    On {
        effort: Option<Effort>,
        budget: Option<u64>,
    },
}

/// The output limit if the client sets none and the host requires one. Every current model supports this value.
pub(crate) const DEFAULT_MAX_OUTPUT: u64 = 8192;

/// Fits the reasoning settings, and the output limit that budgets depend on.
pub(super) fn fit(
    request: &mut TurnRequest,
    profile: &HostProfile,
    dialect: DialectId,
    client: Client,
    losses: &mut Losses,
) -> Result<Activity, TurnError> {
    let asked = request.reasoning.take().unwrap_or_default();
    let own_fields = asked.extras.write(dialect, "reasoning", losses);
    let mut wanted = wanted(&asked, losses);
    if profile.reasons == Reasons::Never {
        if matches!(wanted, Wanted::On { .. }) {
            losses.add("reasoning", format!("{} does not reason", request.model));
        }
        require_limit(request, profile, dialect);
        return Ok(Activity::Idle);
    }
    if dialect == openai_chat::ID {
        wanted = without_refused_tools(wanted, request, profile, losses)?;
    }
    let fitted = match profile.reasoning_switch {
        ReasoningSwitch::Claude if dialect == anthropic_messages::ID => {
            return Ok(Claude { profile, client }.fit(request, &asked, wanted, losses));
        }
        ReasoningSwitch::None | ReasoningSwitch::Claude => {
            let is_granted = matches!(wanted, Wanted::On { .. }) && profile.reasons == Reasons::Always;
            if wanted != Wanted::Default && !is_granted {
                losses.add("reasoning", "the host has no known setting for it");
            }
            ReasoningRequest::default()
        }
        ReasoningSwitch::Effort | ReasoningSwitch::ReasoningEffort => {
            ReasoningRequest { effort: effort(wanted, profile, losses), ..ReasoningRequest::default() }
        }
        ReasoningSwitch::ReasoningEnabled
        | ReasoningSwitch::ThinkingType
        | ReasoningSwitch::ThinkingAdaptive => switched(wanted, profile, losses),
        ReasoningSwitch::EnableThinking => enabled(request.delivery, wanted, profile, losses),
    };
    let activity = activity(&fitted, profile);
    let summary = match client {
        _ if activity == Activity::Idle || !matches!(wanted, Wanted::On { .. }) => None,
        Client::SameDialect => asked.summary,
        // Clients of other dialects that enable reasoning expect its text.
        Client::OtherDialect => asked.summary.or_else(|| Some("auto".to_owned())),
    };
    let mut fitted = ReasoningRequest { summary, ..fitted };
    if dialect == openai_responses::ID {
        fitted.extras = Extras::of(dialect, own_fields);
    }
    request.reasoning = (fitted != ReasoningRequest::default()).then_some(fitted);
    Ok(activity)
}

fn wanted(asked: &ReasoningRequest, losses: &mut Losses) -> Wanted {
    let is_off = asked.mode.as_deref() == Some("disabled") || asked.effort.as_deref() == Some("none");
    if is_off {
        return Wanted::Off;
    }
    if asked.mode.is_none() && asked.effort.is_none() && asked.budget.is_none() {
        return Wanted::Default;
    }
    let effort = asked.effort.as_deref().map(|text| known_effort(text, losses));
    Wanted::On { effort, budget: asked.budget }
}

/// Efforts that are newer than this code are taken for the usual one.
fn known_effort(text: &str, losses: &mut Losses) -> Effort {
    Effort::parse(text).unwrap_or_else(|_| {
        losses.add("reasoning.effort", format!("`{text}` is unknown: sent as `{}`", Effort::Medium));
        Effort::Medium
    })
}

/// Some models take functions only while they do not reason. One that always reasons takes none.
fn without_refused_tools(
    wanted: Wanted,
    request: &TurnRequest,
    profile: &HostProfile,
    losses: &mut Losses,
) -> Result<Wanted, TurnError> {
    let has_functions = request.tools.iter().any(|tool| matches!(tool, Tool::Function(_)));
    let would_reason = match wanted {
        Wanted::Default => matches!(profile.reasons, Reasons::ByDefault | Reasons::Always),
        Wanted::On { .. } => true,
        Wanted::Off => false,
    };
    if !(profile.tools_without_reasoning && has_functions && would_reason) {
        return Ok(wanted);
    }
    let model = &request.model;
    if profile.reasons == Reasons::Always {
        return Err(TurnError::invalid_param(
            "tools",
            format!(
                "{model} takes no functions on Chat Completions: use an upstream with dialect = \"openai-responses\""
            ),
        ));
    }
    if matches!(wanted, Wanted::On { .. }) {
        losses.add(
            "reasoning",
            format!("{model} takes functions on Chat only without reasoning; use openai-responses"),
        );
    }
    Ok(Wanted::Off)
}

/// The effort to send; `None` for the host's default.
fn effort(wanted: Wanted, profile: &HostProfile, losses: &mut Losses) -> Option<String> {
    let name = |effort: Effort| effort.name().to_owned();
    match wanted {
        Wanted::Default => None,
        Wanted::Off if profile.efforts.contains(Effort::None) => Some(name(Effort::None)),
        Wanted::Off if profile.reasons == Reasons::IfAsked => None,
        Wanted::Off => {
            let Some(least) = profile.efforts.iter().next() else {
                losses.add("reasoning", "it cannot be switched off here");
                return None;
            };
            losses.add("reasoning", format!("it cannot be switched off here: sent as `{least}`"));
            Some(name(least))
        }
        Wanted::On { effort, budget } => {
            let amount = effort.or(budget.map(effort_of_budget));
            if amount.is_none() && profile.reasons != Reasons::IfAsked {
                return None;
            }
            let amount = amount.unwrap_or(Effort::Medium);
            let Some(sent) = nearest(amount, profile) else {
                report_lost_amount(effort, budget, losses);
                return None;
            };
            if sent != amount {
                losses.add("reasoning.effort", format!("the model has no `{amount}`: sent as `{sent}`"));
            }
            Some(name(sent))
        }
    }
}

/// Reports the amount that the client asked for, at a host with a mere switch.
fn report_lost_amount(effort: Option<Effort>, budget: Option<u64>, losses: &mut Losses) {
    let place = match (effort, budget) {
        (Some(_), _) => "reasoning.effort",
        (None, Some(_)) => "thinking.budget_tokens",
        (None, None) => return,
    };
    losses.add(place, "the host only switches reasoning on and off");
}

/// The accepted effort that is closest; the lower of two.
fn nearest(wanted: Effort, profile: &HostProfile) -> Option<Effort> {
    let accepted = profile.efforts.iter().filter(|effort| *effort != Effort::None);
    accepted.min_by_key(|effort| (*effort as i8).abs_diff(wanted as i8))
}

/// A switch with an optional effort.
fn switched(wanted: Wanted, profile: &HostProfile, losses: &mut Losses) -> ReasoningRequest {
    match wanted {
        Wanted::Default => ReasoningRequest::default(),
        Wanted::Off if profile.reasons == Reasons::Always => {
            ReasoningRequest { effort: effort(wanted, profile, losses), ..ReasoningRequest::default() }
        }
        Wanted::Off => ReasoningRequest { mode: Some("disabled".to_owned()), ..ReasoningRequest::default() },
        Wanted::On { .. } => ReasoningRequest {
            mode: Some("enabled".to_owned()),
            effort: effort(wanted, profile, losses),
            ..ReasoningRequest::default()
        },
    }
}

/// A switch with an optional budget, for streams only.
fn enabled(
    delivery: Delivery,
    wanted: Wanted,
    profile: &HostProfile,
    losses: &mut Losses,
) -> ReasoningRequest {
    let mode = |mode: &str, budget| ReasoningRequest {
        mode: Some(mode.to_owned()),
        budget,
        ..ReasoningRequest::default()
    };
    match (wanted, delivery) {
        (Wanted::Off, _) => mode("disabled", None),
        (Wanted::Default, Delivery::Whole) if profile.reasons == Reasons::ByDefault => mode("disabled", None),
        (Wanted::Default, _) => ReasoningRequest::default(),
        (Wanted::On { .. }, Delivery::Whole) => {
            losses.add("reasoning", "the host reasons in streams only");
            mode("disabled", None)
        }
        (Wanted::On { effort, budget }, Delivery::Stream(_)) => {
            mode("enabled", budget.or(effort.map(budget_of_effort)))
        }
    }
}

fn activity(fitted: &ReasoningRequest, profile: &HostProfile) -> Activity {
    let is_off = fitted.mode.as_deref() == Some("disabled") || fitted.effort.as_deref() == Some("none");
    let is_on = fitted.mode.is_some() || fitted.effort.is_some();
    let reasons = match profile.reasons {
        Reasons::Never => false,
        Reasons::IfAsked => is_on && !is_off,
        Reasons::ByDefault => !is_off,
        Reasons::Always => true,
    };
    if reasons { Activity::Reasons } else { Activity::Idle }
}

/// Claude requires a limit.
fn require_limit(request: &mut TurnRequest, profile: &HostProfile, dialect: DialectId) {
    if dialect == anthropic_messages::ID {
        request.max_output.get_or_insert(DEFAULT_MAX_OUTPUT.min(profile.max_output));
    }
}

/// Claude's `thinking` and effort.
struct Claude<'p> {
    profile: &'p HostProfile,
    client: Client,
}

impl Claude<'_> {
    fn fit(
        &self,
        request: &mut TurnRequest,
        asked: &ReasoningRequest,
        wanted: Wanted,
        losses: &mut Losses,
    ) -> Activity {
        let Self { profile, client } = *self;
        let has = |mode| profile.thinking_modes.contains(mode);
        let mode = |mode: ThinkingMode| Some(mode.name().to_owned());
        let mut budget = None;
        let fitted = match wanted {
            Wanted::Default => ReasoningRequest::default(),
            Wanted::Off if profile.reasons == Reasons::IfAsked => ReasoningRequest::default(),
            Wanted::Off if has(ThinkingMode::Disabled) => {
                ReasoningRequest { mode: mode(ThinkingMode::Disabled), ..ReasoningRequest::default() }
            }
            Wanted::Off => {
                ReasoningRequest { effort: effort(wanted, profile, losses), ..ReasoningRequest::default() }
            }
            Wanted::On { budget, .. }
                if has(ThinkingMode::Adaptive) && (budget.is_none() || !has(ThinkingMode::Enabled)) =>
            {
                let effort =
                    if profile.efforts.is_empty() { None } else { effort_if_asked(wanted, profile, losses) };
                let shows_nothing = profile.thinking_display && client == Client::OtherDialect;
                let summary = shows_nothing.then(|| asked.summary.clone().unwrap_or_default());
                ReasoningRequest {
                    mode: mode(ThinkingMode::Adaptive),
                    effort,
                    summary,
                    ..ReasoningRequest::default()
                }
            }
            Wanted::On { effort, budget: asked } => {
                budget = budget_within(request, effort, asked, profile, losses);
                let mode = budget.and_then(|_| mode(ThinkingMode::Enabled));
                ReasoningRequest { mode, budget, ..ReasoningRequest::default() }
            }
        };
        if let (Some(budget), None) = (budget, request.max_output) {
            // The client set no limit, so the budget is added to the default limit.
            let limit = DEFAULT_MAX_OUTPUT.saturating_add(budget);
            request.max_output = Some(limit.min(profile.max_output));
        }
        require_limit(request, profile, anthropic_messages::ID);
        let activity = if budget.is_some() { Activity::Budgeted } else { activity(&fitted, profile) };
        request.reasoning = (fitted != ReasoningRequest::default()).then_some(fitted);
        if let Some(reasoning) = request.reasoning.as_mut().filter(|_| client == Client::SameDialect) {
            reasoning.extras = asked.extras.clone();
        }
        activity
    }
}

/// Adaptive thinking decides itself if the client named no amount.
fn effort_if_asked(wanted: Wanted, profile: &HostProfile, losses: &mut Losses) -> Option<String> {
    let is_open = matches!(wanted, Wanted::On { effort: None, budget: None });
    if is_open { None } else { effort(wanted, profile, losses) }
}
