//! The catalog: tables, views and intermediate streams by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast;
use thalweg_dataflow::options::Options;
use thalweg_dataflow::table::BadData;

use crate::error::Position;

#[derive(Debug, Clone, Default)]
pub struct Catalog {
    pub relations: BTreeMap<String, Relation>,
}

impl Catalog {
    /// Whether nothing was created, replaced or dropped between the two. Cheap: definitions are shared.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |(a, b): (&Relation, &Relation)| match (a, b) {
            (Relation::Table(a), Relation::Table(b))
            | (Relation::Stream(a), Relation::Stream(b)) => Arc::ptr_eq(a, b),
            (Relation::View(a), Relation::View(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        self.relations.len() == other.relations.len()
            && self.relations.keys().eq(other.relations.keys())
            && self
                .relations
                .values()
                .zip(other.relations.values())
                .all(same)
    }

    /// Forgets where relations were declared, which means nothing in another script.
    pub fn forget_positions(&mut self) {
        for relation in self.relations.values_mut() {
            match relation {
                Relation::Table(def) | Relation::Stream(def) if def.position.is_some() => {
                    let def = Arc::make_mut(def);
                    def.position = None;
                    def.columns
                        .iter_mut()
                        .for_each(|column| column.position = None);
                }
                Relation::View(def) if def.position.is_some() => Arc::make_mut(def).position = None,
                _ => {}
            }
        }
    }
}

#[derive(Debug, Clone)]
pub enum Relation {
    /// A table with a connector.
    Table(Arc<TableDef>),
    /// A table without one: an intermediate stream, filled by one INSERT.
    Stream(Arc<TableDef>),
    View(Arc<ViewDef>),
}

/// A table as declared. Expressions stay SQL until a query binds them.
#[derive(Debug, Clone)]
pub struct TableDef {
    pub name: String,
    pub position: Option<Position>,
    /// Empty for an intermediate stream.
    pub connector: String,
    pub format: Option<String>,
    pub options: Options,
    pub bounded: bool,
    pub columns: Vec<ColumnDef>,
    /// What a query sees: one field per column.
    pub schema: SchemaRef,
    /// Positions in `columns`.
    pub primary_key: Vec<usize>,
    /// Position in `columns` of the event time, from `WATERMARK FOR` or `event_time_field`.
    pub event_time: Option<usize>,
    /// The expression of `WATERMARK FOR … AS expr`.
    pub watermark: Option<ast::Expr>,
    /// Nanoseconds.
    pub idle_timeout: Option<i64>,
    /// Nanoseconds.
    pub max_event_time_ahead: Option<i64>,
    pub bad_data: BadData,
    /// Reading it gives a changelog, whose records replace each other by the primary key.
    pub reads_changelog: bool,
    /// Nanoseconds of event time that a row of a changelog is kept after its last change; `None`: for ever.
    pub state_ttl: Option<i64>,
    /// Writing can express updates and deletes.
    pub takes_updates: bool,
    pub can_read: bool,
    pub can_write: bool,
}

impl TableDef {
    /// The columns that a record holds, in the order of their declaration.
    pub fn record_schema(&self) -> SchemaRef {
        let physical = self
            .columns
            .iter()
            .filter(|c| matches!(c.origin, ColumnOrigin::Physical));
        Arc::new(Schema::new(
            physical.map(|c| c.field.clone()).collect::<Vec<_>>(),
        ))
    }
}

#[derive(Debug, Clone)]
pub struct ColumnDef {
    pub field: Field,
    pub origin: ColumnOrigin,
    pub position: Option<Position>,
}

#[derive(Debug, Clone)]
pub enum ColumnOrigin {
    /// Decoded from the record.
    Physical,
    /// `METADATA FROM 'key'`.
    Metadata(String),
    /// `GENERATED ALWAYS AS (expr)`: computed from the other columns on reading, never written.
    Generated(Box<ast::Expr>),
}

#[derive(Debug, Clone)]
pub struct ViewDef {
    pub name: String,
    pub position: Option<Position>,
    pub columns: Vec<String>,
    pub query: Arc<ast::Query>,
    /// The relations that it names, directly or through other views.
    pub uses: BTreeSet<String>,
}
