//! Cuts blocks of bytes into stretches of whole, UTF-8 checked lines.
//!
//! Checking a stretch at a time costs a fraction of checking line by line, and never more than was asked
//! for: a reader that wants one record does not pay for a block.

use memchr::{memchr, memrchr};

/// A stretch of whole lines at the head of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Behind the line end of its last line, or the end of the block where nothing follows that.
    pub end: usize,
    /// Whether all of it is UTF-8. If not, each line must be checked.
    pub is_utf8: bool,
}

const MAX_STRETCH: usize = 32 * 1024;
const BYTES_PER_LINE: usize = 128;

/// The next whole lines from `start` on, about enough for `n_lines`; `None` where there is no whole one.
pub fn next_stretch(block: &[u8], start: usize, n_lines: usize, last: bool) -> Option<Stretch> {
    let wanted = start + n_lines.saturating_mul(BYTES_PER_LINE).min(MAX_STRETCH);
    let end = if wanted >= block.len() {
        match memrchr(b'\n', &block[start..]) {
            _ if last => block.len(),
            Some(i) => start + i + 1,
            None => return None,
        }
    } else {
        match memrchr(b'\n', &block[start..wanted]) {
            Some(i) => start + i + 1,
            None => match memchr(b'\n', &block[wanted..]) {
                Some(i) => wanted + i + 1,
                None if last => block.len(),
                None => return None,
            },
        }
    };
    (end > start).then(|| Stretch {
        end,
        is_utf8: simdutf8::basic::from_utf8(&block[start..end]).is_ok(),
    })
}

/// The line at `start` in a stretch that ends at `end`: where its text ends and where the next begins.
#[inline]
pub fn line_end(block: &[u8], start: usize, end: usize) -> (usize, usize) {
    let (text_end, next) = match memchr(b'\n', &block[start..end]) {
        Some(i) => (start + i, start + i + 1),
        None => (end, end),
    };
    let is_crlf = text_end > start && block[text_end - 1] == b'\r';
    (text_end - usize::from(is_crlf), next)
}

/// The byte order mark that some editors put before UTF-8.
pub const BOM: &[u8] = b"\xef\xbb\xbf";

/// Bytes of a byte order mark at the start of a file; `None` where there are too few bytes to tell.
pub fn bom_len(head: &[u8], last: bool) -> Option<usize> {
    if head.starts_with(BOM) {
        return Some(BOM.len());
    }
    (last || !BOM.starts_with(head)).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(block: &[u8], start: usize, n_lines: usize, last: bool) -> Option<(usize, bool)> {
        next_stretch(block, start, n_lines, last).map(|s| (s.end, s.is_utf8))
    }

    #[test]
    fn stretches_end_behind_a_line_end_or_with_the_last_block() {
        assert_eq!(stretch(b"a\nb\ncut", 0, 9, false), Some((4, true)));
        assert_eq!(stretch(b"a\nb\ncut", 4, 9, false), None);
        assert_eq!(stretch(b"a\nb\ncut", 4, 9, true), Some((7, true)));
        assert_eq!(stretch(b"a\n", 2, 9, true), None);
        assert_eq!(stretch(b"a\xff\nb\n", 0, 9, false), Some((5, false)));
    }

    #[test]
    fn a_stretch_is_about_as_long_as_asked_but_holds_a_line() {
        let long = [b"x".repeat(1000), b"\n".to_vec()].concat().repeat(100);
        assert_eq!(stretch(&long, 0, 1, false), Some((1001, true)));
        assert_eq!(stretch(&long, 1001, 20, false), Some((3003, true)));
        assert_eq!(stretch(&b"x".repeat(1000), 0, 1, true), Some((1000, true)));
        assert_eq!(stretch(&b"x".repeat(1000), 0, 1, false), None);
    }

    #[test]
    fn lines_end_with_or_without_a_carriage_return() {
        assert_eq!(line_end(b"ab\r\nc", 0, 5), (2, 4));
        assert_eq!(line_end(b"ab\r\nc", 4, 5), (5, 5));
        assert_eq!(line_end(b"\n", 0, 1), (0, 1));
    }

    #[test]
    fn byte_order_marks() {
        assert_eq!(bom_len(b"\xef\xbb\xbfx", false), Some(3));
        assert_eq!(bom_len(b"\xef\xbb", false), None);
        assert_eq!(bom_len(b"\xef\xbb", true), Some(0));
        assert_eq!(bom_len(b"{}", false), Some(0));
        assert_eq!(bom_len(b"", false), None);
    }
}
