//! Plans before and after: SQL in, the optimised logical plan out.

use expect_test::{Expect, expect};

use super::rewrite;
use crate::error::Fault;
use crate::event_time::Streams;
use crate::functions::Functions;
use crate::optimize::optimize;
use crate::testing::bind;

fn check(sql: &str, expected: Expect) {
    let bound = bind(sql).map_err(Fault::from_datafusion);
    let planned = bound
        .and_then(|plan| rewrite(plan, &Streams::default()))
        .and_then(|plan| optimize(plan, Functions::get()).map_err(Fault::from_datafusion));
    let text = match planned {
        Ok(plan) => format!("{}\n", plan.display_indent()),
        Err(fault) => format!("{:?}: {fault}\n", fault.kind),
    };
    expected.assert_eq(&text);
}

#[test]
fn a_window_in_group_by_is_named_repeated_and_taken_apart() {
    check(
        "SELECT tumble(interval '10 seconds') AS w, customer, count(*) FROM orders GROUP BY w, customer",
        expect![[r#"
            Projection: named_struct(Utf8("start"), __window_start, Utf8("end"), __window_end) AS w, orders.customer, count(Int64(1)) AS count(*)
              Aggregate: groupBy=[[__window_start, __window_end, orders.customer]], aggr=[[count(Int64(1))]]
                Projection: orders.customer, __window_start, __window_end
                  WindowTvf: tumble 10s
                    TableScan: orders projection=[customer]
        "#]],
    );
    check(
        "SELECT w.start, w['end'], count(*) AS n FROM (SELECT tumble(interval '10 seconds') AS w, count(*) FROM clicks GROUP BY 1) GROUP BY w HAVING w.start > '2024-01-01'",
        expect![[r#"
            Projection: get_field(w, Utf8("start")), get_field(w, Utf8("end")), count(Int64(1)) AS count(*) AS n
              Aggregate: groupBy=[[w, count(*)]], aggr=[[count(Int64(1))]]
                Projection: named_struct(Utf8("start"), __window_start, Utf8("end"), __window_end) AS w, count(Int64(1)) AS count(*)
                  Aggregate: groupBy=[[__window_start, __window_end]], aggr=[[count(Int64(1))]]
                    Filter: __window_start > TimestampNanosecond(1704067200000000000, Some("+00:00"))
                      Projection: __window_start, __window_end
                        WindowTvf: tumble 10s
                          TableScan: clicks projection=[]
        "#]],
    );
    check(
        "SELECT count(*) AS n FROM orders WHERE amount > 3 GROUP BY tumble(interval '10 seconds') HAVING count(*) > 2",
        expect![[r#"
            Projection: count(Int64(1)) AS n
              Filter: count(Int64(1)) > Int64(2)
                Projection: count(Int64(1))
                  Aggregate: groupBy=[[__window_start, __window_end]], aggr=[[count(Int64(1))]]
                    Projection: __window_start, __window_end
                      WindowTvf: tumble 10s
                        Filter: orders.amount > Float64(3)
                          TableScan: orders projection=[amount]
        "#]],
    );
    check(
        "SELECT hop(interval '2 seconds', interval '10 seconds') AS w, sum(amount) FROM (SELECT amount FROM orders) GROUP BY 1",
        expect![[r#"
            Projection: named_struct(Utf8("start"), __window_start, Utf8("end"), __window_end) AS w, sum(orders.amount)
              Aggregate: groupBy=[[__window_start, __window_end]], aggr=[[sum(orders.amount)]]
                Projection: orders.amount, __window_start, __window_end
                  WindowTvf: hop 10s by 2s
                    TableScan: orders projection=[amount]
        "#]],
    );
}

#[test]
fn windows_in_from() {
    check(
        "SELECT window_start, window_end, customer, sum(amount) FROM TUMBLE(orders, DESCRIPTOR(ts), INTERVAL '1 minute') WHERE id > 3 GROUP BY window_start, window_end, customer",
        expect![[r#"
            Aggregate: groupBy=[[window_start, window_end, orders.customer]], aggr=[[sum(orders.amount)]]
              Projection: orders.customer, orders.amount, window_start, window_end
                WindowTvf: tumble 1m
                  Filter: orders.id > Int64(3)
                    TableScan: orders projection=[id, customer, amount]
        "#]],
    );
    check(
        "WITH big AS (SELECT customer AS c, ts AS t FROM orders WHERE amount > 10) SELECT window_end, count(*) FROM HOP((SELECT * FROM big), DESCRIPTOR(t), INTERVAL '1 minute', INTERVAL '5 minutes') AS h (a, b, window_start, window_end, window_time) GROUP BY 1",
        expect![[r#"
            Projection: h.window_end, count(Int64(1)) AS count(*)
              Aggregate: groupBy=[[h.window_end]], aggr=[[count(Int64(1))]]
                SubqueryAlias: h
                  Projection: window_end AS window_end
                    WindowTvf: hop 5m by 1m
                      SubqueryAlias: big
                        Projection:
                          Filter: orders.amount > Float64(10)
                            TableScan: orders projection=[amount]
        "#]],
    );
    check(
        "SELECT * FROM TABLE(TUMBLE(clicks, DESCRIPTOR(at), INTERVAL '1 day')) x WHERE x.window_start < x.at",
        expect![[r#"
        SubqueryAlias: x
          Filter: clicks.at > window_start
            WindowTvf: tumble 1d
              TableScan: clicks projection=[customer, url, at]
    "#]],
    );
}

#[test]
fn refusals() {
    check(
        "SELECT count(*) FROM orders GROUP BY session(interval '0 minutes')",
        expect![[r#"
            InvalidType: the gap of session() must be above zero
        "#]],
    );
    check(
        "SELECT * FROM SESSION(orders, DESCRIPTOR(ts), INTERVAL '1 minute', INTERVAL '2 minutes')",
        expect![[r#"
            Syntax: SESSION takes a table, a descriptor and the gap at 1:15 · hint: write SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '30 seconds')
        "#]],
    );
    check(
        "SELECT count(*) FROM orders GROUP BY tumble(interval '1 month')",
        expect![[r#"
        InvalidType: the width of tumble(): months and years have no exact length; use days or hours · hint: write for example interval '10 seconds'
    "#]],
    );
    check(
        "SELECT tumble(interval '1 minute') FROM orders",
        expect![[r#"
        Grouping: tumble() outside GROUP BY · hint: group by tumble(…); for rows with their windows select from TUMBLE(t, DESCRIPTOR(ts), …)
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(orders, DESCRIPTOR(amount), INTERVAL '1 minute')",
        expect![[r#"
        NotStreamable: column "amount" is not the event time of its table at 1:41 · hint: its event time is "ts": write DESCRIPTOR(ts)
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE((SELECT customer FROM orders), DESCRIPTOR(customer), INTERVAL '1 minute')",
        expect![[r#"
            NotStreamable: column "customer" is not an event time at 1:64 · hint: the event time is the column of WATERMARK FOR, and that of a window's result its window_time: select it, or group by tumble(width), hop(slide, width) or session(gap), which need no column
        "#]],
    );
    check(
        "SELECT * FROM TUMBLE(orders, ts, INTERVAL '1 minute')",
        expect![[r#"
        Syntax: TUMBLE takes DESCRIPTOR(column) as its second argument at 1:15 · hint: write TUMBLE(t, DESCRIPTOR(ts), INTERVAL '10 seconds')
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(orders, DESCRIPTOR(ts))",
        expect![[r#"
        Syntax: TUMBLE takes a table, a descriptor and the width at 1:15 · hint: write TUMBLE(t, DESCRIPTOR(ts), INTERVAL '10 seconds')
    "#]],
    );
    check(
        "SELECT count(*) FROM orders WHERE ts > now() - interval '1 hour'",
        expect![[r#"
        NotStreamable: now() has no fixed value in a query that runs for ever · hint: use the event time of the rows, or a literal such as timestamp '2024-01-01'
    "#]],
    );
    check(
        "SELECT count(*) FROM orders GROUP BY tumble(interval '1 minute'), tumble(interval '2 minutes')",
        expect![[r#"
        Unsupported: GROUP BY has two different windows · hint: group by one window in a subquery and by the other around it
    "#]],
    );
}

#[test]
fn grouping_sets_are_a_union() {
    check(
        "SELECT customer, id, grouping(customer) AS g, sum(amount) FROM orders GROUP BY ROLLUP(customer, id)",
        expect![[r#"
        Projection: __set_0 AS customer, __set_1 AS id, CAST(__set_2 & UInt8(2) >> UInt8(1) AS Int32) AS g, __set_3 AS sum(orders.amount)
          Union
            Projection: orders.customer AS __set_0, orders.id AS __set_1, UInt8(0) AS __set_2, sum(orders.amount) AS __set_3
              Aggregate: groupBy=[[orders.customer, orders.id]], aggr=[[sum(orders.amount)]]
                TableScan: orders projection=[id, customer, amount]
            Projection: orders.customer AS __set_0, Int64(NULL) AS __set_1, UInt8(1) AS __set_2, sum(orders.amount) AS __set_3
              Aggregate: groupBy=[[orders.customer]], aggr=[[sum(orders.amount)]]
                TableScan: orders projection=[customer, amount]
            Projection: Utf8(NULL) AS __set_0, Int64(NULL) AS __set_1, UInt8(3) AS __set_2, sum(orders.amount) AS __set_3
              Aggregate: groupBy=[[]], aggr=[[sum(orders.amount)]]
                TableScan: orders projection=[amount]
    "#]],
    );
    check(
        "SELECT tumble(interval '1 minute') AS w, customer, count(*) FROM orders GROUP BY w, CUBE(customer)",
        expect![[r#"
        Projection: __set_0 AS w, __set_1 AS customer, __set_3 AS count(*)
          Union
            Projection: named_struct(Utf8("start"), __window_start, Utf8("end"), __window_end) AS __set_0, Utf8(NULL) AS __set_1, count(Int64(1)) AS __set_3
              Aggregate: groupBy=[[__window_start, __window_end]], aggr=[[count(Int64(1))]]
                Projection: __window_start, __window_end
                  WindowTvf: tumble 1m
                    TableScan: orders projection=[]
            Projection: named_struct(Utf8("start"), __window_start, Utf8("end"), __window_end) AS __set_0, orders.customer AS __set_1, count(Int64(1)) AS __set_3
              Aggregate: groupBy=[[__window_start, __window_end, orders.customer]], aggr=[[count(Int64(1))]]
                Projection: orders.customer, __window_start, __window_end
                  WindowTvf: tumble 1m
                    TableScan: orders projection=[customer]
    "#]],
    );
}

#[test]
fn unnest_in_select_and_from() {
    check(
        "SELECT id, unnest(tags) AS tag FROM orders",
        expect![[r#"
        Projection: orders.id, __unnest_placeholder(orders.tags,depth=1) AS UNNEST(orders.tags) AS tag
          Unnest: lists[__unnest_placeholder(orders.tags)|depth=1] structs[]
            Projection: orders.id, orders.tags AS __unnest_placeholder(orders.tags)
              TableScan: orders projection=[id, tags]
    "#]],
    );
    check(
        "SELECT id, tag FROM orders CROSS JOIN UNNEST(tags) AS t(tag)",
        expect![[r#"
        Projection: orders.id, __unnest_placeholder(outer_ref(orders.tags),depth=1) AS tag
          Unnest: lists[__unnest_placeholder(outer_ref(orders.tags))|depth=1] structs[]
            Projection: orders.id, orders.tags AS __unnest_placeholder(outer_ref(orders.tags))
              TableScan: orders projection=[id, tags]
    "#]],
    );
    check(
        "SELECT id, tag FROM orders LEFT JOIN UNNEST(tags) AS t(tag) ON true WHERE amount > 1",
        expect![[r#"
        Projection: orders.id, __unnest_placeholder(outer_ref(orders.tags),depth=1) AS tag
          Unnest: lists[__unnest_placeholder(outer_ref(orders.tags))|depth=1] structs[]
            Projection: orders.id, orders.tags AS __unnest_placeholder(outer_ref(orders.tags))
              Filter: orders.amount > Float64(1)
                TableScan: orders projection=[id, amount, tags]
    "#]],
    );
    check(
        "SELECT id, tag FROM orders, UNNEST(orders.tags) AS t(tag)",
        expect![[r#"
        Projection: orders.id, __unnest_placeholder(outer_ref(orders.tags),depth=1) AS tag
          Unnest: lists[__unnest_placeholder(outer_ref(orders.tags))|depth=1] structs[]
            Projection: orders.id, orders.tags AS __unnest_placeholder(outer_ref(orders.tags))
              TableScan: orders projection=[id, tags]
    "#]],
    );
}
