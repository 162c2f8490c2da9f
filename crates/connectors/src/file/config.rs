//! What the options of file tables mean.

use std::collections::BTreeMap;

use thalweg_dataflow::options::{
    Direction, OptionDecl, OptionFault, OptionKind, Options, TableCheck,
};

use super::compression::{self, Compression};
use super::list::is_pattern;
use crate::format::declare::refuse_messages;
use crate::format::framing;

pub const COMPRESSION: OptionDecl = OptionDecl::optional(
    "compression",
    OptionKind::Choice(compression::WORDS),
    None,
    "How files are compressed. Without it their extension says it: `.gz`, `.zst`, `.bz2`, `.xz`. A compressed file is \
     read by one reader.",
);

pub const MAX_RECORD_BYTES: OptionDecl = OptionDecl::optional(
    "max_record_bytes",
    OptionKind::Bytes,
    Some("64 MiB"),
    "The largest record to read, line end included; a larger one is a bad record. Bounds the memory of a reader.",
);

/// Bytes. Columns of a batch have offsets of 32 bits.
const LARGEST_RECORD: u64 = 1 << 30;
const SMALLEST_LIMIT: u64 = 1 << 10;
const DEFAULT_LIMIT: u64 = 64 << 20;

const EXTENSIONS: [(&str, &str); 8] = [
    ("ndjson", "json"),
    ("jsonl", "json"),
    ("json", "json"),
    ("csv", "csv"),
    ("parquet", "parquet"),
    ("pq", "parquet"),
    ("txt", "raw_string"),
    ("log", "raw_string"),
];

/// The format that a path's extension says, compression aside.
pub fn format_of(options: &BTreeMap<String, String>) -> Option<&'static str> {
    let (_, stem) = Compression::of(options.get("path")?);
    let (_, extension) = stem.rsplit_once('.')?;
    EXTENSIONS
        .iter()
        .find(|(e, _)| extension.eq_ignore_ascii_case(e))
        .map(|(_, format)| *format)
}

/// The extension that files of a format are given, with its dot.
pub fn extension_of(format: &str) -> &'static str {
    match format {
        "csv" => ".csv",
        "parquet" => ".parquet",
        "protobuf" => ".binpb",
        "raw_string" => ".txt",
        "raw_bytes" => ".bin",
        _ => ".ndjson",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub path: String,
    pub format: String,
    /// As given; `None`: by each file's extension.
    pub compression: Option<Compression>,
    pub max_record_bytes: usize,
}

impl Config {
    pub fn parse(options: &Options, format: Option<&str>) -> Result<Self, OptionFault> {
        let path = options.text("path").unwrap_or_default();
        if path.is_empty() {
            return Err(fault("path", "the path is empty", None));
        }
        let Some(format) = format else {
            let message = format!("the extension of \"{path}\" does not say its format");
            return Err(fault(
                "format",
                message,
                Some("add for example format = 'json'"),
            ));
        };
        let compression = options.text("compression").and_then(Compression::parse);
        if format == "parquet" && compression.is_some_and(|c| c != Compression::None) {
            return Err(fault(
                "compression",
                "a Parquet file is compressed within, not as a whole",
                None,
            ));
        }
        let limit = options.bytes("max_record_bytes").unwrap_or(DEFAULT_LIMIT);
        if !(SMALLEST_LIMIT..=LARGEST_RECORD).contains(&limit) {
            return Err(fault(
                "max_record_bytes",
                "expected a size from 1 KiB to 1 GiB",
                None,
            ));
        }
        // Its line end is none of a line's length.
        let longest_line = framing::max_length(options).map_or(u64::MAX, |n| n.saturating_add(1));
        let limit = limit.min(longest_line);
        let (path, format) = (path.to_string(), format.to_string());
        Ok(Self {
            path,
            format,
            compression,
            max_record_bytes: limit as usize,
        })
    }

    /// How the file at `path` is compressed.
    pub fn compression_of(&self, path: &str) -> Compression {
        match self.compression {
            Some(given) => given,
            None if self.format == "parquet" => Compression::None,
            None => Compression::of(path).0,
        }
    }
}

pub fn check(table: &TableCheck<'_>) -> Result<(), OptionFault> {
    let config = Config::parse(table.options, table.format)?;
    refuse_messages(table.format, table.options)?;
    if table.direction == Direction::Sink && is_pattern(&config.path) {
        return Err(fault(
            "path",
            format!("\"{}\" is a pattern, and cannot be written to", config.path),
            None,
        ));
    }
    Ok(())
}

fn fault(option: &str, message: impl Into<String>, hint: Option<&str>) -> OptionFault {
    OptionFault {
        option: Some(option.to_string()),
        message: message.into(),
        hint: hint.map(str::to_string),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::options;
    use arrow::datatypes::Schema;

    #[test]
    fn extensions_say_the_format() {
        let of = |path: &str| format_of(&[("path".to_string(), path.to_string())].into());
        assert_eq!(of("a/orders.ndjson"), Some("json"));
        assert_eq!(of("orders.JSONL.gz"), Some("json"));
        assert_eq!(of("data/*.csv.zst"), Some("csv"));
        assert_eq!(of("x.parquet"), Some("parquet"));
        assert_eq!(of("orders"), None);
        assert_eq!(of("orders.gz"), None);
        assert_eq!(format_of(&BTreeMap::new()), None);
    }

    #[test]
    fn compression_is_as_given_or_as_the_extension_says() {
        let config = Config::parse(&options(&[("path", "a.csv.gz")]), Some("csv")).unwrap();
        assert_eq!(config.compression_of("a.csv.gz"), Compression::Gzip);
        assert_eq!(config.max_record_bytes, 64 << 20);
        let config = Config::parse(
            &options(&[("path", "a"), ("compression", "xz")]),
            Some("csv"),
        )
        .unwrap();
        assert_eq!(config.compression_of("a.gz"), Compression::Xz);
    }

    #[test]
    fn options_that_cannot_be_are_refused() {
        let refused = |given: &[(&str, &str)], format: Option<&str>| {
            let fault = Config::parse(&options(given), format).unwrap_err();
            (fault.option.unwrap(), fault.message)
        };
        assert_eq!(refused(&[("path", "")], Some("csv")).0, "path");
        assert_eq!(
            refused(&[("path", "x")], None).1,
            "the extension of \"x\" does not say its format"
        );
        assert_eq!(
            refused(&[("path", "x"), ("compression", "gzip")], Some("parquet")).0,
            "compression"
        );
        assert_eq!(
            refused(&[("path", "x"), ("max_record_bytes", "10")], Some("csv")).0,
            "max_record_bytes"
        );
    }

    #[test]
    fn patterns_are_for_reading_only() {
        let check = |direction| {
            super::check(&TableCheck {
                connector: "filesystem",
                format: Some("csv"),
                options: &options(&[("path", "*.csv")]),
                schema: &Schema::empty(),
                direction,
            })
        };
        assert!(check(Direction::Source).is_ok());
        assert!(
            check(Direction::Sink)
                .unwrap_err()
                .message
                .contains("is a pattern")
        );
    }
}
