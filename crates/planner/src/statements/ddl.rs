//! CREATE and DROP.

use std::sync::Arc;

use super::{BoundOutcome, ScriptBinder};
use crate::bind::Scope;
use crate::bind::{
    Assignment, Bound, BoundQuery, Places, RelationKind, bind_view, presentable, result_schema,
};
use crate::catalog::{Relation, ViewDef};
use crate::declare::declare;
use crate::error::{Fault, FaultKind, Position};
use crate::parse::statement::{CreateTable, CreateView, Drop, DropKind, Name};
use crate::script::QueryKind;

impl ScriptBinder {
    pub(super) fn create_table(
        &mut self,
        create: &CreateTable,
        position: Position,
    ) -> Result<BoundOutcome, Vec<Fault>> {
        if let Some(existing) = self.existing(&create.name) {
            match self.out.catalog.relations.get(&create.name.text) {
                _ if create.if_not_exists => return Ok(BoundOutcome::Done("CREATE TABLE")),
                Some(Relation::Table(_) | Relation::Stream(_)) if create.or_replace => {
                    self.check_unused(&create.name, "replaced")?;
                    self.checked
                        .retain(|(checked, _)| *checked != create.name.text);
                }
                _ => return Err(vec![existing]),
            }
        }
        self.option_positions.add(create);
        if create.query.is_none() {
            let found = self.found.get(&self.statement);
            let relation = declare(create, None, found, self.registry.as_ref())
                .inspect_err(|_| self.break_name(&create.name))?;
            self.register(&create.name, relation);
            return Ok(BoundOutcome::Done("CREATE TABLE"));
        }
        let bound = self.create_table_as(create, position);
        let (relation, query) = bound.inspect_err(|_| {
            self.break_name(&create.name);
            self.query_failed = true;
        })?;
        if matches!(relation, Relation::Stream(_)) {
            self.filled.insert(create.name.text.clone());
        }
        self.register(&create.name, relation);
        Ok(self.add_query(query))
    }

    /// The table and the query that fills it, neither registered.
    pub(super) fn create_table_as(
        &mut self,
        create: &CreateTable,
        position: Position,
    ) -> Result<(Relation, BoundQuery), Vec<Fault>> {
        let query = create.query.as_deref().expect("asked for by the caller");
        let bound = self.bind_query(query)?;
        let plan = presentable(bound.plan).map_err(|fault| vec![fault])?;
        let relation = declare(
            create,
            Some(&result_schema(&plan)),
            None,
            self.registry.as_ref(),
        )?;
        let (def, kind) = match &relation {
            Relation::Table(def) => (Arc::clone(def), RelationKind::Table),
            Relation::Stream(def) => (Arc::clone(def), RelationKind::Stream),
            Relation::View(_) => unreachable!("a table was declared"),
        };
        let at_name = |message: String| {
            vec![Fault::new(FaultKind::InvalidOption, message).at(Some(create.name.position))]
        };
        if !def.can_write {
            return Err(at_name(format!(
                "table \"{}\" cannot be written, so a query cannot fill it",
                def.name
            )));
        }
        if kind == RelationKind::Table {
            self.check_options(&def, thalweg_dataflow::options::Direction::Sink)?;
        }
        let assignment = Assignment {
            table: &def,
            names: &[],
            places: Places::of_query(query),
            at: position,
        };
        let bound = Bound {
            plan: assignment.assign(plan)?,
            used: bound.used,
        };
        let sink = self.sink(&def, kind).map_err(|fault| vec![fault])?;
        Ok((
            relation,
            self.bound(QueryKind::CreateTableAs, bound, sink, position),
        ))
    }

    pub(super) fn create_view(&mut self, create: CreateView) -> Result<BoundOutcome, Vec<Fault>> {
        if let Some(existing) = self.existing(&create.name) {
            match self.out.catalog.relations.get(&create.name.text) {
                _ if create.if_not_exists => return Ok(BoundOutcome::Done("CREATE VIEW")),
                Some(Relation::View(_)) if create.or_replace => {
                    self.check_unused(&create.name, "replaced")?
                }
                _ => return Err(vec![existing]),
            }
        }
        let names: Vec<String> = create
            .columns
            .iter()
            .map(|name| name.text.clone())
            .collect();
        let scope = Scope {
            catalog: &self.out.catalog,
            broken: &self.broken,
            fixtures: None,
        };
        let bound = bind_view(&create.query, &names, &scope);
        let bound = bound.inspect_err(|_| self.break_name(&create.name))?;
        if bound.used.contains(&create.name.text) {
            let message = format!("view \"{}\" refers to itself", create.name.text);
            return Err(vec![
                Fault::new(FaultKind::Unsupported, message).at(Some(create.name.position)),
            ]);
        }
        let view = ViewDef {
            name: create.name.text.clone(),
            position: Some(create.name.position),
            columns: names,
            query: Arc::new(*create.query),
            uses: bound.used,
        };
        self.register(&create.name, Relation::View(Arc::new(view)));
        Ok(BoundOutcome::Done("CREATE VIEW"))
    }

    pub(super) fn drop_relations(&mut self, drop: &Drop) -> Result<BoundOutcome, Vec<Fault>> {
        let (tag, what) = match drop.kind {
            DropKind::Table => ("DROP TABLE", "table"),
            DropKind::View => ("DROP VIEW", "view"),
        };
        for name in &drop.names {
            if self.broken.remove(&name.text) {
                continue;
            }
            let is_view = match self.out.catalog.relations.get(&name.text) {
                None if drop.if_exists => continue,
                None => return Err(vec![self.undefined(what, name)]),
                Some(relation) => matches!(relation, Relation::View(_)),
            };
            if is_view != (drop.kind == DropKind::View) {
                let (is, hint) = if is_view {
                    ("view", "DROP VIEW")
                } else {
                    ("table", "DROP TABLE")
                };
                let fault = Fault::new(
                    FaultKind::InvalidType,
                    format!("\"{}\" is a {is}", name.text),
                );
                return Err(vec![
                    fault.at(Some(name.position)).hint(format!("use {hint}")),
                ]);
            }
            self.check_unused(name, "dropped")?;
            self.out.catalog.relations.remove(&name.text);
            self.checked.retain(|(checked, _)| *checked != name.text);
        }
        Ok(BoundOutcome::Done(tag))
    }

    /// The fault of creating what is there, where it is.
    fn existing(&self, name: &Name) -> Option<Fault> {
        let (what, position) = match self.out.catalog.relations.get(&name.text)? {
            Relation::Table(def) | Relation::Stream(def) => ("table", def.position),
            Relation::View(def) => ("view", def.position),
        };
        let fault = Fault::new(
            FaultKind::DuplicateObject,
            format!("{what} \"{}\" already exists", name.text),
        );
        let fault = fault.at(Some(name.position));
        Some(match position {
            Some(Position { line, column }) => {
                fault.hint(format!("it was created at {line}:{column}"))
            }
            None => fault,
        })
    }

    fn check_unused(&self, name: &Name, change: &str) -> Result<(), Vec<Fault>> {
        let user = self
            .out
            .catalog
            .relations
            .values()
            .find_map(|relation| match relation {
                Relation::View(view)
                    if view.name != name.text && view.uses.contains(&name.text) =>
                {
                    Some(&view.name)
                }
                _ => None,
            });
        let (user, hint) = match (user, self.in_use.get(&name.text)) {
            (Some(view), _) => (
                format!("view \"{view}\" reads it"),
                format!("DROP VIEW {view} first"),
            ),
            (None, Some(job)) => (
                format!("job \"{job}\" uses it"),
                format!("DROP JOB {job} first"),
            ),
            (None, None) => return Ok(()),
        };
        let message = format!("\"{}\" cannot be {change}: {user}", name.text);
        let fault = Fault::new(FaultKind::InUse, message).at(Some(name.position));
        Err(vec![fault.hint(hint)])
    }

    fn register(&mut self, name: &Name, relation: Relation) {
        self.broken.remove(&name.text);
        self.out
            .catalog
            .relations
            .insert(name.text.clone(), relation);
    }

    fn break_name(&mut self, name: &Name) {
        self.broken.insert(name.text.clone());
    }
}
