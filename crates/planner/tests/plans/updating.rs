//! Updating results: GROUP BY without a window, DISTINCT, and what lies above them.

use crate::check;
use expect_test::expect;

#[test]
fn group_by() {
    check(
        "SELECT customer_id, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer_id",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [4] result: customer_id, total, n; changes paired by (customer_id)
                updating, net; key (customer_id)
              [3] project: customer_id, sum(orders.amount) AS total, count(*) AS n
                  updating, net; key (customer_id)
                [2] aggregate by (customer_id): sum(orders.amount) in columns, count(*) in columns
                    updating, net; key (customer_id); ttl 1d
                  [1] exchange by (customer_id) ← partial aggregate by (customer_id): sum(orders.amount) in columns, count(*) in columns
                      append-only
                    [0] source "orders": single_file, json, bounded; decodes customer_id, amount, event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT upper(customer_id) AS name, avg(price) AS a FROM orders GROUP BY 1",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (upper(orders.customer_id)) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [5] result: name, a; changes paired by (name)
                updating, net; key (name)
              [4] project: upper(orders.customer_id) AS name, avg(orders.price) AS a
                  updating, net; key (name)
                [3] aggregate by (upper(orders.customer_id)): avg(orders.price) in columns
                    updating, net; key (upper(orders.customer_id)); ttl 1d
                  [2] exchange by (upper(orders.customer_id)) ← partial aggregate by (upper(orders.customer_id)): avg(orders.price) in columns
                      append-only
                    [1] project: upper(customer_id) AS "upper(orders.customer_id)", price
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes customer_id, price, event_time
                          append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn a_global_aggregate_has_one_row_and_no_ttl() {
    check(
        "SELECT count(*) AS rows FROM ticks HAVING count(*) < 500",
        expect![[r#"
            job: flush interval 1s
            [5] result: rows; changes paired: one row
                updating, net; one row
              [4] project: count(*) AS rows
                  updating, net; one row
                [3] filter: count(*) < 500
                    updating, net; one row
                  [2] aggregate all rows: count(*) in columns
                      updating, net; one row
                    [1] exchange to one subtask ← partial aggregate all rows: count(*) in columns
                        append-only
                      [0] source "ticks": impulse, unbounded; decodes nothing
                          append-only; event time from the connector; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT sum(n) FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id)",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [5] result: sum(n); changes paired: one row
                updating, net; one row
              [4] aggregate all rows: sum(n) in columns
                  updating, net; one row
                [3] exchange to one subtask ← project: count(*) AS n
                    updating
                  [2] aggregate by (customer_id): count(*) in columns
                      updating, net; key (customer_id); ttl 1d
                    [1] exchange by (customer_id) ← partial aggregate by (customer_id): count(*) in columns
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                          append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn ttl_holds_for_the_statements_that_follow_it() {
    check("SET updating_ttl = '1 hour'; SELECT customer_id, count(*) FROM orders GROUP BY customer_id;
           SET updating_ttl = '0'; SELECT user_id, count(*) FROM clicks GROUP BY user_id", expect![[r#"
               job: flush interval 1s
               notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1h of event time; SET updating_ttl = '0' before the query keeps it for ever
               [4] result: customer_id, count(*); changes paired by (customer_id)
                   updating, net; key (customer_id)
                 [3] project: customer_id, count(*)
                     updating, net; key (customer_id)
                   [2] aggregate by (customer_id): count(*) in columns
                       updating, net; key (customer_id); ttl 1h
                     [1] exchange by (customer_id) ← partial aggregate by (customer_id): count(*) in columns
                         append-only
                       [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                           append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails

               job: flush interval 1s
               [4] result: user_id, count(*); changes paired by (user_id)
                   updating, net; key (user_id)
                 [3] project: user_id, count(*)
                     updating, net; key (user_id)
                   [2] aggregate by (user_id): count(*) in columns
                       updating, net; key (user_id); no ttl
                     [1] exchange by (user_id) ← partial aggregate by (user_id): count(*) in columns
                         append-only
                       [0] source "clicks": kafka, json, unbounded; decodes user_id, at
                           append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
           "#]]);
}

#[test]
fn aggregates_of_aggregates_keep_values_where_a_number_is_not_enough() {
    check(
        "SELECT n, max(total), min(total), sum(total), count(*) FROM (SELECT customer_id, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer_id) GROUP BY n",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            notice: the row of a group (n) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [6] result: n, max(total), min(total), sum(total), count(*); changes paired by (n)
                updating, net; key (n)
              [5] project: n, max(total), min(total), sum(total), count(*)
                  updating, net; key (n)
                [4] aggregate by (n): max(total) in multiset, min(total) in multiset, sum(total) in columns, count(*) in columns
                    updating, net; key (n); ttl 1d
                  [3] exchange by (n) ← project: count(*) AS n, sum(orders.amount) AS total
                      updating
                    [2] aggregate by (customer_id): sum(orders.amount) in columns, count(*) in columns
                        updating, net; key (customer_id); ttl 1d
                      [1] exchange by (customer_id) ← partial aggregate by (customer_id): sum(orders.amount) in columns, count(*) in columns
                          append-only
                        [0] source "orders": single_file, json, bounded; decodes customer_id, amount, event_time
                            append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn distinct() {
    check(
        "SELECT DISTINCT customer_id FROM orders",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [3] result: customer_id; changes paired by (customer_id)
                updating, net; key (customer_id)
              [2] aggregate by (customer_id)
                  updating, net; key (customer_id); ttl 1d
                [1] exchange by (customer_id) ← partial aggregate by (customer_id)
                    append-only
                  [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                      append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT customer_id FROM orders UNION SELECT url FROM clicks",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [6] result: customer_id; changes paired by (customer_id)
                updating, net; key (customer_id)
              [5] aggregate by (customer_id)
                  updating, net; key (customer_id); ttl 1d
                [4] exchange by (customer_id) ← partial aggregate by (customer_id)
                    append-only
                  [3] union
                      append-only
                    [1] source "orders": single_file, json, bounded; decodes customer_id, event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
                    [2] project: url AS customer_id
                        append-only
                      [0] source "clicks": kafka, json, unbounded; decodes url, at
                          append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT customer_id, count(DISTINCT order_id), count(order_id), max(DISTINCT price) FROM orders GROUP BY customer_id",
        expect![[r#"
        job: flush interval 1s
        notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
        [3] result: customer_id, count(DISTINCT orders.order_id), count(orders.order_id), max(DISTINCT orders.price); changes paired by (customer_id)
            updating, net; key (customer_id)
          [2] aggregate by (customer_id): count(DISTINCT orders.order_id) in multiset, count(orders.order_id) in columns, max(DISTINCT orders.price) in columns
              updating, net; key (customer_id); ttl 1d
            [1] exchange by (customer_id) ← project: customer_id, order_id, price
                append-only
              [0] source "orders": single_file, json, bounded; decodes order_id, customer_id, price, event_time
                  append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn what_is_kept_for_each_function_over_appended_rows() {
    check("SELECT customer_id, min(event_time), max(customer_id), stddev(price), var_pop(price), bool_or(price > 1), array_agg(price ORDER BY event_time), string_agg(url, ', '), first_value(price), median(price), approx_distinct(order_id), corr(price, order_id), max(tags)
           FROM (SELECT *, customer_id AS url FROM orders) GROUP BY customer_id", expect![[r#"
               job: flush interval 1s
               notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
               [5] result: customer_id, min(orders.event_time), max(orders.customer_id), stddev(orders.price), var_pop(orders.price), bool_or(orders.price > Int64(1)), array_agg(orders.price) ORDER BY [orders.event_time ASC NULLS LAST], string_agg(url,Utf8(", ")), first_value(orders.price), median(orders.price), approx_distinct(orders.order_id), corr(orders.price,orders.order_id), max(orders.tags); changes paired by (customer_id)
                   updating, net; key (customer_id)
                 [4] project: customer_id, min(orders.event_time), max(orders.customer_id), stddev(orders.price), var_pop(orders.price), bool_or(orders.price > Int64(1)), array_agg(orders.price) ORDER BY [orders.event_time ASC NULLS LAST], CAST(string_agg(url,Utf8(", ")) AS TEXT) AS "string_agg(url,Utf8(", "))", first_value(orders.price), median(orders.price), approx_distinct(orders.order_id), corr(orders.price,orders.order_id), max(orders.tags)
                     updating, net; key (customer_id)
                   [3] aggregate by (customer_id): min(orders.event_time) in columns, max(orders.customer_id) in columns, stddev(orders.price) in columns, var_pop(orders.price) in columns, bool_or(orders.price > Int64(1)) in columns, array_agg(orders.price) ORDER BY [orders.event_time ASC NULLS LAST] in accumulator, string_agg(url,Utf8(", ")) in accumulator, first_value(orders.price) in accumulator, median(orders.price) in accumulator, approx_distinct(orders.order_id) in accumulator, corr(orders.price,orders.order_id) in accumulator, max(orders.tags) in accumulator
                       updating, net; key (customer_id); ttl 1d
                     [2] exchange by (customer_id) ← partial aggregate by (customer_id): min(orders.event_time) in columns, max(orders.customer_id) in columns, stddev(orders.price) in columns, var_pop(orders.price) in columns, bool_or(orders.price > Int64(1)) in columns, array_agg(orders.price) ORDER BY [orders.event_time ASC NULLS LAST] in accumulator, string_agg(url,Utf8(", ")) in accumulator, first_value(orders.price) in accumulator, median(orders.price) in accumulator, approx_distinct(orders.order_id) in accumulator, corr(orders.price,orders.order_id) in accumulator, max(orders.tags) in accumulator
                         append-only
                       [1] project: customer_id, event_time, price, price > 1 AS "orders.price > Float64(1)", customer_id AS url, ', ' AS "Utf8(", ")", order_id, CAST(order_id AS DOUBLE) AS "orders.order_id", tags
                           append-only; event time event_time
                         [0] source "orders": single_file, json, bounded; decodes order_id, customer_id, price, tags, event_time
                             append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
           "#]]);
}

#[test]
fn what_is_kept_for_each_function_over_a_changelog() {
    check(
        "SELECT owner, count(*), count(DISTINCT balance), sum(balance), avg(balance), min(balance), bool_and(balance > 0), array_agg(balance ORDER BY seen), median(balance), stddev(balance), bit_xor(balance) FROM accounts GROUP BY owner",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (owner) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [5] result: owner, count(*), count(DISTINCT accounts.balance), sum(accounts.balance), avg(accounts.balance), min(accounts.balance), bool_and(accounts.balance > Int64(0)), array_agg(accounts.balance) ORDER BY [accounts.seen ASC NULLS LAST], median(accounts.balance), stddev(accounts.balance), bit_xor(accounts.balance); changes paired by (owner)
                updating, net; key (owner)
              [4] project: owner, count(*), count(DISTINCT accounts.balance), sum(accounts.balance), avg(accounts.balance), min(accounts.balance), bool_and(accounts.balance > Int64(0)), array_agg(accounts.balance) ORDER BY [accounts.seen ASC NULLS LAST], median(accounts.balance), stddev(accounts.balance), bit_xor(accounts.balance)
                  updating, net; key (owner)
                [3] aggregate by (owner): count(*) in columns, count(DISTINCT accounts.balance) in multiset, sum(accounts.balance) in columns, avg(accounts.balance) in columns, min(accounts.balance) in multiset, bool_and(accounts.balance > Int64(0)) in columns, array_agg(accounts.balance) ORDER BY [accounts.seen ASC NULLS LAST] in multiset, median(accounts.balance) in multiset, stddev(accounts.balance) in columns, bit_xor(accounts.balance) in multiset
                    updating, net; key (owner); ttl 1d
                  [2] exchange by (owner) ← project: owner, balance, CAST(balance AS DOUBLE) AS "accounts.balance", balance > 0 AS "accounts.balance > Int64(0)", seen
                      updating; event time seen
                    [1] rows of "accounts": the latest by (id)
                        updating, net; key (id); event time seen; no ttl
                      [0] exchange by (id) ← source "accounts": kafka, debezium_json, unbounded; decodes id, owner, balance, seen
                          records of changes; event time seen; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn a_filter_guards_the_argument_from_rows_that_do_not_count() {
    check(
        "SELECT customer_id, sum(100 / order_id) FILTER (WHERE order_id <> 0) AS s, count(*) FILTER (WHERE price > 5) AS n FROM orders GROUP BY customer_id",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [5] result: customer_id, s, n; changes paired by (customer_id)
                updating, net; key (customer_id)
              [4] project: customer_id, sum(Int64(100) / orders.order_id) FILTER (WHERE orders.order_id != Int64(0)) AS s, count(*) FILTER (WHERE orders.price > Int64(5)) AS n
                  updating, net; key (customer_id)
                [3] aggregate by (customer_id): sum(Int64(100) / orders.order_id) FILTER (WHERE orders.order_id != Int64(0)) filter orders.order_id != Int64(0) in columns, count(*) FILTER (WHERE orders.price > Int64(5)) filter orders.price > Float64(5) in columns
                    updating, net; key (customer_id); ttl 1d
                  [2] exchange by (customer_id) ← partial aggregate by (customer_id): sum(Int64(100) / orders.order_id) FILTER (WHERE orders.order_id != Int64(0)) filter orders.order_id != Int64(0) in columns, count(*) FILTER (WHERE orders.price > Int64(5)) filter orders.price > Float64(5) in columns
                      append-only
                    [1] project: customer_id, CASE WHEN order_id != 0 THEN 100 / order_id END AS "CASE WHEN orders.order_id != Int64(0) THEN Int64(100) / orders.order_id ELSE Int64(NULL) END", order_id != 0 AS "orders.order_id != Int64(0)", price > 5 AS "orders.price > Float64(5)"
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes order_id, customer_id, price, event_time
                          append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn grouping_sets_are_a_union_of_aggregates() {
    check(
        "SELECT customer_id, order_id, grouping(customer_id) AS g, sum(amount) AS total FROM orders GROUP BY ROLLUP (customer_id, order_id)",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id, order_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [15] result: customer_id, order_id, g, total; changes paired by whole rows
                 updating
              [14] exchange by (customer_id, order_id, g, total) ← project: __set_0 AS customer_id, __set_1 AS order_id, CAST((__set_2 & 2) >> 1 AS INT) AS g, __set_3 AS total
                   updating
                [13] union
                     updating
                  [4] project: customer_id AS __set_0, order_id AS __set_1, 0 AS __set_2, sum(orders.amount) AS __set_3
                      updating, net; key (__set_0, __set_1)
                    [3] aggregate by (customer_id, order_id): sum(orders.amount) in columns
                        updating, net; key (customer_id, order_id); ttl 1d
                      [2] exchange by (customer_id, order_id) ← partial aggregate by (customer_id, order_id): sum(orders.amount) in columns
                          append-only
                        [1] project: customer_id, order_id, amount
                            append-only
                          [0] source "orders": single_file, json, bounded; decodes order_id, customer_id, amount, event_time
                              append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
                  [8] project: customer_id AS __set_0, NULL AS __set_1, 1 AS __set_2, sum(orders.amount) AS __set_3
                      updating, net; key (__set_0)
                    [7] aggregate by (customer_id): sum(orders.amount) in columns
                        updating, net; key (customer_id); ttl 1d
                      [6] exchange by (customer_id) ← partial aggregate by (customer_id): sum(orders.amount) in columns
                          append-only
                        [5] project: customer_id, amount
                            append-only
                          [0] source "orders", as above
                  [12] project: NULL AS __set_0, NULL AS __set_1, 3 AS __set_2, sum(orders.amount) AS __set_3
                       updating, net; one row
                    [11] aggregate all rows: sum(orders.amount) in columns
                         updating, net; one row
                      [10] exchange to one subtask ← partial aggregate all rows: sum(orders.amount) in columns
                           append-only
                        [9] project: amount
                            append-only
                          [0] source "orders", as above
        "#]],
    );
}

#[test]
fn grouping_by_all_of_a_key_and_more_keeps_the_key() {
    check(
        "SELECT customer_id, n, count(*) AS c FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id) GROUP BY customer_id, n",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            notice: the row of a group (customer_id, n) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [6] result: customer_id, n, c; changes paired by (customer_id)
                updating, net; key (customer_id)
              [5] exchange by (customer_id) ← project: customer_id, n, count(*) AS c
                  updating, net; key (customer_id)
                [4] aggregate by (customer_id, n): count(*) in columns
                    updating, net; key (customer_id); ttl 1d
                  [3] exchange by (customer_id, n) ← project: customer_id, count(*) AS n
                      updating, net; key (customer_id)
                    [2] aggregate by (customer_id): count(*) in columns
                        updating, net; key (customer_id); ttl 1d
                      [1] exchange by (customer_id) ← partial aggregate by (customer_id): count(*) in columns
                          append-only
                        [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                            append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}
