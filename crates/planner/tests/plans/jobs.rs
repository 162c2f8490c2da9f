//! Several queries: shared sources, streams between queries, settings.

use crate::check;
use expect_test::expect;

#[test]
fn queries_over_one_source_are_one_job_and_read_it_once() {
    check(
        "SELECT order_id FROM orders; SELECT customer_id, sum(amount) FROM orders GROUP BY customer_id; SELECT url FROM clicks",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [5] result: order_id
                append-only
              [1] project: order_id
                  append-only
                [0] source "orders": single_file, json, bounded; decodes order_id, customer_id, amount, event_time
                    append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
            [6] result: customer_id, sum(orders.amount); changes paired by (customer_id)
                updating, net; key (customer_id)
              [4] aggregate by (customer_id): sum(orders.amount) in columns
                  updating, net; key (customer_id); ttl 1d
                [3] exchange by (customer_id) ← partial aggregate by (customer_id): sum(orders.amount) in columns
                    append-only
                  [2] project: customer_id, amount
                      append-only
                    [0] source "orders", as above

            job: flush interval 1s
            [1] result: url
                append-only
              [0] source "clicks": kafka, json, unbounded; decodes url, at
                  append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn what_queries_have_in_common_is_computed_once() {
    check("CREATE VIEW totals AS SELECT customer_id, sum(amount) AS total FROM orders GROUP BY customer_id;
           SELECT customer_id, total FROM totals WHERE total > 100;
           SELECT total, count(*) FROM totals GROUP BY total", expect![[r#"
               job: flush interval 1s
               notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
               notice: the row of a group (total) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
               [8] result: customer_id, total; changes paired by (customer_id)
                   updating, net; key (customer_id)
                 [4] project: customer_id, sum(orders.amount) AS total
                     updating, net; key (customer_id)
                   [3] filter: sum(orders.amount) > 100.00
                       updating, net; key (customer_id)
                     [2] aggregate by (customer_id): sum(orders.amount) in columns
                         updating, net; key (customer_id); ttl 1d
                       [1] exchange by (customer_id) ← partial aggregate by (customer_id): sum(orders.amount) in columns
                           append-only
                         [0] source "orders": single_file, json, bounded; decodes customer_id, amount, event_time
                             append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
               [9] result: total, count(*); changes paired by (total)
                   updating, net; key (total)
                 [7] project: total, count(*)
                     updating, net; key (total)
                   [6] aggregate by (total): count(*) in columns
                       updating, net; key (total); ttl 1d
                     [5] exchange by (total) ← project: sum(orders.amount) AS total
                         updating
                       [2] aggregate, as above
           "#]]);
    check(
        "WITH n AS (SELECT tumble(interval '1 minute') AS w, url, count(*) AS n FROM clicks GROUP BY w, url) SELECT w, url, n FROM n WHERE n > 5 UNION ALL SELECT w, url, n FROM n WHERE n < 2",
        expect![[r#"
        job: flush interval 1s
        [9] result: w, url, n
            append-only; window tumble 1m in (w)
          [8] union
              append-only; window tumble 1m in (w)
            [5] project: {start: __window_start, end: __window_end} AS w, url, count(*) AS n
                append-only; key (w, url); window tumble 1m in (w)
              [4] filter: count(*) > 5
                  append-only; key (__window_start, url); window tumble 1m in (__window_start, __window_end)
                [3] project: window_start AS __window_start, window_end AS __window_end, url, count(*)
                    append-only; key (__window_start, url); window tumble 1m in (__window_start, __window_end)
                  [2] window aggregate: tumble 1m of event time by (url): count(*) in columns
                      append-only; key (window_start, url); window tumble 1m in (window_start, window_end)
                    [1] exchange by (url) ← partial window aggregate: tumble 1m of event time by (url): count(*) in columns
                        append-only
                      [0] source "clicks": kafka, json, unbounded; decodes url, at
                          append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
            [7] project: {start: __window_start, end: __window_end} AS w, url, count(*) AS n
                append-only; key (w, url); window tumble 1m in (w)
              [6] filter: count(*) < 2
                  append-only; key (__window_start, url); window tumble 1m in (__window_start, __window_end)
                [3] project, as above
    "#]],
    );
    check(
        "SELECT random() AS r FROM ticks UNION ALL SELECT random() AS r FROM ticks",
        expect![[r#"
        job: flush interval 1s
        [4] result: r
            append-only
          [3] union
              append-only
            [1] project: random() AS r
                append-only
              [0] source "ticks": impulse, unbounded; decodes nothing
                  append-only; event time from the connector; watermark 1s behind; idle after 5m; bad data fails
            [2] project: random() AS r
                append-only
              [0] source "ticks", as above
    "#]],
    );
}

#[test]
fn a_common_aggregate_with_another_ttl_is_another() {
    check(
        "SELECT url, count(*) FROM clicks GROUP BY url; SET updating_ttl = '1 hour'; SELECT url, count(*) FROM clicks GROUP BY url",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (url) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            notice: the row of a group (url) leaves the result when no row of the group has come for 1h of event time; SET updating_ttl = '0' before the query keeps it for ever
            [7] result: url, count(*); changes paired by (url)
                updating, net; key (url)
              [3] project: url, count(*)
                  updating, net; key (url)
                [2] aggregate by (url): count(*) in columns
                    updating, net; key (url); ttl 1d
                  [1] exchange by (url) ← partial aggregate by (url): count(*) in columns
                      append-only
                    [0] source "clicks": kafka, json, unbounded; decodes url, at
                        append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
            [8] result: url, count(*); changes paired by (url)
                updating, net; key (url)
              [6] project: url, count(*)
                  updating, net; key (url)
                [5] aggregate by (url): count(*) in columns
                    updating, net; key (url); ttl 1h
                  [4] exchange by (url) ← partial aggregate by (url): count(*) in columns
                      append-only
                    [0] source "clicks", as above
        "#]],
    );
}

#[test]
fn an_intermediate_stream_is_filled_once_and_read_by_many() {
    check("CREATE TABLE big (c TEXT, amount DOUBLE PRECISION, at TIMESTAMP);
           SELECT window_start, c, count(*) FROM TUMBLE(big, DESCRIPTOR(at), INTERVAL '1 minute') GROUP BY window_start, c;
           INSERT INTO big SELECT customer_id, amount, event_time FROM orders WHERE amount > 100;
           SELECT c, sum(amount) FROM big GROUP BY c", expect![[r#"
               job: flush interval 1s
               notice: the row of a group (c) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
               [10] result: window_start, c, count(*)
                    append-only; key (window_start, c); window tumble 1m in (window_start)
                 [6] project: window_start, c, count(*)
                     append-only; key (window_start, c); window tumble 1m in (window_start)
                   [5] window aggregate: tumble 1m of event time by (c): count(*) in columns
                       append-only; key (window_start, c); window tumble 1m in (window_start, window_end)
                     [4] exchange by (c) ← partial window aggregate: tumble 1m of event time by (c): count(*) in columns
                         append-only
                       [3] project: c
                           append-only
                         [2] project: customer_id AS c, CAST(amount AS DOUBLE) AS amount, event_time AS at
                             append-only; event time at
                           [1] filter: amount > 100.00
                               append-only; event time event_time
                             [0] source "orders": single_file, json, bounded; decodes customer_id, amount, event_time
                                 append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
               [11] result: c, sum(big.amount); changes paired by (c)
                    updating, net; key (c)
                 [9] aggregate by (c): sum(big.amount) in columns
                     updating, net; key (c); ttl 1d
                   [8] exchange by (c) ← partial aggregate by (c): sum(big.amount) in columns
                       append-only
                     [7] project: c, amount
                         append-only
                       [2] project, as above
           "#]]);
}

#[test]
fn a_stream_carries_a_changelog() {
    check(
        "CREATE TABLE totals (c TEXT, n BIGINT);
           INSERT INTO totals SELECT customer_id, count(*) FROM orders GROUP BY customer_id;
           SELECT n, count(*) FROM totals GROUP BY n",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer_id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            notice: the row of a group (n) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [7] result: n, count(*); changes paired by (n)
                updating, net; key (n)
              [6] project: n, count(*)
                  updating, net; key (n)
                [5] aggregate by (n): count(*) in columns
                    updating, net; key (n); ttl 1d
                  [4] exchange by (n) ← project: n
                      updating
                    [3] project: customer_id AS c, count(*) AS n
                        updating, net; key (c)
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
fn streams_that_do_not_hang_together() {
    check(
        "CREATE TABLE s (a BIGINT); SELECT a FROM s",
        expect![[r#"
        NotStreamable: nothing fills the intermediate stream "s" at 1:28 · hint: INSERT INTO s in the same script, or give the table a connector
    "#]],
    );
    check(
        "CREATE TABLE s (a BIGINT); INSERT INTO s SELECT order_id FROM orders; INSERT INTO s SELECT user_id FROM clicks",
        expect![[r#"
        NotStreamable: nothing reads the intermediate stream "s" at 1:28 · hint: give the table a connector to keep what is written, or read it in the same script
        NotStreamable: intermediate stream "s" is filled at 1:28 already at 1:71 · hint: fill it by one INSERT with UNION ALL, or give the table a connector
    "#]],
    );
    check(
        "CREATE TABLE s (a BIGINT); CREATE TABLE t (a BIGINT); INSERT INTO s SELECT a FROM t; INSERT INTO t SELECT a FROM s",
        expect![[r#"
        NotStreamable: intermediate streams "s", "t" feed each other at 1:55
    "#]],
    );
    check(
        "CREATE TABLE s (a BIGINT, at TIMESTAMP); INSERT INTO s SELECT order_id, event_time + INTERVAL '1 day' FROM orders; SELECT count(*) FROM TUMBLE(s, DESCRIPTOR(at), INTERVAL '1 day') GROUP BY window_start",
        expect![[r#"
            NotStreamable: column "at" is not an event time at 1:158 · hint: the event time is the column of WATERMARK FOR, and that of a window's result its window_time: select it, or group by tumble(width), hop(slide, width) or session(gap), which need no column
        "#]],
    );
}

#[test]
fn rejected_records_go_to_the_sink_of_their_table() {
    check("CREATE TABLE rejected (raw BYTEA, reason TEXT, \"offset\" BIGINT) WITH (connector = 'stdout');
           CREATE TABLE readings (id BIGINT, value DOUBLE PRECISION) WITH (connector = 'kafka', topic = 'r', bad_data = 'dead_letter', dead_letter = 'rejected');
           SELECT id FROM readings WHERE value > 1;
           INSERT INTO rejected SELECT CAST(NULL AS BYTEA), 'made up', user_id FROM clicks", expect![[r#"
               job: flush interval 1s
               [7] sink "rejected": stdout, json; at least once; raw, reason, offset
                   append-only
                 [6] union
                     append-only
                   [1] project: raw, reason, offset
                       append-only
                     [0] rejected records ← source "readings": kafka, json, unbounded; decodes id, value
                         append-only; event time from the connector; watermark 1s behind; idle after 5m; bad data goes to "rejected"
                   [5] project: NULL AS raw, 'made up' AS reason, user_id AS offset
                       append-only
                     [2] source "clicks": kafka, json, unbounded; decodes user_id, at
                         append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
               [8] result: id
                   append-only
                 [4] project: id
                     append-only
                   [3] filter: value > 1
                       append-only
                     [0] source "readings", as above
           "#]]);
}

#[test]
fn the_smallest_flush_interval_of_a_job_holds() {
    check("SET pipeline.update_aggregate_flush_interval = '10 seconds'; SELECT count(*) FROM orders;
           SET pipeline.update_aggregate_flush_interval = '2 seconds'; SET pipeline.parallelism = 4; SELECT sum(price) FROM orders;
           SET pipeline.update_aggregate_flush_interval = '0'; SELECT count(*) FROM ticks", expect![[r#"
               job: flush interval 2s; parallelism 4
               [7] result: count(*); changes paired: one row
                   updating, net; one row
                 [4] project: count(*)
                     updating, net; one row
                   [3] aggregate all rows: count(*) in columns
                       updating, net; one row
                     [2] exchange to one subtask ← partial aggregate all rows: count(*) in columns
                         append-only
                       [1] project: no columns
                           append-only
                         [0] source "orders": single_file, json, bounded; decodes price, event_time
                             append-only; event time event_time; watermark 5s behind; idle after 5m; bad data fails
               [8] result: sum(orders.price); changes paired: one row
                   updating, net; one row
                 [6] aggregate all rows: sum(orders.price) in columns
                     updating, net; one row
                   [5] exchange to one subtask ← partial aggregate all rows: sum(orders.price) in columns
                       append-only
                     [0] source "orders", as above

               job: flush interval 0s; parallelism 1
               notice: flush interval 0: every row is an epoch of its own, at parallelism 1; meant for teaching and debugging
               [4] result: count(*); changes paired: one row
                   updating, net; one row
                 [3] project: count(*)
                     updating, net; one row
                   [2] aggregate all rows: count(*) in columns
                       updating, net; one row
                     [1] exchange to one subtask ← partial aggregate all rows: count(*) in columns
                         append-only
                       [0] source "ticks": impulse, unbounded; decodes nothing
                           append-only; event time from the connector; watermark 1s behind; idle after 5m; bad data fails
           "#]]);
}
