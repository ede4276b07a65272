//! `[models."NAME"]`: who answers for a model name or a pattern of names.

use toolgate_backend::config::Tools;

use super::nearest::suggestion;
use super::problem::{Placed, Reading};
use super::prompting;
use super::section::{ListForm, Section};

/// One entry of `[models]`, names not yet looked up.
pub(crate) struct ModelEntry {
    pub(crate) pattern: Placed<String>,
    pub(crate) answered_by: AnsweredBy,
    /// The name at the host; the client's own name where there is none.
    pub(crate) model: Option<Placed<String>>,
    /// How the model gets its tools.
    pub(crate) tools: Tools,
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
    section.expect_keys(&["upstream", "agent", "demo", "model", "tools", "prompted"], reading);
    if name.value.trim().is_empty() {
        reading.error(name.place, "a model needs a name, such as [models.\"gpt-4o-mini\"]");
    }
    let model = section.text("model", "gpt-4o-mini", reading);
    let tools = read_tools(section, reading);
    let answered_by = read_answerer(section, reading)?;
    if let (AnsweredBy::Demo, Some(model)) = (&answered_by, &model) {
        reading.error(model.place, "the demo model has no other name: take `model` out");
    }
    if let (AnsweredBy::Demo, Tools::Prompted(_)) = (&answered_by, &tools) {
        let place = section.key_place("tools").unwrap_or(section.place());
        reading.error(place, "the demo model takes tools as they are: take `tools` out");
    }
    Some(ModelEntry { pattern: name.clone(), answered_by, model, tools })
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

fn read_tools(section: &Section<'_>, reading: &mut Reading<'_>) -> Tools {
    let options =
        section.table("prompted", reading).map(|table| (table.place(), prompting::read(&table, reading)));
    let tools = section.text("tools", "native", reading);
    match (tools.as_ref().map(|tools| tools.value.as_str()), options) {
        (Some("prompted"), options) => {
            Tools::Prompted(options.map(|(_, options)| options).unwrap_or_default())
        }
        (None | Some("native"), None) => Tools::Native,
        (None | Some("native"), Some((place, _))) => {
            let hint = format!("add `tools = \"prompted\"` to {}", section.name());
            reading.error(place, format!("`prompted` does nothing alone: {hint}"));
            Tools::Native
        }
        (Some(other), _) => {
            let hint = suggestion(other, ["native", "prompted"], "ways to give tools");
            let place = tools.as_ref().map_or(section.place(), |tools| tools.place);
            reading.error(place, format!("`tools` cannot be `{other}`{hint}"));
            Tools::Native
        }
    }
}
