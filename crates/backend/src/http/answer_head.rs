//! What the head of a host's answer says, as far as it matters here.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use toolgate_model::Delivery;

use crate::host_headers::HostHeaders;

/// The head of an answer. Fields that mean nothing to us are passed over.
#[derive(Debug, Default)]
pub(super) struct AnswerHead {
    pub(super) status: StatusCode,
    /// Where a redirection leads.
    pub(super) location: Option<String>,
    /// What the client may see.
    pub(super) headers: HostHeaders,
    media: Media,
    retry_after_ms: Option<f64>,
    retry_after: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Media {
    /// Not named, or nothing we know.
    #[default]
    Unknown,
    Stream,
    Json,
    Page,
}

/// What a successful answer carries, whatever was asked for: some hosts stream always, some never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyForm {
    Stream,
    Whole,
    Html,
}

impl AnswerHead {
    /// Its fields are still to be noted.
    pub(super) fn new(status: StatusCode) -> Self {
        Self { status, ..Self::default() }
    }

    /// The same from a head that was read elsewhere.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let mut head = Self::new(status);
        for (name, value) in headers {
            head.note(name.as_str(), value.as_bytes());
        }
        head
    }

    /// Takes a field into account.
    pub(super) fn note(&mut self, name: &str, value: &[u8]) {
        self.headers.add(name, value);
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("content-type") {
            self.media = Media::of(value);
        } else if is("retry-after-ms") {
            self.retry_after_ms = number(value);
        } else if is("retry-after") {
            self.retry_after = number(value);
        } else if is("location") {
            self.location = str::from_utf8(value).ok().map(str::to_owned);
        }
    }

    /// What the body is.
    pub(super) fn form(&self, asked: Delivery) -> ReplyForm {
        match (self.media, asked) {
            (Media::Stream, _) | (Media::Unknown, Delivery::Stream(_)) => ReplyForm::Stream,
            (Media::Json, _) | (Media::Unknown, Delivery::Whole) => ReplyForm::Whole,
            (Media::Page, _) => ReplyForm::Html,
        }
    }

    /// How long the host asks to wait: `retry-after-ms`, or `retry-after` in seconds.
    pub(super) fn asked_wait(&self) -> Option<Duration> {
        let seconds = self.retry_after_ms.map(|millis| millis / 1000.0).or(self.retry_after)?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

impl Media {
    fn of(value: &[u8]) -> Self {
        let named = value.split(|byte| *byte == b';').next().unwrap_or_default();
        match named.trim_ascii() {
            b"text/event-stream" => Self::Stream,
            b"application/json" => Self::Json,
            b"text/html" | b"application/xhtml+xml" => Self::Page,
            _ => Self::Unknown,
        }
    }
}

fn number(value: &[u8]) -> Option<f64> {
    str::from_utf8(value).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use toolgate_model::UsageReport;

    use super::*;

    fn head(name: &str, value: &str) -> AnswerHead {
        let mut head = AnswerHead::default();
        head.note(name, value.as_bytes());
        head
    }

    #[test]
    fn the_wait_is_read_in_either_unit() {
        let wait = |name: &str, value: &str| head(name, value).asked_wait();
        assert_eq!(wait("Retry-After", "2"), Some(Duration::from_secs(2)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", " 1500 "), Some(Duration::from_millis(1500)));
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(wait("retry-after", "-1"), None);
        let mut both = head("retry-after-ms", "250");
        both.note("retry-after", b"1");
        assert_eq!(both.asked_wait(), Some(Duration::from_millis(250)));
    }

    #[test]
    fn what_comes_is_what_is_named_or_else_what_was_asked_for() {
        let stream = Delivery::Stream(UsageReport::Default);
        let form = |value: &str, asked| head("Content-Type", value).form(asked);
        for asked in [Delivery::Whole, stream] {
            assert_eq!(form("text/event-stream; charset=utf-8", asked), ReplyForm::Stream);
            assert_eq!(form("application/json ;charset=utf-8", asked), ReplyForm::Whole);
            assert_eq!(form("text/html", asked), ReplyForm::Html);
        }
        for value in ["text/plain", ""] {
            assert_eq!(form(value, Delivery::Whole), ReplyForm::Whole);
            assert_eq!(form(value, stream), ReplyForm::Stream);
        }
    }
}
