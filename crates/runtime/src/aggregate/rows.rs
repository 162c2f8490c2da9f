//! Which rows of a batch count for an aggregate, and the loop over them.

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};

/// The rows of one batch that count for one aggregate call.
///
/// Nulls and filter are folded into one bitmap up front, so that the common case, every row counts
/// once, runs without a branch per row.
pub(super) struct Rows<'a> {
    slots: &'a [u32],
    selected: Option<BooleanBuffer>,
    diffs: Option<&'a [i64]>,
}

impl<'a> Rows<'a> {
    /// Rows whose `args` are all non-null and for which `filter` is true.
    pub(super) fn new(
        slots: &'a [u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        diffs: Option<&'a [i64]>,
    ) -> Self {
        let nulls: Vec<_> = args.iter().map(|a| a.logical_nulls()).collect();
        let valid = NullBuffer::union_many(nulls.iter().map(|n| n.as_ref()));
        let valid = valid
            .filter(|n| n.null_count() > 0)
            .map(NullBuffer::into_inner);
        let selected = match (valid, filter.map(true_bits)) {
            (Some(valid), Some(filter)) => Some(&valid & &filter),
            (valid, filter) => valid.or(filter),
        };
        debug_assert!(args.iter().all(|a| a.len() == slots.len()));
        Self {
            slots,
            selected,
            diffs,
        }
    }

    /// Calls `f(row, slot, diff)` for every row that counts. `diff` is the constant 1 where the batch
    /// has no diffs, so that the compiler can drop a multiplication by it.
    #[inline(always)]
    pub(super) fn for_each(&self, mut f: impl FnMut(usize, usize, i64)) {
        match (&self.selected, self.diffs) {
            (None, None) => {
                for (row, &slot) in self.slots.iter().enumerate() {
                    f(row, slot as usize, 1);
                }
            }
            (None, Some(diffs)) => {
                for (row, (&slot, &diff)) in self.slots.iter().zip(diffs).enumerate() {
                    f(row, slot as usize, diff);
                }
            }
            (Some(selected), None) => {
                for row in selected.set_indices() {
                    f(row, self.slots[row] as usize, 1);
                }
            }
            (Some(selected), Some(diffs)) => {
                for row in selected.set_indices() {
                    f(row, self.slots[row] as usize, diffs[row]);
                }
            }
        }
    }

    /// Whether any row that counts is a retraction.
    pub(super) fn has_retraction(&self) -> bool {
        let mut found = false;
        if self.diffs.is_some_and(|d| d.iter().any(|&d| d < 0)) {
            self.for_each(|_, _, diff| found |= diff < 0);
        }
        found
    }
}

/// The rows where `filter` is true: false and null do not count.
pub(super) fn true_bits(filter: &BooleanArray) -> BooleanBuffer {
    match filter.nulls() {
        Some(nulls) => filter.values() & nulls.inner(),
        None => filter.values().clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use std::sync::Arc;

    fn visited(
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        diffs: Option<&[i64]>,
    ) -> Vec<(usize, usize, i64)> {
        let mut out = vec![];
        Rows::new(&[7, 8, 9], args, filter, diffs).for_each(|r, s, d| out.push((r, s, d)));
        out
    }

    #[test]
    fn nulls_and_filters_leave_rows_out() {
        let arg: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let filter = BooleanArray::from(vec![Some(true), Some(true), None]);
        let diffs = [1, -1, 2];
        assert_eq!(visited(&[], None, None), [(0, 7, 1), (1, 8, 1), (2, 9, 1)]);
        assert_eq!(
            visited(std::slice::from_ref(&arg), None, Some(&diffs)),
            [(0, 7, 1), (2, 9, 2)]
        );
        assert_eq!(
            visited(&[], Some(&filter), Some(&diffs)),
            [(0, 7, 1), (1, 8, -1)]
        );
        assert_eq!(visited(&[arg], Some(&filter), None), [(0, 7, 1)]);
    }

    #[test]
    fn a_filtered_retraction_does_not_count_as_one() {
        let filter = BooleanArray::from(vec![true, false, true]);
        let diffs = [1, -1, 1];
        assert!(Rows::new(&[0, 0, 0], &[], None, Some(&diffs)).has_retraction());
        assert!(!Rows::new(&[0, 0, 0], &[], Some(&filter), Some(&diffs)).has_retraction());
    }
}
