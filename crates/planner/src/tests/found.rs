//! Tables whose columns are found outside the planner.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Field, TimeUnit};
use thalweg_dataflow::options::{OptionFault, Outline};

use crate::declare::FoundColumns;
use crate::script::{Planner, ScriptOptions};
use crate::test_registry::{TestRegistry, faults_with};

fn outlines(sql: &str) -> BTreeMap<usize, Outline> {
    Planner::new(TestRegistry::shared()).outlines(&Planner::parse(sql))
}

const FILE: &str = "connector = 'single_file', path = 'x.json'";

#[test]
fn tables_without_columns_are_outlined_by_their_statement() {
    let found = outlines(&format!(
        "CREATE TABLE a (n INT) WITH ({FILE});
         CREATE TABLE b WITH ({FILE}, infer_schema = true, infer_schema.records = 5);
         CREATE TABLE c (g INT GENERATED ALWAYS AS (x), WATERMARK FOR ts) WITH ({FILE}, json.unstructured = true);
         CREATE TABLE d WITH (connector = 'impulse', event_rate = 1);
         CREATE TABLE e WITH ({FILE}, unknown = 1);
         CREATE TABLE f WITH (connector = 'blackhole') AS SELECT 1 AS x;
         CREATE TABLE g ();"
    ));
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1, 2]);
    assert_eq!((found[&1].table.as_str(), found[&1].sample), ("b", Some(5)));
    assert_eq!(found[&1].options.text("path"), Some("x.json"));
    assert_eq!(found[&1].options.text("infer_schema"), None);
    assert_eq!(found[&2].format.as_deref(), Some("json"));
    assert_eq!(
        (
            found[&2].sample,
            found[&2].options.bool("json.unstructured")
        ),
        (None, Some(true))
    );
}

fn faults(sql: &str, found: FoundColumns) -> String {
    let options = ScriptOptions {
        found: [(0, found)].into(),
        ..Default::default()
    };
    faults_with(sql, &options)
}

fn columns() -> FoundColumns {
    let time = DataType::Timestamp(TimeUnit::Nanosecond, None);
    Ok(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("ts", time, true),
    ])
}

#[test]
fn columns_that_were_found_are_the_tables() {
    let sql = format!(
        "CREATE TABLE t (twice BIGINT GENERATED ALWAYS AS (id * 2), PRIMARY KEY (id), WATERMARK FOR ts) WITH ({FILE});
         SELECT id, twice, ts FROM t"
    );
    assert_eq!(faults(&sql, columns()), "no faults");
    let wrong = format!(
        "CREATE TABLE t (id INT GENERATED ALWAYS AS (1), WATERMARK FOR tz) WITH ({FILE}); SELECT 1"
    );
    assert_eq!(
        faults(&wrong, columns()),
        "column \"id\" is declared twice at 1:17"
    );
}

#[test]
fn why_they_were_not_found_is_said_at_the_table_or_its_option() {
    let fault = |option: Option<&str>| {
        Err(OptionFault {
            option: option.map(str::to_string),
            message: "there is no file".to_string(),
            hint: Some("look elsewhere".to_string()),
        })
    };
    let sql = format!("CREATE TABLE t WITH ({FILE}); SELECT n FROM t");
    assert_eq!(
        faults(&sql, fault(None)),
        "table \"t\": there is no file at 1:14 · hint: look elsewhere"
    );
    assert_eq!(
        faults(&sql, fault(Some("path"))),
        "table \"t\": there is no file at 1:49 · hint: look elsewhere"
    );
}
