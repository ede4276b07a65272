//! `[agents.*]` and `[mcp.*]`: checked in full, then refused, as what they configure is not built yet.

use toml::de::DeValue;

use super::nearest::suggestion;
use super::problem::{Placed, Reading};
use super::section::{ListForm, Section};

/// More processes than any one machine runs.
const MOST_PROCESSES: u32 = 1024;

/// The ways to reach a tool server.
const TRANSPORTS: [&str; 3] = ["stdio", "streamable-http", "sse"];

/// Reads the two sections; gives the names of the agents, so that models can be checked against them.
pub(crate) fn read(root: &Section<'_>, reading: &mut Reading<'_>) -> Vec<String> {
    let agents = root.tables("agents", reading);
    for (_, agent) in &agents {
        read_agent(agent, reading);
        reading.not_yet(agent.place(), agent.name());
    }
    for (_, server) in root.tables("mcp", reading) {
        read_tool_server(&server, reading);
        reading.not_yet(server.place(), server.name());
    }
    agents.into_iter().map(|(name, _)| name.value).collect()
}

fn read_agent(agent: &Section<'_>, reading: &mut Reading<'_>) {
    agent.expect_keys(&["command", "env", "model", "tools", "workdir", "warm", "max", "hold"], reading);
    if agent.key_place("command").is_none() {
        agent.missing("command = \"claude\"", reading);
    }
    agent.text("command", "claude", reading);
    agent.text("model", "gpt-4o-mini", reading);
    agent.text("workdir", "/srv/project", reading);
    agent.count("warm", MOST_PROCESSES, reading);
    agent.count("max", MOST_PROCESSES, reading);
    agent.duration("hold", reading);
    if let Some(tools) = agent.texts("tools", ListForm::OneOrMany, reading)
        && let [Placed { value, place }] = &tools[..]
        && value != "default"
        && agent
            .fields()
            .iter()
            .any(|field| field.key == "tools" && matches!(field.value, DeValue::String(_)))
    {
        reading.error(*place, format!("`tools` is a list, \"default\" or []: write [\"{value}\"]"));
    }
    if let Some(variables) = agent.table("env", reading) {
        for variable in variables.fields() {
            variable.text("env:ANTHROPIC_API_KEY", reading);
        }
    }
}

fn read_tool_server(server: &Section<'_>, reading: &mut Reading<'_>) {
    server.expect_keys(&["transport", "command", "url", "models", "env", "headers"], reading);
    server.texts("command", ListForm::Many, reading);
    server.text("url", "https://tools.example.com/mcp", reading);
    server.texts("models", ListForm::Many, reading);
    for key in ["env", "headers"] {
        if let Some(values) = server.table(key, reading) {
            for value in values.fields() {
                value.text("env:NAME", reading);
            }
        }
    }
    if server.key_place("transport").is_none() {
        server.missing("transport = \"stdio\"", reading);
    }
    let Some(transport) = server.text("transport", "stdio", reading) else { return };
    match transport.value.as_str() {
        "stdio" if server.key_place("command").is_none() => {
            server.missing("command = [\"program\", \"argument\"]", reading);
        }
        "streamable-http" | "sse" if server.key_place("url").is_none() => {
            server.missing("url = \"https://tools.example.com/mcp\"", reading);
        }
        known if TRANSPORTS.contains(&known) => {}
        other => {
            let hint = suggestion(other, TRANSPORTS, "transports");
            reading.error(transport.place, format!("no transport is called `{other}`{hint}"));
        }
    }
}
