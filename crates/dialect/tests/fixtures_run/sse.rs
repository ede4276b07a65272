//! Decodes the bytes of hosts into events, in every split (T21).

use std::path::Path;

use serde::Deserialize;
use toolgate_dialect::frame::{FrameError, SseDecoder};

use super::load;

/// Chunk sizes: inside characters and line ends, and all at once.
const SPLITS: [usize; 5] = [1, 2, 3, 7, usize::MAX];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SseCase {
    #[serde(rename = "case")]
    _case: String,
    #[serde(rename = "why")]
    _why: String,
    /// The bytes: text, or numbers if they are not text.
    bytes: Vec<Piece>,
    /// The maximum frame size.
    limit: Option<usize>,
    /// Name and data of each event.
    frames: Vec<(String, String)>,
    #[serde(default)]
    end: End,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Bytes(Vec<u8>),
}

/// How the stream ends.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum End {
    #[default]
    Complete,
    Truncated,
    NotUtf8,
    TooLarge,
}

/// Runs one fixture.
pub(crate) fn check(path: &Path) -> datatest_stable::Result<()> {
    let case: SseCase = load(path)?;
    let bytes: Vec<u8> = case.bytes.iter().flat_map(|piece| piece.bytes().iter().copied()).collect();
    for split in SPLITS {
        let (frames, end) = decode(&bytes, split, case.limit.unwrap_or(bytes.len().max(1)));
        if (&frames, &end) != (&case.frames, &case.end) {
            return Err(format!("pieces of {split} bytes give {frames:?} and end {end:?}").into());
        }
    }
    Ok(())
}

fn decode(bytes: &[u8], split: usize, limit: usize) -> (Vec<(String, String)>, End) {
    let mut decoder = SseDecoder::new(limit);
    let mut frames = Vec::new();
    let mut feed = || -> Result<(), FrameError> {
        for piece in bytes.chunks(split.min(bytes.len().max(1))) {
            decoder.push(piece);
            while let Some(frame) = decoder.next_frame()? {
                frames.push((frame.event.to_owned(), frame.data.to_owned()));
            }
        }
        frames.extend(decoder.end()?.map(|frame| (frame.event.to_owned(), frame.data.to_owned())));
        Ok(())
    };
    let end = match feed() {
        Ok(()) => End::Complete,
        Err(FrameError::Truncated) => End::Truncated,
        Err(FrameError::NotUtf8) => End::NotUtf8,
        Err(FrameError::TooLarge { limit: _ }) => End::TooLarge,
    };
    (frames, end)
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}
