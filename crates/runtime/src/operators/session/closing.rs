//! The answer to a barrier: the sessions whose end its watermark has reached, batch by batch.
//!
//! First come keys that got rows in the epoch, then those that the index of closing times gives, which may have to be
//! read back. What remains of a key is scheduled anew.

use arrow::array::ArrayRef;
use thalweg_dataflow::Watermark;

use super::sessions::{NONE, Sessions};
use crate::error::RuntimeError;
use crate::operator::MAX_BATCH_ROWS;

pub struct Closing {
    watermark: Watermark,
    touched: Vec<u32>,
    next_touched: usize,
    index_is_done: bool,
    /// Keys being answered, and their sessions that have closed, each with its key.
    keys: Vec<u32>,
    closed: Vec<(u32, u32)>,
    next_closed: usize,
}

/// Sessions that have closed, row by row.
pub struct Closed {
    pub starts: Vec<i64>,
    pub ends: Vec<i64>,
    pub keys: Vec<ArrayRef>,
    pub results: Vec<ArrayRef>,
}

impl Sessions {
    pub fn begin_closing(&mut self, watermark: Watermark) -> Closing {
        let touched = std::mem::take(&mut self.touched);
        for &key in &touched {
            self.key_columns.touched[key as usize] = false;
        }
        Closing {
            watermark,
            touched,
            next_touched: 0,
            index_is_done: watermark == Watermark::NONE,
            keys: Vec::new(),
            closed: Vec::new(),
            next_closed: 0,
        }
    }
}

impl Closing {
    pub fn watermark(&self) -> Watermark {
        self.watermark
    }

    /// The next sessions; `None` when all have gone out.
    pub fn next(&mut self, sessions: &mut Sessions) -> Result<Option<Closed>, RuntimeError> {
        loop {
            if self.next_closed < self.closed.len() {
                return self.results(sessions).map(Some);
            }
            self.finish_keys(sessions)?;
            if !self.next_keys(sessions)? {
                return Ok(None);
            }
            self.take_closed(sessions);
        }
    }

    /// The next keys to answer; false where there are none.
    fn next_keys(&mut self, sessions: &mut Sessions) -> Result<bool, RuntimeError> {
        if self.next_touched < self.touched.len() {
            let end = self.touched.len().min(self.next_touched + MAX_BATCH_ROWS);
            self.keys
                .extend_from_slice(&self.touched[self.next_touched..end]);
            self.next_touched = end;
            return Ok(true);
        }
        if self.index_is_done {
            return Ok(false);
        }
        let index = &mut sessions.stored.index;
        let due = index.take_due(self.watermark.nanos(), MAX_BATCH_ROWS)?;
        self.index_is_done = due.len() < MAX_BATCH_ROWS;
        self.keys = sessions.recall(&due)?;
        Ok(true)
    }

    /// Takes the sessions that have closed out of their keys' lists.
    fn take_closed(&mut self, sessions: &mut Sessions) {
        for &key in &self.keys {
            let before = self.closed.len();
            loop {
                let first = sessions.key_columns.first[key as usize];
                if first == NONE {
                    break;
                }
                let end = sessions.open.last[first as usize].saturating_add(sessions.gap);
                if !self.watermark.has_reached(end) {
                    break;
                }
                self.closed.push((key, first));
                let next = sessions.open.next[first as usize];
                sessions.key_columns.first[key as usize] = next;
                if next == NONE {
                    sessions.key_columns.last[key as usize] = NONE;
                }
            }
            if self.closed.len() > before {
                sessions.mark_dirty(key);
            }
        }
    }

    fn results(&mut self, sessions: &mut Sessions) -> Result<Closed, RuntimeError> {
        let end = self.closed.len().min(self.next_closed + MAX_BATCH_ROWS);
        let (keys, slots): (Vec<u32>, Vec<u32>) =
            self.closed[self.next_closed..end].iter().copied().unzip();
        self.next_closed = end;
        let open = &sessions.open;
        let ends = |&s: &u32| open.last[s as usize].saturating_add(sessions.gap);
        Ok(Closed {
            starts: slots.iter().map(|&s| open.start[s as usize]).collect(),
            ends: slots.iter().map(ends).collect(),
            keys: sessions.keys.key_columns(&keys)?,
            results: sessions.accumulators.evaluate(&slots)?,
        })
    }

    /// All closed sessions of these keys have gone out.
    fn finish_keys(&mut self, sessions: &mut Sessions) -> Result<(), RuntimeError> {
        let slots: Vec<u32> = self.closed.drain(..).map(|(_, session)| session).collect();
        self.next_closed = 0;
        sessions.close(&slots);
        sessions.schedule(&self.keys)?;
        sessions.release_empty(&self.keys);
        self.keys.clear();
        Ok(())
    }
}
