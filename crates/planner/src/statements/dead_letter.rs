//! Dead letters: rejected records of a table on their way into another.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use thalweg_dataflow::options::Direction;
use thalweg_dataflow::table::{BadData, dead_letter_schema};

use super::ScriptBinder;
use crate::bind::{BoundQuery, RelationKind, StreamTable, assign, scans, written_fields};
use crate::catalog::{Relation, TableDef};
use crate::error::{Fault, FaultKind, Position, closest};
use crate::parse::statement::Name;
use crate::script::QueryKind;

impl ScriptBinder {
    /// Adds a query for every table read whose bad records are to be written. It fills those columns of
    /// the other table that dead letters have, by name.
    pub(super) fn add_dead_letters(&mut self) {
        let mut sources: BTreeMap<String, (Arc<TableDef>, String, usize)> = BTreeMap::new();
        for (index, query) in self.out.queries.iter().enumerate() {
            for table in scans(&query.plan)
                .into_iter()
                .filter(|table| table.kind == RelationKind::Table)
            {
                if let BadData::DeadLetter(target) = &table.def.bad_data {
                    let target = target.clone();
                    sources
                        .entry(table.def.name.clone())
                        .or_insert((table.def, target, index));
                }
            }
        }
        for (source, target, reader) in sources.into_values() {
            let position = self
                .option_positions
                .of(&source.name, "dead_letter")
                .or(source.position);
            match self.dead_letters(&source, &target, reader) {
                Ok(query) => self.out.queries.extend(query),
                Err(faults) => self
                    .faults
                    .extend(faults.into_iter().map(|fault| fault.at(position))),
            }
        }
    }

    /// `None` where the target's own statement is faulty.
    fn dead_letters(
        &mut self,
        source: &Arc<TableDef>,
        target: &str,
        reader: usize,
    ) -> Result<Option<BoundQuery>, Vec<Fault>> {
        if self.broken.contains(target) {
            return Ok(None);
        }
        let invalid = |message: String| vec![Fault::new(FaultKind::InvalidOption, message)];
        let def = match self.out.catalog.relations.get(target) {
            Some(Relation::Table(def)) if def.can_write => Arc::clone(def),
            Some(_) => {
                return Err(invalid(format!(
                    "dead_letter = '{target}': that is no table that can be written"
                )));
            }
            None => {
                let fault = Fault::new(
                    FaultKind::UndefinedTable,
                    format!("dead_letter = '{target}': that table does not exist"),
                );
                let known = closest(
                    target,
                    self.out.catalog.relations.keys().map(String::as_str),
                );
                return Err(vec![match known {
                    Some(known) => fault.hint(format!("did you mean '{known}'?")),
                    None => fault,
                }]);
            }
        };
        self.check_options(&def, Direction::Sink)?;
        let letters = dead_letter_schema();
        let place = Position { line: 1, column: 1 };
        let columns: Vec<Name> = written_fields(&def)
            .filter(|field| letters.column_with_name(field.name()).is_some())
            .map(|field| Name {
                text: field.name().clone(),
                position: place,
            })
            .collect();
        if columns.is_empty() {
            let names: Vec<_> = letters
                .fields()
                .iter()
                .map(|field| format!("\"{}\"", field.name()))
                .collect();
            let fault = invalid(format!(
                "dead_letter = '{target}': that table has no column for dead letters"
            ))
            .remove(0);
            return Err(vec![
                fault.hint(format!("give it some of {}", names.join(", "))),
            ]);
        }
        let scan = Arc::new(StreamTable {
            def: Arc::clone(source),
            kind: RelationKind::DeadLetters,
        });
        let exprs = columns
            .iter()
            .map(|name| Expr::Column(Column::from_name(&name.text)));
        let plan = LogicalPlanBuilder::scan(source.name.as_str(), scan, None)
            .and_then(|scan| scan.project(exprs.collect::<Vec<_>>()))
            .and_then(LogicalPlanBuilder::build)
            .map_err(|error| vec![Fault::from_datafusion(error)])?;
        // The names are ours: a fault belongs to the option, not to them.
        let unplaced = |mut fault: Fault| {
            fault.position = None;
            fault
        };
        let plan = assign(plan, &def, &columns, place)
            .map_err(|faults| faults.into_iter().map(unplaced).collect::<Vec<_>>())?;
        let sink = self
            .sink(&def, RelationKind::Table)
            .map_err(|fault| vec![fault])?;
        let reader = &self.out.queries[reader];
        Ok(Some(BoundQuery {
            kind: QueryKind::Insert,
            plan,
            sink,
            ..reader.clone()
        }))
    }
}
