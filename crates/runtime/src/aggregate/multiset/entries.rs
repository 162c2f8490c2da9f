//! A whole multiset as bytes, for groups that live in memory: windows, and partial aggregates.
//!
//! Per group: for each value the length of its key bytes as a varint, the key bytes, and its count as a
//! varint with the sign in the lowest bit. Counts may be negative here: what one accumulator has too
//! little of, another one that it is merged with may have.

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder};

use super::Multiset;
use super::stored::corrupt;
use crate::error::RuntimeError;
use crate::state::values::{put_varint, read_varint};

impl Multiset {
    /// The entries of each group, changes that are not settled included. Null for groups of which the store
    /// has some.
    pub(in crate::aggregate) fn entries(&self, slots: &[u32]) -> Result<BinaryArray, RuntimeError> {
        let mut column = BinaryBuilder::new();
        let mut bytes = Vec::new();
        for &slot in slots {
            if self.store.is_some() {
                column.append_null();
                continue;
            }
            bytes.clear();
            let ids: Vec<u32> = self.pairs_of(slot).collect();
            let value_ids: Vec<u32> = ids.iter().map(|&id| self.pairs.get(id).value).collect();
            let values = self.values.key_rows(&value_ids)?;
            for (&id, value) in ids.iter().zip(values.iter()) {
                let pair = self.pairs.get(id);
                let count = pair.count + pair.diff;
                if count != 0 {
                    put_varint(&mut bytes, value.len());
                    bytes.extend_from_slice(value);
                    put_varint(&mut bytes, zigzag(count));
                }
            }
            column.append_value(&bytes);
        }
        Ok(column.finish())
    }

    /// Adds entries as changes. Groups with a null get none.
    pub(in crate::aggregate) fn merge_entries(
        &mut self,
        slots: &[u32],
        entries: &ArrayRef,
    ) -> Result<(), RuntimeError> {
        let entries = entries.as_binary::<i32>();
        let (mut to, mut values, mut diffs) = (Vec::new(), Vec::new(), Vec::new());
        for (row, &slot) in slots
            .iter()
            .enumerate()
            .filter(|(row, _)| entries.is_valid(*row))
        {
            let mut rest = entries.value(row);
            while !rest.is_empty() {
                let (value, count) = read_entry(&mut rest)?;
                to.push(slot);
                values.push(value);
                diffs.push(count);
            }
        }
        let columns = self.codec.decode(values)?;
        self.add(&to, &columns, Some(&diffs))
    }
}

fn read_entry<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], i64), RuntimeError> {
    let broken = |e: crate::state::KeyError| corrupt(e.to_string());
    let len = read_varint(rest).map_err(broken)?;
    let (value, after) = rest
        .split_at_checked(len)
        .ok_or_else(|| corrupt("an entry that ends early"))?;
    *rest = after;
    Ok((value, unzigzag(read_varint(rest).map_err(broken)?)))
}

fn zigzag(n: i64) -> usize {
    (n << 1 ^ n >> 63) as usize
}

fn unzigzag(n: usize) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}
