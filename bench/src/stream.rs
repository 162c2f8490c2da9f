//! Thalweg's side: the real binary on a script that reads the same bytes into a blackhole.

use std::path::Path;

use crate::queries::Query;

/// The script for `query` over `input`, at `threads`-fold parallelism, with epochs of one second.
pub fn script(query: &Query, input: &Path, threads: usize) -> String {
    let path = input.display().to_string().replace('\'', "''");
    over(
        query,
        &format!("connector = 'single_file', path = '{path}'"),
        threads,
    )
}

/// The same over a topic, as far as it goes now.
pub fn topic_script(query: &Query, bootstrap: &str, topic: &str, threads: usize) -> String {
    let options = format!(
        "connector = 'kafka', bootstrap_servers = '{bootstrap}', topic = '{topic}', type = 'source', \
         source.offset = 'earliest', source.bounded = 'latest'"
    );
    over(query, &options, threads)
}

fn over(query: &Query, options: &str, threads: usize) -> String {
    format!(
        "SET pipeline.parallelism = {threads};
SET pipeline.\"update-aggregate-flush-interval\" = '1 second';
CREATE TABLE events (ts TIMESTAMP, key TEXT, category TEXT, location TEXT, amount DOUBLE, WATERMARK FOR ts)
WITH ({options}, format = 'json');
CREATE TABLE result ({}) WITH (connector = 'blackhole');
INSERT INTO result {};
",
        query.sink, query.stream,
    )
}
