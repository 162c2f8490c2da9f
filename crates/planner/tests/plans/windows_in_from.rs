//! Windows as tables in FROM.

use crate::check;
use expect_test::expect;

#[test]
fn an_aggregate_directly_above_needs_no_assigned_windows() {
    check(
        "SELECT window_start, window_end, customer_id, sum(amount) AS s FROM TUMBLE(orders, DESCRIPTOR(event_time), INTERVAL '1 minute') WHERE order_id > 3 GROUP BY window_start, window_end, customer_id",
        expect![[r#"
        job: flush interval 1s
        [6] result: window_start, window_end, customer_id, s
            append-only; key (window_start, customer_id); window tumble 1m in (window_start, window_end)
          [5] project: window_start, window_end, customer_id, sum(orders.amount) AS s
              append-only; key (window_start, customer_id); window tumble 1m in (window_start, window_end)
            [4] window aggregate: tumble 1m of event time by (customer_id): sum(orders.amount) in columns
                append-only; key (window_start, customer_id); window tumble 1m in (window_start, window_end)
              [3] exchange by (customer_id) ← partial window aggregate: tumble 1m of event time by (customer_id): sum(orders.amount) in columns
                  append-only
                [2] project: customer_id, amount
                    append-only
                  [1] filter: order_id > 3
                      append-only
                    [0] source "orders": single_file, json, bounded; decodes order_id, customer_id, amount, event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT window_end, count(DISTINCT customer_id) FROM HOP(TABLE orders, DESCRIPTOR(event_time), INTERVAL '1 minute', INTERVAL '5 minutes') GROUP BY window_end",
        expect![[r#"
        job: flush interval 1s
        [4] result: window_end, count(DISTINCT orders.customer_id)
            append-only; key (window_end); window hop 5m by 1m in (window_end)
          [3] project: window_end, count(DISTINCT orders.customer_id)
              append-only; key (window_end); window hop 5m by 1m in (window_end)
            [2] window aggregate: hop 5m by 1m of event time: count(DISTINCT orders.customer_id) in accumulator
                append-only; key (window_start); window hop 5m by 1m in (window_start, window_end)
              [1] exchange to one subtask ← partial window aggregate: hop 5m by 1m of event time: count(DISTINCT orders.customer_id) in accumulator
                  append-only
                [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT h.window_start, count(*) FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(at), INTERVAL '1 minute', INTERVAL '90 seconds')) AS h GROUP BY h.window_start",
        expect![[r#"
        job: flush interval 1s
        [4] result: window_start, count(*)
            append-only; key (window_start); window hop 1m 30s by 1m in (window_start)
          [3] project: window_start, count(*)
              append-only; key (window_start); window hop 1m 30s by 1m in (window_start)
            [2] window aggregate: hop 1m 30s by 1m of event time: count(*) in columns
                append-only; key (window_start); window hop 1m 30s by 1m in (window_start, window_end)
              [1] exchange to one subtask ← partial window aggregate: hop 1m 30s by 1m of event time: count(*) in columns
                  append-only
                [0] source "clicks": kafka, json, unbounded; decodes at
                    append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT window_start, count(*) FROM TUMBLE(DATA => TABLE orders, TIMECOL => DESCRIPTOR(event_time), SIZE => INTERVAL '1 minute') GROUP BY 1",
        expect![[r#"
        job: flush interval 1s
        [4] result: window_start, count(*)
            append-only; key (window_start); window tumble 1m in (window_start)
          [3] project: window_start, count(*)
              append-only; key (window_start); window tumble 1m in (window_start)
            [2] window aggregate: tumble 1m of event time: count(*) in columns
                append-only; key (window_start); window tumble 1m in (window_start, window_end)
              [1] exchange to one subtask ← partial window aggregate: tumble 1m of event time: count(*) in columns
                  append-only
                [0] source "orders": single_file, json, bounded; decodes event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn ctes_and_subqueries_as_input() {
    check(
        "WITH big AS (SELECT customer_id AS c, event_time AS t FROM orders WHERE amount > 10) SELECT window_end, c, count(*) FROM TUMBLE(TABLE big, DESCRIPTOR(t), INTERVAL '1 minute') GROUP BY 1, 2",
        expect![[r#"
        job: flush interval 1s
        [6] result: window_end, c, count(*)
            append-only; key (window_end, c); window tumble 1m in (window_end)
          [5] project: window_end, c, count(*)
              append-only; key (window_end, c); window tumble 1m in (window_end)
            [4] window aggregate: tumble 1m of event time by (c): count(*) in columns
                append-only; key (window_start, c); window tumble 1m in (window_start, window_end)
              [3] exchange by (c) ← partial window aggregate: tumble 1m of event time by (c): count(*) in columns
                  append-only
                [2] project: customer_id AS c
                    append-only
                  [1] filter: amount > 10.00
                      append-only
                    [0] source "orders": single_file, json, bounded; decodes customer_id, amount, event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT window_start, count(*) FROM TUMBLE((SELECT * FROM orders WHERE price > 1), DESCRIPTOR(event_time), INTERVAL '1 minute') GROUP BY 1",
        expect![[r#"
        job: flush interval 1s
        [6] result: window_start, count(*)
            append-only; key (window_start); window tumble 1m in (window_start)
          [5] project: window_start, count(*)
              append-only; key (window_start); window tumble 1m in (window_start)
            [4] window aggregate: tumble 1m of event time: count(*) in columns
                append-only; key (window_start); window tumble 1m in (window_start, window_end)
              [3] exchange to one subtask ← partial window aggregate: tumble 1m of event time: count(*) in columns
                  append-only
                [2] project: no columns
                    append-only
                  [1] filter: price > 1
                      append-only
                    [0] source "orders": single_file, json, bounded; decodes price, event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn predicates_on_windows() {
    check(
        "SELECT window_start, window_time, count(*) FROM TUMBLE(orders, DESCRIPTOR(event_time), INTERVAL '1 minute') WHERE window_start > '2024-01-01' AND price > 2 GROUP BY window_start, window_end, window_time",
        expect![[r#"
        job: flush interval 1s
        [7] result: window_start, window_time, count(*)
            append-only; key (window_start); window tumble 1m in (window_start); event time window_time
          [6] project: window_start, window_end - interval '1ns' AS window_time, count(*)
              append-only; key (window_start); window tumble 1m in (window_start); event time window_time
            [5] filter: window_start > timestamp '2024-01-01T00:00:00'
                append-only; key (window_start); window tumble 1m in (window_start, window_end)
              [4] window aggregate: tumble 1m of event time: count(*) in columns
                  append-only; key (window_start); window tumble 1m in (window_start, window_end)
                [3] exchange to one subtask ← partial window aggregate: tumble 1m of event time: count(*) in columns
                    append-only
                  [2] project: no columns
                      append-only
                    [1] filter: price > 2
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes price, event_time
                          append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT window_start, count(*) FROM TUMBLE(orders, DESCRIPTOR(event_time), INTERVAL '1 minute') WHERE event_time - window_start > INTERVAL '30 seconds' GROUP BY window_start",
        expect![[r#"
        job: flush interval 1s
        [8] result: window_start, count(*)
            append-only; key (window_start); window tumble 1m in (window_start)
          [7] project: window_start, count(*)
              append-only; key (window_start); window tumble 1m in (window_start)
            [6] window aggregate: window (window_start, window_end): count(*) in columns
                append-only; key (window_start); window tumble 1m in (window_start, window_end)
              [5] exchange to one subtask ← partial window aggregate: window (window_start, window_end): count(*) in columns
                  append-only
                [4] project: window_start, window_start + interval '1m' AS window_end
                    append-only; window tumble 1m in (window_start)
                  [3] filter: CAST(event_time - window_start AS Interval(MonthDayNano)) > interval '30s'
                      append-only; window tumble 1m in (window_start); event time event_time
                    [2] project: event_time, window_start
                        append-only; window tumble 1m in (window_start); event time event_time
                      [1] assign window: tumble 1m
                          append-only; window tumble 1m in (window_start, window_end); event time event_time
                        [0] source "orders": single_file, json, bounded; decodes event_time
                            append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn rows_with_their_windows() {
    check(
        "SELECT *, event_time - window_start AS since FROM HOP(orders, DESCRIPTOR(event_time), INTERVAL '1 minute', INTERVAL '5 minutes')",
        expect![[r#"
        job: flush interval 1s
        [3] result: order_id, customer_id, amount, price, tags, event_time, window_start, window_end, window_time, since
            append-only; window hop 5m by 1m in (window_start, window_end); event time event_time
          [2] project: order_id, customer_id, amount, price, tags, event_time, window_start, window_end, window_time, CAST(event_time - window_start AS Interval(MonthDayNano)) AS since
              append-only; window hop 5m by 1m in (window_start, window_end); event time event_time
            [1] assign window: hop 5m by 1m
                append-only; window hop 5m by 1m in (window_start, window_end); event time event_time
              [0] source "orders": single_file, json, bounded; decodes order_id, customer_id, amount, price, tags, event_time
                  append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT window_start, max(event_time - window_start) FROM TUMBLE(orders, DESCRIPTOR(event_time), INTERVAL '1 minute') GROUP BY window_start",
        expect![[r#"
        job: flush interval 1s
        [6] result: window_start, max(orders.event_time - window_start)
            append-only; key (window_start); window tumble 1m in (window_start)
          [5] project: window_start, CAST(max(orders.event_time - window_start) AS Interval(MonthDayNano)) AS "max(orders.event_time - window_start)"
              append-only; key (window_start); window tumble 1m in (window_start)
            [4] window aggregate: window (window_start, window_end): max(orders.event_time - window_start) in columns
                append-only; key (window_start); window tumble 1m in (window_start, window_end)
              [3] exchange to one subtask ← partial window aggregate: window (window_start, window_end): max(orders.event_time - window_start) in columns
                  append-only
                [2] project: window_start, window_start + interval '1m' AS window_end, event_time - window_start AS "orders.event_time - window_start"
                    append-only; window tumble 1m in (window_start)
                  [1] assign window: tumble 1m
                      append-only; window tumble 1m in (window_start, window_end); event time event_time
                    [0] source "orders": single_file, json, bounded; decodes event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT customer_id, count(*) FROM TUMBLE(orders, DESCRIPTOR(event_time), INTERVAL '1 minute') GROUP BY customer_id",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [6] result: customer_id, count(*); changes paired by (customer_id)
                updating, net; key (customer_id)
              [5] project: customer_id, count(*)
                  updating, net; key (customer_id)
                [4] aggregate by (customer_id): count(*) in columns
                    updating, net; key (customer_id); ttl 1d
                  [3] exchange by (customer_id) ← partial aggregate by (customer_id): count(*) in columns
                      append-only
                    [2] project: customer_id
                        append-only
                      [1] assign window: tumble 1m
                          append-only; window tumble 1m in (window_start, window_end)
                        [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                            append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT DISTINCT window_start, customer_id FROM TUMBLE(orders, DESCRIPTOR(event_time), INTERVAL '1 minute')",
        expect![[r#"
        job: flush interval 1s
        [4] result: window_start, customer_id
            append-only; key (window_start, customer_id); window tumble 1m in (window_start)
          [3] project: window_start, customer_id
              append-only; key (window_start, customer_id); window tumble 1m in (window_start)
            [2] window aggregate: tumble 1m of event time by (customer_id)
                append-only; key (window_start, customer_id); window tumble 1m in (window_start, window_end)
              [1] exchange by (customer_id) ← partial window aggregate: tumble 1m of event time by (customer_id)
                  append-only
                [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn windows_of_windows_by_window_time() {
    check("WITH minutes AS (SELECT window_start AS s, window_time AS t, count(*) AS n FROM TUMBLE(orders, DESCRIPTOR(event_time), INTERVAL '1 minute') GROUP BY window_start, window_time)
           SELECT window_end, sum(n) FROM TUMBLE(TABLE minutes, DESCRIPTOR(t), INTERVAL '1 hour') GROUP BY window_end", expect![[r#"
               job: flush interval 1s
               [7] result: window_end, sum(minutes.n)
                   append-only; key (window_end); window tumble 1h in (window_end)
                 [6] project: window_end, sum(minutes.n)
                     append-only; key (window_end); window tumble 1h in (window_end)
                   [5] window aggregate: tumble 1h of event time: sum(minutes.n) in columns
                       append-only; key (window_start); window tumble 1h in (window_start, window_end)
                     [4] exchange to one subtask ← partial window aggregate: tumble 1h of event time: sum(minutes.n) in columns
                         append-only
                       [3] project: count(*) AS n
                           append-only
                         [2] window aggregate: tumble 1m of event time: count(*) in columns
                             append-only; key (window_start); window tumble 1m in (window_start, window_end)
                           [1] exchange to one subtask ← partial window aggregate: tumble 1m of event time: count(*) in columns
                               append-only
                             [0] source "orders": single_file, json, bounded; decodes event_time
                                 append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
           "#]]);
}
