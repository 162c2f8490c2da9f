//! Where the parts of an envelope are in the text of a record.

use std::ops::Range;

use super::super::fault::Fault;
use super::super::json::{Cursor, Shape, skip_value};

/// What an envelope says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    /// A row that a snapshot read.
    Read,
    Update,
    Delete,
    Truncate,
}

/// The parts of one record, as places in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// A tombstone, the boundary of a transaction, a logical message: nothing becomes of any row.
    Nothing,
    Change(Envelope),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub operation: Operation,
    /// Objects; `None` where they are null or missing.
    pub before: Option<Range<usize>>,
    pub after: Option<Range<usize>>,
    pub source: Option<Range<usize>>,
    /// The schema around the envelope.
    pub schema: Option<Range<usize>>,
}

const NAMES: [&str; 8] = [
    "schema", "payload", "before", "after", "source", "op", "status", "id",
];
const SCHEMA: usize = 0;
const PAYLOAD: usize = 1;
const BEFORE: usize = 2;
const AFTER: usize = 3;
const SOURCE: usize = 4;
const OP: usize = 5;
const STATUS: usize = 6;
const ID: usize = 7;

type Places = [Option<Range<usize>>; NAMES.len()];

/// Scans records of one stream, whose keys mostly come in the same order.
#[derive(Debug)]
pub struct EnvelopeScanner {
    outer: Shape,
    inner: Shape,
    /// The schema of the last record that had one. It mostly is that of the next as well, and then need not be
    /// scanned.
    schema: Vec<u8>,
}

impl EnvelopeScanner {
    pub fn new() -> Self {
        Self {
            outer: Shape::new(NAMES.into_iter()),
            inner: Shape::new(NAMES.into_iter()),
            schema: Vec::new(),
        }
    }

    /// Where the object at hand, or the payload that it wraps, has its fields: `None` where it is no object.
    pub fn fields(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<Range<usize>>, Box<Fault>> {
        let start = cursor.pos;
        if cursor.peek() != b'{' {
            return Ok(None);
        }
        let mut places = Places::default();
        scan_object(cursor, &mut self.outer, &mut self.schema, 1, &mut places)?;
        let is_object = |place: &Range<usize>| cursor.bytes[place.start] == b'{';
        let has_schema = places[SCHEMA].is_some();
        match places[PAYLOAD].take() {
            Some(payload) if has_schema => Ok(Some(payload).filter(is_object)),
            _ => Ok(Some(start..cursor.pos)),
        }
    }

    /// Scans the value at hand, which is a whole record, and steps over it.
    pub fn scan(&mut self, cursor: &mut Cursor<'_>) -> Result<Parsed, Box<Fault>> {
        if cursor.peek() != b'{' {
            let is_null = cursor.take_word(b"null");
            return if is_null {
                Ok(Parsed::Nothing)
            } else {
                Err(cursor.unexpected("an object"))
            };
        }
        let mut places = Places::default();
        scan_object(cursor, &mut self.outer, &mut self.schema, 1, &mut places)?;
        let is_wrapped = places[PAYLOAD].is_some() && places[OP].is_none();
        if !is_wrapped {
            return parsed(cursor, places);
        }
        let (Some(payload), schema) = (places[PAYLOAD].clone(), places[SCHEMA].clone()) else {
            return Ok(Parsed::Nothing);
        };
        let mut inner = Cursor::new(cursor.bytes, payload.start);
        match inner.peek() {
            b'n' => return Ok(Parsed::Nothing),
            b'{' => {}
            _ => return Err(inner.unexpected("an object as \"payload\"")),
        }
        let mut places = Places::default();
        scan_object(&mut inner, &mut self.inner, &mut Vec::new(), 2, &mut places)?;
        let is_object = |place: &Range<usize>| cursor.bytes[place.start] == b'{';
        places[SCHEMA] = schema.filter(is_object);
        parsed(cursor, places)
    }
}

/// Notes where the values of known keys are. `known_schema` is the text of the last schema.
fn scan_object(
    cursor: &mut Cursor<'_>,
    shape: &mut Shape,
    known_schema: &mut Vec<u8>,
    depth: u32,
    places: &mut Places,
) -> Result<(), Box<Fault>> {
    cursor.pos += 1;
    cursor.skip_space();
    if cursor.take(b'}') {
        return Ok(());
    }
    for place in 0.. {
        let key = shape.key(cursor, place)?;
        let start = cursor.pos;
        match key {
            Some(SCHEMA) if !known_schema.is_empty() && cursor.rest().starts_with(known_schema) => {
                cursor.pos += known_schema.len();
            }
            Some(SCHEMA) => {
                skip_value(cursor, depth)?;
                // Only an object tells by itself where it ends.
                known_schema.clear();
                if cursor.bytes[start] == b'{' {
                    known_schema.extend_from_slice(&cursor.bytes[start..cursor.pos]);
                }
            }
            _ => skip_value(cursor, depth)?,
        }
        if let Some(key) = key {
            places[key] = Some(start..cursor.pos);
        }
        cursor.skip_space();
        if cursor.take(b',') {
            cursor.skip_space();
            continue;
        }
        if cursor.take(b'}') {
            return Ok(());
        }
        return Err(cursor.unexpected("',' or '}'"));
    }
    Ok(())
}

fn parsed(cursor: &Cursor<'_>, mut places: Places) -> Result<Parsed, Box<Fault>> {
    let text = |place: &Option<Range<usize>>| place.clone().map(|p| &cursor.bytes[p]);
    let operation = match text(&places[OP]) {
        Some(b"\"c\"") => Operation::Create,
        Some(b"\"r\"") => Operation::Read,
        Some(b"\"u\"") => Operation::Update,
        Some(b"\"d\"") => Operation::Delete,
        Some(b"\"t\"") => Operation::Truncate,
        Some(b"\"m\"") => return Ok(Parsed::Nothing),
        Some(other) => {
            let message = format!(
                "\"op\" is {}, which is no operation",
                super::super::value::excerpt(other)
            );
            return Err(Fault::malformed(message));
        }
        // The boundaries of transactions, on a topic of their own.
        None if places[STATUS].is_some() && places[ID].is_some() => return Ok(Parsed::Nothing),
        None => {
            return Err(Fault::malformed(
                "the record has no \"op\": it is no change envelope (rows that were flattened are read with \
                 format = 'json')",
            ));
        }
    };
    let mut object = |part: usize| -> Result<Option<Range<usize>>, Box<Fault>> {
        let Some(place) = places[part].take() else {
            return Ok(None);
        };
        match cursor.bytes[place.start] {
            b'{' => Ok(Some(place)),
            b'n' => Ok(None),
            _ => Err(Fault::malformed(format!(
                "\"{}\" is no object",
                NAMES[part]
            ))),
        }
    };
    Ok(Parsed::Change(Envelope {
        operation,
        before: object(BEFORE)?,
        after: object(AFTER)?,
        source: object(SOURCE)?,
        schema: object(SCHEMA)?,
    }))
}
