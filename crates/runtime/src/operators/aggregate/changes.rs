//! The net change of an epoch: old images against new ones.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array, new_empty_array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{self, SortOptions, concat};
use arrow::datatypes::{DataType, SchemaRef};
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::change::record_batch;

use super::groups::Groups;
use crate::error::RuntimeError;
use crate::operator::MAX_BATCH_ROWS;

/// Results that groups had before the epoch touched them.
#[derive(Default)]
pub struct OldImages {
    types: Vec<DataType>,
    /// One column per call, in pieces.
    pieces: Vec<Vec<ArrayRef>>,
    n_images: u32,
    /// Per slot: its image, counting over all pieces; `NONE` where it had no row to show.
    image_of: Vec<u32>,
    slots: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl OldImages {
    pub fn new(types: Vec<DataType>) -> Self {
        Self {
            pieces: vec![Vec::new(); types.len()],
            types,
            ..Self::default()
        }
    }

    pub fn add(&mut self, slots: &[u32], images: Vec<ArrayRef>, n_slots: usize) {
        if self.image_of.len() < n_slots {
            self.image_of.resize(n_slots, NONE);
        }
        for &slot in slots {
            self.image_of[slot as usize] = self.n_images;
            self.n_images += 1;
        }
        self.slots.extend(slots);
        for (pieces, image) in self.pieces.iter_mut().zip(images) {
            pieces.push(image);
        }
    }

    pub fn contains(&self, slot: u32) -> bool {
        self.image(slot) != NONE
    }

    fn image(&self, slot: u32) -> u32 {
        self.image_of.get(slot as usize).copied().unwrap_or(NONE)
    }

    /// Makes one array of every column's pieces.
    fn join(&mut self) -> Result<(), RuntimeError> {
        for (pieces, data_type) in self.pieces.iter_mut().zip(&self.types) {
            let joined = match pieces.as_slice() {
                [] => new_empty_array(data_type),
                [one] => one.clone(),
                many => concat(&many.iter().map(|a| a.as_ref()).collect::<Vec<_>>())?,
            };
            *pieces = vec![joined];
        }
        Ok(())
    }

    fn take(&self, images: &UInt32Array) -> Result<Vec<ArrayRef>, RuntimeError> {
        let column = |pieces: &Vec<ArrayRef>| Ok(compute::take(&pieces[0], images, None)?);
        self.pieces.iter().map(column).collect()
    }

    fn clear(&mut self) {
        self.pieces.iter_mut().for_each(Vec::clear);
        for slot in self.slots.drain(..) {
            self.image_of[slot as usize] = NONE;
        }
        self.n_images = 0;
    }
}

/// The changes of one epoch, handed out in bounded batches: deletions by TTL first.
pub struct Changes {
    touched: Vec<u32>,
    /// Groups whose old image expired; what they have now, if anything, is a new group.
    expired: Vec<u32>,
    expired_set: HashSet<u32>,
    old: OldImages,
    joined: bool,
    next_expired: usize,
    next_touched: usize,
}

impl Changes {
    pub fn new(touched: Vec<u32>, expired: Vec<u32>, old: OldImages) -> Self {
        let expired_set = expired.iter().copied().collect();
        Self {
            touched,
            expired,
            expired_set,
            old,
            joined: false,
            next_expired: 0,
            next_touched: 0,
        }
    }

    pub fn next(
        &mut self,
        groups: &mut Groups,
        schema: &SchemaRef,
    ) -> Result<Option<ChangeBatch>, RuntimeError> {
        if !std::mem::replace(&mut self.joined, true) {
            self.old.join()?;
        }
        if self.next_expired < self.expired.len() {
            let end = self.expired.len().min(self.next_expired + MAX_BATCH_ROWS);
            let slots = self.expired[self.next_expired..end].to_vec();
            self.next_expired = end;
            return self.deletions(groups, schema, &slots).map(Some);
        }
        while self.next_touched < self.touched.len() {
            let end = self
                .touched
                .len()
                .min(self.next_touched + MAX_BATCH_ROWS / 2);
            let slots = self.touched[self.next_touched..end].to_vec();
            self.next_touched = end;
            let batch = self.updates(groups, schema, &slots)?;
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// Ends the epoch: groups that are empty now are given up. Gives the room for old images back.
    pub fn finish(
        mut self,
        groups: &mut Groups,
        is_global: bool,
    ) -> Result<OldImages, RuntimeError> {
        groups.end_epoch(&self.touched, is_global)?;
        self.old.clear();
        Ok(self.old)
    }

    fn deletions(
        &self,
        groups: &mut Groups,
        schema: &SchemaRef,
        slots: &[u32],
    ) -> Result<ChangeBatch, RuntimeError> {
        let images = UInt32Array::from_iter_values(slots.iter().map(|&s| self.old.image(s)));
        let mut columns = groups.key_columns(slots)?;
        columns.extend(self.old.take(&images)?);
        let rows = record_batch(schema.clone(), columns, slots.len())?;
        let diffs: ScalarBuffer<i64> = std::iter::repeat_n(-1, slots.len()).collect();
        Ok(ChangeBatch::new(rows, groups.times(slots), Some(diffs)).with_expiry(true))
    }

    fn updates(
        &self,
        groups: &mut Groups,
        schema: &SchemaRef,
        slots: &[u32],
    ) -> Result<ChangeBatch, RuntimeError> {
        // Positions in `slots` of groups with a row before, and with one now.
        let had = |slot: u32| self.old.contains(slot) && !self.expired_set.contains(&slot);
        let before: Vec<u32> = positions(slots, had);
        let after: Vec<u32> = positions(slots, |slot| groups.is_present(slot));
        let at = |positions: &[u32]| -> Vec<u32> {
            positions.iter().map(|&p| slots[p as usize]).collect()
        };
        let old_images =
            UInt32Array::from_iter_values(at(&before).iter().map(|&s| self.old.image(s)));
        let old = self.old.take(&old_images)?;
        let new = groups.accumulators.evaluate(&at(&after))?;
        let order = net_order(slots.len(), &before, &after, &old, &new)?;
        let keys = groups.key_columns(slots)?;
        let (mut columns, n_old) = (
            Vec::with_capacity(keys.len() + old.len()),
            before.len() as u32,
        );
        let key_rows: UInt32Array = order.iter().map(|c| c.position).collect::<Vec<_>>().into();
        for key in keys {
            columns.push(compute::take(&key, &key_rows, None)?);
        }
        let image_rows: UInt32Array = order
            .iter()
            .map(|c| if c.diff < 0 { c.image } else { n_old + c.image })
            .collect::<Vec<_>>()
            .into();
        for (old, new) in old.iter().zip(&new) {
            columns.push(compute::take(
                &concat(&[old.as_ref(), new.as_ref()])?,
                &image_rows,
                None,
            )?);
        }
        let rows = record_batch(schema.clone(), columns, order.len())?;
        let all_times = groups.times(slots);
        let times = order
            .iter()
            .map(|c| all_times[c.position as usize])
            .collect();
        let diffs = order.iter().map(|c| c.diff).collect();
        Ok(ChangeBatch::new(rows, times, Some(diffs)))
    }
}

/// One change to emit: of which group, with which image, and whether it goes or comes.
struct Change {
    position: u32,
    image: u32,
    diff: i64,
}

fn positions(slots: &[u32], keep: impl Fn(u32) -> bool) -> Vec<u32> {
    slots
        .iter()
        .enumerate()
        .filter(|(_, s)| keep(**s))
        .map(|(i, _)| i as u32)
        .collect()
}

/// What changed, group by group, the old image before the new one. `before` and `after` are ascending
/// positions, `old` and `new` their images.
fn net_order(
    n_groups: usize,
    before: &[u32],
    after: &[u32],
    old: &[ArrayRef],
    new: &[ArrayRef],
) -> Result<Vec<Change>, RuntimeError> {
    let index = |positions: &[u32]| {
        let mut at = vec![NONE; n_groups];
        positions
            .iter()
            .enumerate()
            .for_each(|(i, &p)| at[p as usize] = i as u32);
        at
    };
    let (old_at, new_at) = (index(before), index(after));
    let both: Vec<u32> = (0..n_groups as u32)
        .filter(|&p| old_at[p as usize] != NONE && new_at[p as usize] != NONE)
        .collect();
    let mut changed = vec![true; n_groups];
    let old_rows = UInt32Array::from_iter_values(both.iter().map(|&p| old_at[p as usize]));
    let new_rows = UInt32Array::from_iter_values(both.iter().map(|&p| new_at[p as usize]));
    let differs = any_differs(old, new, &old_rows, &new_rows)?;
    both.iter()
        .zip(differs)
        .for_each(|(&p, differs)| changed[p as usize] = differs);
    let mut order = Vec::with_capacity(before.len() + after.len());
    for p in (0..n_groups).filter(|&p| changed[p]) {
        let position = p as u32;
        if old_at[p] != NONE {
            order.push(Change {
                position,
                image: old_at[p],
                diff: -1,
            });
        }
        if new_at[p] != NONE {
            order.push(Change {
                position,
                image: new_at[p],
                diff: 1,
            });
        }
    }
    Ok(order)
}

/// Per pair of rows, whether any column differs.
fn any_differs(
    old: &[ArrayRef],
    new: &[ArrayRef],
    old_rows: &UInt32Array,
    new_rows: &UInt32Array,
) -> Result<Vec<bool>, RuntimeError> {
    let mut any = vec![false; old_rows.len()];
    for (old, new) in old.iter().zip(new) {
        let (old, new) = (
            compute::take(old, old_rows, None)?,
            compute::take(new, new_rows, None)?,
        );
        for (any, differs) in any.iter_mut().zip(differs(&old, &new)?.values().iter()) {
            *any |= differs;
        }
    }
    Ok(any)
}

fn differs(old: &ArrayRef, new: &ArrayRef) -> Result<BooleanArray, RuntimeError> {
    if !old.data_type().is_nested() {
        return Ok(distinct(&Arc::clone(old), &Arc::clone(new))?);
    }
    let compare = arrow::array::make_comparator(old, new, SortOptions::default())?;
    Ok((0..old.len())
        .map(|i| Some(compare(i, i).is_ne()))
        .collect())
}
