//! The hashed bytes. Every element has a tag and a fixed or explicit length, so that different sequences never give the
//! same bytes.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// An incremental hash.
#[derive(Clone, Debug)]
pub(super) struct Link(Sha256);

impl Link {
    /// A hash of this kind of element.
    pub(super) fn new(kind: u8) -> Self {
        Self(Sha256::new_with_prefix([kind]))
    }

    /// Adds a tag for the next element.
    pub(super) fn tag(&mut self, tag: u8) {
        self.0.update([tag]);
    }

    /// Adds a text and its length.
    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text);
    }

    /// Adds a number.
    pub(super) fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    /// Adds another hash.
    pub(super) fn link(&mut self, other: &Link) {
        self.0.update(other.bytes());
    }

    /// The hash so far. More can be added afterwards.
    pub(super) fn bytes(&self) -> [u8; 32] {
        self.0.clone().finalize().into()
    }

    /// A closed hash that is not a prefix of any other.
    pub(super) fn finished(self) -> Self {
        let mut link = Self::new(b'.');
        link.0.update(self.bytes());
        link
    }

    /// Adds an object without its cache marks.
    pub(super) fn object(&mut self, fields: &Map<String, Value>) {
        self.fields(fields.iter().filter(|(name, _)| *name != "cache_control").collect());
    }

    /// Adds a JSON value, independent of field order, spacing, number format and escapes. Values come from a parser
    /// that limits their depth.
    pub(super) fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.tag(b'n'),
            Value::Bool(false) => self.tag(b'f'),
            Value::Bool(true) => self.tag(b't'),
            Value::Number(number) => {
                self.tag(b'#');
                self.text(&canonical_number(number));
            }
            Value::String(text) => {
                self.tag(b'"');
                self.text(text);
            }
            Value::Array(items) => {
                self.tag(b'[');
                self.number(items.len() as u64);
                for item in items {
                    self.value(item);
                }
            }
            Value::Object(fields) => self.fields(fields.iter().collect()),
        }
    }

    fn fields(&mut self, mut fields: Vec<(&String, &Value)>) {
        fields.sort_unstable_by_key(|(name, _)| *name);
        self.tag(b'{');
        self.number(fields.len() as u64);
        for (name, value) in fields {
            self.text(name);
            self.value(value);
        }
    }
}

/// `1.0`, `1e0` and `1` are equal: clients that parse and serialize JSON change the format.
fn canonical_number(number: &serde_json::Number) -> String {
    match number.as_f64() {
        _ if number.is_i64() || number.is_u64() => number.to_string(),
        Some(0.0) => "0".to_owned(),
        // Without an exponent, and whole numbers without a point.
        Some(float) => float.to_string(),
        None => number.to_string(),
    }
}

/// Consecutive texts, hashed as one: the hash does not depend on how they are split.
#[derive(Clone, Debug)]
pub(super) struct TextRun {
    hash: Sha256,
    whitespace: Whitespace,
    /// Whitespace that counts only if more text follows.
    pending: String,
    has_text: bool,
}

/// Which whitespace counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whitespace {
    /// All but at both ends, where clients trim.
    Trimmed,
    /// None: dialects put different whitespace between the texts of a reply.
    Ignored,
}

impl TextRun {
    pub(super) fn new(whitespace: Whitespace) -> Self {
        Self { hash: Sha256::new(), whitespace, pending: String::new(), has_text: false }
    }

    pub(super) fn push(&mut self, text: &str) {
        match self.whitespace {
            Whitespace::Trimmed => self.push_trimmed(text),
            Whitespace::Ignored => {
                for word in text.split_whitespace() {
                    self.hash.update(word);
                    self.has_text = true;
                }
            }
        }
    }

    fn push_trimmed(&mut self, text: &str) {
        let text = if self.has_text { text } else { text.trim_start() };
        let counted = text.trim_end();
        if !counted.is_empty() {
            self.has_text = true;
            self.hash.update(&self.pending);
            self.pending.clear();
            self.hash.update(counted);
        }
        self.pending.push_str(&text[counted.len()..]);
    }

    /// Adds the run to a hash, unless it is empty.
    pub(super) fn add_to(&self, tag: u8, link: &mut Link) {
        if self.has_text {
            link.tag(tag);
            link.0.update(self.hash.clone().finalize());
        }
    }
}

/// A set of hashes, independent of order: a sum, because clients choose the order of results and a turn may have
/// thousands of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Unordered {
    sum: [u64; 4],
    count: u64,
}

impl Unordered {
    pub(super) fn push(&mut self, link: &Link) {
        let bytes = link.bytes();
        let mut carry = false;
        for (lane, bytes) in self.sum.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            let (sum, first) = lane.overflowing_add(u64::from_le_bytes(word));
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            *lane = sum;
            carry = first || second;
        }
        self.count += 1;
    }

    pub(super) fn add_to(&self, tag: u8, link: &mut Link) {
        if self.count > 0 {
            link.tag(tag);
            link.number(self.count);
            for lane in self.sum {
                link.number(lane);
            }
        }
    }
}
