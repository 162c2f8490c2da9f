//! Thalweg's side: the real binary on a script that reads the same file into a blackhole.

use std::path::Path;

use crate::queries::Query;

/// The script for `query` over `input`, at `threads`-fold parallelism, with epochs of one second.
pub fn script(query: &Query, input: &Path, threads: usize) -> String {
    format!(
        "SET pipeline.parallelism = {threads};
SET pipeline.\"update-aggregate-flush-interval\" = '1 second';
CREATE TABLE events (ts TIMESTAMP, key TEXT, category TEXT, location TEXT, amount DOUBLE, WATERMARK FOR ts)
WITH (connector = 'single_file', path = '{}', format = 'json');
CREATE TABLE result ({}) WITH (connector = 'blackhole');
INSERT INTO result {};
",
        input.display().to_string().replace('\'', "''"),
        query.sink,
        query.stream,
    )
}
