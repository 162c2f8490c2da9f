//! What formats there are, with their options: the planner checks against this, the manual prints it.

use arrow::datatypes::{DataType, Schema};
use thalweg_dataflow::options::{
    Direction, FormatDecl, OptionDecl, OptionFault, OptionKind, Options,
};

/// Every format.
pub static FORMATS: &[FormatDecl] = &[RAW_STRING];

const RAW_STRING: FormatDecl = FormatDecl {
    name: "raw_string",
    meaning: "Each line is the value of the table's only column, of type TEXT.",
    options: &[],
    can_read: true,
    can_write: true,
    takes_updates: false,
    reads_changelog: false,
};

pub(super) fn takes_updates(format: &str) -> bool {
    FORMATS.iter().any(|f| f.name == format && f.takes_updates)
}

/// Checks what the options cannot say one by one. `schema`: the columns that are decoded from a record, or
/// written into one.
pub fn check(
    format: &str,
    options: &Options,
    schema: &Schema,
    direction: Direction,
) -> Result<(), OptionFault> {
    let _ = (options, direction);
    match format {
        "raw_string" => one_text_column("raw_string", schema),
        _ => Ok(()),
    }
}

fn one_text_column(option: &str, schema: &Schema) -> Result<(), OptionFault> {
    let is_text =
        |t: &DataType| matches!(t, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match schema.fields().as_ref() {
        [only] if is_text(only.data_type()) => Ok(()),
        _ => Err(OptionFault {
            option: Some("format".to_string()),
            message: format!("'{option}' needs exactly one column, of type TEXT"),
            hint: Some("declare the table as (value TEXT)".to_string()),
        }),
    }
}
