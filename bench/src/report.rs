//! The comparison: both sides in turn, and a table of the best of each.

use std::path::Path;

use anyhow::Result;

use crate::measure::{self, Cost};
use crate::queries::Query;
use crate::settings::Settings;
use crate::{data, stream};

pub fn run(settings: &Settings) -> Result<()> {
    data::ensure_all(settings)?;
    println!(
        "{} rows; best of {} runs; ratio = rows/s of Thalweg / rows/s of batch DataFusion",
        settings.n_rows, settings.n_runs
    );
    println!();
    println!("{}", header());
    for query in &settings.queries {
        for &threads in &settings.threads {
            let (stream, batch) = compare(settings, query, threads)?;
            println!("{}", row(settings.n_rows, query, threads, &stream, &batch));
        }
    }
    Ok(())
}

/// Costs of Thalweg and of DataFusion. The sides take turns, so that a noisy minute hits both.
fn compare(settings: &Settings, query: &Query, threads: usize) -> Result<(Cost, Cost)> {
    let input = data::ensure(settings, query.n_keys)?;
    let (mut stream_best, mut batch_best) = (None, None);
    for _ in 0..settings.n_runs {
        keep_best(&mut batch_best, run_batch(query, threads)?);
        keep_best(
            &mut stream_best,
            run_stream(settings, query, &input, threads)?,
        );
    }
    Ok((
        stream_best.expect("at least one run"),
        batch_best.expect("at least one run"),
    ))
}

fn keep_best(best: &mut Option<Cost>, cost: Cost) {
    if best.is_none_or(|b| cost.wall_secs < b.wall_secs) {
        *best = Some(cost);
    }
}

fn run_batch(query: &Query, threads: usize) -> Result<Cost> {
    let this = std::env::current_exe()?;
    measure::spawn(
        threads,
        &[
            &this.to_string_lossy(),
            "batch",
            query.name,
            &threads.to_string(),
        ],
    )
}

fn run_stream(settings: &Settings, query: &Query, input: &Path, threads: usize) -> Result<Cost> {
    let dir = tempfile::tempdir_in(&settings.data_dir)?;
    let script = dir.path().join("pipeline.sql");
    std::fs::write(&script, stream::script(query, input, threads))?;
    let state = dir.path().join("state");
    let binary = settings.thalweg.to_string_lossy();
    measure::spawn(
        threads,
        &[
            &binary,
            "run",
            "--data-dir",
            &state.to_string_lossy(),
            &script.to_string_lossy(),
        ],
    )
}

fn header() -> String {
    format!(
        "{:<36} {:>7} | {:>9} {:>7} {:>8} {:>9} | {:>9} {:>7} {:>8} | {:>6} {:>6} {:>6}",
        "query",
        "threads",
        "rows/s",
        "cpu s",
        "peak MB",
        "disk MB",
        "batch/s",
        "cpu s",
        "peak MB",
        "ratio",
        "cpu",
        "target"
    )
}

fn row(n_rows: u64, query: &Query, threads: usize, stream: &Cost, batch: &Cost) -> String {
    let rate = |c: &Cost| format!("{:.3} M", n_rows as f64 / c.wall_secs / 1e6);
    let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    format!(
        "{:<36} {:>7} | {:>9} {:>7.2} {:>8} {:>9} | {:>9} {:>7.2} {:>8} | {:>6.2} {:>6.2} {:>6}",
        format!("({}) {}", query.name, query.what),
        threads,
        rate(stream),
        stream.cpu_secs,
        mb(stream.peak_bytes),
        if query.updating {
            mb(stream.written_bytes)
        } else {
            "-".into()
        },
        rate(batch),
        batch.cpu_secs,
        mb(batch.peak_bytes),
        batch.wall_secs / stream.wall_secs,
        batch.cpu_secs / stream.cpu_secs,
        query
            .target
            .map_or_else(|| "-".into(), |t| format!("{t:.2}")),
    )
}
