//! Gaps within an epoch: rows that lie further than the time to live from their group.
//!
//! An epoch's rows of a key count in event-time order (semantics 5.2), but arrive in any order. Rows that are
//! not within the ttl of their group, as far as it is known when they arrive, are gathered in *segments*
//! of their own. At the barrier, group and segments stand in order of time: where the gap between two
//! is longer than the ttl everything before it has expired, otherwise they are one.

use hashbrown::HashMap;

use arrow::array::UInt32Array;
use arrow::datatypes::SchemaRef;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::plan::{Aggregate, AggregateCall};

use super::super::OperatorContext;
use super::groups::Groups;
use super::partial::{Partials, staying};
use crate::aggregate::Accumulators;
use crate::error::RuntimeError;

pub struct Segments {
    calls: Vec<AggregateCall>,
    input: SchemaRef,
    ttl: i64,
    /// Made when the first segment is.
    accumulators: Option<Accumulators>,
    segments: Vec<Segment>,
    of_group: HashMap<u32, Vec<u32>>,
    /// Groups with segments, in the order in which they got their first.
    groups: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Segment {
    low: i64,
    high: i64,
    n_rows: i64,
}

/// A stretch of a key's rows: a segment, or (`None`) the group itself.
struct Stretch {
    low: i64,
    high: i64,
    segment: Option<u32>,
}

impl Segments {
    pub fn new(aggregate: &Aggregate, context: &OperatorContext) -> Result<Self, RuntimeError> {
        Ok(Self {
            calls: aggregate.calls.clone(),
            input: context
                .input_schema
                .clone()
                .expect("an aggregate has an input"),
            ttl: aggregate.ttl.unwrap_or(i64::MAX),
            accumulators: None,
            segments: Vec::new(),
            of_group: HashMap::new(),
            groups: Vec::new(),
        })
    }

    /// Takes the rows `apart` out of a batch (and their slots out of `slots`) into segments; gives the rest.
    pub fn set_aside(
        &mut self,
        batch: ChangeBatch,
        slots: &mut Vec<u32>,
        apart: &[u32],
    ) -> Result<ChangeBatch, RuntimeError> {
        let rows = batch.take(&UInt32Array::from(apart.to_vec()))?;
        let stretch = |i: usize| (rows.times()[i], rows.times()[i], rows.diff(i));
        let ids = self.places(slots, apart, stretch);
        let diffs = rows.diffs().map(|d| d.as_ref());
        self.accumulators()?.update(&ids, rows.rows(), diffs)?;
        let stays = staying(batch.n_rows(), apart, slots);
        Ok(batch.filter(&stays)?)
    }

    /// The same for partial aggregates.
    pub fn set_partials_aside(
        &mut self,
        partials: Partials,
        slots: &mut Vec<u32>,
        apart: &[u32],
    ) -> Result<Partials, RuntimeError> {
        let rows = partials.take(apart)?;
        let ids = self.places(slots, apart, |i| {
            (rows.low[i], rows.high[i], rows.n_rows[i])
        });
        self.accumulators()?.merge(&ids, &rows.state)?;
        let stays = staying(partials.n_rows.len(), apart, slots);
        let stays: Vec<u32> = (0..stays.len() as u32)
            .filter(|&i| stays.value(i as usize))
            .collect();
        partials.take(&stays)
    }

    /// The segments of the rows `apart`, of which `stretch` gives earliest and latest time and number.
    fn places(
        &mut self,
        slots: &[u32],
        apart: &[u32],
        stretch: impl Fn(usize) -> (i64, i64, i64),
    ) -> Vec<u32> {
        let groups = apart.iter().map(|&row| slots[row as usize]).enumerate();
        groups
            .map(|(i, group)| self.place(group, stretch(i)))
            .collect()
    }

    /// With room for every segment.
    fn accumulators(&mut self) -> Result<&mut Accumulators, RuntimeError> {
        let accumulators = match &mut self.accumulators {
            Some(accumulators) => accumulators,
            none => none.insert(Accumulators::new(&self.calls, &self.input)?),
        };
        accumulators.resize(self.segments.len());
        Ok(accumulators)
    }

    /// The segment of a group that rows from `from` to `to` belong to, a new one where there is none.
    fn place(&mut self, group: u32, (from, to, n_rows): (i64, i64, i64)) -> u32 {
        let ids = self.of_group.entry(group).or_insert_with(|| {
            self.groups.push(group);
            Vec::new()
        });
        for &id in ids.iter() {
            let segment = &mut self.segments[id as usize];
            if to >= segment.low.saturating_sub(self.ttl)
                && from <= segment.high.saturating_add(self.ttl)
            {
                segment.low = segment.low.min(from);
                segment.high = segment.high.max(to);
                segment.n_rows += n_rows;
                return id;
            }
        }
        let id = self.segments.len() as u32;
        ids.push(id);
        self.segments.push(Segment {
            low: from,
            high: to,
            n_rows,
        });
        id
    }

    /// Brings groups and their segments together. Gives the groups that expired and began anew.
    pub fn settle(&mut self, groups: &mut Groups) -> Result<Vec<u32>, RuntimeError> {
        let mut restarted = Vec::new();
        for group in std::mem::take(&mut self.groups) {
            let ids = self.of_group.remove(&group).unwrap_or_default();
            if self.settle_group(group, ids, groups)? {
                restarted.push(group);
            }
        }
        if let Some(accumulators) = &mut self.accumulators {
            let all: Vec<u32> = (0..self.segments.len() as u32).collect();
            accumulators.reset(&all);
        }
        self.segments.clear();
        Ok(restarted)
    }

    /// Whether the group expired.
    fn settle_group(
        &mut self,
        group: u32,
        ids: Vec<u32>,
        groups: &mut Groups,
    ) -> Result<bool, RuntimeError> {
        let (low, high) = groups.span(group);
        let mut stretches = vec![Stretch {
            low,
            high,
            segment: None,
        }];
        stretches.extend(ids.into_iter().map(|id| {
            let Segment { low, high, .. } = self.segments[id as usize];
            Stretch {
                low,
                high,
                segment: Some(id),
            }
        }));
        stretches.sort_by_key(|s| s.low);
        let live = after_last_gap(&stretches, self.ttl);
        let expired = live.iter().all(|s| s.segment.is_some());
        if expired {
            let low = live.iter().map(|s| s.low).min().unwrap_or(i64::MAX);
            groups.restart(group, low, i64::MIN);
        }
        for id in live.iter().filter_map(|s| s.segment) {
            let Segment { high, n_rows, .. } = self.segments[id as usize];
            let accumulators = self
                .accumulators
                .as_mut()
                .expect("a segment has accumulators");
            let state = accumulators.state(&[id])?;
            groups.spans().widen(group as usize, high, high);
            groups.merge(&[group], &[n_rows], &state)?;
        }
        Ok(expired)
    }
}

/// The stretches behind the last gap that is longer than `ttl`; given in the order of their beginnings.
fn after_last_gap(stretches: &[Stretch], ttl: i64) -> &[Stretch] {
    let (mut first, mut reached) = (0, i64::MIN);
    for (i, stretch) in stretches.iter().enumerate() {
        if i > 0 && stretch.low > reached.saturating_add(ttl) {
            first = i;
        }
        reached = reached.max(stretch.high);
    }
    &stretches[first..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(spans: &[(i64, i64)], ttl: i64) -> usize {
        let stretches: Vec<Stretch> = spans
            .iter()
            .map(|&(low, high)| Stretch {
                low,
                high,
                segment: None,
            })
            .collect();
        after_last_gap(&stretches, ttl).len()
    }

    #[test]
    fn rule_5_2_only_a_gap_longer_than_the_ttl_begins_a_new_group() {
        assert_eq!(live(&[(0, 10), (20, 30)], 10), 2);
        assert_eq!(live(&[(0, 10), (21, 30)], 10), 1);
        // A later row of the first stretch bridges what its beginning does not.
        assert_eq!(live(&[(0, 25), (5, 6), (30, 40)], 10), 3);
        assert_eq!(live(&[(i64::MIN, 0), (100, 100), (105, 105)], 10), 2);
    }
}
