//! OpenAI's Chat Completions, as clients and as the many compatible hosts speak it.
//!
//! ```text
//!  request.rs ─▶ TurnRequest ─▶ request_write.rs (conversation.rs, tools.rs)
//!  reply.rs, stream_read.rs (calls.rs) ─▶ Reply, TurnEvent ─▶ reply.rs, stream_write.rs
//!  assistant.rs, content.rs, usage.rs: what requests and replies have in common
//! ```
//!
//! What this dialect can say in two ways is remembered by a [mark](marks) and said the same way again.
//! Left out on purpose: `obfuscation`, which is padding against eavesdroppers and would not fit the new chunks.

mod assistant;
mod assistant_write;
mod calls;
mod chunk_text;
mod content;
mod conversation;
mod either;
mod error;
mod fields;
mod host_model;
mod marks;
mod meter;
mod reply;
mod request;
mod request_write;
mod stream_read;
mod stream_wire;
mod stream_write;
mod surrogates;
mod tools;
mod usage;
mod wire;

pub use reply::merge_choices;
pub use stream_write::ChatWriter;

use toolgate_model::{DialectId, Losses, Reply, Translated, TurnError, TurnRequest, pairing};

use crate::peek::peek;
use crate::{
    ClientDialect, Meter, MeterReading, Peek, ReplyContext, ReplyReader, ReplyWriter, UpstreamDialect,
    WrittenRequest, error_rest,
};

/// This dialect's name.
pub const ID: DialectId = DialectId { name: "openai-chat", provider: "openai" };

/// The dialect.
pub static DIALECT: OpenAiChat = OpenAiChat;

/// OpenAI's Chat Completions.
#[derive(Clone, Copy, Debug)]
pub struct OpenAiChat;

impl ClientDialect for OpenAiChat {
    fn id(&self) -> DialectId {
        ID
    }

    fn peek_request<'b>(&self, body: &'b [u8]) -> Result<Peek<'b>, TurnError> {
        peek(body).map_err(request::unreadable)
    }

    fn read_unpaired(&self, body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
        request::read(body)
    }

    fn pair(&self, request: &mut TurnRequest) -> Result<Losses, TurnError> {
        let mut losses = Losses::default();
        pairing::repair(&mut request.messages, &mut losses); // T25
        Ok(losses)
    }

    fn write_reply(&self, reply: &Reply, context: &ReplyContext) -> Translated<Vec<u8>> {
        reply::write(reply, context)
    }

    fn reply_writer(&self, context: ReplyContext) -> Box<dyn ReplyWriter> {
        Box::new(ChatWriter::new(context))
    }

    fn write_error(&self, error: &TurnError) -> Vec<u8> {
        error::write(error)
    }

    fn remember(&self, _: &TurnRequest, _: &Reply) -> Option<String> {
        // Clients of this dialect always send the whole conversation.
        None
    }

    fn recall(&self, _: &mut TurnRequest, _: &str) -> Result<(), TurnError> {
        Err(TurnError::invalid(
            "Chat Completions cannot continue a stored reply: send the whole conversation",
        ))
    }
}

impl UpstreamDialect for OpenAiChat {
    fn id(&self) -> DialectId {
        ID
    }

    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn write_request(&self, request: &TurnRequest) -> Result<WrittenRequest, TurnError> {
        request_write::write(request)
    }

    fn read_reply(&self, body: &[u8]) -> Result<Translated<Reply>, TurnError> {
        reply::read(body)
    }

    fn reply_reader(&self) -> Box<dyn ReplyReader> {
        Box::new(stream_read::ChatReader::new())
    }

    fn read_error(&self, status: u16, body: &[u8]) -> TurnError {
        let mut error = error::read(status, body);
        error.extras = error_rest::of(ID, body, &error::plain(&error));
        error
    }

    fn meter(&self) -> Box<dyn Meter> {
        Box::new(meter::StreamMeter::default())
    }

    fn measure(&self, body: &[u8]) -> MeterReading {
        meter::measure(body)
    }
}

/// Whose words are being written: what came in this dialect goes back as it was, what came in another is put the
/// way most hosts and clients take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Native,
    Foreign,
}

impl Origin {
    fn of(extras: &toolgate_model::Extras) -> Self {
        if extras.is_marked(ID, marks::NATIVE) { Self::Native } else { Self::Foreign }
    }
}

#[cfg(test)]
mod tests;
