//! INSERT: which column gets what.

use expect_test::expect;

use super::{check_each, check_plan};

#[test]
fn by_position_with_assignment_casts() {
    check_plan(
        "INSERT INTO totals SELECT customer, sum(amount), count(*) FROM orders GROUP BY customer",
        expect![[r#"
        Projection: orders.customer AS customer, CAST(sum(orders.amount) AS Decimal128(12, 2)) AS total, CAST(count(*) AS Int32) AS n
          Projection: orders.customer, sum(orders.amount), count(Int64(1)) AS count(*)
            Aggregate: groupBy=[[orders.customer]], aggr=[[sum(orders.amount), count(Int64(1))]]
              TableScan: orders"#]],
    );
}

#[test]
fn by_name_with_columns_left_out() {
    check_plan(
        "INSERT INTO log (small, id) SELECT price, order_id FROM orders",
        expect![[r#"
        Projection: CAST(orders.order_id AS Int64) AS id, Utf8(NULL) AS note, Date32("NULL") AS day, CAST(CAST(orders.price AS Decimal128(10, 0)) AS Int16) AS small
          Projection: orders.price, orders.order_id
            TableScan: orders"#]],
    );
}

#[test]
fn floats_are_rounded_to_whole_numbers() {
    check_plan(
        "INSERT INTO log (id) SELECT amount FROM orders",
        expect![[r#"
        Projection: CAST(round(orders.amount) AS Int64) AS id, Utf8(NULL) AS note, Date32("NULL") AS day, Int16(NULL) AS small
          Projection: orders.amount
            TableScan: orders"#]],
    );
}

#[test]
fn literals_have_no_type_of_their_own() {
    check_plan(
        "INSERT INTO log VALUES (1, NULL, '2024-01-01', '7'), (2, 'b', NULL, NULL)",
        expect![[r#"
        Projection: column1 AS id, CAST(column2 AS Utf8) AS note, CAST(column3 AS Date32) AS day, CAST(column4 AS Int16) AS small
          Values: (Int64(1), Utf8(NULL), Utf8("2024-01-01"), Utf8("7")), (Int64(2), Utf8("b"), Utf8(NULL), Utf8(NULL))"#]],
    );
    check_plan(
        "INSERT INTO log (id, day) SELECT order_id, '2024-01-01' FROM orders",
        expect![[r#"
        Projection: CAST(orders.order_id AS Int64) AS id, Utf8(NULL) AS note, CAST(Utf8("2024-01-01") AS Date32) AS day, Int16(NULL) AS small
          Projection: orders.order_id, Utf8("2024-01-01")
            TableScan: orders"#]],
    );
}

#[test]
fn a_value_within_json_becomes_text() {
    check_plan(
        "INSERT INTO log (id, note) SELECT order_id, doc->'a' FROM orders",
        expect![[r#"
            Projection: CAST(orders.order_id AS Int64) AS id, json_union_to_text(doc -> 'a') AS note, Date32("NULL") AS day, Int16(NULL) AS small
              Projection: orders.order_id, json_get(orders.doc, Utf8("a")) AS doc -> 'a'
                TableScan: orders"#]],
    );
}

#[test]
fn the_same_column_twice() {
    check_plan(
        "INSERT INTO log (id, small) SELECT order_id, order_id FROM orders",
        expect![[r#"
            Projection: CAST(orders.order_id AS Int64) AS id, Utf8(NULL) AS note, Date32("NULL") AS day, CAST(column 2 AS Int16) AS small
              Projection: orders.order_id, orders.order_id AS column 2
                TableScan: orders"#]],
    );
    check_plan(
        "INSERT INTO log (id, small) SELECT count(*), count(*) FROM orders",
        expect![[r#"
            Projection: count(*) AS id, Utf8(NULL) AS note, Date32("NULL") AS day, CAST(column 2 AS Int16) AS small
              Projection: count(Int64(1)) AS count(*), count(Int64(1)) AS count(*) AS column 2
                Aggregate: groupBy=[[]], aggr=[[count(Int64(1))]]
                  TableScan: orders"#]],
    );
}

#[test]
fn faults() {
    check_each(
        &[
            "INSERT INTO logs SELECT 1",
            "INSERT INTO orders SELECT 1",
            "INSERT INTO log SELECT 1",
            "INSERT INTO log SELECT 1, 'a', NULL, 4, 5",
            "INSERT INTO log (id, note) SELECT 1",
            "INSERT INTO log (id, notes) SELECT 1, 'a'",
            "INSERT INTO log (id, id) SELECT 1, 2",
            "INSERT INTO log (note) SELECT 'a'",
            "INSERT INTO log (id) SELECT NULL",
            "INSERT INTO log (id, small) SELECT customer, customer FROM orders",
            "INSERT INTO log (id) SELECT '12x'",
            "INSERT INTO log (id, day) VALUES (1, '2024-01-01'), (2, 'tomorrow')",
            "INSERT INTO log (id, note) SELECT 1, tags FROM orders",
            "INSERT INTO log (id) SELECT doc->'a' FROM orders",
            "INSERT INTO log (id, day) SELECT 1, order_id FROM orders",
            "INSERT INTO log (id) SELECT order_idd FROM orders",
            "INSERT INTO log (idd) SELECT order_idd FROM orders",
            "CREATE TABLE g (a INT, b INT GENERATED ALWAYS AS (a)) WITH (connector = 'single_file', path = 'g.json'); INSERT INTO g (a, b) SELECT 1, 2",
            "CREATE TABLE g (a INT, b INT GENERATED ALWAYS AS (a), PRIMARY KEY (b)) WITH (connector = 'single_file', path = 'g.json'); INSERT INTO g SELECT 1",
            "CREATE TABLE g (a INT) WITH (connector = 'single_file', path = '/', format = 'json'); INSERT INTO g SELECT 1; INSERT INTO g SELECT 2; SELECT * FROM g",
        ],
        expect![[r#"
            INSERT INTO logs SELECT 1
                table "logs" does not exist at 1:13 · hint: did you mean "log"?
            INSERT INTO orders SELECT 1
                table "orders" is read, not written: connector 'kafka' or the table's type does not allow writing at 1:13
            INSERT INTO log SELECT 1
                table "log" has 4 columns, but the query gives 1 at 1:1 · hint: name those to fill: INSERT INTO log (id) …
            INSERT INTO log SELECT 1, 'a', NULL, 4, 5
                table "log" has 4 columns, but the query gives 5 at 1:1
            INSERT INTO log (id, note) SELECT 1
                INSERT names 2 columns, but the query gives 1 at 1:1
            INSERT INTO log (id, notes) SELECT 1, 'a'
                column "notes" of table "log" does not exist at 1:22 · hint: table "log" has "note"
            INSERT INTO log (id, id) SELECT 1, 2
                column "id" is named twice at 1:22
            INSERT INTO log (note) SELECT 'a'
                column "id" of table "log" is NOT NULL and gets no value at 1:1
            INSERT INTO log (id) SELECT NULL
                column "id" of table "log" is NOT NULL and gets no value at 1:29
            INSERT INTO log (id, small) SELECT customer, customer FROM orders
                column "id" of table "log" has type BIGINT, but the query gives TEXT at 1:36 · hint: CAST it to BIGINT
                column "small" of table "log" has type SMALLINT, but the query gives TEXT at 1:46 · hint: CAST it to SMALLINT
            INSERT INTO log (id) SELECT '12x'
                '12x' is no BIGINT for column "id" of table "log" at 1:29
            INSERT INTO log (id, day) VALUES (1, '2024-01-01'), (2, 'tomorrow')
                'tomorrow' is no DATE for column "day" of table "log" at 1:57
            INSERT INTO log (id, note) SELECT 1, tags FROM orders
                column "note" of table "log" has type TEXT, but the query gives TEXT[] at 1:38 · hint: CAST it to TEXT
            INSERT INTO log (id) SELECT doc->'a' FROM orders
                column "id" of table "log" has type BIGINT, but the query gives a JSON value at 1:29 · hint: take the value out as its type: (doc -> 'a' …)::BIGINT
            INSERT INTO log (id, day) SELECT 1, order_id FROM orders
                column "day" of table "log" has type DATE, but the query gives INT at 1:37 · hint: CAST it to DATE
            INSERT INTO log (id) SELECT order_idd FROM orders
                column "order_idd" does not exist at 1:29 · hint: table "orders" has "order_id"
            INSERT INTO log (idd) SELECT order_idd FROM orders
                column "idd" of table "log" does not exist at 1:18 · hint: table "log" has "id"
                column "order_idd" does not exist at 1:30 · hint: table "orders" has "order_id"
            CREATE TABLE g (a INT, b INT GENERATED ALWAYS AS (a)) WITH (connector = 'single_file', path = 'g.json'); INSERT INTO g (a, b) SELECT 1, 2
                column "b" of table "g" is generated and cannot be written at 1:124
            CREATE TABLE g (a INT, b INT GENERATED ALWAYS AS (a), PRIMARY KEY (b)) WITH (connector = 'single_file', path = 'g.json'); INSERT INTO g SELECT 1
                column "b" of the PRIMARY KEY of table "g" is not written at 1:135 · hint: a sink's key consists of columns that it writes
            CREATE TABLE g (a INT) WITH (connector = 'single_file', path = '/', format = 'json'); INSERT INTO g SELECT 1; INSERT INTO g SELECT 2; SELECT * FROM g
                table "g": '/' is a directory and no file (Sink) at 1:57 · hint: name a file
                table "g": '/' is a directory and no file (Source) at 1:57 · hint: name a file
        "#]],
    );
}
