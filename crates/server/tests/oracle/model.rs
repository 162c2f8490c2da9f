//! What a query's answer is at each epoch, worked out slowly.
//!
//! Everything that batch SQL can say, the batch engine says, over the rows read so far. What it
//! cannot say is done here row by row: which rows of which window are not late, which windows are
//! closed (semantics 3), and which rows belong to a group that has not expired (semantics 5).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail};
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, TimestampNanosecondArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{
    DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit, TimestampNanosecondType,
};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{ExecutionPlan, collect, execution_plan::reset_plan_states};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::check::{Cells, cells};
use crate::generate::TABLES;
use crate::input::{Change, Input, Row, TableInput, batch, schema};
use crate::query::{DIFF, Rel, TIME, Window, batch_sql, history_sql};

/// A table of the batch engine whose content changes from epoch to epoch.
#[derive(Debug)]
struct Slot {
    schema: SchemaRef,
    content: Mutex<RecordBatch>,
}

impl Slot {
    fn new(schema: SchemaRef) -> Arc<Self> {
        Arc::new(Self {
            content: Mutex::new(RecordBatch::new_empty(schema.clone())),
            schema,
        })
    }

    fn set(&self, content: RecordBatch) {
        *self.content.lock().expect("no holder of the lock panics") = content;
    }
}

impl PartitionStream for Slot {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let content = self
            .content
            .lock()
            .expect("no holder of the lock panics")
            .clone();
        Box::pin(RecordBatchStreamAdapter::new(
            self.schema.clone(),
            futures::stream::iter([Ok(content)]),
        ))
    }
}

/// The batch engine with the base tables. One serves many queries in turn.
pub struct BatchEngine {
    context: SessionContext,
    tables: BTreeMap<&'static str, Arc<Slot>>,
}

impl BatchEngine {
    pub fn new() -> Result<Self> {
        let mut config = SessionConfig::new().with_target_partitions(1);
        let options = config.options_mut();
        options.sql_parser.map_string_types_to_utf8view = false;
        options.sql_parser.dialect = datafusion::common::config::Dialect::PostgreSQL;
        // A plan is run again for each epoch.
        options.optimizer.enable_dynamic_filter_pushdown = false;
        // Its own plans fail this check, by what may be null.
        options.execution.skip_physical_aggregate_schema_check = true;
        let context = SessionContext::new_with_config(config);
        // Both fail where a key is computed from another or stands twice.
        context.remove_optimizer_rule("eliminate_group_by_constant");
        context.remove_optimizer_rule("single_distinct_aggregation_to_group_by");
        let mut tables = BTreeMap::new();
        for table in TABLES {
            let slot = Slot::new(hidden_schema());
            register(&context, table.name, &slot)?;
            tables.insert(table.name, slot);
        }
        Ok(Self { context, tables })
    }

    async fn plan(&self, sql: &str) -> Result<Arc<dyn ExecutionPlan>> {
        let (context, text) = (self.context.clone(), sql.to_string());
        let planned = tokio::spawn(async move {
            let frame = context.sql(&text).await?;
            frame.create_physical_plan().await
        });
        match planned.await {
            Ok(Ok(plan)) => Ok(plan),
            Ok(Err(DataFusionError::Internal(_))) | Err(_) => bail!(NoAnswer),
            Ok(Err(error)) if error.to_string().contains("bug in DataFusion") => bail!(NoAnswer),
            Ok(Err(error)) => Err(error).with_context(|| format!("batch engine on: {sql}")),
        }
    }

    async fn run(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<RecordBatch> {
        let fresh = reset_plan_states(plan.clone())?;
        // In a task of its own, because DataFusion has assertions that a sound query can fail
        // (`first_value` and `last_value` with a constant or repeated ORDER BY, in 55.2).
        let batches = match tokio::spawn(collect(fresh, self.context.task_ctx())).await {
            Ok(batches) => batches?,
            Err(_) => bail!(NoAnswer),
        };
        Ok(concat_batches(&plan.schema(), &batches)?)
    }
}

/// The batch engine panics, or finds an internal error of its own: the case says nothing of ours.
#[derive(Debug, thiserror::Error)]
#[error("the batch engine has no answer")]
pub struct NoAnswer;

fn register(context: &SessionContext, name: &str, slot: &Arc<Slot>) -> Result<()> {
    let table = StreamingTable::try_new(slot.schema.clone(), vec![slot.clone()])?;
    context.deregister_table(name)?;
    context.register_table(name, Arc::new(table))?;
    Ok(())
}

/// A table's columns, and the time and diff of each row.
fn hidden_schema() -> SchemaRef {
    let mut fields: Vec<_> = schema()
        .fields()
        .iter()
        .map(|f| f.as_ref().clone())
        .collect();
    fields.push(time_field(TIME));
    fields.push(Field::new(DIFF, DataType::Int64, true));
    Arc::new(Schema::new(fields))
}

fn time_field(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Nanosecond, None), true)
}

fn hidden_batch(changes: &[&Change]) -> Result<RecordBatch> {
    let rows: Vec<&Row> = changes.iter().map(|c| &c.row).collect();
    let mut columns = batch(&rows).columns().to_vec();
    columns.push(Arc::new(TimestampNanosecondArray::from_iter_values(
        rows.iter().map(|r| r.ts),
    )));
    columns.push(Arc::new(Int64Array::from_iter_values(
        changes.iter().map(|c| c.diff),
    )));
    Ok(RecordBatch::try_new(hidden_schema(), columns)?)
}

/// A query, planned by the batch engine.
pub struct Model<'a> {
    engine: &'a BatchEngine,
    answer: Arc<dyn ExecutionPlan>,
    groupings: Vec<Grouping>,
}

/// A node whose rows are chosen here.
struct Grouping {
    kind: GroupingKind,
    history: Arc<dyn ExecutionPlan>,
    slot: Arc<Slot>,
    converter: RowConverter,
    keys: RowConverter,
    n_columns: usize,
    n_keys: usize,
    /// Base tables below, whose watermarks count.
    tables: Vec<&'static str>,
}

#[derive(Clone, Copy)]
enum GroupingKind {
    Windows(Window),
    /// Nanoseconds.
    Expiring(i64),
}

/// The answer after an epoch.
pub struct Answer {
    pub rows: RecordBatch,
    /// Keys of groups that expired and came back within the epoch.
    pub reborn: HashSet<Cells>,
}

impl<'a> Model<'a> {
    pub async fn new(engine: &'a BatchEngine, rel: &Rel) -> Result<Self> {
        let mut nodes = Vec::new();
        rel.visit(&mut |node| nodes.push(node));
        let mut groupings = Vec::new();
        for node in nodes {
            let (id, kind, input, keys) = match node {
                Rel::Window(w) => (w.id, GroupingKind::Windows(w.window), &w.input, &w.keys),
                Rel::Group(g) => match g.ttl {
                    Some((id, ttl)) => (id, GroupingKind::Expiring(ttl), &g.input, &g.keys),
                    None => continue,
                },
                _ => continue,
            };
            let history = engine.plan(&history_sql(input, keys)).await?;
            let grouping = Grouping::new(kind, history, input, keys.len())?;
            register(&engine.context, &format!("w{id}"), &grouping.slot)?;
            groupings.push(grouping);
        }
        let answer = engine.plan(&batch_sql(rel)).await?;
        Ok(Self {
            engine,
            answer,
            groupings,
        })
    }

    /// The answer after every epoch, in turn.
    pub async fn answers(&mut self, input: &Input, progress: &Progress) -> Result<Vec<Answer>> {
        let mut states: Vec<_> = self
            .groupings
            .iter()
            .map(|_| GroupState::default())
            .collect();
        let mut answers = Vec::new();
        for epoch in 0..progress.n_epochs {
            self.set_tables(input, |name, table| progress.changes_of(name, table, epoch))?;
            let mut reborn = HashSet::new();
            for (grouping, state) in self.groupings.iter_mut().zip(&mut states) {
                let watermark = progress.watermark(input, &grouping.tables, epoch);
                let rows = self.engine.run(&grouping.history).await?;
                let arrivals = grouping.arrivals(&rows)?;
                let keys = rows.project(
                    &(grouping.n_columns..grouping.n_columns + grouping.n_keys).collect::<Vec<_>>(),
                )?;
                match grouping.kind {
                    GroupingKind::Windows(Window::Session { gap }) => state.merge(gap, arrivals),
                    GroupingKind::Windows(window) => state.assign(window, arrivals),
                    GroupingKind::Expiring(ttl) => {
                        reborn = state.let_live(ttl, arrivals, &cells(&keys)?, watermark)
                    }
                }
                // Windows above read what closes now; the answer, everything that is closed.
                let closing = state
                    .entries
                    .iter()
                    .filter(|e| e.end > state.before && e.end <= watermark);
                grouping.slot.set(grouping.table(closing)?);
                state.now = watermark;
            }
            for (grouping, state) in self.groupings.iter_mut().zip(&mut states) {
                let closed = state.entries.iter().filter(|e| e.end <= state.now);
                grouping.slot.set(grouping.table(closed)?);
                state.before = state.now;
            }
            self.set_tables(input, |name, table| {
                progress.net_changes(name, table, epoch)
            })?;
            answers.push(Answer {
                rows: self.engine.run(&self.answer).await?,
                reborn,
            });
        }
        Ok(answers)
    }

    fn set_tables<'i>(
        &self,
        input: &'i Input,
        rows: impl Fn(&str, &'i TableInput) -> Vec<&'i Change>,
    ) -> Result<()> {
        for (name, slot) in &self.engine.tables {
            if let Some(table) = input.tables.get(name) {
                slot.set(hidden_batch(&rows(name, table))?);
            }
        }
        Ok(())
    }
}

/// A row that has arrived at a grouping.
struct Arrival {
    /// `None` where there is one group.
    key: Option<OwnedRow>,
    row: OwnedRow,
    time: i64,
    diff: i64,
}

/// A row that counts. For an expiring group, `start` and `end` are zero.
struct Entry {
    /// Of a session.
    key: Option<OwnedRow>,
    row: OwnedRow,
    start: i64,
    end: i64,
}

struct GroupState {
    entries: Vec<Entry>,
    live: HashMap<Option<OwnedRow>, Live>,
    n_generations: u64,
    /// The watermark of the last barrier, and of this one.
    before: i64,
    now: i64,
}

/// A group that has not expired.
struct Live {
    last_seen: i64,
    generation: u64,
    rows: Vec<OwnedRow>,
    key: Cells,
}

impl Default for GroupState {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            live: HashMap::new(),
            n_generations: 0,
            before: i64::MIN,
            now: i64::MIN,
        }
    }
}

impl GroupState {
    /// Semantics 3.2 and 3.5: a row counts in each of its windows that the last barrier had not closed.
    fn assign(&mut self, window: Window, arrivals: Vec<Arrival>) {
        for Arrival {
            row, time, diff, ..
        } in arrivals
        {
            for (start, end) in window
                .of(time)
                .into_iter()
                .filter(|&(_, end)| end > self.before)
            {
                if diff > 0 {
                    self.entries.push(Entry {
                        key: None,
                        row: row.clone(),
                        start,
                        end,
                    });
                } else if let Some(at) = self
                    .entries
                    .iter()
                    .position(|e| (e.start, e.end) == (start, end) && e.row == row)
                {
                    self.entries.swap_remove(at);
                }
            }
        }
    }

    /// Semantics 3.3 and 3.5: a row that is not late by itself joins all open sessions of its key that are less than
    /// the gap away.
    fn merge(&mut self, gap: i64, arrivals: Vec<Arrival>) {
        for Arrival { key, row, time, .. } in arrivals {
            if time + gap <= self.before {
                continue;
            }
            let before = self.before;
            let touches =
                |e: &Entry| e.key == key && e.end > before && e.start < time + gap && time < e.end;
            let touched = || self.entries.iter().filter(|e| touches(e));
            let start = touched().map(|e| e.start).fold(time, i64::min);
            let end = touched().map(|e| e.end).fold(time + gap, i64::max);
            for entry in self.entries.iter_mut().filter(|e| touches(e)) {
                (entry.start, entry.end) = (start, end);
            }
            self.entries.push(Entry {
                key,
                row,
                start,
                end,
            });
        }
    }

    /// Semantics 5.2: within an epoch in the order of time; a gap above the ttl begins a new group, and so
    /// does the watermark. Gives the keys that were live before and are so again, anew.
    fn let_live(
        &mut self,
        ttl: i64,
        arrivals: Vec<Arrival>,
        keys: &[Cells],
        watermark: i64,
    ) -> HashSet<Cells> {
        let before: HashMap<_, _> = self
            .live
            .values()
            .map(|l| (l.key.clone(), l.generation))
            .collect();
        let mut order: Vec<usize> = (0..arrivals.len()).collect();
        order.sort_by_key(|&i| arrivals[i].time);
        for i in order {
            let Arrival { key, row, time, .. } = &arrivals[i];
            let expired = self.live.get(key).is_some_and(|l| time - l.last_seen > ttl);
            if expired || !self.live.contains_key(key) {
                self.n_generations += 1;
                let new = Live {
                    last_seen: *time,
                    generation: self.n_generations,
                    rows: Vec::new(),
                    key: keys[i].clone(),
                };
                self.live.insert(key.clone(), new);
            }
            let live = self.live.get_mut(key).expect("inserted above");
            live.last_seen = live.last_seen.max(*time);
            live.rows.push(row.clone());
        }
        // The end of a bounded input expires nothing (semantics 2.3).
        if watermark != i64::MAX {
            self.live
                .retain(|_, l| watermark == i64::MIN || watermark - l.last_seen <= ttl);
        }
        self.entries = self
            .live
            .values()
            .flat_map(|l| &l.rows)
            .map(|r| Entry {
                key: None,
                row: r.clone(),
                start: 0,
                end: i64::MIN,
            })
            .collect();
        let is_reborn = |l: &&Live| before.get(&l.key).is_some_and(|g| *g != l.generation);
        self.live
            .values()
            .filter(is_reborn)
            .map(|l| l.key.clone())
            .collect()
    }
}

impl Grouping {
    fn new(
        kind: GroupingKind,
        history: Arc<dyn ExecutionPlan>,
        input: &Rel,
        n_keys: usize,
    ) -> Result<Self> {
        let n_columns = input.columns().len();
        let fields: Vec<Field> = history
            .schema()
            .fields()
            .iter()
            .map(|f| f.as_ref().clone().with_nullable(true))
            .collect();
        let converter = |fields: &[Field]| {
            RowConverter::new(
                fields
                    .iter()
                    .map(|f| SortField::new(f.data_type().clone()))
                    .collect(),
            )
        };
        let mut columns = fields[..n_columns].to_vec();
        columns.extend([time_field("__start"), time_field("__end")]);
        Ok(Self {
            kind,
            slot: Slot::new(Arc::new(Schema::new(columns))),
            converter: converter(&fields[..n_columns])?,
            keys: converter(&fields[n_columns..n_columns + n_keys])?,
            history,
            n_columns,
            n_keys,
            tables: input.tables().iter().map(|t| t.name).collect(),
        })
    }

    fn arrivals(&mut self, rows: &RecordBatch) -> Result<Vec<Arrival>> {
        let (n, k) = (self.n_columns, self.n_keys);
        let images = self.converter.convert_columns(&rows.columns()[..n])?;
        let keys = match k {
            0 => None,
            _ => Some(self.keys.convert_columns(&rows.columns()[n..n + k])?),
        };
        let times = rows.column(n + k).as_primitive::<TimestampNanosecondType>();
        let diffs = rows.column(n + k + 1).as_primitive::<Int64Type>();
        let arrival = |i: usize| Arrival {
            key: keys.as_ref().map(|k| k.row(i).owned()),
            row: images.row(i).owned(),
            time: times.value(i),
            diff: diffs.value(i),
        };
        Ok((0..rows.num_rows()).map(arrival).collect())
    }

    fn table<'e>(&self, entries: impl Iterator<Item = &'e Entry>) -> Result<RecordBatch> {
        let entries: Vec<&Entry> = entries.collect();
        let mut columns = self
            .converter
            .convert_rows(entries.iter().map(|e| e.row.row()))?;
        let times = |time: fn(&Entry) -> i64| -> ArrayRef {
            Arc::new(TimestampNanosecondArray::from_iter_values(
                entries.iter().map(|e| time(e)),
            ))
        };
        columns.extend([times(|e| e.start), times(|e| e.end)]);
        Ok(RecordBatch::try_new(self.slot.schema.clone(), columns)?)
    }
}

/// How far each split had been read at the end of each epoch.
pub struct Progress {
    pub n_epochs: usize,
    pub cuts: BTreeMap<(String, usize), Vec<usize>>,
}

impl Progress {
    /// As if every split had given this many rows an epoch.
    pub fn even(input: &Input, rows_per_epoch: usize) -> Self {
        let mut cuts = BTreeMap::new();
        for (name, table) in &input.tables {
            for (i, split) in table.splits.iter().enumerate() {
                let positions = (1..)
                    .map(|e| e * rows_per_epoch)
                    .take_while(|&n| n < split.len())
                    .collect();
                cuts.insert((name.to_string(), i), positions);
            }
        }
        let n_epochs = cuts.values().map(Vec::len).max().unwrap_or(0) + 1;
        Self { n_epochs, cuts }
    }

    /// A table that the planner found to be without consequence is never read: as if it had ended.
    fn cuts_of(&self, table: &str, split: usize) -> &[usize] {
        self.cuts
            .get(&(table.to_string(), split))
            .map_or(&[], Vec::as_slice)
    }

    /// Changes of `split` read by the end of `epoch`; everything, once it has ended.
    fn position(&self, table: &str, split: usize, len: usize, epoch: Option<usize>) -> usize {
        let Some(epoch) = epoch else { return 0 };
        self.cuts_of(table, split)
            .get(epoch)
            .copied()
            .unwrap_or(len)
    }

    /// The changes that the epoch's records make; some make none.
    fn changes_of<'i>(&self, name: &str, table: &'i TableInput, epoch: usize) -> Vec<&'i Change> {
        let read = |split: usize, changes: &'i [Change]| {
            let position = |epoch| self.position(name, split, changes.len(), epoch);
            &changes[position(epoch.checked_sub(1))..position(Some(epoch))]
        };
        table
            .splits
            .iter()
            .enumerate()
            .flat_map(|(i, changes)| read(i, changes))
            .filter(|change| change.diff != 0)
            .collect()
    }

    /// What is left of all changes up to the end of `epoch`.
    fn net_changes<'i>(&self, name: &str, table: &'i TableInput, epoch: usize) -> Vec<&'i Change> {
        let mut net: Vec<&Change> = Vec::new();
        for change in (0..=epoch).flat_map(|e| self.changes_of(name, table, e)) {
            match change.diff {
                1 => net.push(change),
                _ => {
                    let at = net
                        .iter()
                        .position(|c| c.row == change.row)
                        .expect("only rows that are there go");
                    net.swap_remove(at);
                }
            }
        }
        net
    }

    /// Semantics 2.2: the minimum over splits of the greatest time behind which each stays; a split that
    /// has ended holds nothing back.
    fn watermark(&self, input: &Input, tables: &[&'static str], epoch: usize) -> i64 {
        let of_split = |name: &str, table: &TableInput, split: usize| match self
            .cuts_of(name, split)
            .get(epoch)
        {
            None => i64::MAX,
            Some(&n) => table.splits[split][..n]
                .iter()
                .map(|c| c.row.ts - table.lag)
                .max()
                .unwrap_or(i64::MIN),
        };
        let splits = tables.iter().flat_map(|name| {
            let table = &input.tables[name];
            (0..table.splits.len()).map(move |split| of_split(name, table, split))
        });
        splits.min().unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::show;
    use crate::expr::{Expr, Type};
    use crate::input::{Cuts, Reading, Row};
    use crate::query::{Group, SECOND, Spelling, WindowGroup};

    /// The answer after each row of `t`, read one an epoch; times are in seconds.
    fn answers(rel: &Rel, times: &[i64]) -> Vec<String> {
        let row = |(id, secs): (usize, &i64)| Change {
            row: Row {
                id: id as i64,
                k: Some(1),
                s: None,
                b: None,
                i: Some(*secs),
                d: None,
                f: None,
                xs: None,
                ts: secs * SECOND,
            },
            diff: 1,
            record: crate::input::Record::Write,
        };
        let split: Vec<Change> = times.iter().enumerate().map(row).collect();
        let table = TableInput {
            splits: vec![split],
            lag: 0,
        };
        let reading = Reading {
            parallelism: 1,
            cuts: Cuts::EachRow,
            seed: 0,
            max_batch: 1,
            state_memory: 1,
            parallel_sink: false,
        };
        let input = Input {
            tables: BTreeMap::from([("t", table)]),
            reading,
        };
        let progress = Progress::even(&input, 1);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let engine = BatchEngine::new().unwrap();
        let answers = runtime
            .block_on(async {
                Model::new(&engine, rel)
                    .await?
                    .answers(&input, &progress)
                    .await
            })
            .unwrap();
        answers
            .iter()
            .map(|a| cells(&a.rows).unwrap().iter().map(show).collect())
            .collect()
    }

    fn count() -> Vec<(String, Expr)> {
        vec![("n".into(), Expr::leaf(Type::Int, "count(*)"))]
    }

    #[test]
    fn a_window_shows_when_it_closes_and_late_rows_do_not_count() {
        let rel = Rel::Window(Box::new(WindowGroup {
            id: 1,
            input: Rel::Table(TABLES[0]),
            window: Window::Tumble { width: 10 * SECOND },
            spelling: Spelling::Function,
            bounds: ["c1".into(), "c2".into()],
            keys: Vec::new(),
            calls: count(),
            having: None,
        }));
        let first = "(1970-01-01T00:00:00, 1970-01-01T00:00:10, 2)";
        let second = "(1970-01-01T00:00:10, 1970-01-01T00:00:20, 1)";
        // The row at 3 s comes when the window that ends at 10 s is closed; the end closes the last.
        assert_eq!(
            answers(&rel, &[1, 5, 12, 3]),
            ["", "", first, &format!("{first}{second}")]
        );
    }

    #[test]
    fn a_session_shows_when_it_closes_and_is_not_opened_again() {
        let rel = Rel::Window(Box::new(WindowGroup {
            id: 1,
            input: Rel::Table(TABLES[0]),
            window: Window::Session { gap: 10 * SECOND },
            spelling: Spelling::Function,
            bounds: ["c1".into(), "c2".into()],
            keys: Vec::new(),
            calls: count(),
            having: None,
        }));
        let first = "(1970-01-01T00:00:00, 1970-01-01T00:00:22, 4)";
        let second = "(1970-01-01T00:00:17, 1970-01-01T00:00:36, 2)";
        // At 26 s the row at 3 s has come, late for none; the one at 17 s joins what is open and not what has closed,
        // and that at 16 s is late.
        let both = format!("{first}{second}");
        assert_eq!(
            answers(&rel, &[0, 6, 12, 3, 26, 17, 16]),
            ["", "", "", "", first, first, &both]
        );
    }

    #[test]
    fn a_key_expires_by_a_gap_or_by_the_watermark_and_begins_anew() {
        let rel = Rel::Group(Box::new(Group {
            input: Rel::Table(TABLES[0]),
            keys: vec![("k".into(), Expr::leaf(Type::Int, "k"))],
            calls: count(),
            having: None,
            ttl: Some((1, 10 * SECOND)),
        }));
        // 10 s after the last row is within the ttl, 11 s is not; an older row joins the live group.
        assert_eq!(
            answers(&rel, &[0, 10, 21, 15]),
            ["(1, 1)", "(1, 2)", "(1, 1)", "(1, 2)"]
        );
    }
}
