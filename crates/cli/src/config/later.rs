//! `[mcp.*]`: checked in full, then refused, as what it configures is not built yet.

use super::nearest::suggestion;
use super::problem::Reading;
use super::section::{ListForm, Section};

/// The ways to reach a tool server.
const TRANSPORTS: [&str; 3] = ["stdio", "streamable-http", "sse"];

/// Reads the section.
pub(crate) fn read(root: &Section<'_>, reading: &mut Reading<'_>) {
    for (_, server) in root.tables("mcp", reading) {
        read_tool_server(&server, reading);
        reading.not_yet(server.place(), server.name());
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
