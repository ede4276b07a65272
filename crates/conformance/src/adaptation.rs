//! The documented changes that fit a request to a host (docs/hosts.md, "What every translated request gets"), each as a
//! rule. [`adapted`] applies them to the original; what they do not change must arrive as it was sent.
//!
//! A rule that costs something applies only if its loss was reported at its own place, so an unreported change is found.

mod reasoning;
mod schema;
#[cfg(test)]
mod tests;

pub(crate) use schema::{DATA, NAMED};

use std::fmt::Write;

use serde_json::{Number, json};
use sha2::{Digest as _, Sha256};
use toolgate_dialect::host::{HostProfile, JsonOutput};
use toolgate_model::{
    Block, CallKind, Choice, CustomTool, DialectId, Extras, FunctionTool, JsonText, Losses, Message,
    OutputFormat, Part, Tool, TurnRequest, UserMessage,
};

/// The host that a request was written for.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// Its dialect.
    pub dialect: DialectId,
    /// What it accepts for the model.
    pub profile: &'a HostProfile,
}

/// What the host must receive.
pub fn adapted(request: &TurnRequest, host: Host<'_>, losses: &Losses) -> TurnRequest {
    let mut adapted = request.clone();
    if !host.profile.openai_fields {
        replace_openai_options(&mut adapted);
    }
    if losses.contains("logprobs") {
        adapted.openai.top_logprobs = None;
    }
    hash_user(&mut adapted, host);
    if !host.profile.custom_tools {
        wrap_custom_tools(&mut adapted, losses);
    }
    for tool in &mut adapted.tools {
        if let Tool::Function(tool) = tool {
            schema::adapt_tool(tool, host, losses);
        }
    }
    limit_output(&mut adapted, host, losses);
    reasoning::adapt(&mut adapted, host, losses);
    require_limit(&mut adapted, host);
    clamp_temperature(&mut adapted, host, losses);
    adapt_format(&mut adapted, host, losses);
    add_first_message(&mut adapted, losses);
    adapted
}

/// True if the host speaks the Messages API.
fn is_messages(host: Host<'_>) -> bool {
    host.dialect.provider == "anthropic"
}

/// The newer of OpenAI's two user fields becomes the only one of other hosts, unless both are given. The default price
/// needs no field.
fn replace_openai_options(request: &mut TurnRequest) {
    let options = &mut request.openai;
    if request.user.is_none() {
        request.user = options.safety_identifier.take();
    }
    if matches!(options.service_tier.as_deref(), Some("auto" | "default")) {
        options.service_tier = None;
    }
}

/// An id of the end user that is too long or has unusual characters is sent as its hash.
fn hash_user(request: &mut TurnRequest, Host { profile, .. }: Host<'_>) {
    let Some(user) = request.user.as_mut().filter(|_| profile.max_user > 0) else { return };
    let is_long = user.chars().count() > usize::try_from(profile.max_user).unwrap_or(usize::MAX);
    if is_long || !user.chars().all(|c| c.is_ascii_graphic()) {
        let mut hex = String::new();
        for byte in Sha256::digest(user.as_bytes()) {
            // Writing to a string cannot fail.
            write!(hex, "{byte:02x}").unwrap_or_default();
        }
        *user = hex;
    }
}

/// A tool with free text is a function with the one field `input`. Its grammar is lost.
fn wrap_custom_tools(request: &mut TurnRequest, losses: &Losses) {
    for tool in &mut request.tools {
        let Tool::Custom(CustomTool { name, description, format, extras }) = tool else { continue };
        let is_grammar = format
            .as_ref()
            .is_some_and(|format| format.to_value().get("type").is_some_and(|kind| kind != "text"));
        if is_grammar && !losses.contains(&format!("tools[{name}].format")) {
            continue;
        }
        let schema = json!({
            "type": "object",
            "properties": { "input": { "type": "string" } },
            "required": ["input"],
            "additionalProperties": false,
        });
        *tool = Tool::Function(FunctionTool {
            name: name.clone(),
            description: description.clone(),
            schema: Some(JsonText::from_value(&schema)),
            strict: None,
            extras: extras.clone(),
        });
    }
    if let Some(Choice::Named(_, kind)) = &mut request.tool_choice.choice {
        *kind = CallKind::Function;
    }
    for message in &mut request.messages {
        let Message::Assistant(message) = message else { continue };
        for block in &mut message.content {
            if let Block::ToolCall(call) = block
                && call.kind == CallKind::Custom
            {
                call.kind = CallKind::Function;
                call.arguments = json!({ "input": call.arguments }).to_string();
            }
        }
    }
}

/// A limit above the model's maximum is lowered. One below the host's minimum is raised, which is reported.
fn limit_output(request: &mut TurnRequest, Host { profile, .. }: Host<'_>, losses: &Losses) {
    let Some(limit) = &mut request.max_output else { return };
    if losses.contains("max_tokens") {
        *limit = (*limit).max(profile.min_output);
    }
    *limit = (*limit).min(profile.max_output);
}

/// The output limit of a Messages request without one: this value, and the thinking budget beside it.
const DEFAULT_LIMIT: u64 = 8192;

/// The Messages API requires a limit.
fn require_limit(request: &mut TurnRequest, host: Host<'_>) {
    if !is_messages(host) || request.max_output.is_some() {
        return;
    }
    let budget = request.reasoning.as_ref().and_then(|reasoning| reasoning.budget).unwrap_or(0);
    request.max_output = Some((DEFAULT_LIMIT + budget).min(host.profile.max_output));
}

/// A temperature above the host's maximum is sent as the maximum.
fn clamp_temperature(request: &mut TurnRequest, Host { profile, .. }: Host<'_>, losses: &Losses) {
    let temperature = &mut request.sampling.temperature;
    let max = Number::from(profile.max_temperature);
    let is_above = temperature.as_ref().and_then(Number::as_f64) > max.as_f64();
    if is_above && losses.contains("temperature") {
        *temperature = Some(max);
    }
}

/// A format that the host cannot enforce becomes an instruction.
fn adapt_format(request: &mut TurnRequest, host: Host<'_>, losses: &Losses) {
    let is_replaced = losses.contains("response_format");
    let instruction = match &mut request.output {
        OutputFormat::JsonSchema(format) if !is_replaced => {
            return schema::adapt_output(format, host, losses);
        }
        OutputFormat::Text | OutputFormat::JsonObject if !is_replaced => return,
        OutputFormat::Text => return,
        OutputFormat::JsonObject => "Reply with one JSON object and nothing else.".to_owned(),
        OutputFormat::JsonSchema(format) => format!(
            "Reply with one JSON object that follows this JSON Schema, and nothing else:\n{}",
            format.schema.as_str()
        ),
    };
    let takes_objects = matches!(host.profile.json_output, JsonOutput::Object);
    let is_schema = matches!(request.output, OutputFormat::JsonSchema(_));
    request.output = if is_schema && takes_objects { OutputFormat::JsonObject } else { OutputFormat::Text };
    request.system.push(Part::text(instruction));
}

/// A conversation that begins with an assistant message gets a user message first.
fn add_first_message(request: &mut TurnRequest, losses: &Losses) {
    if losses.contains("messages[0]") {
        let first = request.messages.iter().position(|message| !matches!(message, Message::System(_)));
        let content = vec![Part::text("Continue.")];
        let message = Message::User(UserMessage { content, extras: Extras::NONE });
        request.messages.insert(first.unwrap_or(0), message);
    }
}
