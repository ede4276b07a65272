//! JSON lines: one value per line, lines end in `\n`.

use super::FrameError;
use super::window::Window;

/// Splits a byte stream into lines. Empty lines are skipped.
#[derive(Debug)]
pub struct LineDecoder {
    window: Window,
    /// How many of the unread bytes are known to contain no line end.
    scanned: usize,
    limit: usize,
    failed: Option<FrameError>,
}

impl LineDecoder {
    /// A decoder that rejects lines longer than `max_frame_bytes` bytes.
    pub fn new(max_frame_bytes: usize) -> Self {
        Self { window: Window::default(), scanned: 0, limit: max_frame_bytes, failed: None }
    }

    /// Adds bytes from the wire. Take all lines before the next push, or the buffer grows without limit.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.window.push(bytes);
        }
    }

    /// The next complete line without its end, or `None` if more bytes are needed.
    pub fn next_line(&mut self) -> Result<Option<&str>, FrameError> {
        let Some(line_end) = self.find_line()? else { return Ok(None) };
        self.scanned = 0;
        let line = self.window.take(line_end + 1);
        text_of(&line[..line_end], &mut self.failed).map(Some)
    }

    /// Ends the stream: returns the last line if it has no line end. Call after `next_line` returned `None`.
    pub fn end(&mut self) -> Result<Option<&str>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.scanned = 0;
        let line = self.window.take(self.window.unread().len());
        if without_carriage_return(line).is_empty() {
            return Ok(None);
        }
        text_of(line, &mut self.failed).map(Some)
    }

    /// The end of the first line that is not empty. Drops the empty lines before it.
    fn find_line(&mut self) -> Result<Option<usize>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        loop {
            let unread = self.window.unread();
            let found = memchr::memchr(b'\n', &unread[self.scanned..]).map(|offset| self.scanned + offset);
            let length = found.unwrap_or(unread.len());
            if length > self.limit {
                let error = FrameError::TooLarge { limit: self.limit };
                self.failed = Some(error);
                return Err(error);
            }
            let Some(line_end) = found else {
                self.scanned = length;
                return Ok(None);
            };
            if !without_carriage_return(&unread[..line_end]).is_empty() {
                return Ok(Some(line_end));
            }
            self.window.take(line_end + 1);
            self.scanned = 0;
        }
    }
}

fn text_of<'a>(line: &'a [u8], failed: &mut Option<FrameError>) -> Result<&'a str, FrameError> {
    std::str::from_utf8(without_carriage_return(line)).map_err(|_| *failed.insert(FrameError::NotUtf8))
}

fn without_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests;
