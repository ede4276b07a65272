//! `[models."NAME"]`: who answers for a model name or a pattern of names.

use super::nearest::suggestion;
use super::problem::{Placed, Reading};
use super::section::{ListForm, Section};

/// One entry of `[models]`, names not yet looked up.
pub(crate) struct ModelEntry {
    pub(crate) pattern: Placed<String>,
    pub(crate) answered_by: AnsweredBy,
    /// The name at the host; the client's own name where there is none.
    pub(crate) model: Option<Placed<String>>,
}

/// Who an entry names.
pub(crate) enum AnsweredBy {
    /// These hosts, the next one tried where one fails before its first event.
    Upstreams(Vec<Placed<String>>),
    /// An agent of `[agents]`.
    Agent(Placed<String>),
    /// The scripted model inside the binary.
    Demo,
}

/// Reads one entry; None after reporting why not.
pub(crate) fn read(
    name: &Placed<String>,
    section: &Section<'_>,
    reading: &mut Reading<'_>,
) -> Option<ModelEntry> {
    section.expect_keys(&["upstream", "agent", "demo", "model", "tools"], reading);
    if name.value.trim().is_empty() {
        reading.error(name.place, "a model needs a name, such as [models.\"gpt-4o-mini\"]");
    }
    let model = section.text("model", "gpt-4o-mini", reading);
    read_tools(section, reading);
    let answered_by = read_answerer(section, reading)?;
    if let (AnsweredBy::Demo, Some(model)) = (&answered_by, &model) {
        reading.error(model.place, "the demo model has no other name: take `model` out");
    }
    Some(ModelEntry { pattern: name.clone(), answered_by, model })
}

fn read_answerer(section: &Section<'_>, reading: &mut Reading<'_>) -> Option<AnsweredBy> {
    let written: Vec<&str> =
        ["upstream", "agent", "demo"].into_iter().filter(|key| section.key_place(key).is_some()).collect();
    let [key] = written[..] else {
        let problem = match written.len() {
            0 => {
                format!("{} says nobody answers: add `upstream = \"NAME\"` or `demo = true`", section.name())
            }
            _ => format!("{} has `{}`: keep one of them", section.name(), written.join("` and `")),
        };
        reading.error(section.place(), problem);
        return None;
    };
    match key {
        "upstream" => read_upstreams(section, reading),
        "agent" => section.text("agent", "claude", reading).map(AnsweredBy::Agent),
        _ => read_demo(section, reading),
    }
}

fn read_upstreams(section: &Section<'_>, reading: &mut Reading<'_>) -> Option<AnsweredBy> {
    let names = section.texts("upstream", ListForm::OneOrMany, reading)?;
    if names.is_empty() {
        reading.error(
            section.place(),
            format!("`upstream` of {} is an empty list: name at least one", section.name()),
        );
        return None;
    }
    Some(AnsweredBy::Upstreams(names))
}

fn read_demo(section: &Section<'_>, reading: &mut Reading<'_>) -> Option<AnsweredBy> {
    let flag = section.flag("demo", reading)?;
    if !flag.value {
        reading.error(flag.place, "`demo = false` says nothing: write `demo = true`, or take the model out");
        return None;
    }
    Some(AnsweredBy::Demo)
}

fn read_tools(section: &Section<'_>, reading: &mut Reading<'_>) {
    let Some(tools) = section.text("tools", "native", reading) else { return };
    match tools.value.as_str() {
        "native" => {}
        "prompted" => reading.not_yet(tools.place, "`tools = \"prompted\"`"),
        other => {
            let hint = suggestion(other, ["native", "prompted"], "ways to give tools");
            reading.error(tools.place, format!("`tools` cannot be `{other}`{hint}"));
        }
    }
}
