//! Schemas of tools and of the output.

use toolgate_model::{DialectId, Losses, SchemaFormat, Tool};

use super::super::HostProfile;
use crate::{anthropic_messages, tool_schema};

/// Keywords that Claude refuses in strict tools and output formats.
const REFUSED_BY_CLAUDE: [&str; 9] = [
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "maxItems",
    "uniqueItems",
];

/// Fits the schema of a tool (T24).
pub(super) fn fit_tool(tool: &mut Tool, profile: &HostProfile, dialect: DialectId, losses: &mut Losses) {
    let Tool::Function(tool) = tool else { return };
    let mut schema = tool_schema::for_host(tool.name.as_str(), tool.schema.as_ref(), losses);
    if !profile.strict_tools && tool.strict.take() == Some(true) {
        losses.add(format!("tools[{}].strict", tool.name), "the host does not guarantee it");
    }
    if tool.strict == Some(true) && dialect == anthropic_messages::ID {
        schema = tool_schema::without(&REFUSED_BY_CLAUDE, tool.name.as_str(), schema, losses);
    }
    tool.schema = Some(schema);
}

/// Fits the schema of the output.
pub(super) fn fit_output(_format: &mut SchemaFormat, _dialect: DialectId, _losses: &mut Losses) {}
