//! The queries, each in the words of both sides.

/// One comparison.
#[derive(Debug)]
pub struct Query {
    pub name: &'static str,
    pub what: &'static str,
    /// Over the table `events`, for DataFusion.
    pub batch: &'static str,
    /// Over the table `events`, for Thalweg.
    pub stream: &'static str,
    /// Columns of the sink, in SQL.
    pub sink: &'static str,
    /// Distinct keys in the input.
    pub n_keys: u64,
    /// The result changes, and is kept in keyed state.
    pub updating: bool,
    /// The part of batch speed to reach, where one is asked for.
    pub target: Option<f64>,
}

pub fn find(name: &str) -> Option<&'static Query> {
    ALL.iter().find(|q| q.name == name)
}

const AGGREGATES: &str = "SELECT key, count(*) AS n, sum(amount) AS total, avg(amount) AS mean, \
     min(amount) AS low, max(amount) AS high FROM events GROUP BY key";
const AGGREGATES_SINK: &str =
    "key TEXT PRIMARY KEY, n BIGINT, total DOUBLE, mean DOUBLE, low DOUBLE, high DOUBLE";
const WINDOW_SINK: &str = "start TIMESTAMP, label TEXT, n BIGINT, total DOUBLE";

pub const ALL: [Query; 7] = [
    Query {
        name: "a",
        what: "filter and project",
        batch: "SELECT ts, key, amount * 1.2 AS gross FROM events WHERE category <> 'tools' AND amount > 200",
        stream: "SELECT ts, key, amount * 1.2 AS gross FROM events WHERE category <> 'tools' AND amount > 200",
        sink: "ts TIMESTAMP, key TEXT, gross DOUBLE",
        n_keys: 10_000,
        updating: false,
        target: Some(0.8),
    },
    Query {
        name: "b",
        what: "tumble 10 s by location",
        batch: "SELECT date_bin(INTERVAL '10 seconds', ts) AS start, location, count(*) AS n, sum(amount) AS total \
                FROM events GROUP BY 1, 2",
        stream: "SELECT w.start, location, n, total FROM (SELECT tumble(interval '10 seconds') AS w, location, \
                 count(*) AS n, sum(amount) AS total FROM events GROUP BY w, location)",
        sink: WINDOW_SINK,
        n_keys: 10_000,
        updating: false,
        target: Some(0.7),
    },
    Query {
        name: "b'",
        what: "tumble 10 s by key",
        batch: "SELECT date_bin(INTERVAL '10 seconds', ts) AS start, key, count(*) AS n, sum(amount) AS total \
                FROM events GROUP BY 1, 2",
        stream: "SELECT w.start, key, n, total FROM (SELECT tumble(interval '10 seconds') AS w, key, \
                 count(*) AS n, sum(amount) AS total FROM events GROUP BY w, key)",
        sink: WINDOW_SINK,
        n_keys: 10_000,
        updating: false,
        target: Some(0.5),
    },
    Query {
        name: "c",
        what: "hop 10 s/2 s by location",
        batch: "SELECT slice - shift AS start, location, count(*) AS n, sum(amount) AS total \
                FROM (SELECT date_bin(INTERVAL '2 seconds', ts) AS slice, location, amount FROM events) \
                CROSS JOIN (VALUES (INTERVAL '0 seconds'), (INTERVAL '2 seconds'), (INTERVAL '4 seconds'), \
                (INTERVAL '6 seconds'), (INTERVAL '8 seconds')) AS shifts(shift) GROUP BY 1, 2",
        stream: "SELECT w.start, location, n, total FROM (SELECT hop(interval '2 seconds', interval '10 seconds') AS w, \
                 location, count(*) AS n, sum(amount) AS total FROM events GROUP BY w, location)",
        sink: WINDOW_SINK,
        n_keys: 10_000,
        updating: false,
        target: None,
    },
    Query {
        name: "d",
        what: "updating aggregates by key",
        batch: AGGREGATES,
        stream: AGGREGATES,
        sink: AGGREGATES_SINK,
        n_keys: 10_000,
        updating: true,
        target: Some(0.5),
    },
    Query {
        name: "e",
        what: "updating aggregates by 1 M keys",
        batch: AGGREGATES,
        stream: AGGREGATES,
        sink: AGGREGATES_SINK,
        n_keys: 1_000_000,
        updating: true,
        target: Some(0.25),
    },
    Query {
        name: "f",
        what: "count(distinct key) by location",
        batch: "SELECT location, count(DISTINCT key) AS n FROM events GROUP BY location",
        stream: "SELECT location, count(DISTINCT key) AS n FROM events GROUP BY location",
        sink: "location TEXT PRIMARY KEY, n BIGINT",
        n_keys: 10_000,
        updating: true,
        target: None,
    },
];
