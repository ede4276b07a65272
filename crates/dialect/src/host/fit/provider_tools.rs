//! Tools that only their provider can run.

use toolgate_model::{Choice, DialectId, Losses, Opaque, Tool, TurnError, TurnRequest};

/// Leaves out the tools of other providers. A request that demands the call of such a tool is refused: whatever the
/// model wrote instead would be taken for the tool's output.
pub(super) fn leave_out(
    request: &mut TurnRequest,
    dialect: DialectId,
    losses: &mut Losses,
) -> Result<(), TurnError> {
    let mut left_out = Vec::new();
    request.tools.retain(|tool| match tool {
        Tool::Provider(opaque) if opaque.write(dialect, "tools", losses).is_none() => {
            left_out.push(opaque.clone());
            false
        }
        Tool::Provider(_) | Tool::Function(_) | Tool::Custom(_) => true,
    });
    let demanded = match &request.tool_choice.choice {
        Some(Choice::Any) if request.tools.is_empty() => left_out.first(),
        Some(Choice::Named(name, _)) => left_out.iter().find(|tool| tool_name(tool) == name.as_str()),
        Some(Choice::Provider(choice)) => left_out.iter().find(|tool| tool.kind == choice.kind),
        Some(Choice::Any | Choice::Auto | Choice::None) | None => None,
    };
    match demanded {
        None => Ok(()),
        Some(tool) => Err(TurnError::invalid_param(
            "tool_choice",
            format!(
                "the tool `{}` runs only at hosts with the dialect {}: use a model of such a host, or offer a tool of \
                 your own",
                tool_name(tool),
                tool.dialect
            ),
        )),
    }
}

fn tool_name(tool: &Opaque) -> &str {
    tool.fields.get("name").and_then(serde_json::Value::as_str).unwrap_or(&tool.kind)
}
