//! The tool choice.

use toolgate_model::{Choice, DialectId, Losses, Parallel, Tool, ToolName, TurnRequest};

use super::super::{ForcedCalls, HostProfile};
use super::reasoning::Activity;

/// Fits the choice to the tools that are left and to the choices that the host knows.
pub(super) fn fit(
    request: &mut TurnRequest,
    profile: &HostProfile,
    dialect: DialectId,
    activity: Activity,
    losses: &mut Losses,
) {
    drop_impossible(request, dialect, losses);
    if let Some(forced) = request.tool_choice.choice.clone().filter(is_forced) {
        request.tool_choice.choice = Some(forced_call(forced, request, profile, activity, losses));
    }
    if request.tools.is_empty() {
        request.tool_choice.choice = None;
        request.tool_choice.parallel = None;
    }
    if !profile.parallel_tool_calls && request.tool_choice.parallel.take() == Some(Parallel::Forbidden) {
        losses.add("parallel_tool_calls", "the host has no such setting: several calls are possible");
    }
}

fn is_forced(choice: &Choice) -> bool {
    matches!(choice, Choice::Any | Choice::Named(..))
}

/// A choice of a tool that is not offered, or of a form that the host does not know, leaves the choice to the model.
fn drop_impossible(request: &mut TurnRequest, dialect: DialectId, losses: &mut Losses) {
    let reason = match &request.tool_choice.choice {
        Some(Choice::Named(name, _)) if !is_offered(&request.tools, name) => {
            format!("the tool `{name}` cannot be offered to this host")
        }
        Some(Choice::Any) if request.tools.is_empty() => "the host knows none of the tools".to_owned(),
        Some(Choice::Provider(opaque)) if opaque.dialect != dialect => {
            format!("the host does not know the form `{}`", opaque.kind)
        }
        Some(Choice::Auto | Choice::Any | Choice::None | Choice::Named(..) | Choice::Provider(_)) | None => {
            return;
        }
    };
    losses.add("tool_choice", reason);
    request.tool_choice.choice = None;
}

fn is_offered(tools: &[Tool], name: &ToolName) -> bool {
    tools.iter().any(|tool| tool.name() == Some(name.as_str()))
}

fn forced_call(
    forced: Choice,
    request: &mut TurnRequest,
    profile: &HostProfile,
    activity: Activity,
    losses: &mut Losses,
) -> Choice {
    let is_refused = match profile.forced_calls {
        ForcedCalls::Any | ForcedCalls::RequiredOnly => false,
        ForcedCalls::NotWhileReasoning => is_incompatible(activity, profile),
        ForcedCalls::None => true,
    };
    if is_refused {
        losses.add("tool_choice", "the host does not force calls of this model: sent as auto"); // T32
        return Choice::Auto;
    }
    if let Choice::Named(name, _) = &forced
        && profile.forced_calls == ForcedCalls::RequiredOnly
    {
        // The only tool that is offered must be the one that is called.
        request.tools.retain(|tool| tool.name() == Some(name.as_str()));
        return Choice::Any;
    }
    forced
}

/// Claude refuses forced calls only while it thinks within a budget; others whenever they reason.
fn is_incompatible(activity: Activity, profile: &HostProfile) -> bool {
    match activity {
        Activity::Budgeted => true,
        Activity::Reasons => profile.thinking_modes.is_empty(),
        Activity::Idle => false,
    }
}
