//! Every stream is decoded at once, byte by byte and in random chunks, and compared with a slow reference decoder.

use proptest::prelude::*;

use super::*;
use crate::frame::MAX_FRAME_BYTES;

type Frames = Vec<(String, String)>;
type Decoded = (Frames, Result<(), FrameError>);

fn decode<'a>(limit: usize, pieces: impl Iterator<Item = &'a [u8]>) -> Decoded {
    let mut decoder = SseDecoder::new(limit);
    let mut frames = Frames::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push((frame.event.to_owned(), frame.data.to_owned())),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    let end = decoder.end().map(|last| {
        frames.extend(last.map(|frame| (frame.event.to_owned(), frame.data.to_owned())));
    });
    (frames, end)
}

/// Decodes a whole stream as the standard describes it, and a last frame without its empty line.
fn decode_plainly(input: &[u8]) -> Decoded {
    let (frames, end) = decode_by_the_standard(input);
    if end != Err(FrameError::Truncated) {
        return (frames, end);
    }
    let ended = [input, b"\n\n"].concat();
    match decode_by_the_standard(&ended) {
        (more, Ok(()))
            if more.len() > frames.len() && more.last().is_some_and(|(_, data)| is_whole(data)) =>
        {
            (more, Ok(()))
        }
        (_, Err(FrameError::NotUtf8)) => (frames, Err(FrameError::NotUtf8)),
        _ => (frames, Err(FrameError::Truncated)),
    }
}

fn decode_by_the_standard(input: &[u8]) -> Decoded {
    let input = input.strip_prefix(BYTE_ORDER_MARK).unwrap_or(input);
    let (mut frames, mut event, mut data) = (Frames::new(), Vec::new(), None::<Vec<u8>>);
    let (mut line, mut bytes) = (Vec::new(), input.iter().copied().peekable());
    while let Some(byte) = bytes.next() {
        if byte != b'\n' && byte != b'\r' {
            line.push(byte);
            continue;
        }
        if byte == b'\r' {
            bytes.next_if_eq(&b'\n');
        }
        let content = std::mem::take(&mut line);
        if content.is_empty() {
            let event = std::mem::take(&mut event);
            let Some(data) = data.take() else { continue };
            let (Ok(event), Ok(data)) = (String::from_utf8(event), String::from_utf8(data)) else {
                return (frames, Err(FrameError::NotUtf8));
            };
            frames.push((event, data));
            continue;
        }
        let mut halves = content.splitn(2, |byte| *byte == b':');
        let (name, value) = (halves.next().unwrap(), halves.next().unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match (name, &mut data) {
            (b"event", _) => event = value.to_vec(),
            (b"data", None) => data = Some(value.to_vec()),
            (b"data", Some(data)) => {
                data.push(b'\n');
                data.extend(value);
            }
            (_, _) => {}
        }
    }
    let half = data.is_some() || !event.is_empty() || line.first().is_some_and(|byte| *byte != b':');
    (frames, if half { Err(FrameError::Truncated) } else { Ok(()) })
}

#[track_caller]
fn check(input: impl AsRef<[u8]>, frames: &[(&str, &str)], end: Result<(), FrameError>) {
    let input = input.as_ref();
    let expect: Decoded =
        (frames.iter().map(|(event, data)| ((*event).to_owned(), (*data).to_owned())).collect(), end);
    assert_eq!(decode(MAX_FRAME_BYTES, std::iter::once(input)), expect, "whole");
    assert_eq!(decode(MAX_FRAME_BYTES, input.chunks(1)), expect, "byte by byte");
    assert_eq!(decode_plainly(input), expect, "reference");
}

#[test]
fn a_frame_is_an_event_name_and_data() {
    check("event: ping\ndata: {}\n\ndata: x\n\n", &[("ping", "{}"), ("", "x")], Ok(()));
}

#[test]
fn all_line_ends_are_line_ends() {
    // T21
    check("event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", &[("a", "1"), ("", "2")], Ok(()));
    check("event: a\rdata: 1\r\rdata: 2\r\r", &[("a", "1"), ("", "2")], Ok(()));
    check("event: a\rdata: 1\r\n\ndata: 2\n\r\n", &[("a", "1"), ("", "2")], Ok(()));
}

#[test]
fn the_space_after_the_colon_is_optional_and_only_one_is_dropped() {
    check("data:{\"a\":1}\n\ndata:  x \n\n", &[("", "{\"a\":1}"), ("", " x ")], Ok(())); // T21
}

#[test]
fn comments_ids_and_unknown_fields_are_ignored() {
    // T21
    check(
        ": OPENROUTER PROCESSING\n\n:\nid: 7\nretry: 10\ndatax: 1\n data: 2\ndata: 3\n: in between\n\n",
        &[("", "3")],
        Ok(()),
    );
}

#[test]
fn data_lines_are_joined() {
    check("data: {\ndata\nevent: e\ndata:   \"a\"\ndata: }\n\n", &[("e", "{\n\n  \"a\"\n}")], Ok(())); // T21
}

#[test]
fn frames_without_data_are_not_dispatched_and_leave_no_name_behind() {
    check("event: lost\n\ndata: x\n\n\n\n", &[("", "x")], Ok(()));
}

#[test]
fn empty_data_is_data() {
    check("data\n\ndata:\n\ndata: \n\n", &[("", ""), ("", ""), ("", "")], Ok(()));
}

#[test]
fn the_last_event_name_wins() {
    check("event: a\nevent: b\ndata: 1\n\nevent: a\nevent\ndata: 2\n\n", &[("b", "1"), ("", "2")], Ok(()));
}

#[test]
fn a_byte_order_mark_counts_at_the_start_only() {
    check("\u{feff}data: 1\n\n\u{feff}data: 2\n\ndata: \u{feff}\n\n", &[("", "1"), ("", "\u{feff}")], Ok(()));
}

#[test]
fn characters_may_be_split_over_chunks() {
    check("event: é\ndata: 日本🦀\n\n", &[("é", "日本🦀")], Ok(())); // T21
}

#[test]
fn invalid_utf8_is_an_error_where_it_would_be_read() {
    check(b"data: ok\n\ndata: \xFF\n\ndata: never\n\n", &[("", "ok")], Err(FrameError::NotUtf8));
    check(b"event: \xC3\ndata: x\n\n", &[], Err(FrameError::NotUtf8));
    check(b"data: a\ndata: \xE2\x82\n\n", &[], Err(FrameError::NotUtf8));
    check(b": \xFF\nid: \xFF\ndata: x\n\n", &[("", "x")], Ok(()));
}

#[test]
fn half_a_frame_at_the_end_is_an_error() {
    check("", &[], Ok(()));
    check("data: 1\n\n: half a comm", &[("", "1")], Ok(()));
    for half in ["data: {\"a\":", "data: {\n", "data: [DON", "event: x\n", "da", "data: x\n: comment"] {
        check(half, &[], Err(FrameError::Truncated));
    }
}

#[test]
fn the_last_frame_needs_no_empty_line() {
    for last in
        ["data: {}", "data: {}\n", "data: {}\r", "data: {}\r\n", "data: {}\n: comment", "data: {}\n: c\n"]
    {
        check(last, &[("", "{}")], Ok(()));
    }
    check("data: 1\n\ndata: [DONE]", &[("", "1"), ("", "[DONE]")], Ok(()));
    check("event: x\ndata: {}", &[("x", "{}")], Ok(()));
}

#[test]
fn a_frame_past_the_limit_is_an_error_in_any_split() {
    let largest = format!("data: {}\n\n", "x".repeat(90));
    let two = largest.repeat(2);
    let limit = largest.len() - 1;
    assert_eq!(decode(limit, std::iter::once(two.as_bytes())).1, Ok(()));
    assert_eq!(decode(limit, two.as_bytes().chunks(1)).1, Ok(()));
    let too_large = Err(FrameError::TooLarge { limit: 90 });
    for input in [largest, format!(": {}", "x".repeat(90)), "data: 12345\n".repeat(8), "x".repeat(91)] {
        assert_eq!(decode(90, std::iter::once(input.as_bytes())), (Vec::new(), too_large));
        assert_eq!(decode(90, input.as_bytes().chunks(1)), (Vec::new(), too_large));
    }
}

#[test]
fn comments_between_frames_do_not_add_up() {
    let input = format!("{}data: x\n\n", ": keep-alive\n".repeat(100));
    assert_eq!(decode(20, input.as_bytes().chunks(7)), (vec![(String::new(), "x".to_owned())], Ok(())));
}

#[test]
fn a_failed_decoder_stays_failed() {
    let mut decoder = SseDecoder::new(4);
    decoder.push(b"data: x\n\n");
    let error = FrameError::TooLarge { limit: 4 };
    assert_eq!(decoder.next_frame(), Err(error));
    decoder.push(b"\n\n");
    assert_eq!(decoder.next_frame(), Err(error));
    assert_eq!(decoder.end(), Err(error));
}

/// Would take hours if any byte were scanned or moved repeatedly.
#[test]
fn a_long_line_byte_by_byte_takes_linear_time() {
    let data = "x".repeat(10_000_000);
    let input = format!("data: {data}\n\n");
    let (frames, end) = decode(MAX_FRAME_BYTES, input.as_bytes().chunks(1));
    assert_eq!((frames.len(), end), (1, Ok(())));
    assert_eq!(frames[0].1.len(), data.len());
}

#[test]
fn one_data_line_is_returned_without_a_copy() {
    let mut decoder = SseDecoder::new(MAX_FRAME_BYTES);
    decoder.push(b"event: e\ndata: 1\n\n");
    assert!(decoder.next_frame().unwrap().is_some());
    assert_eq!(decoder.joined.capacity(), 0);
}

#[test]
fn writers_keep_line_breaks_and_prevent_injected_fields() {
    let mut out = Vec::new();
    write_comment("ping\ndata: forged", &mut out);
    write_event("a\ndata: forged", b"1\n\n2\r\n3\r", &mut out);
    write_event("", b"x", &mut out);
    write_data(b"", &mut out);
    assert_eq!(
        String::from_utf8(out.clone()).unwrap(),
        ": ping\n: data: forged\nevent: adata: forged\ndata: 1\ndata: \ndata: 2\ndata: 3\ndata: \n\ndata: x\n\ndata: \n\n"
    );
    check(out, &[("adata: forged", "1\n\n2\n3\n"), ("", "x"), ("", "")], Ok(()));
}

/// Streams made of meaningful fragments, so that random ones reach every rule.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\r".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        3 => Just(b"data".to_vec()),
        3 => Just(b"data: ".to_vec()),
        2 => Just(b"event:".to_vec()),
        1 => Just(b": comment".to_vec()),
        1 => Just(BYTE_ORDER_MARK.to_vec()),
        1 => Just("é🦀".as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
        2 => "[a-z: ]{0,8}".prop_map(String::into_bytes),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn pieces<'a>(input: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = input;
    sizes.iter().cycle().map_while(move |size| {
        let (piece, after) = rest.split_at(rest.len().min(*size));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

proptest! {
    #[test]
    fn any_split_gives_the_frames_of_the_reference(input in stream(), sizes in proptest::collection::vec(1_usize..20, 1..8)) {
        let expect = decode_plainly(&input);
        prop_assert_eq!(&decode(MAX_FRAME_BYTES, std::iter::once(&input[..])), &expect);
        prop_assert_eq!(&decode(MAX_FRAME_BYTES, pieces(&input, &sizes)), &expect);
    }

    #[test]
    fn any_split_meets_the_bound_at_the_same_frame(input in stream(), sizes in proptest::collection::vec(1_usize..20, 1..8), limit in 0_usize..40) {
        let expect = decode(limit, std::iter::once(&input[..]));
        prop_assert_eq!(decode(limit, pieces(&input, &sizes)), expect);
    }

    #[test]
    fn what_is_written_is_read(event in "[^\r\n]{0,12}", lines in proptest::collection::vec("[^\r\n]{0,12}", 1..4)) {
        let mut out = Vec::new();
        let data = lines.join("\n");
        write_event(&event, data.as_bytes(), &mut out);
        prop_assert_eq!(decode(MAX_FRAME_BYTES, std::iter::once(&out[..])), (vec![(event, data)], Ok(())));
    }
}
