//! The part of a file that is in memory.

use super::input::{Input, InputError};
use super::stripe::STRIPE;

/// A stripe, and what is read beyond it to find the end of its last line.
const BLOCK: usize = STRIPE as usize + 2 * OVERSHOOT;
pub const OVERSHOOT: usize = 4096;

/// A stretch of bytes that moves forwards through a file, in one buffer that is used again.
pub struct Window {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at: u64,
    /// The largest buffer that may be.
    limit: usize,
    is_last: bool,
    damage: Option<String>,
}

impl Window {
    /// At the beginning of a file of `len` bytes where that is known, with nothing read. Holds `limit` bytes at
    /// most.
    pub fn new(limit: usize, len: Option<u64>) -> Self {
        // One more than there is shows at once that there is no more.
        let whole = len.and_then(|len| usize::try_from(len + 1).ok());
        let buffer = vec![0; BLOCK.min(limit).min(whole.unwrap_or(BLOCK))];
        Self {
            buffer,
            start: 0,
            end: 0,
            at: 0,
            limit,
            is_last: false,
            damage: None,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Position in the file of the first byte.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Whether nothing follows the bytes.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    pub fn is_exhausted(&self) -> bool {
        self.is_last && self.start == self.end
    }

    /// Why the file is not read beyond its last bytes, where it is damaged there.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Whether no more bytes can be held.
    pub fn is_full(&self) -> bool {
        self.end - self.start == self.limit
    }

    pub fn consume(&mut self, n_bytes: usize) {
        self.start += n_bytes;
        self.at += n_bytes as u64;
        debug_assert!(self.start <= self.end);
    }

    /// Moves to `at`, which does not lie before.
    pub fn seek(&mut self, at: u64) {
        let ahead = at - self.at;
        if ahead <= (self.end - self.start) as u64 {
            self.consume(ahead as usize);
        } else if !self.is_last {
            (self.start, self.end, self.at) = (0, 0, at);
        } else {
            self.consume(self.end - self.start);
        }
    }

    /// Reads up to `wanted` more bytes behind those that there are, fewer only where the file or the
    /// buffer ends. Errors: the disk; damage is not one, but an end.
    pub fn fill(&mut self, input: &mut Input, wanted: usize) -> std::io::Result<()> {
        if self.is_last || self.is_full() {
            return Ok(());
        }
        self.make_room();
        let wanted = wanted.clamp(1, self.buffer.len() - self.end);
        let block = &mut self.buffer[self.end..self.end + wanted];
        match input.read(self.at + self.end as u64, block) {
            Ok(n) => {
                self.end += n;
                self.is_last = n < wanted && input.n_compressed().is_none();
                // Damage behind a short block shows at the next read.
                self.is_last |= n == 0;
            }
            Err(InputError::Damaged(damage)) => {
                self.is_last = true;
                self.damage = Some(damage);
            }
            Err(InputError::Io(error)) => return Err(error),
        }
        Ok(())
    }

    /// Moves what there is to the front, and makes the buffer larger where it fills it, or smaller
    /// again after a large record.
    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            self.buffer
                .resize((self.end * 2).max(BLOCK).min(self.limit), 0);
        } else if self.buffer.len() > 4 * BLOCK && self.end < BLOCK {
            self.buffer.truncate(BLOCK);
            self.buffer.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::compression::Compression;
    use std::io::Write;

    fn input(bytes: &[u8]) -> Input {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        Input::open(file.reopen().unwrap(), Compression::None).unwrap()
    }

    #[test]
    fn a_window_moves_forwards_and_keeps_what_was_not_consumed() {
        let mut input = input(b"0123456789");
        let mut window = Window::new(1 << 20, None);
        window.fill(&mut input, 4).unwrap();
        window.consume(3);
        window.fill(&mut input, 2).unwrap();
        assert_eq!(
            (window.bytes(), window.at(), window.is_last()),
            (&b"345"[..], 3, false)
        );
        window.seek(5);
        assert_eq!(window.bytes(), b"5");
        window.seek(8);
        assert_eq!(window.bytes(), b"");
        window.fill(&mut input, 10).unwrap();
        assert_eq!(
            (window.bytes(), window.at(), window.is_last()),
            (&b"89"[..], 8, true)
        );
        window.seek(99);
        assert!(window.is_exhausted());
    }

    #[test]
    fn a_window_grows_to_its_limit_and_shrinks_again() {
        let mut input = input(&vec![b'x'; 12 * BLOCK]);
        let mut window = Window::new(10 * BLOCK, Some(3));
        for _ in 0..10 {
            window.fill(&mut input, usize::MAX).unwrap();
        }
        assert!(window.is_full());
        assert_eq!(window.bytes().len(), 10 * BLOCK);
        window.consume(10 * BLOCK - 5);
        window.fill(&mut input, 10).unwrap();
        assert_eq!(
            (window.bytes().len(), window.buffer.capacity()),
            (15, BLOCK)
        );
    }
}
