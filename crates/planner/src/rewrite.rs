//! Rewrites of a bound plan that must come before DataFusion's optimizer. One rule a file.

mod clock;
mod group_window;
mod grouping_sets;
mod lateral_unnest;

use datafusion::logical_expr::LogicalPlan;

use crate::error::Fault;
use crate::event_time::Streams;

/// What can be said of a plan's single expressions, wherever they stand. The binder asks, which can tell
/// their places. Errors: a function of the present time; a window function that is called wrongly.
pub fn check(plan: &LogicalPlan) -> Result<(), Fault> {
    clock::refuse(plan)?;
    group_window::check_calls(plan)
}

/// All rewrites of this module, in the order in which they build on each other.
pub fn rewrite(plan: LogicalPlan, streams: &Streams) -> Result<LogicalPlan, Fault> {
    clock::refuse(&plan)?;
    let plan = grouping_sets::expand(plan).map_err(Fault::from_datafusion)?;
    let plan = group_window::rewrite(plan, streams).map_err(Fault::from_datafusion)?;
    lateral_unnest::rewrite(plan).map_err(Fault::from_datafusion)
}

#[cfg(test)]
mod tests;
