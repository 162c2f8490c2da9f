//! What is refused, by name and with a way out.

use crate::check;
use expect_test::expect;

#[test]
fn windows() {
    check(
        "SELECT count(*) FROM orders GROUP BY tumble(interval '1 month')",
        expect![[r#"
            InvalidType: the width of tumble(): months and years have no exact length; use days or hours at 1:38 · hint: write for example interval '10 seconds'
        "#]],
    );
    check(
        "SELECT count(*) FROM orders GROUP BY hop(interval '1 minute', interval '0 seconds')",
        expect![[r#"
            InvalidType: the width of hop() must be above zero at 1:38
        "#]],
    );
    check(
        "SELECT count(*) FROM orders GROUP BY hop(interval '1 minute')",
        expect![[r#"
            UndefinedFunction: hop() takes two arguments, the slide and the width; here are 1 at 1:38 · hint: write hop(interval '2 seconds', interval '10 seconds')
        "#]],
    );
    check(
        "SELECT tumble(interval '1 minute') FROM orders",
        expect![[r#"
        Grouping: tumble() outside GROUP BY at 1:1 · hint: group by tumble(…); for rows with their windows select from TUMBLE(t, DESCRIPTOR(ts), …)
    "#]],
    );
    check(
        "SELECT count(*) FROM orders GROUP BY tumble(interval '1 minute'), tumble(interval '2 minutes')",
        expect![[r#"
        Unsupported: GROUP BY has two different windows at 1:1 · hint: group by one window in a subquery and by the other around it
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(orders, DESCRIPTOR(amount), INTERVAL '1 minute')",
        expect![[r#"
        NotStreamable: column "amount" is not the event time of its table at 1:41 · hint: its event time is "event_time": write DESCRIPTOR(event_time)
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE((SELECT customer_id FROM orders), DESCRIPTOR(customer_id), INTERVAL '1 minute')",
        expect![[r#"
            NotStreamable: column "customer_id" is not an event time at 1:67 · hint: the event time is the column of WATERMARK FOR, and that of a window's result its window_time: select it, or group by tumble(width), hop(slide, width) or session(gap), which need no column
        "#]],
    );
    check(
        "SELECT * FROM TUMBLE(orders, event_time, INTERVAL '1 minute')",
        expect![[r#"
        Syntax: TUMBLE takes DESCRIPTOR(column) as its second argument at 1:15 · hint: write TUMBLE(t, DESCRIPTOR(ts), INTERVAL '10 seconds')
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(orders, DESCRIPTOR(event_time))",
        expect![[r#"
        Syntax: TUMBLE takes a table, a descriptor and the width at 1:15 · hint: write TUMBLE(t, DESCRIPTOR(ts), INTERVAL '10 seconds')
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(orders, DESCRIPTOR(nothing), INTERVAL '1 minute')",
        expect![[r#"
        UndefinedColumn: column "nothing" does not exist at 1:41
    "#]],
    );
    check(
        "SELECT * FROM TUMBLE(TUMBLE(orders, DESCRIPTOR(event_time), INTERVAL '1 minute'), DESCRIPTOR(event_time), INTERVAL '1 minute')",
        expect![[r#"
        DuplicateObject: the input of the window already has a column "window_start" at 1:15 · hint: rename it in a subquery, or group by tumble(width) instead: SELECT window_start AS inner_window_start, …
    "#]],
    );
}

#[test]
fn the_clock_and_chance() {
    check(
        "SELECT count(*) FROM orders WHERE event_time > now() - interval '1 hour'",
        expect![[r#"
            NotStreamable: now() has no fixed value in a query that runs for ever at 1:35 · hint: use the event time of the rows, or a literal such as timestamp '2024-01-01'
        "#]],
    );
    check(
        "SELECT current_date AS d, order_id FROM orders",
        expect![[r#"
            NotStreamable: current_date() has no fixed value in a query that runs for ever at 1:8 · hint: use the event time of the rows, or a literal such as timestamp '2024-01-01'
        "#]],
    );
    check(
        "SELECT n, random() AS r FROM (SELECT customer_id, count(*) AS n FROM orders GROUP BY customer_id)",
        expect![[r#"
        NotStreamable: random() over an updating result: a retracted row would get another value than it was inserted with at 1:1 · hint: compute it below the aggregate, where rows are only appended
    "#]],
    );
    check(
        "SELECT uuid() AS u, sum(balance) FROM accounts GROUP BY 1",
        expect![[r#"
        NotStreamable: uuid() over an updating result: a retracted row would get another value than it was inserted with at 1:1 · hint: compute it below the aggregate, where rows are only appended
    "#]],
    );
}

#[test]
fn sketches_over_a_changelog() {
    check(
        "SELECT approx_distinct(balance) FROM accounts",
        expect![[r#"
        NotStreamable: approx_distinct() over an updating result: a sketch cannot take a row back at 1:1 · hint: use count(DISTINCT x), which is exact and takes retractions
    "#]],
    );
    check(
        "SELECT owner, approx_percentile_cont(balance, 0.9) FROM accounts GROUP BY owner",
        expect![[r#"
        NotStreamable: approx_percentile_cont() over an updating result: a sketch cannot take a row back at 1:1 · hint: use percentile_cont(x, fraction), which is exact and takes retractions
    "#]],
    );
}

#[test]
fn what_comes_later() {
    check(
        "SELECT o.order_id FROM orders o JOIN clicks c ON o.customer_id = c.url",
        expect![[r#"
        Unsupported: joins are not supported yet at 1:38
    "#]],
    );
    check(
        "SELECT order_id FROM orders, clicks",
        expect![[r#"
        Unsupported: joins are not supported yet at 1:30
    "#]],
    );
    check(
        "SELECT order_id FROM orders WHERE customer_id IN (SELECT url FROM clicks)",
        expect![[r#"
        Unsupported: subqueries in expressions are not supported yet at 1:35
    "#]],
    );
    check(
        "SELECT order_id, (SELECT max(user_id) FROM clicks) AS m FROM orders",
        expect![[r#"
        Unsupported: subqueries in expressions are not supported yet at 1:19
    "#]],
    );
    check(
        "SELECT order_id, row_number() OVER (PARTITION BY customer_id ORDER BY event_time) AS n FROM orders",
        expect![[r#"
        Unsupported: window functions (OVER) are not supported yet at 1:18
    "#]],
    );
    check(
        "SELECT order_id FROM orders ORDER BY event_time",
        expect![[r#"
        Unsupported: ORDER BY is not supported yet at 1:38
    "#]],
    );
    check(
        "SELECT order_id FROM orders LIMIT 3",
        expect![[r#"
        Unsupported: LIMIT is not supported yet at 1:35
    "#]],
    );
    check(
        "SELECT DISTINCT ON (customer_id) customer_id, order_id FROM orders ORDER BY customer_id, event_time",
        expect![[r#"
        Unsupported: DISTINCT ON is not supported yet at 1:21
        Unsupported: ORDER BY is not supported yet at 1:77
    "#]],
    );
    check(
        "SELECT order_id FROM orders INTERSECT SELECT user_id FROM clicks",
        expect![[r#"
        Unsupported: INTERSECT is not supported yet at 1:39
    "#]],
    );
    check(
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT * FROM t",
        expect![[r#"
        Unsupported: WITH RECURSIVE is not supported yet at 1:1
    "#]],
    );
}
