//! Turns list columns into rows and struct columns into columns.
//!
//! Lists of one row run in parallel, the shorter ones padded with nulls, as in PostgreSQL
//! (https://www.postgresql.org/docs/current/functions-array.html, `unnest`). A list several levels deep
//! is expanded from the outside in, one level at a time.

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array, new_null_array};
use arrow::compute::{self, cast};
use arrow::datatypes::{DataType, SchemaRef};
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::plan::{Unnest, UnnestColumn};

use crate::error::RuntimeError;
use crate::operator::{Barrier, MAX_BATCH_ROWS, Operator, Stateful};

/// Input rows expanded at a time: short lists fill a batch, long ones do not make it huge.
const INPUT_ROWS: usize = 1024;

pub struct UnnestRows {
    unnest: Unnest,
    schema: SchemaRef,
    pending: Option<ChangeBatch>,
    /// Expanded, and handed out in bounded pieces.
    expanded: Option<ChangeBatch>,
}

impl UnnestRows {
    pub fn new(unnest: Unnest, schema: SchemaRef) -> Self {
        Self {
            unnest,
            schema,
            pending: None,
            expanded: None,
        }
    }

    fn expand(&self, batch: &ChangeBatch) -> Result<ChangeBatch, RuntimeError> {
        let mut columns: Vec<ArrayRef> = self
            .unnest
            .columns
            .iter()
            .map(|(input, _)| batch.rows().column(*input).clone())
            .collect();
        let mut rows = UInt32Array::from_iter_values(0..batch.n_rows() as u32);
        let depth = |c: &UnnestColumn| {
            if let UnnestColumn::List { depth } = c {
                *depth
            } else {
                0
            }
        };
        let deepest = self
            .unnest
            .columns
            .iter()
            .map(|(_, c)| depth(c))
            .max()
            .unwrap_or(0);
        for level in (1..=deepest).rev() {
            let is_list: Vec<bool> = self
                .unnest
                .columns
                .iter()
                .map(|(_, c)| depth(c) >= level)
                .collect();
            let repeat = expand_level(&mut columns, &is_list, self.unnest.keep_empty)?;
            rows = compute::take(&rows, &repeat, None)?.as_primitive().clone();
        }
        for (column, (_, how)) in columns.iter_mut().zip(&self.unnest.columns) {
            if let UnnestColumn::Field(field) = how {
                *column = struct_field(column, *field)?;
            }
        }
        let changes = batch.take(&rows)?;
        Ok(changes.with_rows(record_batch(self.schema.clone(), columns, rows.len())?))
    }
}

/// Expands the list columns by one level and repeats the others; gives the input row of every new row.
fn expand_level(
    columns: &mut [ArrayRef],
    is_list: &[bool],
    keep_empty: bool,
) -> Result<UInt32Array, RuntimeError> {
    let mut lists = Vec::new();
    for (column, _) in columns.iter().zip(is_list).filter(|(_, l)| **l) {
        lists.push(Lists::new(column)?);
    }
    let n_rows = columns.first().map_or(0, |c| c.len());
    let lengths: Vec<usize> = (0..n_rows)
        .map(|row| {
            let longest = lists.iter().map(|l| l.length(row)).max().unwrap_or(0);
            if keep_empty { longest.max(1) } else { longest }
        })
        .collect();
    let repeat: UInt32Array = lengths
        .iter()
        .enumerate()
        .flat_map(|(row, &n)| std::iter::repeat_n(row as u32, n))
        .collect();
    let mut lists = lists.into_iter();
    for (column, is_list) in columns.iter_mut().zip(is_list) {
        *column = match is_list {
            true => lists
                .next()
                .expect("one for each list column")
                .elements(&lengths)?,
            false => compute::take(column, &repeat, None)?,
        };
    }
    Ok(repeat)
}

/// A list column: the elements of all rows behind one another, and where each row's lie.
struct Lists {
    values: ArrayRef,
    ranges: Vec<(usize, usize)>,
}

impl Lists {
    fn new(column: &ArrayRef) -> Result<Self, RuntimeError> {
        let list = match column.data_type() {
            DataType::List(_) => column.clone(),
            DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                cast(column, &DataType::List(field.clone()))?
            }
            // A column of nothing but NULL: no elements.
            DataType::Null => {
                return Ok(Self {
                    values: new_null_array(&DataType::Null, 0),
                    ranges: vec![(0, 0); column.len()],
                });
            }
            other => {
                return Err(RuntimeError::Internal(format!(
                    "unnest of a column of type {other}"
                )));
            }
        };
        let list = list.as_list::<i32>();
        let range = |row: usize| match list.is_null(row) {
            true => (0, 0),
            false => (
                list.value_offsets()[row] as usize,
                list.value_offsets()[row + 1] as usize,
            ),
        };
        Ok(Self {
            values: list.values().clone(),
            ranges: (0..list.len()).map(range).collect(),
        })
    }

    fn length(&self, row: usize) -> usize {
        self.ranges[row].1 - self.ranges[row].0
    }

    /// The elements of every row, padded with nulls to `lengths`.
    fn elements(&self, lengths: &[usize]) -> Result<ArrayRef, RuntimeError> {
        let indices: UInt32Array = self
            .ranges
            .iter()
            .zip(lengths)
            .flat_map(|(&(start, end), &n)| {
                (0..n).map(move |i| (start + i < end).then_some((start + i) as u32))
            })
            .collect();
        Ok(compute::take(&self.values, &indices, None)?)
    }
}

fn struct_field(column: &ArrayRef, field: usize) -> Result<ArrayRef, RuntimeError> {
    let Some(parent) = column.as_struct_opt() else {
        return Err(RuntimeError::Internal(format!(
            "unnest of a field of type {}",
            column.data_type()
        )));
    };
    let child = parent.column(field);
    match parent.nulls() {
        None => Ok(child.clone()),
        Some(nulls) => {
            let absent: arrow::array::BooleanArray =
                nulls.iter().map(|valid| Some(!valid)).collect();
            Ok(compute::nullif(child, &absent)?)
        }
    }
}

impl Operator for UnnestRows {
    fn push(&mut self, _input: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        self.pending = Some(batch);
        Ok(())
    }

    fn barrier(&mut self, _barrier: &Barrier) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn pull(&mut self) -> Result<Option<ChangeBatch>, RuntimeError> {
        if self.expanded.is_none() {
            let Some(batch) = self.pending.take() else {
                return Ok(None);
            };
            let n = batch.n_rows().min(INPUT_ROWS);
            self.expanded = Some(self.expand(&batch.slice(0, n))?);
            if n < batch.n_rows() {
                self.pending = Some(batch.slice(n, batch.n_rows() - n));
            }
        }
        let Some(expanded) = self.expanded.take() else {
            return Ok(None);
        };
        let n = expanded.n_rows().min(MAX_BATCH_ROWS);
        if n < expanded.n_rows() {
            self.expanded = Some(expanded.slice(n, expanded.n_rows() - n));
        }
        Ok(Some(expanded.slice(0, n)))
    }

    fn state(&mut self) -> Option<&mut dyn Stateful> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, ListArray};
    use arrow::datatypes::{Field, Int64Type, Schema};
    use arrow::record_batch::RecordBatch;
    use std::sync::Arc;

    fn run(keep_empty: bool) -> Vec<(i64, Option<i64>, Option<i64>)> {
        let list = |rows: Vec<Option<Vec<Option<i64>>>>| -> ArrayRef {
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
        };
        let a = list(vec![
            Some(vec![Some(1), Some(2)]),
            None,
            Some(vec![]),
            Some(vec![Some(5)]),
        ]);
        let b = list(vec![
            Some(vec![Some(9)]),
            None,
            None,
            Some(vec![None, Some(7)]),
        ]);
        let k: ArrayRef = Arc::new(Int64Array::from(vec![10, 11, 12, 13]));
        let rows = RecordBatch::try_from_iter([("k", k), ("a", a), ("b", b)]).unwrap();
        let int = |name: &str| Field::new(name, DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![int("k"), int("a"), int("b")]));
        let one = UnnestColumn::List { depth: 1 };
        let columns = vec![(0, UnnestColumn::Repeat), (1, one.clone()), (2, one)];
        let mut op = UnnestRows::new(
            Unnest {
                columns,
                keep_empty,
            },
            schema,
        );
        op.push(0, ChangeBatch::append(rows, vec![0, 1, 2, 3].into()))
            .unwrap();
        let out = op.pull().unwrap().unwrap();
        assert!(op.pull().unwrap().is_none());
        let column = |i: usize| out.rows().column(i).as_primitive::<Int64Type>().clone();
        let value = |c: &Int64Array, i: usize| c.is_valid(i).then(|| c.value(i));
        let (k, a, b) = (column(0), column(1), column(2));
        (0..out.n_rows())
            .map(|i| (k.value(i), value(&a, i), value(&b, i)))
            .collect()
    }

    #[test]
    fn parallel_lists_are_padded_with_nulls_and_empty_rows_go_unless_kept() {
        let full = [
            (10, Some(1), Some(9)),
            (10, Some(2), None),
            (13, Some(5), None),
            (13, None, Some(7)),
        ];
        assert_eq!(run(false), full);
        assert_eq!(run(true)[2..4], [(11, None, None), (12, None, None)]);
    }
}
