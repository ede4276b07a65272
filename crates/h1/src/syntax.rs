//! The grammar of a head: a start line, field lines and an empty line, each ending in CR LF.

use memchr::memchr;
use thiserror::Error;

use crate::facts::HeadFacts;
use crate::fields::Fields;

/// The largest head that is accepted. Common servers and proxies allow 8 to 64 KiB.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The most fields a head may have.
pub const MAX_FIELDS: usize = 128;

/// The longest body that is accepted. Programs that count in signed integers would read a larger length as negative.
pub(crate) const MAX_LENGTH: u64 = i64::MAX as u64;

/// The version in a start line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: connections close after one exchange unless both sides agree otherwise.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// Why a head is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HeadError {
    /// A line ends in LF without CR.
    #[error("a line of the head does not end in CR LF")]
    BareLineFeed,
    /// The first line is not a request line or status line.
    #[error("the first line is not valid HTTP/1.1")]
    StartLine,
    /// A field has no name, or its name has characters that names must not have, such as a space before the colon.
    #[error("a header field has an invalid name")]
    FieldName,
    /// A field's value has control characters.
    #[error("a header field has control characters in its value")]
    FieldValue,
    /// A field continues on the next line.
    #[error("a header field is folded over several lines")]
    Folded,
    /// The head is larger than [`MAX_HEAD_BYTES`].
    #[error("the head is larger than {MAX_HEAD_BYTES} bytes")]
    TooLarge,
    /// The head has more than [`MAX_FIELDS`] fields.
    #[error("the head has more than {MAX_FIELDS} fields")]
    TooManyFields,
    /// `content-length` is not one plain number, or a number that is too large.
    #[error("`content-length` is not a single number")]
    ContentLength,
    /// `transfer-encoding` is anything but `chunked`, or is used in HTTP/1.0, which has none.
    #[error("`transfer-encoding` is something other than `chunked`, or the version is HTTP/1.0")]
    TransferEncoding,
    /// A request has both `content-length` and `transfer-encoding`.
    #[error("both `content-length` and `transfer-encoding` are present")]
    AmbiguousLength,
    /// A request does not have exactly one `host`, or its value is not a host.
    #[error("the request does not have exactly one valid `host` header")]
    Host,
}

/// A complete head whose lines are valid.
pub(crate) struct RawHead<'b> {
    pub(crate) start_line: &'b [u8],
    pub(crate) fields: Fields<'b>,
    pub(crate) facts: HeadFacts<'b>,
    /// Bytes of the head, the empty line included.
    pub(crate) length: usize,
}

/// Splits a head into its lines and checks each. `None` while the head is incomplete; whatever is wrong with the part
/// that is there is reported at once.
pub(crate) fn parse_head(bytes: &[u8]) -> Result<Option<RawHead<'_>>, HeadError> {
    let limited = &bytes[..bytes.len().min(MAX_HEAD_BYTES)];
    let Some(Line { text: start_line, rest: lines }) = next_line(limited)? else { return incomplete(bytes) };
    if start_line.is_empty() {
        return Err(HeadError::StartLine);
    }
    let Some(FieldBlock { fields, facts, length }) = parse_fields(lines)? else { return incomplete(bytes) };
    Ok(Some(RawHead { start_line, fields, facts, length: limited.len() - lines.len() + length }))
}

/// Field lines and the empty line after them.
pub(crate) struct FieldBlock<'b> {
    pub(crate) fields: Fields<'b>,
    pub(crate) facts: HeadFacts<'b>,
    /// Bytes of all lines, the empty one included.
    pub(crate) length: usize,
}

/// Reads field lines up to an empty line; `None` while they are incomplete.
pub(crate) fn parse_fields(lines: &[u8]) -> Result<Option<FieldBlock<'_>>, HeadError> {
    let (mut unread, mut count, mut facts) = (lines, 0, HeadFacts::new());
    loop {
        let Some(Line { text, rest }) = next_line(unread)? else { return Ok(None) };
        if text.is_empty() {
            let fields = Fields::new(&lines[..lines.len() - unread.len()]);
            return Ok(Some(FieldBlock { fields, facts, length: lines.len() - rest.len() }));
        }
        let (name, value) = field_line(text)?;
        facts.add(name, value.trim_ascii());
        count += 1;
        if count > MAX_FIELDS {
            return Err(HeadError::TooManyFields);
        }
        unread = rest;
    }
}

fn incomplete<'b>(bytes: &[u8]) -> Result<Option<RawHead<'b>>, HeadError> {
    if bytes.len() >= MAX_HEAD_BYTES { Err(HeadError::TooLarge) } else { Ok(None) }
}

/// A line without its end, and the bytes after it.
pub(crate) struct Line<'b> {
    pub(crate) text: &'b [u8],
    pub(crate) rest: &'b [u8],
}

/// Splits off the next line; `None` while it is incomplete.
pub(crate) fn next_line(bytes: &[u8]) -> Result<Option<Line<'_>>, HeadError> {
    let Some(end) = memchr(b'\n', bytes) else { return Ok(None) };
    match bytes[..end].strip_suffix(b"\r") {
        Some(text) => Ok(Some(Line { text, rest: &bytes[end + 1..] })),
        None => Err(HeadError::BareLineFeed),
    }
}

/// The name and the value of a valid field line.
fn field_line(line: &[u8]) -> Result<(&[u8], &[u8]), HeadError> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(HeadError::Folded);
    }
    let colon = memchr(b':', line).ok_or(HeadError::FieldName)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() || !name.iter().copied().all(is_token_byte) {
        return Err(HeadError::FieldName);
    }
    if value.iter().copied().all(is_text_byte) { Ok((name, value)) } else { Err(HeadError::FieldValue) }
}

/// What names and methods are made of (RFC 9110, section 5.6.2).
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

/// What values and reason phrases are made of: everything but control characters.
pub(crate) fn is_text_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// A number up to [`MAX_LENGTH`] of decimal digits and nothing else. `parse` alone would also accept a plus sign.
pub(crate) fn decimal(value: &[u8]) -> Option<u64> {
    let is_plain = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number: u64 = str::from_utf8(value).ok().filter(|_| is_plain)?.parse().ok()?;
    (number <= MAX_LENGTH).then_some(number)
}
