//! OpenAI's Chat Completions API, as used by clients and by the many compatible hosts.
//!
//! Where the API has two spellings for the same thing, a [mark](marks) records which one was read, and the writer uses
//! the same one. `obfuscation` is dropped: it pads chunks against traffic analysis and would not match rewritten chunks.

mod content_read;
mod content_read_assistant;
mod content_write;
mod content_write_assistant;
mod content_write_reasoning;
mod error;
mod extras;
mod marks;
mod meter;
mod reasoning_details;
mod reply_read;
mod reply_write;
mod request_read;
mod request_read_messages;
mod request_read_reasoning;
mod request_read_tools;
mod request_write;
mod request_write_messages;
mod request_write_tools;
mod stream_read;
mod stream_read_calls;
mod stream_read_head;
mod stream_read_state;
mod stream_read_surrogates;
mod stream_write;
mod stream_write_chunk;
mod stream_write_state;
mod thought_signature;
mod usage;
mod wire;
mod wire_either;
mod wire_stream;
mod wire_tools;

pub use reply_write::merge_choices;
pub use stream_write::ChatWriter;

use toolgate_model::{DialectId, Losses, Reply, Translated, TurnError, TurnRequest, pairing};

use crate::peek::peek;
use crate::{
    ClientDialect, Meter, MeterReading, Peek, ReplyContext, ReplyReader, ReplyWriter, RequestForm,
    UpstreamDialect, WrittenRequest, error_extras,
};

/// The dialect's name.
pub const ID: DialectId = DialectId { name: "openai-chat", provider: "openai" };

/// The dialect, in both roles.
pub static DIALECT: OpenAiChat = OpenAiChat;

/// OpenAI's Chat Completions.
#[derive(Clone, Copy, Debug)]
pub struct OpenAiChat;

impl ClientDialect for OpenAiChat {
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
        let mut losses = Losses::default();
        pairing::repair(&mut request.messages, &mut losses); // T25
        Ok(losses)
    }

    fn write_reply(&self, reply: &Reply, context: &ReplyContext) -> Translated<Vec<u8>> {
        reply_write::write(reply, context)
    }

    fn reply_writer(&self, context: ReplyContext) -> Box<dyn ReplyWriter> {
        Box::new(ChatWriter::new(context))
    }

    fn write_error(&self, error: &TurnError) -> Vec<u8> {
        error::write(error)
    }

    fn remember(&self, _: &TurnRequest, _: &Reply) -> Option<String> {
        // Clients of this API always send the whole conversation.
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

/// Whether the content being written was read in this dialect. Native content is written in its original form, foreign
/// content in the form that most hosts and clients accept.
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
