//! Random input: rows that come and go, dealt out to splits, and how the job is to read them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, Int64Builder, ListBuilder,
    RecordBatch, StringArray, TimestampNanosecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use rand::Rng;
use rand::rngs::StdRng;

use crate::query::{SECOND, Table};

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub id: i64,
    pub k: Option<i64>,
    pub s: Option<&'static str>,
    pub b: Option<bool>,
    pub i: Option<i64>,
    /// Hundredths.
    pub d: Option<i64>,
    /// Quarters, so that sums are exact in any order.
    pub f: Option<i64>,
    pub xs: Option<Vec<Option<i64>>>,
    /// Nanoseconds.
    pub ts: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub row: Row,
    /// What the record does to the table; 0: nothing.
    pub diff: i64,
    pub record: Record,
}

/// What a record of a changelog says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The row is now this one.
    Write,
    /// A snapshot that is older than all changes read this row.
    StaleRead,
    Delete,
}

impl Change {
    fn insertion(row: Row) -> Self {
        Self {
            row,
            diff: 1,
            record: Record::Write,
        }
    }

    fn deletion(row: Row) -> Self {
        Self {
            row,
            diff: -1,
            record: Record::Delete,
        }
    }

    /// A record that must change nothing.
    fn nothing(row: Row, record: Record) -> Self {
        Self {
            row,
            diff: 0,
            record,
        }
    }
}

/// What a table gives, by split. A row's changes all lie in one split, in order.
#[derive(Debug, Clone)]
pub struct TableInput {
    pub splits: Vec<Vec<Change>>,
    /// Nanoseconds that the watermark stays behind the latest row.
    pub lag: i64,
}

#[derive(Debug, Clone)]
pub struct Input {
    pub tables: BTreeMap<&'static str, TableInput>,
    pub reading: Reading,
}

/// How the job reads. None of it may change an answer.
#[derive(Debug, Clone)]
pub struct Reading {
    pub parallelism: usize,
    pub cuts: Cuts,
    /// Seeds the sizes of batches.
    pub seed: u64,
    pub max_batch: usize,
    /// Bytes of state to keep in memory.
    pub state_memory: u64,
    /// The sink is written by as many subtasks as there are.
    pub parallel_sink: bool,
}

/// When epochs end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cuts {
    /// After that many rows, over all tables.
    Rows(u64),
    /// After every row: flush interval 0.
    EachRow,
    /// By the clock; a reader that has given this many rows of its split gives no more in the epoch.
    Gates(usize),
}

/// 2024-01-01T00:00:00Z.
const START: i64 = 1_704_067_200 * SECOND;

pub fn input(rng: &mut StdRng, tables: &[Table]) -> Input {
    let reading = reading(rng);
    let n_splits = match reading.cuts {
        Cuts::EachRow => 1,
        _ => reading.parallelism,
    };
    let most = if reading.cuts == Cuts::EachRow {
        12
    } else {
        [3, 12, 30, 60][rng.random_range(0..4)]
    };
    let tables = tables
        .iter()
        .map(|t| (t.name, table(rng, *t, n_splits, most)))
        .collect();
    Input { tables, reading }
}

fn reading(rng: &mut StdRng) -> Reading {
    let cuts = match rng.random_range(0..10) {
        0 => Cuts::EachRow,
        1..=5 => Cuts::Rows(rng.random_range(1..=20)),
        _ => Cuts::Gates(rng.random_range(1..=10)),
    };
    Reading {
        parallelism: if cuts == Cuts::EachRow {
            1
        } else {
            rng.random_range(1..=3)
        },
        cuts,
        seed: rng.random(),
        max_batch: rng.random_range(1..=12),
        state_memory: [1, 1 << 12, 1 << 30][rng.random_range(0..3)],
        parallel_sink: rng.random_bool(0.5),
    }
}

fn table(rng: &mut StdRng, table: Table, n_splits: usize, most: usize) -> TableInput {
    let n_rows = rng.random_range(0..=most);
    let changes = if table.updating {
        changelog(rng, n_rows)
    } else {
        rows(rng, n_rows)
    };
    let mut splits = vec![Vec::new(); n_splits];
    for change in changes {
        // By id, so that a retraction never overtakes its insertion.
        let split = (change.row.id as usize * 7 / 3) % n_splits;
        splits[split].push(change);
    }
    TableInput {
        splits,
        lag: [0, SECOND, 4 * SECOND][rng.random_range(0..3)],
    }
}

fn rows(rng: &mut StdRng, n: usize) -> Vec<Change> {
    (0..n as i64)
        .map(|id| Change::insertion(row(rng, id, id)))
        .collect()
}

/// Insertions, deletions and updates of rows with a unique id, as records that may come again, come late or concern
/// what is not there.
fn changelog(rng: &mut StdRng, n: usize) -> Vec<Change> {
    let mut live: BTreeMap<i64, Row> = BTreeMap::new();
    let mut changes = Vec::new();
    for step in 0..n as i64 {
        let id = rng.random_range(0..8);
        let old = live.remove(&id);
        if let Some(old) = &old {
            changes.push(Change::deletion(old.clone()));
            if rng.random_bool(0.1) {
                changes.push(Change::nothing(old.clone(), Record::Delete));
            }
            if rng.random_bool(0.1) {
                changes.push(Change::nothing(old.clone(), Record::StaleRead));
            }
            if rng.random_bool(0.4) {
                continue;
            }
        }
        let new = row(rng, id, step);
        live.insert(id, new.clone());
        changes.push(Change::insertion(new.clone()));
        if rng.random_bool(0.1) {
            changes.push(Change::nothing(new, Record::Write));
        }
        if let Some(old) = old.filter(|_| rng.random_bool(0.1)) {
            changes.push(Change::nothing(old, Record::StaleRead));
        }
    }
    changes
}

/// Few different values, so that groups form, empty and form again.
fn row(rng: &mut StdRng, id: i64, step: i64) -> Row {
    let mut maybe = |n: i64| rng.random_bool(0.9).then(|| rng.random_range(0..n));
    let (k, s, b, i, d, f) = (
        maybe(4),
        maybe(5),
        maybe(2),
        maybe(30),
        maybe(2000),
        maybe(40),
    );
    Row {
        id,
        k,
        s: s.map(|s| ["a", "b", "ab", "Ä", ""][s as usize]),
        b: b.map(|b| b == 1),
        i: i.map(|i| i - 10),
        d: d.map(|d| d - 700),
        f: f.map(|f| f - 12),
        xs: rng.random_bool(0.9).then(|| {
            (0..rng.random_range(0..4))
                .map(|_| rng.random_bool(0.9).then(|| rng.random_range(0..5)))
                .collect()
        }),
        // Time advances by half a second a row, and a row is up to six seconds behind.
        ts: START + step * SECOND / 2 - rng.random_range(0..12) * SECOND / 2,
    }
}

pub fn schema() -> SchemaRef {
    let field = |name: &str, ty: DataType| Field::new(name, ty, true);
    Arc::new(Schema::new(vec![
        field("id", DataType::Int64),
        field("k", DataType::Int64),
        field("s", DataType::Utf8),
        field("b", DataType::Boolean),
        field("i", DataType::Int64),
        field("d", DataType::Decimal128(12, 2)),
        field("f", DataType::Float64),
        field(
            "xs",
            DataType::List(Arc::new(field("item", DataType::Int64))),
        ),
        field("ts", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ]))
}

/// Rows in [`schema`].
pub fn batch(rows: &[&Row]) -> RecordBatch {
    let mut lists = ListBuilder::new(Int64Builder::new());
    for row in rows {
        lists.append_option(row.xs.clone());
    }
    let decimals = Decimal128Array::from_iter(rows.iter().map(|r| r.d.map(i128::from)));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.id))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.k))),
        Arc::new(StringArray::from_iter(rows.iter().map(|r| r.s))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|r| r.b))),
        Arc::new(Int64Array::from_iter(rows.iter().map(|r| r.i))),
        Arc::new(
            decimals
                .with_precision_and_scale(12, 2)
                .expect("the values have few digits"),
        ),
        Arc::new(Float64Array::from_iter(
            rows.iter().map(|r| r.f.map(|f| f as f64 / 4.0)),
        )),
        Arc::new(lists.finish()),
        Arc::new(TimestampNanosecondArray::from_iter_values(
            rows.iter().map(|r| r.ts),
        )),
    ];
    RecordBatch::try_new(schema(), columns).expect("columns are as in the schema")
}
