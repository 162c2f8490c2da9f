//! SHOW and DESCRIBE.

use super::{BoundOutcome, ScriptBinder};
use crate::bind::{Scope, bind_view, result_schema};
use crate::catalog::{ColumnOrigin, Relation, TableDef};
use crate::error::Fault;
use crate::parse::statement::Name;
use crate::types::sql_name_of;

impl ScriptBinder {
    pub(super) fn show_all(&self) -> BoundOutcome {
        let row = |(decl, value): (&crate::settings::SettingDecl, &str)| {
            vec![
                decl.name.to_string(),
                value.to_string(),
                decl.meaning.to_string(),
            ]
        };
        rows(
            &["name", "setting", "description"],
            self.out.settings.all().map(row).collect(),
        )
    }

    pub(super) fn show_setting(&self, name: &Name) -> Result<BoundOutcome, Fault> {
        let (name, value) = self.out.settings.show(name)?;
        Ok(rows(&[name], vec![vec![value.to_string()]]))
    }

    pub(super) fn show_tables(&self) -> BoundOutcome {
        let row = |(name, relation): (&String, &Relation)| {
            let (kind, connector) = match relation {
                Relation::Table(def) => ("table", def.connector.as_str()),
                Relation::Stream(_) => ("intermediate stream", ""),
                Relation::View(_) => ("view", ""),
            };
            vec![name.clone(), kind.to_string(), connector.to_string()]
        };
        rows(
            &["name", "type", "connector"],
            self.out.catalog.relations.iter().map(row).collect(),
        )
    }

    /// The columns of a relation.
    pub(super) fn describe(&self, name: &Name) -> Result<BoundOutcome, Vec<Fault>> {
        const COLUMNS: [&str; 4] = ["column", "type", "nullable", "notes"];
        if self.broken.contains(&name.text) {
            return Err(Vec::new());
        }
        let described = match self.out.catalog.relations.get(&name.text) {
            None => return Err(vec![self.undefined("table", name)]),
            Some(Relation::Table(def) | Relation::Stream(def)) => (0..def.columns.len())
                .map(|index| describe_column(def, index))
                .collect(),
            Some(Relation::View(view)) => {
                let scope = Scope {
                    catalog: &self.out.catalog,
                    broken: &self.broken,
                    fixtures: None,
                };
                let schema = result_schema(&bind_view(&view.query, &view.columns, &scope)?.plan);
                let column = |field: &arrow::datatypes::FieldRef| described(field, String::new());
                schema.fields().iter().map(column).collect()
            }
        };
        Ok(rows(&COLUMNS, described))
    }
}

fn describe_column(def: &TableDef, index: usize) -> Vec<String> {
    let column = &def.columns[index];
    let mut notes = Vec::new();
    if def.primary_key.contains(&index) {
        notes.push("primary key".to_string());
    }
    if def.event_time == Some(index) {
        notes.push("event time".to_string());
    }
    match &column.origin {
        ColumnOrigin::Physical => {}
        ColumnOrigin::Metadata(key) => notes.push(format!("metadata from '{key}'")),
        ColumnOrigin::Generated(expr) => notes.push(format!("generated as {expr}")),
    }
    described(&column.field, notes.join(", "))
}

fn described(field: &arrow::datatypes::Field, notes: String) -> Vec<String> {
    let nullable = if field.is_nullable() { "yes" } else { "no" };
    vec![
        field.name().clone(),
        sql_name_of(field),
        nullable.to_string(),
        notes,
    ]
}

fn rows(columns: &[&str], rows: Vec<Vec<String>>) -> BoundOutcome {
    BoundOutcome::Rows {
        columns: columns.iter().map(|c| c.to_string()).collect(),
        rows,
    }
}
