//! Windows as functions in GROUP BY.

use crate::check;
use expect_test::expect;

#[test]
fn by_alias_by_ordinal_and_repeated() {
    check(
        "SELECT tumble(interval '10 seconds') AS w, customer_id, count(*) AS n FROM orders GROUP BY w, customer_id",
        expect![[r#"
        job: flush interval 1s
        [4] result: w, customer_id, n
            append-only; key (w, customer_id); window tumble 10s in (w)
          [3] project: {start: window_start, end: window_end} AS w, customer_id, count(*) AS n
              append-only; key (w, customer_id); window tumble 10s in (w)
            [2] window aggregate: tumble 10s of event time by (customer_id): count(*) in columns
                append-only; key (window_start, customer_id); window tumble 10s in (window_start, window_end)
              [1] exchange by (customer_id) ← partial window aggregate: tumble 10s of event time by (customer_id): count(*) in columns
                  append-only
                [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT hop(interval '2 seconds', interval '10 seconds'), sum(price) FROM orders GROUP BY 1",
        expect![[r#"
        job: flush interval 1s
        [4] result: hop(2s, 10s), sum(orders.price)
            append-only; key (hop(2s, 10s)); window hop 10s by 2s in (hop(2s, 10s))
          [3] project: {start: window_start, end: window_end} AS "hop(2s, 10s)", sum(orders.price)
              append-only; key (hop(2s, 10s)); window hop 10s by 2s in (hop(2s, 10s))
            [2] window aggregate: hop 10s by 2s of event time: sum(orders.price) in columns
                append-only; key (window_start); window hop 10s by 2s in (window_start, window_end)
              [1] exchange to one subtask ← partial window aggregate: hop 10s by 2s of event time: sum(orders.price) in columns
                  append-only
                [0] source "orders": single_file, json, bounded; decodes price, event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT tumble(interval '1 minute'), max(price) FROM orders GROUP BY tumble(interval '1 minute')",
        expect![[r#"
        job: flush interval 1s
        [4] result: tumble(1m), max(orders.price)
            append-only; key (tumble(1m)); window tumble 1m in (tumble(1m))
          [3] project: {start: window_start, end: window_end} AS "tumble(1m)", max(orders.price)
              append-only; key (tumble(1m)); window tumble 1m in (tumble(1m))
            [2] window aggregate: tumble 1m of event time: max(orders.price) in columns
                append-only; key (window_start); window tumble 1m in (window_start, window_end)
              [1] exchange to one subtask ← partial window aggregate: tumble 1m of event time: max(orders.price) in columns
                  append-only
                [0] source "orders": single_file, json, bounded; decodes price, event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT count(*) AS n FROM orders WHERE price > 3 GROUP BY tumble(interval '10 seconds') HAVING count(*) > 2",
        expect![[r#"
        job: flush interval 1s
        [8] result: n
            append-only
          [7] project: count(*) AS n
              append-only
            [6] filter: count(*) > 2
                append-only
              [5] project: count(*)
                  append-only
                [4] window aggregate: tumble 10s of event time: count(*) in columns
                    append-only; key (window_start); window tumble 10s in (window_start, window_end)
                  [3] exchange to one subtask ← partial window aggregate: tumble 10s of event time: count(*) in columns
                      append-only
                    [2] project: no columns
                        append-only
                      [1] filter: price > 3
                          append-only
                        [0] source "orders": single_file, json, bounded; decodes price, event_time
                            append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn the_struct_is_taken_apart() {
    check(
        "SELECT w.start, w['end'] AS e, (w).end AS f, m FROM (SELECT hop(interval '2 seconds', interval '10 seconds') AS w, max(price) AS m FROM orders GROUP BY 1) WHERE m > 3 AND w.start > '2024-01-01'",
        expect![[r#"
        job: flush interval 1s
        [7] result: w[start], e, f, m
            append-only; key (w[start]); window hop 10s by 2s in (w[start], e)
          [6] project: __window_start AS "w[start]", __window_end AS e, __window_end AS f, max(orders.price) AS m
              append-only; key (w[start]); window hop 10s by 2s in (w[start], e)
            [5] filter: max(orders.price) > 3
                append-only; key (__window_start); window hop 10s by 2s in (__window_start, __window_end)
              [4] project: window_start AS __window_start, window_end AS __window_end, max(orders.price)
                  append-only; key (__window_start); window hop 10s by 2s in (__window_start, __window_end)
                [3] filter: window_start > timestamp '2024-01-01T00:00:00'
                    append-only; key (window_start); window hop 10s by 2s in (window_start, window_end)
                  [2] window aggregate: hop 10s by 2s of event time: max(orders.price) in columns
                      append-only; key (window_start); window hop 10s by 2s in (window_start, window_end)
                    [1] exchange to one subtask ← partial window aggregate: hop 10s by 2s of event time: max(orders.price) in columns
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes price, event_time
                          append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT tumble(interval '1 day').start AS day, count(*) FROM orders GROUP BY tumble(interval '1 day')",
        expect![[r#"
        job: flush interval 1s
        [4] result: day, count(*)
            append-only; key (day); window tumble 1d in (day)
          [3] project: window_start AS day, count(*)
              append-only; key (day); window tumble 1d in (day)
            [2] window aggregate: tumble 1d of event time: count(*) in columns
                append-only; key (window_start); window tumble 1d in (window_start, window_end)
              [1] exchange to one subtask ← partial window aggregate: tumble 1d of event time: count(*) in columns
                  append-only
                [0] source "orders": single_file, json, bounded; decodes event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT tumble(interval '1 day').start AS day, count(*) FROM orders GROUP BY 1",
        expect![[r#"
            job: flush interval 1s
            [4] result: day, count(*)
                append-only; key (day); window tumble 1d in (day)
              [3] project: window_start AS day, count(*)
                  append-only; key (day); window tumble 1d in (day)
                [2] window aggregate: tumble 1d of event time: count(*) in columns
                    append-only; key (window_start); window tumble 1d in (window_start, window_end)
                  [1] exchange to one subtask ← partial window aggregate: tumble 1d of event time: count(*) in columns
                      append-only
                    [0] source "orders": single_file, json, bounded; decodes event_time
                        append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn a_window_takes_the_time_zone_of_the_event_time() {
    check(
        "SELECT tumble(interval '1 day') AS w, count(*) AS n FROM clicks GROUP BY w HAVING tumble(interval '1 day').end > '2024-01-01T00:00:00Z'",
        expect![[r#"
        job: flush interval 1s
        [5] result: w, n
            append-only; key (w); window tumble 1d in (w)
          [4] project: {start: window_start, end: window_end} AS w, count(*) AS n
              append-only; key (w); window tumble 1d in (w)
            [3] filter: window_end > timestamp '2024-01-01T00:00:00Z'
                append-only; key (window_start); window tumble 1d in (window_start, window_end)
              [2] window aggregate: tumble 1d of event time: count(*) in columns
                  append-only; key (window_start); window tumble 1d in (window_start, window_end)
                [1] exchange to one subtask ← partial window aggregate: tumble 1d of event time: count(*) in columns
                    append-only
                  [0] source "clicks": kafka, json, unbounded; decodes at
                      append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn the_event_time_need_not_be_selected() {
    check(
        "SELECT tumble(interval '1 hour') AS w, count(*) FROM (SELECT user_id FROM clicks UNION ALL SELECT order_id FROM orders) GROUP BY w",
        expect![[r#"
        job: flush interval 1s
        [6] result: w, count(*)
            append-only; key (w); window tumble 1h in (w)
          [5] project: {start: window_start, end: window_end} AS w, count(*)
              append-only; key (w); window tumble 1h in (w)
            [4] window aggregate: tumble 1h of event time: count(*) in columns
                append-only; key (window_start); window tumble 1h in (window_start, window_end)
              [3] exchange to one subtask ← partial window aggregate: tumble 1h of event time: count(*) in columns
                  append-only
                [2] union
                    append-only
                  [0] source "clicks": kafka, json, unbounded; decodes at
                      append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
                  [1] source "orders": single_file, json, bounded; decodes event_time
                      append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT tumble(interval '1 second') AS w, count(*) FROM ticks GROUP BY w",
        expect![[r#"
        job: flush interval 1s
        [4] result: w, count(*)
            append-only; key (w); window tumble 1s in (w)
          [3] project: {start: window_start, end: window_end} AS w, count(*)
              append-only; key (w); window tumble 1s in (w)
            [2] window aggregate: tumble 1s of event time: count(*) in columns
                append-only; key (window_start); window tumble 1s in (window_start, window_end)
              [1] exchange to one subtask ← partial window aggregate: tumble 1s of event time: count(*) in columns
                  append-only
                [0] source "ticks": impulse, unbounded; decodes nothing
                    append-only; event time from the connector; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn windows_of_windows() {
    check(
        "SELECT tumble(interval '1 minute') AS m, max(n) FROM (SELECT tumble(interval '10 seconds') AS w, url, count(*) AS n FROM clicks GROUP BY w, url) GROUP BY m",
        expect![[r#"
        job: flush interval 1s
        [7] result: m, max(n)
            append-only; key (m); window tumble 1m in (m)
          [6] project: {start: window_start, end: window_end} AS m, max(n)
              append-only; key (m); window tumble 1m in (m)
            [5] window aggregate: tumble 1m of event time: max(n) in columns
                append-only; key (window_start); window tumble 1m in (window_start, window_end)
              [4] exchange to one subtask ← partial window aggregate: tumble 1m of event time: max(n) in columns
                  append-only
                [3] project: count(*) AS n
                    append-only
                  [2] window aggregate: tumble 10s of event time by (url): count(*) in columns
                      append-only; key (window_start, url); window tumble 10s in (window_start, window_end)
                    [1] exchange by (url) ← partial window aggregate: tumble 10s of event time by (url): count(*) in columns
                        append-only
                      [0] source "clicks": kafka, json, unbounded; decodes url, at
                          append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn the_same_window_again() {
    check(
        "SELECT w, max(n) FROM (SELECT tumble(interval '10 seconds') AS w, customer_id, count(*) AS n FROM orders GROUP BY w, customer_id) GROUP BY w",
        expect![[r#"
        job: flush interval 1s
        [7] result: w, max(n)
            append-only; key (w); window tumble 10s in (w)
          [6] project: {start: window_start, end: window_end} AS w, max(n)
              append-only; key (w); window tumble 10s in (w)
            [5] window aggregate: window (window_start, window_end): max(n) in columns
                append-only; key (window_start); window tumble 10s in (window_start, window_end)
              [4] exchange to one subtask ← partial window aggregate: window (window_start, window_end): max(n) in columns
                  append-only
                [3] project: window_start, window_end, count(*) AS n
                    append-only; window tumble 10s in (window_start, window_end)
                  [2] window aggregate: tumble 10s of event time by (customer_id): count(*) in columns
                      append-only; key (window_start, customer_id); window tumble 10s in (window_start, window_end)
                    [1] exchange by (customer_id) ← partial window aggregate: tumble 10s of event time by (customer_id): count(*) in columns
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                          append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT s, e, count(*) FROM (SELECT w.start AS s, w.end AS e, n FROM (SELECT tumble(interval '10 seconds') AS w, customer_id, count(*) AS n FROM orders GROUP BY w, customer_id)) GROUP BY s, e",
        expect![[r#"
        job: flush interval 1s
        [7] result: s, e, count(*)
            append-only; key (s); window tumble 10s in (s, e)
          [6] project: window_start AS s, window_end AS e, count(*)
              append-only; key (s); window tumble 10s in (s, e)
            [5] window aggregate: window (window_start, window_end): count(*) in columns
                append-only; key (window_start); window tumble 10s in (window_start, window_end)
              [4] exchange to one subtask ← partial window aggregate: window (window_start, window_end): count(*) in columns
                  append-only
                [3] project: window_start, window_end
                    append-only; window tumble 10s in (window_start, window_end)
                  [2] window aggregate: tumble 10s of event time by (customer_id)
                      append-only; key (window_start, customer_id); window tumble 10s in (window_start, window_end)
                    [1] exchange by (customer_id) ← partial window aggregate: tumble 10s of event time by (customer_id)
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                          append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT DISTINCT w FROM (SELECT tumble(interval '10 seconds') AS w, customer_id FROM orders GROUP BY w, customer_id)",
        expect![[r#"
        job: flush interval 1s
        [7] result: w
            append-only; key (w); window tumble 10s in (w)
          [6] project: {start: window_start, end: window_end} AS w
              append-only; key (w); window tumble 10s in (w)
            [5] window aggregate: window (window_start, window_end)
                append-only; key (window_start); window tumble 10s in (window_start, window_end)
              [4] exchange to one subtask ← partial window aggregate: window (window_start, window_end)
                  append-only
                [3] project: window_start, window_end
                    append-only; window tumble 10s in (window_start, window_end)
                  [2] window aggregate: tumble 10s of event time by (customer_id)
                      append-only; key (window_start, customer_id); window tumble 10s in (window_start, window_end)
                    [1] exchange by (customer_id) ← partial window aggregate: tumble 10s of event time by (customer_id)
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                          append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn a_window_survives_a_change_of_time_zone() {
    check(
        "SELECT w, sum(n) FROM (SELECT tumble(interval '1 minute') AS w, count(*) AS n FROM orders GROUP BY w UNION ALL SELECT tumble(interval '1 minute') AS w, count(*) AS n FROM clicks GROUP BY w) GROUP BY w",
        expect![[r#"
        job: flush interval 1s
        [13] result: w, sum(n)
             append-only; key (w); window tumble 1m in (w)
          [12] project: {start: window_start, end: window_end} AS w, sum(n)
               append-only; key (w); window tumble 1m in (w)
            [11] window aggregate: window (window_start, window_end): sum(n) in columns
                 append-only; key (window_start); window tumble 1m in (window_start, window_end)
              [10] exchange to one subtask ← partial window aggregate: window (window_start, window_end): sum(n) in columns
                   append-only
                [9] project: w.start AS window_start, w.end AS window_end, n
                    append-only; window tumble 1m in (window_start, window_end)
                  [8] union
                      append-only; window tumble 1m in (w)
                    [4] project: CAST({start: window_start, end: window_end} AS Struct("start": Timestamp(ns, "+00:00"), "end": Timestamp(ns, "+00:00"))) AS w, count(*) AS n
                        append-only; key (w); window tumble 1m in (w)
                      [3] window aggregate: tumble 1m of event time: count(*) in columns
                          append-only; key (window_start); window tumble 1m in (window_start, window_end)
                        [2] exchange to one subtask ← partial window aggregate: tumble 1m of event time: count(*) in columns
                            append-only
                          [1] source "orders": single_file, json, bounded; decodes event_time
                              append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
                    [7] project: {start: window_start, end: window_end} AS w, count(*) AS n
                        append-only; key (w); window tumble 1m in (w)
                      [6] window aggregate: tumble 1m of event time: count(*) in columns
                          append-only; key (window_start); window tumble 1m in (window_start, window_end)
                        [5] exchange to one subtask ← partial window aggregate: tumble 1m of event time: count(*) in columns
                            append-only
                          [0] source "clicks": kafka, json, unbounded; decodes at
                              append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn an_updating_result_above_windows() {
    check(
        "SELECT customer_id, max(n) FROM (SELECT tumble(interval '10 seconds') AS w, customer_id, count(*) AS n FROM orders GROUP BY w, customer_id) GROUP BY customer_id",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [6] result: customer_id, max(n); changes paired by (customer_id)
                updating, net; key (customer_id)
              [5] aggregate by (customer_id): max(n) in columns
                  updating, net; key (customer_id); ttl 1d
                [4] exchange by (customer_id) ← partial aggregate by (customer_id): max(n) in columns
                    append-only
                  [3] project: customer_id, count(*) AS n
                      append-only
                    [2] window aggregate: tumble 10s of event time by (customer_id): count(*) in columns
                        append-only; key (window_start, customer_id); window tumble 10s in (window_start, window_end)
                      [1] exchange by (customer_id) ← partial window aggregate: tumble 10s of event time by (customer_id): count(*) in columns
                          append-only
                        [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                            append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn a_window_over_a_changelog_takes_retractions_by_the_time_in_the_row() {
    check(
        "SELECT tumble(interval '1 day') AS d, count(*), min(balance) FROM accounts GROUP BY d",
        expect![[r#"
            job: flush interval 1s
            [5] result: d, count(*), min(accounts.balance)
                append-only; key (d); window tumble 1d in (d)
              [4] project: {start: window_start, end: window_end} AS d, count(*), min(accounts.balance)
                  append-only; key (d); window tumble 1d in (d)
                [3] window aggregate: tumble 1d of event time: count(*) in columns, min(accounts.balance) in multiset
                    append-only; key (window_start); window tumble 1d in (window_start, window_end)
                  [2] exchange to one subtask ← project: balance
                      updating
                    [1] rows of "accounts": the latest by (id)
                        updating, net; key (id); event time seen; no ttl
                      [0] exchange by (id) ← source "accounts": kafka, debezium_json, unbounded; decodes id, balance, seen
                          records of changes; event time seen; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT tumble(interval '1 day') AS d, count(*) FROM (SELECT DISTINCT customer_id, event_time FROM orders) GROUP BY d",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id, event_time) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [6] result: d, count(*)
                append-only; key (d); window tumble 1d in (d)
              [5] project: {start: window_start, end: window_end} AS d, count(*)
                  append-only; key (d); window tumble 1d in (d)
                [4] window aggregate: tumble 1d of event time: count(*) in columns
                    append-only; key (window_start); window tumble 1d in (window_start, window_end)
                  [3] exchange to one subtask ← project: no columns
                      updating
                    [2] aggregate by (customer_id, event_time)
                        updating, net; key (customer_id, event_time); event time event_time; ttl 1d
                      [1] exchange by (customer_id, event_time) ← partial aggregate by (customer_id, event_time)
                          append-only
                        [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                            append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        "SELECT tumble(interval '1 day') AS d, count(*) FROM (SELECT DISTINCT customer_id FROM orders) GROUP BY d",
        expect![[r#"
        NotStreamable: a window over an updating result whose event time is not a column of the row at 1:1 · hint: a retracted row must fall into the window that it was counted in: keep the event time among the columns and GROUP BY keys below, or use the window there
    "#]],
    );
}

#[test]
fn grouping_sets_with_a_window() {
    check(
        "SELECT tumble(interval '1 minute') AS w, customer_id, count(*) FROM orders GROUP BY w, CUBE (customer_id)",
        expect![[r#"
        job: flush interval 1s
        [10] result: w, customer_id, count(*)
             append-only; window tumble 1m in (w)
          [9] project: __set_0 AS w, __set_1 AS customer_id, __set_3 AS "count(*)"
              append-only; window tumble 1m in (w)
            [8] union
                append-only; window tumble 1m in (__set_0)
              [4] project: {start: window_start, end: window_end} AS __set_0, NULL AS __set_1, count(*) AS __set_3
                  append-only; key (__set_0); window tumble 1m in (__set_0)
                [3] window aggregate: tumble 1m of event time: count(*) in columns
                    append-only; key (window_start); window tumble 1m in (window_start, window_end)
                  [2] exchange to one subtask ← partial window aggregate: tumble 1m of event time: count(*) in columns
                      append-only
                    [1] project: no columns
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes customer_id, event_time
                          append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
              [7] project: {start: window_start, end: window_end} AS __set_0, customer_id AS __set_1, count(*) AS __set_3
                  append-only; key (__set_0, __set_1); window tumble 1m in (__set_0)
                [6] window aggregate: tumble 1m of event time by (customer_id): count(*) in columns
                    append-only; key (window_start, customer_id); window tumble 1m in (window_start, window_end)
                  [5] exchange by (customer_id) ← partial window aggregate: tumble 1m of event time by (customer_id): count(*) in columns
                      append-only
                    [0] source "orders", as above
    "#]],
    );
}
