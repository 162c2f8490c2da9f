//! Changelog normalisation: keeps the row of each key of a source's changelog and emits, at every barrier,
//! how the table has changed (semantics 6).
//!
//! What a record does to the row of its key is told by its marks ([`thalweg_dataflow::marks`]). Changes come in
//! the order of their log as far as one key is concerned, and each is applied, so that a feed that repeats a
//! stretch of it ends where it would have ended. Only a *read*, of a snapshot, says nothing of when: it is
//! passed over where what is stored is surely later.
//!
//! Rows are kept as encoded images, so that whether a key has changed is a comparison of bytes. The key columns
//! are not part of the image.

mod emission;
mod entry;
mod expiry;
mod merge;
mod rows;
#[cfg(test)]
mod tests;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int8Array, Int32Array, Int64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use std::sync::Arc;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::marks::{self, ChangeOp};
use thalweg_dataflow::plan::Normalize;

use super::OperatorContext;
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::operator::{Barrier, Operator, Stateful};
use crate::state::{StateWrites, TableId, ValueCodec};

use emission::Emission;
use entry::{Entry, Kind, Position};
use expiry::Expiries;
use merge::Merges;
use rows::{Row, Rows};

/// Tables of an operator: rows, the position of the last TRUNCATE, then the indexes of expiry.
const TRUNCATION_TABLE: u32 = 1;
const FIRST_EXPIRY_TABLE: u32 = 2;

pub struct Normalization {
    normalize: Normalize,
    /// Columns of a record; marks stand behind them.
    n_columns: usize,
    /// Positions of the columns of an image: all but the key.
    image_columns: Vec<usize>,
    images: ValueCodec,
    /// Of a record, in which any column may be null.
    record_schema: SchemaRef,
    output_schema: SchemaRef,
    rows: Rows,
    /// Keys touched in this epoch, in the order of their first touch, with the rows that they had.
    touches: Vec<Touch>,
    merges: Merges,
    truncations: Truncations,
    expiries: Expiries,
    emission: Option<Emission>,
    context: OperatorContext,
    slots: Vec<u32>,
}

struct Touch {
    slot: u32,
    old: Row,
}

/// Whether, and where in its history, the table was emptied.
struct Truncations {
    table: TableId,
    /// Of the last one.
    position: Position,
    /// There was one in this epoch.
    now: bool,
    is_dirty: bool,
}

impl Normalization {
    pub fn new(normalize: &Normalize, context: OperatorContext) -> Result<Self, RuntimeError> {
        let n_columns = context.output_schema.fields().len();
        let field = |column: usize| context.output_schema.field(column);
        let image_columns: Vec<usize> = (0..n_columns)
            .filter(|column| !normalize.key.contains(column))
            .collect();
        let key_types: Vec<DataType> = normalize
            .key
            .iter()
            .map(|&k| field(k).data_type().clone())
            .collect();
        // A deletion holds no value but the key's, whatever is declared.
        let fields = image_columns
            .iter()
            .map(|&c| Field::new(field(c).name(), field(c).data_type().clone(), true));
        let input = context
            .input_schema
            .as_ref()
            .expect("a normalization has an input");
        let record_fields = input.fields().iter().take(n_columns).cloned();
        Ok(Self {
            record_schema: Arc::new(Schema::new(record_fields.collect::<Vec<_>>())),
            images: ValueCodec::new(fields)?,
            rows: Rows::new(key_types, &context)?,
            merges: Merges::default(),
            truncations: Truncations {
                table: context.table(TRUNCATION_TABLE),
                position: Position::UNKNOWN,
                now: false,
                is_dirty: false,
            },
            expiries: Expiries::new(normalize.ttl, &context, FIRST_EXPIRY_TABLE),
            output_schema: context.output_schema.clone(),
            normalize: normalize.clone(),
            n_columns,
            image_columns,
            touches: Vec::new(),
            emission: None,
            context,
            slots: Vec::new(),
        })
    }

    /// Remembers the row that a key had before this epoch.
    fn touch(&mut self, slot: u32) {
        if !self.rows.touch(slot) {
            return;
        }
        let old = self.rows.row(slot);
        self.touches.push(Touch { slot, old });
        if self.truncations.now && old.entry.kind != Kind::Absent {
            // Read back only now: the table was emptied before this record.
            self.empty(slot);
        }
    }

    fn empty(&mut self, slot: u32) {
        let entry = Entry::ABSENT;
        let image = self.rows.push_image(&[]);
        self.rows.put(slot, Row { entry, image });
    }

    fn write(&mut self, slot: u32, change: &Change, image: &[u8]) {
        let entry = Entry {
            kind: Kind::Present,
            time: change.time,
            position: change.position,
        };
        let image = self.rows.push_image(image);
        self.rows.put(slot, Row { entry, image });
    }

    /// Whether a read is older than what is stored.
    fn is_stale(&self, slot: u32, read: &Position) -> bool {
        let entry = self.rows.row(slot).entry;
        let known = match entry.kind {
            Kind::Absent => &self.truncations.position,
            Kind::Present | Kind::Deleted => &entry.position,
        };
        read.is_before(known)
    }

    fn delete(&mut self, slot: u32, change: &Change) {
        let row = self.rows.row(slot);
        if !row.is_present() {
            JobMetrics::add(&self.context.metrics.unapplied_changes, 1);
        }
        let entry = Entry {
            kind: Kind::Deleted,
            time: row.entry.time.max(change.time).max(self.expiries.now()),
            position: change.position,
        };
        let image = self.rows.push_image(&[]);
        self.rows.put(slot, Row { entry, image });
    }

    /// Every row goes; those in memory at once, those in the store when the epoch's changes are handed out.
    fn truncate(&mut self, position: Position) {
        for slot in self.rows.untouched() {
            self.rows.touch(slot);
            let old = self.rows.row(slot);
            self.touches.push(Touch { slot, old });
        }
        for i in 0..self.touches.len() {
            self.empty(self.touches[i].slot);
        }
        self.truncations.now = true;
        self.truncations.is_dirty = true;
        self.truncations.position = position;
    }

    fn apply(&mut self, slot: u32, change: &Change, image: &[u8]) {
        match change.op {
            ChangeOp::Read if self.is_stale(slot, &change.position) => {
                JobMetrics::add(&self.context.metrics.unapplied_changes, 1);
            }
            ChangeOp::Read | ChangeOp::Write => self.write(slot, change, image),
            ChangeOp::Delete => self.delete(slot, change),
            ChangeOp::Truncate => self.truncate(change.position),
        }
    }

    /// The epoch's changes have all been handed out.
    fn finish(&mut self) -> Result<(), RuntimeError> {
        let mut empty = Vec::new();
        for touch in &self.touches {
            let entry = self.rows.row(touch.slot).entry;
            let is_worth = match entry.kind {
                Kind::Absent => false,
                Kind::Present => true,
                Kind::Deleted => entry.position.is_known(),
            };
            if !is_worth {
                empty.push(touch.slot);
            }
        }
        self.expiries.schedule(&self.rows, &self.touches)?;
        if std::mem::take(&mut self.truncations.now) {
            self.rows.clear_store();
        }
        let touched = self.touches.iter().map(|t| t.slot);
        self.rows.end_epoch(touched, &empty)?;
        self.touches.clear();
        Ok(())
    }
}

impl Operator for Normalization {
    fn push(&mut self, _input: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        let columns = |positions: &[usize]| -> Vec<ArrayRef> {
            let column = |&c: &usize| batch.rows().column(c).clone();
            positions.iter().map(column).collect()
        };
        let (n_rows, marks) = (
            batch.n_rows(),
            MarkColumns::of(batch.rows(), self.n_columns),
        );
        let images = self.images.encode(&columns(&self.image_columns), n_rows)?;
        let mut slots = std::mem::take(&mut self.slots);
        self.rows
            .intern(&columns(&self.normalize.key), n_rows, &mut slots)?;
        for (row, &slot) in slots.iter().enumerate() {
            let change = marks.change(row, batch.times()[row])?;
            if self.merges.concern(slot, change.op) {
                self.merge(&batch, &marks)?;
            }
            self.touch(slot);
            if change.op.has_row() && marks.unavailable.is_valid(row) {
                self.merges.add(row as u32, slot);
            } else {
                self.apply(slot, &change, images.row(row));
            }
        }
        self.merge(&batch, &marks)?;
        self.slots = slots;
        Ok(())
    }

    fn barrier(&mut self, barrier: &Barrier) -> Result<(), RuntimeError> {
        self.expire(barrier.watermark)?;
        self.emission = Some(Emission::new(
            self.truncations.now && self.rows.is_in_store(),
        ));
        Ok(())
    }

    fn pull(&mut self) -> Result<Option<ChangeBatch>, RuntimeError> {
        if let Some(mut emission) = self.emission.take() {
            if let Some(batch) = self.emit(&mut emission)? {
                self.emission = Some(emission);
                return Ok(Some(batch));
            }
            self.finish()?;
        }
        Ok(None)
    }

    fn state(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }
}

impl Stateful for Normalization {
    fn write_changes(&mut self, writes: &mut StateWrites) -> Result<(), RuntimeError> {
        if std::mem::take(&mut self.truncations.is_dirty) {
            let mut value = Vec::new();
            let entry = Entry {
                position: self.truncations.position,
                ..Entry::ABSENT
            };
            entry::encode(&entry, &[], &mut value);
            for &vnode in self.context.vnodes.iter() {
                writes.put(self.truncations.table, vnode, &[], &value);
            }
        }
        self.expiries.write_changes(writes);
        self.rows.write_changes(writes)
    }

    fn dirty_bytes(&self) -> usize {
        self.rows.dirty_bytes()
    }

    fn memory_bytes(&self) -> usize {
        self.rows.memory_bytes() + self.expiries.memory_bytes()
    }
}

/// One record, without its columns.
struct Change {
    op: ChangeOp,
    position: Position,
    time: i64,
}

/// The marks of a batch.
struct MarkColumns {
    ops: Int8Array,
    positions: Int64Array,
    source_times: Int64Array,
    unavailable: BinaryArray,
    rows: Int32Array,
}

impl MarkColumns {
    fn of(rows: &RecordBatch, first: usize) -> Self {
        let column = |mark: usize| rows.column(first + mark);
        Self {
            ops: column(marks::OP).as_primitive().clone(),
            positions: column(marks::POSITION).as_primitive().clone(),
            source_times: column(marks::SOURCE_TIME).as_primitive().clone(),
            unavailable: column(marks::UNAVAILABLE).as_binary().clone(),
            rows: column(marks::ROW).as_primitive().clone(),
        }
    }

    fn change(&self, row: usize, time: i64) -> Result<Change, RuntimeError> {
        let number = self.ops.value(row);
        let op = ChangeOp::of(number).ok_or_else(|| {
            RuntimeError::Internal(format!("a source marks a record with operation {number}"))
        })?;
        let known = |column: &Int64Array| column.is_valid(row).then(|| column.value(row));
        let position = Position {
            log: known(&self.positions),
            time: known(&self.source_times),
        };
        Ok(Change { op, position, time })
    }
}
