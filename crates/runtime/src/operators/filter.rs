//! Keeps the rows for which a predicate is true; diffs and event times stay with them.

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use datafusion::physical_expr_common::physical_expr::fmt_sql;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::table::ExprRef;

use crate::error::RuntimeError;
use crate::operator::{Barrier, Operator, Stateful};

pub struct Filter {
    predicate: ExprRef,
    output: Option<ChangeBatch>,
}

impl Filter {
    pub fn new(predicate: ExprRef) -> Self {
        Self {
            predicate,
            output: None,
        }
    }
}

impl Operator for Filter {
    fn push(&mut self, _input: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        let failed = |source| RuntimeError::Expression {
            context: format!("filter {}", fmt_sql(self.predicate.as_ref())),
            source,
        };
        let mask = self
            .predicate
            .evaluate(batch.rows())
            .and_then(|v| v.into_array(batch.n_rows()))
            .map_err(failed)?;
        // A predicate that is the untyped NULL keeps nothing.
        self.output = match mask.data_type() {
            DataType::Boolean => Some(batch.filter(mask.as_boolean())?),
            _ => None,
        };
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
