//! A host's stream, relayed unchanged while a meter reads the token counts.

use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use toolgate_dialect::frame::{MAX_FRAME_BYTES, SseDecoder};
use toolgate_dialect::{Meter, MeterReading};
use toolgate_model::TurnError;

use super::MAX_CLOSING;
use super::body::HostBody;
use crate::turn::RelayStream;

/// Relays whole frames only, so that an error event can follow at any time.
pub(super) struct HostRelay {
    body: HostBody,
    decoder: SseDecoder,
    meter: Box<dyn Meter>,
    /// The beginning of a frame whose end was not received yet.
    held: BytesMut,
    /// The first frames, after `poll_first` has read them.
    first: Option<Bytes>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The dialect's last frame was relayed; only the end of the body is missing.
    Complete,
    Over,
}

impl HostRelay {
    pub(super) fn new(body: HostBody, meter: Box<dyn Meter>) -> Self {
        let decoder = SseDecoder::new(MAX_FRAME_BYTES);
        Self { body, decoder, meter, held: BytesMut::new(), first: None, state: State::Open }
    }

    /// Ready when the first frames were received; the stream then gives them as usual. An error event among them fails
    /// the turn, so that another host can be tried.
    pub(super) fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TurnError>> {
        let first = match ready!(self.poll_more(cx)) {
            Some(first) => first?,
            None => return Poll::Ready(Err(self.body.host().ended_early())),
        };
        if let Some(error) = self.meter.reading().error {
            return Poll::Ready(Err(error));
        }
        self.first = Some(first);
        Poll::Ready(Ok(()))
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>> {
        loop {
            if self.state == State::Over {
                return Poll::Ready(None);
            }
            match ready!(self.body.poll_bytes(cx)) {
                Some(Ok(bytes)) => {
                    if let Err(error) = self.measure(&bytes) {
                        self.state = State::Over;
                        return Poll::Ready(Some(Err(error)));
                    }
                    if let Some(whole) = self.whole_frames(bytes) {
                        return Poll::Ready(Some(Ok(whole)));
                    }
                }
                // The reply is complete, so an error after it does not matter.
                Some(Err(_)) | None if self.state == State::Complete => self.state = State::Over,
                Some(Err(error)) => {
                    self.state = State::Over;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.state = State::Over;
                    if let Some(last) = self.last_frame() {
                        return Poll::Ready(Some(Ok(last)));
                    }
                    if self.meter.reading().error.is_none() {
                        // T17
                        return Poll::Ready(Some(Err(self.body.host().ended_early())));
                    }
                }
            }
        }
    }

    /// The held bytes if they are the reply's last frame without its empty line, which is added.
    fn last_frame(&mut self) -> Option<Bytes> {
        self.meter.frame(self.decoder.end().ok()??);
        if !self.meter.reading().complete {
            return None;
        }
        self.held.extend_from_slice(b"\n\n");
        Some(self.held.split().freeze())
    }

    fn measure(&mut self, bytes: &[u8]) -> Result<(), TurnError> {
        self.decoder.push(bytes);
        let mut has_frames = false;
        while let Some(frame) = self.decoder.next_frame().map_err(|error| self.body.host().cut(error))? {
            self.meter.frame(frame);
            has_frames = true;
        }
        if has_frames && self.state == State::Open && self.meter.reading().complete {
            self.state = State::Complete;
            self.body.set_idle(MAX_CLOSING);
        }
        Ok(())
    }

    /// The bytes up to the end of the last whole frame; the rest is held back.
    fn whole_frames(&mut self, mut bytes: Bytes) -> Option<Bytes> {
        let end = end_of_last_frame(&self.held, &bytes);
        if end == 0 {
            self.held.extend_from_slice(&bytes);
            return None;
        }
        let rest = bytes.split_off(end);
        let whole = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(&bytes);
            self.held.split().freeze()
        };
        self.held.extend_from_slice(&rest);
        Some(whole)
    }
}

impl RelayStream for HostRelay {
    fn poll_frames(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TurnError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        self.poll_more(cx)
    }

    fn reading(&self) -> MeterReading {
        self.meter.reading()
    }
}

/// How many of the new bytes belong to whole frames, which end with an empty line. The empty line may have begun in
/// the bytes that were held back.
fn end_of_last_frame(held: &[u8], bytes: &[u8]) -> usize {
    let at = |index: usize| match index.checked_sub(held.len()) {
        Some(index) => bytes[index],
        None => held[index],
    };
    for end in memchr::memrchr2_iter(b'\n', b'\r', bytes).map(|index| held.len() + index) {
        let before = |back: usize| end.checked_sub(back).map(at);
        let ends_empty_line = matches!(
            (at(end), before(1), before(2)),
            (b'\n', Some(b'\n'), _)
                | (b'\r', Some(b'\r' | b'\n'), _)
                | (b'\n', Some(b'\r'), Some(b'\n' | b'\r'))
        );
        if ends_empty_line {
            return end + 1 - held.len();
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::end_of_last_frame;

    #[track_caller]
    fn check(held: &str, bytes: &str, expected: usize) {
        assert_eq!(end_of_last_frame(held.as_bytes(), bytes.as_bytes()), expected, "{held:?} + {bytes:?}");
    }

    #[test]
    fn a_frame_ends_with_an_empty_line() {
        check("", "data: 1\n\n", 9);
        check("", "data: 1\r\n\r\n", 11);
        check("", "data: 1\r\r", 9);
        check("", "data: 1\n\ndata: 2\n\ndata", 18);
    }

    #[test]
    fn half_a_frame_has_no_end() {
        check("", "data: 1\n", 0);
        check("", "data: 1", 0);
        check("", "", 0);
        check("data", ": 1\r\n", 0);
    }

    #[test]
    fn the_empty_line_may_be_split() {
        check("data: 1\n", "\ndata", 1);
        check("data: 1\r\n", "\r\n", 2);
        check("data: 1\r\n\r", "\ndata", 1);
    }
}
