//! The fields of a head, and what they say about the connection and the body.

use memchr::memchr;

use crate::syntax::{HeadError, Version, decimal, is_token_byte};

/// The field lines of a head, already checked.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'b> {
    lines: &'b [u8],
}

/// Iterates over the fields of a head without allocating.
#[derive(Clone, Debug)]
pub struct FieldIter<'b> {
    lines: &'b [u8],
}

/// One field. The value has no blanks around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'b> {
    /// As the sender wrote it, in any case.
    pub name: &'b str,
    /// Any bytes but control characters.
    pub value: &'b [u8],
}

impl Field<'_> {
    /// Compares the name without regard to case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl<'b> Fields<'b> {
    pub(crate) fn new(lines: &'b [u8]) -> Self {
        Self { lines }
    }

    /// The fields in the order in which they were sent.
    pub fn iter(&self) -> FieldIter<'b> {
        FieldIter { lines: self.lines }
    }

    /// The elements of all fields of this name that hold comma-separated lists.
    fn list<'n>(self, name: &'n str) -> impl Iterator<Item = &'b [u8]> + use<'b, 'n> {
        let named = self.iter().filter(move |field| field.is(name));
        named.flat_map(|field| field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii))
    }

    /// Whether the connection may carry another exchange after this one. It may not when `connection` is malformed.
    pub(crate) fn keeps_alive(self, version: Version) -> bool {
        let says = |word: &[u8]| self.list("connection").any(|element| element.eq_ignore_ascii_case(word));
        let is_valid = self.list("connection").flatten().copied().all(is_token_byte);
        is_valid && !says(b"close") && (version == Version::Http11 || says(b"keep-alive"))
    }

    /// The value of `content-length`. A list or a second field could be read in two ways, so both are errors.
    pub(crate) fn content_length(self) -> Result<Option<u64>, HeadError> {
        let mut lengths = self.iter().filter(|field| field.is("content-length"));
        let Some(first) = lengths.next() else { return Ok(None) };
        if lengths.next().is_some() {
            return Err(HeadError::ContentLength);
        }
        decimal(first.value).map(Some).ok_or(HeadError::ContentLength)
    }

    /// Whether the body is chunked. Any other transfer coding is an error.
    pub(crate) fn is_chunked(self) -> Result<bool, HeadError> {
        let mut codings = self.list("transfer-encoding");
        match (codings.next(), codings.next()) {
            (None, _) => Ok(false),
            (Some(only), None) if only.eq_ignore_ascii_case(b"chunked") => Ok(true),
            (Some(_), _) => Err(HeadError::TransferEncoding),
        }
    }
}

impl<'b> IntoIterator for Fields<'b> {
    type Item = Field<'b>;
    type IntoIter = FieldIter<'b>;

    fn into_iter(self) -> FieldIter<'b> {
        self.iter()
    }
}

impl<'b> IntoIterator for &Fields<'b> {
    type Item = Field<'b>;
    type IntoIter = FieldIter<'b>;

    fn into_iter(self) -> FieldIter<'b> {
        self.iter()
    }
}

impl<'b> Iterator for FieldIter<'b> {
    type Item = Field<'b>;

    fn next(&mut self) -> Option<Field<'b>> {
        let end = memchr(b'\n', self.lines)?;
        let (line, rest) = self.lines.split_at(end + 1);
        self.lines = rest;
        let colon = memchr(b':', line)?;
        let name = str::from_utf8(&line[..colon]).ok()?;
        Some(Field { name, value: line[colon + 1..].trim_ascii() })
    }
}
