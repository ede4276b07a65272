//! Streams: any split of the bytes gives the same events, and the whole reply is their fold.

use std::sync::Arc;

use toolgate_model::{
    Delivery, Grammar, Losses, Reply, TurnError, TurnEvent, TurnRequest, UsageReport, reply,
};

use super::exchange::examine_error;
use super::{Verdict, context, crossing, essence};
use crate::frame::{MAX_FRAME_BYTES, SseDecoder};
use crate::registry::{self, Dialect};

/// What a reader made of a stream: its events, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadStream {
    /// The events before the end.
    pub events: Vec<TurnEvent>,
    /// A complete reply, or why not.
    pub end: Result<(), TurnError>,
}

/// Piece sizes that cut a stream inside characters, lines, frames and not at all.
const SPLITS: [usize; 4] = [1, 7, 61, usize::MAX];

/// Runs the battery over one recorded stream.
pub(super) fn examine(dialect: &Dialect, bytes: &[u8], request: &Arc<TurnRequest>, faults: &mut Verdict) {
    // Token counts are part of what is compared, so the client asks for them.
    let mut asking = TurnRequest::clone(request);
    asking.delivery = Delivery::Stream(UsageReport::Included);
    let request = &Arc::new(asking);
    let read = read(dialect, bytes, usize::MAX);
    for split in SPLITS {
        if self::read(dialect, bytes, split) != read {
            faults.push(format!("pieces of {split} bytes give other events"));
        }
    }
    let mut grammar = Grammar::new();
    if let Err(error) = read.events.iter().try_for_each(|event| grammar.accept(event)) {
        return faults.push(format!("the stream's events are refused: {error}"));
    }
    match read.end {
        Ok(()) => match reply::fold(read.events.clone()) {
            Ok(reply) => {
                rewrite(dialect, &read.events, &reply, request, faults);
                crossing::reply(dialect, &reply, request, faults);
                cross(dialect, &read.events, &reply, request, faults);
                truncate(dialect, bytes, faults);
            }
            Err(error) => faults.push(format!("the stream does not fold: {error}")),
        },
        Err(error) if ends_properly(bytes) && !tells_error(bytes) => {
            faults.push(format!("the stream is not read: {error}"));
        }
        Err(error) => examine_stream_error(&error, request, faults),
    }
}

/// Reads a stream cut into pieces of this size.
pub fn read(dialect: &Dialect, bytes: &[u8], split: usize) -> ReadStream {
    let mut reader = dialect.upstream.reply_reader();
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    let mut events = Vec::new();
    let mut feed = || -> Result<(), TurnError> {
        for piece in bytes.chunks(split.min(bytes.len().max(1))) {
            decoder.push(piece);
            while let Some(frame) =
                decoder.next_frame().map_err(|error| TurnError::upstream(error.to_string()))?
            {
                reader.frame(frame, &mut events)?;
            }
        }
        reader.end(&mut events)
    };
    let end = feed();
    ReadStream { events, end }
}

/// Writes events as a stream of this dialect.
pub fn write(dialect: &Dialect, events: &[TurnEvent], request: &Arc<TurnRequest>) -> (Vec<u8>, Losses) {
    let mut writer = dialect.client.reply_writer(context(request));
    let mut bytes = Vec::new();
    for event in events {
        writer.event(event.clone(), &mut bytes);
    }
    (bytes, writer.losses())
}

/// Written in its own dialect and read again, the stream folds into the same reply.
fn rewrite(
    dialect: &Dialect,
    events: &[TurnEvent],
    reply: &Reply,
    request: &Arc<TurnRequest>,
    faults: &mut Verdict,
) {
    let (bytes, _) = write(dialect, events, request);
    let again = read(dialect, &bytes, usize::MAX);
    match again.end.map(|()| reply::fold(again.events)) {
        Ok(Ok(again)) if again == *reply => {}
        Ok(Ok(again)) => {
            faults.push(format!("written again the stream says other: {}", unlike(reply, &again)));
        }
        Ok(Err(error)) => faults.push(format!("written again the stream does not fold: {error}")),
        Err(error) => faults.push(format!("written again the stream is not read: {error}")),
    }
}

/// Written in the other dialects and read there, the stream says the same up to reported losses.
fn cross(
    dialect: &Dialect,
    events: &[TurnEvent],
    reply: &Reply,
    request: &Arc<TurnRequest>,
    faults: &mut Verdict,
) {
    let reply = crossing::settled(reply);
    let mut settler = toolgate_model::settle::Settler::new();
    let events: Vec<TurnEvent> = events.iter().cloned().map(|event| settler.event(event)).collect();
    for (name, other) in crossing::others(dialect) {
        let (bytes, losses) = write(other, &events, request);
        let read = read(other, &bytes, usize::MAX);
        match read.end.map(|()| reply::fold(read.events)) {
            Ok(Ok(told)) => {
                let (before, after) = (essence::of_reply(&reply), essence::of_reply(&told));
                crossing::judge(&format!("stream in {name}"), &before, &after, &losses, faults);
            }
            Ok(Err(error)) => faults.push(format!("stream in {name} does not fold: {error}")),
            Err(error) => faults.push(format!("stream in {name} is not read there: {error}")),
        }
    }
}

/// Cut anywhere before its last frames, the stream ends in an error.
fn truncate(dialect: &Dialect, bytes: &[u8], faults: &mut Verdict) {
    let whole = read(dialect, bytes, usize::MAX);
    for part in 1..8 {
        let cut = bytes.len() * part / 16;
        let short = read(dialect, &bytes[..cut], usize::MAX);
        // A recording may hold several replies one after another; the first is then complete before the cut.
        if short.end.is_ok() && short.events != whole.events {
            return faults.push(format!("cut after {cut} bytes the stream still ends well"));
        }
    }
}

fn examine_stream_error(error: &TurnError, request: &Arc<TurnRequest>, faults: &mut Verdict) {
    examine_error(error, error.status(), faults);
    for (name, dialect) in &registry::ALL {
        let mut bytes = Vec::new();
        dialect.client.reply_writer(context(request)).error(error, &mut bytes);
        match read(dialect, &bytes, usize::MAX).end {
            Err(told) if told.kind == error.kind && told.message == error.message => {}
            Err(told) => {
                faults.push(format!("error streamed in {name} became {:?}: {}", told.kind, told.message));
            }
            Ok(()) => faults.push(format!("error streamed in {name} was taken for a reply")),
        }
    }
}

/// A stream that begins a second reply inside the first is broken, however it ends.
fn ends_properly(bytes: &[u8]) -> bool {
    let mut starts = memchr::memmem::find_iter(bytes, b"event: message_start").skip(1);
    let stop = memchr::memmem::find(bytes, b"event: message_stop");
    if starts.next().is_some_and(|again| stop.is_none_or(|stop| again < stop)) {
        return false;
    }
    let tail = &bytes[bytes.len().saturating_sub(200_000)..];
    ["message_stop", "[DONE]", "response.completed", "response.incomplete"]
        .iter()
        .any(|mark| memchr::memmem::find(tail, mark.as_bytes()).is_some())
}

fn tells_error(bytes: &[u8]) -> bool {
    ["event: error", "\"error\":{", "\"error\": {", "response.failed"]
        .iter()
        .any(|mark| memchr::memmem::find(bytes, mark.as_bytes()).is_some())
}

fn unlike(before: &Reply, after: &Reply) -> String {
    let lines = |reply: &Reply| format!("{reply:#?}").lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (lines(before), lines(after));
    let at = before.iter().zip(&after).position(|(before, after)| before != after);
    let at = at.unwrap_or(before.len().min(after.len()));
    format!("{:.160?} became {:.160?}", before.get(at), after.get(at))
}
