//! Reading topics: each query over a topic beside a client that reads the same topic and drops it.
//!
//! Both read through the same client library, so that the ratio is what decoding and computing cost on top of it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use thalweg_testkit::kafka::{Broker, Message};

use crate::measure::{self, Cost};
use crate::queries::{self, Query};
use crate::settings::Settings;
use crate::{data, stream};

const N_PARTITIONS: i32 = 4;

/// Filter, windows by key, updating aggregates.
const QUERIES: [&str; 3] = ["a", "b'", "d"];

/// Records that are handed to the producer at once.
const CHUNK: usize = 10_000;

/// A client that has waited this long for a record will get none.
const SILENCE: Duration = Duration::from_secs(60);

pub fn run(settings: &Settings) -> Result<()> {
    let broker = Broker::start();
    let bootstrap = broker.bootstrap();
    println!(
        "{} rows in {N_PARTITIONS} partitions; best of {} runs; ratio = rows/s of Thalweg / rows/s of a client that drops them",
        settings.n_rows, settings.n_runs
    );
    println!("\n{}", header());
    for query in QUERIES.iter().filter_map(|name| queries::find(name)) {
        let topic = fill(&broker, settings, query)?;
        for &threads in &settings.threads {
            let (mut ours, mut bare) = (None, None);
            for _ in 0..settings.n_runs {
                keep_best(&mut bare, run_bare(&bootstrap, &topic, threads)?);
                keep_best(
                    &mut ours,
                    run_stream(settings, query, &bootstrap, &topic, threads)?,
                );
            }
            let (ours, bare) = (ours.context("no runs")?, bare.context("no runs")?);
            println!("{}", row(settings.n_rows, query, threads, &ours, &bare));
        }
    }
    Ok(())
}

/// A topic with the rows of the query's file, which are spread over its partitions in turn.
fn fill(broker: &Broker, settings: &Settings, query: &Query) -> Result<String> {
    let path = data::ensure(settings, query.n_keys)?;
    let topic = broker.topic(&format!("bench-{}-keys", query.n_keys), N_PARTITIONS);
    eprintln!("writing {} to topic {topic}", path.display());
    let mut chunk = Vec::with_capacity(CHUNK);
    for (line, partition) in BufReader::new(File::open(&path)?)
        .lines()
        .zip((0..N_PARTITIONS).cycle())
    {
        chunk.push(Message::new(line?).partition(partition));
        if chunk.len() == CHUNK {
            broker.produce(&topic, &chunk);
            chunk.clear();
        }
    }
    broker.produce(&topic, &chunk);
    Ok(topic)
}

fn run_bare(bootstrap: &str, topic: &str, threads: usize) -> Result<Cost> {
    let this = std::env::current_exe()?;
    measure::spawn(
        threads,
        &[&this.to_string_lossy(), "consume", bootstrap, topic],
    )
}

/// Reads a topic to its end and drops it: the measured process of the other side.
pub fn consume(bootstrap: &str, topic: &str) -> Result<()> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "thalweg-bench")
        .set("enable.auto.commit", "false")
        .set("enable.auto.offset.store", "false")
        .set("enable.partition.eof", "true")
        .create()?;
    let mut assignment = TopicPartitionList::new();
    for partition in 0..N_PARTITIONS {
        assignment.add_partition_offset(topic, partition, Offset::Beginning)?;
    }
    consumer.assign(&assignment)?;
    let mut open = N_PARTITIONS;
    while open > 0 {
        match consumer.poll(SILENCE) {
            Some(Ok(_)) => {}
            Some(Err(KafkaError::PartitionEOF(_))) => open -= 1,
            Some(Err(error)) => return Err(error.into()),
            None => ensure!(open == 0, "topic {topic} has fallen silent"),
        }
    }
    Ok(())
}

fn run_stream(
    settings: &Settings,
    query: &Query,
    bootstrap: &str,
    topic: &str,
    threads: usize,
) -> Result<Cost> {
    let dir = tempfile::tempdir_in(&settings.data_dir)?;
    let script = dir.path().join("pipeline.sql");
    std::fs::write(
        &script,
        stream::topic_script(query, bootstrap, topic, threads),
    )?;
    let run = |path: &Path| {
        let (binary, script) = (settings.thalweg.to_string_lossy(), script.to_string_lossy());
        measure::spawn(
            threads,
            &[
                &binary,
                "run",
                "--data-dir",
                &path.to_string_lossy(),
                &script,
            ],
        )
    };
    run(&dir.path().join("state"))
}

fn keep_best(best: &mut Option<Cost>, cost: Cost) {
    if best.is_none_or(|b| cost.wall_secs < b.wall_secs) {
        *best = Some(cost);
    }
}

fn header() -> String {
    format!(
        "{:<36} {:>7} | {:>9} {:>7} {:>8} | {:>9} {:>7} {:>8} | {:>6}",
        "query", "threads", "rows/s", "cpu s", "peak MB", "client/s", "cpu s", "peak MB", "ratio"
    )
}

fn row(n_rows: u64, query: &Query, threads: usize, ours: &Cost, bare: &Cost) -> String {
    let side = |c: &Cost| {
        let (rate, mb) = (n_rows as f64 / c.wall_secs / 1e6, c.peak_bytes as f64 / 1e6);
        format!("{rate:>7.3} M {:>7.2} {mb:>8.1}", c.cpu_secs)
    };
    format!(
        "{:<36} {threads:>7} | {} | {} | {:>6.2}",
        format!("({}) {}", query.name, query.what),
        side(ours),
        side(bare),
        bare.wall_secs / ours.wall_secs,
    )
}
