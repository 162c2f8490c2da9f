//! Nothing that can be typed makes the planner panic, and every fault has a position.

use super::TABLES;
use crate::test_registry::planned;

const STATEMENTS: &str = "
CREATE TABLE mid (a INT, b TEXT);
INSERT INTO mid (a, b) SELECT order_id, customer || 'x' FROM orders WHERE amount > 1.5e3 AND NOT (tags IS NULL);
INSERT INTO totals SELECT customer, sum(amount) FILTER (WHERE price > 5), count(DISTINCT order_id) FROM orders GROUP BY customer HAVING count(*) > 3;
CREATE VIEW v (x, y) AS WITH c AS (SELECT url, at FROM clicks) SELECT upper(url), at FROM c UNION ALL SELECT b, NULL FROM mid;
SELECT tumble(INTERVAL '10 seconds') AS w, count(*) AS n, avg(amount) FROM orders GROUP BY w, customer;
SELECT window_start, count(*) FROM HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '1 minute', INTERVAL '5 minutes') GROUP BY 1;
SELECT CASE WHEN x = 'a' THEN 1 ELSE length(x) END AS k, doc.y FROM (SELECT x, named_struct('y', y) AS doc FROM v);
SET pipeline.update-aggregate-flush-interval = '2 seconds';
EXPLAIN SELECT customer, tag FROM orders, LATERAL unnest(tags) AS u(tag);
SUBSCRIBE (SELECT DISTINCT doc->>'a', CAST(price AS BIGINT) FROM orders);
INSERT INTO log VALUES (1, 'a', '2024-01-01', 2);
";

/// Deterministic, so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Words, numbers, quoted text, space and single other characters.
fn pieces(sql: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for ch in sql.chars() {
        match pieces.last_mut() {
            Some(last) if ch.is_alphanumeric() && last.chars().all(char::is_alphanumeric) => {
                last.push(ch)
            }
            _ => pieces.push(ch.to_string()),
        }
    }
    pieces
}

const WORDS: [&str; 32] = [
    "",
    "NULL",
    "'",
    "\"",
    "(",
    ")",
    ";",
    ",",
    "9999999999999999999999",
    "é",
    "$$",
    "*",
    "\0",
    "::INT",
    "SELECT",
    "FROM",
    "GROUP BY",
    "OVER ()",
    "DISTINCT",
    "UNION",
    "WITH x AS (SELECT 1)",
    "unnest",
    "tumble",
    "CASE",
    "sum(",
    "[1]",
    ".end",
    "->",
    "INTERVAL '1 day'",
    "WATERMARK FOR",
    "GENERATED ALWAYS AS (1)",
    "TABLE",
];

fn mutate(pieces: &mut Vec<String>, random: &mut Random) {
    if pieces.is_empty() {
        return;
    }
    let (at, other) = (random.below(pieces.len()), random.below(pieces.len()));
    match random.below(7) {
        0 => drop(pieces.remove(at)),
        1 => pieces.swap(at, other),
        2 => {
            let copy = pieces[other].clone();
            pieces.insert(at, copy);
        }
        3 => pieces[at] = WORDS[random.below(WORDS.len())].to_string(),
        4 => pieces.insert(at, format!(" {} ", WORDS[random.below(WORDS.len())])),
        5 => pieces.truncate(at.max(1)),
        _ => pieces[at] = pieces[other].clone(),
    }
}

#[test]
fn mutated_scripts_are_planned_or_faulted() {
    let number = |name, default| {
        std::env::var(name)
            .ok()
            .and_then(|n| n.parse().ok())
            .unwrap_or(default)
    };
    let first = number("THALWEG_MUTATIONS_FROM", 0);
    let original = pieces(&format!("{TABLES}{STATEMENTS}"));
    assert!(
        planned(&original.concat()).is_ok(),
        "{:?}",
        planned(&original.concat()).err()
    );
    for seed in first..first + number("THALWEG_MUTATIONS", 200) {
        let mut random = Random(seed);
        let mut mutant = original.clone();
        for _ in 0..=random.below(5) {
            mutate(&mut mutant, &mut random);
        }
        let sql = mutant.concat();
        for fault in planned(&sql).err().unwrap_or_default() {
            assert!(fault.position.is_some(), "seed {seed}: {fault:?}\n{sql}");
            assert_ne!(
                fault.kind,
                crate::FaultKind::Internal,
                "seed {seed}: {fault}\n{sql}"
            );
        }
    }
}

#[test]
fn long_and_deep_statements_do_not_overflow_the_stack() {
    let long = |n: usize, part: &str, joint: &str| vec![part; n].join(joint);
    let deep = |n: usize, open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    };
    for (sql, fault) in [
        (
            format!("SELECT {} AS n FROM orders", long(300, "order_id", " + ")),
            "",
        ),
        (
            format!("SELECT {}", long(100_000, "1", "+")),
            "nested more than 1000",
        ),
        (
            format!(
                "SELECT ts FROM orders WHERE {}",
                long(900, "amount > 1", " AND ")
            ),
            "",
        ),
        (
            format!(
                "SELECT ts FROM orders WHERE {}",
                long(3000, "amount > 1", " AND ")
            ),
            "nested more than 1000",
        ),
        (
            format!("SELECT {}", deep(45, "CASE WHEN true THEN ", "1", " END")),
            "",
        ),
        (
            format!("SELECT {}", deep(500, "(", "1", ")")),
            "nested too deeply",
        ),
        (
            format!("SELECT 1{}", "::INT".repeat(2000)),
            "nested more than 1000",
        ),
        (
            format!("SELECT {} 1", "- ".repeat(2000)),
            "nested too deeply",
        ),
        (long(300, "SELECT 1 AS n", " UNION ALL "), ""),
        (
            long(2000, "SELECT 1 AS n", " UNION ALL "),
            "nested more than 1000",
        ),
        (
            format!(
                "SELECT ts FROM orders WHERE order_id IN ({})",
                long(3000, "7", ", ")
            ),
            "",
        ),
        (format!("VALUES {}", long(2000, "(1, 'a')", ", ")), ""),
        (
            format!(
                "CREATE TABLE t (a {}) WITH (connector = 'blackhole')",
                deep(20, "STRUCT<x ", "INT", ">")
            ),
            "",
        ),
        (
            format!(
                "CREATE TABLE t (a {})",
                deep(20_000, "STRUCT<x ", "INT", ">")
            ),
            "nested more than 32",
        ),
        (
            format!("CREATE TABLE t (a INT{})", "[]".repeat(20_000)),
            "nested more than 32",
        ),
        (format!("SELECT 1{}", ";".repeat(500_000)), ""),
        (
            format!("SELECT 1{}", " ".repeat(500_000) + &"1 ".repeat(500_000)),
            "more than 500000 words",
        ),
    ] {
        let faults = planned(&format!("{TABLES}{sql}")).err().unwrap_or_default();
        let found = faults.first().map(ToString::to_string).unwrap_or_default();
        assert!(
            found.contains(fault) && found.is_empty() == fault.is_empty(),
            "{}: {found}",
            &sql[..60.min(sql.len())]
        );
    }
}
