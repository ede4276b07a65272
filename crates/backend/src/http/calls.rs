//! Calls as the client knows its tools: under their own names (T24), and with free text for custom tools where the
//! host has only functions and was given the text as the one field `input`.

use serde::Deserialize;
use toolgate_dialect::NameMap;
use toolgate_model::{BlockStart, CallKind, Delta, Tool, ToolName, TurnEvent, TurnRequest};

/// Gives calls back their client's form, as they come.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientCalls {
    names: NameMap,
    custom: Vec<ToolName>,
    /// The arguments so far of an open call of a custom tool.
    wrapped: Option<String>,
}

impl ClientCalls {
    pub(crate) fn new(names: NameMap, request: &TurnRequest) -> Self {
        let custom = |tool: &Tool| match tool {
            Tool::Custom(tool) => Some(tool.name.clone()),
            Tool::Function(_) | Tool::Provider(_) => None,
        };
        Self { names, custom: request.tools.iter().filter_map(custom).collect(), wrapped: None }
    }

    /// Changes the events that need it, in place.
    pub(crate) fn restore(&mut self, events: &mut Vec<TurnEvent>) {
        if self.names.is_empty() && self.custom.is_empty() {
            return;
        }
        let host_events = std::mem::take(events);
        for event in host_events {
            self.restore_one(event, events);
        }
    }

    fn restore_one(&mut self, event: TurnEvent, out: &mut Vec<TurnEvent>) {
        match event {
            TurnEvent::BlockStarted(BlockStart::ToolCall { id, name, kind }) => {
                let name = self.names.to_client(name);
                let is_wrapped = kind == CallKind::Function && self.custom.contains(&name);
                self.wrapped = is_wrapped.then(String::new);
                let kind = if is_wrapped { CallKind::Custom } else { kind };
                out.push(TurnEvent::BlockStarted(BlockStart::ToolCall { id, name, kind }));
            }
            TurnEvent::BlockDelta(Delta::Arguments(more)) => match &mut self.wrapped {
                Some(arguments) => arguments.push_str(&more),
                None => out.push(TurnEvent::BlockDelta(Delta::Arguments(more))),
            },
            TurnEvent::BlockFinished(end) => {
                if let Some(arguments) = self.wrapped.take() {
                    out.push(TurnEvent::BlockDelta(Delta::Arguments(unwrapped(arguments))));
                }
                out.push(TurnEvent::BlockFinished(end));
            }
            other @ (TurnEvent::Started(_)
            | TurnEvent::BlockStarted(
                BlockStart::Text | BlockStart::Refusal | BlockStart::Reasoning(_) | BlockStart::Opaque(_),
            )
            | TurnEvent::BlockDelta(Delta::Text(_) | Delta::Paragraph(_))
            | TurnEvent::Usage(_)
            | TurnEvent::Finished(_)) => out.push(other),
        }
    }
}

/// The text inside; a model that did not wrap it meant what it wrote.
fn unwrapped(arguments: String) -> String {
    #[derive(Deserialize)]
    struct Wrapped {
        input: String,
    }
    serde_json::from_str::<Wrapped>(&arguments).map_or(arguments, |wrapped| wrapped.input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_model::{BlockEnd, CustomTool, Extras};

    fn restored(arguments: &[&str]) -> Vec<TurnEvent> {
        let mut request = TurnRequest::new("m", Vec::new());
        let name = ToolName::from("run.sql");
        request.tools =
            vec![Tool::Custom(CustomTool { name, description: None, format: None, extras: Extras::NONE })];
        let mut names = NameMap::default();
        names.insert("run.sql", "run_sql");
        let start = BlockStart::ToolCall { id: "c".into(), name: "run_sql".into(), kind: CallKind::Function };
        let mut events = vec![TurnEvent::BlockStarted(start)];
        events.extend(arguments.iter().map(|more| TurnEvent::BlockDelta(Delta::Arguments((*more).into()))));
        events.push(TurnEvent::BlockFinished(BlockEnd::default()));
        ClientCalls::new(names, &request).restore(&mut events);
        events
    }

    #[test]
    fn a_custom_tools_text_is_unwrapped_under_its_own_name() {
        for (arguments, text) in
            [(&[r#"{"inp"#, r#"ut":"SELECT 1"}"#][..], "SELECT 1"), (&["SELECT 2"][..], "SELECT 2")]
        {
            let start =
                BlockStart::ToolCall { id: "c".into(), name: "run.sql".into(), kind: CallKind::Custom };
            let expected = [
                TurnEvent::BlockStarted(start),
                TurnEvent::BlockDelta(Delta::Arguments(text.into())),
                TurnEvent::BlockFinished(BlockEnd::default()),
            ];
            assert_eq!(restored(arguments), expected);
        }
    }
}
