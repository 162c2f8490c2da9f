//! `--http`: what a monitoring system sees of a running pipeline.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

use serde_json::Value;

use crate::harness::Place;

/// A pipeline without end, and the address that it has told.
fn running(place: &Place, sql: &str) -> (Child, String) {
    let mut child = place
        .command(&["run", "--http", "127.0.0.1:0", "-e", sql])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = lines.find_map(|line| {
        let line = line.unwrap();
        let rest = line.strip_prefix("http://")?;
        rest.split_once('/').map(|(address, _)| address.to_string())
    });
    (child, told.expect("the address is told"))
}

fn get(address: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer[9..12].parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, body.to_string())
}

/// The value of a sample whose line begins with `name`.
fn sample(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

/// Asks until `name` is above 0; a test that waits in vain is ended by its runner.
fn wait_for(address: &str, name: &str) -> String {
    loop {
        let (status, text) = get(address, "/metrics");
        assert_eq!(status, 200);
        if sample(&text, name).is_some_and(|value| value > 0.0) {
            return text;
        }
        std::thread::yield_now();
    }
}

const ENDLESS: &str = "
    SET 'pipeline.update-aggregate-flush-interval' = '50 ms';
    CREATE TABLE ticks WITH (connector = 'impulse', event_rate = '2000');
    CREATE TABLE out (k BIGINT, n BIGINT) WITH (connector = 'single_file', path = 'out.ndjson', format = 'debezium_json');
    INSERT INTO out SELECT counter % 3 AS k, count(*) FROM ticks GROUP BY 1";

#[test]
fn a_running_pipeline_is_seen_as_it_is() {
    let place = Place::new();
    let (mut child, address) = running(&place, ENDLESS);
    let text = wait_for(
        &address,
        "thalweg_bytes_out_total{job=\"out\",table=\"out\"}",
    );
    let some = |name: &str| {
        assert!(
            sample(&text, name).is_some_and(|v| v > 0.0),
            "{name}\n{text}"
        )
    };
    some("thalweg_jobs{state=\"running\"}");
    some("thalweg_rows_in_total{job=\"out\",table=\"ticks\"}");
    some("thalweg_rows_out_total{job=\"out\",table=\"out\"}");
    some("thalweg_epochs_total{job=\"out\"}");
    some("thalweg_epoch_seconds_count{job=\"out\"}");
    some("thalweg_split_watermark_seconds{");
    let aggregate = |line: &&str| {
        line.starts_with("thalweg_operator_busy_seconds_total{")
            && line.contains("operator=\"aggregate\"")
    };
    assert!(text.lines().any(|line| aggregate(&line)), "{text}");
    for family in ["thalweg_rows_in", "thalweg_commit_seconds"] {
        assert!(
            text.contains(&format!("# HELP {family}")),
            "{family}\n{text}"
        );
    }

    let (status, health) = get(&address, "/health");
    let health: Value = serde_json::from_str(&health).unwrap();
    assert_eq!((status, health["status"].as_str()), (200, Some("ok")));
    let (_, jobs) = get(&address, "/jobs");
    let jobs: Value = serde_json::from_str(&jobs).unwrap();
    assert_eq!(jobs[0]["state"], "running");
    assert!(
        jobs[0]["tables"]["ticks"]["rows_in"].as_u64() > Some(0),
        "{jobs}"
    );
    assert!(
        jobs[0]["splits"][0]["watermark_seconds"].is_number(),
        "{jobs}"
    );
    assert_eq!(get(&address, "/nothing").0, 404);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn bad_records_are_counted_by_reason() {
    let place = Place::new();
    place.write("t.ndjson", "{\"id\":1}\n{\"id\":\"x\"}\nnot json\n");
    let sql = "
        CREATE TABLE t (id BIGINT) WITH (connector = 'single_file', path = 't.ndjson', format = 'json', bad_data = 'drop');
        CREATE TABLE ticks WITH (connector = 'impulse', event_rate = '10');
        CREATE TABLE ids (id BIGINT) WITH (connector = 'blackhole');
        INSERT INTO ids SELECT id FROM t UNION ALL SELECT CAST(counter AS BIGINT) FROM ticks";
    let (mut child, address) = running(&place, sql);
    let text = wait_for(&address, "thalweg_bad_records_total{");
    for reason in ["malformed", "type"] {
        let counted = text.lines().any(|line| {
            line.starts_with("thalweg_bad_records_total{")
                && line.contains(&format!("reason=\"{reason}\""))
                && line.ends_with(" 1")
        });
        assert!(counted, "{reason}\n{text}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_address_that_is_taken_is_named() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place
        .thalweg(&["run", "--http", &address, "-e", ENDLESS])
        .failed(1, &[&address, "--http"]);
    place
        .thalweg(&["run", "--http", "nowhere", "-e", ENDLESS])
        .failed(2, &["ADDRESS:PORT"]);
}
