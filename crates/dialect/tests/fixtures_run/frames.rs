//! Frames in fixtures, as bytes, and in a written stream.
//!
//! A string is a frame's raw lines. An object with a `type` is an event of that name; any other object is data alone.

use serde_json::Value;
use toolgate_dialect::frame::{MAX_FRAME_BYTES, SseDecoder, write_event};

use super::matching::Matcher;

/// The bytes of a stream of these frames.
pub(crate) fn bytes(frames: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in frames {
        if let Value::String(lines) = frame {
            out.extend_from_slice(lines.as_bytes());
            out.extend_from_slice(b"\n\n");
        } else {
            write_event(event_name(frame), frame.to_string().as_bytes(), &mut out);
        }
    }
    out
}

/// Checks that the bytes are exactly the expected frames.
pub(crate) fn check(expect: &[Value], stream: &[u8]) -> Result<(), String> {
    let expect = decode(&bytes(expect))?;
    let found = decode(stream)?;
    let mut matcher = Matcher::default();
    let differing = expect.iter().zip(&found).enumerate().find_map(|(index, (expect, found))| {
        unlike(&mut matcher, expect, found).map(|difference| format!("frame {index}: {difference}"))
    });
    let count = (expect.len() != found.len())
        .then(|| format!("there are {} frames and not {}", found.len(), expect.len()));
    match differing.or(count) {
        None => Ok(()),
        Some(fault) => Err(format!("{fault}\nthe stream is:\n{}", String::from_utf8_lossy(stream))),
    }
}

/// Splits a stream into the name and data of its events.
pub(crate) fn decode(stream: &[u8]) -> Result<Vec<(String, String)>, String> {
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    decoder.push(stream);
    let mut frames = Vec::new();
    while let Some(frame) = decoder.next_frame().map_err(|error| error.to_string())? {
        frames.push((frame.event.to_owned(), frame.data.to_owned()));
    }
    let last = decoder.end().map_err(|error| error.to_string())?;
    frames.extend(last.map(|frame| (frame.event.to_owned(), frame.data.to_owned())));
    Ok(frames)
}

fn unlike(matcher: &mut Matcher, expect: &(String, String), found: &(String, String)) -> Option<String> {
    if expect.0 != found.0 {
        return Some(format!("the event is `{}` and not `{}`", found.0, expect.0));
    }
    match (serde_json::from_str(&expect.1), serde_json::from_str(&found.1)) {
        (Ok(expect), Ok(found)) => matcher.difference(&expect, &found),
        _ => (expect.1 != found.1).then(|| format!("the data is `{}` and not `{}`", found.1, expect.1)),
    }
}

fn event_name(frame: &Value) -> &str {
    frame.get("type").and_then(Value::as_str).unwrap_or_default()
}
