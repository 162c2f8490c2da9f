//! JSON lines into columns and back: rows/s and MB/s on one core, beside arrow-json.
//!
//! `cargo bench -p thalweg-connectors --bench json`. The rows are those of `make bench`: an ISO time, a key, a
//! category, a location and an amount, about 115 bytes a line; three of the five fields are read.

#![allow(clippy::disallowed_methods)] // A bench is what reads the clock.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::json::ReaderBuilder;
use arrow::record_batch::RecordBatch;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use thalweg_connectors::format::{decoder, encoder};
use thalweg_dataflow::options::Options;

const N_ROWS: usize = 500_000;
const BATCH_ROWS: usize = 8192;
const BLOCK_BYTES: usize = 1 << 20;

fn main() {
    let input = lines();
    println!("{N_ROWS} rows, {} bytes each", input.len() / N_ROWS);
    for (name, columns) in [
        ("3 of 5", &["event_time", "location", "amount"][..]),
        (
            "5 of 5",
            &["event_time", "key", "category", "location", "amount"][..],
        ),
        ("1 of 5", &["amount"][..]),
        ("none", &[][..]),
    ] {
        let schema = schema(columns);
        report(&format!("decode {name}"), &input, || {
            decode(&input, &schema, |_| {})
        });
        if !columns.is_empty() {
            report(&format!("arrow-json {name}"), &input, || {
                arrow_json(&input, &schema, |_| {})
            });
        }
    }
    let schema = schema(&["event_time", "key", "category", "location", "amount"]);
    let mut batches = Vec::new();
    decode(&input, &schema, |batch| batches.push(batch));
    report("encode 5 of 5", &input, || encode(&batches, &schema));
    report("arrow-json writer", &input, || arrow_json_write(&batches));
}

fn lines() -> Vec<u8> {
    let mut rng = StdRng::seed_from_u64(1);
    let mut out = String::new();
    for i in 0..N_ROWS {
        let (second, milli) = (i / 50, i % 50 * 20);
        out += &format!(
            "{{\"event_time\":\"2024-01-{:02}T{:02}:{:02}:{:02}.{milli:03}Z\",\"key\":\"k{:05}\",\"category\":\"cat{}\",\
             \"location\":\"loc{:02}\",\"amount\":{:.2}}}\n",
            1 + second / 86_400,
            second / 3600 % 24,
            second / 60 % 60,
            second % 60,
            rng.random_range(0..10_000),
            rng.random_range(0..4),
            rng.random_range(0..50),
            rng.random_range(0..100_000) as f64 / 100.0,
        );
    }
    out.into_bytes()
}

fn schema(columns: &[&str]) -> SchemaRef {
    let field = |name: &&str| {
        let data_type = match *name {
            "event_time" => DataType::Timestamp(TimeUnit::Nanosecond, None),
            "amount" => DataType::Float64,
            _ => DataType::Utf8,
        };
        Field::new(*name, data_type, true)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// The best of several runs: whatever else the machine does only makes a run slower.
fn report(name: &str, input: &[u8], mut run: impl FnMut() -> usize) {
    let mut best = Duration::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        assert_eq!(run(), N_ROWS);
        best = best.min(start.elapsed());
    }
    let seconds = best.as_secs_f64();
    let (rows, bytes) = (
        N_ROWS as f64 / seconds / 1e6,
        input.len() as f64 / seconds / 1e6,
    );
    println!("{name:20} {rows:7.2} M rows/s {bytes:8.0} MB/s");
}

fn decode(input: &[u8], schema: &SchemaRef, mut take: impl FnMut(RecordBatch)) -> usize {
    let mut decoder =
        decoder("json", &Options::default(), schema, schema.clone()).expect("a known schema");
    let (mut start, mut n_rows) = (0, 0);
    while start < input.len() {
        let end = (start + BLOCK_BYTES).min(input.len());
        let last = end == input.len();
        let done = decoder.decode(&input[start..end], start as u64, BATCH_ROWS, last);
        start += done.bytes;
        let decoded = decoder.flush().expect("columns of a known schema");
        assert!(decoded.bad.is_empty());
        n_rows += decoded.rows.num_rows();
        take(black_box(decoded.rows));
    }
    n_rows
}

fn arrow_json(input: &[u8], schema: &SchemaRef, mut take: impl FnMut(RecordBatch)) -> usize {
    let reader = ReaderBuilder::new(schema.clone())
        .with_batch_size(BATCH_ROWS)
        .build(input);
    reader
        .expect("a known schema")
        .map(|batch| {
            let batch = batch.expect("valid lines");
            let n_rows = batch.num_rows();
            take(black_box(batch));
            n_rows
        })
        .sum()
}

fn encode(batches: &[RecordBatch], schema: &SchemaRef) -> usize {
    let mut encoder = encoder("json", &Options::default(), schema, false).expect("a known schema");
    let mut out = Vec::new();
    for batch in batches {
        out.clear();
        encoder
            .rows(batch, &mut out)
            .expect("every type can be written");
        black_box(&out);
    }
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn arrow_json_write(batches: &[RecordBatch]) -> usize {
    for batch in batches {
        let mut writer = arrow::json::LineDelimitedWriter::new(Vec::new());
        writer.write(batch).expect("every type can be written");
        black_box(writer.into_inner());
    }
    batches.iter().map(RecordBatch::num_rows).sum()
}
