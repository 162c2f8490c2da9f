//! Dead letters: where the rejected records of the tables that are read go.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_dataflow::options::Direction;
use thalweg_dataflow::table::{BadData, dead_letter_schema};

use super::ScriptBinder;
use crate::bind::{BoundSink, RelationKind, is_assignable, scans, written_fields};
use crate::catalog::{Relation, TableDef};
use crate::error::{Fault, FaultKind, closest};
use crate::types::sql_name_of;

impl ScriptBinder {
    /// Finds the sinks of all dead letters. A sink takes those columns of a dead letter that it has, by
    /// name; its others are NULL.
    pub(super) fn find_dead_letter_sinks(&mut self) {
        let mut sources: BTreeMap<String, (Arc<TableDef>, String)> = BTreeMap::new();
        for query in self.out.queries.iter().chain(&self.out.explained) {
            for table in scans(&query.plan) {
                if let (RelationKind::Table, BadData::DeadLetter(target)) =
                    (table.kind, &table.def.bad_data)
                {
                    let target = target.clone();
                    sources
                        .entry(table.def.name.clone())
                        .or_insert((table.def, target));
                }
            }
        }
        sources.retain(|_, (_, target)| !self.broken.contains(target));
        for (source, target) in sources.into_values() {
            let position = self
                .option_positions
                .of(&source.name, "dead_letter")
                .or(source.position);
            match self.dead_letter_sink(&target) {
                Ok(sink) => drop(self.out.dead_letters.insert(target, sink)),
                Err(fault) => self.out.faults.push(fault.at(position)),
            }
        }
    }

    fn dead_letter_sink(&mut self, target: &str) -> Result<BoundSink, Fault> {
        let invalid = |what: &str| {
            Fault::new(
                FaultKind::InvalidOption,
                format!("dead_letter = '{target}': {what}"),
            )
        };
        let def = match self.out.catalog.relations.get(target) {
            Some(Relation::Table(def)) if def.can_write => Arc::clone(def),
            Some(_) => return Err(invalid("that is no table that can be written")),
            None => {
                let fault = invalid("that table does not exist");
                let known = closest(
                    target,
                    self.out.catalog.relations.keys().map(String::as_str),
                );
                return Err(match known {
                    Some(known) => fault.hint(format!("did you mean '{known}'?")),
                    None => fault,
                });
            }
        };
        if let Some(fault) = self
            .check_options(&def, Direction::Sink)
            .err()
            .and_then(|mut faults| faults.pop())
        {
            return Err(fault);
        }
        check_columns(&def).map_err(|(what, hint)| invalid(&what).hint(hint))?;
        self.sink(&def, RelationKind::Table)
    }
}

/// Whether a table can take dead letters; if not, why, and a hint.
fn check_columns(def: &TableDef) -> Result<(), (String, String)> {
    let letters = dead_letter_schema();
    let mut n_filled = 0;
    for field in written_fields(def) {
        match letters.field_with_name(field.name()) {
            Ok(letter) if is_assignable(letter.data_type(), field.data_type()) => n_filled += 1,
            Ok(letter) => {
                let (name, wanted) = (field.name(), sql_name_of(letter));
                let what = format!("its column \"{name}\" has type {}", sql_name_of(field));
                return Err((what, format!("declare it as {wanted}")));
            }
            Err(_) if field.is_nullable() => {}
            Err(_) => {
                let what = format!(
                    "its column \"{}\" is NOT NULL and gets no value",
                    field.name()
                );
                return Err((what, "leave NOT NULL out".to_string()));
            }
        }
    }
    if n_filled > 0 {
        return Ok(());
    }
    let names: Vec<_> = letters
        .fields()
        .iter()
        .map(|field| format!("\"{}\"", field.name()))
        .collect();
    Err((
        "that table has no column for dead letters".to_string(),
        format!("give it some of {}", names.join(", ")),
    ))
}
