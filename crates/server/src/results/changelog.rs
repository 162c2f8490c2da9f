//! A changelog as rows: what SUBSCRIBE gives to a client.

use std::sync::Arc;

use arrow::array::StringArray;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::{PairedChange, PairedChanges};

use super::encode::json_texts;
use super::table::op;

/// Columns of a subscription: the row before and after as JSON text, and the operation (`c`, `u`, `d`).
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("before", DataType::Utf8, true),
        Field::new("after", DataType::Utf8, true),
        Field::new("op", DataType::Utf8, false),
    ]))
}

/// The changes of `input`, one a row, in [`schema`].
pub fn changelog(input: &SinkInput<'_>) -> Result<RecordBatch, ConnectorError> {
    let created;
    let paired = match input {
        SinkInput::Rows(rows) => {
            created = creations(rows);
            &created
        }
        SinkInput::Changes(paired) => *paired,
    };
    let images = json_texts(&paired.rows)?;
    let image = |row: u32| images[row as usize].as_str();
    let before = paired.changes.iter().map(|change| match *change {
        PairedChange::Create { .. } => None,
        PairedChange::Update { before, .. } | PairedChange::Delete { before } => {
            Some(image(before))
        }
    });
    let after = paired.changes.iter().map(|change| match *change {
        PairedChange::Create { after } | PairedChange::Update { after, .. } => Some(image(after)),
        PairedChange::Delete { .. } => None,
    });
    let before: StringArray = before.collect();
    let after: StringArray = after.collect();
    let ops: StringArray = paired.changes.iter().map(|c| Some(op(c))).collect();
    Ok(RecordBatch::try_new(
        schema(),
        vec![Arc::new(before), Arc::new(after), Arc::new(ops)],
    )?)
}

/// Appended rows as changes.
pub fn creations(rows: &RecordBatch) -> PairedChanges {
    let changes = (0..rows.num_rows() as u32)
        .map(|after| PairedChange::Create { after })
        .collect();
    PairedChanges {
        rows: rows.clone(),
        changes,
    }
}
