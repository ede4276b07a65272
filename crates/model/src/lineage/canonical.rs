//! What goes into a hash, byte for byte. Every piece has a tag and a fixed or stated length, so that no two
//! different sequences of pieces give the same bytes.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// A hash in the making, or made.
#[derive(Clone, Debug)]
pub(super) struct Link(Sha256);

impl Link {
    /// Begins a hash of one kind of thing.
    pub(super) fn begin(kind: u8) -> Self {
        Self(Sha256::new_with_prefix([kind]))
    }

    /// Adds one byte that says what comes next.
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

    /// The hash of all that was added. More may be added afterwards.
    pub(super) fn bytes(&self) -> [u8; 32] {
        self.0.clone().finalize().into()
    }

    /// What was added, as the beginning of nothing else.
    pub(super) fn finished(self) -> Self {
        let mut link = Self::begin(b'.');
        link.0.update(self.bytes());
        link
    }

    /// Adds an object without its cache marks.
    pub(super) fn object(&mut self, fields: &Map<String, Value>) {
        self.fields(fields.iter().filter(|(name, _)| *name != "cache_control").collect());
    }

    /// Adds a JSON value by what it means: the order of fields, spacing and the spelling of numbers and letters
    /// count for nothing. Values come from a parser that bounds their depth.
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

/// `1.0`, `1e0` and `1` are one number: clients that read and write JSON again change the spelling.
fn canonical_number(number: &serde_json::Number) -> String {
    match number.as_f64() {
        _ if number.is_i64() || number.is_u64() => number.to_string(),
        Some(0.0) => "0".to_owned(),
        // Without an exponent, and whole numbers without a point.
        Some(float) => float.to_string(),
        None => number.to_string(),
    }
}

/// Texts that follow one another, as one: cut anywhere, the hash is the same.
#[derive(Clone, Debug)]
pub(super) struct TextRun {
    hash: Sha256,
    spaces: Spaces,
    /// White space that counts only if more text follows.
    held_back: String,
    begun: bool,
}

/// What white space counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spaces {
    /// All but at both ends, where clients trim.
    Inside,
    /// None: dialects put different white space between the texts of one reply.
    Nowhere,
}

impl TextRun {
    pub(super) fn new(spaces: Spaces) -> Self {
        Self { hash: Sha256::new(), spaces, held_back: String::new(), begun: false }
    }

    pub(super) fn push(&mut self, text: &str) {
        match self.spaces {
            Spaces::Inside => self.push_trimmed(text),
            Spaces::Nowhere => {
                for word in text.split_whitespace() {
                    self.hash.update(word);
                    self.begun = true;
                }
            }
        }
    }

    fn push_trimmed(&mut self, text: &str) {
        let text = if self.begun { text } else { text.trim_start() };
        let counted = text.trim_end();
        if !counted.is_empty() {
            self.begun = true;
            self.hash.update(&self.held_back);
            self.held_back.clear();
            self.hash.update(counted);
        }
        self.held_back.push_str(&text[counted.len()..]);
    }

    /// Adds the run to a hash, unless it says nothing.
    pub(super) fn add_to(&self, tag: u8, link: &mut Link) {
        if self.begun {
            link.tag(tag);
            link.0.update(self.hash.clone().finalize());
        }
    }
}

/// Hashes in no order: a sum, since results come in the client's order and a turn may bring thousands of them.
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
