//! A hash for short texts that are looked up with every record: the standard one made a write a twentieth dearer.
//!
//! Whoever chooses the texts can make them collide. That makes a lookup slower, not wrong, and the map it is for is small.

use std::hash::Hasher;

/// Any odd number with its bits well spread: 2⁶⁴ divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Takes eight bytes at a time.
#[derive(Debug, Default)]
pub(super) struct WordHasher(u64);

impl WordHasher {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(SPREAD);
    }
}

impl Hasher for WordHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        match bytes.last_chunk() {
            // Some of these bytes were taken before, which does no harm.
            Some(last) => self.add(u64::from_le_bytes(*last)),
            None => self.add(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))),
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.add(number.into());
    }

    fn write_i64(&mut self, number: i64) {
        self.add(number.cast_unsigned());
    }

    fn finish(&self) -> u64 {
        // The product's upper bits depend on all of the input, and the map wants such bits at both ends.
        self.0 ^ self.0 >> 32
    }
}
