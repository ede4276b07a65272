//! The fields of a head.

use memchr::memchr;

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
