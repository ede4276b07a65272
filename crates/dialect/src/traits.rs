//! What every dialect can do, as a server towards clients and as a client towards hosts.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_model::{
    DialectId, Losses, Reply, ToolName, Translated, TurnError, TurnEvent, TurnRequest, Usage,
};

use crate::Peek;
use crate::frame::SseFrame;

/// A dialect as clients speak it to us.
pub trait ClientDialect: Send + Sync {
    /// Its name.
    fn id(&self) -> DialectId;

    /// Reads the fields that routing needs and skips the rest. Fails with the error [`ClientDialect::read_request`]
    /// gives for a body that is not a JSON object.
    fn peek_request<'b>(&self, body: &'b [u8]) -> Result<Peek<'b>, TurnError>;

    /// Reads a request body. What is wrong with it is said in the error, with the path of the field.
    fn read_request(&self, body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
        let Translated { mut value, losses: more } = self.read_unpaired(body)?;
        let mut losses = self.pair(&mut value)?;
        losses.append(more);
        Ok(Translated { value, losses })
    }

    /// The same for a client that may leave out what was said before: results may answer calls that are not there
    /// yet. When they are, [`ClientDialect::pair`] has its say.
    fn read_unpaired(&self, body: &[u8]) -> Result<Translated<TurnRequest>, TurnError>;

    /// Refuses, or mends and reports, results that answer no call of the request.
    fn pair(&self, request: &mut TurnRequest) -> Result<Losses, TurnError>;

    /// Writes a reply in one piece.
    fn write_reply(&self, reply: &Reply, context: &ReplyContext) -> Translated<Vec<u8>>;

    /// Begins to write a reply as it comes.
    fn reply_writer(&self, context: ReplyContext) -> Box<dyn ReplyWriter>;

    /// The body that tells an error.
    fn write_error(&self, error: &TurnError) -> Vec<u8>;

    /// The conversation after this reply, as text for the store, where the dialect lets clients continue a stored
    /// reply by its id.
    fn remember(&self, request: &TurnRequest, reply: &Reply) -> Option<String>;

    /// Puts a stored conversation before the request's own messages.
    fn recall(&self, request: &mut TurnRequest, stored: &str) -> Result<(), TurnError>;
}

/// A dialect as hosts speak it.
pub trait UpstreamDialect: Send + Sync {
    /// Its name.
    fn id(&self) -> DialectId;

    /// What follows the base URL: `/messages`.
    fn path(&self) -> &'static str;

    /// Writes a request body.
    fn write_request(&self, request: &TurnRequest) -> Result<WrittenRequest, TurnError>;

    /// Reads a reply in one piece.
    fn read_reply(&self, body: &[u8]) -> Result<Translated<Reply>, TurnError>;

    /// Begins to read a reply as it comes.
    fn reply_reader(&self) -> Box<dyn ReplyReader>;

    /// Reads an error answer; a body that is no error of this dialect (HTML, nothing) still gives a clear error.
    fn read_error(&self, status: u16, body: &[u8]) -> TurnError;

    /// Begins to watch a stream that is relayed unread.
    fn meter(&self) -> Box<dyn Meter>;

    /// Looks at a whole reply that is relayed unread.
    fn measure(&self, body: &[u8]) -> MeterReading;
}

/// Turns a host's frames into events. Every output is accepted by `Grammar`.
pub trait ReplyReader: Send {
    /// Takes the next frame.
    fn frame(&mut self, frame: SseFrame<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError>;

    /// The host has closed the stream: an error unless the reply was complete (T17).
    fn end(&mut self, out: &mut Vec<TurnEvent>) -> Result<(), TurnError>;

    /// What could not be said in events.
    fn losses(&mut self) -> Losses;
}

/// Turns events into a client's frames.
pub trait ReplyWriter: Send {
    /// Writes what this event means; may be nothing.
    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>);

    /// Nothing more is there for now: writes what was only held back for what might have come along with it.
    fn pause(&mut self, _out: &mut Vec<u8>) {}

    /// Ends the stream with the dialect's error event.
    fn error(&mut self, error: &TurnError, out: &mut Vec<u8>);

    /// Shows that we are still there (T19). May come at any time, also before the first event.
    fn ping(&mut self, out: &mut Vec<u8>);

    /// What could not be said in this dialect.
    fn losses(&mut self) -> Losses;
}

/// Watches a stream that is relayed unread: reads off usage and sees whether the stream ended properly. Must be
/// cheap: it looks only into frames that matter.
pub trait Meter: Send {
    /// Sees a frame of a stream pass.
    fn frame(&mut self, frame: SseFrame<'_>);

    /// What was seen so far.
    fn reading(&self) -> MeterReading;
}

/// What was seen of a reply that is relayed unread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeterReading {
    /// Token counts, where the host gave any.
    pub usage: Option<Usage>,
    /// True once the dialect's last frame has passed.
    pub complete: bool,
    /// An error the host sent inside the stream.
    pub error: Option<TurnError>,
    /// The whole reply, in dialects whose streams end by repeating it.
    pub repeated: Option<Arc<str>>,
    /// About how many bytes were said, in dialects whose streams may end without token counts.
    pub said_bytes: Option<usize>,
}

/// What a client's reply needs to know beside the events.
#[derive(Clone, Debug)]
pub struct ReplyContext {
    /// What was asked: some dialects repeat it in their answer.
    pub request: Arc<TurnRequest>,
    /// Seconds since 1970, for dialects that date their replies.
    pub now: u64,
    /// The id to give the reply where the dialect's ids are ours to make (Responses).
    pub fallback_id: String,
    /// Input tokens as we estimate them, for dialects that report usage before the host has (T18).
    pub estimated_input: u64,
}

/// A request for a host.
#[derive(Clone, Debug)]
pub struct WrittenRequest {
    /// The JSON body.
    pub body: Vec<u8>,
    /// What could not be said.
    pub losses: Losses,
    /// Tools that go by another name at the host (T24).
    pub names: NameMap,
}

/// Tools that go by another name at the host, because theirs is too long or has letters the host refuses (T24).
#[derive(Clone, Debug, Default)]
pub struct NameMap {
    to_host: HashMap<String, String>,
    to_client: HashMap<String, String>,
}

impl NameMap {
    /// Remembers that the client's `name` is `host_name` at the host.
    pub fn insert(&mut self, name: &str, host_name: &str) {
        self.to_host.insert(name.to_owned(), host_name.to_owned());
        self.to_client.insert(host_name.to_owned(), name.to_owned());
    }

    /// The name to use at the host.
    pub fn to_host<'a>(&'a self, name: &'a str) -> &'a str {
        self.to_host.get(name).map_or(name, String::as_str)
    }

    /// The client's own name for a tool the host called.
    pub fn to_client(&self, host_name: ToolName) -> ToolName {
        match self.to_client.get(host_name.as_str()) {
            Some(name) => ToolName::from(name.as_str()),
            None => host_name,
        }
    }

    /// True where every tool keeps its name.
    pub fn is_empty(&self) -> bool {
        self.to_host.is_empty()
    }
}
