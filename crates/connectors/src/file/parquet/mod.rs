//! Parquet files: columns that are read as they are, row group by row group.
//!
//! The parts of a file share its row groups, dealt out in turn as stripes are. Positions are numbers of rows.

mod adapt;
mod reader;

use std::fs::File;

use arrow::datatypes::{DataType, Field, TimeUnit};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use thalweg_runtime::connector::ConnectorError;

pub use reader::ParquetReader;

/// How many row groups the file has, and so how many readers can share it.
pub fn n_row_groups(name: &str, file: &File) -> Result<u64, ConnectorError> {
    Ok(metadata(name, file)?.metadata().num_row_groups() as u64)
}

/// The columns of the file, of types that tables have. Errors: a type that none has.
pub fn columns(name: &str, file: &File) -> Result<Vec<Field>, ConnectorError> {
    let schema = metadata(name, file)?.schema().clone();
    let fields = schema.fields().iter().map(|field| {
        let data_type = sql_type_of(field.data_type()).ok_or_else(|| {
            let (column, is) = (field.name(), field.data_type());
            let message = format!(
                "column \"{column}\" of \"{name}\" has type {is}, which no SQL type is like"
            );
            ConnectorError::configuration(message, Some("declare the other columns".to_string()))
        })?;
        Ok(Field::new(field.name(), data_type, field.is_nullable()))
    });
    fields.collect()
}

/// The type that holds the same values and can be declared.
fn sql_type_of(data_type: &DataType) -> Option<DataType> {
    use DataType as T;
    let item = |field: &Field| {
        let data_type = sql_type_of(field.data_type())?;
        Some(Field::new(field.name(), data_type, field.is_nullable()))
    };
    Some(match data_type {
        T::Dictionary(_, value) => sql_type_of(value)?,
        T::LargeUtf8 | T::Utf8View => T::Utf8,
        T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => T::Binary,
        T::Float16 => T::Float32,
        T::Time32(_) | T::Time64(_) => T::Time64(TimeUnit::Nanosecond),
        T::Timestamp(unit, zone) => T::Timestamp(*unit, zone.as_ref().map(|_| "+00:00".into())),
        T::List(inner) | T::LargeList(inner) => T::List(item(inner)?.with_name("item").into()),
        T::Struct(fields) => {
            let fields = fields.iter().map(|field| item(field));
            T::Struct(fields.collect::<Option<Vec<_>>>()?.into())
        }
        T::Decimal32(p, s) | T::Decimal64(p, s) => T::Decimal128(*p, *s),
        T::Boolean | T::Utf8 | T::Binary | T::Date32 | T::Decimal128(..) | T::Decimal256(..) => {
            data_type.clone()
        }
        number if number.is_primitive() && number.is_numeric() => data_type.clone(),
        _ => return None,
    })
}

fn metadata(name: &str, file: &File) -> Result<ArrowReaderMetadata, ConnectorError> {
    // The writer's own Arrow schema is about its memory, not about the values.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ArrowReaderMetadata::load(file, options).map_err(|e| match e {
        ParquetError::External(source) => ConnectorError::io(format!("read \"{name}\""), std::io::Error::other(source)),
        e => {
            let hint = "a Parquet file ends with its directory, so one that is cut off cannot be read at all";
            let message = format!("\"{name}\" is not a Parquet file, or is cut off: {}", text(&e));
            ConnectorError::configuration(message, Some(hint.to_string()))
        }
    })
}

/// What the library says, without its own name before it.
fn text(error: &ParquetError) -> String {
    let text = error.to_string();
    text.split_once(": ")
        .map_or(text.clone(), |(_, rest)| rest.to_string())
}
