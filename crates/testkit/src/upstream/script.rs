//! A small language for scripted responses.

use std::collections::VecDeque;
use std::fmt::Display;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// One step of a response's body. After the last step the body is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Sends these bytes, in a write of their own.
    Send(Bytes),
    /// Waits until the test opens the gate.
    Gate(String),
    /// Sends nothing more and keeps the connection open.
    Stall,
    /// Closes the TCP connection without ending the body.
    Cut,
}

/// A response: status, headers and the steps of its body.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) head_gate: Option<String>,
    pub(super) steps: VecDeque<Step>,
}

impl Script {
    /// A response with a status and no body yet.
    ///
    /// # Panics
    /// When the status is not an HTTP status.
    #[expect(clippy::expect_used, reason = "a wrong script is a wrong test")]
    pub fn status(status: u16) -> Self {
        let status = StatusCode::from_u16(status).expect("an HTTP status");
        Self { status, headers: HeaderMap::new(), head_gate: None, steps: VecDeque::new() }
    }

    /// A whole JSON response. The body is the value's `Display` form: a `Value`, or any text.
    pub fn json(status: u16, body: impl Display) -> Self {
        Self::whole(status, "application/json", body.to_string())
    }

    /// A whole HTML response, as a proxy sends it.
    pub fn html(status: u16, body: &str) -> Self {
        Self::whole(status, "text/html; charset=utf-8", body.to_owned())
    }

    /// A stream of server-sent events, status 200, empty so far.
    pub fn sse() -> Self {
        Self::status(200).header("content-type", "text/event-stream; charset=utf-8")
    }

    /// Adds a header.
    ///
    /// # Panics
    /// When the value is not valid in a header.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a wrong script is a wrong test")]
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers
            .append(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header value"));
        self
    }

    /// Delays the status and headers until the test opens the gate.
    #[must_use]
    pub fn gate_before_head(mut self, gate: &str) -> Self {
        self.head_gate = Some(gate.to_owned());
        self
    }

    /// Sends one event. An empty name writes no `event:` line.
    #[must_use]
    pub fn frame(self, event: &str, data: impl Display) -> Self {
        let name = if event.is_empty() { String::new() } else { format!("event: {event}\n") };
        self.bytes(format!("{name}data: {data}\n\n"))
    }

    /// Sends bytes unchanged: half a frame, half a character, a comment.
    #[must_use]
    pub fn bytes(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(Step::Send(Bytes::copy_from_slice(bytes.as_ref())))
    }

    /// Waits until the test opens the gate.
    #[must_use]
    pub fn gate(self, gate: &str) -> Self {
        self.step(Step::Gate(gate.to_owned()))
    }

    /// Sends nothing more and keeps the connection open.
    #[must_use]
    pub fn stall(self) -> Self {
        self.step(Step::Stall)
    }

    /// Closes the TCP connection without ending the body.
    #[must_use]
    pub fn cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Adds one step.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push_back(step);
        self
    }

    /// The same with all bytes so far in one write, so that they arrive together on a slow machine too.
    #[must_use]
    pub fn in_one_write(mut self) -> Self {
        let mut bytes = Vec::new();
        let steps = std::mem::take(&mut self.steps);
        for step in steps {
            match step {
                Step::Send(more) => bytes.extend_from_slice(&more),
                Step::Gate(_) | Step::Stall | Step::Cut => self.steps.push_back(step),
            }
        }
        self.steps.push_front(Step::Send(Bytes::from(bytes)));
        self
    }

    /// The steps so far.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter()
    }

    /// The same response, cut after half of its bytes, possibly in the middle of a frame.
    #[must_use]
    pub fn cut_midway(mut self) -> Self {
        let length = |step: &Step| match step {
            Step::Send(bytes) => bytes.len(),
            Step::Gate(_) | Step::Stall | Step::Cut => 0,
        };
        let mut left = self.steps.iter().map(length).sum::<usize>() / 2;
        let mut kept = VecDeque::new();
        for step in std::mem::take(&mut self.steps) {
            let length = length(&step);
            match step {
                Step::Send(bytes) if length > left => {
                    kept.push_back(Step::Send(bytes.slice(..left)));
                    break;
                }
                Step::Send(_) | Step::Gate(_) | Step::Stall | Step::Cut => kept.push_back(step),
            }
            left -= length;
        }
        self.steps = kept;
        self.cut()
    }

    fn whole(status: u16, content_type: &str, body: String) -> Self {
        let length = body.len().to_string();
        Self::status(status)
            .header("content-type", content_type)
            .header("content-length", &length)
            .bytes(body)
    }
}
