//! What a server asks of the planner beside scripts: statements of clients, parameters, limits, what is in use.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use expect_test::expect;

use super::{TABLES, check_each};
use crate::bind::RowLimit;
use crate::parameters::{self, Literal};
use crate::parse::parse;
use crate::parse::statement::{CopyFormat, FetchCount, SessionStatement, Statement};
use crate::script::{Outcome, Planner, ScriptOptions};
use crate::test_registry::TestRegistry;

fn session(sql: &str) -> SessionStatement {
    match parse(sql).remove(0).result {
        Ok(Statement::Session(session)) => session,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn transactions_take_their_modes_along() {
    for (sql, name) in [
        ("BEGIN", "BEGIN"),
        (
            "START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY",
            "BEGIN",
        ),
        ("END", "COMMIT"),
        ("COMMIT WORK", "COMMIT"),
        ("ABORT", "ROLLBACK"),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
            "SET TRANSACTION",
        ),
        ("DISCARD ALL", "DISCARD"),
        ("UNLISTEN *", "UNLISTEN"),
    ] {
        assert_eq!(session(sql).name(), name, "{sql}");
    }
}

#[test]
fn a_fetch_counts_rows() {
    let fetched = |sql: &str| match session(sql) {
        SessionStatement::Fetch { cursor, count } => (cursor.text, count),
        other => panic!("{other:?}"),
    };
    for (sql, count) in [
        ("FETCH c", FetchCount::Rows(1)),
        ("FETCH NEXT FROM c", FetchCount::Rows(1)),
        ("FETCH 0 IN C", FetchCount::Rows(0)),
        ("FETCH FORWARD 10 FROM c", FetchCount::Rows(10)),
        ("FETCH FORWARD ALL c", FetchCount::All),
    ] {
        assert_eq!(fetched(sql), ("c".to_string(), count), "{sql}");
    }
}

#[test]
fn copy_has_options_in_both_spellings() {
    let copy = |sql: &str| match session(sql) {
        SessionStatement::Copy(copy) => copy,
        other => panic!("{other:?}"),
    };
    let plain = copy("COPY (SELECT 1) TO STDOUT");
    assert_eq!(
        (plain.format, plain.header, plain.delimiter),
        (CopyFormat::Text, false, None)
    );
    let csv = copy(
        "COPY (SUBSCRIBE (SELECT 1)) TO STDOUT WITH (FORMAT csv, HEADER true, NULL 'x', DELIMITER ';')",
    );
    assert_eq!(
        (csv.format, csv.header, csv.delimiter),
        (CopyFormat::Csv, true, Some(b';'))
    );
    assert_eq!(csv.null.as_deref(), Some("x"));
    assert!(matches!(
        *csv.query,
        Statement::Query {
            subscribe: true,
            ..
        }
    ));
    let old = copy("COPY (SELECT 1) TO STDOUT CSV HEADER");
    assert_eq!((old.format, old.header), (CopyFormat::Csv, true));
}

#[test]
fn statements_of_clients_are_no_part_of_a_script() {
    check_each(
        &[
            "BEGIN",
            "SHOW JOBS",
            "DROP JOB j",
            "DECLARE c CURSOR FOR SELECT 1",
            "DECLARE c CURSOR FOR INSERT INTO log SELECT 1",
            "DECLARE c SCROLL CURSOR FOR SELECT 1",
            "FETCH BACKWARD 1 FROM c",
            "FETCH -1 FROM c",
            "COPY orders TO STDOUT",
            "COPY (SELECT 1) TO 'file'",
            "COPY (SELECT 1) TO STDOUT (FORMAT binary)",
            "COPY (SELECT 1) TO STDOUT (DELIMITER 'ab')",
            "CREATE JOB j AS SELECT 1",
            "ROLLBACK TO s",
        ],
        expect![[r#"
            BEGIN
                BEGIN is not supported in a script at 1:1 · hint: it is for a client of `thalweg serve`
            SHOW JOBS
                SHOW JOBS is not supported in a script at 1:1 · hint: it is for a client of `thalweg serve`
            DROP JOB j
                DROP JOB is not supported in a script at 1:1 · hint: it is for a client of `thalweg serve`
            DECLARE c CURSOR FOR SELECT 1
                DECLARE is not supported in a script at 1:1 · hint: it is for a client of `thalweg serve`
            DECLARE c CURSOR FOR INSERT INTO log SELECT 1
                a cursor takes a SELECT or a SUBSCRIBE at 1:22
            DECLARE c SCROLL CURSOR FOR SELECT 1
                cursors that go backwards are not supported at 1:11
            FETCH BACKWARD 1 FROM c
                cursors that go backwards are not supported at 1:7
            FETCH -1 FROM c
                cursors that go backwards are not supported at 1:7
            COPY orders TO STDOUT
                COPY of a table is not supported at 1:1 · hint: write COPY (SELECT … FROM t) TO STDOUT, or INSERT INTO t
            COPY (SELECT 1) TO 'file'
                expected STDOUT, found "'file'" at 1:20 · hint: a sink keeps what a query gives: CREATE TABLE … WITH (…), then INSERT INTO
            COPY (SELECT 1) TO STDOUT (FORMAT binary)
                COPY format "binary" is not supported at 1:35 · hint: text or csv
            COPY (SELECT 1) TO STDOUT (DELIMITER 'ab')
                "ab" cannot be the delimiter of COPY at 1:38 · hint: one ASCII character that is no letter and no digit
            CREATE JOB j AS SELECT 1
                a job is an INSERT or CREATE TABLE … AS at 1:17
            ROLLBACK TO s
                savepoints are not supported at 1:1
        "#]],
    );
}

/// After [`TABLES`].
fn planner() -> Planner {
    let mut planner = Planner::new(TestRegistry::shared());
    planner.plan(TABLES, &ScriptOptions::default()).unwrap();
    planner
}

fn statement(sql: &str) -> Statement {
    parse(sql)
        .remove(0)
        .result
        .unwrap_or_else(|e| panic!("{sql}: {}", e.fault))
}

#[test]
fn parameters_take_the_type_of_what_they_meet() {
    let planner = planner();
    let types = |sql: &str| parameters::types(&statement(sql), planner.catalog());
    let (int, text) = (Some(DataType::Int32), Some(DataType::Utf8));
    assert_eq!(types("SELECT $2::INT, $1"), [None, int.clone()]);
    assert_eq!(
        types("SELECT 1 FROM orders WHERE order_id = $1 AND customer LIKE $2"),
        [int, text.clone()]
    );
    assert_eq!(types("SELECT 1 LIMIT $1"), [Some(DataType::Int64)]);
    assert_eq!(
        types("INSERT INTO log (note, id) VALUES ($1, $2), ('x', $3)"),
        [text, Some(DataType::Int64), Some(DataType::Int64)]
    );
    assert_eq!(types("SELECT 1"), []);
}

#[test]
fn values_are_literals_where_their_parameters_stood() {
    let filled = |sql: &str, values: &[Literal]| {
        let mut statement = statement(sql);
        match parameters::substitute(&mut statement, values) {
            Ok(()) => match statement {
                Statement::Query { query, .. } => query.to_string(),
                other => panic!("{other:?}"),
            },
            Err(fault) => fault.to_string(),
        }
    };
    let hostile = Literal::Text("'; DROP TABLE t; --".into());
    assert_eq!(
        filled("SELECT $1", &[hostile]),
        "SELECT '''; DROP TABLE t; --' AS \"$1\""
    );
    let values = [
        Literal::Integer("-5".into()),
        Literal::Bool(true),
        Literal::Null(Some("INT".into())),
        Literal::Bytes(vec![0, 255]),
        Literal::Typed {
            text: "2024-01-01".into(),
            sql_type: "DATE".into(),
        },
    ];
    assert_eq!(
        filled(
            "SELECT 1 - $1 AS a, $2, $2, $3 AS c, $4 AS d, $5 AS e",
            &values
        ),
        "SELECT 1 - (-5) AS a, true AS \"$2\", true AS \"$2 2\", CAST(NULL AS INT) AS c, X'00ff' AS d, \
         CAST('2024-01-01' AS DATE) AS e"
    );
    assert_eq!(
        filled("SELECT 1,\n $2", &[Literal::Bool(true)]),
        "there is no parameter $2 at 2:2"
    );
    let count = |sql: &str| parameters::count(&statement(sql)).map_err(|fault| fault.to_string());
    assert_eq!(count("SELECT $3 + $1"), Ok(3));
    assert_eq!(
        count("SELECT $0"),
        Err("\"$0\" is no parameter: they are $1, $2, … at 1:8".into())
    );
}

#[test]
fn a_limit_is_left_to_who_can_keep_it() {
    let options = ScriptOptions {
        result_limits: true,
        ..ScriptOptions::default()
    };
    let limit = |sql: &str| {
        let script = planner().plan(sql, &options);
        match script.map(|mut script| script.outcomes.pop()) {
            Ok(Some(Outcome::Query { limit, .. })) => Ok(limit),
            Ok(other) => panic!("{other:?}"),
            Err(faults) => Err(faults[0].to_string()),
        }
    };
    let rows = |offset, limit| Ok(Some(RowLimit { offset, limit }));
    assert_eq!(limit("SELECT url FROM clicks"), Ok(None));
    assert_eq!(limit("SELECT url FROM clicks LIMIT 3"), rows(0, Some(3)));
    assert_eq!(limit("SELECT url FROM clicks OFFSET 2"), rows(2, None));
    assert_eq!(
        limit("SELECT url FROM clicks LIMIT NULL OFFSET 2"),
        rows(2, None)
    );
    // An order, something that is no constant, and what is not the whole result are another matter.
    for refused in [
        "SELECT url FROM clicks ORDER BY url LIMIT 3",
        "SELECT url FROM clicks LIMIT 1 + 1",
        "SELECT url FROM (SELECT url FROM clicks LIMIT 3)",
        "SUBSCRIBE (SELECT url FROM clicks LIMIT 3)",
    ] {
        assert!(limit(refused).is_err(), "{refused}");
    }
}

#[test]
fn what_a_job_uses_cannot_be_dropped() {
    let mut planner = planner();
    let script = planner.plan(
        "CREATE VIEW urls AS SELECT url FROM clicks; INSERT INTO log (id, note) SELECT 1, url FROM urls",
        &ScriptOptions::default(),
    );
    let uses: Vec<_> = script.unwrap().jobs[0].uses.iter().cloned().collect();
    assert_eq!(uses, ["clicks", "log", "urls"]);
    let options = ScriptOptions {
        in_use: BTreeMap::from([("log".to_string(), "writer".to_string())]),
        ..ScriptOptions::default()
    };
    let mut refused = |sql: &str| planner.plan(sql, &options).unwrap_err()[0].clone();
    let fault = refused("DROP TABLE log");
    assert_eq!(fault.kind.sqlstate(), "2BP01");
    assert_eq!(
        fault.to_string(),
        "\"log\" cannot be dropped: job \"writer\" uses it at 1:12 · hint: DROP JOB writer first"
    );
    let replaced = refused("CREATE OR REPLACE TABLE log (n INT) WITH (connector = 'blackhole')");
    assert!(
        replaced
            .to_string()
            .starts_with("\"log\" cannot be replaced: job \"writer\" uses it")
    );
}
