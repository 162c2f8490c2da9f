//! Steps over values that no column wants, and checks them all the same: whether a record is JSON must
//! not depend on which of its fields a query reads.

use super::super::fault::Fault;
use super::super::value::number;
use super::cursor::{Cursor, RawStr};
use super::string::unescape_into;

/// How deep values may nest.
pub const MAX_DEPTH: u32 = 128;

/// Steps over the value at hand. Constant stack; `depth` levels are open around it already.
#[inline]
pub fn skip_value(cursor: &mut Cursor<'_>, depth: u32) -> Result<(), Box<Fault>> {
    match cursor.peek() {
        b'{' | b'[' => skip_nested(cursor, depth),
        _ => skip_scalar(cursor),
    }
}

#[inline]
fn skip_scalar(cursor: &mut Cursor<'_>) -> Result<(), Box<Fault>> {
    let is_word = match cursor.peek() {
        b'"' => return skip_string(cursor),
        b'-' | b'0'..=b'9' => return skip_number(cursor),
        b't' => cursor.take_word(b"true"),
        b'f' => cursor.take_word(b"false"),
        b'n' => cursor.take_word(b"null"),
        _ => false,
    };
    if is_word {
        Ok(())
    } else {
        Err(cursor.unexpected("a value"))
    }
}

#[inline]
fn skip_string(cursor: &mut Cursor<'_>) -> Result<(), Box<Fault>> {
    let raw = cursor.string()?;
    if raw.has_escapes {
        check_escapes(raw)
    } else {
        Ok(())
    }
}

#[cold]
pub fn check_escapes(raw: RawStr<'_>) -> Result<(), Box<Fault>> {
    unescape_into(raw.text, &mut Vec::with_capacity(raw.text.len()))
}

#[inline]
fn skip_number(cursor: &mut Cursor<'_>) -> Result<(), Box<Fault>> {
    let Some((_, len)) = number::scan(cursor.rest()) else {
        return Err(Fault::malformed("a number is not spelled as JSON wants it"));
    };
    cursor.pos += len;
    Ok(())
}

/// Open objects and arrays, a bit each: set for an object.
struct Nesting {
    objects: u128,
    depth: u32,
}

impl Nesting {
    fn open(&mut self, is_object: bool) -> Result<(), Box<Fault>> {
        if self.depth == MAX_DEPTH {
            return Err(too_deep());
        }
        self.objects = self.objects << 1 | u128::from(is_object);
        self.depth += 1;
        Ok(())
    }

    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

#[cold]
pub fn too_deep() -> Box<Fault> {
    Fault::malformed(format!("values nest deeper than {MAX_DEPTH} levels"))
}

fn skip_nested(cursor: &mut Cursor<'_>, outer_depth: u32) -> Result<(), Box<Fault>> {
    let mut open = Nesting {
        objects: 0,
        depth: outer_depth,
    };
    loop {
        // A value begins.
        match cursor.peek() {
            first @ (b'{' | b'[') => {
                open.open(first == b'{')?;
                cursor.pos += 1;
                cursor.skip_space();
                if !cursor.take(if first == b'{' { b'}' } else { b']' }) {
                    skip_key(cursor, open.in_object())?;
                    continue;
                }
                open.objects >>= 1;
                open.depth -= 1;
            }
            _ => skip_scalar(cursor)?,
        }
        // A value has ended, and with it perhaps those around it.
        loop {
            if open.depth == outer_depth {
                return Ok(());
            }
            cursor.skip_space();
            if cursor.take(b',') {
                cursor.skip_space();
                skip_key(cursor, open.in_object())?;
                break;
            }
            if !cursor.take(if open.in_object() { b'}' } else { b']' }) {
                return Err(cursor.unexpected(if open.in_object() {
                    "',' or '}'"
                } else {
                    "',' or ']'"
                }));
            }
            open.objects >>= 1;
            open.depth -= 1;
        }
    }
}

/// Steps over a key and its colon, where there must be one.
fn skip_key(cursor: &mut Cursor<'_>, in_object: bool) -> Result<(), Box<Fault>> {
    if !in_object {
        return Ok(());
    }
    if cursor.peek() != b'"' {
        return Err(cursor.unexpected("a key in quotes"));
    }
    skip_string(cursor)?;
    skip_colon(cursor)
}

#[inline]
pub fn skip_colon(cursor: &mut Cursor<'_>) -> Result<(), Box<Fault>> {
    cursor.skip_space();
    if !cursor.take(b':') {
        return Err(cursor.unexpected("':'"));
    }
    cursor.skip_space();
    Ok(())
}

/// Checks that nothing but space follows up to the line's end, which is stepped over.
#[inline]
pub fn end_of_record(cursor: &mut Cursor<'_>) -> Result<(), Box<Fault>> {
    cursor.skip_space();
    if cursor.pos < cursor.bytes.len() && !cursor.take(b'\n') {
        return Err(cursor.unexpected("the end of the record"));
    }
    Ok(())
}

/// Checks that a whole record is one JSON value of any kind.
pub fn check_record(record: &[u8]) -> Result<(), Box<Fault>> {
    let mut cursor = Cursor::new(record, 0);
    cursor.skip_space();
    skip_value(&mut cursor, 0)?;
    end_of_record(&mut cursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(text: &str) -> Result<usize, String> {
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        skip_value(&mut cursor, 0).map_err(|f| f.message())?;
        Ok(cursor.pos)
    }

    #[test]
    fn values_are_skipped_to_their_end() {
        for text in [
            "1",
            "-1.5e3",
            "true",
            "false",
            "null",
            r#""a\nb""#,
            "{}",
            "[]",
            "[ ]",
            "{ }",
            r#"{"a":1,"b":[1,{"c":null}],"d":{}}"#,
            r#"{ "a" : [ 1 , 2 ] , "b" : "x" }"#,
            "[[[]],[]]",
        ] {
            assert_eq!(skip(&format!("{text},9")), Ok(text.len()), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_as_by_another_parser() {
        for text in [
            "",
            "tru",
            "nul",
            "+1",
            "01",
            "1.",
            "NaN",
            "Infinity",
            "{",
            "[",
            "[1",
            "[1,",
            "[1,]",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\" 1}",
            "[1 2]",
            "[1}",
            "{\"a\":1]",
            "'a'",
            r#""\x""#,
            "{,}",
            "[,]",
            r#"{"\q":1}"#,
            "{1:2}",
        ] {
            assert!(skip(text).is_err(), "{text}");
            assert!(
                serde_json::from_str::<serde_json::Value>(text).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert_eq!(skip(&deep(128)), Ok(256));
        assert_eq!(
            skip(&deep(129)),
            Err("values nest deeper than 128 levels".into())
        );
        assert!(skip(&"[{\"a\":".repeat(1_000_000)).is_err());
    }

    #[test]
    fn a_record_is_one_value() {
        assert!(check_record(b" [1] \r").is_ok());
        assert_eq!(
            check_record(b"{} {}").unwrap_err().message(),
            "expected the end of the record, found '{'"
        );
    }
}
