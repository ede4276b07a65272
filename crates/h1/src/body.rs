//! Where a body ends: after so many bytes, after its last chunk, or with the connection.

use bytes::{Buf, Bytes, BytesMut};
use thiserror::Error;

use crate::syntax::{FieldBlock, HeadError, MAX_LENGTH, is_text_byte, next_line, parse_fields};

/// The longest line with the size of a chunk, extensions included.
const MAX_SIZE_LINE_BYTES: usize = 4 * 1024;

/// The most bytes of extensions in a whole body, so that a sender cannot make many small chunks expensive.
const MAX_EXTENSION_BYTES: usize = 8 * 1024;

/// The most bytes of trailers. They are checked and dropped.
const MAX_TRAILER_BYTES: usize = 8 * 1024;

/// Takes a body out of the bytes that a connection receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyDecoder(State);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// This many bytes are still to come.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

/// A body in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunks {
    next: Chunk,
    /// The extensions of all chunks so far.
    extension_bytes: usize,
}

/// What comes next in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    Size,
    /// This many bytes of the chunk are still to come.
    Data(u64),
    /// The line end after the data.
    DataEnd,
    /// Field lines up to an empty one.
    Trailers,
    Over,
    /// A mistake was found, and nothing after it can be read.
    Malformed(BodyError),
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
    /// A size line, the extensions of all chunks, or the trailers exceed their bound.
    #[error("the line before a chunk, the extensions of all chunks, or the trailers are too long")]
    TooLong,
    /// The trailers are malformed.
    #[error("the trailers are malformed")]
    Trailers(#[from] HeadError),
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
        Self(State::Chunked(Chunks { next: Chunk::Size, extension_bytes: 0 }))
    }

    /// A body that ends when the sender closes the connection.
    pub fn until_close() -> Self {
        Self(State::UntilClose)
    }

    /// True once the end of the body was read.
    pub fn is_over(&self) -> bool {
        matches!(self.0, State::Length(0) | State::Chunked(Chunks { next: Chunk::Over, .. }))
    }

    /// Takes all of the body that has been received. Chunks that were received together are joined. The data before a
    /// mistake is given before the error, so the result does not depend on how the bytes were split.
    pub fn decode(&mut self, received: &mut BytesMut) -> Result<Decoded, BodyError> {
        if self.is_over() {
            return Ok(Decoded::End);
        }
        let mut joined = Joined::default();
        match &mut self.0 {
            State::UntilClose => joined.add(received.split()),
            State::Length(left) => take(left, received, &mut joined),
            State::Chunked(chunks) => chunks.read(received, &mut joined)?,
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

impl Chunks {
    /// Takes the data of all chunks that were received.
    fn read(&mut self, received: &mut BytesMut, joined: &mut Joined) -> Result<(), BodyError> {
        loop {
            match self.step(received, joined) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    self.next = Chunk::Malformed(error);
                    return if joined.0.is_some() { Ok(()) } else { Err(error) };
                }
            }
        }
    }

    /// Takes one step. False when more has to be received first, or the body has ended.
    fn step(&mut self, received: &mut BytesMut, joined: &mut Joined) -> Result<bool, BodyError> {
        match &mut self.next {
            Chunk::Size => {
                let Some(line) = size_line(received)? else { return Ok(false) };
                let SizeLine { size, extension } = parse_size(&line)?;
                self.extension_bytes += extension.len();
                if self.extension_bytes > MAX_EXTENSION_BYTES {
                    return Err(BodyError::TooLong);
                }
                self.next = if size == 0 { Chunk::Trailers } else { Chunk::Data(size) };
            }
            Chunk::Data(left) => {
                take(left, received, joined);
                if *left > 0 {
                    return Ok(false);
                }
                self.next = Chunk::DataEnd;
            }
            Chunk::DataEnd => {
                const LINE_END: &[u8] = b"\r\n";
                let came = received.len().min(LINE_END.len());
                if received[..came] != LINE_END[..came] {
                    return Err(BodyError::ChunkEnd);
                }
                if came < LINE_END.len() {
                    return Ok(false);
                }
                received.advance(LINE_END.len());
                self.next = Chunk::Size;
            }
            Chunk::Trailers => {
                let limited = &received[..received.len().min(MAX_TRAILER_BYTES)];
                let Some(FieldBlock { fields: _, facts: _, length }) = parse_fields(limited)? else {
                    let is_too_long = limited.len() == MAX_TRAILER_BYTES;
                    return if is_too_long { Err(BodyError::TooLong) } else { Ok(false) };
                };
                received.advance(length);
                self.next = Chunk::Over;
            }
            Chunk::Over => return Ok(false),
            Chunk::Malformed(error) => return Err(*error),
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
fn size_line(received: &mut BytesMut) -> Result<Option<BytesMut>, BodyError> {
    let limited = &received[..received.len().min(MAX_SIZE_LINE_BYTES)];
    let Some(line) = next_line(limited).map_err(|_| BodyError::BareLineFeed)? else {
        return if limited.len() < MAX_SIZE_LINE_BYTES { Ok(None) } else { Err(BodyError::TooLong) };
    };
    let length = line.text.len();
    let mut line = received.split_to(length + 2);
    line.truncate(length);
    Ok(Some(line))
}

/// The line before a chunk.
struct SizeLine<'b> {
    size: u64,
    /// It has no meaning for us.
    extension: &'b [u8],
}

fn parse_size(line: &[u8]) -> Result<SizeLine<'_>, BodyError> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (digits, extension) = line.split_at(digits);
    let is_extension = matches!(extension.trim_ascii_start().first(), None | Some(b';'))
        && extension.iter().copied().all(is_text_byte);
    let digits = str::from_utf8(digits).ok().filter(|_| is_extension);
    let size = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let size = size.filter(|size| *size <= MAX_LENGTH).ok_or(BodyError::ChunkSize)?;
    Ok(SizeLine { size, extension })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::syntax::MAX_FIELDS;

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
            "8000000000000000\r\n",
            "1;\0\r\n",
            "1;a\rb\r\n",
        ] {
            check_refused(text, BodyError::ChunkSize);
        }
        for text in ["2\r\nabc\r\n", "2\r\nab\n", "2\r\nab\rX"] {
            check_refused(text, BodyError::ChunkEnd);
        }
        for text in ["2\nab\r\n", "2;a\nb\r\n"] {
            check_refused(text, BodyError::BareLineFeed);
        }
        check_refused(&"1".repeat(MAX_SIZE_LINE_BYTES + 1), BodyError::TooLong);
    }

    #[test]
    fn the_data_before_a_mistake_is_given_first_and_nothing_after_it() {
        let mut received = BytesMut::from("1\r\na\r\nmistake\r\n1\r\nb\r\n0\r\n\r\n");
        let mut decoder = BodyDecoder::chunked();
        assert_eq!(decoder.decode(&mut received), Ok(Decoded::Bytes("a".into())));
        for _ in 0..3 {
            assert_eq!(decoder.decode(&mut received), Err(BodyError::ChunkSize));
        }
        assert_eq!(decoder.end_of_input(), Err(BodyError::Truncated));
    }

    #[test]
    fn the_extensions_of_all_chunks_are_bounded() {
        let chunk = format!("1;{}\r\nx\r\n", "e".repeat(1023));
        let allowed = MAX_EXTENSION_BYTES / 1024;
        assert!(feed(BodyDecoder::chunked(), &[chunk.repeat(allowed).as_bytes()]).is_ok());
        check_refused(&chunk.repeat(allowed + 1), BodyError::TooLong);
    }

    #[test]
    fn trailers_are_valid_fields_within_bounds() {
        for (trailers, error) in [
            ("x: y\n\r\n", HeadError::BareLineFeed),
            ("GET / HTTP/1.1\r\n", HeadError::FieldName),
            ("x : y\r\n", HeadError::FieldName),
            (" x: y\r\n", HeadError::Folded),
            ("x: \0\r\n", HeadError::FieldValue),
            (&"x:\r\n".repeat(MAX_FIELDS + 1), HeadError::TooManyFields),
        ] {
            check_refused(&format!("0\r\n{trailers}\r\n"), BodyError::Trailers(error));
        }
        check_refused(&format!("0\r\nx: {}\r\n\r\n", "y".repeat(MAX_TRAILER_BYTES)), BodyError::TooLong);
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
