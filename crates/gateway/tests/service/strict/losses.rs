//! What the host did not get must be in the loss header, and nothing else.

use serde_json::Value;

use super::cases::{Case, Choice, Extra, Thinking};
use super::clients::{IMAGE, QUESTION, STOP};

/// Checks one request that the host accepted.
pub(super) fn check(case: &Case, received: &Value, thinks: bool, loss: &str) -> Result<(), String> {
    let text = received.to_string();
    let reported = |words: &[&str]| words.iter().any(|word| loss.contains(word));
    let silent = |what: &str| Err(format!("{what} is lost in silence (losses: {loss:?})"));
    if !text.contains(QUESTION) {
        return silent("the question");
    }
    let about_thinking = reported(&["thinking", "reasoning", "effort"]);
    match case.thinking {
        Thinking::On | Thinking::Adaptive if !thinks && !about_thinking => return silent("thinking: on"),
        Thinking::Off if thinks && !about_thinking => return silent("thinking: off"),
        Thinking::Unsaid | Thinking::On | Thinking::Adaptive | Thinking::Off => {}
    }
    for tool in case.tools {
        if !text.contains(tool.name()) {
            return silent(tool.name());
        }
    }
    let choice = &received["tool_choice"];
    let is_forced = choice == "required"
        || choice == "any"
        || choice.is_object() && choice["type"] != "auto" && choice["type"] != "none";
    if case.choice != Choice::Unsaid && !is_forced && !reported(&["tool_choice"]) {
        return silent("tool_choice");
    }
    for extra in case.extras {
        let has = |fields: &[&str]| fields.iter().any(|field| !received[*field].is_null());
        let (what, is_there, words): (&str, bool, &[&str]) = match extra {
            Extra::Image => ("the image", text.contains(IMAGE), &["image"]),
            Extra::Format => ("the format", text.contains("capital_city"), &["format", "output"]),
            Extra::Sampling => ("temperature", has(&["temperature"]), &["temperature"]),
            Extra::Stop => ("stop", text.contains(STOP), &["stop"]),
            Extra::User => {
                ("user", has(&["user", "metadata", "user_id", "safety_identifier"]), &["user", "metadata"])
            }
            // No model writes more than its own limit, so nothing is lost.
            Extra::HugeLimit => continue,
            Extra::Unusual(unusual) => {
                let (is_there, words) = unusual.find(received);
                ("something unusual", is_there, words)
            }
            Extra::ForeignHistory => ("the history", text.contains("Bern"), &[]),
        };
        if !is_there && !reported(words) {
            return silent(what);
        }
    }
    if super::is_ordinary(case) && case.choice == Choice::Unsaid && !loss.is_empty() && case.tools.is_empty()
    {
        return Err(format!("an ordinary request has losses: {loss}"));
    }
    Ok(())
}
