//! Sessions: which aggregates are one, what is known of them, and what is refused.

use crate::check;
use expect_test::expect;

#[test]
fn sessions_by_the_other_keys_of_group_by() {
    check(
        "SELECT session(interval '30 minutes') AS w, customer_id, sum(amount) AS s FROM orders WHERE amount > 0 GROUP BY w, customer_id",
        expect![[r#"
            job: flush interval 1s
            [4] result: w, customer_id, s
                append-only; key (w, customer_id); window session 30m in (w)
              [3] project: {start: window_start, end: window_end} AS w, customer_id, sum(orders.amount) AS s
                  append-only; key (w, customer_id); window session 30m in (w)
                [2] window aggregate: session 30m of event time by (customer_id): sum(orders.amount) in columns
                    append-only; key (window_start, customer_id); window session 30m in (window_start, window_end)
                  [1] exchange by (customer_id) ← filter: amount > 0.00
                      append-only
                    [0] source "orders": single_file, json, bounded; decodes customer_id, amount, event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT count(*) AS n FROM orders GROUP BY session(interval '30 minutes')",
        expect![[r#"
            job: flush interval 1s
            [3] result: n
                append-only
              [2] project: count(*) AS n
                  append-only
                [1] window aggregate: session 30m of event time: count(*) in columns
                    append-only; key (window_start); window session 30m in (window_start, window_end)
                  [0] exchange to one subtask ← source "orders": single_file, json, bounded; decodes event_time
                      append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn conditions_on_keys_go_below_and_those_on_bounds_stay_above() {
    check(
        "SELECT * FROM (SELECT session(interval '30 minutes') AS w, customer_id, count(*) AS n FROM orders GROUP BY w, customer_id) WHERE customer_id = 'c1' AND w.start > TIMESTAMP '2024-01-01 00:00:00' AND n > 1",
        expect![[r#"
            job: flush interval 1s
            [7] result: w, customer_id, n
                append-only; key (w, customer_id); window session 30m in (w)
              [6] project: {start: __window_start, end: __window_end} AS w, customer_id, count(*) AS n
                  append-only; key (w, customer_id); window session 30m in (w)
                [5] filter: count(*) > 1
                    append-only; key (__window_start, customer_id); window session 30m in (__window_start, __window_end)
                  [4] project: window_start AS __window_start, window_end AS __window_end, customer_id, count(*)
                      append-only; key (__window_start, customer_id); window session 30m in (__window_start, __window_end)
                    [3] filter: window_start > timestamp '2024-01-01T00:00:00'
                        append-only; key (window_start, customer_id); window session 30m in (window_start, window_end)
                      [2] window aggregate: session 30m of event time by (customer_id): count(*) in columns
                          append-only; key (window_start, customer_id); window session 30m in (window_start, window_end)
                        [1] exchange by (customer_id) ← filter: customer_id = 'c1'
                            append-only
                          [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                              append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT window_end, customer_id, count(*) FROM SESSION(TABLE orders PARTITION BY customer_id, DESCRIPTOR(event_time), INTERVAL '30 minutes') WHERE customer_id <> 'c2' AND window_end > TIMESTAMP '2024-01-01 00:00:00' GROUP BY window_end, customer_id",
        expect![[r#"
            job: flush interval 1s
            [5] result: window_end, customer_id, count(*)
                append-only; key (window_end, customer_id); window session 30m in (window_end)
              [4] project: window_end, customer_id, count(*)
                  append-only; key (window_end, customer_id); window session 30m in (window_end)
                [3] filter: window_end > timestamp '2024-01-01T00:00:00'
                    append-only; key (window_start, customer_id); window session 30m in (window_start, window_end)
                  [2] window aggregate: session 30m of event time by (customer_id): count(*) in columns
                      append-only; key (window_start, customer_id); window session 30m in (window_start, window_end)
                    [1] exchange by (customer_id) ← filter: customer_id != 'c2'
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                          append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn windows_over_sessions() {
    check(
        "SELECT tumble(interval '1 day') AS d, count(*) FROM (SELECT session(interval '30 minutes') AS w, customer_id FROM orders GROUP BY w, customer_id) GROUP BY d",
        expect![[r#"
            job: flush interval 1s
            [6] result: d, count(*)
                append-only; key (d); window tumble 1d in (d)
              [5] project: {start: window_start, end: window_end} AS d, count(*)
                  append-only; key (d); window tumble 1d in (d)
                [4] window aggregate: tumble 1d of event time: count(*) in columns
                    append-only; key (window_start); window tumble 1d in (window_start, window_end)
                  [3] exchange to one subtask ← partial window aggregate: tumble 1d of event time: count(*) in columns
                      append-only
                    [2] project: no columns
                        append-only
                      [1] window aggregate: session 30m of event time by (customer_id)
                          append-only; key (window_start, customer_id); window session 30m in (window_start, window_end)
                        [0] exchange by (customer_id) ← source "orders": single_file, json, bounded; decodes customer_id, event_time
                            append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT w.end, count(*) FROM (SELECT session(interval '30 minutes') AS w, customer_id FROM orders GROUP BY w, customer_id) GROUP BY w.end",
        expect![[r#"
            job: flush interval 1s
            [6] result: w[end], count(*)
                append-only; key (w[end]); window session 30m in (w[end])
              [5] project: window_end AS "w[end]", count(*)
                  append-only; key (w[end]); window session 30m in (w[end])
                [4] window aggregate: window (window_start, window_end): count(*) in columns
                    append-only; key (window_start); window session 30m in (window_start, window_end)
                  [3] exchange to one subtask ← partial window aggregate: window (window_start, window_start): count(*) in columns
                      append-only
                    [2] project: window_end AS window_start
                        append-only; window session 30m in (window_start)
                      [1] window aggregate: session 30m of event time by (customer_id)
                          append-only; key (window_start, customer_id); window session 30m in (window_start, window_end)
                        [0] exchange by (customer_id) ← source "orders": single_file, json, bounded; decodes customer_id, event_time
                            append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT w.start, count(*) FROM (SELECT session(interval '30 minutes') AS w, customer_id FROM orders GROUP BY w, customer_id) GROUP BY w.start",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (w[start]) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [6] result: w[start], count(*); changes paired by (w[start])
                updating, net; key (w[start])
              [5] project: w[start], count(*)
                  updating, net; key (w[start])
                [4] aggregate by (w[start]): count(*) in columns
                    updating, net; key (w[start]); ttl 1d
                  [3] exchange by (w[start]) ← partial aggregate by (w[start]): count(*) in columns
                      append-only
                    [2] project: window_start AS "w[start]"
                        append-only
                      [1] window aggregate: session 30m of event time by (customer_id)
                          append-only; key (window_start, customer_id); window session 30m in (window_start, window_end)
                        [0] exchange by (customer_id) ← source "orders": single_file, json, bounded; decodes customer_id, event_time
                            append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn refusals() {
    check(
        "SELECT * FROM SESSION(orders, DESCRIPTOR(event_time), INTERVAL '1 minute')",
        expect![[r#"
            NotStreamable: a row's session is known only when it has closed, and then there is its result alone at 1:42 · hint: group by session(gap), or by window_start, window_end and the PARTITION BY columns directly above SESSION(…); compute with its bounds in a query around that
        "#]],
    );
    check(
        "SELECT window_start, max(event_time - window_start) FROM SESSION(orders, DESCRIPTOR(event_time), INTERVAL '1 minute') GROUP BY window_start",
        expect![[r#"
            NotStreamable: a row's session is known only when it has closed, and then there is its result alone at 1:85 · hint: group by session(gap), or by window_start, window_end and the PARTITION BY columns directly above SESSION(…); compute with its bounds in a query around that
        "#]],
    );
    check(
        "SELECT window_start, customer_id, count(*) FROM SESSION(orders, DESCRIPTOR(event_time), INTERVAL '1 minute') GROUP BY 1, 2",
        expect![[r#"
            NotStreamable: sessions grouped by customer_id, by which they are not told apart at 1:76 · hint: write SESSION(TABLE t PARTITION BY …) with the columns of GROUP BY, or group by session(gap)
        "#]],
    );
    check(
        "SELECT window_start, count(*) FROM SESSION(TABLE orders PARTITION BY customer_id, DESCRIPTOR(event_time), INTERVAL '1 minute') GROUP BY 1",
        expect![[r#"
            NotStreamable: the sessions of each customer_id are not grouped by it at 1:94 · hint: add customer_id to GROUP BY, and bring sessions together in a query around that
        "#]],
    );
    check(
        "SELECT window_start, count(*) FROM SESSION(orders, DESCRIPTOR(event_time), INTERVAL '1 minute') WHERE amount > 1 GROUP BY 1",
        expect![[r#"
            NotStreamable: a condition on amount would take rows out of sessions that they hold together at 1:63 · hint: select the rows in a view or CTE and give that to SESSION, or count with FILTER (WHERE …)
        "#]],
    );
    check(
        "SELECT session(interval '1 minute'), count(*) FROM (SELECT customer_id, event_time, count(*) FROM orders GROUP BY customer_id, event_time) GROUP BY 1",
        expect![[r#"
            NotStreamable: a session window over an updating result: a row taken back could split a session at 1:1 · hint: make sessions of the rows that come in, or group by tumble(width) or hop(slide, width)
        "#]],
    );
    check(
        "SELECT customer_id, count(*) FROM SESSION(TABLE orders PARTITION BY customer_id, DESCRIPTOR(event_time), INTERVAL '1 minute') GROUP BY customer_id",
        expect![[r#"
            NotStreamable: a row's session is known only when it has closed, and then there is its result alone at 1:93 · hint: group by session(gap), or by window_start, window_end and the PARTITION BY columns directly above SESSION(…); compute with its bounds in a query around that
        "#]],
    );
    check(
        "SELECT * FROM TUMBLE(TABLE orders PARTITION BY customer_id, DESCRIPTOR(event_time), INTERVAL '1 minute')",
        expect![[r#"
            Syntax: TUMBLE takes no PARTITION BY: its windows are the same for all rows at 1:15 · hint: write TUMBLE(t, DESCRIPTOR(ts), INTERVAL '10 seconds')
        "#]],
    );
    check(
        "SELECT * FROM SESSION(TABLE orders PARTITION BY customer_id, amount, DESCRIPTOR(event_time), INTERVAL '1 minute')",
        expect![[r#"
            Syntax: SESSION takes DESCRIPTOR(column) as its second argument at 1:15 · hint: write SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '30 seconds')
        "#]],
    );
}
