use serde_json::{Value, json};

use crate::harness::{Place, with_orders};

#[test]
fn sound_sql_is_counted_and_not_run() {
    let place = Place::new();
    let sql = "CREATE TABLE missing (n INT) WITH (connector = 'single_file', path = 'nowhere.ndjson', format = 'json'); SELECT n FROM missing";
    let finished = place.thalweg(&["validate", "-e", sql]);
    assert_eq!(
        finished.succeeded().stdout,
        "-e: no faults (2 statements, 1 query)\n"
    );
    assert_eq!(
        place
            .thalweg(&["validate", "--json", "-e", sql])
            .succeeded()
            .stdout,
        "[]\n"
    );
}

#[test]
fn every_fault_is_reported_in_one_pass_with_line_and_column() {
    let place = Place::with_orders();
    place.write("faulty.sql", with_orders("SELECT ammount FROM orders;\n\nSELECT order_id\n  FROM ordres;\nSELECT uper(customer_id) FROM orders;\n"));
    let finished = place.thalweg(&["validate", "faulty.sql"]);
    finished.failed(
        10,
        &[
            "faulty.sql:2:8",
            "faulty.sql:5:8",
            "faulty.sql:6:8",
            "3 faults",
        ],
    );

    let finished = place.thalweg(&["validate", "--json", "faulty.sql"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(10), ""));
    let faults: Vec<Value> = serde_json::from_str(&finished.stdout).unwrap();
    let what: Vec<_> = faults
        .iter()
        .map(|f| json!([f["kind"], f["sqlstate"], f["line"], f["column"]]))
        .collect();
    assert_eq!(
        what,
        [
            json!(["undefined_column", "42703", 2, 8]),
            json!(["undefined_table", "42P01", 5, 8]),
            json!(["undefined_function", "42883", 6, 8]),
        ]
    );
    assert!(faults.iter().all(|f| f["hint"].is_string()), "{faults:#?}");
}

#[test]
fn a_script_that_is_not_text_is_refused() {
    let place = Place::new();
    place.write("binary.sql", b"SELECT \xff\xfe");
    place
        .thalweg(&["validate", "binary.sql"])
        .failed(1, &["binary.sql", "UTF-8"]);
}

#[test]
fn nothing_that_can_be_typed_panics() {
    let place = Place::with_orders();
    let deep = format!("SELECT {}1{}", "(".repeat(2000), ")".repeat(2000));
    let long_not = format!("SELECT {} true", "NOT ".repeat(20_000));
    let many = "SELECT 1;".repeat(500);
    for sql in [
        "",
        ";;;",
        "'",
        "\"",
        "$$",
        "SELECT '\u{1F600}",
        "/*",
        "\u{0}",
        "SELECT\u{a0}1",
        &deep,
        &long_not,
        &many,
    ] {
        place.write("x.sql", sql);
        let finished = place.thalweg(&["validate", "x.sql"]);
        let shown: String = sql.chars().take(40).collect();
        assert!(
            matches!(finished.code, Some(0 | 10)),
            "{shown:?}: {finished:?}"
        );
        assert!(
            !finished.stderr.contains("panicked"),
            "{shown:?}: {}",
            finished.stderr
        );
    }
}

#[test]
fn explain_shows_the_plan_and_runs_nothing() {
    let place = Place::new();
    let sql = with_orders("SELECT customer_id, COUNT(*) FROM orders GROUP BY customer_id");
    let finished = place.thalweg(&["explain", "-e", &sql]);
    for word in ["orders", "updating", "key", "ttl"] {
        assert!(
            finished.succeeded().stdout.to_lowercase().contains(word),
            "{word} is not in:\n{}",
            finished.stdout
        );
    }
    place
        .thalweg(&["explain", "-e", "SELECT nosuch"])
        .failed(10, &["nosuch"]);
}
