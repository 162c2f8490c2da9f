//! Tables for people.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::pretty::pretty_format_batches_with_options;
use thalweg_dataflow::table::SinkSpec;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::{PairedChange, PairedChanges};

use super::answer::Answer;
use super::print::{Shown, Typeset};
use crate::text::{CELL_OPTIONS, Cells};

/// Rows that wait for a table of their own; a longer result becomes several tables.
const TABLE_ROWS: usize = 10_000;

/// Sets a result as tables: the final answer where it ends, the rows or changes of each epoch
/// where it doesn't or where the changelog was asked for.
pub struct Tables {
    schema: SchemaRef,
    label: Option<String>,
    held: Held,
}

enum Held {
    Answer {
        answer: Answer,
        updating: bool,
    },
    Epoch {
        rows: Vec<RecordBatch>,
        changes: Vec<PairedChanges>,
        changelog: bool,
    },
}

impl Tables {
    pub fn new(spec: &SinkSpec, shown: Shown) -> Self {
        let schema = spec.schema.clone();
        let held = if shown.ends && !shown.changelog {
            Held::Answer {
                answer: Answer::new(schema.clone()),
                updating: spec.updating,
            }
        } else {
            let changelog = shown.changelog || spec.updating;
            Held::Epoch {
                rows: Vec::new(),
                changes: Vec::new(),
                changelog,
            }
        };
        Self {
            schema,
            label: shown.label,
            held,
        }
    }

    /// One table, of rows that will not change.
    pub fn answer(schema: SchemaRef) -> Self {
        let held = Held::Answer {
            answer: Answer::new(schema.clone()),
            updating: false,
        };
        Self {
            schema,
            label: None,
            held,
        }
    }

    fn set(
        &self,
        title: Option<&str>,
        batches: &[RecordBatch],
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectorError> {
        let title: Vec<_> = self.label.as_deref().into_iter().chain(title).collect();
        let mut text = String::new();
        if !title.is_empty() {
            let _ = writeln!(text, "{}", title.join(", "));
        }
        let _ = writeln!(
            text,
            "{}",
            pretty_format_batches_with_options(batches, &CELL_OPTIONS)?
        );
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn set_rows(
        &self,
        mut batches: Vec<RecordBatch>,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectorError> {
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(self.schema.clone()));
        }
        self.set(None, &batches, out)
    }
}

impl Typeset for Tables {
    fn write(&mut self, input: &SinkInput<'_>, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        match (&mut self.held, input) {
            (Held::Answer { answer, updating }, _) => {
                answer.apply(input)?;
                if !*updating && answer.n_rows() >= TABLE_ROWS {
                    let full = std::mem::replace(answer, Answer::new(self.schema.clone()));
                    return self.set_rows(full.into_batches()?, out);
                }
                Ok(())
            }
            (
                Held::Epoch {
                    rows,
                    changelog: false,
                    ..
                },
                SinkInput::Rows(batch),
            ) => {
                rows.push((*batch).clone());
                Ok(())
            }
            (Held::Epoch { changes, .. }, SinkInput::Rows(batch)) => {
                changes.push(super::changelog::creations(batch));
                Ok(())
            }
            (Held::Epoch { changes, .. }, SinkInput::Changes(paired)) => {
                changes.push((*paired).clone());
                Ok(())
            }
        }
    }

    fn end_epoch(&mut self, epoch: u64, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        let Held::Epoch { rows, changes, .. } = &mut self.held else {
            return Ok(());
        };
        let (rows, changes) = (std::mem::take(rows), std::mem::take(changes));
        if rows.iter().any(|b| b.num_rows() > 0) {
            self.set_rows(rows, out)?;
        }
        if changes.iter().any(|c| !c.changes.is_empty()) {
            let tables = changes
                .iter()
                .map(change_table)
                .collect::<Result<Vec<_>, _>>()?;
            self.set(Some(&format!("epoch {epoch}")), &tables, out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        let Held::Answer { answer, .. } = &mut self.held else {
            return Ok(());
        };
        let last = std::mem::replace(answer, Answer::new(self.schema.clone()));
        self.set_rows(last.into_batches()?, out)
    }
}

/// Changes as a table of text: the operation, then per column the value, or `old → new`.
fn change_table(paired: &PairedChanges) -> Result<RecordBatch, ConnectorError> {
    let cells = Cells::new(&paired.rows)?;
    let ops: StringArray = paired.changes.iter().map(|c| Some(op(c))).collect();
    let mut columns: Vec<ArrayRef> = vec![Arc::new(ops)];
    let mut fields = vec![Field::new("op", DataType::Utf8, false)];
    for (i, field) in paired.rows.schema().fields().iter().enumerate() {
        let cell = |row: u32| cells.text(i, row as usize);
        let values = paired.changes.iter().map(|change| match *change {
            PairedChange::Create { after: row } | PairedChange::Delete { before: row } => cell(row),
            PairedChange::Update { before, after } => {
                let (old, new) = (cell(before)?, cell(after)?);
                Ok(if old == new {
                    new
                } else {
                    format!("{old} → {new}")
                })
            }
        });
        columns.push(Arc::new(StringArray::from(
            values.collect::<Result<Vec<_>, ArrowError>>()?,
        )));
        fields.push(Field::new(field.name(), DataType::Utf8, false));
    }
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

pub fn op(change: &PairedChange) -> &'static str {
    match change {
        PairedChange::Create { .. } => "c",
        PairedChange::Update { .. } => "u",
        PairedChange::Delete { .. } => "d",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use expect_test::{Expect, expect};
    use thalweg_dataflow::options::Options;

    fn batch(values: impl IntoIterator<Item = Option<i64>>) -> RecordBatch {
        let values: Int64Array = values.into_iter().collect();
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, true)]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(values)]).unwrap()
    }

    fn tables(updating: bool, shown: Shown) -> Tables {
        let spec = SinkSpec {
            table: "0".into(),
            connector: "result".into(),
            format: None,
            options: Options::default(),
            schema: batch([]).schema(),
            updating,
            key: None,
        };
        Tables::new(&spec, shown)
    }

    fn changes() -> PairedChanges {
        PairedChanges {
            rows: batch([Some(1), None, Some(3)]),
            changes: vec![
                PairedChange::Create { after: 0 },
                PairedChange::Update {
                    before: 0,
                    after: 1,
                },
                PairedChange::Delete { before: 2 },
            ],
        }
    }

    fn check(mut tables: Tables, inputs: &[SinkInput<'_>], expected: Expect) {
        let mut out = Vec::new();
        for (epoch, input) in (1..).zip(inputs) {
            tables.write(input, &mut out).unwrap();
            tables.end_epoch(epoch, &mut out).unwrap();
        }
        tables.finish(&mut out).unwrap();
        expected.assert_eq(&String::from_utf8(out).unwrap());
    }

    #[test]
    fn changes_without_end_show_old_and_new_values() {
        let shown = Shown {
            label: Some("totals".into()),
            ..Shown::default()
        };
        let inputs = [SinkInput::Changes(&changes())];
        check(
            tables(true, shown),
            &inputs,
            expect![[r#"
                totals, epoch 1
                +----+----------+
                | op | n        |
                +----+----------+
                | c  | 1        |
                | u  | 1 → NULL |
                | d  | 3        |
                +----+----------+
            "#]],
        );
    }

    #[test]
    fn rows_without_end_show_as_they_come_and_an_empty_epoch_shows_nothing() {
        let (some, none) = (batch([Some(1)]), batch([]));
        let inputs = [
            SinkInput::Rows(&some),
            SinkInput::Rows(&none),
            SinkInput::Rows(&some),
        ];
        check(
            tables(false, Shown::default()),
            &inputs,
            expect![[r#"
                +---+
                | n |
                +---+
                | 1 |
                +---+
                +---+
                | n |
                +---+
                | 1 |
                +---+
            "#]],
        );
    }

    #[test]
    fn a_long_answer_does_not_wait_in_memory() {
        let rows = batch((0..TABLE_ROWS as i64 + 5).map(Some));
        let mut tables = tables(
            false,
            Shown {
                ends: true,
                ..Shown::default()
            },
        );
        let mut out = Vec::new();
        tables.write(&SinkInput::Rows(&rows), &mut out).unwrap();
        assert!(out.len() > TABLE_ROWS * 4);
        let Held::Answer { answer, .. } = &tables.held else {
            panic!("it ends")
        };
        assert_eq!(answer.n_rows(), 0);
    }
}
