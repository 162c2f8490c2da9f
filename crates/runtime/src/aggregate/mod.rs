//! Accumulators of aggregate functions, as columns over many groups.
//!
//! A group is addressed by its *slot*, a small integer that the
//! [`KeyInterner`](crate::state::interner::KeyInterner) gives to its key. A batch is folded in with
//! one call per aggregate, never one per row. Used by the windowed and the updating aggregation;
//! this module knows neither keys nor time, and keeps nothing on disk itself.
//!
//! What each function means is DataFusion's affair: result types, the treatment of nulls and the
//! rounding of averages are those of its batch answer, except that exact sums report an overflow
//! where DataFusion wraps (semantics 4.8).

mod boolean;
mod calls;
mod count;
mod exact;
mod expansion;
mod extreme;
mod extreme_bytes;
mod fallback;
mod float;
mod multiset;
mod recompute;
mod rows;
mod sets;
mod variance;
mod wide;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{DataType, Field, Schema};
use thalweg_dataflow::plan::{AggregateCall, AggregateState, ColumnAggregate};

pub use calls::Accumulators;
pub use multiset::Overdrawn;

use crate::error::RuntimeError;

/// Accumulators of one aggregate call for many groups.
///
/// Slots must be below the size last given to [`resize`](Self::resize). No call consumes what it
/// reads: `state` and `evaluate` may be called any number of times, between updates as well.
pub trait GroupAccumulator: Send {
    /// Makes room for slots below `n_slots`. New slots are empty. Never shrinks.
    fn resize(&mut self, n_slots: usize);

    /// Back to empty, as if nothing had been added; memory held by these slots is given back.
    fn reset(&mut self, slots: &[u32]);

    /// Adds rows: row *i* to the group in `slots[i]`, `diffs[i]` times (a negative number takes it
    /// away; `None` counts every row once). Rows where `filter` is not true do not count.
    ///
    /// `args` are the call's argument columns, each as long as `slots`; none for `count(*)`.
    /// Errors: a retraction from an accumulator that cannot take one is `Internal`, since the
    /// planner chose it for input without retractions.
    fn update(
        &mut self,
        slots: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        diffs: Option<&[i64]>,
    ) -> Result<(), RuntimeError>;

    /// Adds what another accumulator of the same call had gathered: row *i* of the state columns to
    /// the group in `slots[i]`. Serves two-phase aggregation, panes of windows, and restoring.
    fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError>;

    /// State columns of these slots, in the order of `slots` and the types of
    /// [`state_fields`](Self::state_fields).
    fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError>;

    /// Results of these slots, in the type that the DataFusion function returns.
    ///
    /// Errors: `Overflow` when an exact result does not fit its type.
    fn evaluate(&mut self, slots: &[u32]) -> Result<ArrayRef, RuntimeError>;

    fn state_fields(&self) -> Vec<Field>;

    /// Bytes held, approximately.
    fn memory_bytes(&self) -> usize;
}

/// The accumulator for `call` over rows of `input`.
///
/// Errors: `Internal` for a combination of function and type that the planner should have refused.
pub fn create(
    call: &AggregateCall,
    input: &Schema,
) -> Result<Box<dyn GroupAccumulator>, RuntimeError> {
    match call.state {
        AggregateState::Columns(aggregate) => create_columns(aggregate, call, input),
        AggregateState::Accumulator => {
            Ok(Box::new(fallback::Fallback::new(call.function.clone())?))
        }
        AggregateState::Multiset => Err(RuntimeError::Internal(format!(
            "{} keeps a multiset, which is not one accumulator's own",
            call.function.name()
        ))),
    }
}

fn create_columns(
    aggregate: ColumnAggregate,
    call: &AggregateCall,
    input: &Schema,
) -> Result<Box<dyn GroupAccumulator>, RuntimeError> {
    use ColumnAggregate as A;
    let name = call.function.name();
    let output = call.function.field().data_type().clone();
    if aggregate == A::Count {
        return Ok(Box::new(count::Count::new(name)));
    }
    let arg = match call.args.first() {
        Some(&col) => input.field(col).data_type().clone(),
        None => return Err(RuntimeError::Internal(format!("{name} has no argument"))),
    };
    match aggregate {
        A::Count => unreachable!("has no need of an argument"),
        A::Sum | A::Avg if arg == DataType::Float64 => {
            let kind = if aggregate == A::Sum {
                float::Finish::Sum
            } else {
                float::Finish::Avg
            };
            Ok(Box::new(float::FloatSums::new(name, kind)))
        }
        A::Sum => exact::create(name, exact::Finish::Sum, &arg, output),
        A::Avg => exact::create(name, exact::Finish::Avg, &arg, output),
        A::Min => create_extreme(extreme::Which::Min, name, &arg),
        A::Max => create_extreme(extreme::Which::Max, name, &arg),
        A::VarSamp => Ok(Box::new(variance::Variances::new(
            name,
            variance::Finish::VarSamp,
        ))),
        A::VarPop => Ok(Box::new(variance::Variances::new(
            name,
            variance::Finish::VarPop,
        ))),
        A::StddevSamp => Ok(Box::new(variance::Variances::new(
            name,
            variance::Finish::StddevSamp,
        ))),
        A::StddevPop => Ok(Box::new(variance::Variances::new(
            name,
            variance::Finish::StddevPop,
        ))),
        A::BoolAnd => Ok(Box::new(boolean::BoolCounts::new(
            name,
            boolean::Finish::And,
        ))),
        A::BoolOr => Ok(Box::new(boolean::BoolCounts::new(
            name,
            boolean::Finish::Or,
        ))),
    }
}

fn create_extreme(
    which: extreme::Which,
    name: &str,
    arg: &DataType,
) -> Result<Box<dyn GroupAccumulator>, RuntimeError> {
    extreme::create(which, name, arg)
        .or_else(|| extreme_bytes::create(which, name, arg))
        .ok_or_else(|| RuntimeError::Internal(format!("{name} of {arg} has no column state")))
}

/// The error for a pairing of accumulator and column type that no plan should contain.
fn unexpected_type(name: &str, found: &DataType) -> RuntimeError {
    RuntimeError::Internal(format!("{name} was given a column of type {found}"))
}

/// The retraction that an append-only accumulator was given.
fn no_retraction(name: &str) -> RuntimeError {
    RuntimeError::Internal(format!(
        "{name} was planned for input without retractions but got one"
    ))
}

#[cfg(test)]
mod tests;
