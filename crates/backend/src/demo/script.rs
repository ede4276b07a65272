//! Decides what the demo model does next.

use toolgate_model::{
    Block, CallKind, Choice, Message, OutputFormat, Parallel, Part, Tool, ToolName, ToolOutcome, ToolResults,
    TurnRequest,
};

use super::arguments;

/// How much of the user's text the model repeats.
const MAX_ECHO_CHARS: usize = 400;

/// The maximum number of calls in one reply.
const MAX_CALLS: usize = 16;

/// The model's next action.
pub(super) enum Action {
    Say(String),
    Call(Vec<PlannedCall>),
}

/// A call to make.
pub(super) struct PlannedCall {
    pub(super) name: ToolName,
    pub(super) kind: CallKind,
    pub(super) arguments: String,
}

/// Decides from the conversation alone.
pub(super) fn next_action(request: &TurnRequest) -> Action {
    let user_text = last_user_text(request);
    let fresh_results = latest_results(request);
    let calls = match fresh_results {
        // Report results instead of calling again, or the conversation would never end.
        Some(_) => Vec::new(),
        None => planned_calls(request, &user_text),
    };
    if !calls.is_empty() {
        return Action::Call(calls);
    }
    match (&request.output, fresh_results) {
        (OutputFormat::JsonSchema(format), _) => {
            Action::Say(arguments::fill(Some(&format.schema), &user_text))
        }
        (OutputFormat::JsonObject, _) => {
            Action::Say(serde_json::json!({ "you_said": echo(&user_text) }).to_string())
        }
        (OutputFormat::Text, Some(results)) => Action::Say(report(request, results)),
        (OutputFormat::Text, None) => Action::Say(greet(request, &user_text)),
    }
}

/// The text before the calls.
pub(super) fn announce(calls: &[PlannedCall]) -> String {
    let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
    format!("I will call {}.", names.join(" and "))
}

fn planned_calls(request: &TurnRequest, user_text: &str) -> Vec<PlannedCall> {
    let forced = match &request.tool_choice.choice {
        Some(Choice::None) => return Vec::new(),
        Some(Choice::Named(name, _)) => request.tools.iter().find(|tool| tool.name() == Some(name.as_str())),
        Some(Choice::Any) => request.tools.iter().find(|tool| tool.name().is_some()),
        Some(Choice::Auto | Choice::Provider(_)) | None => None,
    };
    let mut calls: Vec<PlannedCall> = mentions(&request.tools, user_text)
        .into_iter()
        .filter(|(tool, _)| match &request.tool_choice.choice {
            Some(Choice::Named(name, _)) => tool.name() == Some(name.as_str()),
            Some(Choice::Auto | Choice::Any | Choice::None | Choice::Provider(_)) | None => true,
        })
        .flat_map(|(tool, words)| subjects(words).into_iter().filter_map(move |subject| plan(tool, subject)))
        .take(MAX_CALLS)
        .collect();
    if calls.is_empty() {
        calls.extend(forced.and_then(|tool| plan(tool, user_text)));
    }
    if request.tool_choice.parallel == Some(Parallel::Forbidden) {
        calls.truncate(1);
    }
    calls
}

/// The tools whose names occur in the text, in order, each with the text up to the next one.
fn mentions<'a>(tools: &'a [Tool], user_text: &'a str) -> Vec<(&'a Tool, &'a str)> {
    let mut found: Vec<(usize, usize, &Tool)> = Vec::new();
    for tool in tools {
        let Some(name) = tool.name().filter(|name| !name.is_empty()) else { continue };
        for name in [Some(name), short_name(name)].into_iter().flatten() {
            for (start, _) in user_text.match_indices(name) {
                if is_whole_name(user_text, start, start + name.len()) {
                    found.push((start, start + name.len(), tool));
                }
            }
        }
    }
    found.sort_by_key(|(start, ..)| *start);
    let ends: Vec<usize> = found.iter().skip(1).map(|(start, ..)| *start).chain([user_text.len()]).collect();
    found
        .into_iter()
        .zip(ends)
        .map(|((_, end, tool), next)| (tool, &user_text[end.min(next)..next]))
        .collect()
}

/// The short name of a tool that an agent offers as `mcp__SERVER__TOOL`.
fn short_name(name: &str) -> Option<&str> {
    let (_, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    (!tool.is_empty()).then_some(tool)
}

/// `get_weather` does not occur in `get_weather_history`.
fn is_whole_name(text: &str, start: usize, end: usize) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
    !text[..start].ends_with(is_part) && !text[end..].starts_with(is_part)
}

/// What to call a tool for: the text with a JSON object, or each of "for Paris and Rome".
fn subjects(words: &str) -> Vec<&str> {
    if words.contains('{') {
        return vec![words];
    }
    let Some((_, after)) = words.split_once("for ") else { return vec![words] };
    let sentence = after.split(['.', '\n', '?', '!', ';']).next().unwrap_or(after);
    let parts = sentence.split(',').flat_map(|part| part.split(" and "));
    let named: Vec<&str> = parts.map(without_linking_words).filter(|part| !part.is_empty()).collect();
    if named.is_empty() { vec![words] } else { named }
}

/// Strips words such as `then call` that link two requests.
fn without_linking_words(part: &str) -> &str {
    const LINKING: [&str; 7] = ["and", "for", "then", "also", "call", "use", "please"];
    let is_linking = |word: &str| LINKING.contains(&word.to_ascii_lowercase().as_str());
    let mut part = part.trim();
    while let Some(word) = part.split_whitespace().next().filter(|word| is_linking(word)) {
        part = part[word.len()..].trim_start();
    }
    while let Some(word) = part.split_whitespace().next_back().filter(|word| is_linking(word)) {
        part = part[..part.len() - word.len()].trim_end();
    }
    part.trim_matches(['"', '\'', ' '])
}

fn plan(tool: &Tool, subject: &str) -> Option<PlannedCall> {
    let (name, kind, arguments) = match tool {
        Tool::Function(tool) => {
            (tool.name.clone(), CallKind::Function, arguments::fill(tool.schema.as_ref(), subject))
        }
        Tool::Custom(tool) => (tool.name.clone(), CallKind::Custom, subject.trim().to_owned()),
        Tool::Provider(_) => return None,
    };
    Some(PlannedCall { name, kind, arguments })
}

fn greet(request: &TurnRequest, user_text: &str) -> String {
    let tools: Vec<&str> = request.tools.iter().filter_map(Tool::name).collect();
    let offer = match tools.first() {
        Some(first) => {
            format!("You offer me {}. Say \"call {first} for Paris\" and I will.", tools.join(", "))
        }
        None => "Offer me a tool and say \"call get_weather for Paris\", and I will call it.".to_owned(),
    };
    format!("Hello! I am the demo model inside toolgate. You said: {}. {offer}", echo(user_text))
}

fn report(request: &TurnRequest, results: &ToolResults) -> String {
    let reports: Vec<String> = results
        .results
        .iter()
        .map(|result| {
            let name = called_tool(request, result.call.as_str()).unwrap_or("the tool");
            let result_text = echo(&text_of(&result.content));
            match result.outcome {
                ToolOutcome::Success => format!("{name} says: {result_text}"),
                ToolOutcome::Error => format!("{name} failed: {result_text}"),
            }
        })
        .collect();
    format!("Here is what I found. {}", reports.join(" "))
}

fn called_tool<'a>(request: &'a TurnRequest, call: &str) -> Option<&'a str> {
    request.messages.iter().rev().find_map(|message| match message {
        Message::Assistant(assistant) => assistant.content.iter().find_map(|block| match block {
            Block::ToolCall(made) if made.id.as_str() == call => Some(made.name.as_str()),
            Block::ToolCall(_)
            | Block::Text(_)
            | Block::Refusal(_)
            | Block::Reasoning(_)
            | Block::Opaque(_) => None,
        }),
        Message::System(_) | Message::User(_) | Message::ToolResults(_) => None,
    })
}

/// The results since the model's last message.
fn latest_results(request: &TurnRequest) -> Option<&ToolResults> {
    let since_reply =
        request.messages.iter().rev().take_while(|message| !matches!(message, Message::Assistant(_)));
    since_reply
        .filter_map(|message| match message {
            Message::ToolResults(results) => Some(results),
            Message::System(_) | Message::User(_) | Message::Assistant(_) => None,
        })
        .last()
}

fn last_user_text(request: &TurnRequest) -> String {
    let last = request.messages.iter().rev().find_map(|message| match message {
        Message::User(user) => Some(text_of(&user.content)),
        Message::System(_) | Message::Assistant(_) | Message::ToolResults(_) => None,
    });
    last.unwrap_or_default()
}

fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        // Claude Code adds such notes to user messages.
        Part::Text(text) if text.text.starts_with("<system-reminder>") => None,
        Part::Text(text) => Some(text.text.as_str()),
        Part::Image(_) => Some("(an image)"),
        Part::Document(_) => Some("(a document)"),
        Part::Audio(_) => Some("(a recording)"),
        Part::Opaque(_) => Some("(unknown content)"),
    });
    texts.collect::<Vec<_>>().join(" ")
}

fn echo(text: &str) -> String {
    let mut echoed: String = text.chars().take(MAX_ECHO_CHARS).collect();
    if echoed.len() < text.len() {
        echoed.push('…');
    }
    echoed
}
