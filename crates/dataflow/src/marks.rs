//! What a source says of each record of a keyed changelog, in columns beside the record's own.
//!
//! A format such as Debezium's tells what became of a row, not which rows to add and to take away: the
//! source passes that on, and [`crate::plan::Op::Normalize`] makes retractions and insertions of it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};

/// What a record does to the row of its key. The values are those of the column [`OP`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i8)]
pub enum ChangeOp {
    /// The row is now this one, whatever it was.
    Write = 0,
    /// The row was this one when a snapshot was taken, which may be before what is known of it.
    Read = 1,
    /// There is no row any more. Only the key columns are meant.
    Delete = 2,
    /// There are no rows at all any more. No column is meant.
    Truncate = 3,
}

impl ChangeOp {
    pub fn of(value: i8) -> Option<Self> {
        [Self::Write, Self::Read, Self::Delete, Self::Truncate]
            .into_iter()
            .find(|op| *op as i8 == value)
    }

    /// Whether the record holds a row.
    pub fn has_row(self) -> bool {
        matches!(self, Self::Write | Self::Read)
    }
}

/// Positions of the marks behind the columns of a record.
pub const OP: usize = 0;
/// Where the change stands in the log that it comes from; larger is later. Null: not told.
pub const POSITION: usize = 1;
/// When the change was made there, ns since the UTC epoch. Null: not told.
pub const SOURCE_TIME: usize = 2;
/// A bit for each column of the record, lowest first, that keeps the value it has. Null: none.
pub const UNAVAILABLE: usize = 3;
/// Which row of its read it is: see [`Origin`].
pub const ROW: usize = 4;

/// The columns that a source of a keyed changelog adds to those of its records.
pub fn fields() -> [Field; 5] {
    [
        Field::new("__op", DataType::Int8, false),
        Field::new("__position", DataType::Int64, true),
        Field::new("__source_time", DataType::Int64, true),
        Field::new("__unavailable", DataType::Binary, true),
        Field::new("__row", DataType::Int32, false),
    ]
}

/// Whatever the maker of a batch needs to name the origin of its rows later on. It travels with the batch.
#[derive(Clone)]
pub struct Origin(pub Arc<dyn Any + Send + Sync>);

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Origin")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_told_by_their_numbers() {
        for op in [
            ChangeOp::Write,
            ChangeOp::Read,
            ChangeOp::Delete,
            ChangeOp::Truncate,
        ] {
            assert_eq!(ChangeOp::of(op as i8), Some(op));
        }
        assert_eq!(ChangeOp::of(4), None);
    }
}
