//! Runs every suite under `sql-tests/` through a session, at parallelism 1 and 2.
//!
//! In a suite, `$DATA` is `sql-tests/data` and `$__TEST_DIR__` a directory of the suite's own, where
//! `control substitution on` is given. A bounded SELECT gives its final rows, `SUBSCRIBE (query)` the
//! changelog as before, after, op; `SHOW WARNINGS` what the last statement dropped or found late. What
//! holds at one parallelism only says `onlyif parallelism-1`.
//!
//! `SLT_FILTER=part-of-a-name` runs some of them; `SLT_UPDATE=1` writes actual results into the files,
//! to be read with care before they are believed.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests are tests, though clippy cannot know it"
)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, MakeConnection, Runner};
use thalweg_server::engine::EngineOptions;
use thalweg_server::error::Error;
use thalweg_server::session::{Session, StatementResult};
use thalweg_server::text::{Cells, Kind, kind};

/// A suite that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(180);

struct Database(Session);

impl Database {
    fn open(parallelism: usize) -> Self {
        Self(Session::new(EngineOptions {
            parallelism: Some(parallelism),
            ..EngineOptions::default()
        }))
    }

    fn warnings(&self) -> DBOutput<DefaultColumnType> {
        let rows = self.0.warnings().iter().map(|w| vec![w.clone()]).collect();
        DBOutput::Rows {
            types: vec![DefaultColumnType::Text],
            rows,
        }
    }
}

#[async_trait]
impl AsyncDB for Database {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        if sql.trim().eq_ignore_ascii_case("show warnings") {
            return Ok(self.warnings());
        }
        let results = self.0.execute(sql).await?;
        match results
            .into_iter()
            .rfind(|r| matches!(r, StatementResult::Rows { .. }))
        {
            Some(result) => rows(result),
            None => Ok(DBOutput::StatementComplete(0)),
        }
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "thalweg"
    }

    fn error_sql_state(error: &Error) -> Option<String> {
        Some(error.sqlstate().to_string())
    }

    async fn sleep(duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

fn rows(result: StatementResult) -> Result<DBOutput<DefaultColumnType>, Error> {
    let StatementResult::Rows { schema, batches } = result else {
        return Ok(DBOutput::StatementComplete(0));
    };
    let types = schema
        .fields()
        .iter()
        .map(|field| match kind(field.data_type()) {
            Kind::Whole => DefaultColumnType::Integer,
            Kind::Real => DefaultColumnType::FloatingPoint,
            Kind::Other => DefaultColumnType::Text,
        });
    let types = types.collect();
    let mut rows = Vec::new();
    for batch in &batches {
        let cells = Cells::new(batch)?;
        for row in 0..batch.num_rows() {
            let texts = (0..batch.num_columns()).map(|column| cells.text(column, row));
            let texts = texts.collect::<Result<Vec<_>, _>>()?;
            rows.push(
                texts
                    .into_iter()
                    .map(|t| if t.is_empty() { "(empty)".into() } else { t })
                    .collect(),
            );
        }
    }
    Ok(DBOutput::Rows { types, rows })
}

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

async fn run_suite(suite: PathBuf, parallelism: usize, update: bool) -> Result<(), String> {
    let mut runner = Runner::new(move || async move { Ok(Database::open(parallelism)) });
    runner.add_label(&format!("parallelism-{parallelism}"));
    runner.set_var(
        "DATA".into(),
        suites_dir().join("data").display().to_string(),
    );
    // A strict validator would also compare column types; the default ignores them.
    runner.with_column_validator(sqllogictest::strict_column_validator);
    let told = |what: String| format!("{} at parallelism {parallelism}: {what}", suite.display());
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

#[test]
fn every_suite_passes_at_parallelism_1_and_2() {
    let filter = std::env::var("SLT_FILTER").unwrap_or_default();
    let update = std::env::var_os("SLT_UPDATE").is_some();
    let chosen: Vec<_> = suites(&suites_dir())
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(&filter))
        .collect();
    assert!(!chosen.is_empty(), "no suite's path contains {filter:?}");
    let parallelisms: &[usize] = if update { &[1] } else { &[1, 2] };
    let runs: Vec<_> = chosen
        .iter()
        .flat_map(|suite| parallelisms.iter().map(|p| (suite.clone(), *p)))
        .collect();
    let n_runs = runs.len();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let failures: Vec<String> = runtime.block_on(async {
        let outcomes = futures::stream::iter(runs).map(|(suite, p)| run_suite(suite, p, update));
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
