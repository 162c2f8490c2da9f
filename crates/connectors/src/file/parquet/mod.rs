//! Parquet files: columns that are read as they are, row group by row group.
//!
//! The parts of a file share its row groups, dealt out in turn as stripes are. Positions are numbers of rows.

mod adapt;
mod reader;

use std::fs::File;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use thalweg_runtime::connector::ConnectorError;

pub use reader::ParquetReader;

/// How many row groups the file has, and so how many readers can share it.
pub fn n_row_groups(name: &str, file: &File) -> Result<u64, ConnectorError> {
    Ok(metadata(name, file)?.metadata().num_row_groups() as u64)
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
