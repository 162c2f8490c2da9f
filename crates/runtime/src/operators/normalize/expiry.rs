//! What is given up in time: rows with a time to live of their own (semantics 5.4), and what is remembered of
//! deleted ones.

use std::collections::HashSet;

use thalweg_dataflow::Watermark;

use super::super::OperatorContext;
use super::entry::{Entry, Kind};
use super::rows::{Row, Rows};
use super::{Normalization, Touch};
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::state::StateWrites;
use crate::state::expiry::ExpiryIndex;

/// How long, in event time, a deletion is remembered, ns: a day. A read of a snapshot that comes later than
/// this behind the deletion of its row brings the row back.
const REMEMBERED: i64 = 86_400_000_000_000;

pub struct Expiries {
    rows: Option<Index>,
    deletions: Index,
    /// Where time has come, ns.
    now: i64,
}

struct Index {
    index: ExpiryIndex,
    ttl: i64,
}

impl Expiries {
    pub fn new(ttl: Option<i64>, context: &OperatorContext, first_table: u32) -> Self {
        let index = |table: u32, ttl: i64| Index {
            index: ExpiryIndex::new(
                context.table(first_table + table),
                ttl,
                context.store.clone(),
            ),
            ttl,
        };
        Self {
            rows: ttl.map(|ttl| index(0, ttl)),
            deletions: index(1, REMEMBERED),
            now: i64::MIN,
        }
    }

    pub fn now(&self) -> i64 {
        self.now
    }

    fn index_of(&mut self, kind: Kind) -> Option<&mut Index> {
        match kind {
            Kind::Present => self.rows.as_mut(),
            Kind::Deleted => Some(&mut self.deletions),
            Kind::Absent => None,
        }
    }

    /// Makes entries for the keys that have become what they are in this epoch.
    pub fn schedule(&mut self, rows: &Rows, touches: &[Touch]) -> Result<(), RuntimeError> {
        for kind in [Kind::Present, Kind::Deleted] {
            let Some(index) = self.index_of(kind) else {
                continue;
            };
            let begun: Vec<u32> = touches
                .iter()
                .filter(|t| t.old.entry.kind != kind && is_kind(&rows.row(t.slot), kind))
                .map(|t| t.slot)
                .collect();
            if begun.is_empty() {
                continue;
            }
            let (vnodes, keys) = rows.store_keys(&begun)?;
            for (i, &slot) in begun.iter().enumerate() {
                let since = rows.row(slot).entry.time;
                index.index.schedule(vnodes[i], keys.row(i), since);
            }
        }
        Ok(())
    }

    pub fn write_changes(&mut self, writes: &mut StateWrites) {
        let indexes = self.rows.iter_mut().chain([&mut self.deletions]);
        indexes.for_each(|index| index.index.write_changes(writes));
    }

    pub fn memory_bytes(&self) -> usize {
        let indexes = self.rows.iter().chain([&self.deletions]);
        indexes.map(|index| index.index.memory_bytes()).sum()
    }
}

/// Whether an entry of this kind is kept, and will be asked about when its time comes.
fn is_kind(row: &Row, kind: Kind) -> bool {
    row.entry.kind == kind && (kind == Kind::Present || row.entry.position.is_known())
}

impl Normalization {
    /// Gives up what the watermark has left behind. The end of a bounded input expires nothing.
    pub(super) fn expire(&mut self, watermark: Watermark) -> Result<(), RuntimeError> {
        let Some(now) = watermark.finite() else {
            return Ok(());
        };
        self.expiries.now = now;
        for kind in [Kind::Present, Kind::Deleted] {
            self.expire_kind(kind, now)?;
        }
        Ok(())
    }

    fn expire_kind(&mut self, kind: Kind, now: i64) -> Result<(), RuntimeError> {
        let Some(index) = self.expiries.index_of(kind) else {
            return Ok(());
        };
        let (ttl, due) = (index.ttl, index.index.due(now)?);
        if due.is_empty() {
            return Ok(());
        }
        let slots = self
            .rows
            .recall(due.iter().map(|(_, key)| key.as_slice()), due.len())?;
        let (mut alive, mut n_expired, mut seen) = (Vec::new(), 0, HashSet::new());
        for (key, slot) in due.iter().zip(slots).filter(|(_, slot)| seen.insert(*slot)) {
            self.touch(slot);
            let row = self.rows.row(slot);
            if row.entry.kind != kind {
                continue;
            }
            if row.entry.time == i64::MIN {
                // From before time was known: it counts from now on.
                let entry = Entry {
                    time: now,
                    ..row.entry
                };
                self.rows.put(slot, Row { entry, ..row });
                alive.push((key, now));
            } else if row.entry.time.saturating_add(ttl) < now {
                self.empty(slot);
                n_expired += usize::from(kind == Kind::Present);
            } else {
                alive.push((key, row.entry.time));
            }
        }
        JobMetrics::add(&self.context.metrics.expired_keys, n_expired);
        if let Some(index) = self.expiries.index_of(kind) {
            for ((vnode, key), since) in alive {
                index.index.schedule(*vnode, key, since);
            }
        }
        Ok(())
    }
}
