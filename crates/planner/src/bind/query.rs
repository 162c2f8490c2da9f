//! A query as the binder leaves it, for `physical` to lower.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
use thalweg_dataflow::options::Options;

use crate::catalog::TableDef;
use crate::error::Position;
use crate::script::{QueryKind, RESULT_CONNECTOR};
use crate::settings::QuerySettings;

/// One query of a script and where its result goes.
#[derive(Debug, Clone)]
pub struct BoundQuery {
    /// Index of the statement in the script.
    pub statement: usize,
    pub kind: QueryKind,
    /// Fields have exactly the names and types of `sink.schema`, in that order: assignment casts and
    /// the NULLs of left-out columns are part of the plan.
    pub plan: LogicalPlan,
    pub sink: BoundSink,
    /// The settings that held at the statement.
    pub settings: QuerySettings,
    /// Where the query begins, for faults that name no part of it.
    pub position: Option<Position>,
}

/// Where a query's result goes.
#[derive(Debug, Clone)]
pub struct BoundSink {
    /// The table's name; of a bare SELECT, the decimal index of the statement.
    pub table: String,
    pub target: SinkTarget,
    pub schema: SchemaRef,
    /// Positions in `schema` of the declared PRIMARY KEY, empty where there is none.
    pub primary_key: Vec<usize>,
    /// Whether an updating result can be written.
    pub takes_updates: bool,
}

#[derive(Debug, Clone)]
pub enum SinkTarget {
    /// Out of the dataflow, through a connector.
    Connector {
        connector: String,
        format: Option<String>,
        options: Options,
    },
    /// Into an intermediate stream that other queries of the script read.
    Stream(Arc<TableDef>),
}

impl BoundSink {
    /// Whether the rows go to whoever asked, as those of a bare SELECT.
    pub fn is_result(&self) -> bool {
        matches!(&self.target, SinkTarget::Connector { connector, .. } if connector == RESULT_CONNECTOR)
    }
}
