//! Computes columns from columns, row by row; diffs and event times pass through.

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
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
    check_nulls(&columns, schema)?;
    Ok(record_batch(schema.clone(), columns, rows.num_rows())?)
}

/// A column of a sink may be NOT NULL where the query's is not; Arrow's own error would not say why.
fn check_nulls(columns: &[ArrayRef], schema: &SchemaRef) -> Result<(), RuntimeError> {
    for (column, field) in columns.iter().zip(schema.fields()) {
        if !field.is_nullable() && column.logical_null_count() > 0 {
            return Err(RuntimeError::Expression {
                context: format!("column \"{}\"", field.name()),
                source: DataFusionError::Execution(
                    "a NULL for a column that is NOT NULL".to_string(),
                ),
            });
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_expr::expressions::Column;

    use super::*;

    #[test]
    fn a_null_for_a_not_null_column_names_the_column() {
        let schema = |nullable| {
            Arc::new(Schema::new(vec![Field::new(
                "n",
                DataType::Int64,
                nullable,
            )]))
        };
        let rows = |values: Vec<Option<i64>>| {
            RecordBatch::try_new(schema(true), vec![Arc::new(Int64Array::from(values))])
                .expect("one column")
        };
        let exprs: [ExprRef; 1] = [Arc::new(Column::new("n", 0))];
        assert!(evaluate(&exprs, &rows(vec![Some(1)]), &schema(false)).is_ok());
        let error =
            evaluate(&exprs, &rows(vec![Some(1), None]), &schema(false)).expect_err("a null");
        assert_eq!(
            error.to_string(),
            "column \"n\": a NULL for a column that is NOT NULL"
        );
    }
}
