//! What a table scan of a bound plan points at.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::logical_expr::TableSource;

use crate::catalog::TableDef;

/// A table or an intermediate stream, as a `TableSource`. Get it back from a scan with
/// `scan.source.downcast_ref::<StreamTable>()`.
///
/// It exposes no constraints: DataFusion removes joins and turns inner joins into semi joins where
/// it is told of a primary key, and a source's key is a claim that nobody enforces.
#[derive(Debug, Clone)]
pub struct StreamTable {
    pub def: Arc<TableDef>,
    pub kind: RelationKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationKind {
    /// Read through a connector.
    Table,
    /// Filled by another query of the same script.
    Stream,
}

impl TableSource for StreamTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.def.schema)
    }
}
