//! `min` and `max` of strings, bytes and booleans, over input without retractions.

use std::sync::Arc;

use arrow::array::*;
use arrow::datatypes::{DataType, Field};

use super::extreme::Which;
use super::rows::Rows;
use super::{GroupAccumulator, no_retraction, unexpected_type};
use crate::error::RuntimeError;

/// The accumulator for `min` or `max` of `arg`; `None` for types that are not a row of bytes.
pub(super) fn create(
    which: Which,
    name: &str,
    arg: &DataType,
) -> Option<Box<dyn GroupAccumulator>> {
    let known = matches!(
        arg,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
            | DataType::Boolean
    );
    let accumulator = ByteExtremes {
        name: name.into(),
        which,
        data_type: arg.clone(),
        values: Vec::new(),
        held_bytes: 0,
    };
    known.then(|| Box::new(accumulator) as _)
}

/// State: the value, in the argument's type, null for a group without one.
struct ByteExtremes {
    name: String,
    which: Which,
    data_type: DataType,
    /// A buffer is kept when its value changes: most groups see few new extremes, and never a
    /// shrinking need.
    values: Vec<Option<Vec<u8>>>,
    held_bytes: usize,
}

impl ByteExtremes {
    fn add(&mut self, rows: &Rows, column: &ArrayRef) -> Result<(), RuntimeError> {
        match column.data_type() {
            DataType::Utf8 => self.add_from(
                rows,
                |r, c| c.value(r).as_bytes(),
                column.as_string::<i32>(),
            ),
            DataType::LargeUtf8 => self.add_from(
                rows,
                |r, c| c.value(r).as_bytes(),
                column.as_string::<i64>(),
            ),
            DataType::Utf8View => {
                self.add_from(rows, |r, c| c.value(r).as_bytes(), column.as_string_view())
            }
            DataType::Binary => self.add_from(rows, |r, c| c.value(r), column.as_binary::<i32>()),
            DataType::LargeBinary => {
                self.add_from(rows, |r, c| c.value(r), column.as_binary::<i64>())
            }
            DataType::BinaryView => self.add_from(rows, |r, c| c.value(r), column.as_binary_view()),
            DataType::FixedSizeBinary(_) => {
                self.add_from(rows, |r, c| c.value(r), column.as_fixed_size_binary())
            }
            DataType::Boolean => self.add_from(
                rows,
                |r, c| if c.value(r) { &[1u8][..] } else { &[0u8][..] },
                column.as_boolean(),
            ),
            other => return Err(unexpected_type(&self.name, other)),
        }
        Ok(())
    }

    #[inline(always)]
    fn add_from<'a, A>(
        &mut self,
        rows: &Rows,
        get: impl Fn(usize, &'a A) -> &'a [u8],
        column: &'a A,
    ) {
        let which = self.which;
        rows.for_each(|row, slot, _| {
            let value = get(row, column);
            match &mut self.values[slot] {
                Some(best) => {
                    let better = match which {
                        Which::Min => value < best.as_slice(),
                        Which::Max => value > best.as_slice(),
                    };
                    if better {
                        let before = best.capacity();
                        best.clear();
                        best.extend_from_slice(value);
                        self.held_bytes += best.capacity() - before;
                    }
                }
                empty => {
                    let value = value.to_vec();
                    self.held_bytes += value.capacity();
                    *empty = Some(value);
                }
            }
        });
    }

    fn gather(&self, slots: &[u32]) -> Result<ArrayRef, RuntimeError> {
        let bytes = || slots.iter().map(|&s| self.values[s as usize].as_deref());
        let text = || {
            let text = |b| std::str::from_utf8(b).expect("copied from a string column");
            bytes().map(move |b| b.map(text))
        };
        Ok(match &self.data_type {
            DataType::Utf8 => Arc::new(text().collect::<StringArray>()),
            DataType::LargeUtf8 => Arc::new(text().collect::<LargeStringArray>()),
            DataType::Utf8View => Arc::new(text().collect::<StringViewArray>()),
            DataType::Binary => Arc::new(bytes().collect::<BinaryArray>()),
            DataType::LargeBinary => Arc::new(bytes().collect::<LargeBinaryArray>()),
            DataType::BinaryView => Arc::new(bytes().collect::<BinaryViewArray>()),
            DataType::FixedSizeBinary(width) => Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes(), *width)?,
            ),
            DataType::Boolean => Arc::new(
                bytes()
                    .map(|b| b.map(|b| b == [1]))
                    .collect::<BooleanArray>(),
            ),
            other => return Err(unexpected_type(&self.name, other)),
        })
    }
}

impl GroupAccumulator for ByteExtremes {
    fn resize(&mut self, n_slots: usize) {
        self.values.resize(n_slots.max(self.values.len()), None);
    }

    fn reset(&mut self, slots: &[u32]) {
        for &slot in slots {
            let value = self.values[slot as usize].take();
            self.held_bytes -= value.map_or(0, |v| v.capacity());
        }
    }

    fn update(
        &mut self,
        slots: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        diffs: Option<&[i64]>,
    ) -> Result<(), RuntimeError> {
        let rows = Rows::new(slots, args, filter, diffs);
        if rows.has_retraction() {
            return Err(no_retraction(&self.name));
        }
        self.add(&rows, &args[0])
    }

    fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        self.add(&Rows::new(slots, state, None, None), &state[0])
    }

    fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        Ok(vec![self.gather(slots)?])
    }

    fn evaluate(&mut self, slots: &[u32]) -> Result<ArrayRef, RuntimeError> {
        self.gather(slots)
    }

    fn state_fields(&self) -> Vec<Field> {
        vec![Field::new(
            format!("{}[value]", self.name),
            self.data_type.clone(),
            true,
        )]
    }

    fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<Option<Vec<u8>>>() + self.held_bytes
    }
}
