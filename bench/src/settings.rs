//! What to measure, from the environment.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::queries::{self, Query};

#[derive(Debug)]
pub struct Settings {
    pub n_rows: u64,
    pub queries: Vec<&'static Query>,
    pub threads: Vec<usize>,
    /// Measurements of each side, in turn; the fastest counts.
    pub n_runs: usize,
    pub data_dir: PathBuf,
    /// The optimised binary.
    pub thalweg: PathBuf,
}

impl Settings {
    pub fn from_env() -> Result<Self> {
        let n_rows = number("ROWS", 5_000_000)?;
        let data_dir = env::var_os("DATA")
            .map_or_else(|| env::temp_dir().join("thalweg-bench"), PathBuf::from);
        let settings = Self {
            n_rows,
            queries: chosen_queries()?,
            threads: chosen_threads()?,
            n_runs: usize::try_from(number("RUNS", 3)?)?,
            data_dir,
            thalweg: thalweg_binary()?,
        };
        if n_rows == 0 || settings.n_runs == 0 || settings.threads.contains(&0) {
            bail!("ROWS, RUNS and THREADS must be above zero");
        }
        Ok(settings)
    }
}

fn number(name: &str, default: u64) -> Result<u64> {
    match env::var(name) {
        Ok(text) => text
            .replace('_', "")
            .parse()
            .with_context(|| format!("{name}={text} is not a number")),
        Err(_) => Ok(default),
    }
}

fn chosen_queries() -> Result<Vec<&'static Query>> {
    let Ok(names) = env::var("QUERIES") else {
        return Ok(queries::ALL.iter().collect());
    };
    let find = |name: &str| {
        queries::find(name.trim()).with_context(|| format!("no query '{name}' in QUERIES"))
    };
    names.split(',').map(find).collect()
}

fn chosen_threads() -> Result<Vec<usize>> {
    let names = env::var("THREADS").unwrap_or_else(|_| "1,2".into());
    let parse = |n: &str| {
        n.trim()
            .parse()
            .with_context(|| format!("'{n}' in THREADS is not a number"))
    };
    names.split(',').map(parse).collect()
}

/// `THALWEG`, else the binary that was built beside this one.
fn thalweg_binary() -> Result<PathBuf> {
    if let Some(path) = env::var_os("THALWEG") {
        return Ok(path.into());
    }
    Ok(env::current_exe()?.with_file_name("thalweg"))
}
