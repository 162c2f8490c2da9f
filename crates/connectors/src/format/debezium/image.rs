//! Reads the image of a row, `before` or `after`, into columns.

use std::ops::Range;

use super::super::column::Column;
use super::super::fault::Fault;
use super::super::json::{Cursor, Node, Shape, skip_value};
use super::schema::Meaning;
use super::value::{Found, Surroundings, read};

/// What came of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    Whole,
    /// Some columns are unavailable; see [`ImageReader::unavailable`].
    Partial,
}

#[derive(Debug)]
pub struct ImageReader {
    shape: Shape,
    nodes: Vec<Node>,
    /// Which columns are part of the key.
    is_key: Vec<bool>,
    /// Per column, the image in which it was seen last.
    seen_in: Vec<u64>,
    n_images: u64,
    /// A bit for each column of the last row, lowest first.
    unavailable: Vec<u8>,
}

impl ImageReader {
    /// `key` are names of columns.
    pub fn new(columns: &[Column], key: &[String]) -> Self {
        Self {
            shape: Shape::new(columns.iter().map(Column::name)),
            nodes: columns.iter().map(Node::new).collect(),
            is_key: columns
                .iter()
                .map(|c| key.iter().any(|k| k == c.name()))
                .collect(),
            seen_in: vec![0; columns.len()],
            n_images: 0,
            unavailable: vec![0; columns.len().div_ceil(8)],
        }
    }

    /// The unavailable columns of the last image that was [`Completeness::Partial`].
    pub fn unavailable(&self) -> &[u8] {
        &self.unavailable
    }

    /// Pushes the object at hand as a row: one value into each of `columns`, all of which hold `row` values. What is
    /// not in it is null. After a fault the columns must be truncated to `row`.
    pub fn row(
        &mut self,
        cursor: &mut Cursor<'_>,
        columns: &mut [Column],
        row: usize,
        meanings: &[Meaning],
        around: Surroundings<'_>,
    ) -> Result<Completeness, Box<Fault>> {
        self.n_images += 1;
        self.unavailable.fill(0);
        let mut completeness = Completeness::Whole;
        let mut place = 0;
        begin(cursor);
        while !cursor.take(b'}') {
            match self.shape.key(cursor, place)? {
                Some(i) => {
                    let column = &mut columns[i];
                    if self.seen_in[i] == self.n_images {
                        column.truncate(row);
                        self.unavailable[i / 8] &= !(1 << (i % 8));
                    }
                    self.seen_in[i] = self.n_images;
                    let found = read(cursor, column, &mut self.nodes[i], meanings[i], around)
                        .map_err(|fault| fault.in_field(column.name()))?;
                    if found == Found::Unavailable {
                        self.unavailable[i / 8] |= 1 << (i % 8);
                        completeness = Completeness::Partial;
                    }
                }
                None => skip_value(cursor, 2)?,
            }
            end_field(cursor)?;
            place += 1;
        }
        self.fill(columns);
        Ok(completeness)
    }

    /// Pushes the key of the object at hand as a row of which no other column is meant.
    pub fn key(
        &mut self,
        cursor: &mut Cursor<'_>,
        columns: &mut [Column],
        row: usize,
        meanings: &[Meaning],
        around: Surroundings<'_>,
    ) -> Result<(), Box<Fault>> {
        self.n_images += 1;
        let mut place = 0;
        begin(cursor);
        while !cursor.take(b'}') {
            match self.shape.key(cursor, place)?.filter(|&i| self.is_key[i]) {
                Some(i) => {
                    let column = &mut columns[i];
                    if self.seen_in[i] == self.n_images {
                        column.truncate(row);
                    }
                    self.seen_in[i] = self.n_images;
                    read(cursor, column, &mut self.nodes[i], meanings[i], around)
                        .map_err(|fault| fault.in_field(column.name()))?;
                }
                None => skip_value(cursor, 2)?,
            }
            end_field(cursor)?;
            place += 1;
        }
        self.fill(columns);
        Ok(())
    }

    /// Pushes a row of which no column is meant.
    pub fn nothing(&mut self, columns: &mut [Column]) {
        columns.iter_mut().for_each(Column::push_null);
    }

    /// Where the values of the key's columns are in the object at hand, by column; those that are null or missing are
    /// left out.
    pub fn key_places(
        &mut self,
        cursor: &mut Cursor<'_>,
    ) -> Result<Vec<(usize, Range<usize>)>, Box<Fault>> {
        let mut places = Vec::new();
        let mut place = 0;
        begin(cursor);
        while !cursor.take(b'}') {
            let key = self.shape.key(cursor, place)?.filter(|&i| self.is_key[i]);
            let start = cursor.pos;
            skip_value(cursor, 2)?;
            if let Some(i) = key.filter(|_| cursor.bytes[start] != b'n') {
                places.push((i, start..cursor.pos));
            }
            end_field(cursor)?;
            place += 1;
        }
        places.sort_by_key(|(i, _)| *i);
        Ok(places)
    }

    pub fn n_key_columns(&self) -> usize {
        self.is_key.iter().filter(|is| **is).count()
    }

    fn fill(&self, columns: &mut [Column]) {
        for (column, seen_in) in columns.iter_mut().zip(&self.seen_in) {
            if *seen_in != self.n_images {
                column.push_null();
            }
        }
    }
}

fn begin(cursor: &mut Cursor<'_>) {
    cursor.pos += 1;
    cursor.skip_space();
}

fn end_field(cursor: &mut Cursor<'_>) -> Result<(), Box<Fault>> {
    cursor.skip_space();
    if cursor.take(b',') {
        cursor.skip_space();
    } else if cursor.peek() != b'}' {
        return Err(cursor.unexpected("',' or '}'"));
    }
    Ok(())
}
