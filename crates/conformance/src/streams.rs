//! Checks on streams: any split of the bytes gives the same events, and the whole reply is their fold.

use std::sync::Arc;

use toolgate_model::{
    Block, Delivery, Grammar, Losses, Reply, ReplyHead, TurnError, TurnEvent, TurnRequest, UsageReport, reply,
};

use crate::exchange::examine_error;
use crate::{Verdict, context, crossing, essence};
use toolgate_dialect::frame::{MAX_FRAME_BYTES, SseDecoder};
use toolgate_dialect::registry::{self, Dialect};

/// A stream as read: its events and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadStream {
    /// The events before the end.
    pub events: Vec<TurnEvent>,
    /// `Ok` for a complete reply, else the error.
    pub end: Result<(), TurnError>,
}

/// Chunk sizes that split a stream inside characters, lines and frames, and not at all.
const SPLITS: [usize; 4] = [1, 7, 61, usize::MAX];

/// Runs the checks on one recorded stream.
pub(super) fn examine(dialect: &Dialect, bytes: &[u8], request: &Arc<TurnRequest>, faults: &mut Verdict) {
    // Token counts are compared, so the client must request them.
    let mut with_usage = TurnRequest::clone(request);
    with_usage.delivery = Delivery::Stream(UsageReport::Included);
    let request = &Arc::new(with_usage);
    let read = read(dialect, bytes, usize::MAX);
    for split in SPLITS {
        if self::read(dialect, bytes, split) != read {
            faults.push(format!("chunks of {split} bytes give different events"));
        }
    }
    let mut grammar = Grammar::new();
    if let Err(error) = read.events.iter().try_for_each(|event| grammar.accept(event)) {
        return faults.push(format!("the grammar rejects the stream's events: {error}"));
    }
    match read.end {
        Ok(()) => match reply::fold(read.events.clone()) {
            Ok(reply) => {
                rewrite(dialect, &read.events, &reply, request, faults);
                crossing::reply(dialect, &reply, request, faults);
                cross(dialect, &read.events, &reply, request, faults);
                truncate(dialect, bytes, &reply, faults);
            }
            Err(error) => faults.push(format!("folding the stream failed: {error}")),
        },
        Err(error) if is_complete(bytes) && !has_error(bytes) => {
            faults.push(format!("reading the stream failed: {error}"));
        }
        Err(error) => examine_stream_error(&error, request, faults),
    }
}

/// Reads a stream in chunks of `split` bytes.
pub fn read(dialect: &Dialect, bytes: &[u8], split: usize) -> ReadStream {
    let mut reader = dialect.upstream.reply_reader();
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    let mut events = Vec::new();
    let mut feed = || -> Result<(), TurnError> {
        for chunk in bytes.chunks(split.min(bytes.len().max(1))) {
            decoder.push(chunk);
            while let Some(frame) =
                decoder.next_frame().map_err(|error| TurnError::upstream(error.to_string()))?
            {
                reader.frame(frame, &mut events)?;
            }
        }
        if let Some(last) = decoder.end().map_err(|error| TurnError::upstream(error.to_string()))? {
            reader.frame(last, &mut events)?;
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

/// Written in its own dialect and read back, the stream folds into the same reply.
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
        Ok(Ok(again)) if with_arguments(again.clone()) == with_arguments(reply.clone()) => {}
        Ok(Ok(again)) => {
            faults.push(format!("the rewritten stream differs: {}", first_difference(reply, &again)));
        }
        Ok(Err(error)) => faults.push(format!("folding the rewritten stream failed: {error}")),
        Err(error) => faults.push(format!("reading the rewritten stream failed: {error}")),
    }
}

/// The reply with `{}` for calls without arguments, as every writer writes them.
fn with_arguments(mut reply: Reply) -> Reply {
    for block in &mut reply.blocks {
        if let Block::ToolCall(call) = block
            && call.arguments.is_empty()
        {
            "{}".clone_into(&mut call.arguments);
        }
    }
    reply
}

/// Written in every other dialect and read back, the stream has the same content, up to reported losses.
fn cross(
    dialect: &Dialect,
    events: &[TurnEvent],
    reply: &Reply,
    request: &Arc<TurnRequest>,
    faults: &mut Verdict,
) {
    let reply = crossing::normalized(reply);
    let mut normalizer = toolgate_model::stop_reason::StopReasonNormalizer::new();
    let events: Vec<TurnEvent> = events.iter().cloned().map(|event| normalizer.event(event)).collect();
    for (name, other) in crossing::others(dialect) {
        let (bytes, losses) = write(other, &events, request);
        let read = read(other, &bytes, usize::MAX);
        match read.end.map(|()| reply::fold(read.events)) {
            Ok(Ok(translated)) => {
                let (before, after) = (essence::of_reply(&reply), essence::of_reply(&translated));
                crossing::report_unexplained(&format!("stream in {name}"), &before, &after, &losses, faults);
            }
            Ok(Err(error)) => faults.push(format!("folding the stream in {name} failed: {error}")),
            Err(error) => faults.push(format!("reading the stream in {name} failed: {error}")),
        }
    }
}

/// A stream cut before its content is complete ends in an error.
fn truncate(dialect: &Dialect, bytes: &[u8], reply: &Reply, faults: &mut Verdict) {
    for part in 1..8 {
        let cut = bytes.len() * part / 16;
        let short = read(dialect, &bytes[..cut], usize::MAX);
        // Token counts and other fields may follow the finish reason.
        let is_other =
            |short: Reply| (&short.blocks, &short.finish.stop) != (&reply.blocks, &reply.finish.stop);
        if short.end.is_ok() && reply::fold(short.events).is_ok_and(is_other) {
            return faults.push(format!("the stream cut after {cut} bytes is read as complete"));
        }
    }
}

fn examine_stream_error(error: &TurnError, request: &Arc<TurnRequest>, faults: &mut Verdict) {
    examine_error(error, error.status(), faults);
    for (name, dialect) in &registry::ALL {
        let mut bytes = Vec::new();
        dialect.client.reply_writer(context(request)).error(error, &mut bytes);
        match read(dialect, &bytes, usize::MAX).end {
            Err(read) if read.kind == error.kind && read.message == error.message => {}
            Err(read) => {
                faults.push(format!("error streamed in {name} became {:?}: {}", read.kind, read.message));
            }
            Ok(()) => faults.push(format!("error streamed in {name} was read as a reply")),
        }
    }
}

/// True if the stream ends with its dialect's last frame. A second reply that starts inside the first is an error.
fn is_complete(bytes: &[u8]) -> bool {
    let mut starts = memchr::memmem::find_iter(bytes, b"event: message_start").skip(1);
    let stop = memchr::memmem::find(bytes, b"event: message_stop");
    if starts.next().is_some_and(|again| stop.is_none_or(|stop| again < stop)) {
        return false;
    }
    let tail = &bytes[bytes.len().saturating_sub(200_000)..];
    ["message_stop", "[DONE]", "response.completed", "response.incomplete"]
        .iter()
        .any(|marker| memchr::memmem::find(tail, marker.as_bytes()).is_some())
}

fn has_error(bytes: &[u8]) -> bool {
    ["event: error", "\"error\":{", "\"error\": {", "response.failed"]
        .iter()
        .any(|marker| memchr::memmem::find(bytes, marker.as_bytes()).is_some())
}

fn first_difference(before: &Reply, after: &Reply) -> String {
    // The order of a head's fields has no meaning, but shows in its text.
    let has_same_head = before.head == after.head;
    let lines = |reply: &Reply| {
        let mut reply = reply.clone();
        if has_same_head {
            reply.head = ReplyHead::default();
        }
        format!("{reply:#?}").lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (before, after) = (lines(before), lines(after));
    let at = before.iter().zip(&after).position(|(before, after)| before != after);
    let at = at.unwrap_or(before.len().min(after.len()));
    format!("{:.160?} became {:.160?}", before.get(at), after.get(at))
}
