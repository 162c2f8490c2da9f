//! The input: rows 20 ms apart, the same for every run of the same size.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chrono::{DateTime, Duration};

use crate::settings::Settings;

/// Bumped when the rows change, so that an old file is not taken for the new one.
const VERSION: u32 = 1;

pub const N_LOCATIONS: u64 = 50;
pub const CATEGORIES: [&str; 4] = ["books", "games", "music", "tools"];

/// Makes the files of all chosen queries that are not there yet.
pub fn ensure_all(settings: &Settings) -> Result<()> {
    for query in &settings.queries {
        ensure(settings, query.n_keys)?;
    }
    Ok(())
}

/// The file with `n_keys` distinct keys, generated when it is not there.
pub fn ensure(settings: &Settings, n_keys: u64) -> Result<PathBuf> {
    let path = file(&settings.data_dir, settings.n_rows, n_keys);
    if !path.exists() {
        eprintln!(
            "generating {} rows over {n_keys} keys: {}",
            settings.n_rows,
            path.display()
        );
        fs::create_dir_all(&settings.data_dir)?;
        let part = path.with_extension("part");
        write_rows(&part, settings.n_rows, n_keys)
            .with_context(|| format!("writing {}", part.display()))?;
        fs::rename(&part, &path)?;
    }
    Ok(path)
}

pub fn file(dir: &Path, n_rows: u64, n_keys: u64) -> PathBuf {
    dir.join(format!("v{VERSION}-{n_rows}-rows-{n_keys}-keys.json"))
}

fn write_rows(path: &Path, n_rows: u64, n_keys: u64) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut random = SplitMix(0x7a1_3e6);
    let mut time = DateTime::from_timestamp(1_704_067_200, 0).expect("2024-01-01 is a date");
    for _ in 0..n_rows {
        let key = random.below(n_keys);
        let category = CATEGORIES[random.below(CATEGORIES.len() as u64) as usize];
        let location = random.below(N_LOCATIONS);
        let cents = random.below(100_000);
        writeln!(
            out,
            r#"{{"ts":"{}","key":"user-{key:07}","category":"{category}","location":"location-{location:02}","amount":{}.{:02}}}"#,
            time.format("%Y-%m-%dT%H:%M:%S%.3fZ"),
            cents / 100,
            cents % 100,
        )?;
        time += Duration::milliseconds(20);
    }
    Ok(out.flush()?)
}

/// Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_same_each_time_and_about_115_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = dir.path().join(name);
            write_rows(&path, 1000, 10_000).unwrap();
            fs::read_to_string(path).unwrap()
        };
        let text = write("a");
        assert_eq!(text, write("b"));
        assert!(
            (105..125).contains(&(text.len() / 1000)),
            "{} bytes a row",
            text.len() / 1000
        );

        let rows: Vec<serde_json::Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(rows[0]["ts"], "2024-01-01T00:00:00.000Z");
        assert_eq!(rows[51]["ts"], "2024-01-01T00:00:01.020Z");
        let distinct = |field: &str| {
            rows.iter()
                .map(|r| r[field].to_string())
                .collect::<std::collections::HashSet<_>>()
                .len()
        };
        assert_eq!((distinct("category"), distinct("location")), (4, 50));
        assert!(distinct("key") > 900);
    }
}
