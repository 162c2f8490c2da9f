//! The operators, one a file.

mod aggregate;
mod assign_window;
mod filter;
mod normalize;
mod project;
mod session;
mod unnest;
mod window_aggregate;
mod windows;

#[cfg(test)]
mod script;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use thalweg_dataflow::plan::{NodeId, Op};

use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::operator::Operator;
use crate::reject::Rejected;
use crate::state::{StateStore, TableId};

/// Tables that a node of a plan may have in the store.
pub const TABLES_PER_NODE: u32 = 1024;

/// What an operator is built in.
#[derive(Clone)]
pub struct OperatorContext {
    pub node: NodeId,
    /// Absent for operators without input.
    pub input_schema: Option<SchemaRef>,
    pub output_schema: SchemaRef,
    /// The input has retractions.
    pub updating_input: bool,
    /// An epoch's changes of the input are net: its retractions stand for rows of earlier epochs.
    pub net_input: bool,
    pub store: StateStore,
    /// Where the tables of the job begin in the store.
    pub first_table: u32,
    pub metrics: Arc<JobMetrics>,
    /// Bytes of decoded state that the operator may keep.
    pub memory_bytes: usize,
    /// The virtual partitions of the subtask, ascending.
    pub vnodes: Arc<[u8]>,
    /// Where records go that the operator finds it cannot use.
    pub rejected: Rejected,
}

impl OperatorContext {
    /// A table of the operator's own in the store; it has up to [`TABLES_PER_NODE`].
    pub fn table(&self, index: u32) -> TableId {
        TableId(self.first_table + self.node.0 as u32 * TABLES_PER_NODE + index)
    }
}

/// Builds the operator of a node. Sources, sinks and unions are no operators: tasks do their work.
pub fn build(op: &Op, context: OperatorContext) -> Result<Box<dyn Operator>, RuntimeError> {
    Ok(match op {
        Op::Filter(predicate) => Box::new(filter::Filter::new(predicate.clone())),
        Op::Project(exprs) => Box::new(project::Project::new(exprs.clone(), context.output_schema)),
        Op::Unnest(unnest) => Box::new(unnest::UnnestRows::new(
            unnest.clone(),
            context.output_schema,
        )),
        Op::AssignWindow(window) => Box::new(assign_window::AssignWindow::new(
            *window,
            context.output_schema,
            context.metrics,
        )?),
        Op::WindowAggregate(aggregate) => match aggregate.gap() {
            Some(gap) => Box::new(session::SessionAggregation::new(gap, aggregate, context)?),
            None => Box::new(window_aggregate::WindowedAggregation::new(
                aggregate, context,
            )?),
        },
        Op::Aggregate(aggregate) => aggregate::build(aggregate, context)?,
        Op::Normalize(normalize) => Box::new(normalize::Normalization::new(normalize, context)?),
        Op::Source(_) | Op::Values(_) | Op::Union | Op::Sink(_) => {
            return Err(RuntimeError::Internal(format!(
                "node {} is no operator",
                context.node.0
            )));
        }
    })
}
