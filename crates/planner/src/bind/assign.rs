//! From a query's columns to a table's: by position or by name.

use arrow::datatypes::Field;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::convert::convert;
use super::places::Places;
use crate::catalog::{ColumnOrigin, TableDef};
use crate::error::{Fault, FaultKind, Position, closest};
use crate::parse::statement::Name;

/// What an INSERT says of its target.
pub struct Assignment<'a> {
    pub table: &'a TableDef,
    /// The column list, empty where it goes by position.
    pub names: &'a [Name],
    /// Where the query's columns stand.
    pub places: Places,
    /// Where the statement begins.
    pub at: Position,
}

impl Assignment<'_> {
    /// What is wrong with the column list.
    pub fn check_names(&self) -> Vec<Fault> {
        let mut before: Vec<&str> = Vec::new();
        let mut faults = Vec::new();
        for name in self.names {
            faults.extend(
                check_target(self.table, name, &before).map(|fault| fault.at(Some(name.position))),
            );
            before.push(&name.text);
        }
        faults
    }

    /// The plan of the columns that are written, from those of the query's plan.
    ///
    /// Faults: too many or too few columns, a type that does not fit, a NOT NULL column without a
    /// value. The column list has been checked.
    pub fn assign(&self, plan: LogicalPlan) -> Result<LogicalPlan, Vec<Fault>> {
        let targets: Vec<&str> = match self.names {
            [] => written_fields(self.table)
                .map(|field| field.name().as_str())
                .collect(),
            names => names.iter().map(|name| name.text.as_str()).collect(),
        };
        let n_columns = plan.schema().fields().len();
        if targets.len() != n_columns {
            return Err(vec![
                self.wrong_count(&targets, n_columns).at(Some(self.at)),
            ]);
        }
        let mut faults = Vec::new();
        let mut exprs = Vec::new();
        for field in written_fields(self.table) {
            let source = targets.iter().position(|target| target == field.name());
            let expr = match source {
                Some(index) => convert(&plan, index, self.table, field, &self.places),
                None => missing(self.table, field),
            };
            match expr {
                Ok(expr) => exprs.push(expr.alias(field.name())),
                Err(fault) => {
                    let name = source
                        .and_then(|index| self.names.get(index))
                        .map(|name| name.position);
                    faults.push(fault.at(name).at(Some(self.at)));
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let plan = LogicalPlanBuilder::from(plan)
            .project(exprs)
            .and_then(LogicalPlanBuilder::build);
        plan.map_err(|error| vec![Fault::from_datafusion(error).at(Some(self.at))])
    }

    fn wrong_count(&self, targets: &[&str], n_columns: usize) -> Fault {
        let table = &self.table.name;
        let message = match self.names {
            [] => format!(
                "table \"{table}\" has {}, but the query gives {n_columns}",
                columns(targets.len())
            ),
            _ => format!(
                "INSERT names {}, but the query gives {n_columns}",
                columns(targets.len())
            ),
        };
        let fault = Fault::new(FaultKind::Syntax, message);
        if self.names.is_empty() && n_columns < targets.len() {
            let first = targets[..n_columns].join(", ");
            fault.hint(format!(
                "name those to fill: INSERT INTO {table} ({first}) …"
            ))
        } else {
            fault
        }
    }
}

/// The columns of a table that an INSERT fills: those of the record.
pub fn written_fields(table: &TableDef) -> impl Iterator<Item = &Field> {
    table
        .columns
        .iter()
        .filter(|c| matches!(c.origin, ColumnOrigin::Physical))
        .map(|c| &c.field)
}

fn check_target(table: &TableDef, name: &Name, before: &[&str]) -> Option<Fault> {
    if before.contains(&name.text.as_str()) {
        return Some(Fault::new(
            FaultKind::DuplicateObject,
            format!("column \"{}\" is named twice", name.text),
        ));
    }
    let Some(column) = table.columns.iter().find(|c| *c.field.name() == name.text) else {
        let message = format!(
            "column \"{}\" of table \"{}\" does not exist",
            name.text, table.name
        );
        let fault = Fault::new(FaultKind::UndefinedColumn, message);
        let known = closest(&name.text, written_fields(table).map(|f| f.name().as_str()));
        return Some(match known {
            Some(known) => fault.hint(format!("table \"{}\" has \"{known}\"", table.name)),
            None => fault,
        });
    };
    let what = match column.origin {
        ColumnOrigin::Physical => return None,
        ColumnOrigin::Generated(_) => "generated",
        ColumnOrigin::Metadata(_) => "metadata",
    };
    let message = format!(
        "column \"{}\" of table \"{}\" is {what} and cannot be written",
        name.text, table.name
    );
    Some(Fault::new(FaultKind::InvalidOption, message))
}

fn columns(n: usize) -> String {
    if n == 1 {
        "1 column".into()
    } else {
        format!("{n} columns")
    }
}

/// The value of a column that is left out.
pub fn missing(table: &TableDef, field: &Field) -> Result<Expr, Fault> {
    if !field.is_nullable() {
        let message = format!(
            "column \"{}\" of table \"{}\" is NOT NULL and gets no value",
            field.name(),
            table.name
        );
        return Err(Fault::new(FaultKind::InvalidType, message));
    }
    let null = ScalarValue::try_from(field.data_type()).map_err(Fault::from_datafusion)?;
    Ok(lit(null))
}
