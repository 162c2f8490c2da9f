//! A table whose records are a changelog (semantics 6): behind its source stands the operator that keeps its
//! rows by key, and behind that the columns that are computed from a row.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use thalweg_dataflow::marks;
use thalweg_dataflow::plan::{Exchange, Input, NodeId, Normalize, Op, OutputPort};
use thalweg_dataflow::table::SourceSpec;

use super::builder::Builder;
use crate::catalog::TableDef;
use crate::changelog;

/// A table made of its changelog.
pub(super) struct Normalized {
    /// Keeps the rows, and rejects the records that it cannot apply.
    pub rows: NodeId,
    /// Has the columns that the queries read.
    pub table: NodeId,
}

impl Builder {
    /// `time` is where the event time is among the columns of the table, if it is one of those that are read.
    pub fn normalized(
        &mut self,
        source: NodeId,
        spec: &Arc<SourceSpec>,
        def: &TableDef,
        time: Option<usize>,
    ) -> Normalized {
        let schema = row_schema(spec);
        let position = |name: &str| schema.index_of(name).ok();
        let key: Vec<usize> = spec
            .primary_key
            .iter()
            .filter_map(|&column| position(spec.schema.field(column).name()))
            .collect();
        let event_time = def
            .event_time
            .and_then(|time| position(def.schema.field(time).name()));
        let properties = changelog::normalize(&key, event_time);
        let edge = Input {
            node: source,
            port: OutputPort::Rows,
            exchange: Exchange::Changelog {
                key: key.clone(),
                op: schema.fields().len() + marks::OP,
            },
        };
        let normalize = Normalize {
            spec: Arc::clone(spec),
            key,
            ttl: def.state_ttl,
        };
        let rows = self.add(Op::Normalize(normalize), vec![edge], schema, properties);
        let table = self.project(rows, spec.columns.clone(), Arc::clone(&spec.schema));
        self.graph.nodes[table.0].properties.time_column = time;
        Normalized { rows, table }
    }
}

/// The columns of a record, as they are declared: what has become a row has a value where there must be one.
fn row_schema(spec: &SourceSpec) -> SchemaRef {
    let record = spec.record_schema();
    let declared = |name: &str| spec.declared.field_with_name(name).ok().cloned();
    let fields = record
        .fields()
        .iter()
        .map(|field| declared(field.name()).map_or_else(|| Arc::clone(field), Arc::new));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
