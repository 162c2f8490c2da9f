//! When groups were seen: the span of their rows' event times, against which the time to live is measured.

use arrow::buffer::ScalarBuffer;
use thalweg_dataflow::time::TIMELESS;

/// By slot. `low` and `high` of rows are one and the same time; those of a partial aggregate span its rows,
/// none of which lies further than the ttl from the others.
#[derive(Default)]
pub struct Spans {
    /// Earliest row of the epoch that began the group; `i64::MIN` once an epoch has passed, `i64::MAX`
    /// before its first row.
    pub low: Vec<i64>,
    /// Last seen, ns; `i64::MIN` before the first row.
    pub high: Vec<i64>,
}

impl Spans {
    pub fn resize(&mut self, n_slots: usize) {
        self.low.resize(n_slots, i64::MAX);
        self.high.resize(n_slots, i64::MIN);
    }

    pub fn reset(&mut self, slot: usize) {
        (self.low[slot], self.high[slot]) = (i64::MAX, i64::MIN);
    }

    pub fn clear(&mut self) {
        self.low.clear();
        self.high.clear();
    }

    pub fn of(&self, slots: &[u32]) -> (ScalarBuffer<i64>, ScalarBuffer<i64>) {
        let pick = |column: &Vec<i64>| slots.iter().map(|&s| column[s as usize]).collect();
        (pick(&self.low), pick(&self.high))
    }

    /// Notes when groups were seen, where a gap begins no new group.
    pub fn see_all(&mut self, slots: &[u32], lows: &[i64], highs: &[i64]) {
        for ((&slot, &from), &to) in slots.iter().zip(lows).zip(highs) {
            self.widen(slot as usize, from, to);
        }
    }

    /// The group has rows from `from` to `to`.
    pub fn widen(&mut self, slot: usize, from: i64, to: i64) {
        self.high[slot] = self.high[slot].max(to);
        if self.low[slot] != i64::MIN {
            self.low[slot] = self.low[slot].min(from);
        }
    }

    /// Notes when groups were seen, and gives the rows that lie further than `ttl` from their group as it is so
    /// far: whether they belong to it is known only when the epoch's rows are all there.
    pub fn see(&mut self, slots: &[u32], lows: &[i64], highs: &[i64], ttl: i64) -> Vec<u32> {
        let mut apart = Vec::new();
        for (row, (&slot, (&from, &to))) in slots.iter().zip(lows.iter().zip(highs)).enumerate() {
            let slot = slot as usize;
            let (low, high) = (self.low[slot], self.high[slot]);
            if high == i64::MIN {
                (self.low[slot], self.high[slot]) = (from, to);
            } else if to == TIMELESS || high == TIMELESS {
                // Neither old nor new: no gap lies before it or after it.
                self.high[slot] = TIMELESS;
            } else if from > high.saturating_add(ttl)
                || (low != i64::MIN && to < low.saturating_sub(ttl))
            {
                apart.push(row as u32);
            } else {
                self.widen(slot, from, to);
            }
        }
        apart
    }
}
