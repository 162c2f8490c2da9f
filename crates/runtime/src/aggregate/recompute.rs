//! Results computed anew from the values of a group, by DataFusion's own accumulator.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::compute::{SortColumn, lexsort_to_indices, take};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::scalar::ScalarValue;

use super::fallback;
use super::multiset::{GroupValues, Multiset};
use crate::error::RuntimeError;

/// A value that a group has many times is handed over in pieces of this many rows.
const MAX_ROWS: i64 = 8192;

/// The result of each group.
pub(super) fn evaluate(
    function: &Arc<AggregateFunctionExpr>,
    multiset: &Multiset,
    slots: &[u32],
) -> Result<ArrayRef, RuntimeError> {
    let mut results = Vec::with_capacity(slots.len());
    for &slot in slots {
        results.push(result(function, multiset.group(slot)?)?);
    }
    fallback::column(results, function.field().data_type(), function)
}

fn result(
    function: &Arc<AggregateFunctionExpr>,
    group: GroupValues,
) -> Result<ScalarValue, RuntimeError> {
    let GroupValues { columns, counts } = group;
    let error = |e| fallback::error(function, e);
    let mut accumulator = function.create_accumulator().map_err(error)?;
    let mut rows: Vec<u32> = Vec::new();
    for value in order(function, &columns, counts.len())? {
        let mut count = if function.is_distinct() {
            1
        } else {
            counts[value as usize]
        };
        while count > 0 {
            let n = count.min(MAX_ROWS - rows.len() as i64);
            rows.extend(std::iter::repeat_n(value, n as usize));
            count -= n;
            if rows.len() as i64 == MAX_ROWS {
                accumulator
                    .update_batch(&gather(&columns, &mut rows)?)
                    .map_err(error)?;
            }
        }
    }
    if !rows.is_empty() {
        accumulator
            .update_batch(&gather(&columns, &mut rows)?)
            .map_err(error)?;
    }
    accumulator.evaluate().map_err(error)
}

/// The values in the order that the call wants its rows in; by the values themselves where it says none,
/// or not all.
fn order(
    function: &AggregateFunctionExpr,
    columns: &[ArrayRef],
    n_values: usize,
) -> Result<Vec<u32>, RuntimeError> {
    let n_args = function.expressions().len();
    let sort: Vec<SortColumn> = function
        .order_bys()
        .iter()
        .zip(columns.get(n_args..).unwrap_or_default())
        .map(|(by, values)| SortColumn {
            values: values.clone(),
            options: Some(by.options),
        })
        .collect();
    if sort.is_empty() {
        return Ok((0..n_values as u32).collect());
    }
    let positions: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..n_values as u32));
    let tie_break = SortColumn {
        values: positions,
        options: None,
    };
    let sort: Vec<_> = sort.into_iter().chain([tie_break]).collect();
    Ok(lexsort_to_indices(&sort, None)?.values().to_vec())
}

fn gather(columns: &[ArrayRef], rows: &mut Vec<u32>) -> Result<Vec<ArrayRef>, RuntimeError> {
    let rows = UInt32Array::from(std::mem::take(rows));
    Ok(columns
        .iter()
        .map(|c| take(c, &rows, None))
        .collect::<Result<_, _>>()?)
}
