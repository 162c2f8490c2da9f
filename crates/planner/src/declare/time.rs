//! Event time and watermark of a table.

use datafusion::sql::sqlparser::ast::{Expr, Ident};

use arrow::datatypes::DataType;

use super::columns::undefined;
use crate::catalog::ColumnDef;
use crate::error::{Fault, FaultKind};
use crate::options::Given;
use crate::parse::statement::{CreateTable, Name};
use crate::types::sql_name_of;

pub struct EventTime {
    /// Position of the column.
    pub column: Option<usize>,
    pub watermark: Option<Expr>,
}

/// What `WATERMARK FOR`, `event_time_field` and `watermark_field` say, which must agree.
pub fn event_time(
    create: &CreateTable,
    given: &Given<'_>,
    columns: &[ColumnDef],
    faults: &mut Vec<Fault>,
) -> EventTime {
    let clause = create.watermark.as_ref();
    let mut watermark = clause.and_then(|w| w.expr.clone());
    let option = given.column("event_time_field");
    if let (Some(clause), Some(option)) = (clause, &option)
        && clause.column.text != option.text
    {
        let message = format!(
            "option 'event_time_field' names \"{}\", but WATERMARK FOR \"{}\"",
            option.text, clause.column.text
        );
        faults.push(Fault::new(FaultKind::InvalidOption, message).at(Some(option.position)));
    }
    if let Some(name) = given.column("watermark_field")
        && time_column(create, &name, columns, faults).is_some()
    {
        if watermark.is_some() {
            let message = "option 'watermark_field' contradicts the expression of WATERMARK FOR";
            faults.push(Fault::new(FaultKind::InvalidOption, message).at(Some(name.position)));
        }
        watermark = Some(Expr::Identifier(Ident::with_quote('"', name.text)));
    }
    let name = clause.map(|c| c.column.clone()).or(option);
    EventTime {
        column: name.and_then(|name| time_column(create, &name, columns, faults)),
        watermark,
    }
}

fn time_column(
    create: &CreateTable,
    name: &Name,
    columns: &[ColumnDef],
    faults: &mut Vec<Fault>,
) -> Option<usize> {
    let Some(position) = columns.iter().position(|c| *c.field.name() == name.text) else {
        faults.push(undefined(&name.text, create, columns).at(Some(name.position)));
        return None;
    };
    let field = &columns[position].field;
    if matches!(field.data_type(), DataType::Timestamp(..)) {
        return Some(position);
    }
    let message = format!(
        "event time column \"{}\" has type {}, not TIMESTAMP",
        name.text,
        sql_name_of(field)
    );
    let fault = Fault::new(FaultKind::InvalidType, message).at(Some(name.position));
    faults.push(
        fault.hint("declare it as TIMESTAMP, or add a column GENERATED ALWAYS AS (…) of that type"),
    );
    None
}
