//! Paired changes: what a sink writes of an updating result (semantics 4.3).
//!
//! An epoch's changes are brought together by key, consolidated (equal rows added up), and what is
//! left is paired: a row that went and a row that came under one key are an update.

use arrow::array::{ArrayRef, make_comparator};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{SortOptions, concat_batches};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::ChangeBatch;

use crate::error::RuntimeError;
use crate::state::interner::KeyInterner;

/// One epoch's net changes of an updating result, ready to be written in order.
#[derive(Debug, Clone)]
pub struct PairedChanges {
    /// The images that `changes` point into, in the sink's schema.
    pub rows: RecordBatch,
    pub changes: Vec<PairedChange>,
}

/// What happened to one row of the result; positions in [`PairedChanges::rows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairedChange {
    Create { after: u32 },
    Update { before: u32, after: u32 },
    Delete { before: u32 },
}

/// Collects the changes of an epoch.
pub struct Pairing {
    schema: SchemaRef,
    key: Option<Vec<usize>>,
    /// Deletions by TTL, which pair with nothing, and all other changes.
    expired: Vec<ChangeBatch>,
    changed: Vec<ChangeBatch>,
}

impl Pairing {
    /// `key`: positions by which changes are paired; `None`: by the whole row.
    pub fn new(schema: SchemaRef, key: Option<Vec<usize>>) -> Self {
        Self {
            schema,
            key,
            expired: Vec::new(),
            changed: Vec::new(),
        }
    }

    pub fn push(&mut self, batch: ChangeBatch) {
        if batch.is_expiry() {
            self.expired.push(batch)
        } else {
            self.changed.push(batch)
        }
    }

    /// The epoch's net changes, in the order in which their keys were first touched; deletions by TTL
    /// first. Begins the next epoch.
    pub fn settle(&mut self) -> Result<PairedChanges, RuntimeError> {
        let (expired, changed) = (
            std::mem::take(&mut self.expired),
            std::mem::take(&mut self.changed),
        );
        let mut changes = Vec::new();
        let n_expired: usize = expired.iter().map(ChangeBatch::n_rows).sum();
        let batches: Vec<&RecordBatch> = expired
            .iter()
            .chain(&changed)
            .map(ChangeBatch::rows)
            .collect();
        let rows = concat_batches(&self.schema, batches)?;
        self.pair(&rows, &expired, 0, &mut changes)?;
        self.pair(&rows, &changed, n_expired, &mut changes)?;
        Ok(PairedChanges { rows, changes })
    }

    /// Pairs the changes of `batches`, whose rows stand in `rows` from `offset`.
    fn pair(
        &self,
        rows: &RecordBatch,
        batches: &[ChangeBatch],
        offset: usize,
        changes: &mut Vec<PairedChange>,
    ) -> Result<(), RuntimeError> {
        let diffs: Vec<i64> = batches
            .iter()
            .flat_map(|b| (0..b.n_rows()).map(|i| b.diff(i)))
            .collect();
        if diffs.is_empty() {
            return Ok(());
        }
        let part = rows.slice(offset, diffs.len());
        let net = net_rows(&part, &diffs)?;
        let keys = match &self.key {
            Some(key) => slots(
                key.iter().map(|&i| part.column(i).clone()).collect(),
                part.num_rows(),
            )?,
            None => net.row_ids.clone(),
        };
        let order = rows_by_key(&net, &keys);
        let at = |row: u32| row + offset as u32;
        for group in order.groups() {
            emit_group(group, &net, &at, changes);
        }
        Ok(())
    }
}

/// Pairs the changes of an aggregation that come straight from it: net, each ±1, and the old image of a
/// key directly before its new one. Nothing needs to be collected, so an epoch of any size passes.
pub fn pair_adjacent(batch: &ChangeBatch, key: &[usize]) -> Result<PairedChanges, RuntimeError> {
    let same_key = same_as_next(batch.rows(), key)?;
    // A projection may have left nothing of a change.
    let all: Vec<usize> = (0..batch.rows().num_columns()).collect();
    let same_row = same_as_next(batch.rows(), &all)?;
    let mut changes = Vec::with_capacity(batch.n_rows());
    let mut row = 0;
    while row < batch.n_rows() {
        let at = row as u32;
        let is_pair = batch.diff(row) < 0
            && !batch.is_expiry()
            && row + 1 < batch.n_rows()
            && batch.diff(row + 1) > 0
            && same_key[row];
        match batch.diff(row) {
            _ if is_pair && same_row[row] => {}
            _ if is_pair => changes.push(PairedChange::Update {
                before: at,
                after: at + 1,
            }),
            diff if diff < 0 => changes.push(PairedChange::Delete { before: at }),
            _ => changes.push(PairedChange::Create { after: at }),
        }
        row += if is_pair { 2 } else { 1 };
    }
    Ok(PairedChanges {
        rows: batch.rows().clone(),
        changes,
    })
}

/// Whether each row but the last equals the row behind it in these columns.
fn same_as_next(rows: &RecordBatch, columns: &[usize]) -> Result<Vec<bool>, RuntimeError> {
    let n = rows.num_rows().saturating_sub(1);
    let mut same = vec![true; n];
    for &column in columns {
        let column = rows.column(column);
        let (this, next) = (column.slice(0, n), column.slice(column.len() - n, n));
        if column.data_type().is_nested() {
            let compare = make_comparator(&this, &next, SortOptions::default())?;
            same.iter_mut()
                .enumerate()
                .for_each(|(i, s)| *s &= compare(i, i).is_eq());
        } else {
            let equal = not_distinct(&this, &next)?;
            same.iter_mut()
                .zip(equal.values().iter())
                .for_each(|(s, e)| *s &= e);
        }
    }
    Ok(same)
}

/// Equal rows added up: the net multiplicity stands at the first of them, 0 at the others.
struct NetRows {
    row_ids: Vec<u32>,
    net: Vec<i64>,
}

fn net_rows(rows: &RecordBatch, diffs: &[i64]) -> Result<NetRows, RuntimeError> {
    let row_ids = slots(rows.columns().to_vec(), rows.num_rows())?;
    let n_ids = row_ids.iter().max().map_or(0, |&m| m as usize + 1);
    let mut first = vec![u32::MAX; n_ids];
    let mut net = vec![0; diffs.len()];
    for (row, (&id, &diff)) in row_ids.iter().zip(diffs).enumerate() {
        let home = &mut first[id as usize];
        if *home == u32::MAX {
            *home = row as u32;
        }
        net[*home as usize] += diff;
    }
    Ok(NetRows { row_ids, net })
}

/// A number per row, equal for equal rows.
fn slots(columns: Vec<ArrayRef>, n_rows: usize) -> Result<Vec<u32>, RuntimeError> {
    let mut out = Vec::with_capacity(n_rows);
    if columns.is_empty() {
        out.resize(n_rows, 0);
        return Ok(out);
    }
    let types = columns.iter().map(|c| c.data_type().clone());
    KeyInterner::new(types)?.intern(&columns, n_rows, &mut out, &mut Vec::new())?;
    Ok(out)
}

/// Rows with a net change, grouped by key; keys in the order of their first touch.
struct Grouped {
    rows: Vec<u32>,
    starts: Vec<usize>,
}

impl Grouped {
    fn groups(&self) -> impl Iterator<Item = &[u32]> {
        self.starts.windows(2).map(|w| &self.rows[w[0]..w[1]])
    }
}

fn rows_by_key(net: &NetRows, keys: &[u32]) -> Grouped {
    // A counting sort: keys are numbered in the order of their first touch.
    let n_keys = keys.iter().max().map_or(0, |&m| m as usize + 1);
    let mut starts = vec![0; n_keys + 1];
    let changed = || (0..keys.len()).filter(|&row| net.net[row] != 0);
    for row in changed() {
        starts[keys[row] as usize + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    let mut rows = vec![0; starts[n_keys]];
    for row in changed() {
        let slot = &mut next[keys[row] as usize];
        rows[*slot] = row as u32;
        *slot += 1;
    }
    Grouped { rows, starts }
}

fn emit_group(
    group: &[u32],
    net: &NetRows,
    at: &impl Fn(u32) -> u32,
    changes: &mut Vec<PairedChange>,
) {
    let copies = |sign: i64| {
        group.iter().flat_map(move |&row| {
            let n = (net.net[row as usize] * sign).max(0) as usize;
            std::iter::repeat_n(row, n)
        })
    };
    let (mut before, mut after) = (copies(-1), copies(1));
    loop {
        changes.push(match (before.next(), after.next()) {
            (Some(b), Some(a)) => PairedChange::Update {
                before: at(b),
                after: at(a),
            },
            (Some(b), None) => PairedChange::Delete { before: at(b) },
            (None, Some(a)) => PairedChange::Create { after: at(a) },
            (None, None) => return,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, Int64Array, StringArray};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};
    use std::sync::Arc;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![
            Field::new("k", DataType::Utf8, true),
            Field::new("v", DataType::Int64, true),
        ]))
    }

    fn batch(rows: &[(&str, i64, i64)]) -> ChangeBatch {
        let k = StringArray::from_iter_values(rows.iter().map(|r| r.0));
        let v = Int64Array::from_iter_values(rows.iter().map(|r| r.1));
        let rows_batch = RecordBatch::try_new(schema(), vec![Arc::new(k), Arc::new(v)]).unwrap();
        let diffs = rows.iter().map(|r| r.2).collect();
        ChangeBatch::new(rows_batch, vec![0; rows.len()].into(), Some(diffs))
    }

    fn show(key: Option<Vec<usize>>, batches: Vec<ChangeBatch>) -> Vec<String> {
        let mut pairing = Pairing::new(schema(), key);
        batches.into_iter().for_each(|b| pairing.push(b));
        text(&pairing.settle().unwrap())
    }

    fn text(out: &PairedChanges) -> Vec<String> {
        let image = |i: u32| {
            let k = out.rows.column(0).as_string::<i32>().value(i as usize);
            format!(
                "{k}{}",
                out.rows
                    .column(1)
                    .as_primitive::<Int64Type>()
                    .value(i as usize)
            )
        };
        out.changes
            .iter()
            .map(|c| match *c {
                PairedChange::Create { after } => format!("c({})", image(after)),
                PairedChange::Update { before, after } => {
                    format!("u({}→{})", image(before), image(after))
                }
                PairedChange::Delete { before } => format!("d({})", image(before)),
            })
            .collect()
    }

    #[test]
    fn rule_4_3_pairs_by_key_after_consolidation() {
        let changes = batch(&[
            ("a", 1, -1),
            ("b", 5, 1),
            ("a", 2, 1),
            ("c", 9, -1),
            ("b", 5, -1),
            ("a", 2, -1),
            ("a", 3, 1),
        ]);
        assert_eq!(show(Some(vec![0]), vec![changes]), ["u(a1→a3)", "d(c9)"]);
    }

    #[test]
    fn rule_4_3_without_a_key_multiplicity_n_is_n_events_and_nothing_is_an_update() {
        assert_eq!(
            show(None, vec![batch(&[("a", 1, 2), ("a", 2, -1)])]),
            ["c(a1)", "c(a1)", "d(a2)"]
        );
    }

    #[test]
    fn rule_5_3_an_expired_key_that_comes_back_is_deleted_and_created() {
        let expired = batch(&[("a", 150, -1)]).with_expiry(true);
        assert_eq!(
            show(Some(vec![0]), vec![batch(&[("a", 150, 1)]), expired]),
            ["d(a150)", "c(a150)"]
        );
    }

    #[test]
    fn adjacent_changes_pair_only_under_one_key() {
        // A filter has dropped the new image of "a" and the old one of "b".
        let changes = batch(&[
            ("a", 1, -1),
            ("b", 2, 1),
            ("c", 3, -1),
            ("c", 4, 1),
            ("e", 6, -1),
            ("e", 6, 1),
            ("d", 5, -1),
        ]);
        let out = pair_adjacent(&changes, &[0]).unwrap();
        assert_eq!(text(&out), ["d(a1)", "c(b2)", "u(c3→c4)", "d(d5)"]);
        assert_eq!(
            text(&pair_adjacent(&batch(&[("a", 1, -1)]).with_expiry(true), &[0]).unwrap()),
            ["d(a1)"]
        );
        assert!(pair_adjacent(&batch(&[]), &[0]).unwrap().changes.is_empty());
    }

    #[test]
    fn the_next_epoch_begins_empty() {
        let mut pairing = Pairing::new(schema(), None);
        pairing.push(batch(&[("a", 1, 1)]));
        assert_eq!(pairing.settle().unwrap().changes.len(), 1);
        assert_eq!(pairing.settle().unwrap().changes.len(), 0);
    }
}
