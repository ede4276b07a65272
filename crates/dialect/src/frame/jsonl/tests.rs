//! Every input is decoded at once, byte by byte and in random chunks.

use proptest::prelude::*;

use super::*;
use crate::frame::MAX_FRAME_BYTES;

type Decoded = (Vec<String>, Result<(), FrameError>);

fn decode<'a>(limit: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Decoded {
    let mut decoder = LineDecoder::new(limit);
    let mut lines = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_line() {
                Ok(Some(line)) => lines.push(line.to_owned()),
                Ok(None) => break,
                Err(error) => return (lines, Err(error)),
            }
        }
    }
    let end = decoder.end().map(|last| lines.extend(last.map(str::to_owned)));
    (lines, end)
}

#[track_caller]
fn check(input: impl AsRef<[u8]>, lines: &[&str], end: Result<(), FrameError>) {
    let expect: Decoded = (lines.iter().map(|line| (*line).to_owned()).collect(), end);
    assert_eq!(decode(MAX_FRAME_BYTES, std::iter::once(input.as_ref())), expect, "whole");
    assert_eq!(decode(MAX_FRAME_BYTES, input.as_ref().chunks(1)), expect, "byte by byte");
}

#[test]
fn lines_end_at_a_line_feed_only() {
    check("{}\n[1]\n", &["{}", "[1]"], Ok(()));
    check("a\r\nb\rc\r\r\n", &["a", "b\rc\r"], Ok(()));
    check("a\u{2028}b\u{85}c\n", &["a\u{2028}b\u{85}c"], Ok(()));
}

#[test]
fn the_last_line_needs_no_end() {
    check("a\nb", &["a", "b"], Ok(()));
    check("a\nb\r", &["a", "b"], Ok(()));
}

#[test]
fn empty_lines_are_skipped() {
    check("\n\r\na\n\n\nb\n\r", &["a", "b"], Ok(()));
    check("", &[], Ok(()));
}

#[test]
fn characters_may_be_split_over_chunks() {
    check("\"日本🦀\"\n", &["\"日本🦀\""], Ok(())); // T21
}

#[test]
fn invalid_utf8_is_an_error() {
    check(b"a\n\xFF\nb\n", &["a"], Err(FrameError::NotUtf8));
    check(b"a\n\xE2\x82", &["a"], Err(FrameError::NotUtf8));
}

#[test]
fn a_line_past_the_limit_is_an_error_in_any_split() {
    for input in ["123\n12345\n6\n", "123\n12345"] {
        let expect = (vec!["123".to_owned()], Err(FrameError::TooLarge { limit: 4 }));
        assert_eq!(decode(4, std::iter::once(input.as_bytes())), expect);
        assert_eq!(decode(4, input.as_bytes().chunks(1)), expect);
    }
    assert_eq!(decode(4, std::iter::once(&b"1234\n1234"[..])).1, Ok(()));
}

#[test]
fn a_failed_decoder_stays_failed() {
    let mut decoder = LineDecoder::new(4);
    decoder.push(b"\xFF\nok\n");
    assert_eq!(decoder.next_line(), Err(FrameError::NotUtf8));
    assert_eq!(decoder.next_line(), Err(FrameError::NotUtf8));
    assert_eq!(decoder.end(), Err(FrameError::NotUtf8));
}

/// Would take hours if any byte were scanned or moved repeatedly.
#[test]
fn a_long_line_byte_by_byte_takes_linear_time() {
    let input = "x".repeat(10_000_000);
    let (lines, end) = decode(MAX_FRAME_BYTES, input.as_bytes().chunks(1));
    assert_eq!((lines, end), (vec![input], Ok(())));
}

proptest! {
    #[test]
    fn any_split_gives_the_same_lines(
        input in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(0xC3), Just(0xA9), any::<u8>()], 0..80),
        size in 1_usize..9,
        limit in 0_usize..20,
    ) {
        prop_assert_eq!(decode(limit, input.chunks(size)), decode(limit, std::iter::once(&input[..])));
    }
}
