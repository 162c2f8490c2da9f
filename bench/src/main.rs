//! `make bench`: how fast, how costly and how large Thalweg is beside batch DataFusion, both going
//! from the same bytes to a result.
//!
//! Each measurement is a process of its own, wrapped in a second one that only waits for it, so that
//! CPU time and peak memory are the kernel's accounts of that one run and nothing else. Both sides
//! are confined to as many cores as they have threads.
//!
//! `make bench MODE=kafka`: the same over topics, beside a client that reads them and drops what it reads.
//!
//! Environment: `ROWS` (5000000), `QUERIES` (all; `a,b,d`), `THREADS` (`1,2`), `RUNS` (3, the best
//! counts), `DATA` (a directory for generated input), `THALWEG` (the binary to measure).

mod batch;
mod data;
mod kafka;
mod measure;
mod queries;
mod report;
mod settings;
mod stream;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::settings::Settings;

// The same allocator as the binary `thalweg`, so that neither side gains from its own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("thalweg-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["run"] => report::run(&Settings::from_env()?),
        ["kafka"] => kafka::run(&Settings::from_env()?),
        ["consume", bootstrap, topic] => kafka::consume(bootstrap, topic),
        ["generate"] => Settings::from_env().and_then(|s| data::ensure_all(&s)),
        ["measure", threads, command @ ..] => measure::measure(threads.parse()?, command),
        ["batch", query, threads] => {
            let settings = Settings::from_env()?;
            let query = queries::find(query).with_context(|| format!("no query '{query}'"))?;
            batch::run(&settings, query, threads.parse()?)
        }
        _ => bail!("usage: thalweg-bench run | kafka | generate"),
    }
}
