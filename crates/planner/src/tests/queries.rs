//! Queries as they leave the binder.

use expect_test::expect;

use super::{check_each, check_plan};

#[test]
fn windows_in_both_spellings() {
    check_plan(
        "SELECT tumble(INTERVAL '1 minute') AS w, count(*) AS n FROM orders GROUP BY w",
        expect![[r#"
            Projection: tumble(1m) AS w, count(Int64(1)) AS count(*) AS n
              Aggregate: groupBy=[[tumble(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 60000000000 }"))]], aggr=[[count(Int64(1))]]
                TableScan: orders"#]],
    );
    check_plan(
        "SELECT window_end, count(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1 minute') GROUP BY window_end",
        expect![[r#"
        Projection: window_end, count(Int64(1)) AS count(*) AS n
          Aggregate: groupBy=[[window_end]], aggr=[[count(Int64(1))]]
            WindowTvf: tumble 1m
              TableScan: orders"#]],
    );
    check_plan(
        "SELECT (w).start, (w).END AS e FROM (SELECT hop(INTERVAL '1 minute', INTERVAL '1 hour') AS w FROM orders GROUP BY 1)",
        expect![[r#"
            Projection: get_field(w, Utf8("start")), get_field(w, Utf8("end")) AS e
              Projection: hop(1m, 1h) AS w
                Aggregate: groupBy=[[hop(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 60000000000 }"), IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 3600000000000 }"))]], aggr=[[]]
                  TableScan: orders"#]],
    );
}

#[test]
fn json_operators() {
    check_plan(
        "SELECT doc->'a' AS a, doc->>'b' AS b, (doc->'a'->'c')::INT AS c, json_get_int(doc, 'n') AS n, doc ? 'x' AS x FROM orders",
        expect![[r#"
        Projection: json_union_to_text(a) AS a, b, c, n, x
          Projection: json_get(orders.doc, Utf8("a")) AS doc -> 'a' AS a, json_as_text(orders.doc, Utf8("b")) AS doc ->> 'b' AS b, CAST(json_get(json_get(orders.doc, Utf8("a")) AS doc -> 'a', Utf8("c")) AS doc -> 'a' -> 'c' AS Int32) AS c, json_get_int(orders.doc, Utf8("n")) AS n, json_contains(orders.doc, Utf8("x")) AS doc ? 'x' AS x
            TableScan: orders"#]],
    );
}

#[test]
fn unnest_in_select_and_from() {
    check_plan(
        "SELECT unnest(tags) AS tag FROM orders",
        expect![[r#"
        Projection: __unnest_placeholder(orders.tags,depth=1) AS UNNEST(orders.tags) AS tag
          Unnest: lists[__unnest_placeholder(orders.tags)|depth=1] structs[]
            Projection: orders.tags AS __unnest_placeholder(orders.tags)
              TableScan: orders"#]],
    );
    check_plan(
        "SELECT customer, tag FROM orders, LATERAL unnest(tags) AS x(tag)",
        expect![[r#"
        Projection: orders.customer, x.tag
          Cross Join:
            TableScan: orders
            SubqueryAlias: x
              Subquery:
                Projection: UNNEST(outer_ref(orders.tags)) AS tag
                  Projection: __unnest_placeholder(outer_ref(orders.tags),depth=1) AS UNNEST(outer_ref(orders.tags))
                    Unnest: lists[__unnest_placeholder(outer_ref(orders.tags))|depth=1] structs[]
                      Projection: outer_ref(orders.tags) AS __unnest_placeholder(outer_ref(orders.tags))
                        EmptyRelation: rows=1"#]],
    );
    check_plan(
        "SELECT customer, tag FROM orders CROSS JOIN unnest(tags) AS x(tag)",
        expect![[r#"
        Projection: orders.customer, x.tag
          Cross Join:
            TableScan: orders
            SubqueryAlias: x
              Subquery:
                Projection: UNNEST(outer_ref(orders.tags)) AS tag
                  Projection: __unnest_placeholder(outer_ref(orders.tags),depth=1) AS UNNEST(outer_ref(orders.tags))
                    Unnest: lists[__unnest_placeholder(outer_ref(orders.tags))|depth=1] structs[]
                      Projection: outer_ref(orders.tags) AS __unnest_placeholder(outer_ref(orders.tags))
                        EmptyRelation: rows=1"#]],
    );
}

#[test]
fn views_are_put_in_place() {
    check_plan(
        "CREATE VIEW big (who, how_much) AS SELECT customer, amount FROM orders WHERE amount > 100;
         CREATE VIEW bigger AS SELECT * FROM big WHERE how_much > 1000;
         WITH c AS (SELECT who FROM bigger b) SELECT c.who, upper(who) AS up FROM c",
        expect![[r#"
            Projection: c.who, upper(c.who) AS up
              SubqueryAlias: c
                Projection: b.who
                  SubqueryAlias: b
                    SubqueryAlias: bigger
                      Projection: big.who, big.how_much
                        Filter: big.how_much > CAST(Int64(1000) AS Float64)
                          SubqueryAlias: big
                            Projection: orders.customer AS who, orders.amount AS how_much
                              Projection: orders.customer, orders.amount
                                Filter: orders.amount > CAST(Int64(100) AS Float64)
                                  TableScan: orders"#]],
    );
}

#[test]
fn casts_use_the_types_of_columns() {
    check_plan(
        "SELECT amount::FLOAT AS a, '2024-01-01'::TIMESTAMP(3) AS b, ts::TIMESTAMPTZ AS c, customer::VARCHAR AS d, '1 day'::INTERVAL AS e, 1::DECIMAL(5,1) AS f FROM orders",
        expect![[r#"
            Projection: CAST(orders.amount AS Float64) AS a, CAST(Utf8("2024-01-01") AS Timestamp(ns)) AS b, CAST(orders.ts AS Timestamp(ns, "+00:00")) AS c, CAST(orders.customer AS Utf8) AS d, CAST(Utf8("1 day") AS Interval(MonthDayNano)) AS e, CAST(Int64(1) AS Decimal128(5, 1)) AS f
              TableScan: orders"#]],
    );
}

#[test]
fn refusals_have_positions() {
    check_each(
        &[
            "SELECT * FROM orders JOIN clicks ON true",
            "SELECT * FROM orders o, clicks c WHERE o.customer = c.customer",
            "SELECT * FROM orders LEFT JOIN clicks USING (customer) JOIN log ON true",
            "SELECT row_number() OVER (PARTITION BY customer) FROM orders",
            "SELECT sum(amount) OVER w FROM orders WINDOW w AS (PARTITION BY customer)",
            "SELECT * FROM orders ORDER BY ts LIMIT 10 OFFSET 3",
            "SELECT * FROM (SELECT * FROM orders ORDER BY ts) x",
            "SELECT * FROM orders FETCH FIRST 3 ROWS ONLY",
            "SELECT * FROM orders OFFSET 3",
            "SELECT DISTINCT ON (customer) * FROM orders",
            "WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT * FROM r",
            "SELECT customer FROM orders INTERSECT SELECT customer FROM clicks",
            "SELECT customer FROM orders EXCEPT ALL SELECT customer FROM clicks",
            "SELECT * FROM orders WHERE customer IN (SELECT customer FROM clicks)",
            "SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM clicks)",
            "SELECT (SELECT max(at) FROM clicks) FROM orders",
            "SELECT * FROM orders FOR UPDATE",
            "SELECT customer INTO x FROM orders",
            "SELECT * FROM orders TABLESAMPLE BERNOULLI (10)",
            "SELECT customer FROM orders QUALIFY row_number() OVER () = 1",
            "SELECT * FROM generate_series(1, 5)",
            "SELECT * FROM tumbel(TABLE orders, DESCRIPTOR(ts), INTERVAL '1 minute')",
            "SELECT $1 FROM orders",
            "SELECT * FROM public.orders",
            "SELECT * FROM totals",
            "CREATE VIEW v AS SELECT * FROM orders ORDER BY 1",
            "EXPLAIN SELECT * FROM orders JOIN clicks ON true",
            "SELECT array_agg(amount ORDER BY ts) FROM orders GROUP BY customer",
        ],
        expect![[r#"
            SELECT * FROM orders JOIN clicks ON true
                joins are not supported yet at 1:27
            SELECT * FROM orders o, clicks c WHERE o.customer = c.customer
                joins are not supported yet at 1:25
            SELECT * FROM orders LEFT JOIN clicks USING (customer) JOIN log ON true
                joins are not supported yet at 1:32
                joins are not supported yet at 1:61
                table "log" is written, not read at 1:61 · hint: connector 'stdout' or the table's type does not allow reading
            SELECT row_number() OVER (PARTITION BY customer) FROM orders
                window functions (OVER) are not supported yet at 1:8
            SELECT sum(amount) OVER w FROM orders WINDOW w AS (PARTITION BY customer)
                window functions (OVER) are not supported yet at 1:8
            SELECT * FROM orders ORDER BY ts LIMIT 10 OFFSET 3
                ORDER BY is not supported yet at 1:31
                LIMIT is not supported yet at 1:40
            SELECT * FROM (SELECT * FROM orders ORDER BY ts) x
                ORDER BY is not supported yet at 1:46
            SELECT * FROM orders FETCH FIRST 3 ROWS ONLY
                FETCH is not supported yet at 1:1
            SELECT * FROM orders OFFSET 3
                OFFSET is not supported yet at 1:29
            SELECT DISTINCT ON (customer) * FROM orders
                DISTINCT ON is not supported yet at 1:21
            WITH RECURSIVE r AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM r) SELECT * FROM r
                WITH RECURSIVE is not supported yet at 1:1
            SELECT customer FROM orders INTERSECT SELECT customer FROM clicks
                INTERSECT is not supported yet at 1:39
            SELECT customer FROM orders EXCEPT ALL SELECT customer FROM clicks
                EXCEPT is not supported yet at 1:40
            SELECT * FROM orders WHERE customer IN (SELECT customer FROM clicks)
                subqueries in expressions are not supported yet at 1:28
            SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM clicks)
                subqueries in expressions are not supported yet at 1:36
            SELECT (SELECT max(at) FROM clicks) FROM orders
                subqueries in expressions are not supported yet at 1:9
            SELECT * FROM orders FOR UPDATE
                FOR UPDATE is not supported yet at 1:1
            SELECT customer INTO x FROM orders
                SELECT INTO is not supported yet at 1:1 · hint: use CREATE TABLE … AS or INSERT INTO
            SELECT * FROM orders TABLESAMPLE BERNOULLI (10)
                TABLESAMPLE is not supported yet at 1:15
            SELECT customer FROM orders QUALIFY row_number() OVER () = 1
                QUALIFY is not supported yet at 1:37
                window functions (OVER) are not supported yet at 1:37
            SELECT * FROM generate_series(1, 5)
                table function "generate_series" does not exist at 1:15 · hint: there are TUMBLE, HOP, SESSION and UNNEST
            SELECT * FROM tumbel(TABLE orders, DESCRIPTOR(ts), INTERVAL '1 minute')
                table function "tumbel" does not exist at 1:15 · hint: did you mean "tumble"?
            SELECT $1 FROM orders
                there is no parameter $1 at 1:8
            SELECT * FROM public.orders
                "public.orders" is qualified, and there are no schemas at 1:15
            SELECT * FROM totals
                table "totals" is written, not read at 1:15 · hint: connector 'blackhole' or the table's type does not allow reading
            CREATE VIEW v AS SELECT * FROM orders ORDER BY 1
                ORDER BY is not supported yet at 1:48
            EXPLAIN SELECT * FROM orders JOIN clicks ON true
                joins are not supported yet at 1:35
            SELECT array_agg(amount ORDER BY ts) FROM orders GROUP BY customer
        "#]],
    );
}

#[test]
fn binding_faults() {
    check_each(
        &[
            "SELECT amont, custmer, order_id FROM orders WHERE tss > now()",
            "SELECT amont FROM orders UNION ALL SELECT custmer FROM orders",
            "WITH a AS (SELECT amont FROM orders), b AS (SELECT * FROM a WHERE x = 1) SELECT y FROM b",
            "SELECT x FROM (SELECT amont AS x FROM orders WHERE foo(1)) s",
            "SELECT upper(customer, 1) FROM orders",
            "SELECT order_id + customer || abs(tags) FROM orders",
            "SELECT sum(customer) FROM orders GROUP BY customer",
            "SELECT customer, sum(amount), ts FROM orders GROUP BY customer",
            "SELECT customer, count(*) FROM orders GROUP BY customer HAVING amount > 5",
            "SELECT o.x FROM orders o",
            "SELECT amount AS customer, customer FROM orders",
            "SELECT 1 AS a, 2 AS b, 3 AS a",
            "SELECT * FROM order",
            "SELECT * FROM orderz",
            "SELECT amount::MAP<TEXT, INT>, doc::UUID FROM orders",
            "SELECT CASE WHEN order_id THEN 1 END FROM orders",
            "SELECT * FROM orders WHERE amount",
            "SELECT ts - 5 FROM orders",
            "SELECT DATE '2024-13-45'",
            "SELECT 1 / 0",
            "SELECT INTERVAL '1 fortnight'",
            "SELECT count(DISTINCT amount, customer) FROM orders",
            "SELECT sum(sum(amount)) FROM orders",
            "SELECT unnest(customer) FROM orders",
            "SELECT doc->'a' + 1 FROM orders",
            "SELECT * FROM orders GROUP BY 99",
            "SELECT customer FROM orders GROUP BY sum(amount)",
            "SELECT",
            "SELECT *",
            "VALUES (1, 2), (3)",
            "SELECT date_trunc('day') FROM orders",
            "SELECT extract(foo FROM ts) FROM orders",
            "SELECT (doc).x FROM orders",
            "SELECT ts AT TIME ZONE 'Mars' FROM orders",
            "SELECT upper(customer) || tags::INT FROM orders",
            "SELECT (doc->'a')::DATE, TRY_CAST(tags AS INT) FROM orders",
        ],
        expect![[r#"
            SELECT amont, custmer, order_id FROM orders WHERE tss > now()
                column "amont" does not exist at 1:8 · hint: table "orders" has "amount"
                column "custmer" does not exist at 1:15 · hint: table "orders" has "customer"
                column "tss" does not exist at 1:51 · hint: table "orders" has "ts"
            SELECT amont FROM orders UNION ALL SELECT custmer FROM orders
                column "amont" does not exist at 1:8 · hint: table "orders" has "amount"
                column "custmer" does not exist at 1:43 · hint: table "orders" has "customer"
            WITH a AS (SELECT amont FROM orders), b AS (SELECT * FROM a WHERE x = 1) SELECT y FROM b
                column "amont" does not exist at 1:19 · hint: table "orders" has "amount"
            SELECT x FROM (SELECT amont AS x FROM orders WHERE foo(1)) s
                column "amont" does not exist at 1:23 · hint: table "orders" has "amount"
                function "foo" does not exist at 1:52
            SELECT upper(customer, 1) FROM orders
                function 'upper' expects 1 arguments but received 2 at 1:8
            SELECT order_id + customer || abs(tags) FROM orders
                INT + TEXT is not defined at 1:8 · hint: CAST one side to the type of the other
            SELECT sum(customer) FROM orders GROUP BY customer
                function "sum" does not take TEXT at 1:8 · hint: it takes DECIMAL, BIGINT UNSIGNED, BIGINT, DOUBLE PRECISION, INTERVAL
            SELECT customer, sum(amount), ts FROM orders GROUP BY customer
                column "orders.ts" must appear in the GROUP BY clause or be used in an aggregate function at 1:31
            SELECT customer, count(*) FROM orders GROUP BY customer HAVING amount > 5
                column "orders.amount" must appear in the GROUP BY clause or be used in an aggregate function at 1:64
            SELECT o.x FROM orders o
                column "o.x" does not exist at 1:8
            SELECT amount AS customer, customer FROM orders
                column "customer" is ambiguous at 1:1 · hint: name its table before it, as in t.column
            SELECT 1 AS a, 2 AS b, 3 AS a
                column "a" is ambiguous: the query gives two of that name at 1:24 · hint: name one of them otherwise with AS
            SELECT * FROM order
                table "order" does not exist at 1:15 · hint: did you mean "orders"?
            SELECT * FROM orderz
                table "orderz" does not exist at 1:15 · hint: did you mean "orders"?
            SELECT amount::MAP<TEXT, INT>, doc::UUID FROM orders
                expected an expression, found "," at 1:30
            SELECT CASE WHEN order_id THEN 1 END FROM orders
            SELECT * FROM orders WHERE amount
                the condition is DOUBLE PRECISION, not BOOLEAN at 1:28
            SELECT ts - 5 FROM orders
                TIMESTAMP - BIGINT is not defined at 1:8 · hint: CAST one side to the type of the other
            SELECT DATE '2024-13-45'
                cannot cast string '2024-13-45' to value of DATE type at 1:13
            SELECT 1 / 0
            SELECT INTERVAL '1 fortnight'
                invalid input syntax for type interval: "1 fortnight" at 1:17
            SELECT count(DISTINCT amount, customer) FROM orders
                DISTINCT over several arguments is not supported yet at 1:8 · hint: put them together, as in DISTINCT struct(a, b)
            SELECT sum(sum(amount)) FROM orders
                aggregate function calls cannot be nested: 'sum(orders.amount)' is nested inside 'sum(sum(orders.amount))' at 1:16
            SELECT unnest(customer) FROM orders
                unnest() can only be applied to array, struct and null at 1:8
            SELECT doc->'a' + 1 FROM orders
                TEXT + BIGINT is not defined at 1:13 · hint: CAST one side to the type of the other
            SELECT * FROM orders GROUP BY 99
                cannot find column with position 99 in SELECT clause at 1:31
            SELECT customer FROM orders GROUP BY sum(amount)
                column "orders.customer" must appear in the GROUP BY clause or be used in an aggregate function at 1:8
            SELECT
                expected an expression, found the end of the statement at 1:7
            SELECT *
                SELECT * with no tables specified is not valid at 1:1
            VALUES (1, 2), (3)
                inconsistent data length across values list: got 1 values in row 1 but expected 2 at 1:8
            SELECT date_trunc('day') FROM orders
                function "date_trunc" does not take these arguments at 1:8 · hint: it is called as date_trunc(TEXT, TIMESTAMP) or date_trunc(TEXT, TIME)
            SELECT extract(foo FROM ts) FROM orders
            SELECT (doc).x FROM orders
                cannot access field at argument 1: type TEXT is not Struct, Map, or Null at 1:9
            SELECT ts AT TIME ZONE 'Mars' FROM orders
            SELECT upper(customer) || tags::INT FROM orders
                cannot cast TEXT[] to INT at 1:27
            SELECT (doc->'a')::DATE, TRY_CAST(tags AS INT) FROM orders
                cannot cast TEXT[] to INT at 1:35
        "#]],
    );
}
