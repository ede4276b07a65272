//! Parts of requests and replies that both of OpenAI's dialects have.

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use toolgate_model::{
    AllowedTool, CallKind, Choice, Citation, DialectId, Extras, Fields, Notes, Opaque, OpenAiOptions,
    ToolChoice,
};

/// The fields that both dialects spell alike, for writing.
#[derive(Serialize)]
pub(crate) struct OpenAiFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_retention: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_tier: Option<&'a str>,
    #[serde(skip_serializing_if = "Fields::is_empty")]
    metadata: &'a Fields,
    #[serde(skip_serializing_if = "Option::is_none")]
    safety_identifier: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u64>,
}

impl<'a> OpenAiFields<'a> {
    /// The fields to write.
    pub(crate) fn of(options: &'a OpenAiOptions) -> Self {
        let OpenAiOptions {
            prompt_cache_key,
            prompt_cache_retention,
            service_tier,
            metadata,
            safety_identifier,
            top_logprobs,
            // The dialects write these in different places.
            verbosity: _,
            logprobs: _,
        } = options;
        Self {
            prompt_cache_key: prompt_cache_key.as_deref(),
            prompt_cache_retention: prompt_cache_retention.as_deref(),
            service_tier: service_tier.as_deref(),
            metadata,
            safety_identifier: safety_identifier.as_deref(),
            top_logprobs: *top_logprobs,
        }
    }
}

/// The type of a tool choice that lists the tools that may be called.
pub(crate) const ALLOWED_TOOLS: &str = "allowed_tools";

/// Reads the object that lists allowed tools. A tool's name is in the entry or in an object inside.
pub(crate) fn read_allowed_tools(fields: &Fields, dialect: DialectId) -> ToolChoice {
    let choice = match fields.get("mode").and_then(Value::as_str) {
        Some("required") => Choice::Any,
        Some(_) | None => Choice::Auto,
    };
    let entries = fields.get("tools").and_then(Value::as_array).into_iter().flatten();
    let allowed = entries.filter_map(Value::as_object).map(|entry| read_entry(entry, dialect)).collect();
    ToolChoice { choice: Some(choice), allowed: Some(allowed), ..ToolChoice::default() }
}

fn read_entry(entry: &Fields, dialect: DialectId) -> AllowedTool {
    let kind = entry.get("type").and_then(Value::as_str).unwrap_or_default();
    let inner = entry.get(kind).and_then(Value::as_object).unwrap_or(entry);
    match (kind, inner.get("name").and_then(Value::as_str)) {
        ("function", Some(name)) => AllowedTool::Named(name.into(), CallKind::Function),
        ("custom", Some(name)) => AllowedTool::Named(name.into(), CallKind::Custom),
        _ => AllowedTool::Provider(Opaque { dialect, kind: kind.to_owned(), fields: entry.clone() }),
    }
}

/// The `mode` for a choice among allowed tools.
pub(crate) fn allowed_mode(choice: Option<&Choice>) -> &'static str {
    match choice {
        Some(Choice::Any | Choice::Named(..)) => "required",
        Some(Choice::Auto | Choice::None | Choice::Provider(_)) | None => "auto",
    }
}

/// The type of an annotation that names a web page.
pub(crate) const URL_CITATION: &str = "url_citation";

/// Adds the notes on a text to its extras.
pub(crate) fn with_notes(
    extras: Extras,
    dialect: DialectId,
    annotations: Option<&Value>,
    logprobs: Option<&Value>,
) -> Extras {
    let annotations = annotations.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let citations: Vec<Citation> = annotations.iter().filter_map(read_citation).collect();
    let logprobs = logprobs.and_then(Value::as_array).cloned().unwrap_or_default();
    // Annotations of other types are not repeated by notes.
    let all_noted = !citations.is_empty() && citations.len() == annotations.len();
    let noted: &[&str] = match (all_noted, logprobs.is_empty()) {
        (true, true) => &["annotations"],
        (true, false) => &["annotations", "logprobs"],
        (false, true) => &[],
        (false, false) => &["logprobs"],
    };
    extras.with_notes(dialect, Notes { citations, logprobs }, noted)
}

/// Reads an annotation; its fields may be in an object inside.
fn read_citation(annotation: &Value) -> Option<Citation> {
    let fields = annotation.get(URL_CITATION).unwrap_or(annotation);
    let is_page = annotation.get("type")? == URL_CITATION;
    Some(Citation {
        url: fields.get("url")?.as_str().filter(|_| is_page)?.to_owned(),
        title: fields.get("title").and_then(Value::as_str).map(str::to_owned),
        range: Some(fields.get("start_index")?.as_u64()?..fields.get("end_index")?.as_u64()?),
    })
}

/// The fields of a citation in this part of a message, without its type.
pub(crate) fn citation_fields(citation: &Citation, text: Range<u64>) -> Fields {
    let Citation { url, title, range } = citation;
    let cited = range.as_ref().map(|range| text.start + range.start..text.start + range.end).unwrap_or(text);
    Fields::from_iter([
        ("start_index".to_owned(), Value::from(cited.start)),
        ("end_index".to_owned(), Value::from(cited.end)),
        ("title".to_owned(), Value::from(title.as_deref().unwrap_or_default())),
        ("url".to_owned(), Value::from(url.as_str())),
    ])
}

/// The length of a text in characters, which citations count.
pub(crate) fn characters(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}
