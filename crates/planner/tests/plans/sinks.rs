//! Sinks: casts, keys, and results that do not fit.

use crate::check;
use expect_test::expect;

const SINKS: &str = "
    CREATE TABLE plain (customer_id TEXT, total DOUBLE PRECISION) WITH (connector = 'stdout');
    CREATE TABLE changes (customer_id TEXT, total DOUBLE PRECISION) WITH (connector = 'stdout', format = 'debezium_json');
    CREATE TABLE keyed (customer_id TEXT PRIMARY KEY, total DOUBLE PRECISION) WITH (connector = 'stdout', format = 'debezium_json');
    CREATE TABLE windows (at TIMESTAMP, customer_id TEXT, n BIGINT, PRIMARY KEY (at, customer_id)) WITH (connector = 'stdout');
";

#[track_caller]
fn check_sink(sql: &str, expected: expect_test::Expect) {
    check(&format!("{SINKS}{sql}"), expected);
}

#[test]
fn values_are_cast_as_in_an_assignment() {
    check_sink(
        "INSERT INTO plain SELECT customer_id, amount FROM orders",
        expect![[r#"
        job: flush interval 1s
        [2] sink "plain": stdout, json; at least once; customer_id, total
            append-only
          [1] project: customer_id, CAST(amount AS DOUBLE) AS total
              append-only
            [0] source "orders": single_file, json, bounded; decodes customer_id, amount, event_time
                append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check_sink(
        "INSERT INTO plain (total) SELECT order_id FROM orders",
        expect![[r#"
        job: flush interval 1s
        [2] sink "plain": stdout, json; at least once; customer_id, total
            append-only
          [1] project: NULL AS customer_id, CAST(order_id AS DOUBLE) AS total
              append-only
            [0] source "orders": single_file, json, bounded; decodes order_id, event_time
                append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check_sink(
        "CREATE TABLE copy WITH (connector = 'stdout') AS SELECT customer_id, price FROM orders",
        expect![[r#"
        job: flush interval 1s
        [1] sink "copy": stdout, json; at least once; customer_id, price
            append-only
          [0] source "orders": single_file, json, bounded; decodes customer_id, price, event_time
              append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn updates_need_a_sink_that_takes_them() {
    check_sink(
        "INSERT INTO plain SELECT customer_id, sum(amount) FROM orders GROUP BY customer_id",
        expect![[r#"
        NotStreamable: the result is updating, but "plain" (stdout, json) can only be appended to at 6:1 · hint: write it with format = 'debezium_json', or group by a window such as tumble(interval '1 minute')
    "#]],
    );
    check_sink(
        "INSERT INTO changes SELECT customer_id, sum(amount) FROM orders GROUP BY customer_id",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [4] sink "changes": stdout, debezium_json; at least once; customer_id, total; changes paired by (customer_id)
                updating; key (customer_id)
              [3] project: customer_id, CAST(sum(orders.amount) AS DOUBLE) AS total
                  updating; key (customer_id)
                [2] aggregate by (customer_id): sum(orders.amount) in columns
                    updating, net; key (customer_id); ttl 1d
                  [1] exchange by (customer_id) ← partial aggregate by (customer_id): sum(orders.amount) in columns
                      append-only
                    [0] source "orders": single_file, json, bounded; decodes customer_id, amount, event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn a_primary_key_must_be_unique_in_the_result() {
    check_sink(
        "INSERT INTO keyed SELECT customer_id, sum(amount) FROM orders GROUP BY customer_id",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [4] sink "keyed": stdout, debezium_json; at least once; customer_id, total; changes paired by (customer_id)
                updating; key (customer_id)
              [3] project: customer_id, CAST(sum(orders.amount) AS DOUBLE) AS total
                  updating; key (customer_id)
                [2] aggregate by (customer_id): sum(orders.amount) in columns
                    updating, net; key (customer_id); ttl 1d
                  [1] exchange by (customer_id) ← partial aggregate by (customer_id): sum(orders.amount) in columns
                      append-only
                    [0] source "orders": single_file, json, bounded; decodes customer_id, amount, event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
    check_sink(
        "INSERT INTO keyed SELECT customer_id, sum(amount) FROM orders GROUP BY customer_id, order_id",
        expect![[r#"
        NotStreamable: PRIMARY KEY (customer_id) of "keyed" is not unique in the result, which has no key at 6:1 · hint: keep the GROUP BY columns among the selected ones, or drop the PRIMARY KEY
    "#]],
    );
    check_sink(
        "INSERT INTO keyed SELECT 'all', sum(amount) FROM orders",
        expect![[r#"
            job: flush interval 1s
            [4] sink "keyed": stdout, debezium_json; at least once; customer_id, total; changes paired by (customer_id)
                updating; one row
              [3] project: 'all' AS customer_id, CAST(sum(orders.amount) AS DOUBLE) AS total
                  updating; one row
                [2] aggregate all rows: sum(orders.amount) in columns
                    updating, net; one row
                  [1] exchange to one subtask ← partial aggregate all rows: sum(orders.amount) in columns
                      append-only
                    [0] source "orders": single_file, json, bounded; decodes amount, event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
    check_sink(
        "INSERT INTO keyed SELECT customer_id, price FROM orders",
        expect![[r#"
        job: flush interval 1s
        notice: nothing shows that PRIMARY KEY (customer_id) of "keyed" is unique in the rows written to it
        [2] sink "keyed": stdout, debezium_json; at least once; customer_id, total
            append-only
          [1] project: customer_id, price AS total
              append-only
            [0] source "orders": single_file, json, bounded; decodes customer_id, price, event_time
                append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check_sink(
        "INSERT INTO keyed SELECT owner, sum(balance) FROM accounts GROUP BY owner UNION ALL SELECT customer_id, sum(price) FROM orders GROUP BY customer_id",
        expect![[r#"
        NotStreamable: PRIMARY KEY (customer_id) of "keyed" is not unique in the result, which has no key at 6:1 · hint: keep the GROUP BY columns among the selected ones, or drop the PRIMARY KEY
    "#]],
    );
    check_sink(
        "INSERT INTO windows SELECT window_end, customer_id, count(*) FROM TUMBLE(orders, DESCRIPTOR(event_time), INTERVAL '1 minute') GROUP BY window_start, window_end, customer_id",
        expect![[r#"
        job: flush interval 1s
        [4] sink "windows": stdout, json; at least once; at, customer_id, n
            append-only; key (at, customer_id); window tumble 1m in (at)
          [3] project: window_end AS at, customer_id, count(*) AS n
              append-only; key (at, customer_id); window tumble 1m in (at)
            [2] window aggregate: tumble 1m of event time by (customer_id): count(*) in columns
                append-only; key (window_start, customer_id); window tumble 1m in (window_start, window_end)
              [1] exchange by (customer_id) ← partial window aggregate: tumble 1m of event time by (customer_id): count(*) in columns
                  append-only
                [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn a_key_survives_lossless_casts() {
    check_sink("CREATE TABLE small (id INT PRIMARY KEY, n INT) WITH (connector = 'stdout', format = 'debezium_json');
                INSERT INTO small SELECT order_id, count(*) FROM orders GROUP BY order_id", expect![[r#"
                    job: flush interval 1s
                    notice: the row of a group (order_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
                    [4] sink "small": stdout, debezium_json; at least once; id, n; changes paired by (id)
                        updating, net; key (id)
                      [3] project: CAST(order_id AS INT) AS id, CAST(count(*) AS INT) AS n
                          updating, net; key (id)
                        [2] aggregate by (order_id): count(*) in columns
                            updating, net; key (order_id); ttl 1d
                          [1] exchange by (order_id) ← partial aggregate by (order_id): count(*) in columns
                              append-only
                            [0] source "orders": single_file, json, bounded; decodes order_id, event_time
                                append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
                "#]]);
    check_sink("CREATE TABLE small (id INT PRIMARY KEY, n INT) WITH (connector = 'stdout', format = 'debezium_json');
                INSERT INTO small SELECT price, count(*) FROM orders GROUP BY price", expect![[r#"
                    NotStreamable: PRIMARY KEY (id) of "small" is not unique in the result, which has no key at 7:17 · hint: keep the GROUP BY columns among the selected ones, or drop the PRIMARY KEY
                "#]]);
}

#[test]
fn changes_that_a_sink_pairs_come_together() {
    check_sink(
        "INSERT INTO keyed SELECT owner, count(*) FROM (SELECT owner, balance, count(*) AS n FROM accounts GROUP BY owner, balance) GROUP BY owner",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (owner, balance) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            notice: the row of a group (owner) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [8] sink "keyed": stdout, debezium_json; at least once; customer_id, total; changes paired by (customer_id)
                updating; key (customer_id)
              [7] project: owner AS customer_id, CAST(count(*) AS DOUBLE) AS total
                  updating; key (customer_id)
                [6] aggregate by (owner): count(*) in columns
                    updating, net; key (owner); ttl 1d
                  [5] exchange by (owner) ← project: owner
                      updating
                    [4] aggregate by (owner, balance)
                        updating, net; key (owner, balance); ttl 1d
                      [3] exchange by (owner, balance) ← project: owner, balance
                          updating
                        [2] project: id, owner, balance
                            updating; key (id)
                          [1] rows of "accounts": the latest by (id)
                              updating, net; key (id); event time seen; no ttl
                            [0] exchange by (id) ← source "accounts": kafka, debezium_json, unbounded; decodes id, owner, balance, seen
                                records of changes; event time seen; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check_sink(
        "INSERT INTO changes SELECT owner, balance FROM accounts",
        expect![[r#"
            job: flush interval 1s
            [4] sink "changes": stdout, debezium_json; at least once; customer_id, total; changes paired by whole rows
                updating
              [3] exchange by (customer_id, total) ← project: owner AS customer_id, CAST(balance AS DOUBLE) AS total
                  updating
                [2] project: id, owner, balance
                    updating; key (id)
                  [1] rows of "accounts": the latest by (id)
                      updating, net; key (id); event time seen; no ttl
                    [0] exchange by (id) ← source "accounts": kafka, debezium_json, unbounded; decodes id, owner, balance, seen
                        records of changes; event time seen; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn one_table_has_one_sink() {
    check_sink(
        "INSERT INTO plain SELECT customer_id, price FROM orders; INSERT INTO plain SELECT url, user_id FROM clicks",
        expect![[r#"
        job: flush interval 1s
        [5] sink "plain": stdout, json; at least once; customer_id, total
            append-only
          [4] union
              append-only
            [2] project: customer_id, price AS total
                append-only
              [0] source "orders": single_file, json, bounded; decodes customer_id, price, event_time
                  append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
            [3] project: url AS customer_id, CAST(user_id AS DOUBLE) AS total
                append-only
              [1] source "clicks": kafka, json, unbounded; decodes user_id, url, at
                  append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
}
