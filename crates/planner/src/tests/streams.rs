//! Intermediate streams, settings by statement, fixtures, dead letters.

use std::collections::BTreeMap;

use expect_test::expect;

use super::{TABLES, check_each};
use crate::bind::{SinkTarget, scans};
use crate::script::{RESULT_CONNECTOR, ScriptOptions};
use crate::test_registry::{bind, bind_with, faults_with};

#[test]
fn a_stream_has_one_filler_and_a_reader() {
    check_each(
        &[
            "CREATE TABLE mid (a INT); INSERT INTO mid SELECT order_id FROM orders; SELECT * FROM mid",
            "CREATE TABLE mid (a INT); SELECT * FROM mid; INSERT INTO mid SELECT order_id FROM orders",
            "CREATE TABLE mid AS SELECT order_id FROM orders; SELECT * FROM mid",
            "CREATE TABLE mid (a INT); SELECT * FROM mid",
            "CREATE TABLE mid (a INT); INSERT INTO mid SELECT 1",
            "CREATE TABLE mid (a INT); INSERT INTO mid SELECT 1; INSERT INTO mid SELECT 2; SELECT * FROM mid",
            "CREATE TABLE mid (a INT); INSERT INTO mid SELECT * FROM mid",
            "CREATE TABLE x (a INT); CREATE TABLE y (a INT); INSERT INTO x SELECT * FROM y; INSERT INTO y SELECT * FROM x",
            "CREATE TABLE mid (a INT); INSERT INTO mid SELECT foo FROM orders; SELECT * FROM mid",
            "CREATE TABLE mid (a INT); INSERT INTO mid SELECT 1; SELECT b FROM mid",
            "CREATE TABLE mid (a INT); INSERT INTO mid SELECT 1; EXPLAIN SELECT a FROM mid",
            "CREATE TABLE mid (a INT); INSERT INTO mid SELECT count(*) FROM orders GROUP BY random(); SELECT a FROM mid",
            "CREATE TABLE mid (a INT); CREATE VIEW v AS SELECT a FROM mid; INSERT INTO mid SELECT 1; SELECT a FROM v",
        ],
        expect![[r#"
            CREATE TABLE mid (a INT); INSERT INTO mid SELECT order_id FROM orders; SELECT * FROM mid
            CREATE TABLE mid (a INT); SELECT * FROM mid; INSERT INTO mid SELECT order_id FROM orders
            CREATE TABLE mid AS SELECT order_id FROM orders; SELECT * FROM mid
            CREATE TABLE mid (a INT); SELECT * FROM mid
                nothing fills the intermediate stream "mid" at 1:27 · hint: INSERT INTO mid in the same script, or give the table a connector
            CREATE TABLE mid (a INT); INSERT INTO mid SELECT 1
                nothing reads the intermediate stream "mid" at 1:27 · hint: give the table a connector to keep what is written, or read it in the same script
            CREATE TABLE mid (a INT); INSERT INTO mid SELECT 1; INSERT INTO mid SELECT 2; SELECT * FROM mid
                intermediate stream "mid" is filled at 15:27 already at 1:53 · hint: fill it by one INSERT with UNION ALL, or give the table a connector
            CREATE TABLE mid (a INT); INSERT INTO mid SELECT * FROM mid
                intermediate stream "mid" feeds itself at 1:27
            CREATE TABLE x (a INT); CREATE TABLE y (a INT); INSERT INTO x SELECT * FROM y; INSERT INTO y SELECT * FROM x
                intermediate streams "x", "y" feed each other at 1:49
            CREATE TABLE mid (a INT); INSERT INTO mid SELECT foo FROM orders; SELECT * FROM mid
                column "foo" does not exist at 1:50
            CREATE TABLE mid (a INT); INSERT INTO mid SELECT 1; SELECT b FROM mid
                column "b" does not exist at 1:60 · hint: table "mid" has "a"
            CREATE TABLE mid (a INT); INSERT INTO mid SELECT 1; EXPLAIN SELECT a FROM mid
            CREATE TABLE mid (a INT); INSERT INTO mid SELECT count(*) FROM orders GROUP BY random(); SELECT a FROM mid
            CREATE TABLE mid (a INT); CREATE VIEW v AS SELECT a FROM mid; INSERT INTO mid SELECT 1; SELECT a FROM v
        "#]],
    );
}

#[test]
fn settings_hold_for_the_statements_after_them() {
    let script = bind(
        "SELECT 1; SET updating_ttl = '1 hour'; SET pipeline.parallelism = 2; SELECT 2; RESET updating_ttl; SELECT 3; SET updating_ttl = 'infinite'; SELECT 4",
    );
    let seen: Vec<_> = script
        .queries
        .iter()
        .map(|q| (q.settings.updating_ttl, q.settings.job.parallelism))
        .collect();
    let (hour, day) = (Some(3_600_000_000_000), Some(86_400_000_000_000));
    assert_eq!(
        seen,
        [
            (day, None),
            (hour, Some(2)),
            (day, Some(2)),
            (None, Some(2))
        ]
    );
}

fn options(fixtures: &[(&str, &str)], dry_run: bool) -> ScriptOptions {
    let fixtures: BTreeMap<_, _> = fixtures
        .iter()
        .map(|(table, path)| (table.to_string(), path.to_string()))
        .collect();
    ScriptOptions {
        fixtures,
        dry_run,
        ..Default::default()
    }
}

#[test]
fn a_fixture_is_read_in_place_of_its_table() {
    let sql = format!("{TABLES} CREATE VIEW v AS SELECT * FROM orders; SELECT customer FROM v");
    let script = bind_with(&sql, &options(&[("orders", "o.csv.gz")], false));
    assert_eq!(script.faults, []);
    let def = scans(&script.queries[0].plan).remove(0).def;
    assert_eq!(
        (def.connector.as_str(), def.format.as_deref(), def.bounded),
        ("single_file", Some("csv"), true)
    );
    assert_eq!(
        def.options.iter().collect::<Vec<_>>(),
        [("path", "o.csv.gz")]
    );
    assert_eq!((def.event_time, def.columns.len()), (Some(6), 7));
    let declared = &script.catalog.relations["orders"];
    assert!(
        matches!(declared, crate::catalog::Relation::Table(def) if def.connector == "kafka"),
        "the catalog keeps it"
    );
}

#[test]
fn metadata_of_a_fixture_are_fields_of_its_rows() {
    let sql = "CREATE TABLE k (a INT, o BIGINT METADATA FROM 'offset') WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't'); SELECT o FROM k";
    let script = bind_with(sql, &options(&[("k", "k.ndjson")], false));
    let def = scans(&script.queries[0].plan).remove(0).def;
    assert!(matches!(
        def.columns[1].origin,
        crate::catalog::ColumnOrigin::Physical
    ));
}

#[test]
fn fixtures_of_nothing_are_faults() {
    let faults = |fixtures: &[(&str, &str)]| {
        faults_with(
            &format!("{TABLES} CREATE VIEW v AS SELECT 1; SELECT url FROM clicks"),
            &options(fixtures, false),
        )
    };
    expect![[r#"
        fixture of table "order", which does not exist · hint: did you mean "orders"?
        fixture of "v", which is no table with a connector
        fixture of table "clicks": the format of 'c.xml' is not known at 15:45 · hint: name it .ndjson, .json, .jsonl, .csv or .parquet"#]].assert_eq(&faults(&[("order", "o.csv"), ("v", "v.json"), ("clicks", "c.xml")]));
}

#[test]
fn a_dry_run_writes_nothing_outside() {
    let sql = format!(
        "{TABLES} CREATE TABLE mid AS SELECT order_id FROM orders; INSERT INTO log (id) SELECT order_id FROM mid;
         CREATE TABLE t WITH (connector = 'stdout') AS SELECT count(*) AS n FROM orders"
    );
    let script = bind_with(&sql, &options(&[], true));
    assert_eq!(script.faults, []);
    let sinks: Vec<_> = script
        .queries
        .iter()
        .map(|query| match &query.sink.target {
            SinkTarget::Connector { connector, .. } => (
                query.sink.table.as_str(),
                connector.as_str(),
                query.sink.takes_updates,
            ),
            SinkTarget::Stream(_) => (query.sink.table.as_str(), "", query.sink.takes_updates),
        })
        .collect();
    assert_eq!(
        sinks,
        [
            ("mid", "", true),
            ("log", RESULT_CONNECTOR, true),
            ("t", RESULT_CONNECTOR, true)
        ]
    );
}

#[test]
fn a_bare_select_is_named_by_its_statement() {
    let script = bind("SET updating_ttl = '1 day'; SELECT 1; SUBSCRIBE (SELECT 2)");
    let tables: Vec<_> = script
        .queries
        .iter()
        .map(|q| (q.sink.table.as_str(), q.statement, q.kind))
        .collect();
    use crate::script::QueryKind::{Select, Subscribe};
    assert_eq!(tables, [("1", 1, Select), ("2", 2, Subscribe)]);
}

const DEAD: &str = "CREATE TABLE d (a INT) WITH (connector = 'single_file', path = 'd.json', bad_data = 'dead_letter', dead_letter = 'dead');";

#[test]
fn dead_letters_go_to_a_table_that_can_take_them() {
    let with = |dead: &str| format!("{DEAD} {dead}; SELECT a FROM d");
    let cases = [
        with("CREATE TABLE dead (raw BYTEA, reason TEXT, extra INT) WITH (connector = 'stdout')"),
        with("SELECT 1"),
        with("CREATE TABLE ded (raw BYTEA) WITH (connector = 'stdout')"),
        with("CREATE TABLE dead (raw BYTEA)"),
        with("CREATE TABLE dead (x TEXT) WITH (connector = 'stdout')"),
        with("CREATE TABLE dead (raw TEXT) WITH (connector = 'stdout')"),
        with("CREATE TABLE dead (raw BYTEA, x INT NOT NULL) WITH (connector = 'stdout')"),
        with("CREATE TABLE dead (raw FOO) WITH (connector = 'stdout')"),
        format!("{DEAD} SELECT 1"),
    ];
    check_each(
        &cases.each_ref().map(String::as_str),
        expect![[r#"
            CREATE TABLE d (a INT) WITH (connector = 'single_file', path = 'd.json', bad_data = 'dead_letter', dead_letter = 'dead'); CREATE TABLE dead (raw BYTEA, reason TEXT, extra INT) WITH (connector = 'stdout'); SELECT a FROM d
            CREATE TABLE d (a INT) WITH (connector = 'single_file', path = 'd.json', bad_data = 'dead_letter', dead_letter = 'dead'); SELECT 1; SELECT a FROM d
                dead_letter = 'dead': that table does not exist at 1:100
            CREATE TABLE d (a INT) WITH (connector = 'single_file', path = 'd.json', bad_data = 'dead_letter', dead_letter = 'dead'); CREATE TABLE ded (raw BYTEA) WITH (connector = 'stdout'); SELECT a FROM d
                dead_letter = 'dead': that table does not exist at 1:100 · hint: did you mean 'ded'?
            CREATE TABLE d (a INT) WITH (connector = 'single_file', path = 'd.json', bad_data = 'dead_letter', dead_letter = 'dead'); CREATE TABLE dead (raw BYTEA); SELECT a FROM d
                dead_letter = 'dead': that is no table that can be written at 1:100
            CREATE TABLE d (a INT) WITH (connector = 'single_file', path = 'd.json', bad_data = 'dead_letter', dead_letter = 'dead'); CREATE TABLE dead (x TEXT) WITH (connector = 'stdout'); SELECT a FROM d
                dead_letter = 'dead': that table has no column for dead letters at 1:100 · hint: give it some of "raw", "reason", "topic", "partition", "offset", "time"
            CREATE TABLE d (a INT) WITH (connector = 'single_file', path = 'd.json', bad_data = 'dead_letter', dead_letter = 'dead'); CREATE TABLE dead (raw TEXT) WITH (connector = 'stdout'); SELECT a FROM d
                dead_letter = 'dead': its column "raw" has type TEXT at 1:100 · hint: declare it as BYTEA
            CREATE TABLE d (a INT) WITH (connector = 'single_file', path = 'd.json', bad_data = 'dead_letter', dead_letter = 'dead'); CREATE TABLE dead (raw BYTEA, x INT NOT NULL) WITH (connector = 'stdout'); SELECT a FROM d
                dead_letter = 'dead': its column "x" is NOT NULL and gets no value at 1:100 · hint: leave NOT NULL out
            CREATE TABLE d (a INT) WITH (connector = 'single_file', path = 'd.json', bad_data = 'dead_letter', dead_letter = 'dead'); CREATE TABLE dead (raw FOO) WITH (connector = 'stdout'); SELECT a FROM d
                type "FOO" does not exist at 1:146
            CREATE TABLE d (a INT) WITH (connector = 'single_file', path = 'd.json', bad_data = 'dead_letter', dead_letter = 'dead'); SELECT 1
        "#]],
    );
    let script = bind(&cases[0]);
    assert_eq!(script.dead_letters["dead"].schema.fields().len(), 3);
}
