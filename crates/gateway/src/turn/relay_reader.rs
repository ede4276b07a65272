//! Reads a relayed stream for people who watch. Nobody watching costs nothing: then there is no reader.

use toolgate_dialect::frame::{MAX_FRAME_BYTES, SseDecoder};
use toolgate_dialect::{ReplyReader, registry};

use super::record::TurnRecord;
use super::request::RoutedTurn;
use super::stream::Source;

/// Reads the frames of one relayed reply.
pub(super) struct RelayReader {
    decoder: SseDecoder,
    reader: Box<dyn ReplyReader>,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Reading,
    /// The stream cannot be read, which is the client's business alone.
    Failed,
}

impl RelayReader {
    /// A reader, if this is a relayed reply and somebody watches.
    pub(super) fn open(source: &Source, routed: &RoutedTurn, record: &TurnRecord) -> Option<Self> {
        if !matches!(source, Source::Relay(_)) || !record.is_watched() {
            return None;
        }
        let dialect = registry::find(routed.turn.dialect.id().name)?;
        Some(Self {
            decoder: SseDecoder::new(MAX_FRAME_BYTES),
            reader: dialect.upstream.reply_reader(),
            state: State::Reading,
        })
    }

    /// Reads the next frames.
    pub(super) fn read(&mut self, frames: &[u8], record: &mut TurnRecord) {
        if self.state == State::Failed {
            return;
        }
        self.decoder.push(frames);
        let mut events = Vec::new();
        loop {
            let read = match self.decoder.next_frame() {
                Ok(Some(frame)) => self.reader.frame(frame, &mut events).is_ok(),
                Ok(None) => break,
                Err(_) => false,
            };
            if !read {
                self.state = State::Failed;
                break;
            }
        }
        for event in &events {
            record.watch_event(event);
        }
    }
}
