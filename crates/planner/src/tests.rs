//! Scripts in, plans and faults out.

use crate::test_registry::{faults, plan};
use expect_test::{Expect, expect};

const ORDERS: &str = "
    CREATE TABLE orders (
        order_id INT PRIMARY KEY,
        customer_id TEXT,
        amount DOUBLE PRECISION,
        event_time TIMESTAMP,
        WATERMARK FOR event_time AS event_time - INTERVAL '5 seconds'
    ) WITH (connector = 'kafka', bootstrap_servers = 'localhost:9092', topic = 'orders', type = 'source');
    CREATE TABLE out (customer_id TEXT PRIMARY KEY, total DECIMAL(12, 2), n INT) WITH (connector = 'blackhole');
";

#[track_caller]
fn check_plan(sql: &str, expected: Expect) {
    expected.assert_eq(&plan(&format!("{ORDERS}{sql}")));
}

#[track_caller]
fn check_faults(sql: &str, expected: Expect) {
    expected.assert_eq(&faults(sql));
}

#[test]
fn a_bare_select() {
    check_plan(
        "SELECT customer_id, amount * 2 AS double FROM orders WHERE amount > 10",
        expect![[r#"
        Projection: orders.customer_id, orders.amount * Int64(2) AS double
          Filter: orders.amount > Int64(10)
            TableScan: orders"#]],
    );
}

#[test]
fn insert_by_position() {
    check_plan(
        "INSERT INTO out SELECT customer_id, sum(amount), count(*) FROM orders GROUP BY customer_id",
        expect![[r#"
        Projection: orders.customer_id AS customer_id, CAST(sum(orders.amount) AS Decimal128(12, 2)) AS total, CAST(count(*) AS Int32) AS n
          Projection: orders.customer_id, sum(orders.amount), count(Int64(1)) AS count(*)
            Aggregate: groupBy=[[orders.customer_id]], aggr=[[sum(orders.amount), count(Int64(1))]]
              TableScan: orders"#]],
    );
}

#[test]
fn many() {
    check_faults("CREATE TABEL x (a INT);
CREATE TABLE t (a INT, b TXT, a TEXT) WITH (connector = 'kafak');
SELECT * FROM t;
CREATE TABLE u (a INT, ts TIMESTAMP) WITH (connector = 'single_file', pth = 'x.json');
SELECT c FROM u; SELECT aa, count(*) FROM u;
CREATE TABLE v (a INT, ts TIMESTAMP, s TEXT, j JSON) WITH (connector = 'single_file', path = 'x.json');
SELECT ss FROM v;
SELECT s + 1 FROM v;
SELECT sum(s) FROM v;
SELECT a, count(*) FROM v;
SELECT foo(a) FROM v;
SELECT cuont(a) FROM v;
SELECT a = s FROM v;
SELECT * FROM v JOIN u ON true ORDER BY 1 LIMIT 5;
SELECT CASE WHEN a THEN 1 ELSE 'x' END FROM v;
SELECT abs(s, 1) FROM v;
SELECT * FROM vv;
SELECT x.a FROM v AS y;
SELECT CAST(a AS FOO) FROM v;
SELECT a FROM v UNION SELECT a, s FROM v;
SELECT a AS x, s AS x FROM v;
SELECT a FROM v WHERE count(*) > 1;
SELECT sum(a) FROM v HAVING s = 'a';
SELECT a FROM v WHERE a;
SELECT -s FROM v;
SELECT ts - 5 FROM v;
SELECT INTERVAL 'foo';
SELECT CAST('x' AS INT);
SELECT j->'a', j->>'b', json_get_int(j, 'c') FROM v;
SELECT 'abc
", expect![[r#"
    expected TABLE, SOURCE, SINK or VIEW, found "TABEL" at 1:8
    type "TXT" does not exist at 2:26 · hint: did you mean TEXT?
    column "a" is declared twice at 2:31
    unknown connector 'kafak' at 2:57 · hint: did you mean 'kafka'?
    table "u" needs the option 'path' at 4:14 · hint: The file (text)
    unknown option 'pth' of connector 'single_file' at 4:71 · hint: did you mean 'path'?
    column "ss" does not exist at 7:8 · hint: table "v" has "ts"
    cannot coerce arithmetic expression TEXT + BIGINT to valid types at 8:8
    internal error: Function 'sum' failed to match any signature, errors: Error during planning: Function 'sum' requires Decimal, but received String (DataType: TEXT).,Error during planning: Function 'sum' requires BIGINT UNSIGNED, but received String (DataType: TEXT).,Error during planning: Function 'sum' requires BIGINT, but received String (DataType: TEXT).,Error during planning: Function 'sum' requires DOUBLE PRECISION, but received String (DataType: TEXT).,Error during planning: Function 'sum' requires Duration, but received String (DataType: TEXT).,Error during planning: Function 'sum' requires Interval, but received String (DataType: TEXT) at 9:1
    column "v.a" must appear in the GROUP BY clause or be used in an aggregate function at 10:8
    function "foo" does not exist at 11:8
    function "cuont" does not exist at 12:8
    joins are not supported yet at 14:22
    ORDER BY is not supported yet at 14:41
    LIMIT is not supported yet at 14:49
    function 'abs' expects 1 arguments but received 2 at 16:1
    table "vv" does not exist at 17:15 · hint: did you mean "v"?
    column "x.a" does not exist at 18:8 · hint: table "y" has "a"
    type "FOO" does not exist at 19:1
    UNION queries have different number of columns at 20:1
    the query gives two columns named "x" at 21:1 · hint: name one of them otherwise with AS
    aggregate functions are not allowed in the WHERE clause at 22:1
    column "v.s" must appear in the GROUP BY clause or be used in an aggregate function at 23:29
    cannot create filter with non-boolean predicate 'v.a' returning INT at 24:1
    unary operator '-' only supports signed numeric, interval and timestamp types at 25:9
    cannot coerce arithmetic expression Timestamp(ns) - BIGINT to valid types at 26:8
    arrow error: Parser error: Invalid input syntax for type interval: "foo" at 27:1
    arrow error: Cast error: Cannot cast string 'x' to value of INT type at 28:1
    unterminated string literal at 30:8"#]]);
}
