//! Finds the fields of a record and its end.

use memchr::{memchr, memchr2, memchr3};

use super::Dialect;
use crate::format::fault::Fault;

/// One field, as positions in the bytes it was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSpan {
    pub start: usize,
    pub end: usize,
    pub quoting: Quoting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quoting {
    None,
    /// The span is what stands between the quotes.
    Plain,
    /// As `Plain`, with doubled quotes inside.
    Doubled,
}

/// What stands at a record's start.
#[derive(Debug)]
pub enum Split {
    /// A whole record; the next begins here.
    Record { next: usize },
    /// A line with nothing on it; the next begins here.
    Blank { next: usize },
    /// The bytes end before the record does.
    Incomplete,
    /// No record; what follows the line at hand may be one.
    Broken(Box<Fault>),
}

/// Splits the record at `start` of `bytes` into `fields`. `last`: nothing follows `bytes`.
pub fn split_record(
    dialect: &Dialect,
    bytes: &[u8],
    start: usize,
    last: bool,
    fields: &mut Vec<FieldSpan>,
) -> Split {
    fields.clear();
    let mut pos = start;
    loop {
        let field = if bytes.get(pos) == Some(&dialect.quote) {
            match quoted(dialect, bytes, pos, last) {
                Ok(field) => field,
                Err(split) => return split,
            }
        } else {
            match bare(dialect, bytes, pos) {
                Some(field) => field,
                None if last => Field {
                    end: bytes.len(),
                    after: bytes.len(),
                    quoting: Quoting::None,
                },
                None => return Split::Incomplete,
            }
        };
        let start_of_text = pos + usize::from(field.quoting != Quoting::None);
        let mut end = field.end;
        let delimiter = bytes.get(field.after).copied();
        if delimiter != Some(dialect.delimiter) {
            let next = field.after + usize::from(delimiter.is_some());
            if field.quoting == Quoting::None && bytes[start_of_text..end].ends_with(b"\r") {
                end -= 1;
            }
            if fields.is_empty() && field.quoting == Quoting::None && end == start {
                return Split::Blank { next };
            }
            fields.push(FieldSpan {
                start: start_of_text,
                end,
                quoting: field.quoting,
            });
            return Split::Record { next };
        }
        fields.push(FieldSpan {
            start: start_of_text,
            end,
            quoting: field.quoting,
        });
        pos = field.after + 1;
    }
}

struct Field {
    /// Behind the last byte of the text.
    end: usize,
    /// The delimiter or line end that follows, or the end of all bytes.
    after: usize,
    quoting: Quoting,
}

/// A field without quotes. A quote in the middle of one is an ordinary character.
#[inline]
fn bare(dialect: &Dialect, bytes: &[u8], pos: usize) -> Option<Field> {
    let end = pos + memchr2(dialect.delimiter, b'\n', &bytes[pos..])?;
    Some(Field {
        end,
        after: end,
        quoting: Quoting::None,
    })
}

fn quoted(dialect: &Dialect, bytes: &[u8], open: usize, last: bool) -> Result<Field, Split> {
    let unfinished = |what: &str| match last {
        true => Split::Broken(Fault::malformed(format!("the record ends inside {what}"))),
        false => Split::Incomplete,
    };
    let mut quoting = Quoting::Plain;
    let mut pos = open + 1;
    loop {
        let found = match dialect.multiline {
            true => memchr(dialect.quote, &bytes[pos..]),
            false => memchr2(dialect.quote, b'\n', &bytes[pos..]),
        };
        let Some(at) = found.map(|i| pos + i) else {
            return Err(unfinished("a value in quotes"));
        };
        if bytes[at] != dialect.quote {
            let message = "a value in quotes has a line end, which csv.multiline = false excludes";
            return Err(Split::Broken(Fault::malformed(message)));
        }
        match bytes.get(at + 1) {
            Some(byte) if *byte == dialect.quote => {
                quoting = Quoting::Doubled;
                pos = at + 2;
            }
            None if !last => return Err(Split::Incomplete),
            None => {
                return Ok(Field {
                    end: at,
                    after: at + 1,
                    quoting,
                });
            }
            Some(byte) if *byte == dialect.delimiter || *byte == b'\n' => {
                return Ok(Field {
                    end: at,
                    after: at + 1,
                    quoting,
                });
            }
            Some(b'\r') => match bytes.get(at + 2) {
                Some(b'\n') => {
                    return Ok(Field {
                        end: at,
                        after: at + 2,
                        quoting,
                    });
                }
                None if last => {
                    return Ok(Field {
                        end: at,
                        after: at + 2,
                        quoting,
                    });
                }
                None => return Err(Split::Incomplete),
                Some(_) => return Err(after_quotes()),
            },
            Some(_) => return Err(after_quotes()),
        }
    }
}

fn after_quotes() -> Split {
    Split::Broken(Fault::malformed(
        "a value in quotes is followed by something else than a delimiter",
    ))
}

/// The text of a field, its doubled quotes made single in `scratch`.
pub fn text<'a>(
    dialect: &Dialect,
    bytes: &'a [u8],
    field: FieldSpan,
    scratch: &'a mut Vec<u8>,
) -> &'a [u8] {
    let mut rest = &bytes[field.start..field.end];
    if field.quoting != Quoting::Doubled {
        return rest;
    }
    scratch.clear();
    while let Some(at) = memchr(dialect.quote, rest) {
        scratch.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 2..];
    }
    scratch.extend_from_slice(rest);
    scratch
}

/// Whether `text` must stand in quotes to be read as it is.
pub fn needs_quotes(dialect: &Dialect, text: &[u8]) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(|b| *b == b' ');
    text == &*dialect.null
        || text.is_empty()
        || memchr3(dialect.delimiter, dialect.quote, b'\n', text).is_some()
        || memchr(b'\r', text).is_some()
        || edge(text.first())
        || edge(text.last())
}
