//! Logical nodes, one by one. Columns of a lowered node stand in the order of the logical schema.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{
    Distinct, EmptyRelation, Expr, Filter, LogicalPlan, Projection, TableScan, Union, Values,
};
use thalweg_dataflow::plan::{Input, NodeId, Op, Properties};

use super::builder::{Builder, unsupported};
use crate::bind::{RelationKind, StreamTable};
use crate::changelog;
use crate::error::{Fault, FaultKind};
use crate::window::WindowTvf;

impl Builder {
    /// Appends the operators of `plan` and gives the last. Errors: what no operator does.
    pub fn relation(&mut self, plan: &LogicalPlan) -> Result<NodeId, Fault> {
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::SubqueryAlias(alias) => self.relation(&alias.input),
            LogicalPlan::Filter(filter) => self.lower_filter(filter),
            LogicalPlan::Projection(projection) => self.projection(projection),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate),
            LogicalPlan::Distinct(Distinct::All(input)) => self.distinct(input),
            LogicalPlan::Union(union) => self.union(union),
            LogicalPlan::Unnest(unnest) => self.unnest(unnest),
            LogicalPlan::Values(values) => self.values(values),
            LogicalPlan::EmptyRelation(empty) => self.empty(empty),
            LogicalPlan::Extension(_) => match WindowTvf::of(plan) {
                Some(window) => self.assign_window(window),
                None => Err(unsupported(format!("{} is not supported", plan.display()))),
            },
            other => Err(unsupported_node(other)),
        }
    }

    fn scan(&mut self, scan: &TableScan) -> Result<NodeId, Fault> {
        let internal = || {
            Fault::new(
                FaultKind::Internal,
                format!("table \"{}\" was not bound", scan.table_name),
            )
        };
        let table = scan
            .source
            .downcast_ref::<StreamTable>()
            .ok_or_else(internal)?;
        let name = &table.def.name;
        let wanted: Vec<usize> = scan
            .projection
            .clone()
            .unwrap_or_else(|| (0..table.def.columns.len()).collect());
        match table.kind {
            RelationKind::Stream => {
                let node = *self.streams.get(name).ok_or_else(internal)?;
                Ok(self.select(node, &wanted))
            }
            RelationKind::Table => {
                let source = self.sources.get(name).ok_or_else(internal)?;
                let place = |column| {
                    source
                        .columns
                        .iter()
                        .position(|c| *c == column)
                        .ok_or_else(internal)
                };
                let (node, places) = (
                    source.node,
                    wanted
                        .into_iter()
                        .map(place)
                        .collect::<Result<Vec<_>, _>>()?,
                );
                Ok(self.select(node, &places))
            }
        }
    }

    fn lower_filter(&mut self, filter: &Filter) -> Result<NodeId, Fault> {
        let input = self.relation(&filter.input)?;
        let predicate = self.physical(&filter.predicate, filter.input.schema(), input)?;
        Ok(self.filter(input, predicate))
    }

    fn projection(&mut self, projection: &Projection) -> Result<NodeId, Fault> {
        let input = self.relation(&projection.input)?;
        let over = projection.input.schema();
        let exprs = projection
            .expr
            .iter()
            .map(|e| self.physical(e, over, input))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(self.project(input, exprs, arrow_schema(&projection.schema)))
    }

    fn union(&mut self, union: &Union) -> Result<NodeId, Fault> {
        let schema = arrow_schema(&union.schema);
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for plan in &union.inputs {
            let node = self.relation(plan)?;
            inputs.push(self.fit(node, &schema));
        }
        Ok(self.unite(&inputs, schema))
    }

    /// All rows of all nodes, which have one schema.
    pub fn unite(&mut self, nodes: &[NodeId], schema: SchemaRef) -> NodeId {
        let properties = changelog::union(nodes.iter().map(|n| self.properties(*n)));
        self.add(
            Op::Union,
            nodes.iter().map(|n| Input::forward(*n)).collect(),
            schema,
            properties,
        )
    }

    fn values(&mut self, values: &Values) -> Result<NodeId, Fault> {
        let schema = arrow_schema(&values.schema);
        let one_row = one_row();
        let over = DFSchema::empty();
        let mut columns = Vec::with_capacity(schema.fields().len());
        for i in 0..schema.fields().len() {
            let cells = values
                .values
                .iter()
                .map(|row| self.constant(&row[i], &over, &one_row));
            let cells = cells.collect::<Result<Vec<_>, _>>()?;
            let cells: Vec<_> = cells.iter().map(AsRef::as_ref).collect();
            columns.push(arrow::compute::concat(&cells).map_err(internal)?);
        }
        let rows = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(internal)?;
        Ok(self.constant_rows(rows))
    }

    fn constant(
        &self,
        expr: &Expr,
        over: &DFSchema,
        row: &RecordBatch,
    ) -> Result<arrow::array::ArrayRef, Fault> {
        if expr.is_volatile() {
            return Err(
                Fault::new(FaultKind::NotStreamable, "VALUES takes constants only")
                    .hint("a volatile function would be evaluated once, while planning"),
            );
        }
        let value = self
            .physical_unchecked(expr, over)?
            .evaluate(row)
            .map_err(Fault::from_datafusion)?;
        value.into_array(1).map_err(Fault::from_datafusion)
    }

    fn empty(&mut self, empty: &EmptyRelation) -> Result<NodeId, Fault> {
        let schema = arrow_schema(&empty.schema);
        let n_rows = usize::from(empty.produce_one_row);
        let columns = schema
            .fields()
            .iter()
            .map(|f| arrow::array::new_null_array(f.data_type(), n_rows))
            .collect();
        let rows =
            thalweg_dataflow::change::record_batch(schema, columns, n_rows).map_err(internal)?;
        Ok(self.constant_rows(rows))
    }

    fn constant_rows(&mut self, rows: RecordBatch) -> NodeId {
        let schema = rows.schema();
        self.add(Op::Values(rows), vec![], schema, Properties::default())
    }
}

fn one_row() -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)
        .expect("a row without columns")
}

fn internal(error: impl std::fmt::Display) -> Fault {
    Fault::new(FaultKind::Internal, error.to_string())
}

/// The Arrow schema of a logical one: names without the tables that they came from.
pub(super) fn arrow_schema(schema: &DFSchema) -> SchemaRef {
    Arc::new(schema.as_arrow().clone())
}

fn unsupported_node(plan: &LogicalPlan) -> Fault {
    match plan {
        LogicalPlan::Join(_) => unsupported("joins are not supported yet")
            .hint("a comma in FROM, IN (SELECT …), EXISTS and a subquery as a value are joins too"),
        LogicalPlan::Subquery(_) => unsupported("LATERAL subqueries are not supported yet"),
        LogicalPlan::Window(_) => unsupported("window functions with OVER are not supported yet"),
        LogicalPlan::Sort(_) => unsupported("ORDER BY is not supported yet")
            .hint("a result that never ends has no order; sort what reads it"),
        LogicalPlan::Limit(_) => unsupported("LIMIT is not supported yet"),
        LogicalPlan::Distinct(Distinct::On(_)) => unsupported("DISTINCT ON is not supported yet"),
        LogicalPlan::RecursiveQuery(_) => unsupported("recursive queries are not supported"),
        other => unsupported(format!("{} is not supported", other.display())),
    }
}
