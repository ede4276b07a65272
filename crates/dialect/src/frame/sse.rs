//! Server-sent events as the HTML standard defines them (section 9.2, "Server-sent events").
//!
//! Positions are relative to the start of the open frame. A frame with one data line, which is every frame of a model
//! API, is returned without a copy.

mod write;

use std::ops::Range;

use serde::de::IgnoredAny;

use super::FrameError;
use super::window::Window;

pub use write::{write_comment, write_data, write_event};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Splits a byte stream into server-sent events.
#[derive(Debug)]
pub struct SseDecoder {
    /// Starts at the open frame.
    window: Window,
    open: OpenFrame,
    /// The data of a frame with several data lines.
    joined: Vec<u8>,
    /// The last line ended with `\r`, so a `\n` right after it belongs to the same line end.
    after_carriage_return: bool,
    at_stream_start: bool,
    limit: usize,
    failed: Option<FrameError>,
}

/// One event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseFrame<'a> {
    /// The event name, empty if the frame has none.
    pub event: &'a str,
    /// The data lines, joined by `\n`.
    pub data: &'a str,
}

/// True for data that cannot be the beginning of something longer. Model APIs send JSON objects and `[DONE]`.
fn is_whole(data: &str) -> bool {
    data == "[DONE]" || serde_json::from_str::<IgnoredAny>(data).is_ok()
}

impl SseDecoder {
    /// A decoder that rejects frames of more than `max_frame_bytes` bytes, field names and line ends included.
    pub fn new(max_frame_bytes: usize) -> Self {
        Self {
            window: Window::default(),
            open: OpenFrame::default(),
            joined: Vec::new(),
            after_carriage_return: false,
            at_stream_start: true,
            limit: max_frame_bytes,
            failed: None,
        }
    }

    /// Adds bytes from the wire. Take all frames before the next push, or the buffer grows without limit.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.window.push(bytes);
        }
    }

    /// The next complete frame, or `None` if more bytes are needed.
    pub fn next_frame(&mut self) -> Result<Option<SseFrame<'_>>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Some(frame) = self.find_frame().map_err(|error| *self.failed.insert(error))? else {
            return Ok(None);
        };
        let bytes = self.window.take(frame.length);
        let data = match frame.data {
            Data::One(line) => &bytes[line],
            Data::None | Data::Joined => &self.joined,
        };
        let texts = std::str::from_utf8(&bytes[frame.event])
            .and_then(|event| Ok(SseFrame { event, data: std::str::from_utf8(data)? }));
        texts.map(Some).map_err(|_| *self.failed.insert(FrameError::NotUtf8))
    }

    /// Ends the stream. Call after `next_frame` returned `None`. Some hosts leave out the empty line after their last
    /// frame, and its last line end; that frame is returned.
    ///
    /// # Errors
    /// `Truncated` if a part of a frame is left over: an event name without data, or data that is cut. An unfinished
    /// comment does not count.
    pub fn end(&mut self) -> Result<Option<SseFrame<'_>>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let unfinished_line = match self.window.unread().get(self.open.line_start) {
            None | Some(b':') => false,
            Some(_) => true,
        };
        if !unfinished_line && !self.open.has_fields() {
            return Ok(None);
        }
        self.push(b"\n\n");
        match self.next_frame()? {
            Some(frame) if is_whole(frame.data) => Ok(Some(frame)),
            Some(_) | None => Err(FrameError::Truncated),
        }
    }

    /// Reads lines until one ends a frame that has data.
    fn find_frame(&mut self) -> Result<Option<ReadyFrame>, FrameError> {
        if self.at_stream_start && !self.skip_byte_order_mark() {
            return Ok(None);
        }
        while let Some(line) = self.next_line()? {
            if line.content.is_empty() {
                let frame = std::mem::take(&mut self.open);
                if !matches!(frame.data, Data::None) {
                    return Ok(Some(ReadyFrame { event: frame.event, data: frame.data, length: line.next }));
                }
                self.window.take(line.next);
                continue;
            }
            self.read_field(line.content);
            if self.open.has_fields() {
                self.open.line_start = line.next;
                self.open.scanned = line.next;
            } else {
                // The frame has no fields yet: drop the line, so that comments never add up to a large frame.
                self.window.take(line.next);
                self.open = OpenFrame::default();
            }
        }
        Ok(None)
    }

    /// Returns false if more bytes are needed to recognize the mark.
    fn skip_byte_order_mark(&mut self) -> bool {
        let unread = self.window.unread();
        if unread.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(unread) {
            return false;
        }
        if unread.starts_with(BYTE_ORDER_MARK) {
            self.window.take(BYTE_ORDER_MARK.len());
        }
        self.at_stream_start = false;
        true
    }

    fn next_line(&mut self) -> Result<Option<Line>, FrameError> {
        self.finish_line_end();
        let unread = self.window.unread();
        let found = memchr::memchr2(b'\n', b'\r', &unread[self.open.scanned..])
            .map(|offset| self.open.scanned + offset);
        let end = found.unwrap_or(unread.len());
        if end > self.limit {
            return Err(FrameError::TooLarge { limit: self.limit });
        }
        if found.is_none() {
            self.open.scanned = end;
            return Ok(None);
        }
        let next = match unread[end..] {
            [b'\r', b'\n', ..] => end + 2,
            [b'\r'] => {
                self.after_carriage_return = true;
                end + 1
            }
            _ => end + 1,
        };
        Ok(Some(Line { content: self.open.line_start..end, next }))
    }

    /// Skips the `\n` of a `\r\n` that was split over two pushes.
    fn finish_line_end(&mut self) {
        if !self.after_carriage_return {
            return;
        }
        let Some(next) = self.window.unread().get(self.open.line_start) else { return };
        self.after_carriage_return = false;
        if *next != b'\n' {
            return;
        }
        if self.open.has_fields() {
            self.open.line_start += 1;
            self.open.scanned = self.open.line_start;
        } else {
            self.window.take(1);
        }
    }

    /// Stores the fields `data` and `event`. Comments, `id`, `retry` and unknown fields are ignored.
    fn read_field(&mut self, line: Range<usize>) {
        let unread = self.window.unread();
        let content = &unread[line.clone()];
        if let Some(skipped) = value_offset(content, b"data") {
            let value = line.start + skipped..line.end;
            self.open.data = match std::mem::take(&mut self.open.data) {
                Data::None => Data::One(value),
                Data::One(first) => {
                    self.joined.clear();
                    self.joined.extend_from_slice(&unread[first]);
                    self.joined.push(b'\n');
                    self.joined.extend_from_slice(&unread[value]);
                    Data::Joined
                }
                Data::Joined => {
                    self.joined.push(b'\n');
                    self.joined.extend_from_slice(&unread[value]);
                    Data::Joined
                }
            };
        } else if let Some(skipped) = value_offset(content, b"event") {
            self.open.event = line.start + skipped..line.end;
        }
    }
}

/// The fields of the frame that is being read. Positions count from the start of the window.
#[derive(Debug, Default)]
struct OpenFrame {
    event: Range<usize>,
    data: Data,
    line_start: usize,
    /// Where the search for the line end continues, so that no byte is searched twice.
    scanned: usize,
}

impl OpenFrame {
    fn has_fields(&self) -> bool {
        !matches!(self.data, Data::None) || !self.event.is_empty()
    }
}

#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    One(Range<usize>),
    /// Several lines: the value is in `SseDecoder::joined`.
    Joined,
}

struct ReadyFrame {
    event: Range<usize>,
    data: Data,
    length: usize,
}

struct Line {
    content: Range<usize>,
    next: usize,
}

/// The offset of the value if the line is this field. A field without a colon has an empty value.
fn value_offset(line: &[u8], field: &[u8]) -> Option<usize> {
    match line.strip_prefix(field)? {
        [] => Some(field.len()),
        [b':', b' ', ..] => Some(field.len() + 2),
        [b':', ..] => Some(field.len() + 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
