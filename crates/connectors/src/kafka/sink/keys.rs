//! The keys of records: a column's text, or an object of the columns that identify a row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::table::SinkSpec;
use thalweg_runtime::connector::{ConnectorError, SinkInput};

use super::super::config::SinkConfig;
use crate::format::{Encoder, Messages, key_encoder};

/// How a sink's records get their keys.
pub enum Keys {
    /// They have none.
    None,
    /// The value of this column.
    Column(usize),
    /// An object of these columns.
    Object {
        columns: Vec<usize>,
        encoder: Box<dyn Encoder>,
    },
}

/// The keys of a batch of records.
pub enum Encoded {
    None,
    Column(ArrayRef),
    Objects(Messages),
}

impl Keys {
    pub fn new(spec: &SinkSpec, config: &SinkConfig) -> Result<Self, ConnectorError> {
        if let Some(name) = &config.key_field {
            let column = spec.schema.index_of(name)?;
            return Ok(Self::Column(column));
        }
        let Some(columns) = &spec.key else {
            return Ok(Self::None);
        };
        let schema = Arc::new(spec.schema.project(columns)?);
        Ok(Self::Object {
            columns: columns.clone(),
            encoder: key_encoder(&spec.options, &schema)?,
        })
    }

    /// Whether records will have keys.
    pub fn has_some(spec: &SinkSpec, config: &SinkConfig) -> bool {
        config.key_field.is_some() || spec.key.is_some()
    }

    /// The keys of these rows, or of those `at` these positions of them.
    pub fn encode(
        &mut self,
        rows: &RecordBatch,
        at: Option<&UInt32Array>,
    ) -> Result<Encoded, ConnectorError> {
        let column = |index: usize| -> Result<ArrayRef, ConnectorError> {
            Ok(match at {
                Some(at) => compute::take(rows.column(index), at, None)?,
                None => rows.column(index).clone(),
            })
        };
        match self {
            Self::None => Ok(Encoded::None),
            Self::Column(index) => Ok(Encoded::Column(as_bytes(&column(*index)?)?)),
            Self::Object { columns, encoder } => {
                let schema: Schema = rows.schema().project(columns)?;
                let columns = columns
                    .iter()
                    .map(|&i| column(i))
                    .collect::<Result<_, _>>()?;
                let keys = RecordBatch::try_new(Arc::new(schema), columns)?;
                let mut messages = Messages::default();
                encoder.messages(&SinkInput::Rows(&keys), &mut messages)?;
                Ok(Encoded::Objects(messages))
            }
        }
    }
}

impl Encoded {
    /// The key of a record; `None` where the column is null.
    pub fn get(&self, record: usize) -> Option<&[u8]> {
        match self {
            Self::None => None,
            Self::Column(column) => {
                let bytes = column.as_binary::<i32>();
                bytes.is_valid(record).then(|| bytes.value(record))
            }
            Self::Objects(messages) => Some(messages.get(record)),
        }
    }
}

/// Bytes as they are, everything else as text.
fn as_bytes(column: &ArrayRef) -> Result<ArrayRef, ConnectorError> {
    let text = match column.data_type() {
        DataType::Binary => return Ok(column.clone()),
        DataType::Utf8 => column.clone(),
        _ => compute::cast(column, &DataType::Utf8)?,
    };
    Ok(compute::cast(&text, &DataType::Binary)?)
}
