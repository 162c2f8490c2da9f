//! Tables that declare no columns, which something outside the planner may know.

use thalweg_dataflow::options::{Outline, Registry};

use crate::options::{Given, find_connector, find_format};
use crate::parse::statement::{CreateTable, OriginClause};

/// What there is to find the columns of `create` by; `None` where it has columns, its connector or query gives them, or
/// its options are faulty, which planning reports.
pub fn outline(create: &CreateTable, registry: &dyn Registry) -> Option<Outline> {
    let has_columns = create
        .columns
        .iter()
        .any(|column| matches!(column.origin, OriginClause::Physical));
    if has_columns || create.query.is_some() {
        return None;
    }
    let mut faults = Vec::new();
    let given = Given::new(&create.options, &mut faults);
    let connector = find_connector(&given, registry, &mut faults)?;
    if !connector.fixed_columns.is_empty() {
        return None;
    }
    let format = find_format(&given, connector, &create.name, registry, &mut faults);
    given.check(connector, format, &create.name, &mut faults);
    if !faults.is_empty() {
        return None;
    }
    let is_inferred = given
        .text("infer_schema")
        .and_then(thalweg_dataflow::options::parse_bool);
    let records = given.text("infer_schema.records").unwrap_or("1000");
    Some(Outline {
        table: create.name.text.clone(),
        connector: connector.name.to_string(),
        format: format.map(|f| f.name.to_string()),
        options: given.resolve(connector, format),
        sample: records.parse().ok().filter(|_| is_inferred == Some(true)),
    })
}
