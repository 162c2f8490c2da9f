//! The changes of an epoch, handed out in bounded batches: what a TRUNCATE takes out of the store, then key by
//! key the old row against the new one.

use arrow::array::ArrayRef;
use arrow::buffer::ScalarBuffer;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::change::record_batch;

use super::entry::{self, Kind};
use super::rows::StoredKey;
use super::{Normalization, Touch};
use crate::error::RuntimeError;
use crate::operator::MAX_BATCH_ROWS;

/// How far an epoch's changes have been handed out.
pub struct Emission {
    /// The entry of the store at which a TRUNCATE has arrived, while it goes through them.
    sweep: Option<Option<StoredKey>>,
    next_touch: usize,
}

impl Emission {
    /// `sweeps`: whether rows in the store go as well.
    pub fn new(sweeps: bool) -> Self {
        Self {
            sweep: sweeps.then_some(None),
            next_touch: 0,
        }
    }
}

/// A row that comes or goes.
struct Emitted<'a> {
    image: &'a [u8],
    time: i64,
    diff: i64,
}

impl Normalization {
    /// The next batch of the epoch's changes; `None` when there are no more.
    pub(super) fn emit(
        &mut self,
        emission: &mut Emission,
    ) -> Result<Option<ChangeBatch>, RuntimeError> {
        while let Some(after) = emission.sweep.take() {
            let (batch, last) = self.sweep(after.as_ref())?;
            emission.sweep = last.map(Some);
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
        }
        while emission.next_touch < self.touches.len() {
            let first = emission.next_touch;
            let end = self.touches.len().min(first + MAX_BATCH_ROWS / 2);
            emission.next_touch = end;
            let batch = self.net_changes(&self.touches[first..end])?;
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn net_changes(&self, touches: &[Touch]) -> Result<ChangeBatch, RuntimeError> {
        let (mut slots, mut emitted) = (Vec::new(), Vec::new());
        for Touch { slot, old } in touches {
            let new = self.rows.row(*slot);
            let (was, is) = (old.is_present(), new.is_present());
            let (before, after) = (self.rows.image(old.image), self.rows.image(new.image));
            if was && is && before == after {
                continue;
            }
            if was {
                slots.push(*slot);
                emitted.push(Emitted {
                    image: before,
                    time: old.entry.time,
                    diff: -1,
                });
            }
            if is {
                slots.push(*slot);
                emitted.push(Emitted {
                    image: after,
                    time: new.entry.time,
                    diff: 1,
                });
            }
        }
        self.changes(self.rows.key_columns(&slots)?, &emitted)
    }

    /// Rows of the given keys, in the columns of a record.
    fn changes(
        &self,
        keys: Vec<ArrayRef>,
        emitted: &[Emitted<'_>],
    ) -> Result<ChangeBatch, RuntimeError> {
        let images = self.images.decode(emitted.iter().map(|e| e.image))?;
        let mut columns = vec![None; self.n_columns];
        let places = self.normalize.key.iter().chain(&self.image_columns);
        for (&place, column) in places.zip(keys.into_iter().chain(images)) {
            columns[place] = Some(column);
        }
        let columns = columns.into_iter().flatten().collect();
        let rows = record_batch(self.output_schema.clone(), columns, emitted.len())?;
        let times: ScalarBuffer<i64> = emitted.iter().map(|e| e.time).collect();
        let diffs = emitted.iter().map(|e| e.diff).collect();
        Ok(ChangeBatch::new(rows, times, Some(diffs)))
    }

    /// Deletions of rows that only the store has, behind `after`, and where this has arrived; nothing there
    /// when it is through.
    fn sweep(
        &mut self,
        after: Option<&StoredKey>,
    ) -> Result<(ChangeBatch, Option<StoredKey>), RuntimeError> {
        let entries = self.rows.stored_after(after, MAX_BATCH_ROWS)?;
        let last = entries.last().map(|(vnode, key, _)| (*vnode, key.clone()));
        let entries: Vec<_> = entries
            .into_iter()
            .filter(|(_, key, _)| !self.rows.is_deleted(key))
            .collect();
        // A key that memory has is among the touched ones: all of them are.
        let slots = self.rows.recall(
            entries.iter().map(|(_, key, _)| key.as_slice()),
            entries.len(),
        )?;
        let (mut stored, mut emitted) = (Vec::new(), Vec::new());
        for (&slot, (_, _, value)) in slots.iter().zip(&entries) {
            if !self.rows.touch(slot) {
                continue;
            }
            stored.push(slot);
            let (entry, image) = entry::decode(value)?;
            if entry.kind == Kind::Present {
                emitted.push((slot, entry.time, image));
            }
        }
        let gone: Vec<u32> = emitted.iter().map(|(slot, ..)| *slot).collect();
        let rows: Vec<Emitted<'_>> = emitted
            .iter()
            .map(|&(_, time, image)| Emitted {
                image,
                time,
                diff: -1,
            })
            .collect();
        let batch = self.changes(self.rows.key_columns(&gone)?, &rows)?;
        self.rows.forget(&stored);
        Ok((batch, last))
    }
}
