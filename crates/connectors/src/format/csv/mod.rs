//! CSV (RFC 4180): records of fields between delimiters.
//!
//! With a header, columns are found by name; without one, by their place in the table's declaration. A
//! field that is the text for null, without quotes, is null. Values are spelled as in JSON, but
//! that numbers may be written more freely (`+1`, `007`, `.5`, spaces around) and truth values as `t` or `TRUE`.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use thalweg_dataflow::options::{OptionFault, Options};
use thalweg_runtime::connector::ConnectorError;

mod decoder;
mod encoder;
mod field;
mod split;

use super::lines::bom_len;
use split::{split_record, text};

pub use decoder::CsvDecoder;
pub use encoder::CsvEncoder;

/// How records are spelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialect {
    pub delimiter: u8,
    pub quote: u8,
    /// The first line names the columns.
    pub has_header: bool,
    /// The text for null, where it is not in quotes.
    pub null: Arc<[u8]>,
    /// Values in quotes may have line ends.
    pub multiline: bool,
}

impl Dialect {
    /// Errors: a delimiter or quote that is not one character, or cannot be told from the other.
    pub fn parse(options: &Options) -> Result<Self, OptionFault> {
        let delimiter = one_byte(options, "csv.delimiter", b',')?;
        let quote = one_byte(options, "csv.quote", b'"')?;
        if delimiter == quote {
            return Err(fault("csv.quote", "is the delimiter as well"));
        }
        let null = options.text("csv.null").unwrap_or_default();
        let has_special = |b: &u8| [delimiter, quote, b'\n', b'\r'].contains(b);
        if null.as_bytes().iter().any(has_special) {
            return Err(fault("csv.null", "has a delimiter, a quote or a line end"));
        }
        Ok(Self {
            delimiter,
            quote,
            has_header: options.bool("csv.header").unwrap_or(true),
            null: null.as_bytes().into(),
            multiline: options.bool("csv.multiline").unwrap_or(true),
        })
    }

    pub(crate) fn from_options(options: &Options) -> Result<Self, ConnectorError> {
        Self::parse(options).map_err(|f| ConnectorError::configuration(f.message, f.hint))
    }
}

fn one_byte(options: &Options, name: &str, default: u8) -> Result<u8, OptionFault> {
    let Some(text) = options.text(name) else {
        return Ok(default);
    };
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [b'\n' | b'\r'] => Err(fault(name, "cannot be a line end")),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(fault(name, "must be one ASCII character, or '\\t'")),
    }
}

fn fault(option: &str, what: &str) -> OptionFault {
    OptionFault {
        option: Some(option.to_string()),
        message: format!("{option} {what}"),
        hint: None,
    }
}

/// The decoder of `format = 'csv'`.
pub fn decoder(
    options: &Options,
    declared: &SchemaRef,
    physical: SchemaRef,
) -> Result<CsvDecoder, ConnectorError> {
    CsvDecoder::new(Dialect::from_options(options)?, declared, physical)
}

/// The encoder of `format = 'csv'`.
pub fn encoder(options: &Options, schema: &SchemaRef) -> Result<CsvEncoder, ConnectorError> {
    CsvEncoder::new(Dialect::from_options(options)?, schema)
}

/// The names of columns in a file's first line. Errors: the options say that it has none.
pub fn header(options: &Options, line: &[u8]) -> Result<Vec<String>, ConnectorError> {
    let dialect = Dialect::from_options(options)?;
    if !dialect.has_header {
        let message = "columns cannot be told from records without names";
        let hint = "declare them: csv.header is false";
        return Err(ConnectorError::configuration(
            message,
            Some(hint.to_string()),
        ));
    }
    let line = &line[bom_len(line, true).unwrap_or(0)..];
    let (mut fields, mut scratch) = (Vec::new(), Vec::new());
    split_record(&dialect, line, 0, true, &mut fields);
    let names = fields.iter().map(|field| {
        let name = text(&dialect, line, *field, &mut scratch);
        String::from_utf8_lossy(name.trim_ascii()).into_owned()
    });
    Ok(names.filter(|name| !name.is_empty()).collect())
}

#[cfg(test)]
mod tests;
