//! Computes columns from columns, row by row; diffs and event times pass through.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::physical_expr_common::physical_expr::fmt_sql;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::table::ExprRef;

use crate::error::RuntimeError;
use crate::operator::{Barrier, Operator, Stateful};

pub struct Project {
    exprs: Vec<ExprRef>,
    schema: SchemaRef,
    output: Option<ChangeBatch>,
}

impl Project {
    /// `schema` has one field per expression.
    pub fn new(exprs: Vec<ExprRef>, schema: SchemaRef) -> Self {
        Self {
            exprs,
            schema,
            output: None,
        }
    }
}

/// Evaluates one expression per field of `schema` over `rows`.
pub fn evaluate(
    exprs: &[ExprRef],
    rows: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, RuntimeError> {
    let mut columns = Vec::with_capacity(exprs.len());
    for expr in exprs {
        let column = expr
            .evaluate(rows)
            .and_then(|v| v.into_array(rows.num_rows()))
            .map_err(|source| RuntimeError::Expression {
                context: format!("expression {}", fmt_sql(expr.as_ref())),
                source,
            })?;
        columns.push(column);
    }
    Ok(record_batch(schema.clone(), columns, rows.num_rows())?)
}

impl Operator for Project {
    fn push(&mut self, _input: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        let rows = evaluate(&self.exprs, batch.rows(), &self.schema)?;
        self.output = Some(batch.with_rows(rows));
        Ok(())
    }

    fn barrier(&mut self, _barrier: &Barrier) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn pull(&mut self) -> Result<Option<ChangeBatch>, RuntimeError> {
        Ok(self.output.take())
    }

    fn state(&mut self) -> Option<&mut dyn Stateful> {
        None
    }
}
