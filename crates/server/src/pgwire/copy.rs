//! COPY (query) TO STDOUT, in PostgreSQL's text format and as CSV.

use bytes::{BufMut, BytesMut};
use pgwire::messages::copy::{CopyDone, CopyOutResponse};
use thalweg_planner::parse::statement::{CopyFormat, CopyOut};

use super::backend::Output;
use super::client::Result;
use super::encode::Rows;
use super::error::Failure;
use super::frontend::Formats;
use super::rows::next_batch;
use crate::results::RowStream;

/// How rows are laid out.
#[derive(Debug, Clone)]
pub struct Copy {
    is_csv: bool,
    header: bool,
    delimiter: u8,
    null: String,
}

impl Copy {
    pub fn new(copy: &CopyOut) -> Self {
        let is_csv = copy.format == CopyFormat::Csv;
        let null = if is_csv { "" } else { "\\N" };
        Self {
            is_csv,
            header: copy.header,
            delimiter: copy.delimiter.unwrap_or(if is_csv { b',' } else { b'\t' }),
            null: copy.null.clone().unwrap_or_else(|| null.to_string()),
        }
    }

    /// Sends all rows as they come; gives the command tag.
    pub async fn send(&self, output: &mut Output, mut stream: RowStream) -> Result<String> {
        let n_columns = stream.schema().fields().len();
        let too_many = |_| Failure::new("54011", "too many columns");
        let columns = i16::try_from(n_columns).map_err(too_many)?;
        output.put(&CopyOutResponse::new(0, columns, vec![0; n_columns]));
        if self.header {
            let names: Vec<_> = stream
                .schema()
                .fields()
                .iter()
                .map(|f| f.name().clone())
                .collect();
            output.message(b'd', |out| {
                self.line(n_columns, out, |column, out| {
                    out.put_slice(names[column].as_bytes());
                    true
                });
                Ok::<_, Failure>(())
            })?;
        }
        let mut n_rows = 0;
        while let Some(batch) = next_batch(output, &mut stream, u64::MAX, None)
            .await?
            .flatten()
        {
            let rows = Rows::new(&batch, &Formats::default())?;
            for row in 0..rows.n_rows() {
                output.message(b'd', |out| {
                    self.row(&rows, row, out);
                    Ok::<_, Failure>(())
                })?;
                output.flush_if_full().await?;
            }
            n_rows += rows.n_rows();
        }
        output.put(&CopyDone::new());
        for warning in stream.take_warnings() {
            output.warning(&warning);
        }
        Ok(format!("COPY {n_rows}"))
    }

    fn row(&self, rows: &Rows<'_>, row: usize, out: &mut BytesMut) {
        self.line(rows.n_columns(), out, |column, out| {
            let is_there = !rows.is_null(row, column);
            if is_there {
                rows.text(row, column, out);
            }
            is_there
        });
    }

    /// `value` appends a column's value, or says that it is null.
    fn line(
        &self,
        n_columns: usize,
        out: &mut BytesMut,
        mut value: impl FnMut(usize, &mut BytesMut) -> bool,
    ) {
        for column in 0..n_columns {
            if column > 0 {
                out.put_u8(self.delimiter);
            }
            let start = out.len();
            if !value(column, out) {
                out.put_slice(self.null.as_bytes());
            } else if self.is_csv {
                self.quote(start, n_columns, out);
            } else {
                self.escape(start, out);
            }
        }
        out.put_u8(b'\n');
    }

    /// Backslashes before what would be read as something else, from `start` on.
    fn escape(&self, start: usize, out: &mut BytesMut) {
        let special = |byte: &u8| *byte == self.delimiter || escaped(*byte).is_some();
        if !out[start..].iter().any(special) {
            return;
        }
        for byte in out.split_off(start) {
            match escaped(byte) {
                Some(letter) => out.put_slice(&[b'\\', letter]),
                None if byte == self.delimiter => out.put_slice(&[b'\\', byte]),
                None => out.put_u8(byte),
            }
        }
    }

    /// Quotes around what would be read as something else, from `start` on.
    fn quote(&self, start: usize, n_columns: usize, out: &mut BytesMut) {
        let text = &out[start..];
        let special = |byte: &u8| *byte == self.delimiter || b"\"\n\r".contains(byte);
        // `\.` by itself would end the data.
        let is_end = n_columns == 1 && text == b"\\.";
        if !is_end && text != self.null.as_bytes() && !text.iter().any(special) {
            return;
        }
        let text = out.split_off(start);
        out.put_u8(b'"');
        for byte in text {
            if byte == b'"' {
                out.put_u8(b'"');
            }
            out.put_u8(byte);
        }
        out.put_u8(b'"');
    }
}

/// The letter after the backslash.
fn escaped(byte: u8) -> Option<u8> {
    match byte {
        b'\\' => Some(b'\\'),
        b'\n' => Some(b'n'),
        b'\r' => Some(b'r'),
        b'\t' => Some(b't'),
        8 => Some(b'b'),
        11 => Some(b'v'),
        12 => Some(b'f'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(copy: &Copy, values: &[Option<&str>]) -> String {
        let mut out = BytesMut::new();
        copy.line(values.len(), &mut out, |column, out| {
            out.put_slice(values[column].unwrap_or_default().as_bytes());
            values[column].is_some()
        });
        String::from_utf8(out.to_vec()).unwrap()
    }

    fn copy(is_csv: bool) -> Copy {
        Copy {
            is_csv,
            header: false,
            delimiter: if is_csv { b',' } else { b'\t' },
            null: if is_csv { "" } else { "\\N" }.to_string(),
        }
    }

    #[test]
    fn text_escapes_what_would_be_read_otherwise() {
        let values = [Some("a\tb\n\\"), None, Some(""), Some("\\N")];
        assert_eq!(lines(&copy(false), &values), "a\\tb\\n\\\\\t\\N\t\t\\\\N\n");
        let bars = Copy {
            delimiter: b'|',
            ..copy(false)
        };
        assert_eq!(lines(&bars, &[Some("a|b"), Some("c")]), "a\\|b|c\n");
    }

    #[test]
    fn csv_tells_nothing_from_an_empty_text() {
        let values = [None, Some(""), Some("a,b"), Some("say \"x\"\n")];
        assert_eq!(
            lines(&copy(true), &values),
            ",\"\",\"a,b\",\"say \"\"x\"\"\n\"\n"
        );
        assert_eq!(lines(&copy(true), &[Some("\\.")]), "\"\\.\"\n");
    }
}
