//! Tables that are read as changelogs: the operator that keeps their rows, and what stands behind it.

use expect_test::{Expect, expect};

use super::check;

#[track_caller]
fn check_with(declaration: &str, query: &str, expected: Expect) {
    check(&format!("{declaration}; {query}"), expected);
}

const RATES: &str = "CREATE TABLE rates (id BIGINT, pair TEXT, rate DECIMAL(10, 4) NOT NULL, raw TEXT, seen TIMESTAMP GENERATED ALWAYS AS (CAST(raw AS TIMESTAMP)), PRIMARY KEY (pair, id), WATERMARK FOR seen)
    WITH (connector = 'kafka', topic = 'rates', format = 'debezium_json', state_ttl = '7 days'";

#[test]
fn the_key_is_read_whether_a_query_wants_it_or_not() {
    check(
        "SELECT owner FROM accounts",
        expect![[r#"
        job: flush interval 1s
        [4] result: owner; changes paired by whole rows
            updating
          [3] exchange by (owner) ← project: owner
              updating
            [2] project: id, owner
                updating; key (id)
              [1] rows of "accounts": the latest by (id)
                  updating, net; key (id); event time seen; no ttl
                [0] exchange by (id) ← source "accounts": kafka, debezium_json, unbounded; decodes id, owner, seen
                    records of changes; event time seen; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
    check(
        "SELECT * FROM accounts WHERE balance > 0",
        expect![[r#"
        job: flush interval 1s
        [3] result: id, owner, balance, seen; changes paired by (id)
            updating, net; key (id); event time seen
          [2] filter: balance > 0
              updating, net; key (id); event time seen
            [1] rows of "accounts": the latest by (id)
                updating, net; key (id); event time seen; no ttl
              [0] exchange by (id) ← source "accounts": kafka, debezium_json, unbounded; decodes id, owner, balance, seen
                  records of changes; event time seen; watermark 1s behind; idle after 5m; bad data fails
    "#]],
    );
}

#[test]
fn columns_are_computed_from_rows_behind_the_operator_that_keeps_them() {
    check_with(
        &format!("{RATES})"),
        "SELECT pair, max(rate), max(seen) FROM rates GROUP BY pair",
        expect![[r#"
            job: flush interval 1s
            notice: the row of a group (pair) leaves the result when no row of the group has come for 1d of event time; SET updating_ttl = '0' before the query keeps it for ever
            [5] result: pair, max(rates.rate), max(rates.seen); changes paired by (pair)
                updating, net; key (pair)
              [4] aggregate by (pair): max(rates.rate) in multiset, max(rates.seen) in multiset
                  updating, net; key (pair); ttl 1d
                [3] exchange by (pair) ← project: pair, rate, seen
                    updating; event time seen
                  [2] project: id, pair, rate, CAST(raw AS TIMESTAMP) AS seen
                      updating; key (pair, id); event time seen
                    [1] rows of "rates": the latest by (pair, id)
                        updating, net; key (pair, id); ttl 7d
                      [0] exchange by (pair, id) ← source "rates": kafka, debezium_json, unbounded; decodes id, pair, rate, raw
                          records of changes; event time CAST(raw AS TIMESTAMP); watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn a_window_finds_retractions_by_the_event_time_of_their_rows() {
    check_with(
        &format!("{RATES})"),
        "SELECT tumble(interval '1 hour') AS w, count(*) FROM rates GROUP BY 1",
        expect![[r#"
            job: flush interval 1s
            [6] result: w, count(*)
                append-only; key (w); window tumble 1h in (w)
              [5] project: {start: window_start, end: window_end} AS w, count(*)
                  append-only; key (w); window tumble 1h in (w)
                [4] window aggregate: tumble 1h of event time: count(*) in columns
                    append-only; key (window_start); window tumble 1h in (window_start, window_end)
                  [3] exchange to one subtask ← project: no columns
                      updating
                    [2] project: id, pair, CAST(raw AS TIMESTAMP) AS seen
                        updating; key (pair, id); event time seen
                      [1] rows of "rates": the latest by (pair, id)
                          updating, net; key (pair, id); ttl 7d
                        [0] exchange by (pair, id) ← source "rates": kafka, debezium_json, unbounded; decodes id, pair, raw
                            records of changes; event time CAST(raw AS TIMESTAMP); watermark 1s behind; idle after 5m; bad data fails
        "#]],
    );
}

#[test]
fn a_table_that_is_read_twice_is_kept_once() {
    check(
        "SELECT id FROM accounts UNION ALL SELECT balance FROM accounts",
        expect![[r#"
            job: flush interval 1s
            [6] result: id; changes paired by whole rows
                updating
              [5] exchange by (id) ← union
                  updating
                [3] project: id
                    updating; key (id)
                  [2] project: id, balance
                      updating; key (id)
                    [1] rows of "accounts": the latest by (id)
                        updating, net; key (id); event time seen; no ttl
                      [0] exchange by (id) ← source "accounts": kafka, debezium_json, unbounded; decodes id, balance, seen
                          records of changes; event time seen; watermark 1s behind; idle after 5m; bad data fails
                [4] project: balance AS id
                    updating
                  [2] project, as above
        "#]],
    );
    check_with(
        &format!("{RATES})"),
        "SELECT pair FROM rates UNION ALL SELECT raw FROM rates",
        expect![[r#"
            job: flush interval 1s
            [5] result: pair; changes paired by whole rows
                updating
              [4] exchange by (pair) ← union
                  updating
                [2] project: pair
                    updating
                  [1] rows of "rates": the latest by (pair, id)
                      updating, net; key (pair, id); ttl 7d
                    [0] exchange by (pair, id) ← source "rates": kafka, debezium_json, unbounded; decodes id, pair, raw
                        records of changes; event time CAST(raw AS TIMESTAMP); watermark 1s behind; idle after 5m; bad data fails
                [3] project: raw AS pair
                    updating
                  [1] rows of "rates", as above
        "#]],
    );
}

#[test]
fn rejected_records_come_from_the_source_and_from_what_keeps_the_rows() {
    check_with(
        &format!(
            "CREATE TABLE letters (reason TEXT) WITH (connector = 'stdout', format = 'json'); {RATES}, bad_data = 'dead_letter', dead_letter = 'letters')"
        ),
        "SELECT id FROM rates",
        expect![[r#"
            job: flush interval 1s
            [7] sink "letters": stdout, json; at least once; reason
                append-only
              [6] union
                  append-only
                [3] project: reason
                    append-only
                  [0] rejected records ← source "rates": kafka, debezium_json, unbounded; decodes id, pair, raw
                      records of changes; event time CAST(raw AS TIMESTAMP); watermark 1s behind; idle after 5m; bad data goes to "letters"
                [4] project: reason
                    append-only
                  [1] rejected records ← rows of "rates": the latest by (pair, id)
                      updating, net; key (pair, id); ttl 7d
                    [0] exchange by (pair, id) ← source "rates", as above
            [8] result: id; changes paired by whole rows
                updating
              [5] exchange by (id) ← project: id
                  updating
                [2] project: id, pair
                    updating; key (pair, id)
                  [1] rows of "rates", as above
        "#]],
    );
}

#[test]
fn what_a_changelog_needs_is_said() {
    let with = "WITH (connector = 'kafka', topic = 't', format = 'debezium_json'";
    check(
        &format!("CREATE TABLE t (id INT) {with}); SELECT * FROM t"),
        expect![[r#"
            InvalidOption: table "t" is read with format 'debezium_json' and has no PRIMARY KEY at 1:14 · hint: a record of a changelog tells what became of one row: declare the columns that say which, as the database has them, with PRIMARY KEY (…)
        "#]],
    );
    check(
        &format!("CREATE SOURCE t (id INT) {with})"),
        expect![[r#"
        InvalidOption: table "t" is read with format 'debezium_json' and has no PRIMARY KEY at 1:15 · hint: a record of a changelog tells what became of one row: declare the columns that say which, as the database has them, with PRIMARY KEY (…)
    "#]],
    );
    check(
        &format!(
            "CREATE TABLE t (id INT, k INT GENERATED ALWAYS AS (id + 1), PRIMARY KEY (k)) {with}); SELECT * FROM t"
        ),
        expect![[r#"
            InvalidOption: column "k" of the PRIMARY KEY is not part of the records of table "t" at 1:14 · hint: the record of a deletion holds the key and nothing else to compute it from
        "#]],
    );
    check(
        &format!("CREATE TABLE t (id INT PRIMARY KEY) {with}, state_ttl = '0'); SELECT * FROM t"),
        expect![[r#"
            InvalidOption: option 'state_ttl' must be above zero; leave it out to keep rows for ever at 1:115
        "#]],
    );
    check(
        "CREATE TABLE t (id INT) WITH (connector = 'kafka', topic = 't', format = 'json', state_ttl = '1 day'); SELECT * FROM t",
        expect![[r#"
            InvalidOption: option 'state_ttl' has no effect: the table is not read as a changelog at 1:82
        "#]],
    );
    check(
        "SELECT id, random() FROM accounts",
        expect![[r#"
        NotStreamable: random() over an updating result: a retracted row would get another value than it was inserted with at 1:1 · hint: compute it below the aggregate, where rows are only appended
    "#]],
    );
}
