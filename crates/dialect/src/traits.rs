//! The interfaces of a dialect: as a server towards clients, and as a client towards hosts.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_model::{
    DialectId, Losses, Reply, ToolName, Translated, TurnError, TurnEvent, TurnRequest, Usage,
};

use crate::Peek;
use crate::frame::SseFrame;
use crate::host::HostProfile;

/// A dialect towards clients.
pub trait ClientDialect: Send + Sync {
    /// The dialect's name.
    fn id(&self) -> DialectId;

    /// Reads the fields that routing needs and skips the rest. Fails with the error [`ClientDialect::read_request`]
    /// gives for a body that is not a JSON object.
    fn peek_request<'b>(&self, body: &'b [u8]) -> Result<Peek<'b>, TurnError>;

    /// Reads a request body. An error names the path of the field at fault.
    fn read_request(&self, body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
        let Translated { mut value, losses: more } = self.read_unpaired(body)?;
        let mut losses = self.pair(&mut value)?;
        losses.append(more);
        Ok(Translated { value, losses })
    }

    /// Like [`ClientDialect::read_request`], but does not match results with calls, for requests that may omit earlier
    /// messages. Call [`ClientDialect::pair`] once the conversation is complete.
    fn read_unpaired(&self, body: &[u8]) -> Result<Translated<TurnRequest>, TurnError>;

    /// Rejects results that answer no call of the request, or repairs and reports them.
    fn pair(&self, request: &mut TurnRequest) -> Result<Losses, TurnError>;

    /// Writes a whole reply.
    fn write_reply(&self, reply: &Reply, context: &ReplyContext) -> Translated<Vec<u8>>;

    /// A writer for a streamed reply.
    fn reply_writer(&self, context: ReplyContext) -> Box<dyn ReplyWriter>;

    /// Writes an error body.
    fn write_error(&self, error: &TurnError) -> Vec<u8>;

    /// The conversation including this reply, serialized for the store. `None` in dialects where clients cannot
    /// continue a stored reply by its id.
    fn remember(&self, request: &TurnRequest, reply: &Reply) -> Option<String>;

    /// Prepends a stored conversation to the request's messages.
    fn recall(&self, request: &mut TurnRequest, stored: &str) -> Result<(), TurnError>;
}

/// A dialect towards hosts.
pub trait UpstreamDialect: Send + Sync {
    /// The dialect's name.
    fn id(&self) -> DialectId;

    /// The path after the base URL: `/messages`.
    fn path(&self) -> &'static str;

    /// Writes a request body.
    fn write_request(
        &self,
        request: &TurnRequest,
        form: RequestForm<'_>,
    ) -> Result<WrittenRequest, TurnError>;

    /// Reads a whole reply.
    fn read_reply(&self, body: &[u8]) -> Result<Translated<Reply>, TurnError>;

    /// A reader for a streamed reply.
    fn reply_reader(&self) -> Box<dyn ReplyReader>;

    /// Reads an error response. A body that is not an error of this dialect (HTML, empty) still gives a clear error.
    fn read_error(&self, status: u16, body: &[u8]) -> TurnError;

    /// A meter for a stream that is relayed without parsing.
    fn meter(&self) -> Box<dyn Meter>;

    /// Meters a whole reply that is relayed. An incomplete reading means that the body is not a valid reply: use
    /// [`UpstreamDialect::read_reply`] to learn why.
    fn measure(&self, body: &[u8]) -> MeterReading;
}

/// Converts a host's frames to events. `Grammar` accepts every output.
pub trait ReplyReader: Send {
    /// Reads the next frame.
    fn frame(&mut self, frame: SseFrame<'_>, out: &mut Vec<TurnEvent>) -> Result<(), TurnError>;

    /// The host has closed the stream. Fails unless the reply is complete (T17).
    fn end(&mut self, out: &mut Vec<TurnEvent>) -> Result<(), TurnError>;

    /// What events cannot represent.
    fn losses(&mut self) -> Losses;
}

/// Converts events to a client's frames.
pub trait ReplyWriter: Send {
    /// Writes the frames for this event; may write none.
    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>);

    /// Flushes buffered output: no further event is ready.
    fn pause(&mut self, _out: &mut Vec<u8>) {}

    /// Ends the stream with the dialect's error event.
    fn error(&mut self, error: &TurnError, out: &mut Vec<u8>);

    /// Writes a keep-alive (T19). Allowed at any time, also before the first event.
    fn ping(&mut self, out: &mut Vec<u8>);

    /// What this dialect cannot represent.
    fn losses(&mut self) -> Losses;
}

/// Meters a stream that is relayed without parsing: usage, and whether the stream is complete. Must be cheap: it parses
/// only the frames that matter.
pub trait Meter: Send {
    /// Inspects the next frame.
    fn frame(&mut self, frame: SseFrame<'_>);

    /// The reading so far.
    fn reading(&self) -> MeterReading;
}

/// What a meter found in a relayed reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeterReading {
    /// Token counts, if the host sent any.
    pub usage: Option<Usage>,
    /// True for a complete reply: a stream's last frame has passed, or a whole body is valid.
    pub complete: bool,
    /// An error inside the reply.
    pub error: Option<TurnError>,
    /// The whole reply, in dialects whose streams repeat it at the end.
    pub repeated: Option<Arc<str>>,
    /// Estimated bytes of content, in dialects whose streams may end without token counts.
    pub content_bytes: Option<usize>,
}

/// What a writer needs besides the events.
#[derive(Clone, Debug)]
pub struct ReplyContext {
    /// The request: some dialects repeat parts of it in their replies.
    pub request: Arc<TurnRequest>,
    /// The current time in seconds since 1970, for dialects that date their replies.
    pub now: u64,
    /// The id of a reply that has no usable id from its host.
    pub fallback_id: String,
    /// The estimated input tokens, for dialects that report usage before the host does (T18).
    pub estimated_input: u64,
}

/// The form in which a request is written.
#[derive(Clone, Copy, Debug)]
pub enum RequestForm<'p> {
    /// As its client wrote it, in the client's own dialect.
    AsRead,
    /// As this host accepts it, in the client's own dialect: the client wrote it for another model.
    Refitted(&'p HostProfile),
    /// As this host accepts it, from another dialect.
    Fitted(&'p HostProfile),
}

/// A request for a host.
#[derive(Clone, Debug)]
pub struct WrittenRequest {
    /// The JSON body.
    pub body: Vec<u8>,
    /// What the dialect cannot represent.
    pub losses: Losses,
    /// The tools whose names differ at the host (T24).
    pub names: NameMap,
}

/// Tool names that differ at the host, because the client's name is too long or has forbidden characters (T24).
#[derive(Clone, Debug, Default)]
pub struct NameMap {
    to_host: HashMap<String, String>,
    to_client: HashMap<String, String>,
}

impl NameMap {
    /// Maps the client's `name` to `host_name`.
    pub fn insert(&mut self, name: &str, host_name: &str) {
        self.to_host.insert(name.to_owned(), host_name.to_owned());
        self.to_client.insert(host_name.to_owned(), name.to_owned());
    }

    /// The name to use at the host.
    pub fn to_host<'a>(&'a self, name: &'a str) -> &'a str {
        self.to_host.get(name).map_or(name, String::as_str)
    }

    /// The client's name for a tool that the host called.
    pub fn to_client(&self, host_name: ToolName) -> ToolName {
        match self.to_client.get(host_name.as_str()) {
            Some(name) => ToolName::from(name.as_str()),
            None => host_name,
        }
    }

    /// True if every tool keeps its name.
    pub fn is_empty(&self) -> bool {
        self.to_host.is_empty()
    }
}
