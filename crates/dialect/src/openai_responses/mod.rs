//! OpenAI's Responses API.

mod client_tools;
mod content_read;
mod content_read_parts;
mod content_write;
mod content_write_parts;
mod count;
mod error;
mod input_items;
mod meter;
mod references;
mod reply_read;
mod reply_write;
mod reply_write_reasoning;
mod request_read;
mod request_read_tools;
mod request_write;
mod request_write_tools;
mod stored;
mod stream_read;
mod stream_read_complete;
mod stream_read_items;
mod stream_read_lookup;
mod stream_read_progress;
mod stream_write;
mod stream_write_calls;
mod stream_write_events;
mod usage;
mod wire;
mod wire_stream;

#[cfg(test)]
mod tests;

use toolgate_model::{DialectId, Losses, Reply, Translated, TurnError, TurnRequest, pairing};

use crate::peek::peek;
use crate::{
    ClientDialect, Meter, MeterReading, Peek, ReplyContext, ReplyReader, ReplyWriter, RequestForm,
    UpstreamDialect, WrittenRequest, error_extras,
};

pub use count::write_count;
pub use input_items::{input_count, input_item_place, input_items};
pub use references::{ReplyItem, item_references, reply_items, resolve_references};

/// The dialect's name.
pub const ID: DialectId = DialectId { name: "openai-responses", provider: "openai" };

/// OpenAI's Responses API.
#[derive(Clone, Copy, Debug)]
pub struct OpenaiResponses;

/// The dialect, in both roles.
pub static DIALECT: OpenaiResponses = OpenaiResponses;

impl ClientDialect for OpenaiResponses {
    fn id(&self) -> DialectId {
        ID
    }

    fn peek_request<'b>(&self, body: &'b [u8]) -> Result<Peek<'b>, TurnError> {
        peek(body).map_err(wire::unreadable)
    }

    fn read_unpaired(&self, body: &[u8]) -> Result<Translated<TurnRequest>, TurnError> {
        request_read::read(body)
    }

    fn pair(&self, request: &mut TurnRequest) -> Result<Losses, TurnError> {
        let mut losses = Losses::default();
        if request_read::is_self_contained(request) {
            pairing::repair(&mut request.messages, &mut losses);
        }
        Ok(losses)
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

    fn remember(&self, request: &TurnRequest, reply: &Reply) -> Option<String> {
        stored::remember(request, reply)
    }

    fn recall(&self, request: &mut TurnRequest, stored: &str) -> Result<(), TurnError> {
        stored::recall(request, stored)
    }
}

impl UpstreamDialect for OpenaiResponses {
    fn id(&self) -> DialectId {
        ID
    }

    fn path(&self) -> &'static str {
        "/responses"
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
        Box::new(stream_read::StreamReader::new())
    }

    fn read_error(&self, status: u16, body: &[u8]) -> TurnError {
        let mut error = error::read(status, body);
        error.extras = error_extras::of(ID, body, &error::plain(&error));
        error
    }

    fn meter(&self) -> Box<dyn Meter> {
        Box::new(meter::StreamMeter::default())
    }

    fn measure(&self, body: &[u8]) -> MeterReading {
        meter::measure(body)
    }
}
