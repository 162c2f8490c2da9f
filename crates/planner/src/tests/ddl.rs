//! Tables, views and settings as statements leave them behind.

use expect_test::{Expect, expect};

use super::check_each;
use crate::catalog::{Relation, TableDef};
use crate::script::{Outcome, Planner, ScriptOptions};
use crate::test_registry::{TestRegistry, bind, planned};
use thalweg_dataflow::table::BadData;

/// What DESCRIBE says of `t`.
#[track_caller]
fn check_described(create: &str, expected: Expect) {
    let script =
        planned(&format!("{create}; DESCRIBE t")).unwrap_or_else(|faults| panic!("{faults:?}"));
    let Some(Outcome::Rows { rows, .. }) = script.outcomes.last() else {
        panic!("no rows")
    };
    let lines: Vec<String> = rows
        .iter()
        .map(|row| row.join(" | ").trim_end_matches(['|', ' ']).to_string())
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

fn table(sql: &str) -> TableDef {
    let script = bind(sql);
    assert_eq!(script.faults, [], "{sql}");
    match &script.catalog.relations["t"] {
        Relation::Table(def) | Relation::Stream(def) => def.as_ref().clone(),
        Relation::View(_) => panic!("a view"),
    }
}

#[test]
fn every_type() {
    check_described(
        "CREATE TABLE t (
            a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f INT8, g INT UNSIGNED, h BIGINT UNSIGNED, i TINYINT UNSIGNED,
            j SMALLINT UNSIGNED, k REAL, l DOUBLE PRECISION, m FLOAT, n FLOAT(10), o DECIMAL(10, 2), p NUMERIC, q DECIMAL(5),
            r TEXT, s VARCHAR(10), t CHAR(3), u CHARACTER VARYING, v BYTEA, w DATE, x TIME, y TIMESTAMP, z TIMESTAMP(3),
            aa TIMESTAMPTZ, bb TIMESTAMP WITH TIME ZONE, cc JSON, dd JSONB, ee INT[], ff ARRAY<TEXT>, gg INT[][],
            hh STRUCT<a INT, b STRUCT<c TEXT>>, ii STRUCT(a INT, b TEXT[]), jj STRUCT<\"X\" ARRAY<STRUCT<y INT>>>, kk DOUBLE,
            ll DECIMAL(50, 3), mm INT4, nn FLOAT8
        ) WITH (connector = 'single_file', path = 'x.json')",
        expect![[r#"
            a | BOOLEAN | yes
            b | TINYINT | yes
            c | SMALLINT | yes
            d | INT | yes
            e | BIGINT | yes
            f | BIGINT | yes
            g | INT UNSIGNED | yes
            h | BIGINT UNSIGNED | yes
            i | TINYINT UNSIGNED | yes
            j | SMALLINT UNSIGNED | yes
            k | REAL | yes
            l | DOUBLE PRECISION | yes
            m | DOUBLE PRECISION | yes
            n | REAL | yes
            o | DECIMAL(10, 2) | yes
            p | DECIMAL(38, 10) | yes
            q | DECIMAL(5, 0) | yes
            r | TEXT | yes
            s | TEXT | yes
            t | TEXT | yes
            u | TEXT | yes
            v | BYTEA | yes
            w | DATE | yes
            x | TIME | yes
            y | TIMESTAMP | yes
            z | TIMESTAMP | yes
            aa | TIMESTAMP WITH TIME ZONE | yes
            bb | TIMESTAMP WITH TIME ZONE | yes
            cc | JSON | yes
            dd | JSON | yes
            ee | INT[] | yes
            ff | TEXT[] | yes
            gg | INT[][] | yes
            hh | STRUCT<a INT, b STRUCT<c TEXT>> | yes
            ii | STRUCT<a INT, b TEXT[]> | yes
            jj | STRUCT<X STRUCT<y INT>[]> | yes
            kk | DOUBLE PRECISION | yes
            ll | DECIMAL(50, 3) | yes
            mm | INT | yes
            nn | DOUBLE PRECISION | yes"#]],
    );
}

#[test]
fn keys_generated_and_metadata_columns() {
    check_described(
        "CREATE TABLE t (
            id INT, name TEXT NOT NULL, ts TIMESTAMP GENERATED ALWAYS AS (to_timestamp(at)) STORED, at BIGINT,
            off BIGINT METADATA FROM 'offset', upper TEXT GENERATED ALWAYS AS (upper(name)) VIRTUAL, twice INT GENERATED ALWAYS AS (id * 2),
            CONSTRAINT pk PRIMARY KEY (id, name) NOT ENFORCED, WATERMARK FOR ts
        ) WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't')",
        expect![[r#"
            id | INT | no | primary key
            name | TEXT | no | primary key
            ts | TIMESTAMP | yes | event time, generated as to_timestamp(at)
            at | BIGINT | yes
            off | BIGINT | yes | metadata from 'offset'
            upper | TEXT | yes | generated as upper(name)
            twice | INT | yes | generated as id * 2"#]],
    );
}

#[test]
fn a_connector_s_own_columns() {
    check_described(
        "CREATE TABLE t WITH ('connector' = 'impulse', event_rate = '100')",
        expect![[r#"
        counter | BIGINT UNSIGNED | yes
        subtask_index | BIGINT UNSIGNED | yes"#]],
    );
    check_described(
        "CREATE TABLE t (counter BIGINT UNSIGNED) WITH (connector = 'impulse', event_rate = 100)",
        expect!["counter | BIGINT UNSIGNED | yes"],
    );
}

#[test]
fn the_columns_of_a_query() {
    check_described(
        "CREATE TABLE s (a INT, ts TIMESTAMP, s TEXT) WITH (connector = 'single_file', path = 's.json');
         CREATE TABLE t (PRIMARY KEY (a)) WITH (connector = 'blackhole') AS
             SELECT a, NULL AS nothing, arrow_cast(ts, 'Timestamp(Millisecond, None)') AS ms, arrow_cast(s, 'Dictionary(Int32, Utf8)') AS d FROM s",
        expect![[r#"
            a | INT | no | primary key
            nothing | TEXT | yes
            ms | TIMESTAMP | yes
            d | TEXT | yes"#]],
    );
}

#[test]
fn a_view_s_columns() {
    check_described(
        "CREATE VIEW t (x, \"Y\") AS SELECT 1, 'a' UNION ALL SELECT 2, NULL",
        expect![[r#"
        x | BIGINT | no
        Y | TEXT | yes"#]],
    );
}

#[test]
fn options_of_every_table() {
    let def = table(
        "CREATE TABLE t (ts TIMESTAMP, w TIMESTAMP) WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't',
            event_time_field = 'ts', watermark_field = 'w', idle_timeout = '0', max_event_time_ahead = '2 hours', bad_data = 'drop')",
    );
    assert_eq!(
        (def.event_time, def.idle_timeout, def.max_event_time_ahead),
        (Some(0), None, Some(7_200_000_000_000))
    );
    assert_eq!(
        def.watermark.map(|w| w.to_string()),
        Some("\"w\"".to_string())
    );
    assert_eq!(def.bad_data, BadData::Drop);
    let options: Vec<_> = def.options.iter().collect();
    assert_eq!(
        options,
        [
            ("bootstrap_servers", "b"),
            ("json.unstructured", "false"),
            ("source.offset", "latest"),
            ("topic", "t")
        ],
        "the table's own options are not the connector's"
    );

    let def = table("CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.csv')");
    assert_eq!((def.format.as_deref(), def.bounded), (Some("csv"), true));
    assert_eq!(
        (def.idle_timeout, def.max_event_time_ahead),
        (Some(300_000_000_000), Some(3_600_000_000_000))
    );
    assert_eq!(def.bad_data, BadData::Fail);
}

#[test]
fn what_a_table_may_be_used_for() {
    let directions = |sql: &str| {
        let def = table(sql);
        (def.can_read, def.can_write, def.takes_updates)
    };
    let file = "connector = 'single_file', path = 'x.json'";
    assert_eq!(
        directions(&format!("CREATE TABLE t (a INT) WITH ({file})")),
        (true, true, false)
    );
    assert_eq!(
        directions(&format!(
            "CREATE TABLE t (a INT) WITH ({file}, type = 'source')"
        )),
        (true, false, false)
    );
    assert_eq!(
        directions(&format!(
            "CREATE SINK t (a INT) WITH ({file}, format = 'debezium_json')"
        )),
        (false, true, true)
    );
    assert_eq!(
        directions(&format!("CREATE SOURCE t (a INT) WITH ({file})")),
        (true, false, false)
    );
    assert_eq!(
        directions("CREATE TABLE t (a INT) WITH (connector = 'blackhole')"),
        (false, true, true)
    );
    assert_eq!(directions("CREATE TABLE t (a INT)"), (true, true, true));
}

#[test]
fn faults_of_create_table() {
    check_each(
        &[
            "CREATE TABLE orders (a INT) WITH (connector = 'blackhole')",
            "CREATE TABLE IF NOT EXISTS orders (a INT) WITH (connector = 'blackhole')",
            "CREATE OR REPLACE TABLE orders (a INT) WITH (connector = 'blackhole'); SELECT a FROM orders",
            "CREATE VIEW v AS SELECT * FROM orders; CREATE OR REPLACE TABLE orders (a INT) WITH (connector = 'blackhole')",
            "CREATE VIEW v AS SELECT 1; CREATE OR REPLACE TABLE v (a INT) WITH (connector = 'blackhole')",
            "CREATE TABLE t (a INT, A TEXT) WITH (connector = 'blackhole')",
            "CREATE TABLE t WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't')",
            "CREATE TABLE t ()",
            "CREATE TABLE t (a UUID) WITH (connector = 'blackhole')",
            "CREATE TABLE t (a MAP<TEXT, INT>) WITH (connector = 'blackhole')",
            "CREATE TABLE t (a TEXTT, b DECIMAL(80), c DECIMAL(5, 7), d STRUCT<x FOO>) WITH (connector = 'blackhole')",
            "CREATE TABLE t (a INT, PRIMARY KEY (aa)) WITH (connector = 'blackhole')",
            "CREATE TABLE t (a INT, PRIMARY KEY (a, a)) WITH (connector = 'blackhole')",
            "CREATE TABLE t (ts TEXT, WATERMARK FOR ts) WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR tss) WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (ts TIMESTAMP) WITH (connector = 'single_file', path = 'x.json', event_time_field = 'tz')",
            "CREATE TABLE t (ts TIMESTAMP, u TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'single_file', path = 'x.json', event_time_field = 'u')",
            "CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS tt - INTERVAL '1 s') WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS 5) WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS now()) WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS max(ts)) WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (aa + 1)) WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a), c INT GENERATED ALWAYS AS (b)) WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (a INT, b DATE GENERATED ALWAYS AS (a * 1.5)) WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (a INT, b DOUBLE GENERATED ALWAYS AS (random())) WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS ((SELECT 1))) WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (a INT METADATA FROM 'offset') WITH (connector = 'single_file', path = 'x.json')",
            "CREATE TABLE t (a INT, b INT METADATA FROM 'offst', c DATE METADATA FROM 'key') WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't')",
            "CREATE TABLE t (counter INT, x INT) WITH (connector = 'impulse', event_rate = 1)",
            "CREATE TABLE t (a INT) WITH (connector = 'blackhole', connector = 'kafka')",
            "CREATE TABLE t (a INT) WITH (connector = 'pulsar')",
            "CREATE TABLE t (a INT) WITH (conector = 'kafka')",
            "CREATE TABLE t (a INT) WITH (connector = 'kafka')",
            "CREATE TABLE t (a INT) WITH (connector = 'kafka', bootstrap_server = 'b', topic = 't')",
            "CREATE TABLE t (a INT) WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't', colour = 'red')",
            "CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.parquet')",
            "CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.json', format = 'jsn')",
            "CREATE TABLE t (a INT) WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't', format = 'csv')",
            "CREATE TABLE t (a INT) WITH (connector = 'blackhole', format = 'json')",
            "CREATE TABLE t WITH (connector = 'impulse', event_rate = 'fast', message_count = -1)",
            "CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.json', type = 'sorce', idle_timeout = '5', bad_data = 'ignore')",
            "CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.json', bad_data = 'dead_letter')",
            "CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.json', dead_letter = 'log')",
            "CREATE TABLE t (a INT) WITH (connector = 'stdout', type = 'source')",
            "CREATE SINK t WITH (connector = 'impulse', event_rate = 1)",
            "CREATE SOURCE t (a INT) WITH (connector = 'single_file', path = 'x.json', type = 'sink')",
            "CREATE SOURCE t (a INT) WITH (connector = 'single_file', path = '/', format = 'json')",
            "CREATE TABLE t (a INT, ts TIMESTAMP, g INT GENERATED ALWAYS AS (a), WATERMARK FOR ts)",
            "CREATE TABLE t (a INT) WITH (connector = 'blackhole') AS SELECT 1",
            "CREATE TABLE t WITH (connector = 'blackhole') AS SELECT 1 AS a, 2 AS a",
            "CREATE TABLE t WITH (connector = 'impulse', event_rate = 1) AS SELECT 1 AS a",
            "CREATE TABLE t (PRIMARY KEY (b)) WITH (connector = 'blackhole') AS SELECT 1 AS a",
        ],
        expect![[r#"
            CREATE TABLE orders (a INT) WITH (connector = 'blackhole')
                table "orders" already exists at 1:14 · hint: it was created at 2:18
            CREATE TABLE IF NOT EXISTS orders (a INT) WITH (connector = 'blackhole')
            CREATE OR REPLACE TABLE orders (a INT) WITH (connector = 'blackhole'); SELECT a FROM orders
                table "orders" is written, not read at 1:86 · hint: connector 'blackhole' or the table's type does not allow reading
            CREATE VIEW v AS SELECT * FROM orders; CREATE OR REPLACE TABLE orders (a INT) WITH (connector = 'blackhole')
                "orders" cannot be replaced: view "v" reads it at 1:64 · hint: DROP VIEW v first
            CREATE VIEW v AS SELECT 1; CREATE OR REPLACE TABLE v (a INT) WITH (connector = 'blackhole')
                view "v" already exists at 1:52 · hint: it was created at 15:13
            CREATE TABLE t (a INT, A TEXT) WITH (connector = 'blackhole')
                column "a" is declared twice at 1:24
            CREATE TABLE t WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't')
                table "t" has no columns at 1:14 · hint: declare them, or add infer_schema = true
            CREATE TABLE t ()
                table "t" has no columns at 1:14
            CREATE TABLE t (a UUID) WITH (connector = 'blackhole')
                type UUID is not supported at 1:19 · hint: declare the column as TEXT
            CREATE TABLE t (a MAP<TEXT, INT>) WITH (connector = 'blackhole')
                type Map(TEXT, INT) is not supported at 1:19 · hint: declare the column as STRUCT or JSON
            CREATE TABLE t (a TEXTT, b DECIMAL(80), c DECIMAL(5, 7), d STRUCT<x FOO>) WITH (connector = 'blackhole')
                type "TEXTT" does not exist at 1:19 · hint: did you mean TEXT?
                the precision of a decimal is 1 to 76 digits, not 80 at 1:28
                the scale of DECIMAL(5, 7) is not between 0 and its precision at 1:43
                type "FOO" does not exist at 1:60
            CREATE TABLE t (a INT, PRIMARY KEY (aa)) WITH (connector = 'blackhole')
                column "aa" does not exist at 1:37 · hint: table "t" has "a"
            CREATE TABLE t (a INT, PRIMARY KEY (a, a)) WITH (connector = 'blackhole')
                column "a" is in the PRIMARY KEY twice at 1:40
            CREATE TABLE t (ts TEXT, WATERMARK FOR ts) WITH (connector = 'single_file', path = 'x.json')
                event time column "ts" has type TEXT, not TIMESTAMP at 1:40 · hint: declare it as TIMESTAMP, or add a column GENERATED ALWAYS AS (…) of that type
            CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR tss) WITH (connector = 'single_file', path = 'x.json')
                column "tss" does not exist at 1:45 · hint: table "t" has "ts"
            CREATE TABLE t (ts TIMESTAMP) WITH (connector = 'single_file', path = 'x.json', event_time_field = 'tz')
                column "tz" does not exist at 1:100 · hint: table "t" has "ts"
            CREATE TABLE t (ts TIMESTAMP, u TIMESTAMP, WATERMARK FOR ts) WITH (connector = 'single_file', path = 'x.json', event_time_field = 'u')
                option 'event_time_field' names "u", but WATERMARK FOR "ts" at 1:131
            CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS tt - INTERVAL '1 s') WITH (connector = 'single_file', path = 'x.json')
                column "tt" does not exist at 1:51 · hint: did you mean "ts"?
            CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS 5) WITH (connector = 'single_file', path = 'x.json')
                the watermark has type BIGINT, not TIMESTAMP at 1:51
            CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS now()) WITH (connector = 'single_file', path = 'x.json')
                the watermark calls now, whose value depends on when it is called at 1:51
            CREATE TABLE t (ts TIMESTAMP, WATERMARK FOR ts AS max(ts)) WITH (connector = 'single_file', path = 'x.json')
                the watermark calls the aggregate max at 1:51
            CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (aa + 1)) WITH (connector = 'single_file', path = 'x.json')
                column "aa" does not exist at 1:51 · hint: did you mean "a"?
            CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS (a), c INT GENERATED ALWAYS AS (b)) WITH (connector = 'single_file', path = 'x.json')
                generated column "c" refers to the generated column "b" at 1:82 · hint: repeat its expression instead
            CREATE TABLE t (a INT, b DATE GENERATED ALWAYS AS (a * 1.5)) WITH (connector = 'single_file', path = 'x.json')
                generated column "b" gives DOUBLE PRECISION, not DATE at 1:52
            CREATE TABLE t (a INT, b DOUBLE GENERATED ALWAYS AS (random())) WITH (connector = 'single_file', path = 'x.json')
                generated column "b" calls random, whose value depends on when it is called at 1:54
            CREATE TABLE t (a INT, b INT GENERATED ALWAYS AS ((SELECT 1))) WITH (connector = 'single_file', path = 'x.json')
                generated column "b" contains a query at 1:52
            CREATE TABLE t (a INT METADATA FROM 'offset') WITH (connector = 'single_file', path = 'x.json')
                connector 'single_file' has no metadata 'offset' at 1:37
            CREATE TABLE t (a INT, b INT METADATA FROM 'offst', c DATE METADATA FROM 'key') WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't')
                connector 'kafka' has no metadata 'offst' at 1:44 · hint: it has 'offset', 'key'
                metadata 'key' has type BYTEA, which does not fit column "c" at 1:74
            CREATE TABLE t (counter INT, x INT) WITH (connector = 'impulse', event_rate = 1)
                column "counter" of connector 'impulse' has type BIGINT UNSIGNED at 1:25
                connector 'impulse' has no column "x" at 1:30 · hint: it has "counter", "subtask_index"
            CREATE TABLE t (a INT) WITH (connector = 'blackhole', connector = 'kafka')
                option 'connector' is given twice at 1:55
            CREATE TABLE t (a INT) WITH (connector = 'pulsar')
                unknown connector 'pulsar' at 1:42 · hint: there are 'impulse', 'single_file', 'kafka', 'stdout', 'blackhole'
            CREATE TABLE t (a INT) WITH (conector = 'kafka')
                table "t" has options but no connector at 1:30 · hint: add connector = '…'
            CREATE TABLE t (a INT) WITH (connector = 'kafka')
                table "t" needs the option 'bootstrap_servers' at 1:14 · hint: brokers to begin with (text)
                table "t" needs the option 'topic' at 1:14 · hint: the topic (text)
            CREATE TABLE t (a INT) WITH (connector = 'kafka', bootstrap_server = 'b', topic = 't')
                unknown option 'bootstrap_server' of connector 'kafka' with format 'json' at 1:51 · hint: did you mean 'bootstrap_servers'?
            CREATE TABLE t (a INT) WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't', colour = 'red')
                unknown option 'colour' of connector 'kafka' with format 'json' at 1:89 · hint: it takes 'bootstrap_servers', 'topic', 'source.offset', 'json.unstructured', 'json.timestamp_format'
            CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.parquet')
                table "t" needs the option 'format' at 1:14 · hint: connector 'single_file' carries 'json', 'debezium_json', 'csv'
            CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.json', format = 'jsn')
                unknown format 'jsn' at 1:83 · hint: did you mean 'json'?
            CREATE TABLE t (a INT) WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't', format = 'csv')
                connector 'kafka' does not carry format 'csv' at 1:98 · hint: it carries 'json', 'debezium_json'
            CREATE TABLE t (a INT) WITH (connector = 'blackhole', format = 'json')
                connector 'blackhole' does not carry format 'json' at 1:64 · hint: its records have a fixed schema; leave 'format' out
            CREATE TABLE t WITH (connector = 'impulse', event_rate = 'fast', message_count = -1)
                option 'event_rate': expected a number, found 'fast' at 1:58
                option 'message_count': expected a whole number, found '-1' at 1:82
            CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.json', type = 'sorce', idle_timeout = '5', bad_data = 'ignore')
                option 'type': expected 'source', 'sink', found 'sorce' at 1:81 · hint: did you mean 'source'?
                option 'idle_timeout': '5' has no unit; write for example '5 seconds' at 1:105
                option 'bad_data': expected 'fail', 'drop', 'dead_letter', found 'ignore' at 1:121
            CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.json', bad_data = 'dead_letter')
                bad_data = 'dead_letter' needs the option 'dead_letter' at 1:85 · hint: dead_letter names the table to write to
            CREATE TABLE t (a INT) WITH (connector = 'single_file', path = 'x.json', dead_letter = 'log')
                option 'dead_letter' has no effect without bad_data = 'dead_letter' at 1:74
            CREATE TABLE t (a INT) WITH (connector = 'stdout', type = 'source')
                connector 'stdout' with format 'json' cannot be read at 1:14
            CREATE SINK t WITH (connector = 'impulse', event_rate = 1)
                connector 'impulse' cannot be written at 1:13
            CREATE SOURCE t (a INT) WITH (connector = 'single_file', path = 'x.json', type = 'sink')
                option 'type' contradicts CREATE SOURCE or SINK at 1:82
            CREATE SOURCE t (a INT) WITH (connector = 'single_file', path = '/', format = 'json')
                table "t": '/' is a directory and no file (Source) at 1:58 · hint: name a file
            CREATE TABLE t (a INT, ts TIMESTAMP, g INT GENERATED ALWAYS AS (a), WATERMARK FOR ts)
                table "t" has no connector and so no generated columns at 1:38 · hint: it keeps the event time and the watermark of the query that fills it
                table "t" has no connector and so no WATERMARK at 1:69 · hint: it keeps the event time and the watermark of the query that fills it
            CREATE TABLE t (a INT) WITH (connector = 'blackhole') AS SELECT 1
                columns of CREATE TABLE … AS come from its query at 1:17 · hint: leave them out, or use CREATE TABLE and INSERT INTO
            CREATE TABLE t WITH (connector = 'blackhole') AS SELECT 1 AS a, 2 AS a
                column "a" is ambiguous: the query gives two of that name at 1:65 · hint: name one of them otherwise with AS
            CREATE TABLE t WITH (connector = 'impulse', event_rate = 1) AS SELECT 1 AS a
                table "t" cannot be written, so a query cannot fill it at 1:14
            CREATE TABLE t (PRIMARY KEY (b)) WITH (connector = 'blackhole') AS SELECT 1 AS a
                column "b" does not exist at 1:30 · hint: table "t" has "a"
        "#]],
    );
}

#[test]
fn faults_of_views_and_drop() {
    check_each(
        &[
            "CREATE VIEW v AS SELECT customr FROM orders",
            "CREATE VIEW v (a, b) AS SELECT 1",
            "CREATE VIEW v (a, a) AS SELECT 1, 2",
            "CREATE VIEW orders AS SELECT 1",
            "CREATE VIEW v AS SELECT 1; CREATE VIEW v AS SELECT 2",
            "CREATE VIEW v AS SELECT 1; CREATE OR REPLACE VIEW v AS SELECT 2; CREATE VIEW IF NOT EXISTS v AS SELECT 3",
            "CREATE VIEW v AS SELECT 1 AS a; CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM v",
            "CREATE VIEW v AS SELECT 1 AS a; CREATE VIEW w AS SELECT * FROM v; CREATE OR REPLACE VIEW v AS SELECT 2 AS b",
            "CREATE VIEW v AS SELECT * FROM clicks; DROP TABLE clicks",
            "CREATE VIEW v AS SELECT * FROM clicks; DROP VIEW v; DROP TABLE clicks",
            "DROP TABLE click",
            "DROP TABLE IF EXISTS click, clicks; SELECT * FROM clicks",
            "DROP VIEW clicks",
            "CREATE VIEW v AS SELECT 1; DROP TABLE v",
            "INSERT INTO v SELECT 1; CREATE VIEW v AS SELECT 1",
            "CREATE VIEW v AS SELECT 1 AS a; INSERT INTO v SELECT 1",
            "DESCRIBE nothing",
        ],
        expect![[r#"
            CREATE VIEW v AS SELECT customr FROM orders
                column "customr" does not exist at 1:25 · hint: table "orders" has "customer"
            CREATE VIEW v (a, b) AS SELECT 1
                the view names 2 columns, but its query has 1 at 1:1
            CREATE VIEW v (a, a) AS SELECT 1, 2
                column "a" is ambiguous: the query gives two of that name at 1:1 · hint: name one of them otherwise with AS
            CREATE VIEW orders AS SELECT 1
                table "orders" already exists at 1:13 · hint: it was created at 2:18
            CREATE VIEW v AS SELECT 1; CREATE VIEW v AS SELECT 2
                view "v" already exists at 1:40 · hint: it was created at 15:13
            CREATE VIEW v AS SELECT 1; CREATE OR REPLACE VIEW v AS SELECT 2; CREATE VIEW IF NOT EXISTS v AS SELECT 3
            CREATE VIEW v AS SELECT 1 AS a; CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM v
                view "v" refers to itself at 1:56
            CREATE VIEW v AS SELECT 1 AS a; CREATE VIEW w AS SELECT * FROM v; CREATE OR REPLACE VIEW v AS SELECT 2 AS b
                "v" cannot be replaced: view "w" reads it at 1:90 · hint: DROP VIEW w first
            CREATE VIEW v AS SELECT * FROM clicks; DROP TABLE clicks
                "clicks" cannot be dropped: view "v" reads it at 1:51 · hint: DROP VIEW v first
            CREATE VIEW v AS SELECT * FROM clicks; DROP VIEW v; DROP TABLE clicks
            DROP TABLE click
                table "click" does not exist at 1:12 · hint: did you mean "clicks"?
            DROP TABLE IF EXISTS click, clicks; SELECT * FROM clicks
                table "clicks" does not exist at 1:51
            DROP VIEW clicks
                "clicks" is a table at 1:11 · hint: use DROP TABLE
            CREATE VIEW v AS SELECT 1; DROP TABLE v
                "v" is a view at 1:39 · hint: use DROP VIEW
            INSERT INTO v SELECT 1; CREATE VIEW v AS SELECT 1
                table "v" does not exist at 1:13
            CREATE VIEW v AS SELECT 1 AS a; INSERT INTO v SELECT 1
                "v" is a view and cannot be written at 1:45
            DESCRIBE nothing
                table "nothing" does not exist at 1:10
        "#]],
    );
}

#[test]
fn a_faulty_relation_is_faulted_once() {
    check_each(
        &[
            "CREATE TABLE t (a FOO) WITH (connector = 'blackhole'); INSERT INTO t SELECT 1; SELECT x FROM t; CREATE VIEW v AS SELECT y FROM t; SELECT z FROM v; DROP TABLE t",
            "CREATE TABLE t (a INT,,) WITH (connector = 'single_file'); SELECT a FROM t; DESCRIBE t",
            "CREATE TABLE \"T x\" (a INT; SELECT a FROM \"T x\"",
            "CREATE TABLE t WITH (connector = 'blackhole') AS SELECT amont FROM orders; SELECT * FROM t",
        ],
        expect![[r#"
            CREATE TABLE t (a FOO) WITH (connector = 'blackhole'); INSERT INTO t SELECT 1; SELECT x FROM t; CREATE VIEW v AS SELECT y FROM t; SELECT z FROM v; DROP TABLE t
                type "FOO" does not exist at 1:19
            CREATE TABLE t (a INT,,) WITH (connector = 'single_file'); SELECT a FROM t; DESCRIBE t
                expected identifier, found "," at 1:23
            CREATE TABLE "T x" (a INT; SELECT a FROM "T x"
                expected "," or ")", found the end of the statement at 1:26
            CREATE TABLE t WITH (connector = 'blackhole') AS SELECT amont FROM orders; SELECT * FROM t
                column "amont" does not exist at 1:57 · hint: table "orders" has "amount"
        "#]],
    );
}

#[test]
fn a_faulty_script_changes_nothing() {
    let mut planner = Planner::new(TestRegistry::shared());
    let mut plan = |sql: &str| planner.plan(sql, &ScriptOptions::default());
    plan("CREATE VIEW v AS SELECT 1 AS a; SET updating_ttl = '1 hour'").unwrap();
    plan("CREATE VIEW w AS SELECT 2 AS b; SET updating_ttl = '2 hours'; SELECT c FROM w")
        .unwrap_err();
    plan("SELECT a FROM v").unwrap();
    let faults = plan("SELECT b FROM w").unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "table \"w\" does not exist at 1:15 · hint: did you mean \"v\"?"
    );
    let faults = plan("CREATE VIEW v AS SELECT 3").unwrap_err();
    assert_eq!(
        faults[0].to_string(),
        "view \"v\" already exists at 1:13",
        "not where another script created it"
    );
    let script = plan("SHOW updating_ttl").unwrap();
    assert!(matches!(&script.outcomes[0], Outcome::Rows { rows, .. } if rows[0][0] == "1 hour"));
}

#[test]
fn show_gives_rows() {
    let script = planned(
        "CREATE TABLE t (a INT) WITH (connector = 'blackhole'); CREATE VIEW v AS SELECT 1; SHOW TABLES; SHOW ALL; SHOW timezone",
    )
    .unwrap();
    let rows = |n: usize| match &script.outcomes[n] {
        Outcome::Rows { columns, rows } => (
            columns.join(","),
            rows.iter().map(|r| r.join(",")).collect::<Vec<_>>(),
        ),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        rows(2),
        (
            "name,type,connector".into(),
            vec!["t,table,blackhole".into(), "v,view,".into()]
        )
    );
    assert_eq!(rows(3).1.len(), crate::settings::SETTINGS.len());
    assert_eq!(rows(4), ("timezone".into(), vec!["UTC".into()]));
    assert!(matches!(&script.outcomes[0], Outcome::Done(tag) if tag == "CREATE TABLE"));
}
