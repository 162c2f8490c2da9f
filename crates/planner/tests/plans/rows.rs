//! Queries that take rows one by one.

use crate::check;
use expect_test::expect;

#[test]
fn filters_and_projections_decode_only_what_they_need() {
    check(
        "SELECT order_id + 1 AS next, upper(customer_id) AS name FROM orders WHERE price > 10 AND NOT customer_id LIKE 'x%'",
        expect![[r#"
        job: flush interval 1s
        [3] result: next, name
            append-only
          [2] project: order_id + 1 AS next, upper(customer_id) AS name
              append-only
            [1] filter: price > 10 AND customer_id NOT LIKE 'x%'
                append-only
              [0] source "orders": single_file, json, bounded; decodes order_id, customer_id, price, event_time
                  append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT * FROM clicks",
        expect![[r#"
        job: flush interval 1s
        [1] result: user_id, url, at
            append-only; event time at
          [0] source "clicks": kafka, json, unbounded; decodes user_id, url, at
              append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT CASE WHEN amount IS NULL THEN 'none' WHEN amount IN (1, 2) THEN 'few' ELSE 'many' END AS a, -(price + 1) * 2 AS b FROM orders",
        expect![[r#"
        job: flush interval 1s
        [2] result: a, b
            append-only
          [1] project: CASE WHEN amount IS NULL THEN 'none' WHEN amount = 1.00 OR amount = 2.00 THEN 'few' ELSE 'many' END AS a, -(price + 1) * 2 AS b
              append-only
            [0] source "orders": single_file, json, bounded; decodes amount, price, event_time
                append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT 1 AS one FROM ticks",
        expect![[r#"
        job: flush interval 1s
        [2] result: one
            append-only
          [1] project: 1 AS one
              append-only
            [0] source "ticks": impulse, unbounded; decodes nothing
                append-only; event time from the connector; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn a_volatile_function_is_sound_where_rows_are_appended() {
    check(
        "SELECT order_id, random() AS r FROM orders",
        expect![[r#"
        job: flush interval 1s
        [2] result: order_id, r
            append-only
          [1] project: order_id, random() AS r
              append-only
            [0] source "orders": single_file, json, bounded; decodes order_id, event_time
                append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn unions_share_their_source() {
    check(
        "SELECT order_id FROM orders UNION ALL SELECT user_id FROM clicks UNION ALL SELECT order_id + 1 FROM orders WHERE price > 1",
        expect![[r#"
        job: flush interval 1s
        [7] result: order_id
            append-only
          [6] union
              append-only
            [2] project: order_id
                append-only
              [1] source "orders": single_file, json, bounded; decodes order_id, price, event_time
                  append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
            [3] project: user_id AS order_id
                append-only
              [0] source "clicks": kafka, json, unbounded; decodes user_id, at
                  append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
            [5] project: order_id + 1 AS order_id
                append-only
              [4] filter: price > 1
                  append-only
                [1] source "orders", as above
    "#]],
    );
}

#[test]
fn constants() {
    check(
        "SELECT 1 AS a, 'it''s' AS b",
        expect![[r#"
        job: flush interval 1s
        [2] result: a, b
            append-only
          [1] project: 1 AS a, 'it''s' AS b
              append-only
            [0] values: 1 rows
                append-only
    "#]],
    );
    check(
        "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS v(n, s) WHERE n > 1",
        expect![[r#"
        job: flush interval 1s
        [3] result: n, s
            append-only
          [2] project: column1 AS n, column2 AS s
              append-only
            [1] filter: column1 > 1
                append-only
              [0] values: 2 rows
                  append-only
    "#]],
    );
    check(
        "SELECT order_id FROM orders WHERE false",
        expect![[r#"
        job: flush interval 1s
        [1] result: order_id
            append-only
          [0] values: 0 rows
              append-only
    "#]],
    );
}

#[test]
fn lists_are_taken_apart() {
    check(
        "SELECT order_id, unnest(tags) AS tag FROM orders",
        expect![[r#"
        job: flush interval 1s
        [4] result: order_id, tag
            append-only
          [3] project: order_id, __unnest_placeholder(orders.tags,depth=1) AS tag
              append-only
            [2] unnest: __unnest_placeholder(orders.tags)
                append-only
              [1] project: order_id, tags AS "__unnest_placeholder(orders.tags)"
                  append-only
                [0] source "orders": single_file, json, bounded; decodes order_id, tags, event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT order_id, tag FROM orders, UNNEST(tags) AS t(tag) WHERE tag <> 'x'",
        expect![[r#"
        job: flush interval 1s
        [5] result: order_id, tag
            append-only
          [4] project: order_id, __unnest_placeholder(outer_ref(orders.tags),depth=1) AS tag
              append-only
            [3] filter: __unnest_placeholder(outer_ref(orders.tags),depth=1) != 'x'
                append-only
              [2] unnest: __unnest_placeholder(outer_ref(orders.tags))
                  append-only
                [1] project: order_id, tags AS "__unnest_placeholder(outer_ref(orders.tags))"
                    append-only
                  [0] source "orders": single_file, json, bounded; decodes order_id, tags, event_time
                      append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT order_id, tag FROM orders LEFT JOIN UNNEST(tags) AS t(tag) ON true",
        expect![[r#"
        job: flush interval 1s
        [4] result: order_id, tag
            append-only
          [3] project: order_id, __unnest_placeholder(outer_ref(orders.tags),depth=1) AS tag
              append-only
            [2] unnest: __unnest_placeholder(outer_ref(orders.tags)); rows without elements stay
                append-only
              [1] project: order_id, tags AS "__unnest_placeholder(outer_ref(orders.tags))"
                  append-only
                [0] source "orders": single_file, json, bounded; decodes order_id, tags, event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT unnest([1, 2, 3]) AS n",
        expect![[r#"
        job: flush interval 1s
        [4] result: n
            append-only
          [3] project: __unnest_placeholder(make_array(Int64(1),Int64(2),Int64(3)),depth=1) AS n
              append-only
            [2] unnest: __unnest_placeholder(make_array(Int64(1),Int64(2),Int64(3)))
                append-only
              [1] project: [1, 2, 3] AS "__unnest_placeholder(make_array(Int64(1),Int64(2),Int64(3)))"
                  append-only
                [0] values: 1 rows
                    append-only
    "#]],
    );
}

#[test]
fn subqueries_ctes_and_views() {
    check("CREATE VIEW big AS SELECT customer_id AS c, amount FROM orders WHERE amount > 100;
           WITH named AS (SELECT c, amount * 2 AS twice FROM big) SELECT n.c, n.twice FROM (SELECT * FROM named) AS n WHERE n.twice < 1000", expect![[r#"
               job: flush interval 1s
               [3] result: c, twice
                   append-only
                 [2] project: customer_id AS c, amount * 2 AS twice
                     append-only
                   [1] filter: amount > 100.00 AND amount * 2 < 1000.00
                       append-only
                     [0] source "orders": single_file, json, bounded; decodes customer_id, amount, event_time
                         append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
           "#]]);
}
