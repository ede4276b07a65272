//! The head of a client's last turn on a connection. As a rule its next one says the same but for the length of the
//! body, and then nothing has to be read again: what is asked, by whom, and that they may, is known.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};

use super::head::{self, Head};
use crate::turn::Asking;

/// Longer heads are not kept: connections are many, and most of them wait.
const MAX_KEPT_BYTES: usize = 4 * 1024;

/// Remembers one head.
#[derive(Default)]
pub(super) struct KnownHead(Option<Known>);

struct Known {
    /// Up to the length of the body.
    before: Bytes,
    /// From there to its end.
    after: Bytes,
    asking: Arc<Asking>,
}

impl KnownHead {
    /// Keeps a head whose sender was let in.
    pub(super) fn remember(&mut self, head: &Head, asking: &Arc<Asking>) {
        let is_kept = !head.closes && head.text.len() <= MAX_KEPT_BYTES;
        self.0 = is_kept.then(|| Known {
            before: head.text.slice(..head.length_at.start),
            after: head.text.slice(head.length_at.end..),
            asking: Arc::clone(asking),
        });
    }

    /// Takes the same head off the front of what came, and says how long the body is. Whatever else came is left.
    pub(super) fn take(
        &self,
        received: &mut BytesMut,
        max_body_bytes: usize,
    ) -> Option<(Arc<Asking>, usize)> {
        let Known { before, after, asking } = self.0.as_ref()?;
        let rest = received.strip_prefix(&before[..])?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (length, rest) = rest.split_at(digits);
        let length = head::length(length).filter(|length| *length <= max_body_bytes)?;
        if !rest.starts_with(after) {
            return None;
        }
        received.advance(before.len() + digits + after.len());
        Some((Arc::clone(asking), length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Api, Caller};

    const HEAD: &str =
        "POST /v1/messages HTTP/1.1\r\nhost: here\r\ncontent-length: 12\r\nx-session-id: s\r\n\r\n";

    fn known(text: &str) -> KnownHead {
        let head = Head::take(&mut BytesMut::from(text), 1000).expect("an ordinary head");
        let asking = Asking::new(Api::Messages, Caller::nobody(), head.request.headers());
        let mut known = KnownHead::default();
        known.remember(&head, &Arc::new(asking));
        known
    }

    /// The length of the body, and what is left.
    fn take(known: &KnownHead, text: &str) -> (Option<usize>, String) {
        let mut received = BytesMut::from(text);
        let length = known.take(&mut received, 1000).map(|(_, length)| length);
        (length, String::from_utf8_lossy(&received).into_owned())
    }

    #[test]
    fn the_same_head_is_taken_whatever_the_length() {
        let known = known(HEAD);
        for length in ["0", "7", "12", "1000"] {
            let text = HEAD.replace("12", length) + "body";
            assert_eq!(take(&known, &text), (length.parse().ok(), "body".to_owned()));
        }
    }

    #[test]
    fn any_other_head_is_left() {
        let known = known(HEAD);
        let others = [
            HEAD.replace("12", ""),
            HEAD.replace("12", "1001"),
            HEAD.replace("12", "99999999999999999999999"),
            HEAD.replace("12", "+12"),
            HEAD.replace("12", "12 "),
            HEAD.replace("12", "1 2"),
            HEAD.replace("x-session-id: s", "x-session-id: t"),
            HEAD.replace("here", "there"),
            HEAD.replace("\r\n\r\n", "\r\ncontent-length: 12\r\n\r\n"),
            HEAD.replace("messages", "responses"),
            String::new(),
        ];
        for text in others {
            assert_eq!(take(&known, &text), (None, text.clone()), "{text:?}");
        }
        for end in 0..HEAD.len() {
            assert_eq!(take(&known, &HEAD[..end]).0, None, "{:?}", &HEAD[..end]);
        }
    }

    #[test]
    fn long_heads_and_those_of_a_last_request_are_forgotten() {
        let long = HEAD.replace("here", &"h".repeat(MAX_KEPT_BYTES));
        let last = HEAD.replace("x-session-id: s", "connection: close");
        for text in [long, last] {
            assert_eq!(take(&known(&text), &text).0, None);
        }
    }
}
