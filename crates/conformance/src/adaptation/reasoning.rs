//! The rules for how much the model reasons.

use toolgate_dialect::host::{Effort, HostProfile, ReasoningSwitch, Reasons, ThinkingMode};
use toolgate_model::{Delivery, Losses, ReasoningRequest, Tool, TurnRequest};

use super::{DEFAULT_LIMIT, Host, is_messages};

/// What the client asked for.
#[derive(Clone, Copy, PartialEq)]
enum Wish {
    Nothing,
    Off,
    On { effort: Option<Effort>, budget: Option<u64> },
}

/// The place of a loss that says that the model reasons although it should not, or the reverse.
const LOST: &str = "reasoning";
/// The places of losses that say that the amount differs.
const LOST_AMOUNT: [&str; 2] = ["reasoning.effort", "thinking.budget_tokens"];

/// Replaces the client's settings by those that the host must receive.
pub(super) fn adapt(request: &mut TurnRequest, host: Host<'_>, losses: &Losses) {
    let asked = request.reasoning.take().unwrap_or_default();
    let wish = wish(&asked);
    let rules = Rules { host, losses, request };
    let sent = match wish {
        Wish::Nothing if rules.must_be_off() => rules.off(),
        Wish::Nothing => ReasoningRequest::default(),
        Wish::Off => rules.off(),
        Wish::On { .. } if losses.contains(LOST) && rules.must_be_off() => rules.off(),
        Wish::On { .. } if losses.contains(LOST) => ReasoningRequest::default(),
        Wish::On { effort, budget } => rules.on(effort, budget).unwrap_or_else(|| asked.clone()),
    };
    let is_off = sent.mode.as_deref() == Some("disabled") || sent.effort.as_deref() == Some("none");
    let reasons_unasked = matches!(host.profile.reasons, Reasons::ByDefault | Reasons::Always);
    let reasons = !losses.contains(LOST) || reasons_unasked && !is_off;
    // Clients of other dialects that enable reasoning expect its text.
    let is_expected = matches!(wish, Wish::On { .. }) && reasons;
    let summary = is_expected.then(|| asked.summary.unwrap_or_else(|| "auto".to_owned()));
    let is_responses = host.dialect.name == "openai-responses";
    let sent = ReasoningRequest { summary: summary.filter(|_| is_responses), ..sent };
    request.reasoning = (sent != ReasoningRequest::default()).then_some(sent);
}

fn wish(asked: &ReasoningRequest) -> Wish {
    let ReasoningRequest { effort, budget, mode, summary: _, extras: _ } = asked;
    if mode.as_deref() == Some("disabled") || effort.as_deref() == Some("none") {
        return Wish::Off;
    }
    if mode.is_none() && effort.is_none() && budget.is_none() {
        return Wish::Nothing;
    }
    let known = |name: &str| Effort::ALL.iter().copied().find(|effort| effort.name() == name);
    // An unknown effort is taken for the usual one.
    let effort = effort.as_deref().map(|name| known(name).unwrap_or(Effort::Medium));
    Wish::On { effort, budget: *budget }
}

struct Rules<'a> {
    host: Host<'a>,
    losses: &'a Losses,
    request: &'a TurnRequest,
}

impl Rules<'_> {
    fn profile(&self) -> &HostProfile {
        self.host.profile
    }

    /// Some models take functions, or whole replies, only while they do not reason.
    fn must_be_off(&self) -> bool {
        let reasons_unasked = matches!(self.profile().reasons, Reasons::ByDefault | Reasons::Always);
        let is_asked = self.losses.contains(LOST);
        let has_functions = self.request.tools.iter().any(|tool| matches!(tool, Tool::Function(_)));
        let is_chat = self.host.dialect.name == "openai-chat";
        let excludes_functions = is_chat && self.profile().tools_without_reasoning && has_functions;
        let excludes_whole_replies = self.profile().reasoning_switch == ReasoningSwitch::EnableThinking
            && self.request.delivery == Delivery::Whole;
        (reasons_unasked || is_asked) && (excludes_functions || excludes_whole_replies)
    }

    /// Off: said where the model would reason otherwise. Where it cannot be off, the lowest effort, and a loss.
    fn off(&self) -> ReasoningRequest {
        let profile = self.profile();
        let disabled = ReasoningRequest { mode: Some("disabled".to_owned()), ..ReasoningRequest::default() };
        let least = if self.losses.contains(LOST) { profile.efforts.iter().next() } else { None };
        let least = ReasoningRequest { effort: least.map(name), ..ReasoningRequest::default() };
        if profile.reasons == Reasons::Never {
            return ReasoningRequest::default();
        }
        match self.profile().reasoning_switch {
            ReasoningSwitch::None => ReasoningRequest::default(),
            ReasoningSwitch::Claude if !is_messages(self.host) => ReasoningRequest::default(),
            ReasoningSwitch::Claude if profile.reasons == Reasons::IfAsked => ReasoningRequest::default(),
            ReasoningSwitch::Claude if profile.thinking_modes.contains(ThinkingMode::Disabled) => disabled,
            ReasoningSwitch::Effort | ReasoningSwitch::ReasoningEffort
                if profile.efforts.contains(Effort::None) =>
            {
                ReasoningRequest { effort: Some(name(Effort::None)), ..ReasoningRequest::default() }
            }
            ReasoningSwitch::Effort | ReasoningSwitch::ReasoningEffort
                if profile.reasons == Reasons::IfAsked =>
            {
                ReasoningRequest::default()
            }
            ReasoningSwitch::EnableThinking => disabled,
            ReasoningSwitch::ReasoningEnabled
            | ReasoningSwitch::ThinkingType
            | ReasoningSwitch::ThinkingAdaptive
                if profile.reasons != Reasons::Always =>
            {
                disabled
            }
            ReasoningSwitch::Claude
            | ReasoningSwitch::Effort
            | ReasoningSwitch::ReasoningEffort
            | ReasoningSwitch::ReasoningEnabled
            | ReasoningSwitch::ThinkingType
            | ReasoningSwitch::ThinkingAdaptive => least,
        }
    }

    /// On: the same amount in the host's unit. `None` if nothing permits a difference.
    fn on(&self, effort: Option<Effort>, budget: Option<u64>) -> Option<ReasoningRequest> {
        let profile = self.profile();
        let mode = |mode: &str| Some(mode.to_owned());
        let is_claude = self.profile().reasoning_switch == ReasoningSwitch::Claude && is_messages(self.host);
        match self.profile().reasoning_switch {
            // Nothing has to be said to a model that always reasons.
            ReasoningSwitch::None | ReasoningSwitch::Claude if !is_claude => {
                (profile.reasons == Reasons::Always).then(ReasoningRequest::default)
            }
            ReasoningSwitch::None | ReasoningSwitch::Claude => self.claude(effort, budget),
            ReasoningSwitch::Effort | ReasoningSwitch::ReasoningEffort => {
                let effort = self.effort(effort, budget).ok()?;
                Some(ReasoningRequest { effort, ..ReasoningRequest::default() })
            }
            ReasoningSwitch::ReasoningEnabled | ReasoningSwitch::ThinkingType => {
                let effort = self.effort(effort, budget).ok()?;
                Some(ReasoningRequest { mode: mode("enabled"), effort, ..ReasoningRequest::default() })
            }
            ReasoningSwitch::ThinkingAdaptive => {
                let effort = self.effort(effort, budget).ok()?;
                Some(ReasoningRequest { mode: mode("adaptive"), effort, ..ReasoningRequest::default() })
            }
            ReasoningSwitch::EnableThinking => {
                let budget = budget.or(effort.map(budget_of));
                Some(ReasoningRequest { mode: mode("enabled"), budget, ..ReasoningRequest::default() })
            }
        }
    }

    /// Claude decides itself where it can, and else gets a budget.
    fn claude(&self, effort: Option<Effort>, budget: Option<u64>) -> Option<ReasoningRequest> {
        let modes = self.profile().thinking_modes;
        let is_adaptive = modes.contains(ThinkingMode::Adaptive)
            && (budget.is_none() || !modes.contains(ThinkingMode::Enabled));
        if is_adaptive {
            let has_amount = effort.is_some() || budget.is_some();
            let effort = if has_amount { self.effort(effort, budget).ok()? } else { None };
            let mode = Some("adaptive".to_owned());
            return Some(ReasoningRequest { mode, effort, ..ReasoningRequest::default() });
        }
        let budget = self.budget(effort, budget)?;
        let (mode, budget) = (Some("enabled".to_owned()), Some(budget));
        Some(ReasoningRequest { mode, budget, ..ReasoningRequest::default() })
    }

    /// The client's effort, or the one of its budget. If the model has no such effort, the nearest, and a loss.
    fn effort(&self, effort: Option<Effort>, budget: Option<u64>) -> Result<Option<String>, NothingPermits> {
        let wanted = effort.or(budget.map(effort_of));
        if wanted.is_none() && self.profile().reasons != Reasons::IfAsked {
            return Ok(None);
        }
        let asked = wanted.unwrap_or(Effort::Medium);
        let accepted = self.profile().efforts.iter().filter(|effort| *effort != Effort::None);
        let nearest = accepted.min_by_key(|effort| (*effort as i8).abs_diff(asked as i8));
        let is_lost = LOST_AMOUNT.iter().any(|place| self.losses.contains(place));
        if nearest == Some(asked) || is_lost || wanted.is_none() {
            Ok(nearest.map(name))
        } else {
            Err(NothingPermits)
        }
    }

    /// The client's budget if the output limit leaves room for it; one of an effort leaves a quarter
    /// of the limit, or the default limit if the client set none.
    fn budget(&self, effort: Option<Effort>, budget: Option<u64>) -> Option<u64> {
        let wanted = budget.unwrap_or_else(|| budget_of(effort.unwrap_or(Effort::Medium)));
        let default = (DEFAULT_LIMIT + wanted).min(self.profile().max_output);
        let limit = self.request.max_output.unwrap_or(default);
        let is_lowered = wanted >= limit;
        if budget.is_some() && (is_lowered || wanted < MIN_BUDGET) && !self.losses.contains(LOST_AMOUNT[1]) {
            return None;
        }
        if budget.is_some() && !is_lowered {
            return Some(wanted.max(MIN_BUDGET));
        }
        let room = match self.request.max_output {
            Some(limit) => limit / 4 * 3,
            None => (limit / 4 * 3).max(limit.saturating_sub(DEFAULT_LIMIT)),
        };
        Some(wanted.max(MIN_BUDGET).min(room))
    }
}

/// No rule and no loss permits a difference.
struct NothingPermits;

/// The smallest budget that Claude accepts.
const MIN_BUDGET: u64 = 1024;

fn name(effort: Effort) -> String {
    effort.name().to_owned()
}

/// Budgets in the unit of efforts.
fn effort_of(budget: u64) -> Effort {
    match budget {
        0..=4096 => Effort::Low,
        4097..=16_384 => Effort::Medium,
        _ => Effort::High,
    }
}

/// Efforts in the unit of budgets.
fn budget_of(effort: Effort) -> u64 {
    match effort {
        Effort::None | Effort::Minimal => 1024,
        Effort::Low => 2048,
        Effort::Medium => 8192,
        Effort::High => 16_384,
        Effort::Xhigh | Effort::Max => 32_768,
    }
}
