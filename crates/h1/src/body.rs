//! Where a body ends: after so many bytes, after its last chunk, or with the connection.

use bytes::{Bytes, BytesMut};
use thiserror::Error;

use crate::syntax::{is_text_byte, next_line};

/// The longest line with the size of a chunk, extensions included.
const MAX_SIZE_LINE_BYTES: usize = 4 * 1024;

/// The most bytes of trailers. They are read and dropped.
const MAX_TRAILER_BYTES: usize = 64 * 1024;

/// Takes a body out of the bytes that a connection receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyDecoder(State);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// This many bytes are still to come.
    Length(u64),
    Chunked(Chunk),
    UntilClose,
}

/// What comes next in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    Size,
    /// This many bytes of the chunk are still to come.
    Data(u64),
    /// The line end after the data.
    DataEnd,
    /// Lines up to an empty one; this many bytes of them were read.
    Trailers(usize),
    Over,
}

/// What was found in the received bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded {
    /// All of the body that has been received. Never empty.
    Bytes(Bytes),
    /// More has to be received first.
    Incomplete,
    /// The body has ended.
    End,
}

/// Why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The line before a chunk does not begin with its size.
    #[error("the size of a chunk is not a hexadecimal number")]
    ChunkSize,
    /// The data of a chunk is not followed by CR LF.
    #[error("a chunk is longer than its size")]
    ChunkEnd,
    /// A line ends in LF without CR.
    #[error("a line between chunks does not end in CR LF")]
    BareLineFeed,
    /// A size line, or the trailers, exceed their bound.
    #[error("the line before a chunk, or the trailers, are too long")]
    TooLong,
    /// The connection was closed before the body was complete.
    #[error("the connection was closed in the middle of the body")]
    Truncated,
}

impl BodyDecoder {
    /// A body of this many bytes.
    pub fn with_length(bytes: u64) -> Self {
        Self(State::Length(bytes))
    }

    /// A body in chunks.
    pub fn chunked() -> Self {
        Self(State::Chunked(Chunk::Size))
    }

    /// A body that ends when the sender closes the connection.
    pub fn until_close() -> Self {
        Self(State::UntilClose)
    }

    /// True once the end of the body was read.
    pub fn is_over(&self) -> bool {
        matches!(self.0, State::Length(0) | State::Chunked(Chunk::Over))
    }

    /// Takes all of the body that has been received. Chunks that were received together are joined.
    pub fn decode(&mut self, received: &mut BytesMut) -> Result<Decoded, BodyError> {
        if self.is_over() {
            return Ok(Decoded::End);
        }
        let mut joined = Joined::default();
        match &mut self.0 {
            State::UntilClose => joined.add(received.split()),
            State::Length(left) => take(left, received, &mut joined),
            State::Chunked(chunk) => while chunk.step(received, &mut joined)? {},
        }
        Ok(match joined.0 {
            Some(bytes) => Decoded::Bytes(bytes.freeze()),
            None if self.is_over() => Decoded::End,
            None => Decoded::Incomplete,
        })
    }

    /// The sender has closed the connection, and everything received before was decoded.
    pub fn end_of_input(&mut self) -> Result<(), BodyError> {
        if self.0 == State::UntilClose {
            self.0 = State::Length(0);
        }
        if self.is_over() { Ok(()) } else { Err(BodyError::Truncated) }
    }
}

impl Chunk {
    /// Takes one step. False when more has to be received first, or the body has ended.
    fn step(&mut self, received: &mut BytesMut, joined: &mut Joined) -> Result<bool, BodyError> {
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
                const LINE_END: &[u8] = b"\r\n";
                let came = received.len().min(LINE_END.len());
                if received[..came] != LINE_END[..came] {
                    return Err(BodyError::ChunkEnd);
                }
                if came < LINE_END.len() {
                    return Ok(false);
                }
                drop(received.split_to(LINE_END.len()));
                *self = Self::Size;
            }
            Self::Trailers(read) => {
                let Some(line) = line(received, MAX_TRAILER_BYTES)? else { return Ok(false) };
                *read += line.len() + 2;
                if *read > MAX_TRAILER_BYTES {
                    return Err(BodyError::TooLong);
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

/// Bytes that were received together. A single piece is not copied.
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

/// The next line without its end; `None` while it is incomplete.
fn line(received: &mut BytesMut, limit: usize) -> Result<Option<BytesMut>, BodyError> {
    let Some(found) = next_line(received).map_err(|_| BodyError::BareLineFeed)? else {
        return if received.len() > limit { Err(BodyError::TooLong) } else { Ok(None) };
    };
    let length = found.text.len();
    if length > limit {
        return Err(BodyError::TooLong);
    }
    let mut line = received.split_to(length + 2);
    line.truncate(length);
    Ok(Some(line))
}

/// The number before the extensions, which have no meaning for us.
fn chunk_size(line: &[u8]) -> Result<u64, BodyError> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, extension) = line.split_at(digits);
    let is_extension = matches!(extension.trim_ascii_start().first(), None | Some(b';'))
        && extension.iter().copied().all(is_text_byte);
    let size = str::from_utf8(size).ok().filter(|_| is_extension);
    size.and_then(|size| u64::from_str_radix(size, 16).ok()).ok_or(BodyError::ChunkSize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds a body in pieces; gives what was in it, whether it has ended, and what was left over.
    fn feed(mut decoder: BodyDecoder, pieces: &[&[u8]]) -> Result<(Vec<u8>, bool, Vec<u8>), BodyError> {
        let mut received = BytesMut::new();
        let mut body = Vec::new();
        for piece in pieces {
            received.extend_from_slice(piece);
            while let Decoded::Bytes(bytes) = decoder.decode(&mut received)? {
                body.extend_from_slice(&bytes);
            }
        }
        Ok((body, decoder.is_over(), received.to_vec()))
    }

    #[test]
    fn a_chunked_body_ends_after_its_last_chunk() {
        let text = b"5\r\nhello\r\n1 ;name=\"v\"\r\n \r\nA\r\nbig world!\r\n0\r\nx-trailer: 1\r\n\r\nrest";
        let fed = feed(BodyDecoder::chunked(), &[text]).unwrap();
        assert_eq!(fed, (b"hello big world!".to_vec(), true, b"rest".to_vec()));
    }

    #[test]
    fn chunks_received_together_are_given_together() {
        let mut received = BytesMut::from(&b"2\r\nab\r\n3\r\ncde\r\n4\r\nfg"[..]);
        let mut decoder = BodyDecoder::chunked();
        assert_eq!(decoder.decode(&mut received), Ok(Decoded::Bytes("abcdefg".into())));
        assert_eq!(decoder.decode(&mut received), Ok(Decoded::Incomplete));
    }

    #[test]
    fn a_body_of_known_length_leaves_the_rest() {
        let fed = feed(BodyDecoder::with_length(3), &[b"a", b"bcd"]).unwrap();
        assert_eq!(fed, (b"abc".to_vec(), true, b"d".to_vec()));
        assert!(!feed(BodyDecoder::with_length(3), &[b"a"]).unwrap().1);
    }

    #[test]
    fn only_a_body_without_a_length_may_end_with_the_connection() {
        assert_eq!(BodyDecoder::until_close().end_of_input(), Ok(()));
        assert_eq!(BodyDecoder::with_length(0).end_of_input(), Ok(()));
        assert_eq!(BodyDecoder::with_length(1).end_of_input(), Err(BodyError::Truncated));
        assert_eq!(BodyDecoder::chunked().end_of_input(), Err(BodyError::Truncated));
    }

    #[track_caller]
    fn check_refused(text: &str, expected: BodyError) {
        assert_eq!(feed(BodyDecoder::chunked(), &[text.as_bytes()]), Err(expected), "{text:?}");
    }

    #[test]
    fn a_malformed_chunk_is_refused() {
        for text in [
            "x\r\n",
            "\r\n",
            "+5\r\nhello",
            "-1\r\n",
            "0x5\r\n",
            " 5\r\n",
            "5 5\r\n",
            "11111111111111111\r\n",
        ] {
            check_refused(text, BodyError::ChunkSize);
        }
        for text in ["2\r\nabc\r\n", "2\r\nab\n", "2\r\nab\rX"] {
            check_refused(text, BodyError::ChunkEnd);
        }
        for text in ["2\nab\r\n", "0\r\nx: y\n\r\n"] {
            check_refused(text, BodyError::BareLineFeed);
        }
        check_refused(&"1".repeat(MAX_SIZE_LINE_BYTES + 1), BodyError::TooLong);
        check_refused(&format!("0\r\n{}", "x: y\r\n".repeat(MAX_TRAILER_BYTES / 4)), BodyError::TooLong);
    }

    proptest! {
        #[test]
        fn any_chunks_in_any_pieces_give_the_same_body(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
            cuts in prop::collection::vec(1_usize..30, 1..20),
        ) {
            let mut text = BytesMut::new();
            for chunk in &chunks {
                crate::write::chunk(&mut text, chunk);
            }
            crate::write::last_chunk(&mut text);
            let mut pieces = Vec::new();
            let mut rest = &text[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = later;
            }
            let (body, is_over, left) = feed(BodyDecoder::chunked(), &pieces).unwrap();
            prop_assert_eq!(body, chunks.concat());
            prop_assert!(is_over && left.is_empty());
            for end in 0..text.len() {
                prop_assert!(!feed(BodyDecoder::chunked(), &[&text[..end]]).unwrap().1);
            }
        }
    }
}
