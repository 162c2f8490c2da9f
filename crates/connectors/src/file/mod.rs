//! `single_file` and `filesystem`: tables in files.
//!
//! Reading: a path means files (`list`), a file is one split or several that share its stripes (`source`,
//! `stripe`), and a reader decodes blocks in place (`records`). Writing: `sink`.

use std::sync::Arc;

use arrow::datatypes::Field;
use thalweg_dataflow::options::{
    ConnectorDecl, OptionDecl, OptionFault, OptionKind, Outline, TableCheck,
};
use thalweg_dataflow::table::{SinkSpec, SourceSpec};
use thalweg_runtime::connector::{ConnectorError, Sink, Source};

use crate::registry::Connector;

mod compression;
mod config;
mod input;
mod list;
mod parquet;
mod place;
mod records;
mod sink;
mod source;
mod split;
mod stripe;
mod window;

#[cfg(test)]
mod bad_input_tests;

const FORMATS: &[&str] = &[
    "json",
    "debezium_json",
    "csv",
    "parquet",
    "protobuf",
    "raw_string",
    "raw_bytes",
];

const METADATA: &[(&str, &str, &str)] = &[
    (
        "filename",
        "TEXT",
        "The path of the file that the record is in.",
    ),
    (
        "offset",
        "BIGINT",
        "The byte at which the record begins, of the uncompressed text; the number of the row in a Parquet file, from 0.",
    ),
];

static SINGLE_FILE: ConnectorDecl = ConnectorDecl {
    name: "single_file",
    meaning: "One file. Read from its beginning to its end, by several readers at once where it is large and its \
              records are lines. Written in place by one writer, from the beginning: what was there before is gone.",
    options: &[
        OptionDecl::required(
            "path",
            OptionKind::Text,
            "The file. Its extension says its format and compression.",
        ),
        config::COMPRESSION,
        config::MAX_RECORD_BYTES,
    ],
    can_read: true,
    can_write: true,
    formats: FORMATS,
    default_format: config::format_of,
    fixed_columns: &[],
    metadata: METADATA,
    takes_updates: false,
    bounded: |_| true,
};

static FILESYSTEM: ConnectorDecl = ConnectorDecl {
    name: "filesystem",
    meaning: "Many files. Reads the files of a directory, or those that match a pattern, in the order of their names; \
              names that begin with `.` or `_` are passed over. Writes into a directory, each subtask files of its \
              own, which appear when they are complete and never replace others.",
    options: &[
        OptionDecl::required(
            "path",
            OptionKind::Text,
            "A directory; for reading also a pattern, in which `*` and `?` match within a name and `**` any \
             directories.",
        ),
        config::COMPRESSION,
        config::MAX_RECORD_BYTES,
        sink::ROLL_BYTES,
        sink::ROLL_INTERVAL,
    ],
    can_read: true,
    can_write: true,
    formats: FORMATS,
    default_format: config::format_of,
    fixed_columns: &[],
    metadata: METADATA,
    takes_updates: false,
    bounded: |_| true,
};

pub struct SingleFile;

impl Connector for SingleFile {
    fn declaration(&self) -> &ConnectorDecl {
        &SINGLE_FILE
    }

    fn check(&self, table: &TableCheck<'_>) -> Result<(), OptionFault> {
        config::check(table)
    }

    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        Ok(Box::new(source::FileSource::new(
            spec.clone(),
            list::single,
        )?))
    }

    fn own_columns(&self, table: &Outline) -> Result<Option<Vec<Field>>, ConnectorError> {
        source::own_columns(table, list::single)
    }

    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(sink::SingleFileSink::new(spec.clone())?))
    }
}

pub struct Filesystem;

impl Connector for Filesystem {
    fn declaration(&self) -> &ConnectorDecl {
        &FILESYSTEM
    }

    fn check(&self, table: &TableCheck<'_>) -> Result<(), OptionFault> {
        config::check(table)
    }

    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        Ok(Box::new(source::FileSource::new(spec.clone(), list::many)?))
    }

    fn own_columns(&self, table: &Outline) -> Result<Option<Vec<Field>>, ConnectorError> {
        source::own_columns(table, list::many)
    }

    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(sink::FilesystemSink::new(spec.clone())?))
    }
}
