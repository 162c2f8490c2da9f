//! The answer of a query, accumulated from its changelog.

use std::collections::HashMap;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow::row::{OwnedRow, RowConverter, SortField};
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::PairedChange;

use super::print::Typeset;

/// The rows of a result as of the last epoch. An update takes the place of the row that it replaces,
/// so that rows stand in the order in which their keys appeared.
///
/// Append-only rows are kept as they came; the first change moves everything into slots.
#[derive(Debug)]
pub struct Answer {
    schema: SchemaRef,
    appended: Vec<RecordBatch>,
    slots: Option<Slots>,
}

#[derive(Debug)]
struct Slots {
    converter: RowConverter,
    rows: Vec<Option<OwnedRow>>,
    /// Where equal rows are, the last one on top.
    places: HashMap<OwnedRow, Vec<usize>>,
    n_vacant: usize,
}

impl Answer {
    pub fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            appended: Vec::new(),
            slots: None,
        }
    }

    /// Errors: a type without a row form; a change that deletes a row which is not there.
    pub fn apply(&mut self, input: &SinkInput<'_>) -> Result<(), ConnectorError> {
        match input {
            SinkInput::Rows(rows) if self.slots.is_none() => {
                self.appended.push((*rows).clone());
                Ok(())
            }
            SinkInput::Rows(rows) => {
                let all = (0..rows.num_rows() as u32).map(|after| PairedChange::Create { after });
                self.slots()?.change(rows, all)
            }
            SinkInput::Changes(changes) => self
                .slots()?
                .change(&changes.rows, changes.changes.iter().copied()),
        }
    }

    fn slots(&mut self) -> Result<&mut Slots, ConnectorError> {
        if self.slots.is_none() {
            let mut slots = Slots::new(&self.schema)?;
            for batch in self.appended.drain(..) {
                let all = (0..batch.num_rows() as u32).map(|after| PairedChange::Create { after });
                slots.change(&batch, all)?;
            }
            self.slots = Some(slots);
        }
        Ok(self.slots.as_mut().expect("made above"))
    }

    pub fn n_rows(&self) -> usize {
        match &self.slots {
            Some(slots) => slots.rows.len() - slots.n_vacant,
            None => self.appended.iter().map(RecordBatch::num_rows).sum(),
        }
    }

    pub fn into_batches(self) -> Result<Vec<RecordBatch>, ConnectorError> {
        match self.slots {
            Some(slots) => Ok(vec![slots.into_batch(&self.schema)?]),
            None => Ok(self.appended),
        }
    }
}

impl Slots {
    fn new(schema: &SchemaRef) -> Result<Self, ConnectorError> {
        let fields = schema
            .fields()
            .iter()
            .map(|f| SortField::new(f.data_type().clone()))
            .collect();
        Ok(Self {
            converter: RowConverter::new(fields)?,
            rows: Vec::new(),
            places: HashMap::new(),
            n_vacant: 0,
        })
    }

    fn change(
        &mut self,
        images: &RecordBatch,
        changes: impl Iterator<Item = PairedChange>,
    ) -> Result<(), ConnectorError> {
        let images = self.converter.convert_columns(images.columns())?;
        for change in changes {
            match change {
                PairedChange::Create { after } => {
                    self.rows.push(None);
                    self.put(self.rows.len() - 1, images.row(after as usize).owned());
                }
                PairedChange::Update { before, after } => {
                    let slot = self.vacate(&images.row(before as usize).owned())?;
                    self.put(slot, images.row(after as usize).owned());
                }
                PairedChange::Delete { before } => {
                    self.vacate(&images.row(before as usize).owned())?;
                    self.n_vacant += 1;
                }
            }
        }
        self.compact_if_sparse();
        Ok(())
    }

    fn put(&mut self, slot: usize, row: OwnedRow) {
        self.places.entry(row.clone()).or_default().push(slot);
        self.rows[slot] = Some(row);
    }

    fn vacate(&mut self, row: &OwnedRow) -> Result<usize, ConnectorError> {
        let missing = || {
            ConnectorError::Encode("a change deletes a row that the result does not have".into())
        };
        let places = self.places.get_mut(row).ok_or_else(missing)?;
        let slot = places.pop().ok_or_else(missing)?;
        if places.is_empty() {
            self.places.remove(row);
        }
        self.rows[slot] = None;
        Ok(slot)
    }

    /// Keeps deleted rows from filling memory where keys come and go.
    fn compact_if_sparse(&mut self) {
        if self.n_vacant < 1024 || self.n_vacant * 2 < self.rows.len() {
            return;
        }
        let rows = std::mem::take(&mut self.rows);
        self.places.clear();
        self.n_vacant = 0;
        for row in rows.into_iter().flatten() {
            self.rows.push(None);
            self.put(self.rows.len() - 1, row);
        }
    }

    fn into_batch(self, schema: &SchemaRef) -> Result<RecordBatch, ConnectorError> {
        let n_rows = self.rows.len() - self.n_vacant;
        let columns = self
            .converter
            .convert_rows(self.rows.iter().flatten().map(OwnedRow::row))?;
        Ok(thalweg_dataflow::change::record_batch(
            schema.clone(),
            columns,
            n_rows,
        )?)
    }
}

/// Hands a text only the final answer, at the end.
pub struct AtEnd {
    answer: Answer,
    text: Box<dyn Typeset>,
}

impl AtEnd {
    pub fn new(schema: &SchemaRef, text: Box<dyn Typeset>) -> Self {
        Self {
            answer: Answer::new(schema.clone()),
            text,
        }
    }
}

impl Typeset for AtEnd {
    fn write(&mut self, input: &SinkInput<'_>, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        self.answer.apply(input)
    }

    fn end_epoch(&mut self, _epoch: u64, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        let empty = Answer::new(self.answer.schema.clone());
        for batch in std::mem::replace(&mut self.answer, empty).into_batches()? {
            self.text.write(&SinkInput::Rows(&batch), out)?;
        }
        self.text.finish(out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use thalweg_runtime::pairing::PairedChanges;

    use super::*;

    fn batch(values: Vec<i64>) -> RecordBatch {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(values))]).unwrap()
    }

    fn values(answer: Answer) -> Vec<i64> {
        let batches = answer.into_batches().unwrap();
        batches
            .iter()
            .flat_map(|b| b.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect()
    }

    #[test]
    fn updates_keep_their_place_and_deletes_leave_none() {
        let mut answer = Answer::new(batch(vec![]).schema());
        answer
            .apply(&SinkInput::Rows(&batch(vec![7, 8, 7])))
            .unwrap();
        let changes = PairedChanges {
            rows: batch(vec![7, 70, 8]),
            changes: vec![
                PairedChange::Update {
                    before: 0,
                    after: 1,
                },
                PairedChange::Delete { before: 2 },
            ],
        };
        answer.apply(&SinkInput::Changes(&changes)).unwrap();
        answer.apply(&SinkInput::Rows(&batch(vec![9]))).unwrap();
        assert_eq!(answer.n_rows(), 3);
        assert_eq!(values(answer), [7, 70, 9]);
    }

    #[test]
    fn deleting_what_is_not_there_is_an_error() {
        let mut answer = Answer::new(batch(vec![]).schema());
        let changes = PairedChanges {
            rows: batch(vec![1]),
            changes: vec![PairedChange::Delete { before: 0 }],
        };
        assert!(answer.apply(&SinkInput::Changes(&changes)).is_err());
    }

    #[test]
    fn rows_that_come_and_go_leave_no_memory_behind() {
        let mut answer = Answer::new(batch(vec![]).schema());
        for n in 0..5000 {
            let changes = PairedChanges {
                rows: batch(vec![n]),
                changes: vec![
                    PairedChange::Create { after: 0 },
                    PairedChange::Delete { before: 0 },
                ],
            };
            answer.apply(&SinkInput::Changes(&changes)).unwrap();
        }
        assert!(answer.slots.as_ref().unwrap().rows.len() < 2048);
        assert_eq!(values(answer), Vec::<i64>::new());
    }
}
