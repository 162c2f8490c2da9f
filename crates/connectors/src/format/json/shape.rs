//! Finds the column of a key. Records of one stream mostly have the same keys in the same order, so
//! the key that stood at a place the last time is tried first, by comparing bytes.

use std::collections::HashMap;

use super::super::fault::Fault;
use super::cursor::Cursor;
use super::skip::skip_colon;
use super::string::unescape_into;

/// The keys of an object: which are columns, and in which order they came lately.
#[derive(Debug)]
pub struct Shape {
    columns: HashMap<Box<[u8]>, usize>,
    /// What stood at each place of the last object.
    places: Vec<Place>,
}

#[derive(Debug, Default)]
struct Place {
    /// The key as it was written, with its quotes and colon: `"id":`.
    written: Vec<u8>,
    column: Option<usize>,
}

/// Objects with more keys than this are looked up key by key from there on.
const MAX_PLACES: usize = 512;

impl Shape {
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let columns = names
            .enumerate()
            .map(|(i, name)| (name.as_bytes().into(), i))
            .collect();
        Self {
            columns,
            places: Vec::new(),
        }
    }

    /// Steps over the key at hand, the `place`-th of its object, and its colon. The column it
    /// names, if any.
    #[inline(always)]
    pub fn key(
        &mut self,
        cursor: &mut Cursor<'_>,
        place: usize,
    ) -> Result<Option<usize>, Box<Fault>> {
        if let Some(expected) = self.places.get(place)
            && cursor.rest().starts_with(&expected.written)
        {
            cursor.pos += expected.written.len();
            cursor.skip_space();
            return Ok(expected.column);
        }
        self.look_up(cursor, place)
    }

    #[cold]
    fn look_up(
        &mut self,
        cursor: &mut Cursor<'_>,
        place: usize,
    ) -> Result<Option<usize>, Box<Fault>> {
        if cursor.peek() != b'"' {
            return Err(cursor.unexpected("a key in quotes"));
        }
        let start = cursor.pos;
        let raw = cursor.string()?;
        let column = if raw.has_escapes {
            let mut key = Vec::new();
            unescape_into(raw.text, &mut key)?;
            self.columns.get(key.as_slice()).copied()
        } else {
            self.columns.get(raw.text).copied()
        };
        let end_of_key = cursor.pos;
        skip_colon(cursor)?;
        if cursor.bytes[end_of_key] == b':' && place < MAX_PLACES {
            self.learn(place, &cursor.bytes[start..=end_of_key], column);
        }
        Ok(column)
    }

    fn learn(&mut self, place: usize, written: &[u8], column: Option<usize>) {
        if self.places.len() <= place {
            self.places.resize_with(place + 1, || Place {
                written: b"\n".to_vec(),
                column: None,
            });
        }
        let known = &mut self.places[place];
        known.written.clear();
        known.written.extend_from_slice(written);
        known.column = column;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(shape: &mut Shape, text: &str, place: usize) -> Result<(Option<usize>, usize), String> {
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        let column = shape.key(&mut cursor, place).map_err(|f| f.message())?;
        Ok((column, cursor.pos))
    }

    #[test]
    fn keys_are_found_in_any_order_and_spelling() {
        let mut shape = Shape::new(["id", "naïve \"x\""].into_iter());
        for _ in 0..2 {
            assert_eq!(key(&mut shape, r#""id":1"#, 0), Ok((Some(0), 5)));
            assert_eq!(key(&mut shape, r#""other" : 1"#, 1), Ok((None, 10)));
            assert_eq!(key(&mut shape, r#""\u0069d": 1"#, 2), Ok((Some(0), 11)));
            assert_eq!(
                key(&mut shape, r#""na\u00efve \"x\"":1"#, 3),
                Ok((Some(1), 19))
            );
            assert_eq!(key(&mut shape, r#""id":1"#, 700), Ok((Some(0), 5)));
        }
        // Another key at a known place.
        assert_eq!(key(&mut shape, r#""idx":1"#, 0), Ok((None, 6)));
        assert_eq!(key(&mut shape, r#""id":1"#, 0), Ok((Some(0), 5)));
    }

    #[test]
    fn a_gap_in_what_is_known_matches_nothing() {
        let mut shape = Shape::new(["id"].into_iter());
        key(&mut shape, r#""x" : 1"#, 0).unwrap();
        key(&mut shape, r#""x":1"#, 1).unwrap();
        // Place 0 was never learned.
        assert_eq!(key(&mut shape, r#""id":1"#, 0), Ok((Some(0), 5)));
    }

    #[test]
    fn what_is_no_key() {
        let mut shape = Shape::new(["id"].into_iter());
        for text in ["id:1", "\"id\"", "\"id\" 1", "\"id", "1", ""] {
            assert!(key(&mut shape, text, 0).is_err(), "{text}");
        }
    }
}
