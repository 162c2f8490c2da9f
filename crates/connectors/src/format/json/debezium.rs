//! Changes as Debezium's envelopes (semantics 7.1), one a line:
//! `{"before":…,"after":…,"op":"c|u|d"}`.

use arrow::datatypes::{SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::options::Options;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::{PairedChange, PairedChanges};

use super::super::cells::{Cells, Spelling};
use super::super::encode::{Encoder, Lines, Messages, Records};
use super::connect::{self, Wrapping};
use super::encoder::{ObjectWriter, epoch_of, includes_schema, spelling, stem};

/// The encoder of `format = 'debezium_json'`.
pub struct DebeziumEncoder {
    objects: ObjectWriter,
    wrapping: Wrapping,
}

impl DebeziumEncoder {
    /// Times are epoch microseconds, dates days and times of day microseconds, as Debezium's own types have
    /// them, unless `json.timestamp_format` names another unit or `rfc3339`.
    pub fn new(schema: &SchemaRef, options: &Options) -> Result<Self, ConnectorError> {
        let epoch = match options.text("json.timestamp_format") {
            None => Some(TimeUnit::Microsecond),
            Some(_) => epoch_of(options),
        };
        let spelling = Spelling {
            epoch,
            numeric_days: epoch.is_some(),
            ..spelling(options)
        };
        let wrapping = if includes_schema(options) {
            Wrapping::new(&connect::envelope_schema(schema, &spelling, stem(options)))
        } else {
            Wrapping::default()
        };
        Ok(Self {
            objects: ObjectWriter::new(schema, spelling)?,
            wrapping,
        })
    }

    fn records(
        &self,
        rows: &RecordBatch,
        changes: impl Iterator<Item = PairedChange>,
        out: &mut impl Records,
    ) -> Result<(), ConnectorError> {
        let columns = self.objects.columns(rows)?;
        for change in changes {
            let buffer = out.open();
            buffer.extend_from_slice(&self.wrapping.before);
            self.envelope(&columns, change, buffer);
            buffer.extend_from_slice(self.wrapping.after);
            out.end();
        }
        Ok(())
    }

    fn envelope(&self, columns: &[Cells], change: PairedChange, out: &mut Vec<u8>) {
        let (before, after, op) = match change {
            PairedChange::Create { after } => (None, Some(after), b'c'),
            PairedChange::Update { before, after } => (Some(before), Some(after), b'u'),
            PairedChange::Delete { before } => (Some(before), None, b'd'),
        };
        out.extend_from_slice(b"{\"before\":");
        self.image(columns, before, out);
        out.extend_from_slice(b",\"after\":");
        self.image(columns, after, out);
        out.extend_from_slice(b",\"op\":\"");
        out.push(op);
        out.extend_from_slice(b"\"}");
    }

    fn image(&self, columns: &[Cells], row: Option<u32>, out: &mut Vec<u8>) {
        match row {
            Some(row) => self.objects.object(columns, row as usize, out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

impl Encoder for DebeziumEncoder {
    fn begin(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        self.records(rows, creations(rows), &mut Lines(out))
    }

    fn changes(
        &mut self,
        changes: &PairedChanges,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectorError> {
        let PairedChanges { rows, changes } = changes;
        self.records(rows, changes.iter().copied(), &mut Lines(out))
    }

    fn messages(
        &mut self,
        input: &SinkInput<'_>,
        out: &mut Messages,
    ) -> Result<(), ConnectorError> {
        match input {
            SinkInput::Rows(rows) => self.records(rows, creations(rows), out),
            SinkInput::Changes(PairedChanges { rows, changes }) => {
                self.records(rows, changes.iter().copied(), out)
            }
        }
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }
}

fn creations(rows: &RecordBatch) -> impl Iterator<Item = PairedChange> {
    (0..rows.num_rows()).map(|row| PairedChange::Create { after: row as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        ArrayRef, Date32Array, Int64Array, StringArray, Time64NanosecondArray,
        TimestampNanosecondArray,
    };
    use arrow::datatypes::{DataType, Field, Schema};
    use std::sync::Arc;

    fn options(format: Option<&str>) -> Options {
        let given = format.map(|f| ("json.timestamp_format".to_string(), f.to_string()));
        Options::resolve(&given.into_iter().collect(), &[])
    }

    fn rows() -> RecordBatch {
        let schema = Schema::new(vec![
            Field::new("customer_id", DataType::Utf8, true),
            Field::new("total", DataType::Int64, true),
        ]);
        let names: ArrayRef = Arc::new(StringArray::from(vec!["c1", "c1", "c2"]));
        let totals: ArrayRef = Arc::new(Int64Array::from(vec![Some(50), Some(75), None]));
        RecordBatch::try_new(Arc::new(schema), vec![names, totals]).unwrap()
    }

    #[test]
    fn changes_become_envelopes() {
        let rows = rows();
        let mut encoder = DebeziumEncoder::new(&rows.schema(), &options(None)).unwrap();
        let changes = vec![
            PairedChange::Create { after: 2 },
            PairedChange::Update {
                before: 0,
                after: 1,
            },
            PairedChange::Delete { before: 1 },
        ];
        let mut out = Vec::new();
        encoder
            .changes(
                &PairedChanges {
                    rows: rows.clone(),
                    changes,
                },
                &mut out,
            )
            .unwrap();
        encoder.rows(&rows.slice(0, 1), &mut out).unwrap();
        let expected = [
            r#"{"before":null,"after":{"customer_id":"c2","total":null},"op":"c"}"#,
            r#"{"before":{"customer_id":"c1","total":50},"after":{"customer_id":"c1","total":75},"op":"u"}"#,
            r#"{"before":{"customer_id":"c1","total":75},"after":null,"op":"d"}"#,
            r#"{"before":null,"after":{"customer_id":"c1","total":50},"op":"c"}"#,
        ];
        assert_eq!(String::from_utf8(out).unwrap(), expected.join("\n") + "\n");
    }

    #[test]
    fn times_are_microseconds_unless_told_otherwise() {
        let nanos = 1_704_103_215_020_000_000;
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "ts",
                Arc::new(TimestampNanosecondArray::from(vec![nanos]).with_timezone("+00:00")),
            ),
            ("d", Arc::new(Date32Array::from(vec![19_782]))),
            (
                "t",
                Arc::new(Time64NanosecondArray::from(vec![1_500_000_000])),
            ),
        ];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        for (format, after) in [
            (None, r#"{"ts":1704103215020000,"d":19782,"t":1500000}"#),
            (
                Some("unix_millis"),
                r#"{"ts":1704103215020,"d":19782,"t":1500}"#,
            ),
            (
                Some("rfc3339"),
                r#"{"ts":"2024-01-01T10:00:15.02Z","d":"2024-02-29","t":"00:00:01.5"}"#,
            ),
        ] {
            let mut out = Vec::new();
            let mut encoder = DebeziumEncoder::new(&rows.schema(), &options(format)).unwrap();
            encoder.rows(&rows, &mut out).unwrap();
            let expected = format!("{{\"before\":null,\"after\":{after},\"op\":\"c\"}}\n");
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
