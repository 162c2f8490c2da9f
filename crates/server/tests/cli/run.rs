use serde_json::json;

use crate::harness::{Place, with_orders};

const LARGE: &str = "SELECT order_id, customer_id FROM orders WHERE amount >= 50";

const LARGE_LINES: [&str; 2] = [
    r#"{"order_id":1,"customer_id":"c1"}"#,
    r#"{"order_id":4,"customer_id":"c1"}"#,
];

#[test]
fn a_script_comes_from_a_file_from_standard_input_or_from_the_command_line() {
    let place = Place::with_orders();
    let sql = with_orders(LARGE);
    place.write("large.sql", &sql);
    assert_eq!(
        place.thalweg(&["run", "large.sql"]).succeeded().lines(),
        LARGE_LINES
    );
    assert_eq!(
        place.thalweg(&["run", "-e", &sql]).succeeded().lines(),
        LARGE_LINES
    );
    assert_eq!(
        place
            .thalweg_reading(&["run", "-"], &sql)
            .succeeded()
            .lines(),
        LARGE_LINES
    );
}

#[test]
fn a_missing_script_is_named() {
    Place::new()
        .thalweg(&["run", "nosuch.sql"])
        .failed(1, &["nosuch.sql", "No such file"]);
}

#[test]
fn faulty_sql_runs_nothing_and_exits_with_10() {
    let place = Place::with_orders();
    let sql = with_orders(
        "CREATE TABLE out (n BIGINT) WITH (connector = 'single_file', path = 'out.ndjson', format = 'json');
         INSERT INTO out SELECT order_id FROM orders; SELECT ammount FROM orders",
    );
    let finished = place.thalweg(&["run", "-e", &sql]);
    finished.failed(10, &["ammount", "hint", "amount", "^"]);
    assert_eq!(finished.stdout, "");
    assert!(!place.path("out.ndjson").exists());
}

#[test]
fn a_script_without_queries_says_so() {
    let finished = Place::with_orders().thalweg(&["run", "-e", &with_orders("")]);
    finished.failed(0, &["no query to run"]);
}

#[test]
fn a_fixture_takes_the_place_of_a_source() {
    let place = Place::with_orders();
    let sql = "CREATE TABLE orders (order_id BIGINT, customer_id TEXT) \
               WITH (connector = 'single_file', path = '/production/orders.ndjson', format = 'json'); \
               SELECT order_id FROM orders WHERE customer_id = 'c2'";
    place
        .thalweg(&["run", "-e", sql])
        .failed(1, &["/production/orders.ndjson"]);
    let finished = place.thalweg(&["run", "--fixture", "orders=orders.ndjson", "-e", sql]);
    assert_eq!(
        finished.succeeded().lines(),
        [r#"{"order_id":2}"#, r#"{"order_id":5}"#]
    );
}

#[test]
fn a_fixture_for_a_table_that_there_is_not_is_refused() {
    let place = Place::with_orders();
    let finished = place.thalweg(&[
        "run",
        "--fixture",
        "ordres=orders.ndjson",
        "-e",
        &with_orders(LARGE),
    ]);
    finished.failed(10, &["ordres"]);
    place
        .thalweg(&["run", "--fixture", "orders", "-e", "SELECT 1"])
        .failed(2, &["NAME=PATH"]);
}

#[test]
fn a_dry_run_prints_what_sinks_would_be_given_and_writes_nothing() {
    let place = Place::with_orders();
    let sql = with_orders(
        "CREATE TABLE large (order_id BIGINT) WITH (connector = 'single_file', path = 'large.ndjson', format = 'json');
         CREATE TABLE totals (customer_id TEXT PRIMARY KEY, n BIGINT)
           WITH (connector = 'single_file', path = 'totals.ndjson', format = 'debezium_json');
         INSERT INTO large SELECT order_id FROM orders WHERE amount > 60;
         INSERT INTO totals SELECT customer_id, COUNT(*) FROM orders GROUP BY customer_id;",
    );
    let finished = place.thalweg(&["run", "--dry-run", "-e", &sql]);
    let mut rows = finished.succeeded().json();
    rows.sort_by_key(|row| row.to_string());
    let created =
        |id: &str, n: i64| json!({"before": null, "after": {"customer_id": id, "n": n}, "op": "c"});
    assert_eq!(
        rows,
        [
            json!({"sink": "large", "value": {"order_id": 4}}),
            json!({"sink": "totals", "value": created("c1", 3)}),
            json!({"sink": "totals", "value": created("c2", 2)}),
        ]
    );
    assert!(!place.path("large.ndjson").exists() && !place.path("totals.ndjson").exists());
}

#[test]
fn state_can_be_kept_in_a_directory_of_ones_own() {
    let place = Place::with_orders();
    let sql = with_orders("SELECT COUNT(*) AS n FROM orders");
    let finished = place.thalweg(&["run", "--data-dir", "state/here", "-e", &sql]);
    assert_eq!(
        finished.succeeded().json(),
        [json!({"before": null, "after": {"n": 5}, "op": "c"})]
    );
    assert!(place.path("state/here").is_dir());

    place.write("occupied", "a file");
    place
        .thalweg(&["run", "--data-dir", "occupied", "-e", &sql])
        .failed(1, &["occupied"]);
}

#[test]
fn the_answer_does_not_depend_on_the_parallelism() {
    let place = Place::with_orders();
    let sql =
        with_orders("SELECT customer_id, SUM(amount) AS total FROM orders GROUP BY customer_id");
    let sorted = |parallelism: &str| {
        let finished = place.thalweg(&["run", "--parallelism", parallelism, "-e", &sql]);
        let mut lines: Vec<_> = finished
            .succeeded()
            .lines()
            .into_iter()
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted("1"), sorted("4"));
    place
        .thalweg(&["run", "--parallelism", "0", "-e", &sql])
        .failed(2, &["--parallelism"]);
}

#[test]
fn a_job_that_fails_leaves_its_neighbours_intact() {
    let place = Place::with_orders();
    place.write("broken.ndjson", "{\"n\":");
    let sql = with_orders(
        "CREATE TABLE broken (n INT) WITH (connector = 'single_file', path = 'broken.ndjson', format = 'json');
         CREATE TABLE out (n BIGINT) WITH (connector = 'single_file', path = 'out.ndjson', format = 'json');
         INSERT INTO out SELECT order_id FROM orders;
         SELECT n FROM broken;",
    );
    place
        .thalweg(&["run", "-e", &sql])
        .failed(1, &["broken.ndjson", "line 1"]);
    assert_eq!(place.read("out.ndjson").lines().count(), 5);
}

#[test]
fn help_names_the_commands_and_the_exit_codes() {
    let place = Place::new();
    let help = place.thalweg(&["--help"]);
    for word in ["run", "validate", "explain", "130", "THALWEG_LOG"] {
        assert!(
            help.succeeded().stdout.contains(word),
            "{word} is not in:\n{}",
            help.stdout
        );
    }
    assert_eq!(place.thalweg(&["frobnicate"]).code, Some(2));
    let version = place.thalweg(&["--version"]);
    assert!(version.stdout.starts_with("thalweg "));
}
