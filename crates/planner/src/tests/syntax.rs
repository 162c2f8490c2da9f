//! What parses, and as what.

use expect_test::expect;

use super::check_each;
use crate::parse::parse;
use crate::parse::statement::{SetValue, Show, Statement};
use crate::test_registry::bind;

fn statement(sql: &str) -> Statement {
    let mut parsed = parse(sql);
    assert_eq!(parsed.len(), 1, "{sql}");
    parsed
        .remove(0)
        .result
        .unwrap_or_else(|error| panic!("{sql}: {}", error.fault))
}

#[test]
fn options_in_every_quoting() {
    let sql = "CREATE TABLE t (a INT) WITH (
        connector = 'kafka', 'Topic' = 'T', \"source.offset\" = 'earliest', json.unstructured = true,
        'json'.x = 5, event_rate = -1.5, CASED = Word, idle_timeout = INTERVAL '5' MINUTE, type = $$source$$,)";
    let Statement::CreateTable(create) = statement(&sql.replace(",)", ")")) else {
        panic!()
    };
    let options: Vec<_> = create
        .options
        .iter()
        .map(|o| (o.key.text.as_str(), o.value.as_str()))
        .collect();
    assert_eq!(
        options,
        [
            ("connector", "kafka"),
            ("Topic", "T"),
            ("source.offset", "earliest"),
            ("json.unstructured", "true"),
            ("json.x", "5"),
            ("event_rate", "-1.5"),
            ("cased", "Word"),
            ("idle_timeout", "5 minute"),
            ("type", "source"),
        ]
    );
}

#[test]
fn settings_in_every_spelling() {
    for (sql, name, value) in [
        ("SET updating_ttl = '1 hour'", "updating_ttl", "1 hour"),
        ("SET updating_ttl TO '1 hour'", "updating_ttl", "1 hour"),
        (
            "set UPDATING_TTL = INTERVAL '1 hour'",
            "updating_ttl",
            "1 hour",
        ),
        (
            "SET updating_ttl = INTERVAL '1' HOUR",
            "updating_ttl",
            "1 hour",
        ),
        ("SET updating_ttl = 0", "updating_ttl", "0"),
        (
            "SET SESSION updating_ttl TO infinite",
            "updating_ttl",
            "infinite",
        ),
        (
            "SET pipeline.update-aggregate-flush-interval = '0'",
            "pipeline.update-aggregate-flush-interval",
            "0",
        ),
        (
            "SET \"pipeline.update-aggregate-flush-interval\" = '0'",
            "pipeline.update-aggregate-flush-interval",
            "0",
        ),
        (
            "SET 'pipeline.epoch_max_rows' TO 5",
            "pipeline.epoch_max_rows",
            "5",
        ),
        ("SET TIME ZONE 'UTC'", "timezone", "UTC"),
    ] {
        match statement(sql) {
            Statement::Set {
                setting,
                value: SetValue::To { text, .. },
            } => {
                assert_eq!(
                    (setting.text.as_str(), text.as_str()),
                    (name, value),
                    "{sql}"
                );
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    assert!(matches!(
        statement("SET updating_ttl TO DEFAULT"),
        Statement::Set {
            value: SetValue::Default,
            ..
        }
    ));
    assert!(
        matches!(statement("SHOW pipeline.parallelism"), Statement::Show(Show::Setting(name)) if name.text == "pipeline.parallelism")
    );
    assert!(matches!(statement("RESET ALL"), Statement::Reset(None)));
}

#[test]
fn a_statement_ends_at_its_own_semicolon() {
    let sql = "SELECT 'a;b' AS \"x;y\", $$;$$ -- ;
        /* ; /* ; */ */ ; ; SELECT 1;";
    assert_eq!(parse(sql).len(), 2);
    assert_eq!(parse("  ;; -- nothing\n").len(), 0);
}

#[test]
fn words_of_streams_are_no_reserved_words() {
    let script = bind(
        "CREATE TABLE source (watermark INT, sink TEXT, source INT, metadata INT) WITH (connector = 'single_file', path = 'a.json');
         SELECT watermark, sink, source.source, metadata FROM source",
    );
    assert_eq!(script.faults, []);
}

#[test]
fn syntax_faults_say_what_was_expected_and_where() {
    check_each(
        &[
            "SELCT 1",
            "SELECT a FROM",
            "SELECT FROM WHERE",
            "UPDATE t SET a = 1",
            "frobnicate",
            "SELECT 1 2",
            "(SELECT 1",
            "CREATE INDEX i ON t (a)",
            "CREATE TABLE",
            "CREATE TABLE t (a INT",
            "CREATE TABLE t (a INT b INT)",
            "CREATE TABLE t (a, b INT)",
            "CREATE TABLE t (a INT DEFAULT 5)",
            "CREATE TABLE t (a INT UNIQUE)",
            "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (b))",
            "CREATE TABLE t (a INT, CHECK (a > 0))",
            "CREATE TABLE t (a INT) WITH (connector)",
            "CREATE TABLE t (a INT) WITH (connector = )",
            "CREATE TABLE t (a INT) WITH (connector = 'x' topic = 'y')",
            "CREATE TABLE t (WATERMARK ts)",
            "CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))",
            "CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts, WATERMARK FOR ts)",
            "CREATE TABLE a.b (x INT)",
            "CREATE MATERIALIZED VIEW v AS SELECT 1",
            "CREATE TEMP TABLE t (a INT)",
            "CREATE VIEW v AS INSERT",
            "DROP TABLE t CASCADE",
            "DROP MATERIALIZED VIEW v",
            "SET x",
            "SET x = NULL",
            "SET LOCAL x = 1",
            "SHOW",
            "EXPLAIN ANALYZE SELECT 1",
            "EXPLAIN (VERBOSE) SELECT 1",
            "EXPLAIN SET x = 1",
            "INSERT INTO log VALUES (1) ON CONFLICT DO NOTHING",
            "INSERT INTO log VALUES (1) RETURNING id",
            "INSERT INTO log DEFAULT VALUES",
            "SELECT 'abc",
            "SELECT \"abc",
            "SELECT /* abc",
            "SELECT ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))",
        ],
        expect![[r#"
            SELCT 1
                expected a statement, found "selct" at 1:1 · hint: did you mean SELECT?
            SELECT a FROM
                expected identifier, found the end of the statement at 1:14
            SELECT FROM WHERE
                expected an expression, found "FROM" at 1:13
            UPDATE t SET a = 1
                UPDATE is not supported at 1:1
            frobnicate
                expected a statement, found "frobnicate" at 1:1
            SELECT 1 2
                expected the end of the statement, found "2" at 1:10
            (SELECT 1
                expected ), found the end of the statement at 1:10
            CREATE INDEX i ON t (a)
                expected TABLE, SOURCE, SINK or VIEW, found "INDEX" at 1:8
            CREATE TABLE
                expected identifier, found the end of the statement at 1:13
            CREATE TABLE t (a INT
                expected "," or ")", found the end of the statement at 1:22
            CREATE TABLE t (a INT b INT)
                expected "," or ")", found "b" at 1:23
            CREATE TABLE t (a, b INT)
                expected the type of column "a", found "," at 1:18
            CREATE TABLE t (a INT DEFAULT 5)
                DEFAULT of a column is not supported at 1:23
            CREATE TABLE t (a INT UNIQUE)
                UNIQUE of a column is not supported at 1:23
            CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES u (b))
                FOREIGN in a table is not supported at 1:24
            CREATE TABLE t (a INT, CHECK (a > 0))
                CHECK in a table is not supported at 1:24
            CREATE TABLE t (a INT) WITH (connector)
                expected "=", found ")" at 1:39
            CREATE TABLE t (a INT) WITH (connector = )
                expected a value, found ")" at 1:42
            CREATE TABLE t (a INT) WITH (connector = 'x' topic = 'y')
                expected ")", found "topic" at 1:46
            CREATE TABLE t (WATERMARK ts)
                type "ts" does not exist at 1:27
            CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))
                a table has one PRIMARY KEY at 1:36 · hint: a key of several columns is written PRIMARY KEY (a, b) after the columns
            CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts, WATERMARK FOR ts)
                a table has one WATERMARK at 1:49
            CREATE TABLE a.b (x INT)
                "a.b" is qualified, and there are no schemas at 1:14
            CREATE MATERIALIZED VIEW v AS SELECT 1
                materialized views are not supported yet at 1:8
            CREATE TEMP TABLE t (a INT)
                temporary tables and views are not supported at 1:8
            CREATE VIEW v AS INSERT
                expected identifier, found the end of the statement at 1:24
            DROP TABLE t CASCADE
                DROP … CASCADE is not supported at 1:14
            DROP MATERIALIZED VIEW v
                materialized views are not supported yet at 1:6
            SET x
                expected "=" or TO, found the end of the statement at 1:6
            SET x = NULL
                expected a value, found "NULL" at 1:9
            SET LOCAL x = 1
                SET LOCAL is not supported at 1:5
            SHOW
                expected the name of a setting, found the end of the statement at 1:5
            EXPLAIN ANALYZE SELECT 1
                EXPLAIN ANALYZE is not supported at 1:9
            EXPLAIN (VERBOSE) SELECT 1
                options of EXPLAIN are not supported at 1:9
            EXPLAIN SET x = 1
                EXPLAIN takes a query or an INSERT at 1:9
            INSERT INTO log VALUES (1) ON CONFLICT DO NOTHING
                ON CONFLICT is not supported at 1:1 · hint: a sink with a PRIMARY KEY takes updates by that key
            INSERT INTO log VALUES (1) RETURNING id
                RETURNING is not supported at 1:1
            INSERT INTO log DEFAULT VALUES
                INSERT without a query or VALUES is not supported at 1:1
            SELECT 'abc
                unterminated string literal at 1:8
            SELECT "abc
                unterminated quoted identifier at 1:8
            SELECT /* abc
                unterminated comment at 1:14
            SELECT ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))
                the statement is nested too deeply at 1:1
        "#]],
    );
}
