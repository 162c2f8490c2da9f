//! The same with the values in a store, groups that come and go, and commits in between.

use super::*;
use crate::state::{CommitRecord, KeyInterner, StateStore, StateWrites, TableId};
use arrow::array::Int64Array;

/// An updating aggregation in small: groups with keys, a table of their state, and commits that reach the
/// store one epoch late.
struct Operator {
    run: Run,
    keys: KeyInterner,
    /// The state that was committed of each group, by key.
    committed: Vec<Option<Vec<ArrayRef>>>,
    store: StateStore,
    _dir: tempfile::TempDir,
    handed_over: Option<StateWrites>,
    epoch: u64,
    /// Slot of each key (the model's slot) while it is in memory.
    slots: Vec<Option<u32>>,
    dirty: Vec<bool>,
}

impl Operator {
    fn new(seed: u64, calls: &[AggregateCall]) -> Self {
        let mut run = Run::new(seed, calls);
        let dir = tempfile::tempdir().unwrap();
        let store = StateStore::open(dir.path()).unwrap();
        let budget = [0, 3000, usize::MAX][run.rng.random_range(0..3)];
        run.accumulators = Accumulators::new(&run.calls, &model::schema())
            .unwrap()
            .with_store(
                &store,
                |i| TableId(10 + i as u32),
                budget,
                Overdrawn::Refuse,
            );
        Self {
            run,
            keys: KeyInterner::new([DataType::Int64]).unwrap(),
            committed: vec![None; N_SLOTS],
            store,
            _dir: dir,
            handed_over: None,
            epoch: 0,
            slots: vec![None; N_SLOTS],
            dirty: vec![false; N_SLOTS],
        }
    }

    /// The slot of a key, read back where it was forgotten.
    fn slot(&mut self, key: usize) -> u32 {
        if let Some(slot) = self.slots[key] {
            return slot;
        }
        let (mut slots, mut new) = (vec![], vec![]);
        let column: ArrayRef = Arc::new(Int64Array::from(vec![key as i64]));
        self.keys
            .intern(&[column], 1, &mut slots, &mut new)
            .unwrap();
        assert_eq!(slots, new);
        self.run.accumulators.resize(self.keys.n_slots());
        if let Some(state) = &self.committed[key] {
            self.run
                .accumulators
                .restore(&slots, &self.keys, state)
                .unwrap();
        }
        self.slots[key] = Some(slots[0]);
        slots[0]
    }

    fn epoch(&mut self) {
        for _ in 0..self.run.rng.random_range(1..3) {
            let changes = self.run.changes(true);
            let rows = self.run.model.rows(changes.iter().map(|c| c.1));
            let slots: Vec<u32> = changes.iter().map(|c| self.slot(c.0 as usize)).collect();
            let diffs: Vec<i64> = changes.iter().map(|c| c.2).collect();
            changes.iter().for_each(|c| self.dirty[c.0 as usize] = true);
            self.run
                .accumulators
                .update(&slots, &rows, Some(&diffs))
                .unwrap();
        }
        self.arrive();
        assert_eq!(self.run.accumulators.settle().unwrap(), 0);
        self.check();
    }

    /// The commit before is in the store by the time of the barrier.
    fn arrive(&mut self) {
        if let Some(writes) = self.handed_over.take() {
            self.epoch += 1;
            let record = CommitRecord {
                epoch: self.epoch,
                splits: vec![],
            };
            self.store.commit("test", writes, &record).unwrap();
        }
    }

    fn check(&mut self) {
        let slots: Vec<u32> = (0..N_SLOTS).map(|key| self.slot(key)).collect();
        let found = self.run.accumulators.evaluate(&slots).unwrap();
        self.run.model.check(&self.run.calls, &found, self.run.seed);
    }

    fn commit(&mut self) {
        let mut writes = StateWrites::default();
        for key in 0..N_SLOTS {
            if let Some(slot) = self.slots[key].filter(|_| std::mem::take(&mut self.dirty[key])) {
                self.committed[key] = Some(self.run.accumulators.state(&[slot]).unwrap());
            }
        }
        self.run
            .accumulators
            .write_changes(&self.keys, &mut writes)
            .unwrap();
        assert_eq!(self.run.accumulators.dirty_bytes(), 0);
        self.handed_over = Some(writes);
    }

    /// Evicts what is clean. Only at a barrier, before the next commit is handed over.
    fn forget_some(&mut self) {
        for key in 0..N_SLOTS {
            let clean = !self.dirty[key] && self.committed[key].is_some();
            if let Some(slot) = self.slots[key].filter(|_| clean && self.run.rng.random_bool(0.5)) {
                self.run.accumulators.forget(&[slot]);
                self.keys.remove(&[slot]);
                self.slots[key] = None;
            }
        }
    }

    /// A group expires, or is found empty and given up.
    fn give_up(&mut self, key: usize) {
        if let Some(slot) = self.slots[key] {
            self.run.accumulators.reset(&[slot]);
            self.run.model.clear(key);
            if self.run.rng.random_bool(0.5) {
                self.keys.remove(&[slot]);
                self.slots[key] = None;
                self.committed[key] = None;
            } else {
                self.dirty[key] = true;
            }
        }
    }

    fn give_some_up(&mut self) {
        for key in 0..N_SLOTS {
            if self.run.model.n_rows(key) == 0 || self.run.rng.random_bool(0.1) {
                self.give_up(key);
            }
        }
    }
}

#[test]
fn values_in_the_store_give_the_same_answers() {
    let calls = multiset_calls();
    for seed in 3000..3060 {
        let mut operator = Operator::new(seed, &calls);
        for _ in 0..12 {
            operator.epoch();
            if operator.run.rng.random_bool(0.5) {
                operator.forget_some();
            }
            if operator.run.rng.random_bool(0.4) {
                operator.give_some_up();
            }
            if operator.run.rng.random_bool(0.6) {
                operator.commit();
            }
        }
    }
}

#[test]
fn rule_5_5_groups_that_were_given_up_leave_the_store() {
    let calls = multiset_calls();
    for seed in 4000..4030 {
        let mut operator = Operator::new(seed, &calls);
        for _ in 0..4 {
            operator.epoch();
            operator.commit();
        }
        operator.arrive();
        (0..N_SLOTS).for_each(|key| operator.give_up(key));
        operator.commit();
        operator.arrive();
        for table in 0..operator.run.accumulators.n_tables() {
            let mut left = operator.store.scan_table(TableId(10 + table as u32));
            assert!(left.advance().unwrap().is_none(), "seed {seed}");
        }
    }
}

#[test]
fn rule_5_3_a_change_whose_row_has_expired_is_dropped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let store = StateStore::open(dir.path()).unwrap();
    let call = distinct(f::count::count_udaf(), ORDER);
    let mut accumulators = Accumulators::new(&[call], &model::schema())
        .unwrap()
        .with_store(
            &store,
            |i| TableId(10 + i as u32),
            usize::MAX,
            Overdrawn::Drop,
        );
    accumulators.resize(1);
    let rows = pool(&mut StdRng::seed_from_u64(1)).slice(0, 2);
    accumulators.update(&[0, 0], &rows, Some(&[-1, 1])).unwrap();
    assert_eq!(accumulators.settle().unwrap(), 1);
    let found = accumulators.evaluate(&[0]).unwrap().remove(0);
    assert_eq!(&found, &(Arc::new(Int64Array::from(vec![1])) as ArrayRef));
}
