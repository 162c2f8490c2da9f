//! A position in JSON text, and the tokens at it (RFC 8259).
//!
//! A line end is no white space here: records are lines, so one inside a record means that the record
//! is cut off.

use super::super::fault::Fault;

pub struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub pos: usize,
}

/// A string between its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawStr<'a> {
    pub text: &'a [u8],
    pub has_escapes: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], pos: usize) -> Self {
        Self { bytes, pos }
    }

    /// The byte at hand; a line end where there is none.
    #[inline(always)]
    pub fn peek(&self) -> u8 {
        self.bytes.get(self.pos).copied().unwrap_or(b'\n')
    }

    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.pos..).unwrap_or_default()
    }

    #[inline(always)]
    pub fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.pos += 1;
        }
    }

    /// Steps over `byte` where it is at hand.
    #[inline(always)]
    pub fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == byte;
        self.pos += usize::from(is_there);
        is_there
    }

    /// Steps over a word such as `null`.
    #[inline(always)]
    pub fn take_word(&mut self, word: &[u8]) -> bool {
        let is_there = self.rest().starts_with(word);
        if is_there {
            self.pos += word.len();
        }
        is_there
    }

    /// Steps over the string whose opening quote is at hand. Escapes are not checked.
    #[inline]
    pub fn string(&mut self) -> Result<RawStr<'a>, Box<Fault>> {
        let start = self.pos + 1;
        let mut end = start;
        let mut has_escapes = false;
        loop {
            end = find_special(self.bytes, end);
            match self.bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => {
                    has_escapes = true;
                    end += 2;
                }
                Some(b'\n') | None => return Err(cut_off("a string")),
                Some(_) => return Err(Fault::malformed("a string has a control character")),
            }
        }
        self.pos = end + 1;
        Ok(RawStr {
            text: &self.bytes[start..end],
            has_escapes,
        })
    }

    /// The fault of a record in which something else should be at hand.
    #[cold]
    pub fn unexpected(&self, expected: &str) -> Box<Fault> {
        let rest = self.rest();
        match std::str::from_utf8(&rest[..rest.len().min(16)]) {
            _ if matches!(rest.first(), None | Some(b'\n')) => cut_off("an object or array"),
            Ok(text) => unexpected_char(text, expected),
            Err(e) => unexpected_char(
                std::str::from_utf8(&rest[..e.valid_up_to()]).unwrap_or(""),
                expected,
            ),
        }
    }
}

#[cold]
fn cut_off(what: &str) -> Box<Fault> {
    Fault::malformed(format!("the record ends inside {what}"))
}

#[cold]
fn unexpected_char(text: &str, expected: &str) -> Box<Fault> {
    let found = text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
    Fault::malformed(format!("expected {expected}, found {found:?}"))
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = ONES << 7;

/// The first quote, backslash or control character at or after `pos`; at the latest the end of `bytes`.
///
/// Eight bytes at a time, by the classic test for a zero byte in a word (Warren, Hacker's Delight, 6-1):
/// a borrow may mark bytes above the first hit, never below it.
#[inline(always)]
pub fn find_special(bytes: &[u8], mut pos: usize) -> usize {
    while let Some(chunk) = bytes.get(pos..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * u64::from(b'"'));
        let backslash = word ^ (ONES * u64::from(b'\\'));
        let hits = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let hits = hits & HIGHS;
        if hits != 0 {
            return pos + hits.trailing_zeros() as usize / 8;
        }
        pos += 8;
    }
    while let Some(byte) = bytes.get(pos) {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        pos += 1;
    }
    pos
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn the_word_search_finds_what_a_byte_search_finds() {
        let mut rng = StdRng::seed_from_u64(2);
        for _ in 0..20_000 {
            let len = rng.random_range(0..40);
            let bytes: Vec<u8> = (0..len)
                .map(|_| {
                    if rng.random_range(0..12) == 0 {
                        rng.random()
                    } else {
                        rng.random_range(0x1f..=0x62)
                    }
                })
                .collect();
            let pos = rng.random_range(0..=len);
            let expected = bytes[pos..]
                .iter()
                .position(|b| matches!(b, b'"' | b'\\' | 0..0x20));
            assert_eq!(
                find_special(&bytes, pos),
                expected.map_or(len, |i| pos + i),
                "{bytes:?} {pos}"
            );
        }
    }

    fn string(text: &str) -> Result<(&str, bool, usize), String> {
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        let raw = cursor.string().map_err(|f| f.message())?;
        Ok((
            std::str::from_utf8(raw.text).unwrap(),
            raw.has_escapes,
            cursor.pos,
        ))
    }

    #[test]
    fn strings_end_at_the_first_quote_that_is_not_escaped() {
        assert_eq!(string(r#""abc" x"#), Ok(("abc", false, 5)));
        assert_eq!(string(r#""""#), Ok(("", false, 2)));
        assert_eq!(string(r#""a\"b\\" "#), Ok((r#"a\"b\\"#, true, 8)));
        assert_eq!(
            string("\"ab\n\""),
            Err("the record ends inside a string".into())
        );
        assert_eq!(
            string(r#""ab\"#),
            Err("the record ends inside a string".into())
        );
        assert_eq!(
            string("\"ab\tc\""),
            Err("a string has a control character".into())
        );
    }
}
