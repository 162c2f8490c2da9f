//! DataFusion's side: the whole file, read once, to the last batch of the result.

use std::sync::Arc;

use anyhow::Result;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::prelude::{JsonReadOptions, SessionConfig, SessionContext};
use futures::StreamExt;

use crate::data;
use crate::queries::Query;
use crate::settings::Settings;

pub fn run(settings: &Settings, query: &Query, threads: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?;
    let path = data::file(&settings.data_dir, settings.n_rows, query.n_keys);
    let n_rows = runtime.block_on(drain(&path.to_string_lossy(), query, threads))?;
    println!("{n_rows}");
    Ok(())
}

/// Rows of the result, which is consumed batch by batch and not kept, as a sink would.
async fn drain(path: &str, query: &Query, threads: usize) -> Result<u64> {
    let context =
        SessionContext::new_with_config(SessionConfig::new().with_target_partitions(threads));
    let schema = schema();
    context
        .register_json("events", path, JsonReadOptions::default().schema(&schema))
        .await?;
    let mut stream = context.sql(query.batch).await?.execute_stream().await?;
    let mut n_rows = 0;
    while let Some(batch) = stream.next().await {
        n_rows += batch?.num_rows() as u64;
    }
    Ok(n_rows)
}

pub fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Nanosecond, None), true),
        Field::new("key", DataType::Utf8, true),
        Field::new("category", DataType::Utf8, true),
        Field::new("location", DataType::Utf8, true),
        Field::new("amount", DataType::Float64, true),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each query counts what its definition says, over 2,000 rows that span 40 s.
    #[tokio::test]
    async fn the_batch_queries_give_the_expected_number_of_rows() {
        let dir = tempfile::tempdir().unwrap();
        let settings = |n_keys: u64| {
            let settings = Settings {
                n_rows: 2_000,
                queries: Vec::new(),
                threads: vec![2],
                n_runs: 1,
                data_dir: dir.path().into(),
                thalweg: "thalweg".into(),
            };
            data::ensure(&settings, n_keys).unwrap()
        };
        let mut counts = Vec::new();
        for query in &crate::queries::ALL {
            let path = settings(query.n_keys);
            counts.push((
                query.name,
                drain(&path.to_string_lossy(), query, 2).await.unwrap(),
            ));
        }
        let count = |name: &str| counts.iter().find(|(n, _)| *n == name).unwrap().1;
        assert_eq!(count("b"), 4 * 50, "four windows of fifty locations");
        // Twenty slices of 2 s lie in 24 windows of 10 s, of which the outermost are thinly filled.
        assert!((1100..=24 * 50).contains(&count("c")), "{}", count("c"));
        assert!(count("b'") > 1900, "nearly a group a row: {}", count("b'"));
        assert_eq!(count("f"), 50);
        assert!(count("e") > count("d") && count("e") > 1990, "{counts:?}");
        assert!(
            (1100..1300).contains(&count("a")),
            "three quarters of four fifths: {}",
            count("a")
        );
    }
}
