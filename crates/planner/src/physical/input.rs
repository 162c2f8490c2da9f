//! The projection below an aggregate, in which everything that it needs is a column.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::common::DFSchema;
use datafusion::logical_expr::Expr;
use thalweg_dataflow::plan::NodeId;

use super::builder::Builder;
use crate::error::Fault;

/// Collects expressions over one relation; equal ones are one column.
pub(super) struct InputColumns<'a> {
    /// Names the columns of the relation.
    pub over: &'a DFSchema,
    /// With a name where one is wanted.
    exprs: Vec<(Expr, Option<&'static str>)>,
}

/// The finished projection.
pub(super) struct Projected {
    pub node: NodeId,
    /// Names its columns, each once.
    pub schema: DFSchema,
}

impl<'a> InputColumns<'a> {
    pub fn new(over: &'a DFSchema) -> Self {
        Self {
            over,
            exprs: Vec::new(),
        }
    }

    /// The position that `expr` has in the projection.
    pub fn position(&mut self, expr: &Expr) -> usize {
        self.named(expr, None)
    }

    /// The same, where a new column is to be called `name`.
    pub fn named(&mut self, expr: &Expr, name: Option<&'static str>) -> usize {
        let is_same = |(known, _): &(Expr, _)| known == expr && !expr.is_volatile();
        self.exprs.iter().position(is_same).unwrap_or_else(|| {
            self.exprs.push((expr.clone(), name));
            self.exprs.len() - 1
        })
    }

    /// Appends the projection above `input`, whose columns are those of the relation.
    pub fn project(self, builder: &mut Builder, input: NodeId) -> Result<Projected, Fault> {
        let physical = self
            .exprs
            .iter()
            .map(|(e, _)| builder.physical(e, self.over, input))
            .collect::<Result<Vec<_>, _>>()?;
        let from = Arc::clone(&builder.node(input).schema);
        let mut taken = HashSet::new();
        let mut fields = Vec::with_capacity(physical.len());
        for ((expr, name), physical) in self.exprs.iter().zip(&physical) {
            let field = physical
                .return_field(&from)
                .map_err(Fault::from_datafusion)?;
            let name = unused_name(expr, *name, &mut taken);
            fields.push(Arc::new(Field::new(
                name,
                field.data_type().clone(),
                field.is_nullable(),
            )));
        }
        let arrow = Arc::new(Schema::new(fields));
        let named = arrow
            .fields()
            .iter()
            .map(|f| (None, Arc::clone(f)))
            .collect();
        let schema = DFSchema::new_with_metadata(named, Default::default())
            .map_err(Fault::from_datafusion)?;
        Ok(Projected {
            node: builder.project(input, physical, arrow),
            schema,
        })
    }
}

/// A name for a column of its own: a bare column keeps its name where it can.
fn unused_name(expr: &Expr, name: Option<&str>, taken: &mut HashSet<String>) -> String {
    let wanted = match (name, expr) {
        (Some(name), _) => name.to_string(),
        (None, Expr::Column(column)) => column.name.clone(),
        (None, other) => other.schema_name().to_string(),
    };
    let numbered = (2..).map(|n| format!("{wanted}#{n}"));
    let free = std::iter::once(wanted.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name));
    let name = free.expect("numbers do not end");
    taken.insert(name.clone());
    name
}
