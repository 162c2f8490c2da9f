//! Graphs in their own words: SQL in, EXPLAIN out. Each graph is also checked for consistency.

use expect_test::{Expect, expect};
use thalweg_dataflow::plan::{Exchange, Graph, Op, Phase};

use super::{Lowered, Tables, lower};
use crate::bind::BoundQuery;
use crate::error::{Fault, FaultKind};
use crate::explain::explain_job;
use crate::testing;

fn lowered(queries: Vec<BoundQuery>) -> Result<Lowered, Vec<Fault>> {
    let sink = |name: &str| Err(Fault::new(FaultKind::UndefinedTable, name));
    lower(
        queries,
        Tables {
            source: &testing::source,
            sink: &sink,
        },
    )
}

fn check(sql: &[&str], expected: Expect) {
    let bound: Result<Vec<_>, _> = sql
        .iter()
        .enumerate()
        .map(|(i, sql)| testing::query(i, sql))
        .collect();
    let text = match bound
        .map_err(|e| vec![Fault::from_datafusion(e)])
        .and_then(lowered)
    {
        Ok(lowered) => {
            lowered.jobs.iter().for_each(|job| check_graph(&job.graph));
            lowered
                .jobs
                .iter()
                .map(explain_job)
                .collect::<Vec<_>>()
                .join("\n")
        }
        Err(faults) => faults
            .iter()
            .map(|f| format!("{:?}: {f}\n", f.kind))
            .collect(),
    };
    expected.assert_eq(&text);
}

/// What every graph must fulfil: positions within bounds, expressions of the types that schemas promise.
fn check_graph(graph: &Graph) {
    for node in &graph.nodes {
        let inputs: Vec<_> = node
            .inputs
            .iter()
            .map(|i| &graph.node(i.node).schema)
            .collect();
        for (edge, schema) in node.inputs.iter().zip(&inputs) {
            if let Exchange::Hash(key) = &edge.exchange {
                assert!(!key.is_empty() && key.iter().all(|&k| k < schema.fields().len()));
            }
        }
        match &node.op {
            Op::Project(exprs) => {
                assert_eq!(exprs.len(), node.schema.fields().len());
                for (expr, field) in exprs.iter().zip(node.schema.fields()) {
                    assert_eq!(
                        &expr.data_type(inputs[0]).unwrap(),
                        field.data_type(),
                        "{expr}"
                    );
                }
            }
            Op::Union => inputs
                .iter()
                .for_each(|input| assert_eq!(input.fields(), node.schema.fields())),
            Op::Sink(spec) => {
                assert_eq!(inputs[0].fields(), spec.schema.fields());
            }
            Op::Aggregate(aggregate) => {
                let keys = aggregate
                    .keys
                    .iter()
                    .map(|&k| inputs[0].field(k).data_type().clone());
                let calls = aggregate
                    .calls
                    .iter()
                    .map(|c| c.function.field().data_type().clone());
                let types: Vec<_> = node
                    .schema
                    .fields()
                    .iter()
                    .map(|f| f.data_type().clone())
                    .collect();
                assert_eq!(keys.chain(calls).collect::<Vec<_>>(), types);
            }
            Op::WindowAggregate(aggregate) => {
                let keys = aggregate
                    .keys
                    .iter()
                    .map(|&k| inputs[0].field(k).data_type().clone());
                let types: Vec<_> = node
                    .schema
                    .fields()
                    .iter()
                    .skip(2)
                    .map(|f| f.data_type().clone())
                    .collect();
                let calls = aggregate
                    .calls
                    .iter()
                    .map(|c| c.function.field().data_type().clone());
                match aggregate.phase {
                    Phase::Partial => {
                        assert_eq!(keys.collect::<Vec<_>>(), types[..types.len() - 1])
                    }
                    _ => assert_eq!(keys.chain(calls).collect::<Vec<_>>(), types),
                }
            }
            _ => {}
        }
        let n = node.schema.fields().len();
        let known = node
            .properties
            .key
            .iter()
            .flatten()
            .chain(&node.properties.time_column);
        assert!(known.copied().all(|c| c < n));
    }
}

#[test]
fn rows_pass_through() {
    check(
        &["SELECT id + 1 AS next, upper(customer) FROM orders WHERE amount > 10"],
        expect![[r#"
        job: flush interval 1s
        [3] result: next, upper(orders.customer)
            append-only
          [2] project: id + 1 AS next, upper(customer) AS "upper(orders.customer)"
              append-only
            [1] filter: amount > 10
                append-only
              [0] source "orders": single_file, json, bounded; decodes id, customer, amount, ts
                  append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        &["SELECT * FROM orders"],
        expect![[r#"
        job: flush interval 1s
        [1] result: id, customer, amount, tags, ts
            append-only; event time ts
          [0] source "orders": single_file, json, bounded; decodes id, customer, amount, tags, ts
              append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        &["SELECT id, random() AS r FROM orders"],
        expect![[r#"
        job: flush interval 1s
        [2] result: id, r
            append-only
          [1] project: id, random() AS r
              append-only
            [0] source "orders": single_file, json, bounded; decodes id, ts
                append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        &["SELECT id FROM orders UNION ALL SELECT id + 1 FROM orders WHERE amount > 1"],
        expect![[r#"
        job: flush interval 1s
        [5] result: id
            append-only
          [4] union
              append-only
            [1] project: id
                append-only
              [0] source "orders": single_file, json, bounded; decodes id, amount, ts
                  append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
            [3] project: id + 1 AS id
                append-only
              [2] filter: amount > 1
                  append-only
                [0] source "orders", as above
    "#]],
    );
    check(
        &["SELECT 1 AS a, 'x' AS b", "VALUES (1, 'a'), (2, NULL)"],
        expect![[r#"
            job: flush interval 1s
            [2] result: a, b
                append-only
              [1] project: 1 AS a, 'x' AS b
                  append-only
                [0] values: 1 rows
                    append-only

            job: flush interval 1s
            [1] result: column1, column2
                append-only
              [0] values: 2 rows
                  append-only
        "#]],
    );
    check(
        &[
            "SELECT id, unnest(tags) AS tag FROM orders",
            "SELECT id, tag FROM orders LEFT JOIN UNNEST(tags) AS t(tag) ON true",
        ],
        expect![[r#"
        job: flush interval 1s
        [7] result: id, tag
            append-only
          [3] project: id, __unnest_placeholder(orders.tags,depth=1) AS tag
              append-only
            [2] unnest: __unnest_placeholder(orders.tags)
                append-only
              [1] project: id, tags AS "__unnest_placeholder(orders.tags)"
                  append-only
                [0] source "orders": single_file, json, bounded; decodes id, tags, ts
                    append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        [8] result: id, tag
            append-only
          [6] project: id, __unnest_placeholder(outer_ref(orders.tags),depth=1) AS tag
              append-only
            [5] unnest: __unnest_placeholder(outer_ref(orders.tags)); rows without elements stay
                append-only
              [4] project: id, tags AS "__unnest_placeholder(outer_ref(orders.tags))"
                  append-only
                [0] source "orders", as above
    "#]],
    );
}

#[test]
fn updating_aggregates() {
    check(
        &["SELECT customer, sum(amount) AS total, count(*) AS n FROM orders GROUP BY customer"],
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [3] result: customer, total, n; changes paired by (customer)
                updating, net; key (customer)
              [2] project: customer, sum(orders.amount) AS total, count(*) AS n
                  updating, net; key (customer)
                [1] aggregate by (customer): sum(orders.amount) in columns, count(*) in columns
                    updating, net; key (customer); ttl 1d
                  [0] exchange by (customer) ← source "orders": single_file, json, bounded; decodes customer, amount, ts
                      append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &["SELECT count(*) AS rows FROM orders HAVING count(*) < 500"],
        expect![[r#"
            job: flush interval 1s
            [4] result: rows; changes paired: one row
                updating, net; one row
              [3] project: count(*) AS rows
                  updating, net; one row
                [2] filter: count(*) < 500
                    updating, net; one row
                  [1] aggregate all rows: count(*) in columns
                      updating, net; one row
                    [0] exchange to one subtask ← source "orders": single_file, json, bounded; decodes ts
                        append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT customer, max(total) FROM (SELECT customer, id, sum(amount) AS total FROM orders GROUP BY customer, id) GROUP BY customer",
        ],
        expect![[r#"
        job: flush interval 1s
        notice: the row of a group (customer, id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
        notice: the row of a group (customer) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
        [5] result: customer, max(total); changes paired by (customer)
            updating, net; key (customer)
          [4] aggregate by (customer): max(total) in multiset
              updating, net; key (customer); ttl 1d
            [3] exchange by (customer) ← project: customer, sum(orders.amount) AS total
                updating
              [2] aggregate by (customer, id): sum(orders.amount) in columns
                  updating, net; key (customer, id); ttl 1d
                [1] exchange by (customer, id) ← project: customer, id, amount
                    append-only
                  [0] source "orders": single_file, json, bounded; decodes id, customer, amount, ts
                      append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        &["SELECT DISTINCT customer FROM orders"],
        expect![[r#"
        job: flush interval 1s
        notice: the row of a group (customer) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
        [2] result: customer; changes paired by (customer)
            updating, net; key (customer)
          [1] aggregate by (customer)
              updating, net; key (customer); ttl 1d
            [0] exchange by (customer) ← source "orders": single_file, json, bounded; decodes customer, ts
                append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        &[
            "SELECT customer, count(DISTINCT id), min(ts), array_agg(amount ORDER BY ts), sum(amount / id) FILTER (WHERE id <> 0), string_agg(customer, ','), stddev(amount), bool_or(id > 1), first_value(id), approx_distinct(id) FROM orders GROUP BY customer",
        ],
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [3] result: customer, count(DISTINCT orders.id), min(orders.ts), array_agg(orders.amount) ORDER BY [orders.ts ASC NULLS LAST], sum(orders.amount / orders.id) FILTER (WHERE orders.id != Int64(0)), string_agg(orders.customer,Utf8(",")), stddev(orders.amount), bool_or(orders.id > Int64(1)), first_value(orders.id), approx_distinct(orders.id); changes paired by (customer)
                updating, net; key (customer)
              [2] aggregate by (customer): count(DISTINCT orders.id) in multiset, min(orders.ts) in columns, array_agg(orders.amount) ORDER BY [orders.ts ASC NULLS LAST] in accumulator, sum(orders.amount / orders.id) FILTER (WHERE orders.id != Int64(0)) filter orders.id != Int64(0) in columns, string_agg(orders.customer,Utf8(",")) in accumulator, stddev(orders.amount) in columns, bool_or(orders.id > Int64(1)) in columns, first_value(orders.id) in accumulator, approx_distinct(orders.id) in accumulator
                  updating, net; key (customer); ttl 1d
                [1] exchange by (customer) ← project: customer, id, ts, amount, CASE WHEN id != 0 THEN amount / CAST(id AS DOUBLE) END AS "CASE WHEN orders.id != Int64(0) THEN orders.amount / orders.id ELSE Float64(NULL) END", id != 0 AS "orders.id != Int64(0)", ',' AS "Utf8(",")", id > 1 AS "orders.id > Int64(1)"
                    append-only; event time ts
                  [0] source "orders": single_file, json, bounded; decodes id, customer, amount, ts
                      append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT approx_distinct(n) FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer)",
        ],
        expect![[r#"
        NotStreamable: approx_distinct() over an updating result: a sketch cannot take a row back · hint: use count(DISTINCT x), which is exact and takes retractions
    "#]],
    );
    check(
        &[
            "SELECT n, random() AS r FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer)",
        ],
        expect![[r#"
        NotStreamable: random() over an updating result: a retracted row would get another value than it was inserted with · hint: compute it below the aggregate, where rows are only appended
    "#]],
    );
    check(
        &[
            "SELECT customer, id, sum(amount) FROM orders GROUP BY GROUPING SETS ((customer), (id), ())",
        ],
        expect![[r#"
        job: flush interval 1s
        notice: the row of a group (customer) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
        notice: the row of a group (id) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
        [12] result: customer, id, sum(orders.amount); changes paired by whole rows
             updating
          [11] exchange by (customer, id, sum(orders.amount)) ← project: __set_0 AS customer, __set_1 AS id, __set_3 AS "sum(orders.amount)"
               updating
            [10] union
                 updating
              [3] project: customer AS __set_0, NULL AS __set_1, sum(orders.amount) AS __set_3
                  updating, net; key (__set_0)
                [2] aggregate by (customer): sum(orders.amount) in columns
                    updating, net; key (customer); ttl 1d
                  [1] exchange by (customer) ← project: customer, amount
                      append-only
                    [0] source "orders": single_file, json, bounded; decodes id, customer, amount, ts
                        append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
              [6] project: NULL AS __set_0, id AS __set_1, sum(orders.amount) AS __set_3
                  updating, net; key (__set_1)
                [5] aggregate by (id): sum(orders.amount) in columns
                    updating, net; key (id); ttl 1d
                  [4] exchange by (id) ← project: id, amount
                      append-only
                    [0] source "orders", as above
              [9] project: NULL AS __set_0, NULL AS __set_1, sum(orders.amount) AS __set_3
                  updating, net; one row
                [8] aggregate all rows: sum(orders.amount) in columns
                    updating, net; one row
                  [7] exchange to one subtask ← project: amount
                      append-only
                    [0] source "orders", as above
    "#]],
    );
}

#[test]
fn windows() {
    check(
        &[
            "SELECT tumble(interval '10 seconds') AS w, customer, count(*) AS n FROM orders GROUP BY w, customer",
        ],
        expect![[r#"
            job: flush interval 1s
            [4] result: w, customer, n
                append-only; key (w, customer); window tumble 10s in (w)
              [3] project: {start: window_start, end: window_end} AS w, customer, count(*) AS n
                  append-only; key (w, customer); window tumble 10s in (w)
                [2] window aggregate: tumble 10s of event time by (customer): count(*) in columns
                    append-only; key (window_start, customer); window tumble 10s in (window_start, window_end)
                  [1] exchange by (customer) ← partial window aggregate: tumble 10s of event time by (customer): count(*) in columns
                      append-only; window tumble 10s in (window_start, window_end)
                    [0] source "orders": single_file, json, bounded; decodes customer, ts
                        append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT w.start, w['end'], m FROM (SELECT hop(interval '2 seconds', interval '10 seconds') AS w, max(amount) AS m FROM orders GROUP BY 1) WHERE m > 3 AND w.start > '2024-01-01'",
        ],
        expect![[r#"
            job: flush interval 1s
            [7] result: w[start], w[end], m
                append-only; key (w[start]); window hop 10s by 2s in (w[start], w[end])
              [6] project: __window_start AS "w[start]", __window_end AS "w[end]", max(orders.amount) AS m
                  append-only; key (w[start]); window hop 10s by 2s in (w[start], w[end])
                [5] filter: max(orders.amount) > 3
                    append-only; key (__window_start); window hop 10s by 2s in (__window_start, __window_end)
                  [4] project: window_start AS __window_start, window_end AS __window_end, max(orders.amount)
                      append-only; key (__window_start); window hop 10s by 2s in (__window_start, __window_end)
                    [3] filter: window_start > timestamp '2024-01-01T00:00:00'
                        append-only; key (window_start); window hop 10s by 2s in (window_start, window_end)
                      [2] window aggregate: hop 10s by 2s of event time: max(orders.amount) in columns
                          append-only; key (window_start); window hop 10s by 2s in (window_start, window_end)
                        [1] exchange to one subtask ← partial window aggregate: hop 10s by 2s of event time: max(orders.amount) in columns
                            append-only; window hop 10s by 2s in (window_start, window_end)
                          [0] source "orders": single_file, json, bounded; decodes amount, ts
                              append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT window_start, window_time, customer, count(DISTINCT id), sum(amount) FROM TUMBLE(orders, DESCRIPTOR(ts), INTERVAL '1 minute') WHERE id > 3 AND window_start > '2024-01-01' GROUP BY window_start, window_end, window_time, customer",
        ],
        expect![[r#"
            job: flush interval 1s
            [7] result: window_start, window_time, customer, count(DISTINCT orders.id), sum(orders.amount)
                append-only; key (window_start, customer); window tumble 1m in (window_start); event time window_time
              [6] project: window_start, window_end - interval '1ns' AS window_time, customer, count(DISTINCT orders.id), sum(orders.amount)
                  append-only; key (window_start, customer); window tumble 1m in (window_start); event time window_time
                [5] filter: window_start > timestamp '2024-01-01T00:00:00'
                    append-only; key (window_start, customer); window tumble 1m in (window_start, window_end)
                  [4] window aggregate: tumble 1m of event time by (customer): count(DISTINCT orders.id) in accumulator, sum(orders.amount) in columns
                      append-only; key (window_start, customer); window tumble 1m in (window_start, window_end)
                    [3] exchange by (customer) ← partial window aggregate: tumble 1m of event time by (customer): count(DISTINCT orders.id) in accumulator, sum(orders.amount) in columns
                        append-only; window tumble 1m in (window_start, window_end)
                      [2] project: customer, id, amount
                          append-only
                        [1] filter: id > 3
                            append-only
                          [0] source "orders": single_file, json, bounded; decodes id, customer, amount, ts
                              append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT w, max(n) FROM (SELECT tumble(interval '10 seconds') AS w, customer, count(*) AS n FROM orders GROUP BY w, customer) GROUP BY w",
        ],
        expect![[r#"
            job: flush interval 1s
            [7] result: w, max(n)
                append-only; key (w); window tumble 10s in (w)
              [6] project: {start: window_start, end: window_end} AS w, max(n)
                  append-only; key (w); window tumble 10s in (w)
                [5] window aggregate: window (window_start, window_end): max(n) in columns
                    append-only; key (window_start); window tumble 10s in (window_start, window_end)
                  [4] exchange to one subtask ← partial window aggregate: window (w[start], w[end]): max(n) in columns
                      append-only; window tumble 10s in (window_start, window_end)
                    [3] project: window_start AS "w[start]", window_end AS "w[end]", count(*) AS n
                        append-only; window tumble 10s in (w[start], w[end])
                      [2] window aggregate: tumble 10s of event time by (customer): count(*) in columns
                          append-only; key (window_start, customer); window tumble 10s in (window_start, window_end)
                        [1] exchange by (customer) ← partial window aggregate: tumble 10s of event time by (customer): count(*) in columns
                            append-only; window tumble 10s in (window_start, window_end)
                          [0] source "orders": single_file, json, bounded; decodes customer, ts
                              append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT tumble(interval '1 minute') AS m, max(n) FROM (SELECT tumble(interval '10 seconds') AS w, customer, count(*) AS n FROM clicks GROUP BY w, customer) GROUP BY m",
        ],
        expect![[r#"
            job: flush interval 1s
            [7] result: m, max(n)
                append-only; key (m); window tumble 1m in (m)
              [6] project: {start: window_start, end: window_end} AS m, max(n)
                  append-only; key (m); window tumble 1m in (m)
                [5] window aggregate: tumble 1m of event time: max(n) in columns
                    append-only; key (window_start); window tumble 1m in (window_start, window_end)
                  [4] exchange to one subtask ← partial window aggregate: tumble 1m of event time: max(n) in columns
                      append-only; window tumble 1m in (window_start, window_end)
                    [3] project: count(*) AS n
                        append-only
                      [2] window aggregate: tumble 10s of event time by (customer): count(*) in columns
                          append-only; key (window_start, customer); window tumble 10s in (window_start, window_end)
                        [1] exchange by (customer) ← partial window aggregate: tumble 10s of event time by (customer): count(*) in columns
                            append-only; window tumble 10s in (window_start, window_end)
                          [0] source "clicks": single_file, json, bounded; decodes customer, at
                              append-only; event time at; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT window_end, count(*) FROM TUMBLE((SELECT window_start AS s, window_time AS t, count(*) AS n FROM TUMBLE(orders, DESCRIPTOR(ts), INTERVAL '1 minute') GROUP BY window_start, window_time), DESCRIPTOR(t), INTERVAL '1 hour') GROUP BY window_end",
        ],
        expect![[r#"
            job: flush interval 1s
            [7] result: window_end, count(*)
                append-only; key (window_end); window tumble 1h in (window_end)
              [6] project: window_end, count(*) AS "count(*)"
                  append-only; key (window_end); window tumble 1h in (window_end)
                [5] window aggregate: tumble 1h of event time: count(*) in columns
                    append-only; key (window_start); window tumble 1h in (window_start, window_end)
                  [4] exchange to one subtask ← partial window aggregate: tumble 1h of event time: count(*) in columns
                      append-only; window tumble 1h in (window_start, window_end)
                    [3] project: no columns
                        append-only
                      [2] window aggregate: tumble 1m of event time
                          append-only; key (window_start); window tumble 1m in (window_start, window_end)
                        [1] exchange to one subtask ← partial window aggregate: tumble 1m of event time
                            append-only; window tumble 1m in (window_start, window_end)
                          [0] source "orders": single_file, json, bounded; decodes ts
                              append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT *, ts - window_start AS since FROM HOP(orders, DESCRIPTOR(ts), INTERVAL '1 minute', INTERVAL '5 minutes')",
        ],
        expect![[r#"
        job: flush interval 1s
        [3] result: id, customer, amount, tags, ts, window_start, window_end, window_time, since
            append-only; window hop 5m by 1m in (window_start, window_end); event time ts
          [2] project: id, customer, amount, tags, ts, window_start, window_end, window_time, ts - window_start AS since
              append-only; window hop 5m by 1m in (window_start, window_end); event time ts
            [1] assign window: hop 5m by 1m
                append-only; window hop 5m by 1m in (window_start, window_end); event time ts
              [0] source "orders": single_file, json, bounded; decodes id, customer, amount, tags, ts
                  append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        &[
            "SELECT window_start, max(ts - window_start) FROM TUMBLE(orders, DESCRIPTOR(ts), INTERVAL '1 minute') GROUP BY window_start",
        ],
        expect![[r#"
            job: flush interval 1s
            [6] result: window_start, max(orders.ts - window_start)
                append-only; key (window_start); window tumble 1m in (window_start)
              [5] project: window_start, max(orders.ts - window_start)
                  append-only; key (window_start); window tumble 1m in (window_start)
                [4] window aggregate: window (window_start, window_end): max(orders.ts - window_start) in columns
                    append-only; key (window_start); window tumble 1m in (window_start, window_end)
                  [3] exchange to one subtask ← partial window aggregate: window (window_start, window_start + IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 60000000000 }")): max(orders.ts - window_start) in columns
                      append-only; window tumble 1m in (window_start, window_end)
                    [2] project: window_start, window_start + interval '1m' AS "window_start + IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 60000000000 }")", ts - window_start AS "orders.ts - window_start"
                        append-only; window tumble 1m in (window_start)
                      [1] assign window: tumble 1m
                          append-only; window tumble 1m in (window_start, window_end); event time ts
                        [0] source "orders": single_file, json, bounded; decodes ts
                            append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT DISTINCT window_start, customer FROM TUMBLE(orders, DESCRIPTOR(ts), INTERVAL '1 minute')",
        ],
        expect![[r#"
            job: flush interval 1s
            [4] result: window_start, customer
                append-only; key (window_start, customer); window tumble 1m in (window_start)
              [3] project: window_start, customer
                  append-only; key (window_start, customer); window tumble 1m in (window_start)
                [2] window aggregate: tumble 1m of event time by (customer)
                    append-only; key (window_start, customer); window tumble 1m in (window_start, window_end)
                  [1] exchange by (customer) ← partial window aggregate: tumble 1m of event time by (customer)
                      append-only; window tumble 1m in (window_start, window_end)
                    [0] source "orders": single_file, json, bounded; decodes customer, ts
                        append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT customer, max(n) FROM (SELECT tumble(interval '10 seconds') AS w, customer, count(*) AS n FROM orders GROUP BY w, customer) GROUP BY customer",
        ],
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [5] result: customer, max(n); changes paired by (customer)
                updating, net; key (customer)
              [4] aggregate by (customer): max(n) in columns
                  updating, net; key (customer); ttl 1d
                [3] exchange by (customer) ← project: customer, count(*) AS n
                    append-only
                  [2] window aggregate: tumble 10s of event time by (customer): count(*) in columns
                      append-only; key (window_start, customer); window tumble 10s in (window_start, window_end)
                    [1] exchange by (customer) ← partial window aggregate: tumble 10s of event time by (customer): count(*) in columns
                        append-only; window tumble 10s in (window_start, window_end)
                      [0] source "orders": single_file, json, bounded; decodes customer, ts
                          append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT tumble(interval '1 day') AS d, count(*), min(customer) FROM (SELECT DISTINCT customer, ts FROM orders) GROUP BY d",
        ],
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (customer, ts) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [5] result: d, count(*), min(orders.customer)
                append-only; key (d); window tumble 1d in (d)
              [4] project: {start: window_start, end: window_end} AS d, count(*) AS "count(*)", min(orders.customer)
                  append-only; key (d); window tumble 1d in (d)
                [3] window aggregate: tumble 1d of event time: count(*) in columns, min(orders.customer) in multiset
                    append-only; key (window_start); window tumble 1d in (window_start, window_end)
                  [2] exchange to one subtask ← project: customer
                      updating
                    [1] aggregate by (customer, ts)
                        updating, net; key (customer, ts); event time ts; ttl 1d
                      [0] exchange by (customer, ts) ← source "orders": single_file, json, bounded; decodes customer, ts
                          append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
    check(
        &[
            "SELECT tumble(interval '1 day') AS d, count(*) FROM (SELECT DISTINCT customer FROM orders) GROUP BY d",
        ],
        expect![[r#"
        NotStreamable: a window over an updating result whose event time is not a column of the row · hint: a retracted row must fall into the window that it was counted in: keep the event time among the columns and GROUP BY keys below, or use the window there
    "#]],
    );
    check(
        &[
            "SELECT window_start, array_agg(amount ORDER BY id) FROM TUMBLE(orders, DESCRIPTOR(ts), INTERVAL '1 minute') GROUP BY window_start",
        ],
        expect![[r#"
            job: flush interval 1s
            [5] result: window_start, array_agg(orders.amount) ORDER BY [orders.id ASC NULLS LAST]
                append-only; key (window_start); window tumble 1m in (window_start)
              [4] project: window_start, array_agg(orders.amount) ORDER BY [orders.id ASC NULLS LAST]
                  append-only; key (window_start); window tumble 1m in (window_start)
                [3] window aggregate: tumble 1m of event time: array_agg(orders.amount) ORDER BY [orders.id ASC NULLS LAST] in accumulator
                    append-only; key (window_start); window tumble 1m in (window_start, window_end)
                  [2] exchange to one subtask ← partial window aggregate: tumble 1m of event time: array_agg(orders.amount) ORDER BY [orders.id ASC NULLS LAST] in accumulator
                      append-only; window tumble 1m in (window_start, window_end)
                    [1] project: amount, id
                        append-only
                      [0] source "orders": single_file, json, bounded; decodes id, amount, ts
                          append-only; event time ts; watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn refused_by_name() {
    for sql in [
        "SELECT o.id FROM orders o JOIN clicks c ON o.customer = c.customer",
        "SELECT id FROM orders WHERE customer IN (SELECT customer FROM clicks)",
        "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY ts) FROM orders",
        "SELECT id FROM orders ORDER BY ts",
        "SELECT id FROM orders LIMIT 3",
        "SELECT DISTINCT ON (customer) customer, id FROM orders ORDER BY customer, ts",
        "SELECT id FROM orders INTERSECT SELECT id FROM orders",
    ] {
        let faults = lowered(vec![testing::query(0, sql).unwrap()]).unwrap_err();
        assert!(
            faults[0].message.contains("not supported"),
            "{sql}: {}",
            faults[0]
        );
    }
}
