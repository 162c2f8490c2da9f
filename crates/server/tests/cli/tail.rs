use serde_json::json;

use crate::harness::{ORDERS, Place};

const NUMBERS: &str = "CREATE TABLE t (n INT, twice INT GENERATED ALWAYS AS (10 / (n - 3))) \
    WITH (connector = 'single_file', path = 't.ndjson', format = 'json');";

fn numbers() -> Place {
    let place = Place::new();
    place.write(
        "t.ndjson",
        "{\"n\":1}\n{\"n\":\"x\"}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n",
    );
    place
}

#[test]
fn records_are_printed_in_their_order_good_and_bad() {
    let place = numbers();
    let finished = place.thalweg(&["tail", "t", "-e", NUMBERS]);
    let lines = finished.succeeded().lines();
    assert_eq!(lines[0], "{\"n\":1,\"twice\":-5}");
    assert_eq!(
        lines[1],
        "! t.ndjson, line 2 (byte 8): column \"n\": \"x\" is not a whole number"
    );
    assert_eq!(lines[2], "{\"n\":\"x\"}");
    assert_eq!(lines[3], "{\"n\":2,\"twice\":-10}");
    // A column that cannot be computed makes a record bad, as in a job.
    assert!(
        lines[4].starts_with("! t.ndjson, line 4 (byte 26): "),
        "{lines:?}"
    );
    assert_eq!(lines[5], "{\"n\":3}");
    assert_eq!(lines[6], "{\"n\":4,\"twice\":10}");
    assert_eq!(lines.len(), 7);
}

#[test]
fn as_many_as_asked_for() {
    let place = numbers();
    let finished = place.thalweg(&["tail", "t", "-n", "2", "--json", "-e", NUMBERS]);
    let bad = json!({
        "reason": "type",
        "message": "column \"n\": \"x\" is not a whole number",
        "place": "t.ndjson, line 2 (byte 8)",
        "topic": "t.ndjson",
        "partition": 0,
        "offset": 8,
        "raw": "{\"n\":\"x\"}",
    });
    assert_eq!(
        finished.succeeded().json(),
        [json!({"row": {"n": 1, "twice": -5}}), json!({"bad": bad})]
    );
    let place = Place::new();
    let many: String = (0..50).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    place.write("t.ndjson", many);
    let sql =
        "CREATE TABLE t WITH (connector = 'single_file', path = 't.ndjson', infer_schema = true)";
    let count = |args: &[&str]| {
        let all = [&["tail", "t", "-e", sql], args].concat();
        place.thalweg(&all).succeeded().lines().len()
    };
    assert_eq!(
        (count(&[]), count(&["-n", "7"]), count(&["-n", "0"])),
        (20, 7, 50)
    );
}

#[test]
fn a_source_without_end_is_cut_off() {
    let place = Place::new();
    let sql = "CREATE TABLE i WITH (connector = 'impulse', event_rate = '1000')";
    let finished = place.thalweg(&["tail", "i", "-n", "3", "-e", sql]);
    assert_eq!(finished.succeeded().lines().len(), 3);
}

#[test]
fn bytes_that_are_no_text_are_shown_with_escapes() {
    let place = Place::new();
    place.write("t.ndjson", b"\xff{\n");
    let sql = "CREATE TABLE t (n INT) WITH (connector = 'single_file', path = 't.ndjson')";
    let finished = place.thalweg(&["tail", "t", "-e", sql]);
    assert_eq!(finished.succeeded().lines()[1], "\\xff{");
    let finished = place.thalweg(&["tail", "t", "--json", "-e", sql]);
    assert_eq!(finished.succeeded().json()[0]["bad"]["raw_base64"], "/3s=");
}

#[test]
fn what_cannot_be_read_is_said() {
    let place = Place::with_orders();
    place
        .thalweg(&["tail", "ordres", "-e", ORDERS])
        .failed(2, &["the script has no table \"ordres\" with a connector"]);
    place
        .thalweg(&[
            "tail",
            "out",
            "-e",
            "CREATE TABLE out (n INT) WITH (connector = 'stdout')",
        ])
        .failed(1, &["a table with connector 'stdout' cannot be read"]);
    place
        .thalweg(&[
            "tail",
            "t",
            "-e",
            "CREATE TABLE t (n INTT) WITH (connector = 'stdout')",
        ])
        .failed(10, &["type \"INTT\" does not exist"]);
    place
        .thalweg(&[
            "tail",
            "t",
            "-e",
            "CREATE TABLE t (n INT) WITH (connector = 'single_file', path = 'no.json')",
        ])
        .failed(1, &["file \"no.json\" does not exist"]);
}
