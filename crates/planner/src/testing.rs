//! Bound plans for tests of the stages after binding.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::common::{Result, TableReference, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner};
use datafusion::logical_expr::{
    AggregateUDF, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF,
};
use datafusion::sql::planner::{ParserOptions, SqlToRel};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use thalweg_dataflow::options::Options;
use thalweg_dataflow::table::BadData;

use crate::bind::{RelationKind, StreamTable};
use crate::catalog::{ColumnDef, ColumnOrigin, TableDef};
use crate::functions::Functions;
use crate::window;

/// Plans a query over `orders (id, customer, amount, tags, ts)`, `clicks (customer, url, at)` with event
/// times `ts` and `at` (the latter with a time zone), and the stream `flow (k, v, ts)`.
pub fn bind(sql: &str) -> Result<LogicalPlan> {
    let mut parser = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(sql)
        .expect("tokens");
    let statement = parser.parse_statement().expect("a statement");
    let catalog = TestCatalog::new();
    SqlToRel::new_with_options(
        &catalog,
        ParserOptions::from(&Functions::get().config().sql_parser),
    )
    .sql_statement_to_plan(statement)
}

pub fn table(name: &str, fields: Vec<Field>, event_time: Option<usize>) -> TableDef {
    let column = |f: &Field| ColumnDef {
        field: f.clone(),
        origin: ColumnOrigin::Physical,
        position: None,
    };
    TableDef {
        name: name.into(),
        position: None,
        connector: "single_file".into(),
        format: Some("json".into()),
        options: Options::default(),
        bounded: true,
        columns: fields.iter().map(column).collect(),
        schema: Arc::new(Schema::new(fields)),
        primary_key: vec![],
        event_time,
        watermark: None,
        idle_timeout: None,
        max_event_time_ahead: None,
        bad_data: BadData::Fail,
        reads_changelog: false,
        state_ttl: None,
        takes_updates: false,
        can_read: true,
        can_write: true,
    }
}

pub fn time(zone: Option<&str>) -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, zone.map(Into::into))
}

struct TestCatalog {
    tables: HashMap<&'static str, Arc<dyn TableSource>>,
    relations: Vec<Arc<dyn RelationPlanner>>,
    windows: HashMap<String, Arc<ScalarUDF>>,
}

impl TestCatalog {
    fn new() -> Self {
        let field = |name: &str, t| Field::new(name, t, true);
        let tags = DataType::new_list(DataType::Utf8, true);
        let orders = vec![
            field("id", DataType::Int64),
            field("customer", DataType::Utf8),
            field("amount", DataType::Float64),
            field("tags", tags),
            field("ts", time(None)),
        ];
        let clicks = vec![
            field("customer", DataType::Utf8),
            field("url", DataType::Utf8),
            field("at", time(Some("+00:00"))),
        ];
        let flow = vec![
            field("k", DataType::Utf8),
            field("v", DataType::Int64),
            field("ts", time(None)),
        ];
        let source = |def, kind| {
            Arc::new(StreamTable {
                def: Arc::new(def),
                kind,
            }) as Arc<dyn TableSource>
        };
        let tables = HashMap::from([
            (
                "orders",
                source(table("orders", orders, Some(4)), RelationKind::Table),
            ),
            (
                "clicks",
                source(table("clicks", clicks, Some(2)), RelationKind::Table),
            ),
            (
                "flow",
                source(table("flow", flow, None), RelationKind::Stream),
            ),
        ]);
        let windows = window::scalar_udfs()
            .into_iter()
            .map(|f| (f.name().to_string(), f))
            .collect();
        Self {
            tables,
            relations: window::relation_planners(),
            windows,
        }
    }
}

impl ContextProvider for TestCatalog {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        match self.tables.get(name.table()) {
            Some(table) => Ok(Arc::clone(table)),
            None => plan_err!("table '{name}' not found"),
        }
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relations
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        Functions::get().state().expr_planners()
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.windows
            .get(name)
            .or_else(|| Functions::get().state().scalar_functions().get(name))
            .cloned()
    }

    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        Functions::get()
            .state()
            .aggregate_functions()
            .get(name)
            .cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        Functions::get()
            .state()
            .window_functions()
            .get(name)
            .cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        Functions::get().config()
    }

    fn udf_names(&self) -> Vec<String> {
        vec![]
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        vec![]
    }

    fn udaf_names(&self) -> Vec<String> {
        vec![]
    }

    fn udwf_names(&self) -> Vec<String> {
        vec![]
    }
}
