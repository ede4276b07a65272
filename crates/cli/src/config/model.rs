//! `[models."NAME"]`: which back end serves a model name or a pattern of names.

use toolgate_backend::config::Tools;

use super::nearest::suggestion;
use super::problem::{Located, ReadContext};
use super::prompting;
use super::section::{ListForm, Section};

/// One entry of `[models]`, before its references are resolved.
pub(crate) struct ModelEntry {
    pub(crate) pattern: Located<String>,
    pub(crate) answered_by: AnsweredBy,
    /// The name at the host; `None` for the client's name.
    pub(crate) model: Option<Located<String>>,
    /// How tools are passed to the model.
    pub(crate) tools: Tools,
}

/// The back end of an entry.
pub(crate) enum AnsweredBy {
    /// These hosts; if one fails before its first event, the next is tried.
    Upstreams(Vec<Located<String>>),
    /// An agent of `[agents]`.
    Agent(Located<String>),
    /// The scripted model inside the binary.
    Demo,
}

/// Reads one entry; `None` after reporting a problem.
pub(crate) fn read(
    name: &Located<String>,
    section: &Section<'_>,
    context: &mut ReadContext<'_>,
) -> Option<ModelEntry> {
    section.expect_keys(&["upstream", "agent", "demo", "model", "tools", "prompted"], context);
    if name.value.trim().is_empty() {
        context.error(name.position, "a model needs a name, such as [models.\"gpt-4o-mini\"]");
    }
    let model = section.text("model", "gpt-4o-mini", context);
    let tools = read_tools(section, context);
    let answered_by = read_answerer(section, context)?;
    if let (AnsweredBy::Demo, Some(model)) = (&answered_by, &model) {
        context.error(model.position, "the demo model has no other name: remove `model`");
    }
    if let (AnsweredBy::Demo, Tools::Prompted(_)) = (&answered_by, &tools) {
        let position = section.key_position("tools").unwrap_or(section.position());
        context.error(position, "the demo model supports tools natively: remove `tools`");
    }
    Some(ModelEntry { pattern: name.clone(), answered_by, model, tools })
}

fn read_answerer(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<AnsweredBy> {
    let written: Vec<&str> =
        ["upstream", "agent", "demo"].into_iter().filter(|key| section.key_position(key).is_some()).collect();
    let [key] = written[..] else {
        let problem = match written.len() {
            0 => {
                format!(
                    "{} has no back end: add `upstream = \"NAME\"`, `agent = \"NAME\"` or `demo = true`",
                    section.name()
                )
            }
            _ => format!("{} has `{}`: remove all but one", section.name(), written.join("` and `")),
        };
        context.error(section.position(), problem);
        return None;
    };
    match key {
        "upstream" => read_upstreams(section, context),
        "agent" => section.text("agent", "claude", context).map(AnsweredBy::Agent),
        _ => read_demo(section, context),
    }
}

fn read_upstreams(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<AnsweredBy> {
    let names = section.texts("upstream", ListForm::OneOrMany, context)?;
    if names.is_empty() {
        context.error(
            section.position(),
            format!("`upstream` of {} is an empty list: add at least one name", section.name()),
        );
        return None;
    }
    Some(AnsweredBy::Upstreams(names))
}

fn read_demo(section: &Section<'_>, context: &mut ReadContext<'_>) -> Option<AnsweredBy> {
    let flag = section.flag("demo", context)?;
    if !flag.value {
        context
            .error(flag.position, "`demo = false` has no meaning: write `demo = true`, or remove the model");
        return None;
    }
    Some(AnsweredBy::Demo)
}

fn read_tools(section: &Section<'_>, context: &mut ReadContext<'_>) -> Tools {
    let options =
        section.table("prompted", context).map(|table| (table.position(), prompting::read(&table, context)));
    let tools = section.text("tools", "native", context);
    match (tools.as_ref().map(|tools| tools.value.as_str()), options) {
        (Some("prompted"), options) => {
            Tools::Prompted(options.map(|(_, options)| options).unwrap_or_default())
        }
        (None | Some("native"), None) => Tools::Native,
        (None | Some("native"), Some((position, _))) => {
            let hint = format!("add `tools = \"prompted\"` to {}", section.name());
            context.error(position, format!("`prompted` has no effect on its own: {hint}"));
            Tools::Native
        }
        (Some(other), _) => {
            let hint = suggestion(other, ["native", "prompted"], "values");
            let position = tools.as_ref().map_or(section.position(), |tools| tools.position);
            context.error(position, format!("unknown value `{other}` of `tools`{hint}"));
            Tools::Native
        }
    }
}
