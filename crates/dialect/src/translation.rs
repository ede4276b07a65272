//! One turn between a client and a host: the request in the host's words, its reply in the client's. The model's name at
//! the host, renamed and wrapped tools, call ids and the limits of the host are handled here and nowhere else.

use toolgate_model::{
    BlockStart, CallKind, Delta, DialectId, Losses, ModelName, Reply, Tool, ToolName, Translated, TurnError,
    TurnEvent, TurnRequest,
};

use crate::frame::SseFrame;
use crate::host::HostProfile;
use crate::host::fit::{self, Client};
use crate::think_tags::ThinkTags;
use crate::{NameMap, ReplyReader, RequestForm, UpstreamDialect, openai_chat};

/// The translation of one turn.
#[derive(Clone)]
pub struct Translation {
    host: &'static dyn UpstreamDialect,
    names: NameMap,
    /// The client's tools that take free text.
    custom: Vec<ToolName>,
    /// The arguments so far of an open call of a custom tool.
    wrapped: Option<String>,
    /// For hosts that may write reasoning into their text, until it is known whether this one does.
    think_tags: Option<ThinkTags>,
}

/// A request in the host's dialect.
#[derive(Clone, Debug)]
pub struct HostRequest {
    /// The JSON body.
    pub body: Vec<u8>,
    /// What the host does not get.
    pub losses: Losses,
    /// How much differs from what the client sent.
    pub change: Change,
}

/// How much of a request changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// At most the model's name.
    OnlyTheModel,
    /// Anything.
    Any,
}

impl Translation {
    /// A translation for a host. Without a request, only replies are read: the client sent its own bytes.
    pub fn new(host: &'static dyn UpstreamDialect) -> Self {
        let think_tags = (host.id() == openai_chat::ID).then(ThinkTags::default);
        Self { host, names: NameMap::default(), custom: Vec::new(), wrapped: None, think_tags }
    }

    /// Writes the request of a client that speaks `client`, for the model of this name at the host.
    pub fn request(
        &mut self,
        client: DialectId,
        request: &TurnRequest,
        model: &ModelName,
        profile: &HostProfile,
    ) -> Result<HostRequest, TurnError> {
        let mut losses = Losses::default();
        let mut fitted = TurnRequest { model: model.clone(), ..request.clone() };
        let id = self.host.id();
        let (written, change) = if client != id {
            fit::fit(&mut fitted, profile, id, Client::OtherDialect, &mut losses)?;
            (self.host.write_request(&fitted, RequestForm::Fitted(profile))?, Change::Any)
        } else if *model == request.model {
            // A client that names the host's own model knows what it accepts.
            (self.host.write_request(&fitted, RequestForm::AsRead)?, Change::OnlyTheModel)
        } else {
            let as_read = self.host.write_request(&fitted, RequestForm::AsRead)?;
            fit::fit(&mut fitted, profile, id, Client::SameDialect, &mut losses)?;
            let written = self.host.write_request(&fitted, RequestForm::Refitted(profile))?;
            let is_same = written.body == as_read.body;
            (written, if is_same { Change::OnlyTheModel } else { Change::Any })
        };
        losses.append(written.losses);
        let custom_name = |tool: &Tool| match tool {
            Tool::Custom(tool) => Some(tool.name.clone()),
            Tool::Function(_) | Tool::Provider(_) => None,
        };
        self.custom = request.tools.iter().filter_map(custom_name).collect();
        self.names = written.names;
        Ok(HostRequest { body: written.body, losses, change })
    }

    /// The tools whose names differ at the host (T24).
    pub fn names(&self) -> &NameMap {
        &self.names
    }

    /// True if the host's reply is already the client's: no tool was renamed or wrapped.
    pub fn is_plain(&self) -> bool {
        self.names.is_empty() && self.custom.is_empty()
    }

    /// A reader for the streamed reply.
    pub fn reply(&self) -> Box<dyn ReplyReader> {
        Box::new(TranslatedReply { reader: self.host.reply_reader(), translation: self.clone() })
    }

    /// Reads the whole reply.
    pub fn whole_reply(&self, body: &[u8]) -> Result<Translated<Vec<TurnEvent>>, TurnError> {
        let Translated { value, losses } = self.host.read_reply(body)?;
        let mut events = Reply::into_events(value);
        let mut translation = self.clone();
        translation.find_reasoning(&mut events);
        translation.restore(&mut events);
        Ok(Translated { value: events, losses })
    }

    /// Finds reasoning in the host's text.
    fn find_reasoning(&mut self, events: &mut Vec<TurnEvent>) {
        let Some(think_tags) = &mut self.think_tags else { return };
        for event in std::mem::take(events) {
            think_tags.event(event, events);
        }
        if think_tags.is_done() {
            self.think_tags = None;
        }
    }

    /// Gives calls their client's form back, in events that were read elsewhere.
    pub fn restore(&mut self, events: &mut Vec<TurnEvent>) {
        if self.is_plain() {
            return;
        }
        for event in std::mem::take(events) {
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
                    let text = fit::unwrapped(arguments);
                    out.push(TurnEvent::BlockDelta(Delta::Arguments(text)));
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

/// Reads the host's frames, and restores the reasoning and the calls in them.
struct TranslatedReply {
    reader: Box<dyn ReplyReader>,
    translation: Translation,
}

impl ReplyReader for TranslatedReply {
    fn frame(&mut self, frame: SseFrame<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let before = out.len();
        let outcome = self.reader.frame(frame, out);
        self.restore_from(before, out);
        outcome
    }

    fn end(&mut self, out: &mut Vec<TurnEvent>) -> Result<(), TurnError> {
        let before = out.len();
        let outcome = self.reader.end(out);
        self.restore_from(before, out);
        outcome
    }

    fn losses(&mut self) -> Losses {
        self.reader.losses()
    }
}

impl TranslatedReply {
    fn restore_from(&mut self, start: usize, out: &mut Vec<TurnEvent>) {
        if self.translation.is_plain() && self.translation.think_tags.is_none() {
            return;
        }
        let mut new = out.split_off(start);
        self.translation.find_reasoning(&mut new);
        self.translation.restore(&mut new);
        out.append(&mut new);
    }
}

/// A request as it is written for an unknown host; fitted to it unless it was read in the host's dialect.
#[cfg(test)]
pub(crate) fn written(host: &'static dyn UpstreamDialect, request: &TurnRequest) -> crate::WrittenRequest {
    const OTHER: DialectId = DialectId { name: "other", provider: "other" };
    let client = if request.extras.known_to(host.id()).is_some() { host.id() } else { OTHER };
    let profile = crate::host::HostFacts::at(host.id(), "host").profile(request.model.as_str());
    let mut translation = Translation::new(host);
    let HostRequest { body, losses, change: _ } =
        translation.request(client, request, &request.model, &profile).expect("it can be written");
    crate::WrittenRequest { body, losses, names: translation.names }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{anthropic_messages, openai_responses};
    use toolgate_model::{BlockEnd, CustomTool, Extras};

    fn restored(arguments: &[&str]) -> Vec<TurnEvent> {
        let mut request = TurnRequest::new("m", Vec::new());
        let name = ToolName::from("run.sql");
        request.tools =
            vec![Tool::Custom(CustomTool { name, description: None, format: None, extras: Extras::NONE })];
        let mut translation = Translation::new(&anthropic_messages::DIALECT);
        let profile = HostProfile::of_dialect(anthropic_messages::ID);
        let model = request.model.clone();
        translation.request(openai_responses::ID, &request, &model, &profile).expect("it can be written");
        let host_name = ToolName::from(translation.names.to_host("run.sql"));
        assert_ne!(host_name.as_str(), "run.sql");
        let start = BlockStart::ToolCall { id: "c".into(), name: host_name, kind: CallKind::Function };
        let mut events = vec![TurnEvent::BlockStarted(start)];
        events.extend(arguments.iter().map(|more| TurnEvent::BlockDelta(Delta::Arguments((*more).into()))));
        events.push(TurnEvent::BlockFinished(BlockEnd::default()));
        translation.restore(&mut events);
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
