//! The parts of a response's head that matter here.

use std::time::Duration;

use http::HeaderMap;
use toolgate_h1::ResponseHead;
use toolgate_model::Delivery;

use crate::host_headers::HostHeaders;

/// The head of a host's response. Unknown fields are skipped.
#[derive(Debug, Default)]
pub(super) struct HostHead {
    pub(super) status: u16,
    /// The target of a redirection.
    pub(super) location: Option<String>,
    /// The headers that clients may see.
    pub(super) headers: HostHeaders,
    media: Media,
    /// The encoding of a compressed body, although none was accepted.
    pub(super) encoding: Option<String>,
    retry_after_ms: Option<f64>,
    retry_after: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Media {
    /// Missing, or a type that says nothing about the body.
    #[default]
    Unknown,
    Stream,
    Json,
    Page,
}

/// The form of a successful response, whatever was requested: some hosts stream always, some never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyForm {
    Stream,
    Whole,
    Html,
}

impl HostHead {
    /// Reads a head in HTTP/1.1.
    pub(super) fn read(response: &ResponseHead<'_>) -> Self {
        let mut head = Self { status: response.status, ..Self::default() };
        for field in response.fields {
            head.add_field(field.name, field.value);
        }
        head
    }

    /// Reads a head in HTTP/2.
    pub(super) fn from_parts(status: u16, headers: &HeaderMap) -> Self {
        let mut head = Self { status, ..Self::default() };
        for (name, value) in headers {
            head.add_field(name.as_str(), value.as_bytes());
        }
        head
    }

    fn add_field(&mut self, name: &str, value: &[u8]) {
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
        } else if is("content-encoding") {
            let is_identity = value.trim_ascii().eq_ignore_ascii_case(b"identity");
            self.encoding = (!is_identity).then(|| String::from_utf8_lossy(value).into_owned());
        }
    }

    /// The form of the body.
    pub(super) fn form(&self, requested: Delivery) -> ReplyForm {
        match (self.media, requested) {
            (Media::Stream, _) | (Media::Unknown, Delivery::Stream(_)) => ReplyForm::Stream,
            (Media::Json, _) | (Media::Unknown, Delivery::Whole) => ReplyForm::Whole,
            (Media::Page, _) => ReplyForm::Html,
        }
    }

    /// The wait that the host asks for: `retry-after-ms`, or `retry-after` in seconds.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let seconds = self.retry_after_ms.map(|millis| millis / 1000.0).or(self.retry_after)?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

impl Media {
    fn of(value: &[u8]) -> Self {
        let media_type = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let is = |known: &str| media_type.eq_ignore_ascii_case(known.as_bytes());
        if is("text/event-stream") {
            Self::Stream
        } else if is("application/json") {
            Self::Json
        } else if is("text/html") || is("application/xhtml+xml") {
            Self::Page
        } else {
            Self::Unknown
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

    fn head(name: &str, value: &str) -> HostHead {
        let mut head = HostHead::default();
        head.add_field(name, value.as_bytes());
        head
    }

    #[test]
    fn the_wait_is_read_in_either_unit() {
        let wait = |name: &str, value: &str| head(name, value).retry_after();
        assert_eq!(wait("Retry-After", "2"), Some(Duration::from_secs(2)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", " 1500 "), Some(Duration::from_millis(1500)));
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(wait("retry-after", "-1"), None);
        let mut both = head("retry-after-ms", "250");
        both.add_field("retry-after", b"1");
        assert_eq!(both.retry_after(), Some(Duration::from_millis(250)));
    }

    #[test]
    fn the_media_type_decides_the_form_or_else_the_request_does() {
        let stream = Delivery::Stream(UsageReport::Default);
        let form = |value: &str, requested| head("Content-Type", value).form(requested);
        for requested in [Delivery::Whole, stream] {
            assert_eq!(form("text/event-stream; charset=utf-8", requested), ReplyForm::Stream);
            assert_eq!(form("Application/JSON ;charset=utf-8", requested), ReplyForm::Whole);
            assert_eq!(form("Text/HTML", requested), ReplyForm::Html);
        }
        for value in ["text/plain", ""] {
            assert_eq!(form(value, Delivery::Whole), ReplyForm::Whole);
            assert_eq!(form(value, stream), ReplyForm::Stream);
        }
    }
    #[test]
    fn only_identity_leaves_a_body_as_it_is() {
        assert_eq!(head("Content-Encoding", "gzip").encoding.as_deref(), Some("gzip"));
        assert_eq!(head("content-encoding", "identity, br").encoding.as_deref(), Some("identity, br"));
        assert_eq!(head("content-encoding", "Identity").encoding, None);
        assert_eq!(head("content-type", "text/plain").encoding, None);
    }
}
