//! A host's reply, streamed or whole, as a client of another dialect (or the same) gets it.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use toolgate_conformance::explain::unexplained;
use toolgate_conformance::{context, essence, streams};
use toolgate_dialect::frame::{MAX_FRAME_BYTES, SseDecoder};
use toolgate_dialect::host::HostProfile;
use toolgate_dialect::registry::Dialect;
use toolgate_dialect::{ReplyReader, Translation};
use toolgate_model::stop_reason::StopReasonNormalizer;
use toolgate_model::{Losses, Reply, Translated, TurnError, TurnEvent, TurnRequest, reply};

use super::matching::Matcher;
use super::{ExpectedError, Outcome, check_losses, dialect, frames, load};

/// Pieces of one byte, of a few, and the stream at once.
const SPLITS: [usize; 3] = [1, 5, usize::MAX];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyCase {
    #[serde(rename = "case")]
    _case: String,
    #[serde(rename = "why")]
    _why: String,
    upstream: String,
    #[serde(default)]
    frames: Vec<Value>,
    whole: Option<Value>,
    request: Option<RequestSource>,
    client: String,
    expect: Option<Vec<Value>>,
    expect_whole: Option<Value>,
    expect_error: Option<ExpectedError>,
    #[serde(default)]
    losses: Vec<String>,
    #[serde(default)]
    contains: Vec<String>,
}

/// The request that was answered, in the client's words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestSource {
    dialect: String,
    body: Value,
}

/// A host's reply as read, in the form that the gateway passes to the client's dialect.
struct Heard {
    events: Vec<TurnEvent>,
    end: Result<(), TurnError>,
    losses: Losses,
}

/// The stream as the client gets it.
struct Streamed {
    bytes: Vec<u8>,
    losses: Losses,
}

/// Runs one fixture.
pub(crate) fn check(path: &Path) -> datatest_stable::Result<()> {
    let case: ReplyCase = load(path)?;
    let (upstream, client) = (dialect(&case.upstream)?, dialect(&case.client)?);
    let request =
        case.request.as_ref().map_or_else(|| Ok(TurnRequest::new("some-model", Vec::new())), read_request)?;
    let request = Arc::new(request);
    let mut translation = Translation::new(upstream.upstream);
    let profile = HostProfile::of_dialect(upstream.upstream.id());
    let _written = translation.request(client.client.id(), &request, &request.model, &profile);
    let mut heard = hear(upstream, &case)?;
    heard.events = handed_over(heard.events, upstream, client, &mut translation);
    Ok(judge(&case, client, &request, heard)?)
}

fn judge(case: &ReplyCase, client: &Dialect, request: &Arc<TurnRequest>, heard: Heard) -> Outcome {
    let mut writer = client.client.reply_writer(context(request));
    let mut stream = Vec::new();
    heard.events.iter().for_each(|event| writer.event(event.clone(), &mut stream));
    let mut losses = heard.losses;
    losses.append(writer.losses());
    match (&heard.end, &case.expect_error) {
        (Ok(()), None) => {}
        (Ok(()), Some(_)) => return Err(format!("an error was expected; the stream is:\n{}", text(&stream))),
        (Err(error), None) => return Err(format!("the reply was not read: {error}")),
        (Err(error), Some(expect)) => {
            expect.check(error)?;
            writer.error(error, &mut stream);
        }
    }
    if let Some(expect) = &case.expect {
        frames::check(expect, &stream)?;
    }
    if let Some(missing) = case.contains.iter().find(|piece| !text(&stream).contains(*piece)) {
        return Err(format!("`{missing}` does not stand in the stream:\n{}", text(&stream)));
    }
    if heard.end.is_ok() {
        let reply = reply::fold(heard.events).map_err(|error| error.to_string())?;
        judge_whole(case, client, request, &reply, &Streamed { bytes: stream, losses: losses.clone() })?;
    }
    check_losses(&case.losses, &losses)
}

/// The whole reply is as expected, and says what the stream says.
fn judge_whole(
    case: &ReplyCase,
    client: &Dialect,
    request: &Arc<TurnRequest>,
    reply: &Reply,
    stream: &Streamed,
) -> Outcome {
    let Translated { value: whole, losses: whole_losses } =
        client.client.write_reply(reply, &context(request));
    if let Some(expect) = &case.expect_whole {
        let found = serde_json::from_slice(&whole).map_err(|error| error.to_string())?;
        let difference = Matcher::default().difference(expect, &found);
        difference.map_or(Ok(()), |difference| {
            Err(format!("whole reply: {difference}\nit is:\n{}", text(&whole)))
        })?;
    }
    let from_whole =
        client.upstream.read_reply(&whole).map_err(|error| format!("whole reply: {error}"))?.value;
    let read = streams::read(client, &stream.bytes, usize::MAX);
    read.end.map_err(|error| format!("the written stream is not read: {error}"))?;
    let from_stream = reply::fold(read.events).map_err(|error| error.to_string())?;
    let (whole, mut streamed) = (essence::of_reply(&from_whole), essence::of_reply(&from_stream));
    if from_stream.finish.usage.is_none() {
        // A chat stream tells its usage only to those who asked for it; a whole reply always does.
        streamed
            .extend(whole.last().filter(|statement| statement.speaker == essence::Speaker::Usage).cloned());
    }
    // The whole form may lose more (arguments that are not JSON), but nothing else may differ.
    let mut only_whole = Losses::default();
    for loss in whole_losses.iter().filter(|loss| !stream.losses.contains(&loss.place)) {
        only_whole.add(loss.place.clone(), loss.reason.clone());
    }
    let difference = unexplained(&streamed, &whole, &only_whole);
    difference
        .map_or(Ok(()), |difference| Err(format!("the whole reply differs from the stream: {difference}")))
}

fn hear(upstream: &Dialect, case: &ReplyCase) -> Result<Heard, String> {
    if let Some(whole) = &case.whole {
        return Ok(match upstream.upstream.read_reply(whole.to_string().as_bytes()) {
            Ok(read) => Heard { events: read.value.into_events(), end: Ok(()), losses: read.losses },
            Err(error) => Heard { events: Vec::new(), end: Err(error), losses: Losses::default() },
        });
    }
    let bytes = frames::bytes(&case.frames);
    let heard = hear_stream(upstream, &bytes, usize::MAX);
    for split in SPLITS {
        let again = hear_stream(upstream, &bytes, split);
        if (&again.events, &again.end) != (&heard.events, &heard.end) {
            return Err(format!("pieces of {split} bytes give other events"));
        }
    }
    Ok(heard)
}

fn hear_stream(upstream: &Dialect, bytes: &[u8], split: usize) -> Heard {
    let mut reader = upstream.upstream.reply_reader();
    let mut events = Vec::new();
    let end = feed(reader.as_mut(), bytes, split, &mut events);
    Heard { events, end, losses: reader.losses() }
}

fn feed(
    reader: &mut dyn ReplyReader,
    bytes: &[u8],
    split: usize,
    events: &mut Vec<TurnEvent>,
) -> Result<(), TurnError> {
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    for piece in bytes.chunks(split.min(bytes.len().max(1))) {
        decoder.push(piece);
        while let Some(frame) =
            decoder.next_frame().map_err(|error| TurnError::upstream(error.to_string()))?
        {
            reader.frame(frame, events)?;
        }
    }
    if let Some(last) = decoder.end().map_err(|error| TurnError::upstream(error.to_string()))? {
        reader.frame(last, events)?;
    }
    reader.end(events)
}

/// What the gateway does between the dialects: restores tool names and, if the dialects differ, normalizes the
/// ending is made to agree with the content.
fn handed_over(
    mut events: Vec<TurnEvent>,
    from: &Dialect,
    to: &Dialect,
    translation: &mut Translation,
) -> Vec<TurnEvent> {
    let mut normalizer = StopReasonNormalizer::new();
    let crosses = from.client.id() != to.client.id();
    let settle = |event| if crosses { normalizer.event(event) } else { event };
    translation.restore(&mut events);
    events.into_iter().map(settle).collect()
}

fn read_request(source: &RequestSource) -> Result<TurnRequest, String> {
    let read = dialect(&source.dialect)?.client.read_request(source.body.to_string().as_bytes());
    read.map(|read| read.value).map_err(|error| format!("the fixture's request is not read: {error}"))
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
