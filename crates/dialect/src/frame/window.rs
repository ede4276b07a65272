//! The bytes a decoder still needs: what was pushed and is not yet handed out.

/// A buffer that is filled at its end and taken from its front, in linear time overall.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    taken: usize,
}

impl Window {
    /// Appends bytes. Only here do bytes move, so positions stay good between two pushes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let kept = self.bytes.len() - self.taken;
        // Moving is paid for by the bytes already taken, so each byte moves once on average.
        if self.taken > 0 && kept <= self.taken {
            self.bytes.copy_within(self.taken.., 0);
            self.bytes.truncate(kept);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// What was not taken yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Moves the front of `unread` forward and returns the bytes it passed.
    pub(super) fn take(&mut self, length: usize) -> &[u8] {
        let start = self.taken;
        self.taken += length;
        &self.bytes[start..self.taken]
    }
}
