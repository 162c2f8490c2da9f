//! From tables to sources.

use std::fmt::Write;

use expect_test::{Expect, expect};

use crate::bind::source_spec;
use crate::catalog::Relation;
use crate::test_registry::{TestRegistry, bind};

/// The source of table `t` of which `columns` are read.
#[track_caller]
fn check(elements: &str, columns: &[usize], expected: Expect) {
    let with = "WITH (connector = 'kafka', bootstrap_servers = 'b', topic = 't')";
    let script = bind(&format!("CREATE TABLE t ({elements}) {with}"));
    assert_eq!(script.faults, []);
    let Relation::Table(def) = &script.catalog.relations["t"] else {
        panic!("no table")
    };
    let spec = source_spec(def, columns, &TestRegistry::new()).unwrap();
    let mut out = String::new();
    let names = |schema: &arrow::datatypes::Schema| {
        schema
            .fields()
            .iter()
            .map(|f| format!("{} {}", f.name(), f.data_type()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    writeln!(out, "record: {}", names(&spec.record_schema())).unwrap();
    for (expr, field) in spec.columns.iter().zip(spec.schema.fields()) {
        writeln!(out, "{}: {expr}", field.name()).unwrap();
        assert_eq!(
            expr.data_type(&spec.record_schema()).unwrap(),
            *field.data_type()
        );
    }
    writeln!(out, "event time: {:?}", spec.event_time).unwrap();
    writeln!(out, "watermark: {:?}", spec.watermark).unwrap();
    write!(out, "key: {:?}", spec.primary_key).unwrap();
    expected.assert_eq(&out);
}

#[test]
fn only_what_is_needed_is_decoded() {
    check(
        "id INT PRIMARY KEY, name TEXT, ts TIMESTAMP, junk TEXT, WATERMARK FOR ts AS ts - INTERVAL '1 minute 5 seconds'",
        &[1, 0],
        expect![[r#"
            record: id Int32, name Utf8, ts Timestamp(ns)
            name: name@1
            id: id@0
            event time: Expr(Column { name: "ts", index: 2 })
            watermark: Lag(65000000000)
            key: [1]"#]],
    );
}

#[test]
fn event_time_from_a_generated_column() {
    check(
        "ms BIGINT, ts TIMESTAMP GENERATED ALWAYS AS (to_timestamp_millis(ms)), w TIMESTAMP, WATERMARK FOR ts AS ts",
        &[],
        expect![[r#"
            record: ms Int64
            event time: Expr(CastExpr { expr: ScalarFunctionExpr { fun: "<FUNC>", name: "to_timestamp_millis", args: [Column { name: "ms", index: 0 }], return_field: Field { name: "to_timestamp_millis", data_type: Timestamp(Millisecond, Some("+00:00")), nullable: true } }, target_field: Field { name: "", data_type: Timestamp(Nanosecond, None), nullable: true }, explicit_target: false, cast_options: CastOptions { safe: false, format_options: FormatOptions { safe: true, null: "", date_format: None, datetime_format: None, timestamp_format: None, timestamp_tz_format: None, time_format: None, duration_format: Pretty, types_info: false, quoted_strings: false, formatter_factory: None } } })
            watermark: Lag(0)
            key: []"#]],
    );
}

#[test]
fn a_watermark_that_is_more_than_a_lag() {
    check(
        "a INT, ts TIMESTAMPTZ, bounds TIMESTAMPTZ, WATERMARK FOR ts AS least(ts, bounds) - INTERVAL '1 second'",
        &[0],
        expect![[r#"
            record: a Int32, ts Timestamp(ns, "+00:00"), bounds Timestamp(ns, "+00:00")
            a: a@0
            event time: Expr(Column { name: "ts", index: 1 })
            watermark: Expr(BinaryExpr { left: ScalarFunctionExpr { fun: "<FUNC>", name: "least", args: [Column { name: "ts", index: 1 }, Column { name: "bounds", index: 2 }], return_field: Field { name: "least", data_type: Timestamp(Nanosecond, Some("+00:00")), nullable: true } }, op: Minus, right: Literal { value: IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 1000000000 }"), field: Field { name: "lit", data_type: Interval(MonthDayNano) } }, fail_on_overflow: true })
            key: []"#]],
    );
}

#[test]
fn metadata_are_cast_to_the_declared_type() {
    check(
        "o INT METADATA FROM 'offset', k BYTEA METADATA FROM 'key', twice BIGINT GENERATED ALWAYS AS (o * 2)",
        &[0, 1, 2],
        expect![[r#"
        record: o Int64, k Binary
        o: CAST(o@0 AS Int32)
        k: k@1
        twice: o@0 * 2
        event time: Connector
        watermark: Lag(1000000000)
        key: []"#]],
    );
}

#[test]
fn without_event_time_the_connector_gives_it() {
    check(
        "a INT, b TEXT, PRIMARY KEY (a, b)",
        &[0],
        expect![[r#"
        record: a Int32
        a: a@0
        event time: Connector
        watermark: Lag(1000000000)
        key: []"#]],
    );
}

#[test]
fn no_column_at_all() {
    check(
        "a INT",
        &[],
        expect![[r#"
        record: 
        event time: Connector
        watermark: Lag(1000000000)
        key: []"#]],
    );
}
