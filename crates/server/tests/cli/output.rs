//! How results look.

use expect_test::expect;

use crate::harness::{Place, with_orders};

#[test]
fn an_append_only_result_is_rows_and_an_updating_one_is_changes() {
    let place = Place::with_orders();
    let rows = place.thalweg(&[
        "run",
        "-e",
        &with_orders("SELECT * FROM orders WHERE order_id = 1"),
    ]);
    expect![[r#"
        {"order_id":1,"customer_id":"c1","amount":50.00,"event_time":"2024-01-01T10:00:15Z"}
    "#]]
    .assert_eq(&rows.succeeded().stdout);

    let sql = with_orders(
        "SET pipeline.update_aggregate_flush_interval = '0';
         SELECT customer_id, SUM(amount) AS total FROM orders WHERE order_id <= 3 GROUP BY customer_id",
    );
    expect![[r#"
        {"before":null,"after":{"customer_id":"c1","total":50.00},"op":"c"}
        {"before":null,"after":{"customer_id":"c2","total":30.00},"op":"c"}
        {"before":{"customer_id":"c1","total":50.00},"after":{"customer_id":"c1","total":75.00},"op":"u"}
    "#]]
    .assert_eq(&place.thalweg(&["run", "-e", &sql]).succeeded().stdout);
}

#[test]
fn a_table_shows_the_final_answer_of_a_bounded_query() {
    let place = Place::with_orders();
    let sql = with_orders(
        "SET pipeline.update_aggregate_flush_interval = '0';
         SELECT customer_id, SUM(amount) AS total, NULL AS nothing FROM orders GROUP BY customer_id",
    );
    expect![[r#"
        +-------------+--------+---------+
        | customer_id | total  | nothing |
        +-------------+--------+---------+
        | c1          | 150.00 | NULL    |
        | c2          | 70.00  | NULL    |
        +-------------+--------+---------+
    "#]]
    .assert_eq(
        &place
            .thalweg(&["run", "--format", "table", "-e", &sql])
            .succeeded()
            .stdout,
    );

    let none = with_orders("SELECT order_id FROM orders WHERE false");
    expect![[r#"
        +----------+
        | order_id |
        +----------+
        +----------+
    "#]]
    .assert_eq(
        &place
            .thalweg(&["run", "--format", "table", "-e", &none])
            .succeeded()
            .stdout,
    );
}

#[test]
fn a_table_of_a_subscription_shows_each_epochs_changes() {
    let place = Place::with_orders();
    let sql = with_orders(
        "SET pipeline.update_aggregate_flush_interval = '0';
         SUBSCRIBE (SELECT customer_id, SUM(amount) AS total FROM orders WHERE order_id IN (1, 3) GROUP BY customer_id HAVING SUM(amount) < 1000)",
    );
    expect![[r#"
        epoch 1
        +----+-------------+-------+
        | op | customer_id | total |
        +----+-------------+-------+
        | c  | c1          | 50.00 |
        +----+-------------+-------+
        epoch 3
        +----+-------------+---------------+
        | op | customer_id | total         |
        +----+-------------+---------------+
        | u  | c1          | 50.00 → 75.00 |
        +----+-------------+---------------+
    "#]]
    .assert_eq(
        &place
            .thalweg(&["run", "--format", "table", "-e", &sql])
            .succeeded()
            .stdout,
    );
}

#[test]
fn csv_has_a_header_and_the_final_rows() {
    let place = Place::with_orders();
    let sql = with_orders(
        "SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id HAVING COUNT(*) > 2",
    );
    expect![[r#"
        customer_id,n
        c1,3
    "#]]
    .assert_eq(
        &place
            .thalweg(&["run", "--format", "csv", "-e", &sql])
            .succeeded()
            .stdout,
    );

    let two = format!("{sql}; SELECT 1 AS one");
    place
        .thalweg(&["run", "--format", "csv", "-e", &two])
        .failed(2, &["one result", "has 2"]);
    let endless =
        "CREATE TABLE t WITH (connector = 'impulse', event_rate = '10'); SELECT COUNT(*) FROM t";
    place
        .thalweg(&["run", "--format", "csv", "-e", endless])
        .failed(1, &["CSV", "--format json"]);
}

#[test]
fn show_and_explain_answer_and_ddl_is_silent() {
    let place = Place::with_orders();
    let finished = place.thalweg(&[
        "run",
        "-e",
        &with_orders("SET updating_ttl = '2 hours'; SHOW updating_ttl"),
    ]);
    expect![[r#"
        {"updating_ttl":"2 hours"}
    "#]]
    .assert_eq(&finished.succeeded().stdout);
    let finished = place.thalweg(&[
        "run",
        "-e",
        &with_orders("EXPLAIN SELECT order_id FROM orders"),
    ]);
    assert!(
        finished.succeeded().stdout.contains("orders"),
        "{}",
        finished.stdout
    );
}

#[test]
fn several_results_do_not_mix_their_lines() {
    let place = Place::new();
    let sql = "CREATE TABLE t WITH (connector = 'impulse', event_rate = '1000000', message_count = 20000);
               SET pipeline.epoch_max_rows = 1000;
               SELECT counter AS a FROM t; SELECT counter AS b FROM t; SELECT COUNT(*) AS c FROM t;";
    let finished = place.thalweg(&["run", "--parallelism", "1", "-e", sql]);
    let rows = finished.succeeded().json();
    let count = |key: &str| rows.iter().filter(|row| row.get(key).is_some()).count();
    assert_eq!((count("a"), count("b")), (20_000, 20_000));
    assert_eq!(rows.len() - 40_000, 20, "one change of the count an epoch");
}

#[test]
fn late_and_bad_rows_are_told_at_the_end() {
    let place = Place::with_orders();
    place.write(
        "bad.ndjson",
        "{\"n\":1}\n{\"n\":\"x\"}\n{\"n\":\n{\"n\":[]}\n",
    );
    let sql = "CREATE TABLE bad (n INT) WITH (connector = 'single_file', path = 'bad.ndjson', format = 'json', bad_data = 'drop'); SELECT n FROM bad";
    let finished = place.thalweg(&["run", "-e", sql]);
    assert_eq!(
        (finished.code, finished.stdout.as_str()),
        (Some(0), "{\"n\":1}\n")
    );
    assert_eq!(
        finished.warnings(),
        ["warning: table \"bad\": 3 bad records dropped (2 type, 1 malformed)"]
    );

    place.write(
        "late.ndjson",
        "{\"ts\":\"2024-01-01T00:01:00Z\"}\n{\"ts\":\"2024-01-01T00:00:00Z\"}\n",
    );
    let sql = "CREATE TABLE late (ts TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'single_file', path = 'late.ndjson', format = 'json');
               SET pipeline.update_aggregate_flush_interval = '0';
               SELECT COUNT(*) AS n FROM late GROUP BY tumble(INTERVAL '10 seconds')";
    let finished = place.thalweg(&["run", "-e", sql]);
    assert_eq!(
        (finished.code, finished.stdout.as_str()),
        (Some(0), "{\"n\":1}\n")
    );
    assert_eq!(
        finished.warnings(),
        ["warning: 1 late row: its window had closed"]
    );
}
