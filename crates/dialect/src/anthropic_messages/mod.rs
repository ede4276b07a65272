//! Anthropic's Messages API.
//!
//! The reader does not distinguish these forms, so the writer may return the other one: a string and one text block;
//! `null`, an empty array and a missing field; `"stream": false`, `"is_error": false` and a missing flag; `"type":
//! "custom"` on a tool and none; consecutive user messages and one; `signature: ""` and none.

mod citations;
mod content_read;
mod content_read_as_text;
mod content_read_media;
mod content_write;
mod content_write_input;
mod content_write_media;
mod count;
mod error;
mod meter;
mod reply_read;
mod reply_write;
mod request_read;
mod request_write;
mod request_write_messages;
mod request_write_thinking;
mod stream_read;
mod stream_read_block;
mod stream_write;
mod usage;
mod wire;
mod wire_output;
mod wire_stream;

#[cfg(test)]
mod tests;

use toolgate_model::{DialectId, Losses, Reply, Translated, TurnError, TurnRequest, pairing};

use crate::peek::peek;
use crate::{
    ClientDialect, Meter, MeterReading, Peek, ReplyContext, ReplyReader, ReplyWriter, RequestForm,
    UpstreamDialect, WrittenRequest, error_extras,
};

pub use count::{read_count_request, write_count};

/// The dialect's name.
pub const ID: DialectId = DialectId { name: "anthropic-messages", provider: "anthropic" };

/// The dialect, in both roles.
pub static DIALECT: AnthropicMessages = AnthropicMessages;

/// Anthropic's Messages API.
#[derive(Clone, Copy, Debug)]
pub struct AnthropicMessages;

impl ClientDialect for AnthropicMessages {
    fn id(&self) -> DialectId {
        ID
    }

    fn peek_request<'b>(&self, body: &'b [u8]) -> Result<Peek<'b>, TurnError> {
        peek(body).map_err(request_read::unreadable)
    }

    fn read_unpaired(&self, body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
        request_read::read(body)
    }

    fn pair(&self, request: &mut TurnRequest) -> Result<Losses, TurnError> {
        pairing::check(&request.messages)?; // D2
        Ok(Losses::default())
    }

    fn write_reply(&self, reply: &Reply, context: &ReplyContext) -> Translated<Vec<u8>> {
        reply_write::write(reply, context)
    }

    fn reply_writer(&self, context: ReplyContext) -> Box<dyn ReplyWriter> {
        Box::new(stream_write::StreamWriter::new(context))
    }

    fn write_error(&self, error: &TurnError) -> Vec<u8> {
        error::write(error)
    }

    /// Clients of this API always send the whole conversation.
    fn remember(&self, _request: &TurnRequest, _reply: &Reply) -> Option<String> {
        None
    }

    fn recall(&self, _request: &mut TurnRequest, _stored: &str) -> Result<(), TurnError> {
        Err(TurnError::invalid(
            "the Messages API cannot continue a stored reply: send the whole conversation in `messages`",
        ))
    }
}

impl UpstreamDialect for AnthropicMessages {
    fn id(&self) -> DialectId {
        ID
    }

    fn path(&self) -> &'static str {
        "/messages"
    }

    fn write_request(
        &self,
        request: &TurnRequest,
        form: RequestForm<'_>,
    ) -> Result<WrittenRequest, TurnError> {
        request_write::write(request, form)
    }

    fn read_reply(&self, body: &[u8]) -> Result<Translated<Reply>, TurnError> {
        reply_read::read(body)
    }

    fn reply_reader(&self) -> Box<dyn ReplyReader> {
        Box::<stream_read::StreamReader>::default()
    }

    fn read_error(&self, status: u16, body: &[u8]) -> TurnError {
        let mut error = error::read(status, body);
        error.extras = error_extras::of(ID, body, &error::plain(&error));
        error
    }

    fn meter(&self) -> Box<dyn Meter> {
        Box::<meter::StreamMeter>::default()
    }

    fn measure(&self, body: &[u8]) -> MeterReading {
        meter::measure(body)
    }
}
