//! Changes a request of another dialect to what a host accepts, and reports what that costs. Dialects then only write
//! what is left.

mod budget;
mod choice;
mod custom_tools;
mod format;
mod messages;
mod openai;
mod parts;
mod provider_tools;
mod reasoning;
mod sampling;
mod schema;
mod user;

#[cfg(test)]
mod tests;

use toolgate_model::{DialectId, Losses, TurnError, TurnRequest, pairing};

pub(crate) use self::custom_tools::unwrapped;
pub(crate) use self::reasoning::DEFAULT_MAX_OUTPUT;
use super::HostProfile;

/// Whether the client speaks the host's dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// It does, but it wrote the request for another model.
    SameDialect,
    /// It does not.
    OtherDialect,
}

/// Fits the request to the profile of a host that speaks `dialect`. Fails if the request makes no sense without
/// something that the host does not have.
pub(crate) fn fit(
    request: &mut TurnRequest,
    profile: &HostProfile,
    dialect: DialectId,
    client: Client,
    losses: &mut Losses,
) -> Result<(), TurnError> {
    if client == Client::OtherDialect && pairing::check(&request.messages).is_err() {
        pairing::repair(&mut request.messages, losses);
    }
    provider_tools::leave_out(request, dialect, losses)?;
    if !profile.openai_fields {
        offer_allowed_tools(request);
    }
    if !profile.custom_tools {
        custom_tools::wrap(request, losses);
    }
    for tool in &mut request.tools {
        schema::fit_tool(tool, profile, dialect, client, losses);
    }
    request.max_output = request.max_output.map(|limit| limit_within(limit, profile, losses));
    let activity = reasoning::fit(request, profile, dialect, client, losses)?;
    choice::fit(request, profile, dialect, activity, losses);
    sampling::fit(&mut request.sampling, profile, activity, losses);
    openai::fit(request, profile, activity, losses);
    format::fit(request, profile, dialect, losses);
    parts::fit(request, profile, losses);
    messages::fit(request, profile, losses);
    user::fit(&mut request.user, profile, losses);
    Ok(())
}

/// Only OpenAI can offer a tool and forbid its calls. Other hosts are offered only the tools that may be called.
fn offer_allowed_tools(request: &mut TurnRequest) {
    let choice = &request.tool_choice;
    request.tools.retain(|tool| choice.allows(tool));
    request.tool_choice.allowed = None;
}

/// A limit above the model's maximum is lowered without a report: the model could never have used it.
fn limit_within(limit: u64, profile: &HostProfile, losses: &mut Losses) -> u64 {
    if limit < profile.min_output {
        losses.add("max_tokens", format!("raised to {}, the host's minimum", profile.min_output));
    }
    limit.max(profile.min_output).min(profile.max_output)
}
