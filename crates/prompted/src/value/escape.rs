//! Escaping for JSON strings and for tag attributes.

use std::fmt::Write as _;

/// Writes `text` as the content of a JSON string.
pub(crate) fn text(text: &str, out: &mut String) {
    out.reserve(text.len());
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        plain = at + 1;
        if short.is_empty() {
            // Writing to a string cannot fail.
            write!(out, "\\u{byte:04x}").unwrap_or_default();
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[plain..]);
}

/// Writes `content` as a JSON string.
pub(crate) fn quoted(content: &str, out: &mut String) {
    out.push('"');
    text(content, out);
    out.push('"');
}

/// The text as an attribute value.
pub(crate) fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            other => out.push(other),
        }
    }
    out
}

/// Decodes the entities that [`attribute`] writes, once; anything else stays.
pub(crate) fn decoded(text: &str) -> String {
    const ENTITIES: [(&str, &str); 8] = [
        ("&amp;", "&"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&#10;", "\n"),
        ("&#13;", "\r"),
    ];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (entity, meaning) =
            ENTITIES.into_iter().find(|(entity, _)| rest.starts_with(entity)).unwrap_or(("&", "&"));
        out.push_str(meaning);
        rest = &rest[entity.len()..];
    }
    out.push_str(rest);
    out
}
