//! Scripts in; plans, tables and faults out.

mod clients;
mod ddl;
mod faults;
mod found;
mod insert;
mod lower;
mod mutations;
mod queries;
mod source;
mod streams;
mod syntax;

use expect_test::Expect;

use crate::test_registry;

/// Two tables to read and two to write.
const TABLES: &str = "
    CREATE TABLE orders (
        order_id INT PRIMARY KEY,
        customer TEXT,
        amount DOUBLE PRECISION,
        price DECIMAL(10, 2),
        tags TEXT[],
        doc JSON,
        ts TIMESTAMP,
        WATERMARK FOR ts AS ts - INTERVAL '5 seconds'
    ) WITH (connector = 'kafka', bootstrap_servers = 'b:9092', topic = 'orders', type = 'source');
    CREATE TABLE clicks (customer TEXT, url TEXT, at TIMESTAMPTZ) WITH (connector = 'single_file', path = 'c.json');
    CREATE TABLE totals (customer TEXT PRIMARY KEY, total DECIMAL(12, 2), n INT) WITH (connector = 'blackhole');
    CREATE TABLE log (id BIGINT NOT NULL, note TEXT, day DATE, small SMALLINT) WITH (connector = 'stdout');
";

/// The plan of the last query of `sql`, which follows [`TABLES`], or the faults.
#[track_caller]
fn check_plan(sql: &str, expected: Expect) {
    expected.assert_eq(&test_registry::plan(&format!("{TABLES}{sql}")));
}

/// The faults of `sql` by itself, one a line.
#[track_caller]
fn check_faults(sql: &str, expected: Expect) {
    expected.assert_eq(&test_registry::faults(sql));
}

/// The faults of each of `cases` after [`TABLES`], without the line of their position: `input => faults`.
#[track_caller]
fn check_each(cases: &[&str], expected: Expect) {
    let n_lines = TABLES.matches('\n').count() as u64;
    let mut out = String::new();
    for case in cases {
        let faults = test_registry::planned(&format!("{TABLES}{case}"))
            .err()
            .unwrap_or_default();
        out.push_str(case);
        for mut fault in faults {
            if let Some(position) = &mut fault.position {
                position.line -= n_lines;
            }
            out.push_str(&format!("\n    {fault}"));
        }
        out.push('\n');
    }
    expected.assert_eq(&out);
}
