//! Runs every suite under `sql-tests/` through a session, at parallelism 1 and 2, and through a connection of `thalweg serve`,
//! in the simple and in the extended protocol.
//!
//! In a suite, `$DATA` is `sql-tests/data` and `$__TEST_DIR__` a directory of the suite's own, where
//! `control substitution on` is given. A bounded SELECT gives its final rows, `SUBSCRIBE (query)` the
//! changelog as before, after, op; `SHOW WARNINGS` what the last statement dropped or found late. What
//! holds at one parallelism only says `onlyif parallelism-1`, what differs for a client `skipif pgwire`.
//!
//! `SLT_FILTER=part-of-a-name` runs some of them; `SLT_UPDATE=1` writes actual results into the files,
//! to be read with care before they are believed.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests are tests, though clippy cannot know it"
)]

mod client;
mod doors;
mod shown;

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use sqllogictest::{MakeConnection, Normalizer, Runner};

use doors::{Database, Door};

/// A suite that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(180);

fn suites_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../sql-tests")
        .canonicalize()
        .unwrap()
}

/// Every suite below `dir`, in order of name.
fn suites(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(suites(&path));
        } else if path.extension().is_some_and(|e| e == "slt") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Equal but for JSON in the place of structs, and microseconds in the place of nanoseconds.
fn alike(normalizer: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    let actual: Vec<_> = actual
        .iter()
        .map(|row| vec![shown::canonical(&row.join(" "))])
        .collect();
    let expected: Vec<_> = expected.iter().map(|line| shown::canonical(line)).collect();
    sqllogictest::default_validator(normalizer, &actual, &expected)
}

async fn run_suite(
    suite: PathBuf,
    door: Door,
    parallelism: usize,
    update: bool,
) -> Result<(), String> {
    let mut runner = Runner::new(move || Database::open(door, parallelism));
    runner.add_label(&format!("parallelism-{parallelism}"));
    runner.add_label(door.label());
    if door != Door::Session {
        runner.with_validator(alike);
    }
    runner.set_var(
        "DATA".into(),
        suites_dir().join("data").display().to_string(),
    );
    // A strict validator would also compare column types; the default ignores them.
    if door == Door::Session {
        runner.with_column_validator(sqllogictest::strict_column_validator);
    }
    let told = |what: String| {
        let suite = suite.display();
        format!("{suite} by {door:?} at parallelism {parallelism}: {what}")
    };
    if update {
        let separator = " ";
        let validator = sqllogictest::default_validator;
        let normalizer = sqllogictest::default_normalizer;
        let columns = sqllogictest::strict_column_validator;
        let updated = runner
            .update_test_file(&suite, separator, validator, normalizer, columns)
            .await;
        return updated.map_err(|e| told(e.to_string()));
    }
    match tokio::time::timeout(PATIENCE, run_records(&mut runner, &suite)).await {
        Ok(failures) if failures.is_empty() => Ok(()),
        Ok(failures) => Err(told(failures.join("\n"))),
        Err(_) => Err(told(format!("did not end within {PATIENCE:?}"))),
    }
}

/// Runs every record of a suite, also after one that failed.
async fn run_records<M>(runner: &mut Runner<Database, M>, suite: &Path) -> Vec<String>
where
    M: MakeConnection<Conn = Database>,
{
    let records = match sqllogictest::parse_file(suite) {
        Ok(records) => records,
        Err(e) => return vec![e.to_string()],
    };
    let mut failures = Vec::new();
    for record in records {
        if let Err(e) = runner.run_async(record).await {
            failures.push(e.to_string());
        }
    }
    failures
}

/// Runs the chosen suites, each in every way, two at a time.
fn run_all(ways: &[(Door, usize)]) {
    let filter = std::env::var("SLT_FILTER").unwrap_or_default();
    let update = std::env::var_os("SLT_UPDATE").is_some();
    let chosen: Vec<_> = suites(&suites_dir())
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(&filter))
        .collect();
    assert!(!chosen.is_empty(), "no suite's path contains {filter:?}");
    let updating = [(Door::Session, 1)];
    let ways = if update { &updating[..] } else { ways };
    let runs: Vec<_> = chosen
        .iter()
        .flat_map(|suite| ways.iter().map(|way| (suite.clone(), *way)))
        .collect();
    let n_runs = runs.len();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let failures: Vec<String> = runtime.block_on(async {
        let outcomes = futures::stream::iter(runs)
            .map(|(suite, (door, parallelism))| run_suite(suite, door, parallelism, update));
        outcomes
            .buffer_unordered(2)
            .filter_map(|outcome| async { outcome.err() })
            .collect()
            .await
    });
    assert!(
        failures.is_empty(),
        "{} of {n_runs} runs failed:\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

#[test]
fn every_suite_passes_at_parallelism_1_and_2() {
    run_all(&[(Door::Session, 1), (Door::Session, 2)]);
}

#[test]
fn every_suite_passes_for_clients_of_the_simple_and_the_extended_protocol() {
    run_all(&[(Door::Simple, 2), (Door::Extended, 1)]);
}
