//! `[mcp.*]`: checks the section and then refuses it, because MCP servers are not supported yet.

use super::nearest::suggestion;
use super::problem::ReadContext;
use super::section::{ListForm, Section};

/// The transports of MCP servers.
const TRANSPORTS: [&str; 3] = ["stdio", "streamable-http", "sse"];

/// Reads the section.
pub(crate) fn read(root: &Section<'_>, context: &mut ReadContext<'_>) {
    for (_, server) in root.tables("mcp", context) {
        read_tool_server(&server, context);
        context.not_supported(server.position(), server.name());
    }
}

fn read_tool_server(server: &Section<'_>, context: &mut ReadContext<'_>) {
    server.expect_keys(&["transport", "command", "url", "models", "env", "headers"], context);
    server.texts("command", ListForm::Many, context);
    server.text("url", "https://tools.example.com/mcp", context);
    server.texts("models", ListForm::Many, context);
    for key in ["env", "headers"] {
        if let Some(values) = server.table(key, context) {
            for value in values.fields() {
                value.text("env:NAME", context);
            }
        }
    }
    if server.key_position("transport").is_none() {
        server.missing("transport = \"stdio\"", context);
    }
    let Some(transport) = server.text("transport", "stdio", context) else { return };
    match transport.value.as_str() {
        "stdio" if server.key_position("command").is_none() => {
            server.missing("command = [\"program\", \"argument\"]", context);
        }
        "streamable-http" | "sse" if server.key_position("url").is_none() => {
            server.missing("url = \"https://tools.example.com/mcp\"", context);
        }
        known if TRANSPORTS.contains(&known) => {}
        other => {
            let hint = suggestion(other, TRANSPORTS, "transports");
            context.error(transport.position, format!("unknown transport `{other}`{hint}"));
        }
    }
}
