//! Aggregation by window and key: a window is emitted once, when the watermark reaches its end
//! (Akidau et al., The Dataflow Model, VLDB 2015).
//!
//! State is kept per *pane*, the widest span that no window's edge cuts: a row of a hopping window is added
//! once, and panes are merged when a window closes. Each pane has its own keys, so that closing it drops
//! them all at once and a run of rows of one pane is worked on in columns.
//!
//! Memory is a cache over the panes: what the store has of them is dropped when there is too much ([`store`]), and a
//! window that is not all in memory goes out as it is read back ([`spilled`]).

mod pane;
#[cfg(test)]
mod spill_tests;
mod spilled;
mod store;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::plan::{Phase, WindowAggregate, WindowSource};
use thalweg_dataflow::time::TIMELESS;
use thalweg_dataflow::{ChangeBatch, Watermark};

use self::pane::Pane;
use self::spilled::SpilledWindow;
use self::store::PaneStore;
use super::OperatorContext;
use super::windows::{Layout, Span, instants};
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::operator::{Barrier, MAX_BATCH_ROWS, Operator, Stateful};
use crate::state::StateWrites;

/// Rows a run of one pane should have on average; below, a batch is sorted by pane first.
const MIN_RUN_ROWS: usize = 32;

/// Rows after which a partial aggregate looks at how much it holds.
const ROWS_PER_MEASURE: usize = 1 << 17;

pub struct WindowedAggregation {
    window: WindowSource,
    /// `None`: windows come in columns and are their own panes.
    layout: Option<Layout>,
    keys: Vec<usize>,
    phase: Phase,
    updating: bool,
    output_schema: SchemaRef,
    open: BTreeMap<Span, Pane>,
    panes: PaneStore,
    /// Of the last barrier: what it has reached is closed.
    watermark: Watermark,
    /// The barrier being answered.
    closing: Option<Watermark>,
    /// Windows that end here or before have been emitted, or had nothing to emit.
    emitted_until: i64,
    emission: Option<Emission>,
    /// Barriers so far.
    n_barriers: u64,
    /// What a partial aggregate may hold, and rows that came since it was last looked at.
    memory_budget: usize,
    unmeasured_rows: usize,
    metrics: Arc<JobMetrics>,
}

/// A window on its way out.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Emission {
    InMemory {
        span: Span,
        pane: Pane,
        slots: Vec<u32>,
        next: usize,
    },
    /// `closes`: the window is one pane, which closes with it.
    Spilled {
        span: Span,
        window: SpilledWindow,
        closes: bool,
    },
}

/// How much of a pane's windows has closed.
#[derive(PartialEq)]
enum Lateness {
    OnTime,
    /// It still counts in windows that are open.
    Partly,
    Late,
    /// No window contains it.
    Outside,
}

impl WindowedAggregation {
    pub fn new(
        aggregate: &WindowAggregate,
        context: OperatorContext,
    ) -> Result<Self, RuntimeError> {
        let layout = match (&aggregate.window, aggregate.phase) {
            (WindowSource::Time(window), _) => Some(Layout::new(*window)?),
            (WindowSource::Columns { .. }, _) => None,
        };
        let input = context
            .input_schema
            .clone()
            .unwrap_or_else(|| context.output_schema.clone());
        // Start and end come first, then the keys.
        let key_type = |i: usize| context.output_schema.field(2 + i).data_type().clone();
        let key_types = (0..aggregate.keys.len()).map(key_type).collect();
        let panes = PaneStore::new(key_types, &aggregate.calls, &input, &context)?;
        let output_schema = match aggregate.phase {
            Phase::Partial => panes.partial_schema(&context.output_schema)?,
            Phase::Single | Phase::Final => context.output_schema,
        };
        Ok(Self {
            window: aggregate.window.clone(),
            layout,
            keys: aggregate.keys.clone(),
            phase: aggregate.phase,
            updating: context.updating_input,
            output_schema,
            open: BTreeMap::new(),
            panes,
            watermark: Watermark::NONE,
            closing: None,
            emitted_until: i64::MIN,
            emission: None,
            n_barriers: 0,
            memory_budget: context.memory_bytes,
            unmeasured_rows: 0,
            metrics: context.metrics,
        })
    }

    /// Whether rows arrive as partial aggregates.
    fn merges(&self) -> bool {
        self.phase == Phase::Final
    }

    /// Consecutive rows of one pane.
    fn runs(&self, batch: &ChangeBatch) -> Result<Vec<Run>, RuntimeError> {
        let mut runs: Vec<Run> = Vec::new();
        let mut add = |span: Span, row: usize| match runs.last_mut() {
            Some((last, range)) if *last == span => range.end = row + 1,
            _ => runs.push((span, row..row + 1)),
        };
        let columns = match (&self.window, self.merges()) {
            (_, true) => Some((0, 1)),
            (WindowSource::Columns { start, end }, _) => Some((*start, *end)),
            (WindowSource::Time(_), _) => None,
        };
        if let Some((start, end)) = columns {
            let (starts, ends) = (
                nanos(batch.rows().column(start))?,
                nanos(batch.rows().column(end))?,
            );
            for row in 0..batch.n_rows() {
                if starts.is_valid(row) && ends.is_valid(row) {
                    add(
                        Span {
                            start: starts.value(row),
                            end: ends.value(row),
                        },
                        row,
                    );
                }
            }
            return Ok(runs);
        }
        let layout = self.layout.as_ref().expect("windows by time have a layout");
        let mut current = Span { start: 0, end: 0 };
        for (row, &t) in batch.times().iter().enumerate() {
            if t == TIMELESS {
                JobMetrics::add(&self.metrics.late_rows, 1);
                continue;
            }
            if !current.contains(t) {
                current = layout.pane_of(t);
            }
            add(current, row);
        }
        Ok(runs)
    }

    fn lateness(&self, pane: Span) -> Lateness {
        let Some(layout) = &self.layout else {
            return if self.watermark.has_reached(pane.end) {
                Lateness::Late
            } else {
                Lateness::OnTime
            };
        };
        let Some(last) = layout.last_window_of(pane) else {
            return Lateness::Outside;
        };
        if self.watermark.has_reached(last.end) {
            return Lateness::Late;
        }
        let first = layout.windows_of(pane.start).next().unwrap_or(last);
        if self.watermark.has_reached(first.end) {
            Lateness::Partly
        } else {
            Lateness::OnTime
        }
    }

    fn add(&mut self, span: Span, run: ChangeBatch) -> Result<(), RuntimeError> {
        // A partial aggregate leaves the judgement to the final one, which sees all inputs' time.
        if self.phase != Phase::Partial {
            let lateness = self.lateness(span);
            if matches!(lateness, Lateness::Late | Lateness::Partly) {
                JobMetrics::add(&self.metrics.late_rows, self.n_rows_of(&run)?);
            }
            if matches!(lateness, Lateness::Late | Lateness::Outside) {
                return Ok(());
            }
        }
        let pane = match self.open.entry(span) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(self.panes.take()?),
        };
        pane.last_touched = self.n_barriers;
        if self.phase == Phase::Final {
            let rows = run.rows();
            let n_keys = self.keys.len();
            let counts = rows
                .column(2 + n_keys)
                .as_primitive::<Int64Type>()
                .values()
                .clone();
            pane.intern(&rows.columns()[2..2 + n_keys], counts.len())?;
            return pane.merge(&counts, &rows.columns()[3 + n_keys..]);
        }
        let keys: Vec<ArrayRef> = self
            .keys
            .iter()
            .map(|&k| run.rows().column(k).clone())
            .collect();
        pane.intern(&keys, run.n_rows())?;
        self.panes.read_for_update(span, pane)?;
        pane.update(&run)
    }

    /// A partial aggregate that holds much hands it over before the epoch ends.
    fn flush_if_large(&mut self, n_rows: usize) {
        self.unmeasured_rows += n_rows;
        if self.phase == Phase::Partial && self.unmeasured_rows >= ROWS_PER_MEASURE {
            self.unmeasured_rows = 0;
            if self.memory_bytes() > self.memory_budget {
                self.closing = Some(self.watermark);
            }
        }
    }

    fn n_rows_of(&self, run: &ChangeBatch) -> Result<usize, RuntimeError> {
        if !self.merges() {
            return Ok(run.n_rows());
        }
        let counts = run
            .rows()
            .column(2 + self.keys.len())
            .as_primitive::<Int64Type>();
        Ok(counts.values().iter().sum::<i64>().max(0) as usize)
    }

    /// The next window to emit for the barrier being answered.
    fn next_emission(&mut self, closing: Watermark) -> Result<Option<Emission>, RuntimeError> {
        if self.phase == Phase::Partial {
            return Ok(self
                .open
                .pop_first()
                .map(|(span, pane)| Emission::new(span, pane, false)));
        }
        let merged = self.layout.filter(|l| !l.is_tumbling());
        let Some(layout) = merged else {
            let is_due = |(span, _): &(&Span, &Pane)| closing.has_reached(span.end);
            let Some((&span, pane)) = self.open.first_key_value().filter(is_due) else {
                return Ok(None);
            };
            if pane.is_spilled {
                return self.emission_of_spilled(span, &[span], true).map(Some);
            }
            let Some(mut pane) = self.open.remove(&span) else {
                return Ok(None);
            };
            self.panes.forget(span, &mut pane)?;
            return Ok(Some(Emission::new(span, pane, self.updating)));
        };
        while let Some((&pane, _)) = self.open.first_key_value() {
            match layout
                .windows_of(pane.start)
                .find(|w| w.end > self.emitted_until)
            {
                Some(window) if closing.has_reached(window.end) => {
                    self.emitted_until = window.end;
                    let panes: Vec<Span> = self.panes_of(window).map(|(span, _)| *span).collect();
                    if self.panes_of(window).any(|(_, pane)| pane.is_spilled) {
                        return self.emission_of_spilled(window, &panes, false).map(Some);
                    }
                    let merged = self.merge_panes(&panes)?;
                    return Ok(Some(Emission::new(window, merged, self.updating)));
                }
                Some(_) => return Ok(None),
                // Every window that contains this pane has gone out.
                None => self.close_first()?,
            }
        }
        Ok(None)
    }

    fn close_first(&mut self) -> Result<(), RuntimeError> {
        if let Some((span, mut done)) = self.open.pop_first() {
            self.panes.forget(span, &mut done)?;
            self.panes.give_back(done);
        }
        Ok(())
    }

    fn panes_of(&self, window: Span) -> impl Iterator<Item = (&Span, &Pane)> {
        let from = Span {
            start: i64::MIN,
            end: window.start.saturating_add(1),
        };
        let to = Span {
            start: i64::MAX,
            end: window.end,
        };
        self.open.range(from..=to)
    }

    fn merge_panes(&mut self, panes: &[Span]) -> Result<Pane, RuntimeError> {
        let mut merged = self.panes.take()?;
        for span in panes {
            let Some(pane) = self.open.get_mut(span) else {
                continue;
            };
            let all = pane.all_slots();
            let keys = pane.key_columns(&all)?;
            let counts = pane.counts(&all);
            let state = pane.state(&all)?;
            merged.intern(&keys, all.len())?;
            merged.merge(&counts, &state)?;
        }
        Ok(merged)
    }

    fn emission_of_spilled(
        &self,
        span: Span,
        panes: &[Span],
        closes: bool,
    ) -> Result<Emission, RuntimeError> {
        let window = SpilledWindow::new(panes, &self.open, &self.panes, self.updating)?;
        Ok(Emission::Spilled {
            span,
            window,
            closes,
        })
    }

    /// The next rows of a window, until all have gone out.
    fn emit(&mut self, emission: &mut Emission) -> Result<Option<ChangeBatch>, RuntimeError> {
        match emission {
            Emission::InMemory { slots, next, .. } if *next == slots.len() => Ok(None),
            Emission::InMemory {
                span,
                pane,
                slots,
                next,
            } => {
                let n = MAX_BATCH_ROWS.min(slots.len() - *next);
                let slots = &slots[*next..*next + n];
                *next += n;
                let keys = pane.key_columns(slots)?;
                if self.phase == Phase::Partial {
                    let counts: ArrayRef = Arc::new(Int64Array::new(pane.counts(slots), None));
                    let state = std::iter::once(counts).chain(pane.state(slots)?).collect();
                    return self.rows(*span, n, keys, state).map(Some);
                }
                let results = pane.evaluate(slots)?;
                self.rows(*span, n, keys, results).map(Some)
            }
            Emission::Spilled { span, window, .. } => {
                let Some(groups) = window.next(&mut self.open, &self.panes)? else {
                    return Ok(None);
                };
                self.rows(*span, groups.n, groups.keys, groups.results)
                    .map(Some)
            }
        }
    }

    /// Rows of one window.
    fn rows(
        &self,
        Span { start, end }: Span,
        n: usize,
        keys: Vec<ArrayRef>,
        results: Vec<ArrayRef>,
    ) -> Result<ChangeBatch, RuntimeError> {
        let mut schema = self.output_schema.clone();
        let mut columns = vec![
            instants(vec![start; n], schema.field(0).data_type())?,
            instants(vec![end; n], schema.field(1).data_type())?,
        ];
        columns.extend(keys);
        columns.extend(results);
        if self.phase == Phase::Partial {
            schema = with_state(&schema, &columns);
        }
        let rows = record_batch(schema, columns, n)?;
        // Semantics 3.4: so that windows of windows line up.
        Ok(ChangeBatch::append(
            rows,
            std::iter::repeat_n(end - 1, n).collect(),
        ))
    }

    fn finish(&mut self, emission: Emission) -> Result<(), RuntimeError> {
        match emission {
            Emission::InMemory { pane, .. } => {
                self.panes.give_back(pane);
                Ok(())
            }
            Emission::Spilled { closes: true, .. } => self.close_first(),
            Emission::Spilled { .. } => Ok(()),
        }
    }
}

impl Emission {
    fn new(span: Span, pane: Pane, only_present: bool) -> Self {
        let slots = if only_present {
            pane.present_slots()
        } else {
            pane.all_slots()
        };
        Self::InMemory {
            span,
            pane,
            slots,
            next: 0,
        }
    }
}

impl Operator for WindowedAggregation {
    fn push(&mut self, _input: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        self.flush_if_large(batch.n_rows());
        let runs = self.runs(&batch)?;
        if runs.len() > 8 && batch.n_rows() / runs.len() < MIN_RUN_ROWS {
            let (batch, runs) = sort_by_pane(&batch, &runs)?;
            return runs
                .into_iter()
                .try_for_each(|(span, run)| self.add(span, batch.slice(run.start, run.len())));
        }
        for (span, run) in runs {
            let part = if run.len() == batch.n_rows() {
                batch.clone()
            } else {
                batch.slice(run.start, run.len())
            };
            self.add(span, part)?;
        }
        Ok(())
    }

    fn barrier(&mut self, barrier: &Barrier) -> Result<(), RuntimeError> {
        self.closing = Some(barrier.watermark);
        Ok(())
    }

    fn pull(&mut self) -> Result<Option<ChangeBatch>, RuntimeError> {
        let Some(closing) = self.closing else {
            return Ok(None);
        };
        loop {
            if let Some(mut emission) = self.emission.take() {
                if let Some(batch) = self.emit(&mut emission)? {
                    self.emission = Some(emission);
                    return Ok(Some(batch));
                }
                self.finish(emission)?;
            }
            self.emission = self.next_emission(closing)?;
            if self.emission.is_none() {
                self.closing = None;
                self.watermark = self.watermark.max(closing);
                self.emitted_until = self.emitted_until.max(self.watermark.nanos());
                self.n_barriers += 1;
                self.panes.evict(&mut self.open)?;
                return Ok(None);
            }
        }
    }

    fn state(&mut self) -> Option<&mut dyn Stateful> {
        // A partial aggregate is empty at every barrier.
        if self.phase == Phase::Partial {
            None
        } else {
            Some(self)
        }
    }
}

impl Stateful for WindowedAggregation {
    fn write_changes(&mut self, writes: &mut StateWrites) -> Result<(), RuntimeError> {
        self.panes.write_changes(&mut self.open, writes)
    }

    fn dirty_bytes(&self) -> usize {
        self.open.values().map(Pane::dirty_bytes).sum()
    }

    fn memory_bytes(&self) -> usize {
        self.open.values().map(Pane::memory_bytes).sum()
    }
}

/// The planned columns of a partial aggregate, and those of its accumulators' state, which only the
/// accumulators know.
fn with_state(planned: &SchemaRef, columns: &[ArrayRef]) -> SchemaRef {
    let n_planned = planned.fields().len();
    let state = columns.iter().enumerate().skip(n_planned).map(|(i, c)| {
        Arc::new(Field::new(
            format!("state_{i}"),
            c.data_type().clone(),
            true,
        ))
    });
    let fields: Vec<_> = planned.fields().iter().cloned().chain(state).collect();
    Arc::new(Schema::new(fields))
}

/// Consecutive rows of one pane.
type Run = (Span, Range<usize>);

/// Brings the rows of each pane together, in their order.
fn sort_by_pane(
    batch: &ChangeBatch,
    runs: &[Run],
) -> Result<(ChangeBatch, Vec<Run>), RuntimeError> {
    let mut order: Vec<(Span, Vec<u32>)> = Vec::new();
    let mut place: HashMap<Span, usize> = HashMap::new();
    for (span, run) in runs {
        let i = *place.entry(*span).or_insert_with(|| {
            order.push((*span, Vec::new()));
            order.len() - 1
        });
        order[i].1.extend(run.clone().map(|row| row as u32));
    }
    let (mut indices, mut sorted) = (
        Vec::with_capacity(batch.n_rows()),
        Vec::with_capacity(order.len()),
    );
    for (span, rows) in order {
        sorted.push((span, indices.len()..indices.len() + rows.len()));
        indices.extend(rows);
    }
    Ok((batch.take(&UInt32Array::from(indices))?, sorted))
}

/// A timestamp column as nanoseconds.
fn nanos(column: &ArrayRef) -> Result<Int64Array, RuntimeError> {
    let DataType::Timestamp(_, zone) = column.data_type() else {
        return Err(RuntimeError::Internal(format!(
            "window bounds of type {}",
            column.data_type()
        )));
    };
    let ns = cast(
        column,
        &DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, zone.clone()),
    )?;
    Ok(cast(&ns, &DataType::Int64)?
        .as_primitive::<Int64Type>()
        .clone())
}
