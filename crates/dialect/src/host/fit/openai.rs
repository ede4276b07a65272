//! Settings that OpenAI's dialects share and other hosts refuse.

use toolgate_model::{Losses, OpenAiOptions, TurnRequest};

use super::super::{HostProfile, Param};
use super::reasoning::Activity;
use super::sampling::refusal;

/// Removes what the host refuses.
pub(super) fn fit(request: &mut TurnRequest, profile: &HostProfile, activity: Activity, losses: &mut Losses) {
    let options = &mut request.openai;
    if let Some(reason) = refusal(Param::Logprobs, profile, activity) {
        if options.logprobs.take() == Some(true) {
            losses.add("logprobs", reason);
        }
        options.top_logprobs = None;
    }
    if profile.openai_fields {
        return;
    }
    if request.user.is_none() {
        request.user = options.safety_identifier.take();
    }
    if matches!(options.service_tier.as_deref(), Some("auto" | "default")) {
        options.service_tier = None;
    }
    let (logprobs, top_logprobs) = (options.logprobs.take(), options.top_logprobs.take());
    for name in options.names() {
        losses.add(name, "only OpenAI's own hosts accept it");
    }
    *options = OpenAiOptions { logprobs, top_logprobs, ..OpenAiOptions::default() };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostFacts;
    use crate::{anthropic_messages, openai_chat};

    fn options() -> OpenAiOptions {
        OpenAiOptions {
            verbosity: Some("low".to_owned()),
            service_tier: Some("flex".to_owned()),
            safety_identifier: Some("s".to_owned()),
            logprobs: Some(true),
            top_logprobs: Some(2),
            ..OpenAiOptions::default()
        }
    }

    #[track_caller]
    fn check(profile: &HostProfile, activity: Activity, expect: &OpenAiOptions, lost: &[&str]) {
        let mut request = TurnRequest::new("m", Vec::new());
        request.openai = options();
        let mut losses = Losses::default();
        fit(&mut request, profile, activity, &mut losses);
        assert_eq!(&request.openai, expect);
        assert_eq!(losses.iter().map(|loss| loss.place.as_str()).collect::<Vec<_>>(), lost);
        assert_eq!(request.user.is_some(), !profile.openai_fields);
    }

    #[test]
    fn openais_settings_reach_openai_only() {
        let named = |dialect, name: &str| HostFacts::named(dialect, name).expect("a profile");
        let openai = named(openai_chat::ID, "openai").profile("gpt-5.2");
        check(&openai, Activity::Idle, &options(), &[]);
        let without_logprobs = OpenAiOptions { logprobs: None, top_logprobs: None, ..options() };
        check(&openai, Activity::Reasons, &without_logprobs, &["logprobs"]);
        let only_logprobs =
            OpenAiOptions { logprobs: Some(true), top_logprobs: Some(2), ..OpenAiOptions::default() };
        let vllm = named(openai_chat::ID, "vllm").profile("m");
        check(&vllm, Activity::Idle, &only_logprobs, &["verbosity", "service_tier"]);
        let claude = named(anthropic_messages::ID, "anthropic").profile("claude-opus-5");
        let lost = ["logprobs", "verbosity", "service_tier"];
        check(&claude, Activity::Idle, &OpenAiOptions::default(), &lost);
    }
}
