//! Sampling settings and stop sequences.

use serde_json::Number;
use toolgate_model::{Losses, Sampling};

use super::super::{HostProfile, Param};
use super::reasoning::Activity;

/// Removes what the host refuses. A value that equals the default is no loss.
pub(super) fn fit(sampling: &mut Sampling, profile: &HostProfile, activity: Activity, losses: &mut Losses) {
    for param in Param::ALL {
        let Some(reason) = refusal(*param, profile, activity) else { continue };
        if remove(sampling, *param) == Removed::Loss {
            losses.add(param.name(), reason);
        }
    }
    let excludes_top_p = profile.one_of_temperature_top_p && sampling.temperature.is_some();
    if excludes_top_p && remove(sampling, Param::TopP) == Removed::Loss {
        losses.add("top_p", "the host accepts either `temperature` or `top_p`");
    }
    let is_greedy = sampling.temperature.as_ref().and_then(Number::as_f64) == Some(0.0);
    if is_greedy && !profile.top_p_when_greedy && remove(sampling, Param::TopP) == Removed::Loss {
        losses.add("top_p", "the host does not accept it with temperature 0");
    }
    clamp_temperature(sampling, profile, losses);
    if profile.sampling_inside_0_1 {
        move_inside("temperature", &mut sampling.temperature, losses);
        move_inside("top_p", &mut sampling.top_p, losses);
    }
    fit_stops(&mut sampling.stop, profile, losses);
}

/// Why the host refuses a setting; `None` if it does not.
pub(super) fn refusal(param: Param, profile: &HostProfile, activity: Activity) -> Option<&'static str> {
    let is_reasoning = activity != Activity::Idle;
    if profile.refused.contains(param) {
        Some("the host does not accept it")
    } else if is_reasoning && profile.refused_while_reasoning.contains(param) {
        Some("the host does not accept it while the model reasons")
    } else {
        None
    }
}

#[derive(PartialEq)]
enum Removed {
    Nothing,
    Loss,
}

fn remove(sampling: &mut Sampling, param: Param) -> Removed {
    let (value, default) = match param {
        Param::Temperature => (sampling.temperature.take(), Some(1.0)),
        Param::TopP => (sampling.top_p.take(), Some(1.0)),
        Param::TopK => (sampling.top_k.take(), None),
        Param::FrequencyPenalty => (sampling.frequency_penalty.take(), Some(0.0)),
        Param::PresencePenalty => (sampling.presence_penalty.take(), Some(0.0)),
        Param::Seed => (sampling.seed.take(), None),
        Param::Stop if sampling.stop.is_empty() => return Removed::Nothing,
        Param::Stop => {
            sampling.stop.clear();
            return Removed::Loss;
        }
        // One of the settings that OpenAI's dialects share.
        Param::Logprobs => return Removed::Nothing,
    };
    match value {
        Some(value) if value.as_f64() != default => Removed::Loss,
        Some(_) | None => Removed::Nothing,
    }
}

fn clamp_temperature(sampling: &mut Sampling, profile: &HostProfile, losses: &mut Losses) {
    let Some(temperature) = sampling.temperature.as_ref().and_then(Number::as_f64) else { return };
    let max = u32::try_from(profile.max_temperature).unwrap_or(u32::MAX);
    if temperature > f64::from(max) {
        losses.add("temperature", format!("the host accepts at most {max}: sent as {max}"));
        sampling.temperature = Some(Number::from(max));
    }
}

/// Moves a value off the ends of the range. The default, 1, is as good as unchanged.
fn move_inside(name: &str, value: &mut Option<Number>, losses: &mut Losses) {
    let Some(number) = value.as_ref().and_then(Number::as_f64) else { return };
    if number <= 0.0 {
        losses.add(name, "the host accepts only values above 0: sent as 0.01");
        *value = Number::from_f64(0.01);
    } else if number >= 1.0 {
        *value = Number::from_f64(0.99);
    }
}

fn fit_stops(stops: &mut Vec<String>, profile: &HostProfile, losses: &mut Losses) {
    if !profile.blank_text && stops.iter().any(|stop| stop.trim().is_empty()) {
        stops.retain(|stop| !stop.trim().is_empty());
        losses.add("stop", "the host does not accept stop sequences of white space");
    }
    let max = usize::try_from(profile.max_stops).unwrap_or(usize::MAX);
    if stops.len() > max {
        stops.truncate(max);
        losses.add("stop", format!("the host accepts {max} stop sequences; the rest is dropped"));
    }
}
