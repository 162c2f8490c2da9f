//! The partial phase of an updating aggregation: brings the rows that a subtask has of a key in an epoch
//! together before the exchange, so that a hot key costs the exchange one row an epoch and not one per
//! input row.
//!
//! Its input has no retractions. Nothing is kept across barriers. Where rows hardly share keys, looking keys
//! up twice would only cost: then every row goes on as a partial aggregate of its own, which takes no look-up.
//! What the final phase makes of partial aggregates does not depend on how rows were brought together.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute;
use arrow::datatypes::{Field, Int64Type, Schema, SchemaRef};
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::plan::{Aggregate, AggregateState};

use super::super::OperatorContext;
use super::spans::Spans;
use crate::aggregate::Accumulators;
use crate::error::RuntimeError;
use crate::operator::{Barrier, MAX_BATCH_ROWS, Operator, Stateful};
use crate::state::KeyInterner;

/// After so many rows it is known whether they share keys.
const SAMPLE_ROWS: usize = 1 << 15;

/// So many rows go on singly before it is tried again.
const SINGLE_ROWS: usize = 1 << 20;

pub struct PartialAggregation {
    keys: Vec<usize>,
    ttl: Option<i64>,
    schema: SchemaRef,
    interner: KeyInterner,
    accumulators: Accumulators,
    /// For rows that go on singly.
    singles: Accumulators,
    spans: Spans,
    n_rows: Vec<i64>,
    /// Rows that the groups in memory stand for.
    n_gathered: usize,
    /// Whether every call can be given a group per row cheaply.
    may_pass: bool,
    /// Rows that still go on singly.
    passing: usize,
    memory_budget: usize,
    ready: VecDeque<ChangeBatch>,
    /// The next group to hand out.
    flushing: Option<usize>,
    slots: Vec<u32>,
    new: Vec<u32>,
}

impl PartialAggregation {
    pub fn new(aggregate: &Aggregate, context: OperatorContext) -> Result<Self, RuntimeError> {
        let input = context
            .input_schema
            .as_ref()
            .expect("an aggregate has an input");
        let accumulators = Accumulators::new(&aggregate.calls, input)?;
        let key_types: Vec<_> = aggregate
            .keys
            .iter()
            .map(|&k| input.field(k).data_type().clone())
            .collect();
        let state = accumulators.state_fields().into_iter().map(Arc::new);
        let planned = context.output_schema.fields().iter().cloned();
        let boxed = |a: &AggregateState| matches!(a, AggregateState::Accumulator);
        Ok(Self {
            keys: aggregate.keys.clone(),
            ttl: aggregate.ttl.filter(|_| !aggregate.keys.is_empty()),
            schema: Arc::new(Schema::new(
                planned.chain(state).collect::<Vec<Arc<Field>>>(),
            )),
            interner: KeyInterner::new(key_types)?,
            accumulators,
            singles: Accumulators::new(&aggregate.calls, input)?,
            spans: Spans::default(),
            n_rows: Vec::new(),
            n_gathered: 0,
            may_pass: !aggregate.calls.iter().any(|call| boxed(&call.state)),
            passing: 0,
            memory_budget: context.memory_bytes,
            ready: VecDeque::new(),
            flushing: None,
            slots: Vec::new(),
            new: Vec::new(),
        })
    }

    fn key_columns(&self, batch: &ChangeBatch) -> Vec<ArrayRef> {
        let column = |&k: &usize| batch.rows().column(k).clone();
        self.keys.iter().map(column).collect()
    }

    /// Every row as a partial aggregate of its own.
    fn singly(&mut self, batch: &ChangeBatch) -> Result<ChangeBatch, RuntimeError> {
        let n = batch.n_rows();
        let slots: Vec<u32> = (0..n as u32).collect();
        self.singles.resize(n);
        self.singles.update(&slots, batch.rows(), None)?;
        let state = self.singles.state(&slots)?;
        self.singles.reset(&slots);
        let times = ScalarBuffer::from(batch.times().to_vec());
        let keys = self.key_columns(batch);
        self.partials(
            keys,
            ScalarBuffer::from(vec![1; n]),
            times.clone(),
            times,
            state,
        )
    }

    fn partials(
        &self,
        mut columns: Vec<ArrayRef>,
        n_rows: ScalarBuffer<i64>,
        low: ScalarBuffer<i64>,
        high: ScalarBuffer<i64>,
        state: Vec<ArrayRef>,
    ) -> Result<ChangeBatch, RuntimeError> {
        let n = n_rows.len();
        columns.push(Arc::new(Int64Array::new(n_rows, None)));
        columns.push(Arc::new(Int64Array::new(low, None)));
        columns.extend(state);
        let rows = record_batch(self.schema.clone(), columns, n)?;
        Ok(ChangeBatch::append(rows, high))
    }

    fn gather(&mut self, batch: ChangeBatch) -> Result<(), RuntimeError> {
        self.new.clear();
        let keys = self.key_columns(&batch);
        self.interner
            .intern(&keys, batch.n_rows(), &mut self.slots, &mut self.new)?;
        let n_slots = self.interner.n_slots();
        self.spans.resize(n_slots);
        self.n_rows.resize(n_slots, 0);
        self.accumulators.resize(n_slots);
        let batch = self.without_rows_apart(batch)?;
        for &slot in &self.slots {
            self.n_rows[slot as usize] += 1;
        }
        self.n_gathered += batch.n_rows();
        self.accumulators.update(&self.slots, batch.rows(), None)
    }

    /// Rows further than the ttl from their group as it is so far go on singly: the final phase knows what lies
    /// in between.
    fn without_rows_apart(&mut self, batch: ChangeBatch) -> Result<ChangeBatch, RuntimeError> {
        let times = batch.times();
        let Some(ttl) = self.ttl else {
            self.spans.see_all(&self.slots, times, times);
            return Ok(batch);
        };
        let apart = self.spans.see(&self.slots, times, times, ttl);
        if apart.is_empty() {
            return Ok(batch);
        }
        let rows = batch.take(&UInt32Array::from(apart.clone()))?;
        let rows = self.singly(&rows)?;
        self.ready.push_back(rows);
        let stays = staying(batch.n_rows(), &apart, &mut self.slots);
        Ok(batch.filter(&stays)?)
    }

    /// Whether rows should rather go on singly, and the groups in memory be handed out.
    fn consider(&mut self) {
        let shares_little = self.interner.n_slots() * 2 > self.n_gathered;
        if self.may_pass && self.n_gathered >= SAMPLE_ROWS && shares_little {
            self.passing = SINGLE_ROWS;
            self.flushing = Some(0);
        } else if self.memory_bytes() > self.memory_budget {
            self.flushing = Some(0);
        }
    }

    fn memory_bytes(&self) -> usize {
        self.interner.memory_bytes()
            + self.accumulators.memory_bytes()
            + self.interner.n_slots() * 24
    }

    fn next_groups(&mut self, from: usize) -> Result<Option<ChangeBatch>, RuntimeError> {
        let end = self.interner.n_slots().min(from + MAX_BATCH_ROWS);
        // A group all of whose rows lay apart from rows of another epoch has none.
        let slots: Vec<u32> = (from as u32..end as u32)
            .filter(|&s| self.n_rows[s as usize] > 0)
            .collect();
        self.flushing = Some(end);
        if slots.is_empty() {
            return Ok(None);
        }
        let keys = self.interner.key_columns(&slots)?;
        let n_rows = slots.iter().map(|&s| self.n_rows[s as usize]).collect();
        let (low, high) = self.spans.of(&slots);
        let state = self.accumulators.state(&slots)?;
        self.partials(keys, n_rows, low, high, state).map(Some)
    }

    fn clear(&mut self) {
        let all: Vec<u32> = (0..self.interner.n_slots() as u32).collect();
        self.accumulators.reset(&all);
        self.interner.clear();
        self.spans.clear();
        self.n_rows.clear();
        self.n_gathered = 0;
    }
}

/// Partial aggregates as the final phase reads them: beside the keys, how many rows each stands for, the span
/// of their event times, and the state columns of the calls.
pub struct Partials {
    pub n_rows: ScalarBuffer<i64>,
    pub low: ScalarBuffer<i64>,
    pub high: ScalarBuffer<i64>,
    pub state: Vec<ArrayRef>,
}

impl Partials {
    /// Of a batch that a partial phase has made, by `n_keys` keys.
    pub fn of(batch: &ChangeBatch, n_keys: usize) -> Self {
        let columns = batch.rows().columns();
        let numbers = |i: usize| columns[i].as_primitive::<Int64Type>().values().clone();
        Self {
            n_rows: numbers(n_keys),
            low: numbers(n_keys + 1),
            high: batch.times().to_vec().into(),
            state: columns[n_keys + 2..].to_vec(),
        }
    }

    pub fn take(&self, rows: &[u32]) -> Result<Self, RuntimeError> {
        let pick = |column: &[i64]| rows.iter().map(|&row| column[row as usize]).collect();
        let indices = UInt32Array::from(rows.to_vec());
        let state = |column: &ArrayRef| Ok(compute::take(column, &indices, None)?);
        Ok(Self {
            n_rows: pick(&self.n_rows),
            low: pick(&self.low),
            high: pick(&self.high),
            state: self
                .state
                .iter()
                .map(state)
                .collect::<Result<_, RuntimeError>>()?,
        })
    }
}

/// Which rows stay when those `apart` go; their slots go with them.
pub fn staying(n_rows: usize, apart: &[u32], slots: &mut Vec<u32>) -> BooleanArray {
    let mut stays = vec![true; n_rows];
    apart.iter().for_each(|&row| stays[row as usize] = false);
    let mut keep = stays.iter();
    slots.retain(|_| *keep.next().expect("a flag a row"));
    BooleanArray::from(stays)
}

impl Operator for PartialAggregation {
    fn push(&mut self, _input: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        if batch.diffs().is_some() {
            return Err(RuntimeError::Internal(
                "a partial aggregate was given changes with multiplicities".into(),
            ));
        }
        if self.passing > 0 {
            self.passing = self.passing.saturating_sub(batch.n_rows());
            let rows = self.singly(&batch)?;
            self.ready.push_back(rows);
            return Ok(());
        }
        self.gather(batch)?;
        self.consider();
        Ok(())
    }

    fn barrier(&mut self, _barrier: &Barrier) -> Result<(), RuntimeError> {
        self.flushing = Some(0);
        Ok(())
    }

    fn pull(&mut self) -> Result<Option<ChangeBatch>, RuntimeError> {
        if let Some(batch) = self.ready.pop_front() {
            return Ok(Some(batch));
        }
        while let Some(from) = self.flushing {
            if from >= self.interner.n_slots() {
                self.clear();
                self.flushing = None;
            } else if let Some(batch) = self.next_groups(from)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn state(&mut self) -> Option<&mut dyn Stateful> {
        // Empty at every barrier.
        None
    }
}
