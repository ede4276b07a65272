//! The system prompt of an agent: the program's own, the client's instructions, and the limits of the sandbox.

use serde_json::Value;
use toolgate_dialect::claude_stream_json::write::SystemPrompt;

use super::config::{AgentConfig, Builtins, SystemMode};
use super::launch::Launch;
use super::sandbox;

/// The system prompt for a client's instructions, which are Messages API JSON.
pub(super) fn system(written: &Value, config: &AgentConfig) -> SystemPrompt {
    let blocks = written.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = blocks.iter().filter_map(|block| block["text"].as_str().map(str::to_owned));
    match config.system {
        SystemMode::Replace if config.shows_only_instructions() => SystemPrompt::Only(texts.collect()),
        SystemMode::Replace => SystemPrompt::Replace(texts.collect()),
        SystemMode::Append => {
            let joined = texts.collect::<Vec<_>>().join("\n\n");
            if joined.is_empty() { SystemPrompt::Default } else { SystemPrompt::Append(joined) }
        }
    }
}

/// Tells an agent with built-in tools the limits of its sandbox.
pub(super) fn with_notice(system: SystemPrompt, launch: &Launch, config: &AgentConfig) -> SystemPrompt {
    let notice = sandbox::notice(config).filter(|_| launch.builtins != Builtins::None);
    match (system, notice) {
        // Without built-in tools there is nothing that a sandbox could stop.
        (system, None) | (system @ SystemPrompt::Only(_), Some(_)) => system,
        (SystemPrompt::Replace(mut texts), Some(notice)) => {
            texts.push(notice);
            SystemPrompt::Replace(texts)
        }
        (SystemPrompt::Append(text), Some(notice)) => SystemPrompt::Append(format!("{text}\n\n{notice}")),
        (SystemPrompt::Default, Some(notice)) => SystemPrompt::Append(notice),
    }
}
