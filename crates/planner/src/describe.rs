//! What relations look like, for whoever lists them.

use std::collections::BTreeSet;

use arrow::datatypes::Field;

use crate::bind::{Scope, bind_view, result_schema};
use crate::catalog::{Catalog, Relation};

/// The columns of a relation, none where there is no such relation. A view's are those of its query.
pub fn columns(catalog: &Catalog, name: &str) -> Vec<Field> {
    match catalog.relations.get(name) {
        None => Vec::new(),
        Some(Relation::Table(def) | Relation::Stream(def)) => def
            .columns
            .iter()
            .map(|column| column.field.clone())
            .collect(),
        Some(Relation::View(view)) => {
            let scope = Scope {
                catalog,
                broken: &BTreeSet::new(),
                fixtures: None,
            };
            // It bound when it was created, and what it reads cannot have been dropped since.
            let bound = bind_view(&view.query, &view.columns, &scope);
            let schema = bound.map(|bound| result_schema(&bound.plan));
            schema.map_or_else(
                |_| Vec::new(),
                |schema| {
                    schema
                        .fields()
                        .iter()
                        .map(|field| field.as_ref().clone())
                        .collect()
                },
            )
        }
    }
}
