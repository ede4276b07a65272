//! `[models."NAME".prompted]`: how tools are given to a model that only knows text.

use toolgate_prompted::{
    AfterCalls, Markerless, Placement, PromptedOptions, ReasoningTag, Repair, Strictness, Switch, UnknownTool,
};

use super::nearest::suggestion;
use super::problem::{Placed, Reading};
use super::section::{ListForm, Section};

/// Each continuation is a request of its own; a model that needs more needs a higher token limit.
const MOST_CONTINUATIONS: u32 = 10;

/// The largest prompt file; a larger one is the wrong file.
const LARGEST_TEMPLATE_BYTES: u64 = 256 * 1024;

/// Each retry is a request of its own; a model that needs more will not learn it by the next.
const MOST_RETRIES: u32 = 10;

/// What a prompt must have a place for.
const PROMPT_PLACES: [&str; 2] = ["{tools_list}", "{trigger_signal}"];

/// What the words for a retry must have a place for.
const RETRY_PLACES: [&str; 1] = ["{error_details}"];

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

/// Reads the table. What is not written, or wrong and reported, is as usual.
pub(crate) fn read(section: &Section<'_>, reading: &mut Reading<'_>) -> PromptedOptions {
    section.expect_keys(&KEYS, reading);
    let usual = PromptedOptions::default();
    PromptedOptions {
        prompt_template: read_template(section, "prompt_template", &PROMPT_PLACES, reading),
        system_placement: choice(
            section,
            "system_placement",
            [("last", Placement::Last), ("first", Placement::First)],
            reading,
        )
        .unwrap_or(usual.system_placement),
        reminder: switch(section, "reminder", reading).unwrap_or(usual.reminder),
        unknown_tool: choice(
            section,
            "unknown_tool",
            [("fix", UnknownTool::Fix), ("pass", UnknownTool::Pass), ("text", UnknownTool::Text)],
            reading,
        )
        .unwrap_or(usual.unknown_tool),
        after_calls: choice(
            section,
            "after_calls",
            [("stop", AfterCalls::Stop), ("text", AfterCalls::Text)],
            reading,
        )
        .unwrap_or(usual.after_calls),
        markerless: choice(
            section,
            "markerless",
            [("off", Markerless::Off), ("guarded", Markerless::Guarded)],
            reading,
        )
        .unwrap_or(usual.markerless),
        calls_in_fence: switch(section, "calls_in_fence", reading).unwrap_or(usual.calls_in_fence),
        reasoning_tags: read_tags(section, reading).unwrap_or(usual.reasoning_tags),
        starts_in_reasoning: switch(section, "starts_in_reasoning", reading)
            .unwrap_or(usual.starts_in_reasoning),
        repair: switch(section, "repair", reading).map_or(usual.repair, |repair| match repair {
            Switch::On => Repair::Append,
            Switch::Off => Repair::Off,
        }),
        continuations: section
            .count("continuations", MOST_CONTINUATIONS, reading)
            .and_then(|count| u8::try_from(count.value).ok())
            .unwrap_or(usual.continuations),
        retries: section
            .count("retries", MOST_RETRIES, reading)
            .and_then(|count| u8::try_from(count.value).ok())
            .unwrap_or(usual.retries),
        retry_template: read_template(section, "retry_template", &RETRY_PLACES, reading),
        nudge: switch(section, "nudge", reading).unwrap_or(usual.nudge),
        strictness: switch(section, "strict", reading).map_or(usual.strictness, |strict| match strict {
            Switch::On => Strictness::Strict,
            Switch::Off => Strictness::Lenient,
        }),
    }
}

fn switch(section: &Section<'_>, key: &str, reading: &mut Reading<'_>) -> Option<Switch> {
    section.flag(key, reading).map(|flag| if flag.value { Switch::On } else { Switch::Off })
}

fn choice<T, const N: usize>(
    section: &Section<'_>,
    key: &str,
    choices: [(&'static str, T); N],
    reading: &mut Reading<'_>,
) -> Option<T> {
    let example = choices.first().map_or("", |(word, _)| *word);
    let written = section.text(key, example, reading)?;
    let words: Vec<&'static str> = choices.iter().map(|(word, _)| *word).collect();
    let chosen = choices.into_iter().find(|(word, _)| *word == written.value);
    if chosen.is_none() {
        let hint = suggestion(&written.value, words, "choices");
        reading.error(written.place, format!("`{key}` cannot be `{}`{hint}", written.value));
    }
    chosen.map(|(_, value)| value)
}

fn read_template(
    section: &Section<'_>,
    key: &str,
    places: &[&str],
    reading: &mut Reading<'_>,
) -> Option<String> {
    let written = section.text(key, "file:prompt.txt", reading)?;
    let template = match written.value.strip_prefix("file:") {
        None => Ok(written.value.clone()),
        Some(path) => read_template_file(&reading.beside_the_file(path)),
    };
    let checked =
        template.and_then(|template| match places.iter().find(|place| !template.contains(**place)) {
            None => Ok(template),
            Some(place) => Err(format!("the prompt has no {place}: write it where that belongs")),
        });
    match checked {
        Ok(template) => Some(template),
        Err(why) => {
            reading.error(written.place, format!("`{key}`: {why}"));
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
    if !file.is_file() || file.len() > LARGEST_TEMPLATE_BYTES {
        return Err(format!("{shown} is no prompt: name a text file of at most 256 KiB"));
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

fn read_tags(section: &Section<'_>, reading: &mut Reading<'_>) -> Option<Vec<ReasoningTag>> {
    let written = section.texts("reasoning_tags", ListForm::Many, reading)?;
    Some(written.iter().filter_map(|tag| read_tag(tag, reading)).collect())
}

/// The closing tag is the opening one with a slash.
fn read_tag(tag: &Placed<String>, reading: &mut Reading<'_>) -> Option<ReasoningTag> {
    let pairs = [('<', '>'), ('[', ']')];
    let inside = pairs.into_iter().find_map(|(open, close)| {
        let name = tag.value.strip_prefix(open)?.strip_suffix(close)?;
        let is_name = !name.is_empty() && !name.starts_with('/') && !name.contains(['<', '>', '[', ']']);
        is_name.then(|| format!("{open}/{name}{close}"))
    });
    let Some(close) = inside else {
        let problem =
            format!("\"{}\" is no opening tag: write it as in \"<think>\" or \"[THINK]\"", tag.value);
        reading.error(tag.place, problem);
        return None;
    };
    Some(ReasoningTag::new(tag.value.clone(), close))
}

#[cfg(test)]
mod tests;
