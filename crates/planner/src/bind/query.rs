//! A query as the binder leaves it, for `physical` to lower.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::logical_expr::LogicalPlan;
use thalweg_dataflow::options::Options;

use super::assign::written_fields;
use super::limit::RowLimit;
use super::stream_table::RelationKind;
use crate::catalog::TableDef;
use crate::error::{Fault, FaultKind, Position};
use crate::script::{QueryKind, RESULT_CONNECTOR};
use crate::settings::QuerySettings;

/// One query of a script and where its result goes.
#[derive(Debug, Clone)]
pub struct BoundQuery {
    /// Index of the statement in the script.
    pub statement: usize,
    pub kind: QueryKind,
    /// Fields have exactly the names and types of `sink.schema`, in that order: assignment casts and
    /// the NULLs of left-out columns are part of the plan. A field may be nullable where the sink's is
    /// not: a NULL there is found when it is written.
    pub plan: LogicalPlan,
    pub sink: BoundSink,
    /// Which rows of the result are wanted, where not all.
    pub limit: Option<RowLimit>,
    /// The relations that it names, through views too.
    pub uses: BTreeSet<String>,
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

impl BoundSink {
    /// Of a statement without a table of its own.
    pub fn result(statement: usize, schema: SchemaRef) -> Self {
        let (primary_key, takes_updates) = (Vec::new(), true);
        Self {
            table: statement.to_string(),
            target: SinkTarget::result(),
            schema,
            primary_key,
            takes_updates,
        }
    }

    /// Of a table, or in a dry run of what stands in for it.
    ///
    /// Errors: a key that is not written.
    pub fn of_table(def: &Arc<TableDef>, kind: RelationKind, dry_run: bool) -> Result<Self, Fault> {
        let schema = Arc::new(Schema::new(
            written_fields(def).cloned().collect::<Vec<_>>(),
        ));
        let mut primary_key = Vec::new();
        for field in def
            .primary_key
            .iter()
            .map(|&index| &def.columns[index].field)
        {
            let Ok(position) = schema.index_of(field.name()) else {
                let message = format!(
                    "column \"{}\" of the PRIMARY KEY of table \"{}\" is not written",
                    field.name(),
                    def.name
                );
                return Err(Fault::new(FaultKind::InvalidOption, message)
                    .hint("a sink's key consists of columns that it writes"));
            };
            primary_key.push(position);
        }
        let result = dry_run && kind == RelationKind::Table;
        let target = match kind {
            _ if result => SinkTarget::result(),
            RelationKind::Stream => SinkTarget::Stream(Arc::clone(def)),
            RelationKind::Table => SinkTarget::Connector {
                connector: def.connector.clone(),
                format: def.format.clone(),
                options: def.options.clone(),
            },
        };
        Ok(Self {
            table: def.name.clone(),
            target,
            schema,
            primary_key,
            takes_updates: result || def.takes_updates,
        })
    }
}

impl SinkTarget {
    fn result() -> Self {
        Self::Connector {
            connector: RESULT_CONNECTOR.to_string(),
            format: None,
            options: Options::default(),
        }
    }
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
