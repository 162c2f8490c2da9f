//! A file with many faults is reported in one pass (semantics 8.2).

use expect_test::expect;

use super::check_faults;

#[test]
fn every_fault_of_a_file() {
    check_faults(
        "-- A pipeline by someone in a hurry.
CREATE TABLE orders (
    id INTT PRIMARY KEY,
    amount DOUBLE PRECISION,
    ts TIMESTAMP,
    WATERMARK FOR tss
) WITH (connector = 'kafka', bootstrap_server = 'localhost:9092', topic = 'orders');

CREATE TABLE clicks (user_id INT, url TEXT, at TIMESTAMP, WATERMARK FOR at)
WITH (connector = 'single_file', path = 'clicks.ndjson', idle_timeout = '5');

CREATE TABLE visits (user_id INT, url TEXT, at TIMESTAMP, WATERMARK FOR at)
WITH (connector = 'single_file', path = 'visits.ndjson');

CREATE TABEL typo (a INT);

SET updatin_ttl = '1 hour';
SET updating_ttl = 'an hour';

-- Not faulted: orders has its faults already.
SELECT nonsense FROM orders;

SELECT user, coutn(*) FROM visits GROUP BY user;

CREATE TABLE sink (user_id INT PRIMARY KEY, n SMALLINT) WITH (connector = 'stdout', format = 'debezium_json');
INSERT INTO sink SELECT url, count(*), 1 FROM visits GROUP BY url;
INSERT INTO sink (user_id, m) SELECT user_id, count(*) FROM visits GROUP BY user_id;

SELECT v.url FROM visits v JOIN visits w ON v.user_id = w.user_id ORDER BY 1;

SELECT url || 'unterminated FROM visits;
",
        expect![[r#"
            type "INTT" does not exist at 3:8 · hint: did you mean INT?
            unknown option 'bootstrap_server' of connector 'kafka' with format 'json' at 7:30 · hint: did you mean 'bootstrap_servers'?
            option 'idle_timeout': '5' has no unit; write for example '5 seconds' at 10:73
            expected TABLE, SOURCE, SINK or VIEW, found "TABEL" at 15:8
            unknown setting "updatin_ttl" at 17:5 · hint: did you mean "updating_ttl"?
            setting "updating_ttl": 'an hour' is not a duration; write for example '5 minutes' or '250 milliseconds' at 18:20 · hint: or 'infinite'
            column "user" does not exist at 23:8
            function "coutn" does not exist at 23:14 · hint: did you mean "count"?
            table "sink" has 2 columns, but the query gives 3 at 26:1
            column "m" of table "sink" does not exist at 27:28 · hint: table "sink" has "n"
            joins are not supported yet at 29:33
            ORDER BY is not supported yet at 29:76
            unterminated string literal at 31:15"#]],
    );
}
