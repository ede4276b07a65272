//! Where a body ends: after so many bytes, after its last chunk, or with the connection.

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

/// The longest line with the size of a chunk, extensions included.
const MAX_SIZE_LINE_BYTES: usize = 4 * 1024;

/// The largest trailers that are read past.
const MAX_TRAILER_BYTES: usize = 64 * 1024;

/// Takes a body out of what a connection receives.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes are still to come.
    Length(u64),
    Chunked(Chunk),
    /// Until the host closes the connection.
    UntilClose,
}

/// What of a chunked body comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    Size,
    /// So many bytes of the chunk are still to come.
    Data(u64),
    /// The line end after the data.
    DataEnd,
    /// Lines up to an empty one; so many bytes of them have been read.
    Trailers(usize),
    Over,
}

/// What was found in what came.
pub(super) enum Decoded {
    /// Never empty.
    Bytes(Bytes),
    /// More has to come first.
    Nothing,
    End,
}

/// Why a body makes no sense.
#[derive(Debug, Error)]
pub(in crate::http) enum FramingError {
    #[error("the size of a chunk is no number")]
    Size,
    #[error("a chunk does not end where it should")]
    DataEnd,
    #[error("the line before a chunk, or what follows the last one, is too long")]
    TooLong,
}

impl Framing {
    pub(super) fn length(bytes: u64) -> Self {
        Self::Length(bytes)
    }

    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunk::Size)
    }

    pub(super) fn until_close() -> Self {
        Self::UntilClose
    }

    pub(super) fn ends_with_connection(&self) -> bool {
        *self == Self::UntilClose
    }

    /// True once the end of the body was read.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunk::Over))
    }

    /// Takes all of the body that has come; chunks that came together are joined.
    pub(super) fn decode(&mut self, received: &mut BytesMut) -> Result<Decoded, FramingError> {
        if self.is_over() {
            return Ok(Decoded::End);
        }
        let mut joined = Joined::default();
        match self {
            Self::UntilClose => joined.add(received.split()),
            Self::Length(left) => take(left, received, &mut joined),
            Self::Chunked(chunk) => while chunk.step(received, &mut joined)? {},
        }
        Ok(match joined.0 {
            Some(bytes) => Decoded::Bytes(bytes.freeze()),
            None if self.is_over() => Decoded::End,
            None => Decoded::Nothing,
        })
    }
}

impl Chunk {
    /// Goes one step on; false when more has to come first, or nothing more will.
    fn step(&mut self, received: &mut BytesMut, joined: &mut Joined) -> Result<bool, FramingError> {
        match self {
            Self::Size => {
                let Some(line) = line(received, MAX_SIZE_LINE_BYTES)? else { return Ok(false) };
                *self = match chunk_size(&line)? {
                    0 => Self::Trailers(0),
                    size => Self::Data(size),
                };
            }
            Self::Data(left) => {
                take(left, received, joined);
                if *left > 0 {
                    return Ok(false);
                }
                *self = Self::DataEnd;
            }
            Self::DataEnd => {
                let Some(line) = line(received, 1)? else { return Ok(false) };
                if !line.is_empty() {
                    return Err(FramingError::DataEnd);
                }
                *self = Self::Size;
            }
            Self::Trailers(read) => {
                let Some(line) = line(received, MAX_TRAILER_BYTES)? else { return Ok(false) };
                *read += line.len() + 2;
                if *read > MAX_TRAILER_BYTES {
                    return Err(FramingError::TooLong);
                }
                if line.is_empty() {
                    *self = Self::Over;
                }
            }
            Self::Over => return Ok(false),
        }
        Ok(true)
    }
}

/// Bytes that came together. One piece is passed on as it is; only several are copied.
#[derive(Default)]
struct Joined(Option<BytesMut>);

impl Joined {
    fn add(&mut self, bytes: BytesMut) {
        match &mut self.0 {
            _ if bytes.is_empty() => {}
            None => self.0 = Some(bytes),
            Some(joined) => joined.extend_from_slice(&bytes),
        }
    }
}

fn take(left: &mut u64, received: &mut BytesMut, joined: &mut Joined) {
    let count = received.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    joined.add(received.split_to(count));
    *left -= count as u64;
}

/// The next line without its end; `None` while it is not complete.
fn line(received: &mut BytesMut, limit: usize) -> Result<Option<BytesMut>, FramingError> {
    let Some(end) = memchr::memchr(b'\n', received) else {
        return if received.len() > limit { Err(FramingError::TooLong) } else { Ok(None) };
    };
    let mut line = received.split_to(end);
    received.advance(1);
    if line.last() == Some(&b'\r') {
        line.truncate(end - 1);
    }
    if line.len() > limit { Err(FramingError::TooLong) } else { Ok(Some(line)) }
}

fn chunk_size(line: &[u8]) -> Result<u64, FramingError> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let text = str::from_utf8(digits).map_err(|_| FramingError::Size)?;
    // `from_str_radix` would also take a plus sign.
    if text.starts_with('+') {
        return Err(FramingError::Size);
    }
    u64::from_str_radix(text, 16).map_err(|_| FramingError::Size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds a body in pieces; gives what was in it and what was left over.
    fn feed(mut framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, bool, Vec<u8>), FramingError> {
        let mut received = BytesMut::new();
        let mut body = Vec::new();
        for piece in pieces {
            received.extend_from_slice(piece);
            while let Decoded::Bytes(bytes) = framing.decode(&mut received)? {
                body.extend_from_slice(&bytes);
            }
        }
        Ok((body, framing.is_over(), received.to_vec()))
    }

    #[test]
    fn a_chunked_body_ends_after_its_last_chunk() {
        let text = b"5\r\nhello\r\n1;name=\"v\"\r\n \r\nA\r\nbig world!\r\n0\r\nx-trailer: 1\r\n\r\nrest";
        let (body, is_over, rest) = feed(Framing::chunked(), &[text]).unwrap();
        assert_eq!(
            (body.as_slice(), is_over, rest.as_slice()),
            (&b"hello big world!"[..], true, &b"rest"[..])
        );
    }

    #[test]
    fn chunks_that_came_together_are_given_together() {
        let mut received = BytesMut::from(&b"2\r\nab\r\n3\r\ncde\r\n4\r\nfg"[..]);
        let mut framing = Framing::chunked();
        let Ok(Decoded::Bytes(bytes)) = framing.decode(&mut received) else { panic!("bytes came") };
        assert_eq!(bytes, "abcdefg");
        assert!(matches!(framing.decode(&mut received), Ok(Decoded::Nothing)));
    }

    #[test]
    fn a_body_of_known_length_leaves_the_rest() {
        let (body, is_over, rest) = feed(Framing::length(3), &[b"a", b"bcd"]).unwrap();
        assert_eq!((body.as_slice(), is_over, rest.as_slice()), (&b"abc"[..], true, &b"d"[..]));
        assert!(!feed(Framing::length(3), &[b"a"]).unwrap().1);
    }

    #[test]
    fn a_bad_chunk_is_refused() {
        for bad in ["x\r\n", "\r\n", "+5\r\nhello", "-1\r\n", "11111111111111111\r\n", "2\r\nabc\r\n"] {
            assert!(feed(Framing::chunked(), &[bad.as_bytes()]).is_err(), "{bad:?}");
        }
        let endless = "1".repeat(MAX_SIZE_LINE_BYTES + 1);
        assert!(matches!(feed(Framing::chunked(), &[endless.as_bytes()]), Err(FramingError::TooLong)));
        let trailers = format!("0\r\n{}", "x: y\r\n".repeat(MAX_TRAILER_BYTES / 4));
        assert!(matches!(feed(Framing::chunked(), &[trailers.as_bytes()]), Err(FramingError::TooLong)));
    }

    proptest! {
        #[test]
        fn any_chunks_in_any_pieces_give_the_same_body(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
            cuts in prop::collection::vec(1_usize..30, 1..20),
        ) {
            let mut text = Vec::new();
            for chunk in &chunks {
                text.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                text.extend_from_slice(chunk);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\n\r\n");
            let mut pieces = Vec::new();
            let mut rest = text.as_slice();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = later;
            }
            let (body, is_over, left) = feed(Framing::chunked(), &pieces).unwrap();
            prop_assert_eq!(body, chunks.concat());
            prop_assert!(is_over && left.is_empty());
            for end in 0..text.len() {
                prop_assert!(!feed(Framing::chunked(), &[&text[..end]]).unwrap().1);
            }
        }
    }
}
