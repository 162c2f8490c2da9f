//! The open sessions of every key: a cache over the state store.
//!
//! Keys have slots, and sessions have slots of their own, by which accumulators are addressed. The sessions of a key
//! hang together as a list in the order of time, disjoint and at least the gap apart. A list is walked once a
//! batch at most, and not at all by rows that come after everything else.
//!
//! A key is *clean* when the store has its sessions as they are; only clean ones are dropped from memory, all
//! sessions of a key at once. A key whose sessions have all closed goes, from memory when the store has
//! heard of it.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::plan::WindowAggregate;

use super::super::OperatorContext;
use super::runs::{Run, runs};
use super::stored::Stored;
use crate::aggregate::Accumulators;
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::state::KeyInterner;

/// No session.
pub const NONE: u32 = u32::MAX;

/// The key has no entry in the index of closing times.
pub const UNSCHEDULED: i64 = i64::MAX;

/// Rough size of a key's entry in the store, for deciding when to commit.
const DIRTY_BYTES_PER_KEY: usize = 128;

pub struct Sessions {
    pub(super) gap: i64,
    pub(super) keys: KeyInterner,
    pub(super) key_columns: KeyColumns,
    pub(super) open: OpenSessions,
    pub(super) accumulators: Accumulators,
    /// Keys that got rows in this epoch.
    pub(super) touched: Vec<u32>,
    pub(super) dirty: Vec<u32>,
    pub(super) stored: Stored,
    /// Something was dropped from memory, so that a key that is not there may be in the store.
    pub(super) may_be_stored: bool,
    memory_budget: usize,
    slots: Vec<u32>,
    new: Vec<u32>,
    metrics: Arc<JobMetrics>,
}

/// What is known of each key.
#[derive(Default)]
pub(super) struct KeyColumns {
    /// The earliest session, and the latest.
    pub first: Vec<u32>,
    pub last: Vec<u32>,
    /// The deadline under which the index has the key, at or before the end of its earliest session.
    pub scheduled: Vec<i64>,
    pub touched: Vec<bool>,
    pub dirty: Vec<bool>,
    /// The store has an entry for the key, up to date or not.
    pub stored: Vec<bool>,
}

impl KeyColumns {
    fn resize(&mut self, n: usize) {
        self.first.resize(n, NONE);
        self.last.resize(n, NONE);
        self.scheduled.resize(n, UNSCHEDULED);
        self.touched.resize(n, false);
        self.dirty.resize(n, false);
        self.stored.resize(n, false);
    }

    pub fn reset(&mut self, key: u32) {
        let key = key as usize;
        (self.first[key], self.last[key]) = (NONE, NONE);
        self.scheduled[key] = UNSCHEDULED;
        (self.touched[key], self.dirty[key], self.stored[key]) = (false, false, false);
    }

    fn memory_bytes(&self) -> usize {
        self.first.capacity() * 8 + self.scheduled.capacity() * 8 + self.touched.capacity() * 3
    }
}

/// Sessions by slot.
#[derive(Default)]
pub(super) struct OpenSessions {
    /// Event times of first and last row, ns.
    pub start: Vec<i64>,
    pub last: Vec<i64>,
    /// The next session of the key.
    pub next: Vec<u32>,
    free: Vec<u32>,
}

impl OpenSessions {
    pub fn open(&mut self, start: i64, last: i64, next: u32) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                let i = slot as usize;
                (self.start[i], self.last[i], self.next[i]) = (start, last, next);
                slot
            }
            None => {
                self.start.push(start);
                self.last.push(last);
                self.next.push(next);
                u32::try_from(self.start.len() - 1).expect("at most 2^32 sessions in memory")
            }
        }
    }

    /// Whether this is a session, and begins before `end`.
    fn begins_before(&self, session: u32, end: i64) -> bool {
        session != NONE && self.start[session as usize] < end
    }

    pub fn release(&mut self, slots: &[u32]) {
        self.free.extend(slots);
    }

    fn n_slots(&self) -> usize {
        self.start.len()
    }

    fn memory_bytes(&self) -> usize {
        self.start.capacity() * 20 + self.free.capacity() * 4
    }
}

impl Sessions {
    pub fn new(
        gap: i64,
        aggregate: &WindowAggregate,
        context: &OperatorContext,
    ) -> Result<Self, RuntimeError> {
        let input = context
            .input_schema
            .as_ref()
            .expect("an aggregate has an input");
        let key_types: Vec<DataType> = aggregate
            .keys
            .iter()
            .map(|&k| input.field(k).data_type().clone())
            .collect();
        let accumulators = Accumulators::new(&aggregate.calls, input)?;
        Ok(Self {
            gap,
            keys: KeyInterner::new(key_types)?,
            key_columns: KeyColumns::default(),
            open: OpenSessions::default(),
            stored: Stored::new(gap, accumulators.state_fields(), context)?,
            accumulators,
            touched: Vec::new(),
            dirty: Vec::new(),
            may_be_stored: false,
            memory_budget: context.memory_bytes,
            slots: Vec::new(),
            new: Vec::new(),
            metrics: context.metrics.clone(),
        })
    }

    /// Adds rows, none of which is late.
    pub fn add(&mut self, keys: &[ArrayRef], batch: &ChangeBatch) -> Result<(), RuntimeError> {
        let mut slots = std::mem::take(&mut self.slots);
        self.intern(keys, batch.n_rows(), &mut slots)?;
        let (runs, run_of) = runs(&slots, batch.times(), self.gap);
        let mut bridged = Bridged::default();
        let mut session_of = Vec::with_capacity(runs.len());
        let mut before: Option<(u32, u32)> = None;
        for run in &runs {
            // The run before is earlier, and its session too, unless it is the same.
            let from = before.filter(|(key, _)| *key == run.key);
            let session = self.place(run, from.map(|(_, session)| session), &mut bridged);
            before = Some((run.key, session));
            session_of.push(session);
        }
        self.accumulators.resize(self.open.n_slots());
        slots
            .iter_mut()
            .zip(run_of)
            .for_each(|(slot, run)| *slot = session_of[run as usize]);
        let diffs = batch.diffs().map(|d| d.as_ref());
        self.accumulators.update(&slots, batch.rows(), diffs)?;
        self.slots = slots;
        self.merge(&bridged)
    }

    /// The slots of these keys; what was dropped from memory is read back.
    pub(super) fn intern(
        &mut self,
        keys: &[ArrayRef],
        n_rows: usize,
        slots: &mut Vec<u32>,
    ) -> Result<(), RuntimeError> {
        let mut new = std::mem::take(&mut self.new);
        new.clear();
        self.keys.intern(keys, n_rows, slots, &mut new)?;
        self.key_columns.resize(self.keys.n_slots());
        if self.may_be_stored {
            self.read(&new)?;
        }
        self.new = new;
        Ok(())
    }

    /// The session of a run: a new one, or the first of those that it overlaps, which swallows the others. `from`: a
    /// session of the key that no session to be found lies before.
    fn place(&mut self, run: &Run, from: Option<u32>, bridged: &mut Bridged) -> u32 {
        self.touch(run.key);
        let (gap, open) = (self.gap, &mut self.open);
        let key = run.key as usize;
        let latest = self.key_columns.last[key];
        let is_last = latest != NONE && open.last[latest as usize].saturating_add(gap) <= run.start;
        let (mut before, mut at) = match (is_last, from) {
            (true, _) => (latest, NONE),
            (false, Some(from)) => (NONE, from),
            (false, None) => (NONE, self.key_columns.first[key]),
        };
        while at != NONE && open.last[at as usize].saturating_add(gap) <= run.start {
            (before, at) = (at, open.next[at as usize]);
        }
        let end = run.last.saturating_add(gap);
        if !open.begins_before(at, end) {
            let opened = open.open(run.start, run.last, at);
            match before {
                NONE => self.key_columns.first[key] = opened,
                before => open.next[before as usize] = opened,
            }
            if at == NONE {
                self.key_columns.last[key] = opened;
            }
            return opened;
        }
        let i = at as usize;
        open.start[i] = open.start[i].min(run.start);
        open.last[i] = open.last[i].max(run.last);
        loop {
            let other = open.next[i];
            if !open.begins_before(other, end) {
                if other == NONE {
                    self.key_columns.last[key] = at;
                }
                return at;
            }
            open.last[i] = open.last[i].max(open.last[other as usize]);
            open.next[i] = open.next[other as usize];
            bridged.into.push(at);
            bridged.from.push(other);
        }
    }

    fn touch(&mut self, key: u32) {
        if !std::mem::replace(&mut self.key_columns.touched[key as usize], true) {
            self.touched.push(key);
        }
        self.mark_dirty(key);
    }

    pub(super) fn mark_dirty(&mut self, key: u32) {
        if !std::mem::replace(&mut self.key_columns.dirty[key as usize], true) {
            self.dirty.push(key);
        }
    }

    /// Merges sessions that a row has bridged. None of those that go has rows of the batch that bridged them: runs
    /// come in the order of time, and a session that is bridged begins after the run before.
    fn merge(&mut self, bridged: &Bridged) -> Result<(), RuntimeError> {
        if bridged.into.is_empty() {
            return Ok(());
        }
        let state = self.accumulators.state(&bridged.from)?;
        self.accumulators.merge(&bridged.into, &state)?;
        self.close(&bridged.from);
        Ok(())
    }

    /// Gives the slots of sessions up that are in no list any more.
    pub(super) fn close(&mut self, sessions: &[u32]) {
        self.accumulators.reset(sessions);
        self.open.release(sessions);
    }

    /// Gives keys without sessions up. Those that the store has are kept until it has heard of it.
    pub(super) fn release_empty(&mut self, keys: &[u32]) {
        let (mut gone, columns) = (Vec::new(), &mut self.key_columns);
        for &key in keys {
            if columns.first[key as usize] == NONE && !columns.stored[key as usize] {
                gone.push(key);
            }
        }
        gone.iter().for_each(|&key| columns.reset(key));
        self.keys.remove(&gone);
    }

    /// Ends the epoch: keys whose deletion is in the store go, and what memory does not hold.
    pub fn end_epoch(&mut self) -> Result<(), RuntimeError> {
        self.release_deleted();
        if self.live_bytes() <= self.memory_budget {
            return Ok(());
        }
        let mut clean = self.keys.taken_slots();
        let columns = &self.key_columns;
        clean.retain(|&key| {
            let key = key as usize;
            columns.stored[key] && !columns.dirty[key] && columns.first[key] != NONE
        });
        if clean.is_empty() || clean.len() < self.keys.n_slots() / 16 {
            return Ok(());
        }
        let mut sessions = Vec::with_capacity(clean.len());
        for &key in &clean {
            sessions.extend(self.sessions_of(key));
            self.key_columns.reset(key);
        }
        self.may_be_stored = true;
        JobMetrics::add(&self.metrics.evicted_keys, clean.len());
        self.close(&sessions);
        self.keys.remove(&clean);
        Ok(())
    }

    /// In the order of time.
    pub(super) fn sessions_of(&self, key: u32) -> impl Iterator<Item = u32> + '_ {
        let first = Some(self.key_columns.first[key as usize]).filter(|&s| s != NONE);
        std::iter::successors(first, move |&s| {
            Some(self.open.next[s as usize]).filter(|&s| s != NONE)
        })
    }

    /// Bytes that the keys in memory account for; what dropped ones have left free is used again.
    fn live_bytes(&self) -> usize {
        self.memory_bytes() / self.keys.n_slots().max(1) * self.keys.len()
    }

    pub fn dirty_bytes(&self) -> usize {
        let mean = self.memory_bytes() / self.keys.n_slots().max(1) / 2;
        self.dirty.len() * DIRTY_BYTES_PER_KEY.max(mean) + self.stored.index_write_bytes()
    }

    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
            + self.key_columns.memory_bytes()
            + self.open.memory_bytes()
            + self.accumulators.memory_bytes()
            + self.stored.memory_bytes()
    }
}

/// Sessions that rows have bridged: each of `from` goes into the one of `into`.
#[derive(Default)]
struct Bridged {
    into: Vec<u32>,
    from: Vec<u32>,
}
