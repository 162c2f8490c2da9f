//! Input that is not as it should be: an error that says what and where, or the table's policy.

use crate::harness::{Place, with_orders};

fn table(options: &str) -> String {
    format!(
        "CREATE TABLE t (id BIGINT, s TEXT, ts TIMESTAMP WITH TIME ZONE, WATERMARK FOR ts)
         WITH (connector = 'single_file', path = 't.ndjson', format = 'json'{options});
         SELECT id FROM t;"
    )
}

const GOOD: &str = r#"{"id":1,"s":"a","ts":"2024-01-01T00:00:00Z"}"#;

/// Runs over three records of which the second is `bad`: under `fail`, the error must say `words`; under
/// `drop`, the neighbours must come through.
#[track_caller]
fn check(bad: &[u8], words: &[&str]) {
    let place = Place::new();
    let last = br#"{"id":3,"s":"c","ts":"2024-01-01T00:00:02Z"}"#;
    place.write(
        "t.ndjson",
        [GOOD.as_bytes(), b"\n", bad, b"\n", last, b"\n"].concat(),
    );

    let finished = place.thalweg(&["run", "-e", &table("")]);
    finished
        .failed(1, &["table \"t\"", "t.ndjson", "line 2", "bad_data"])
        .failed(1, words);
    assert!(
        finished.stderr.starts_with("error: "),
        "{}",
        finished.stderr
    );

    let finished = place.thalweg(&["run", "-e", &table(", bad_data = 'drop'")]);
    assert_eq!(
        finished.lines(),
        [r#"{"id":1}"#, r#"{"id":3}"#],
        "{finished:?}"
    );
    finished.failed(0, &["1 bad record dropped"]);
}

#[test]
fn broken_json_in_the_middle() {
    check(br#"{"id":2,"s":"b","#, &[]);
    check(b"not json at all", &[]);
    check(
        br#"{"id":2,"s":"b","ts":"2024-01-01T00:00:01Z"} trailing"#,
        &[],
    );
}

#[test]
fn a_value_of_the_wrong_type() {
    check(
        br#"{"id":"two","s":"b","ts":"2024-01-01T00:00:01Z"}"#,
        &["id", "two"],
    );
    check(
        br#"{"id":{"n":2},"s":"b","ts":"2024-01-01T00:00:01Z"}"#,
        &["id"],
    );
}

#[test]
fn a_missing_event_time() {
    check(br#"{"id":2,"s":"b"}"#, &["ts"]);
    check(br#"{"id":2,"s":"b","ts":null}"#, &["ts"]);
    check(br#"{"id":2,"s":"b","ts":"yesterday"}"#, &["ts"]);
}

#[test]
fn a_number_that_does_not_fit() {
    check(
        br#"{"id":9223372036854775808,"s":"b","ts":"2024-01-01T00:00:01Z"}"#,
        &["id", "9223372036854775808"],
    );
    check(
        br#"{"id":68.32,"s":"b","ts":"2024-01-01T00:00:01Z"}"#,
        &["id", "68.32"],
    );
    check(
        br#"{"id":1e400,"s":"b","ts":"2024-01-01T00:00:01Z"}"#,
        &["id"],
    );
}

#[test]
fn bytes_that_are_not_utf8() {
    check(
        b"{\"id\":2,\"s\":\"\xff\",\"ts\":\"2024-01-01T00:00:01Z\"}",
        &["UTF-8"],
    );
}

#[test]
fn a_line_of_10_megabytes_is_a_record_like_any_other() {
    let place = Place::new();
    let long = "x".repeat(10_000_000);
    let line = format!(r#"{{"id":2,"s":"{long}","ts":"2024-01-01T00:00:01Z"}}"#);
    place.write("t.ndjson", format!("{GOOD}\n{line}\n"));
    let sql = table("").replace("SELECT id", "SELECT id, length(s) AS n");
    let finished = place.thalweg(&["run", "-e", &sql]);
    assert_eq!(
        finished.succeeded().lines(),
        [r#"{"id":1,"n":1}"#, r#"{"id":2,"n":10000000}"#]
    );
}

#[test]
fn an_error_about_a_long_record_fits_a_screen() {
    let place = Place::new();
    place.write(
        "t.ndjson",
        format!("{{\"id\":\"{}\"}}\n", "9x".repeat(3_000_000)),
    );
    let finished = place.thalweg(&["run", "-e", &table("")]);
    finished.failed(1, &["line 1", "id"]);
    assert!(
        finished.stderr.len() < 2000,
        "{} bytes of error",
        finished.stderr.len()
    );
}

#[test]
fn an_empty_file_has_no_rows() {
    let place = Place::new();
    place.write("t.ndjson", "");
    assert_eq!(
        place.thalweg(&["run", "-e", &table("")]).succeeded().stdout,
        ""
    );
}

#[test]
fn a_missing_file_is_named() {
    Place::new()
        .thalweg(&["run", "-e", &table("")])
        .failed(1, &["table \"t\"", "t.ndjson", "does not exist"]);
    let place = Place::new();
    std::fs::create_dir(place.path("t.ndjson")).unwrap();
    place
        .thalweg(&["run", "-e", &table("")])
        .failed(1, &["t.ndjson"]);
}

#[test]
fn a_file_that_was_cut_off_in_the_middle() {
    let place = Place::new();
    place.write(
        "t.ndjson",
        format!("{GOOD}\n{{\"id\":2,\"s\":\"b\",\"ts\":\"2024-01"),
    );
    place
        .thalweg(&["run", "-e", &table("")])
        .failed(1, &["t.ndjson", "line 2"]);
    let finished = place.thalweg(&["run", "-e", &table(", bad_data = 'drop'")]);
    assert_eq!(finished.lines(), [r#"{"id":1}"#]);

    // A compressed file that ends early, too.
    place.write("t.ndjson.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3]);
    let of_gz = |options| table(options).replace("t.ndjson", "t.ndjson.gz");
    place
        .thalweg(&["run", "-e", &of_gz("")])
        .failed(1, &["t.ndjson.gz"]);
    let finished = place.thalweg(&["run", "-e", &of_gz(", bad_data = 'drop'")]);
    finished.failed(0, &["1 bad record dropped"]);
}

#[test]
fn a_full_disk_under_a_sink_is_an_error() {
    let place = Place::with_orders();
    let sql = with_orders(
        "CREATE TABLE out (order_id BIGINT) WITH (connector = 'single_file', path = '/dev/full', format = 'json');
         INSERT INTO out SELECT order_id FROM orders",
    );
    place
        .thalweg(&["run", "-e", &sql])
        .failed(1, &["/dev/full", "No space left"]);
}

#[test]
fn a_full_disk_under_standard_output_is_an_error() {
    let place = Place::with_orders();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = place.command(&["run", "-e", &with_orders("SELECT * FROM orders")]);
    let output = command.stdout(full).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("standard output") && stderr.contains("No space left"),
        "{stderr}"
    );
}

#[test]
fn a_sink_that_would_empty_what_its_job_reads_is_refused() {
    let place = Place::with_orders();
    let before = place.read("orders.ndjson");
    let sql = with_orders(
        "CREATE TABLE out (order_id BIGINT) WITH (connector = 'single_file', path = './orders.ndjson', format = 'json');
         INSERT INTO out SELECT order_id FROM orders",
    );
    let words = ["table \"out\": writes", "table \"orders\" reads", "hint: "];
    place.thalweg(&["run", "-e", &sql]).failed(1, &words);
    assert_eq!(place.read("orders.ndjson"), before);

    let sql = with_orders(
        "CREATE TABLE a (id BIGINT) WITH (connector = 'single_file', path = 'out.ndjson', format = 'json');
         CREATE TABLE b (id BIGINT) WITH (connector = 'single_file', path = 'out.ndjson', format = 'json');
         INSERT INTO a SELECT order_id FROM orders;
         INSERT INTO b SELECT order_id FROM orders",
    );
    let words = ["table \"b\": writes", "so does table \"a\""];
    place.thalweg(&["run", "-e", &sql]).failed(1, &words);

    // Two statements that fill one table are no conflict.
    let sql = with_orders(
        "CREATE TABLE a (id BIGINT) WITH (connector = 'single_file', path = 'out.ndjson', format = 'json');
         INSERT INTO a SELECT order_id FROM orders WHERE order_id < 3;
         INSERT INTO a SELECT order_id FROM orders WHERE order_id >= 3",
    );
    place.thalweg(&["run", "-e", &sql]).succeeded();
    assert_eq!(place.read("out.ndjson").lines().count(), 5);
}
