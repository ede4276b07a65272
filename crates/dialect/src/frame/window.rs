//! A decoder's buffer: bytes that were pushed and not yet taken.

/// A queue of bytes with linear total cost.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    taken: usize,
}

impl Window {
    /// Appends bytes. Bytes move only here, so positions stay valid between two pushes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = self.bytes.len() - self.taken;
        // Compacts only when at least half of the buffer was taken: each byte moves once on average.
        if self.taken > 0 && kept <= self.taken {
            self.bytes.copy_within(self.taken.., 0);
            self.bytes.truncate(kept);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes that were not taken yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Removes and returns the first `length` unread bytes.
    pub(super) fn take(&mut self, length: usize) -> &[u8] {
        let start = self.taken;
        self.taken += length;
        &self.bytes[start..self.taken]
    }
}
