//! Any split of the bytes gives the same server-sent events and the same error.
//! The first byte of the input bounds a frame, the second is the size of the pieces, the rest is the stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_dialect::frame::{FrameError, SseDecoder};

fuzz_target!(|input: &[u8]| {
    let [limit, size, stream @ ..] = input else { return };
    let whole = decode(usize::from(*limit), std::iter::once(stream));
    assert_eq!(decode(usize::from(*limit), stream.chunks(usize::from(*size).max(1))), whole);
    assert_eq!(decode(usize::from(*limit), stream.chunks(1)), whole);
});

fn decode<'a>(
    limit: usize,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<(String, String)>, Result<(), FrameError>) {
    let mut decoder = SseDecoder::new(limit);
    let mut frames = Vec::new();
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
    let end = decoder
        .end()
        .map(|last| frames.extend(last.map(|frame| (frame.event.to_owned(), frame.data.to_owned()))));
    (frames, end)
}
