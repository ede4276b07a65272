//! What the fields of a head say about the message's end and its connection, collected in one pass.

use crate::syntax::{HeadError, Version, decimal, is_token_byte};

/// The fields that decide how a message is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadFacts<'b> {
    pub(crate) host: Host<'b>,
    /// The value of `content-length`. A list or a second field could be read in two ways, so both are errors.
    pub(crate) content_length: Result<Option<u64>, HeadError>,
    /// Whether the body is chunked. Any other transfer coding is an error.
    pub(crate) is_chunked: Result<bool, HeadError>,
    connection: Connection,
}

/// The `host` fields.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Host<'b> {
    Missing,
    One(&'b [u8]),
    Several,
}

/// What `connection` asks for.
#[derive(Clone, Copy, Debug)]
struct Connection {
    is_valid: bool,
    closes: bool,
    keeps_alive: bool,
}

impl<'b> HeadFacts<'b> {
    pub(crate) fn new() -> Self {
        Self {
            host: Host::Missing,
            content_length: Ok(None),
            is_chunked: Ok(false),
            connection: Connection { is_valid: true, closes: false, keeps_alive: false },
        }
    }

    /// Takes one field into account. The value has no blanks around it.
    pub(crate) fn add(&mut self, name: &[u8], value: &'b [u8]) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("host") {
            self.host = match self.host {
                Host::Missing => Host::One(value),
                Host::One(_) | Host::Several => Host::Several,
            };
        } else if is("content-length") {
            self.content_length = match self.content_length {
                Ok(None) => decimal(value).map(Some).ok_or(HeadError::ContentLength),
                Ok(Some(_)) | Err(_) => Err(HeadError::ContentLength),
            };
        } else if is("transfer-encoding") {
            for coding in elements(value) {
                let is_only = matches!(self.is_chunked, Ok(false)) && coding.eq_ignore_ascii_case(b"chunked");
                self.is_chunked = if is_only { Ok(true) } else { Err(HeadError::TransferEncoding) };
            }
        } else if is("connection") {
            for element in elements(value) {
                self.connection.is_valid &= element.iter().copied().all(is_token_byte);
                self.connection.closes |= element.eq_ignore_ascii_case(b"close");
                self.connection.keeps_alive |= element.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }

    /// Whether the connection may carry another exchange after this one. It may not when `connection` is malformed.
    pub(crate) fn keeps_alive(&self, version: Version) -> bool {
        let Connection { is_valid, closes, keeps_alive } = self.connection;
        is_valid && !closes && (version == Version::Http11 || keeps_alive)
    }
}

/// The elements of a comma-separated list.
fn elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}
