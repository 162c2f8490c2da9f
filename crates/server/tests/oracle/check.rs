//! Whether a recorded changelog is what it must be: net, never negative, and at each epoch's end the answer.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use thalweg_runtime::pairing::PairedChange;

use crate::connector::{Output, Record};
use crate::model::Answer;

/// One row's values.
pub type Cells = Vec<Cell>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cell {
    Null,
    Text(String),
    /// By its bits; compared with a tolerance where the last digits are not defined.
    Float(u64),
}

pub fn cells(batch: &RecordBatch) -> Result<Vec<Cells>> {
    let options = FormatOptions::default().with_null("NULL");
    let formatters = batch
        .columns()
        .iter()
        .map(|c| ArrayFormatter::try_new(c, &options))
        .collect::<Result<Vec<_>, _>>()?;
    let cell = |row: usize, i: usize| {
        let column = batch.column(i);
        match column.data_type() {
            _ if column.is_null(row) => Cell::Null,
            DataType::Float64 => {
                Cell::Float(column.as_primitive::<Float64Type>().value(row).to_bits())
            }
            _ => Cell::Text(formatters[i].value(row).to_string()),
        }
    };
    Ok((0..batch.num_rows())
        .map(|row| (0..batch.num_columns()).map(|i| cell(row, i)).collect())
        .collect())
}

/// The result as its changelog has made it.
#[derive(Default)]
struct Accumulated {
    rows: HashMap<Cells, i64>,
}

impl Accumulated {
    fn add(&mut self, row: Cells) {
        *self.rows.entry(row).or_default() += 1;
    }

    fn remove(&mut self, row: &Cells) -> Result<(), String> {
        let count = self.rows.get_mut(row).filter(|n| **n > 0);
        let Some(count) = count else {
            return Err(format!("{} is deleted but is not there", show(row)));
        };
        *count -= 1;
        if *count == 0 {
            self.rows.remove(row);
        }
        Ok(())
    }

    fn sorted(&self) -> Vec<Cells> {
        let mut rows: Vec<Cells> = self
            .rows
            .iter()
            .flat_map(|(r, n)| std::iter::repeat_n(r.clone(), *n as usize))
            .collect();
        sort(&mut rows);
        rows
    }
}

/// Checks every epoch of `record` against `answers`. The error says what is wrong in which epoch.
pub fn check(record: &Record, answers: &[Answer], expiring: bool) -> Result<(), String> {
    let key = record.key.clone().flatten();
    let mut accumulated = Accumulated::default();
    for (i, answer) in answers.iter().enumerate() {
        let epoch = i as u64 + 1;
        let outputs: Vec<&Output> = record
            .outputs
            .iter()
            .filter(|(e, _)| *e == epoch)
            .map(|(_, o)| o)
            .collect();
        let in_epoch = |fault: String| format!("epoch {epoch}: {fault}");
        let mut changes = EpochChanges {
            key: key.as_deref(),
            expiring,
            reborn: &answer.reborn,
            touched: HashMap::new(),
        };
        for output in outputs {
            apply(output, &mut accumulated, &mut changes).map_err(in_epoch)?;
        }
        compare(&accumulated.sorted(), &answer.rows).map_err(in_epoch)?;
    }
    Ok(())
}

fn apply(
    output: &Output,
    accumulated: &mut Accumulated,
    epoch: &mut EpochChanges<'_>,
) -> Result<(), String> {
    let images = |batch: &RecordBatch| cells(batch).map_err(|e| e.to_string());
    match output {
        Output::Rows(rows) => {
            images(rows)?
                .into_iter()
                .for_each(|row| accumulated.add(row));
            Ok(())
        }
        Output::Changes(changes) => {
            let images = images(&changes.rows)?;
            for change in &changes.changes {
                let (before, after) = match *change {
                    PairedChange::Create { after } => (None, Some(after)),
                    PairedChange::Delete { before } => (Some(before), None),
                    PairedChange::Update { before, after } => (Some(before), Some(after)),
                };
                let image = |at: Option<u32>| at.map(|at| &images[at as usize]);
                epoch.check(image(before), image(after))?;
                if let Some(before) = image(before) {
                    accumulated.remove(before)?;
                }
                if let Some(after) = image(after) {
                    accumulated.add(after.clone());
                }
            }
            Ok(())
        }
    }
}

/// What has been seen of one epoch's changes: they must be net (semantics 4.1).
struct EpochChanges<'a> {
    key: Option<&'a [usize]>,
    expiring: bool,
    reborn: &'a HashSet<Cells>,
    touched: HashMap<Cells, Touch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Touch {
    Created,
    Updated,
    Deleted,
}

impl EpochChanges<'_> {
    fn check(&mut self, before: Option<&Cells>, after: Option<&Cells>) -> Result<(), String> {
        let touch = match (before, after) {
            (Some(before), Some(after)) if before == after => {
                return Err(format!("{} is updated to itself", show(before)));
            }
            (Some(_), Some(_)) => Touch::Updated,
            (Some(_), None) => Touch::Deleted,
            _ => Touch::Created,
        };
        let row = before.or(after).expect("a change has an image");
        let Some(key) = self.key else {
            // Without a key rows are told apart as wholes, and equal ones may come in any number.
            return match self.touched.insert(row.clone(), touch) {
                Some(earlier) if earlier != touch => {
                    Err(format!("{} comes and goes in one epoch", show(row)))
                }
                _ => Ok(()),
            };
        };
        let key: Cells = key.iter().map(|&i| row[i].clone()).collect();
        if touch == Touch::Updated && self.reborn.contains(&key) {
            return Err(format!(
                "key {} expired and came back: that is no update",
                show(&key)
            ));
        }
        match self.touched.insert(key.clone(), touch) {
            None => Ok(()),
            Some(Touch::Deleted) if touch == Touch::Created && self.expiring => Ok(()),
            Some(earlier) => Err(format!(
                "key {} is {earlier:?} and then {touch:?} in one epoch",
                show(&key)
            )),
        }
    }
}

fn compare(got: &[Cells], answer: &RecordBatch) -> Result<(), String> {
    let mut expected = cells(answer).map_err(|e| e.to_string())?;
    sort(&mut expected);
    let equal =
        got.len() == expected.len() && got.iter().zip(&expected).all(|(g, e)| same_row(g, e));
    if equal {
        return Ok(());
    }
    let list = |rows: &[Cells]| {
        rows.iter()
            .map(|r| format!("\n    {}", show(r)))
            .collect::<String>()
    };
    Err(format!(
        "the result is{}\n  but the answer is{}",
        list(got),
        list(&expected)
    ))
}

/// Rows whose texts are equal stand in the order of their numbers, so that near numbers meet.
fn sort(rows: &mut [Cells]) {
    let texts = |row: &Cells| {
        let without_number = |cell: &Cell| match cell {
            Cell::Float(_) => Cell::Float(0),
            other => other.clone(),
        };
        row.iter().map(without_number).collect::<Vec<_>>()
    };
    let floats = |row: &Cells| row.iter().filter_map(float).collect::<Vec<_>>();
    rows.sort_by(|a, b| {
        let by_number = || {
            floats(a)
                .partial_cmp(&floats(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        };
        texts(a).cmp(&texts(b)).then_with(by_number)
    });
}

fn float(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Float(bits) => Some(f64::from_bits(*bits)),
        _ => None,
    }
}

fn same_row(a: &Cells, b: &Cells) -> bool {
    let same = |(a, b): (&Cell, &Cell)| match (float(a), float(b)) {
        (Some(a), Some(b)) => {
            a == b
                || (a.is_nan() && b.is_nan())
                || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1e-3)
        }
        _ => a == b,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

pub fn show(row: &Cells) -> String {
    let cell = |cell: &Cell| match cell {
        Cell::Null => "NULL".to_string(),
        Cell::Text(text) => text.clone(),
        Cell::Float(bits) => f64::from_bits(*bits).to_string(),
    };
    format!("({})", row.iter().map(cell).collect::<Vec<_>>().join(", "))
}
