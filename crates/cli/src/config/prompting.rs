//! `[models."NAME".prompted]`: tools in the prompt, for models without native tool calls.

use toolgate_prompted::{
    AfterCalls, Markerless, Placement, PromptedOptions, ReasoningTag, Repair, Strictness, Switch, UnknownTool,
};

use super::nearest::suggestion;
use super::problem::{Located, ReadContext};
use super::section::{ListForm, Section};

/// Each continuation is another request; a model that needs more needs a higher token limit.
const MAX_CONTINUATIONS: u32 = 10;

/// The largest template file; a larger one is not a template.
const MAX_TEMPLATE_BYTES: u64 = 256 * 1024;

/// Each retry is another request; a model that needs more will not succeed.
const MAX_RETRIES: u32 = 10;

/// The placeholders that a prompt must contain.
const PROMPT_PLACEHOLDERS: [&str; 2] = ["{tools_list}", "{trigger_signal}"];

/// The placeholders that a retry message must contain.
const RETRY_PLACEHOLDERS: [&str; 1] = ["{error_details}"];

const KEYS: [&str; 15] = [
    "strict",
    "prompt_template",
    "system_placement",
    "reminder",
    "reasoning_tags",
    "starts_in_reasoning",
    "unknown_tool",
    "after_calls",
    "markerless",
    "calls_in_fence",
    "repair",
    "continuations",
    "retries",
    "retry_template",
    "nudge",
];

/// Reads the table. A missing or invalid key keeps its default.
pub(crate) fn read(section: &Section<'_>, context: &mut ReadContext<'_>) -> PromptedOptions {
    section.expect_keys(&KEYS, context);
    let default = PromptedOptions::default();
    PromptedOptions {
        prompt_template: read_template(section, "prompt_template", &PROMPT_PLACEHOLDERS, context),
        system_placement: choice(
            section,
            "system_placement",
            [("last", Placement::Last), ("first", Placement::First)],
            context,
        )
        .unwrap_or(default.system_placement),
        reminder: switch(section, "reminder", context).unwrap_or(default.reminder),
        unknown_tool: choice(
            section,
            "unknown_tool",
            [("fix", UnknownTool::Fix), ("pass", UnknownTool::Pass), ("text", UnknownTool::Text)],
            context,
        )
        .unwrap_or(default.unknown_tool),
        after_calls: choice(
            section,
            "after_calls",
            [("stop", AfterCalls::Stop), ("text", AfterCalls::Text)],
            context,
        )
        .unwrap_or(default.after_calls),
        markerless: choice(
            section,
            "markerless",
            [("off", Markerless::Off), ("guarded", Markerless::Guarded)],
            context,
        )
        .unwrap_or(default.markerless),
        calls_in_fence: switch(section, "calls_in_fence", context).unwrap_or(default.calls_in_fence),
        reasoning_tags: read_tags(section, context).unwrap_or(default.reasoning_tags),
        starts_in_reasoning: switch(section, "starts_in_reasoning", context)
            .unwrap_or(default.starts_in_reasoning),
        repair: switch(section, "repair", context).map_or(default.repair, |repair| match repair {
            Switch::On => Repair::Append,
            Switch::Off => Repair::Off,
        }),
        continuations: section
            .count("continuations", MAX_CONTINUATIONS, context)
            .and_then(|count| u8::try_from(count.value).ok())
            .unwrap_or(default.continuations),
        retries: section
            .count("retries", MAX_RETRIES, context)
            .and_then(|count| u8::try_from(count.value).ok())
            .unwrap_or(default.retries),
        retry_template: read_template(section, "retry_template", &RETRY_PLACEHOLDERS, context),
        nudge: switch(section, "nudge", context).unwrap_or(default.nudge),
        strictness: switch(section, "strict", context).map_or(default.strictness, |strict| match strict {
            Switch::On => Strictness::Strict,
            Switch::Off => Strictness::Lenient,
        }),
    }
}

fn switch(section: &Section<'_>, key: &str, context: &mut ReadContext<'_>) -> Option<Switch> {
    section.flag(key, context).map(|flag| if flag.value { Switch::On } else { Switch::Off })
}

fn choice<T, const N: usize>(
    section: &Section<'_>,
    key: &str,
    choices: [(&'static str, T); N],
    context: &mut ReadContext<'_>,
) -> Option<T> {
    let example = choices.first().map_or("", |(word, _)| *word);
    let written = section.text(key, example, context)?;
    let words: Vec<&'static str> = choices.iter().map(|(word, _)| *word).collect();
    let chosen = choices.into_iter().find(|(word, _)| *word == written.value);
    if chosen.is_none() {
        let hint = suggestion(&written.value, words, "choices");
        context.error(written.position, format!("unknown value `{}` of `{key}`{hint}", written.value));
    }
    chosen.map(|(_, value)| value)
}

fn read_template(
    section: &Section<'_>,
    key: &str,
    placeholders: &[&str],
    context: &mut ReadContext<'_>,
) -> Option<String> {
    let written = section.text(key, "file:prompt.txt", context)?;
    let template = match written.value.strip_prefix("file:") {
        None => Ok(written.value.clone()),
        Some(path) => read_template_file(&context.relative_to_file(path)),
    };
    let checked = template.and_then(|template| {
        match placeholders.iter().find(|placeholder| !template.contains(**placeholder)) {
            None => Ok(template),
            Some(placeholder) => Err(format!("the template lacks {placeholder}: add it")),
        }
    });
    match checked {
        Ok(template) => Some(template),
        Err(why) => {
            context.error(written.position, format!("`{key}`: {why}"));
            None
        }
    }
}

fn read_template_file(path: &std::path::Path) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |cause: std::io::Error| {
        format!("cannot read the file {shown} ({cause}): check the path and its permissions")
    };
    let file = path.metadata().map_err(unreadable)?;
    if !file.is_file() || file.len() > MAX_TEMPLATE_BYTES {
        return Err(format!("{shown} is not a template: use a text file of at most 256 KiB"));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

fn read_tags(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<Vec<ReasoningTag>> {
    let written = section.texts("reasoning_tags", ListForm::Many, context)?;
    Some(written.iter().filter_map(|tag| read_tag(tag, context)).collect())
}

/// The closing tag is the opening one with a slash.
fn read_tag(tag: &Located<String>, context: &mut ReadContext<'_>) -> Option<ReasoningTag> {
    let pairs = [('<', '>'), ('[', ']')];
    let inside = pairs.into_iter().find_map(|(open, close)| {
        let name = tag.value.strip_prefix(open)?.strip_suffix(close)?;
        let is_name = !name.is_empty() && !name.starts_with('/') && !name.contains(['<', '>', '[', ']']);
        is_name.then(|| format!("{open}/{name}{close}"))
    });
    let Some(close) = inside else {
        let problem =
            format!("\"{}\" is not an opening tag: write it like \"<think>\" or \"[THINK]\"", tag.value);
        context.error(tag.position, problem);
        return None;
    };
    Some(ReasoningTag::new(tag.value.clone(), close))
}

#[cfg(test)]
mod tests;
