//! Reads objects into columns, field by field.

use super::super::column::Column;
use super::super::fault::Fault;
use super::cursor::Cursor;
use super::read::{Node, Reading, read_value};
use super::shape::Shape;
use super::skip::{MAX_DEPTH, skip_value, too_deep};

/// Reads objects whose fields are the columns given with each call.
#[derive(Debug)]
pub struct ObjectReader {
    shape: Shape,
    nodes: Vec<Node>,
    /// Per column, the object in which it was seen last.
    seen_in: Vec<u64>,
    n_objects: u64,
}

impl ObjectReader {
    pub fn new(columns: &[Column]) -> Self {
        Self {
            shape: Shape::new(columns.iter().map(Column::name)),
            nodes: columns.iter().map(Node::new).collect(),
            seen_in: vec![0; columns.len()],
            n_objects: 0,
        }
    }

    /// Pushes one value into each of `columns`, all of which hold `row` values. Of a repeated key the last
    /// counts, though each must fit; what is not there is null. After a fault the columns must be truncated to `row`.
    pub fn read(
        &mut self,
        cursor: &mut Cursor<'_>,
        columns: &mut [Column],
        row: usize,
        depth: u32,
        how: Reading,
    ) -> Result<(), Box<Fault>> {
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.n_objects += 1;
        let mut n_seen = 0;
        cursor.pos += 1;
        cursor.skip_space();
        if !cursor.take(b'}') {
            n_seen = self.fields(cursor, columns, row, depth, how)?;
        }
        if n_seen == columns.len() {
            Ok(())
        } else {
            self.fill_missing(columns)
        }
    }

    #[inline]
    fn fields(
        &mut self,
        cursor: &mut Cursor<'_>,
        columns: &mut [Column],
        row: usize,
        depth: u32,
        how: Reading,
    ) -> Result<usize, Box<Fault>> {
        let mut n_seen = 0;
        for place in 0.. {
            match self.shape.key(cursor, place)? {
                Some(i) => {
                    let column = &mut columns[i];
                    if self.seen_in[i] == self.n_objects {
                        column.truncate(row);
                    } else {
                        self.seen_in[i] = self.n_objects;
                        n_seen += 1;
                    }
                    if let Err(fault) = read_value(cursor, column, &mut self.nodes[i], depth, how) {
                        return Err(fault.in_field(column.name()));
                    }
                }
                None => skip_value(cursor, depth + 1)?,
            }
            cursor.skip_space();
            if cursor.take(b',') {
                cursor.skip_space();
                continue;
            }
            if cursor.take(b'}') {
                break;
            }
            return Err(cursor.unexpected("',' or '}'"));
        }
        Ok(n_seen)
    }

    fn fill_missing(&self, columns: &mut [Column]) -> Result<(), Box<Fault>> {
        for (column, seen_in) in columns.iter_mut().zip(&self.seen_in) {
            if *seen_in == self.n_objects {
                continue;
            }
            if !column.field.is_nullable() {
                return Err(Fault::missing(false).in_field(column.name()));
            }
            column.push_null();
        }
        Ok(())
    }
}
