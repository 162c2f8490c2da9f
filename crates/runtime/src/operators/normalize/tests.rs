//! Records with their marks in, changes of the table out; and random ones against a model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{AsArray, BinaryArray, Int8Array, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::physical_expr::expressions::Column;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use thalweg_dataflow::marks::{ChangeOp, Origin};
use thalweg_dataflow::plan::{NodeId, Normalize};
use thalweg_dataflow::table::{BadData, EventTimeSource, ExprRef, SourceSpec, WatermarkSpec};
use thalweg_dataflow::{ChangeBatch, Watermark};

use super::Normalization;
use crate::connector::{BadReason, BadRecord, Origins};
use crate::error::RuntimeError;
use crate::job::ReadOrigins;
use crate::metrics::JobMetrics;
use crate::operator::{Barrier, Operator, Stateful};
use crate::operators::OperatorContext;
use crate::reject::Rejected;
use crate::state::{CommitRecord, StateStore, StateWrites};

const SECOND: i64 = 1_000_000_000;

/// One record: what it does to the row of `id`.
#[derive(Debug, Clone)]
struct Record {
    op: ChangeOp,
    id: i64,
    /// `None`: it is unavailable.
    v: Option<&'static str>,
    n: Option<i64>,
    position: Option<i64>,
    /// Seconds.
    time: i64,
}

fn record(op: ChangeOp, id: i64, v: &'static str, position: i64) -> Record {
    Record {
        op,
        id,
        v: Some(v),
        n: Some(0),
        position: Some(position),
        time: 0,
    }
}

fn write(id: i64, v: &'static str, position: i64) -> Record {
    record(ChangeOp::Write, id, v, position)
}

fn read(id: i64, v: &'static str, position: i64) -> Record {
    record(ChangeOp::Read, id, v, position)
}

fn delete(id: i64, position: i64) -> Record {
    record(ChangeOp::Delete, id, "", position)
}

fn truncate(position: i64) -> Record {
    record(ChangeOp::Truncate, 0, "", position)
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("v", DataType::Utf8, true),
        Field::new("id", DataType::Int64, true),
        Field::new("n", DataType::Int64, true),
    ]))
}

fn spec(bad_data: BadData) -> SourceSpec {
    let all = schema();
    let columns = all
        .fields()
        .iter()
        .enumerate()
        .map(|(i, f)| Arc::new(Column::new(f.name(), i)) as ExprRef);
    SourceSpec {
        table: "t".into(),
        connector: "test".into(),
        format: None,
        options: Default::default(),
        bounded: true,
        declared: schema(),
        physical: schema(),
        metadata: Vec::new(),
        columns: columns.collect(),
        schema: schema(),
        event_time: EventTimeSource::Connector,
        watermark: WatermarkSpec::DEFAULT,
        idle_timeout: None,
        max_event_time_ahead: None,
        bad_data,
        updating: true,
        primary_key: vec![1],
    }
}

struct TestOrigins;

impl Origins for TestOrigins {
    fn bad_record(&self, row: usize, reason: BadReason, message: String) -> BadRecord {
        BadRecord {
            reason,
            message,
            raw: None,
            topic: "t".into(),
            partition: 0,
            offset: row as i64,
            place: format!("record {row}"),
        }
    }
}

struct Subject {
    op: Normalization,
    store: StateStore,
    metrics: Arc<JobMetrics>,
    rejected: Rejected,
    epoch: u64,
}

impl Subject {
    fn new(bad_data: BadData, ttl: Option<i64>, memory_bytes: usize) -> Self {
        let spec = Arc::new(spec(bad_data));
        let dir = tempfile::tempdir().expect("a temporary directory").keep();
        let store = StateStore::open(&dir).expect("a fresh directory");
        let (metrics, rejected) = (Arc::new(JobMetrics::default()), Rejected::default());
        let context = OperatorContext {
            node: NodeId(1),
            input_schema: Some(spec.emitted_schema()),
            output_schema: schema(),
            updating_input: true,
            net_input: false,
            store: store.clone(),
            first_table: 1,
            metrics: metrics.clone(),
            memory_bytes,
            vnodes: (0..=u8::MAX).collect(),
            rejected: rejected.clone(),
        };
        let normalize = Normalize {
            spec,
            key: vec![1],
            ttl,
        };
        Self {
            op: Normalization::new(&normalize, context).unwrap(),
            store,
            metrics,
            rejected,
            epoch: 0,
        }
    }

    fn plain() -> Self {
        Self::new(BadData::Fail, None, 1 << 20)
    }

    fn push(&mut self, records: &[Record]) -> Result<(), RuntimeError> {
        self.op.push(0, batch(records))?;
        assert!(self.op.pull()?.is_none(), "changes come at barriers only");
        Ok(())
    }

    /// Ends the epoch with a watermark at this second; the changes as `- id v n` and `+ id v n`.
    fn barrier(&mut self, second: Option<i64>) -> Vec<String> {
        self.epoch += 1;
        let barrier = Barrier {
            epoch: self.epoch,
            watermark: second.map_or(Watermark::NONE, |s| Watermark::at(s * SECOND)),
            idle: false,
            commit: false,
            last: false,
        };
        self.op.barrier(&barrier).unwrap();
        let mut lines = Vec::new();
        while let Some(batch) = self.op.pull().unwrap() {
            for row in 0..batch.n_rows() {
                let (v, n) = (
                    batch.rows().column(0).as_string::<i32>(),
                    number(&batch, 2, row),
                );
                let v = if arrow::array::Array::is_null(v, row) {
                    "null"
                } else {
                    v.value(row)
                };
                let sign = if batch.diff(row) < 0 { "-" } else { "+" };
                let id = number(&batch, 1, row).unwrap();
                let n = n.map_or("null".into(), |n| n.to_string());
                lines.push(format!("{sign} {id} {v} {n}"));
            }
        }
        lines
    }

    fn epoch(&mut self, records: &[Record]) -> Vec<String> {
        self.push(records).unwrap();
        self.barrier(None)
    }

    /// Commits what the operator hands over, as the coordinator does between two barriers.
    fn commit(&mut self) {
        let mut writes = StateWrites::default();
        self.op.write_changes(&mut writes).unwrap();
        let record = CommitRecord {
            epoch: self.epoch,
            splits: vec![],
        };
        self.store.commit("test", writes, &record).unwrap();
    }
}

fn number(batch: &ChangeBatch, column: usize, row: usize) -> Option<i64> {
    let column = batch.rows().column(column).as_primitive::<Int64Type>();
    arrow::array::Array::is_valid(column, row).then(|| column.value(row))
}

fn batch(records: &[Record]) -> ChangeBatch {
    let is_row = |r: &Record| r.op.has_row();
    let v = records.iter().map(|r| r.v.filter(|_| is_row(r)));
    let n = records.iter().map(|r| r.n.filter(|_| is_row(r)));
    let ids = records
        .iter()
        .map(|r| (r.op != ChangeOp::Truncate).then_some(r.id));
    let unavailable = records.iter().map(|r| r.v.is_none().then_some(&[1u8][..]));
    let columns: Vec<arrow::array::ArrayRef> = vec![
        Arc::new(StringArray::from_iter(v)),
        Arc::new(Int64Array::from_iter(ids)),
        Arc::new(Int64Array::from_iter(n)),
        Arc::new(Int8Array::from_iter_values(
            records.iter().map(|r| r.op as i8),
        )),
        Arc::new(Int64Array::from_iter(records.iter().map(|r| r.position))),
        Arc::new(Int64Array::new_null(records.len())),
        Arc::new(BinaryArray::from_iter(unavailable)),
        Arc::new(Int32Array::from_iter_values(0..records.len() as i32)),
    ];
    let schema = spec(BadData::Fail).emitted_schema();
    let rows = RecordBatch::try_new(schema, columns).unwrap();
    let times = records.iter().map(|r| r.time * SECOND).collect();
    ChangeBatch::append(rows, times)
        .with_origin(Origin(Arc::new(ReadOrigins(Arc::new(TestOrigins)))))
}

const NOTHING: [&str; 0] = [];

#[test]
fn rule_6_1_records_become_the_changes_of_a_table() {
    let mut t = Subject::plain();
    assert_eq!(
        t.epoch(&[write(1, "a", 1), write(2, "b", 2)]),
        ["+ 1 a 0", "+ 2 b 0"]
    );
    assert_eq!(
        t.epoch(&[write(1, "c", 3), delete(2, 4)]),
        ["- 1 a 0", "+ 1 c 0", "- 2 b 0"]
    );
    // Net: what comes and goes within an epoch, or goes and comes back, is no change.
    assert_eq!(
        t.epoch(&[
            write(3, "x", 5),
            delete(3, 6),
            delete(1, 7),
            write(1, "c", 8)
        ]),
        NOTHING
    );
    // A change of key is a deletion and an insertion.
    assert_eq!(
        t.epoch(&[delete(1, 9), write(4, "c", 9)]),
        ["- 1 c 0", "+ 4 c 0"]
    );
}

#[test]
fn rule_6_3_the_same_insert_twice_is_one_row() {
    let mut t = Subject::plain();
    assert_eq!(t.epoch(&[write(1, "a", 1), write(1, "a", 1)]), ["+ 1 a 0"]);
    assert_eq!(t.epoch(&[write(1, "a", 1)]), NOTHING);
    // A stretch of the log that comes again ends where it had ended.
    assert_eq!(t.epoch(&[write(1, "b", 2)]), ["- 1 a 0", "+ 1 b 0"]);
    assert_eq!(t.epoch(&[write(1, "a", 1), write(1, "b", 2)]), NOTHING);
}

#[test]
fn rule_6_3_a_stale_read_changes_nothing() {
    let mut t = Subject::plain();
    assert_eq!(
        t.epoch(&[write(1, "new", 10), read(1, "old", 5)]),
        ["+ 1 new 0"]
    );
    assert_eq!(t.epoch(&[read(1, "old", 9)]), NOTHING);
    assert_eq!(t.metrics.unapplied_changes.load(Ordering::Relaxed), 2);
    assert_eq!(
        t.epoch(&[read(1, "same age", 10)]),
        ["- 1 new 0", "+ 1 same age 0"]
    );
    // Nor does it bring back a row that was deleted later, or one that went with all others.
    assert_eq!(t.epoch(&[delete(1, 20)]), ["- 1 same age 0"]);
    assert_eq!(t.epoch(&[read(1, "old", 15)]), NOTHING);
    assert_eq!(
        t.epoch(&[truncate(30), read(2, "old", 29), read(3, "new", 31)]),
        ["+ 3 new 0"]
    );
    // A read without a position is as good as any other record.
    let unknown = Record {
        position: None,
        ..read(3, "unknown", 0)
    };
    assert_eq!(t.epoch(&[unknown]), ["- 3 new 0", "+ 3 unknown 0"]);
}

#[test]
fn deletions_of_unknown_rows_are_counted() {
    let mut t = Subject::plain();
    assert_eq!(
        t.epoch(&[delete(1, 1), delete(1, 1), write(2, "b", 2)]),
        ["+ 2 b 0"]
    );
    assert_eq!(t.metrics.unapplied_changes.load(Ordering::Relaxed), 2);
}

fn partial(id: i64, n: i64) -> Record {
    Record {
        v: None,
        n: Some(n),
        ..write(id, "", 100)
    }
}

#[test]
fn rule_6_2_an_unavailable_value_keeps_the_old_one() {
    let mut t = Subject::plain();
    t.epoch(&[write(1, "toast", 1), write(2, "b", 2)]);
    // Several changes of one key, in one batch, with and without the value.
    let out = t.epoch(&[
        partial(1, 5),
        partial(2, 6),
        partial(1, 7),
        write(2, "c", 3),
        partial(2, 8),
    ]);
    assert_eq!(out, ["- 1 toast 0", "+ 1 toast 7", "- 2 b 0", "+ 2 c 8"]);
}

#[test]
fn rule_6_2_without_a_stored_row_an_unavailable_value_is_a_bad_record() {
    let fault = Subject::plain()
        .push(&[write(2, "b", 1), partial(1, 5)])
        .unwrap_err();
    assert_eq!(
        fault.to_string(),
        "bad record in table \"t\" at record 1: column \"v\" is unavailable in the record, and no row is stored for \
         its key"
    );

    let mut t = Subject::new(BadData::Drop, None, 1 << 20);
    assert_eq!(
        t.epoch(&[partial(1, 5), write(1, "a", 1), partial(1, 6)]),
        ["+ 1 a 6"]
    );
    assert_eq!(t.epoch(&[delete(1, 2), partial(1, 6)]), ["- 1 a 6"]);
    assert_eq!(
        t.metrics.bad_records(),
        BTreeMap::from([(("t".to_string(), BadReason::Inapplicable), 2)])
    );
    assert!(t.rejected.take().is_empty());

    let mut t = Subject::new(BadData::DeadLetter("letters".into()), None, 1 << 20);
    assert_eq!(
        t.epoch(&[write(1, "a", 1), truncate(2), partial(1, 5)]),
        NOTHING
    );
    let letters: Vec<i64> = t.rejected.take().iter().map(|r| r.offset).collect();
    assert_eq!(letters, [2]);
}

#[test]
fn rule_6_1_a_truncate_takes_every_row_in_bounded_batches() {
    // Nothing fits into memory, so that most rows are in the store alone.
    let mut t = Subject::new(BadData::Fail, None, 0);
    let rows: Vec<Record> = (0..20_000).map(|id| write(id, "a", id)).collect();
    for chunk in rows.chunks(4000) {
        t.epoch(chunk);
        t.commit();
        t.barrier(None);
    }
    t.push(&[
        write(7, "kept in memory", 20_000),
        truncate(20_001),
        write(3, "a", 20_002),
        write(4, "new", 20_003),
    ])
    .unwrap();
    let out = t.barrier(None);
    let gone: BTreeSet<&str> = out
        .iter()
        .filter(|l| l.starts_with('-'))
        .map(String::as_str)
        .collect();
    assert_eq!(
        (out.len(), gone.len()),
        (20_000, 19_999),
        "each row goes once, but for one that came back as it was"
    );
    assert!(out.contains(&"+ 4 new 0".to_string()) && !gone.contains("- 3 a 0"));
    assert!(
        t.metrics.evicted_keys.load(Ordering::Relaxed) > 10_000,
        "the test would prove nothing otherwise"
    );

    // The store forgets them with the next commit, and not before does anything come back from it.
    assert_eq!(t.epoch(&[write(9, "b", 20_004)]), ["+ 9 b 0"]);
    t.commit();
    assert_eq!(
        t.epoch(&[write(10, "b", 20_005), delete(4, 20_006)]),
        ["+ 10 b 0", "- 4 new 0"]
    );
    t.commit();
    t.barrier(None);
    assert_eq!(t.epoch(&[truncate(20_007)]).len(), 3);
}

#[test]
fn rule_5_4_rows_expire_only_by_their_own_time_to_live() {
    let at = |id: i64, time: i64| Record {
        time,
        ..write(id, "a", 1)
    };
    let mut t = Subject::new(BadData::Fail, Some(60 * SECOND), 1 << 20);
    t.push(&[at(1, 0), at(2, 0)]).unwrap();
    assert_eq!(t.barrier(Some(0)), ["+ 1 a 0", "+ 2 a 0"]);
    t.push(&[at(2, 50)]).unwrap();
    assert_eq!(t.barrier(Some(60)), NOTHING);
    assert_eq!(t.barrier(Some(61)), ["- 1 a 0"]);
    assert_eq!(t.metrics.expired_keys.load(Ordering::Relaxed), 1);
    assert_eq!(t.barrier(Some(110)), NOTHING);
    assert_eq!(t.barrier(Some(111)), ["- 2 a 0"]);

    let mut t = Subject::plain();
    t.push(&[at(1, 0)]).unwrap();
    t.barrier(Some(0));
    assert_eq!(t.barrier(Some(1_000_000_000)), NOTHING);
}

#[test]
fn a_deletion_is_remembered_for_a_day() {
    let mut t = Subject::plain();
    t.epoch(&[write(1, "a", 10)]);
    t.push(&[delete(1, 20)]).unwrap();
    assert_eq!(t.barrier(Some(1000)), ["- 1 a 0"]);
    t.push(&[read(1, "old", 15)]).unwrap();
    assert_eq!(t.barrier(Some(86_400)), NOTHING);
    t.barrier(Some(2000 + 86_400));
    t.push(&[read(1, "old", 15)]).unwrap();
    assert_eq!(t.barrier(Some(2000 + 86_400)), ["+ 1 old 0"]);
}

/// What a table is by the rules, record by record.
#[derive(Default)]
struct Model {
    rows: BTreeMap<i64, (String, Option<i64>)>,
    /// Positions of rows and of deletions.
    positions: BTreeMap<i64, i64>,
    truncated: Option<i64>,
}

impl Model {
    fn apply(&mut self, record: &Record) {
        let Record {
            op,
            id,
            v,
            n,
            position,
            ..
        } = record.clone();
        let position = position.unwrap();
        let known = self.positions.get(&id).copied().or(self.truncated);
        match op {
            ChangeOp::Truncate => {
                *self = Self {
                    truncated: Some(position),
                    ..Self::default()
                };
            }
            ChangeOp::Delete => {
                self.rows.remove(&id);
                self.positions.insert(id, position);
            }
            ChangeOp::Read if known.is_some_and(|known| position < known) => {}
            ChangeOp::Read | ChangeOp::Write => {
                let old = self.rows.get(&id).map(|(v, _)| v.clone());
                let Some(v) = v.map(str::to_string).or(old) else {
                    return;
                };
                self.rows.insert(id, (v, n));
                self.positions.insert(id, position);
            }
        }
    }

    fn lines(&self) -> BTreeSet<String> {
        let number = |n: &Option<i64>| n.map_or("null".into(), |n| n.to_string());
        self.rows
            .iter()
            .map(|(id, (v, n))| format!("{id} {v} {}", number(n)))
            .collect()
    }
}

fn random_records(rng: &mut StdRng) -> Vec<Record> {
    let n_keys = [3, 12, 200][rng.random_range(0..3)];
    let mut records: Vec<Record> = Vec::new();
    for position in 1..rng.random_range(2..400) {
        let id = rng.random_range(0..n_keys);
        let v = ["a", "b", "c", ""][rng.random_range(0..4)];
        let next = match rng.random_range(0..100) {
            0..45 => write(id, v, position),
            45..60 => partial(id, rng.random_range(0..3)),
            60..75 => delete(id, position),
            75..90 => read(id, v, (position - rng.random_range(0..20)).max(0)),
            90..92 => truncate(position),
            // A feed that is delivered at least once goes back a little.
            _ => {
                let from = records.len().saturating_sub(rng.random_range(0..6));
                let again = records[from..].to_vec();
                records.extend(again);
                continue;
            }
        };
        let n = (next.n.is_some() && rng.random_bool(0.8)).then(|| rng.random_range(0..2));
        let position = next.position.map(|p| p.min(position));
        records.push(Record {
            n,
            position,
            ..next
        });
    }
    records
}

/// Whatever the records, the cuts, the commits and the memory: at each epoch's end the changes have made the table
/// that the model has, and each epoch's changes are net.
#[test]
fn random_changelogs_give_the_table_of_the_model() {
    for seed in 0..400 {
        let mut rng = StdRng::seed_from_u64(seed);
        let records = random_records(&mut rng);
        let memory = [0, 2000, 1 << 20][rng.random_range(0..3)];
        let mut t = Subject::new(BadData::Drop, None, memory);
        let mut model = Model::default();
        let mut table: BTreeSet<String> = BTreeSet::new();
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            for _ in 0..rng.random_range(0..3) {
                let (now, later) = rest.split_at(rng.random_range(0..=rest.len().min(30)));
                t.push(now).unwrap();
                now.iter().for_each(|record| model.apply(record));
                rest = later;
            }
            let mut changed = BTreeSet::new();
            for line in t.barrier(None) {
                let (sign, row) = line.split_once(' ').unwrap();
                let key = format!("{sign}{}", row.split(' ').next().unwrap());
                assert!(
                    changed.insert(key),
                    "seed {seed}: {line} is one of two in an epoch"
                );
                let is_right = if sign == "-" {
                    table.remove(row)
                } else {
                    table.insert(row.into())
                };
                assert!(
                    is_right,
                    "seed {seed}: {line} does not follow from {table:?}"
                );
            }
            assert_eq!(table, model.lines(), "seed {seed}, epoch {}", t.epoch);
            if rng.random_bool(0.6) {
                t.commit();
            }
        }
    }
}
