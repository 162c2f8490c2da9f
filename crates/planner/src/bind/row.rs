//! Expressions over one row of a table: generated columns and watermarks.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result as DataFusionResult};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, ExprSchemable, Volatility};
use datafusion::sql::planner::{PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast::{self, Spanned};

use super::ast::normalize_expr;
use super::context::{BindContext, Scope};
use crate::catalog::{Catalog, ColumnOrigin, TableDef};
use crate::error::{Fault, FaultKind, Position};
use crate::types::sql_name;

/// The columns of a table as expressions over what a record holds: its physical and metadata columns.
pub struct RowExpressions<'a> {
    def: &'a TableDef,
    schema: DFSchema,
}

impl<'a> RowExpressions<'a> {
    pub fn new(def: &'a TableDef) -> Self {
        let schema = DFSchema::try_from(def.schema.as_ref().clone())
            .expect("a table's columns have distinct names");
        Self { def, schema }
    }

    /// Column `index` of the table, cast to its declared type.
    pub fn column(&self, index: usize) -> Result<Expr, Fault> {
        let column = &self.def.columns[index];
        let own = Expr::Column(Column::from_name(column.field.name()));
        let expr = match &column.origin {
            ColumnOrigin::Physical => return Ok(own),
            // The connector's type may be another than the declared one.
            ColumnOrigin::Metadata(_) => {
                return Ok(Expr::Cast(Cast::new(
                    Box::new(own),
                    column.field.data_type().clone(),
                )));
            }
            ColumnOrigin::Generated(expr) => expr,
        };
        let what = format!("generated column \"{}\"", column.field.name());
        let bound = self.bind(expr, &what)?;
        let place = position_of(expr);
        for used in bound.column_refs() {
            let generated = self
                .index_of(&used.name)
                .filter(|i| matches!(self.def.columns[*i].origin, ColumnOrigin::Generated(_)));
            if generated.is_some() {
                let message = format!("{what} refers to the generated column \"{}\"", used.name);
                return Err(Fault::new(FaultKind::Unsupported, message)
                    .at(place)
                    .hint("repeat its expression instead"));
            }
        }
        self.cast(bound, column.field.data_type(), &what)
            .map_err(|fault| fault.at(place))
    }

    /// The watermark's expression over the record, as it stands and with generated columns replaced.
    pub fn watermark(&self, expr: &ast::Expr) -> Result<(Expr, Expr), Fault> {
        let what = "the watermark";
        let bound = self.bind(expr, what)?;
        let inlined = bound
            .clone()
            .transform_up(|e| {
                let Expr::Column(column) = &e else {
                    return Ok(Transformed::no(e));
                };
                let index = self
                    .index_of(&column.name)
                    .expect("bound against this table");
                Ok(Transformed::yes(self.column(index)?))
            })
            .map_err(Fault::from_datafusion)?
            .data;
        let data_type = bound
            .get_type(&self.schema)
            .map_err(|error| self.fault(error, expr))?;
        if !matches!(data_type, DataType::Timestamp(..)) {
            let message = format!("{what} has type {}, not TIMESTAMP", sql_name(&data_type));
            return Err(Fault::new(FaultKind::InvalidType, message).at(position_of(expr)));
        }
        Ok((bound, in_nanoseconds(inlined, &data_type)))
    }

    /// Column `index` as a timestamp in nanoseconds.
    pub fn event_time(&self, index: usize) -> Result<Expr, Fault> {
        Ok(in_nanoseconds(
            self.column(index)?,
            self.def.columns[index].field.data_type(),
        ))
    }

    /// Positions of the table's columns that `expr` reads.
    pub fn reads(&self, expr: &Expr) -> BTreeSet<usize> {
        expr.column_refs()
            .into_iter()
            .filter_map(|column| self.index_of(&column.name))
            .collect()
    }

    fn index_of(&self, name: &str) -> Option<usize> {
        self.def.columns.iter().position(|c| c.field.name() == name)
    }

    fn bind(&self, expr: &ast::Expr, what: &str) -> Result<Expr, Fault> {
        let catalog = Catalog::default();
        let broken = BTreeSet::new();
        let scope = Scope {
            catalog: &catalog,
            broken: &broken,
            fixtures: None,
        };
        let context = BindContext::new(&scope);
        let mut expr_ast = expr.clone();
        normalize_expr(&mut expr_ast);
        let bound = SqlToRel::new(&context)
            .sql_to_expr(expr_ast, &self.schema, &mut PlannerContext::new())
            .map_err(|error| self.fault(error, expr))?;
        self.refuse(&bound, what)
            .map_err(|fault| fault.at(position_of(expr)))?;
        unqualified(bound).map_err(|error| self.fault(error, expr))
    }

    /// Only what gives the same value from the same record at any time can be computed on reading.
    fn refuse(&self, expr: &Expr, what: &str) -> Result<(), Fault> {
        let mut fault = None;
        let fail = |message: String| Some(Fault::new(FaultKind::Unsupported, message));
        expr.apply(|e| {
            fault = fault.take().or(match e {
                Expr::ScalarFunction(call)
                    if call.func.signature().volatility != Volatility::Immutable =>
                {
                    fail(format!(
                        "{what} calls {}, whose value depends on when it is called",
                        call.func.name()
                    ))
                }
                Expr::AggregateFunction(call) => {
                    fail(format!("{what} calls the aggregate {}", call.func.name()))
                }
                Expr::WindowFunction(_) => fail(format!("{what} calls a window function")),
                Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::ScalarSubquery(_)
                | Expr::SetComparison(_) => fail(format!("{what} contains a query")),
                Expr::Unnest(_) => fail(format!("{what} calls unnest")),
                _ => None,
            });
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        })
        .map_err(Fault::from_datafusion)?;
        fault.map_or(Ok(()), Err)
    }

    fn cast(&self, expr: Expr, to: &DataType, what: &str) -> Result<Expr, Fault> {
        let from = expr
            .get_type(&self.schema)
            .map_err(Fault::from_datafusion)?;
        if from == *to {
            return Ok(expr);
        }
        if arrow::compute::can_cast_types(&from, to) || from == DataType::Null {
            return Ok(Expr::Cast(Cast::new(Box::new(expr), to.clone())));
        }
        Err(Fault::new(
            FaultKind::InvalidType,
            format!("{what} gives {}, not {}", sql_name(&from), sql_name(to)),
        ))
    }

    fn fault(&self, error: datafusion::common::DataFusionError, expr: &ast::Expr) -> Fault {
        Fault::from_datafusion(error).at(position_of(expr))
    }

    /// The record's own schema, for physical expressions.
    pub fn record_schema(schema: &Schema) -> DFSchema {
        DFSchema::try_from(schema.clone()).expect("a record's columns have distinct names")
    }
}

/// Reports what is wrong with the generated columns and the watermark of a table.
pub fn check_row_expressions(def: &TableDef, faults: &mut Vec<Fault>) {
    let row = RowExpressions::new(def);
    let n_faults = faults.len();
    for index in 0..def.columns.len() {
        faults.extend(row.column(index).err());
    }
    // A watermark over a faulty column would repeat that column's fault.
    if faults.len() == n_faults
        && let Some(watermark) = &def.watermark
    {
        faults.extend(row.watermark(watermark).err());
    }
}

/// Where an expression begins, where the parser knows it.
pub fn position_of(expr: &ast::Expr) -> Option<Position> {
    let start = expr.span().start;
    (start.line > 0).then(|| start.into())
}

fn unqualified(expr: Expr) -> DataFusionResult<Expr> {
    let stripped = expr.transform_up(|e| {
        Ok(match e {
            Expr::Column(column) if column.relation.is_some() => {
                Transformed::yes(Expr::Column(Column::from_name(column.name)))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(stripped.data)
}

fn in_nanoseconds(expr: Expr, data_type: &DataType) -> Expr {
    match data_type {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => expr,
        DataType::Timestamp(_, zone) => Expr::Cast(Cast::new(
            Box::new(expr),
            DataType::Timestamp(TimeUnit::Nanosecond, zone.as_ref().map(Arc::clone)),
        )),
        _ => expr,
    }
}
