//! Reading a group: its least or greatest value, or all of them.

use std::collections::BTreeMap;

use arrow::array::ArrayRef;

use super::super::extreme::Which;
use super::stored::read_count;
use super::{Multiset, pairs};
use crate::error::RuntimeError;

/// The first byte of the key bytes of null.
const NULL: u8 = 0;

/// The values of a group in the order of their key bytes, and how often it has each.
pub(in crate::aggregate) struct GroupValues {
    pub(in crate::aggregate) columns: Vec<ArrayRef>,
    pub(in crate::aggregate) counts: Vec<i64>,
}

impl Multiset {
    /// The least or greatest non-null value of each group, as a column. For multisets of one column.
    pub(in crate::aggregate) fn extremes(
        &self,
        slots: &[u32],
        which: Which,
    ) -> Result<ArrayRef, RuntimeError> {
        let mut found = Vec::with_capacity(slots.len());
        for &slot in slots {
            found.push(self.extreme(slot, which)?);
        }
        let rows = found
            .iter()
            .map(|bytes| bytes.as_deref().unwrap_or(&[NULL]));
        Ok(self.codec.decode(rows)?.remove(0))
    }

    fn extreme(&self, slot: u32, which: Which) -> Result<Option<Vec<u8>>, RuntimeError> {
        let in_memory = match self.pairs.sorted() {
            Some(_) => self.extreme_in_order(slot, which),
            None => self.extreme_in_list(slot, which)?,
        };
        if self.groups[slot as usize].is_complete {
            return Ok(in_memory);
        }
        let in_store = self.extreme_in_store(slot, which)?;
        Ok(match which {
            // A value that is not there is greater than none, and less than all.
            Which::Max => in_memory.max(in_store),
            Which::Min => match (in_memory, in_store) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        })
    }

    fn counts(&self, id: u32) -> bool {
        let pair = self.pairs.get(id);
        pair.is_known && pair.count > 0 && !pair.is_null
    }

    fn extreme_in_order(&self, slot: u32, which: Which) -> Option<Vec<u8>> {
        let sorted = self.pairs.sorted()?;
        let mut range = sorted.range((slot, Box::default())..(slot + 1, Box::default()));
        let is_value = |(_, id): &(&(u32, Box<[u8]>), &u32)| self.counts(**id);
        let found = match which {
            Which::Min => range.find(is_value),
            Which::Max => range.rfind(is_value),
        };
        found.map(|((_, bytes), _)| bytes.to_vec())
    }

    fn extreme_in_list(&self, slot: u32, which: Which) -> Result<Option<Vec<u8>>, RuntimeError> {
        let ids = self.pairs_of(slot).filter(|&id| self.counts(id));
        let value_ids: Vec<u32> = ids.map(|id| self.pairs.get(id).value).collect();
        let rows = self.values.key_rows(&value_ids)?;
        let found = match which {
            Which::Min => rows.iter().min(),
            Which::Max => rows.iter().max(),
        };
        Ok(found.map(<[u8]>::to_vec))
    }

    /// The extreme among the values that are in the store only.
    fn extreme_in_store(&self, slot: u32, which: Which) -> Result<Option<Vec<u8>>, RuntimeError> {
        let (Some(store), Some(sorted)) = (&self.store, self.pairs.sorted()) else {
            return Ok(None);
        };
        let key = self.groups[slot as usize]
            .key
            .as_ref()
            .expect("an incomplete group is in the store");
        let mut scan = store.store.scan(store.table, key[0], &key[1..]);
        let mut entry = match which {
            Which::Min => scan.advance()?,
            Which::Max => scan.last()?,
        };
        while let Some(found) = entry {
            let value = &found.key[key.len() - 1..];
            // Pairs that are not known hold no change yet: the store is right about them.
            let in_memory = sorted.get(&(slot, value.into()));
            let is_overruled = in_memory.is_some_and(|&id| self.pairs.get(id).is_known);
            if value.first() != Some(&NULL) && !is_overruled {
                return Ok(Some(value.to_vec()));
            }
            entry = match which {
                Which::Min => scan.advance()?,
                Which::Max => scan.previous()?,
            };
        }
        Ok(None)
    }

    /// The live pairs of a group, in no order.
    pub(super) fn pairs_of(&self, slot: u32) -> impl Iterator<Item = u32> {
        let first = self.groups[slot as usize].first;
        let step = |&id: &u32| Some(self.pairs.get(id).next).filter(|&next| next != pairs::NONE);
        std::iter::successors(Some(first).filter(|&id| id != pairs::NONE), step)
            .filter(|&id| !self.pairs.get(id).is_dead())
    }

    /// All values of a group.
    pub(in crate::aggregate) fn group(&self, slot: u32) -> Result<GroupValues, RuntimeError> {
        let ids: Vec<u32> = self
            .pairs_of(slot)
            .filter(|&id| self.pairs.get(id).is_known)
            .collect();
        let value_ids: Vec<u32> = ids.iter().map(|&id| self.pairs.get(id).value).collect();
        let rows = self.values.key_rows(&value_ids)?;
        let counts = ids.iter().map(|&id| self.pairs.get(id).count);
        let mut entries: BTreeMap<&[u8], i64> = rows.iter().zip(counts).collect();
        let stored = match self.groups[slot as usize].is_complete {
            true => Vec::new(),
            false => self.stored_values(slot)?,
        };
        for (value, count) in &stored {
            entries.entry(value).or_insert(*count);
        }
        entries.retain(|_, count| *count > 0);
        let columns = self.codec.decode(entries.keys().copied())?;
        Ok(GroupValues {
            columns,
            counts: entries.into_values().collect(),
        })
    }

    fn stored_values(&self, slot: u32) -> Result<Vec<(Vec<u8>, i64)>, RuntimeError> {
        let Some(store) = &self.store else {
            return Ok(Vec::new());
        };
        let key = self.groups[slot as usize]
            .key
            .as_ref()
            .expect("an incomplete group is in the store");
        let mut scan = store.store.scan(store.table, key[0], &key[1..]);
        let mut values = Vec::new();
        while let Some(entry) = scan.advance()? {
            values.push((
                entry.key[key.len() - 1..].to_vec(),
                read_count(entry.value)?,
            ));
        }
        Ok(values)
    }
}
