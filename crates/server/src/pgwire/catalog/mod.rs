//! Questions about the catalog, in PostgreSQL's terms: what psql's `\d` asks, and what drivers ask when they connect.
//!
//! A small emulation of `pg_catalog` and `information_schema`: tables in memory that are made of our catalog for each
//! question, and DataFusion's batch engine to answer it. It is as large as the clients that we test with need.
//! Catalog tables of what does not exist here are always empty; a question about them alone has no rows, and is not
//! even planned.

mod functions;
mod relations;
mod rewrite;
mod tables;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, ObjectName, Query, SelectItem, SetExpr, TableFactor, Visit, Visitor,
};
use thalweg_planner::bind::{presentable, result_schema};
use thalweg_planner::catalog::Catalog;
use thalweg_planner::parse::statement::Statement;

use super::error::Failure;
use relations::Relations;

/// A query that the catalog answers.
pub struct Question {
    query: Box<Query>,
}

impl Question {
    /// The question that a statement is, if it is one: it names a catalog table, or nothing but functions that tell of
    /// the server.
    pub fn of(statement: &Statement, catalog: &Catalog) -> Option<Self> {
        let Statement::Query {
            query,
            subscribe: false,
        } = statement
        else {
            return None;
        };
        let mut names = Names::default();
        let _ = query.visit(&mut names);
        let own = |name: &ObjectName| {
            name.0.len() == 1 && catalog.relations.contains_key(&rewrite::last(name))
        };
        let is_question = if names.tables.is_empty() {
            names.functions.iter().any(functions::is_ours)
        } else {
            names
                .tables
                .iter()
                .any(|name| !own(name) && tables::is_known(name))
        };
        is_question.then(|| Self {
            query: query.clone(),
        })
    }

    /// What the answer looks like.
    pub fn schema(&self, catalog: &Catalog) -> Result<SchemaRef, Failure> {
        if let Some(schema) = self.nothing() {
            return Ok(schema);
        }
        let (context, query) = self.context(catalog, "")?;
        let plan = futures::executor::block_on(plan(&context, query))?;
        Ok(result_schema(&plan))
    }

    pub async fn answer(self, catalog: &Catalog, user: &str) -> Result<RecordBatch, Failure> {
        if let Some(schema) = self.nothing() {
            return Ok(RecordBatch::new_empty(schema));
        }
        let (context, query) = self.context(catalog, user)?;
        let plan = plan(&context, query).await?;
        let schema = result_schema(&plan);
        let frame = context.execute_logical_plan(plan).await.map_err(failed)?;
        let batches = frame.collect().await.map_err(failed)?;
        let columns = concat_batches(&frame_schema(&batches, &schema), &batches);
        let columns = columns.map_err(Failure::internal)?;
        // Nullability may differ between what was planned and what came.
        RecordBatch::try_new(schema, columns.columns().to_vec()).map_err(Failure::internal)
    }

    /// The columns of a question that is about tables which are always empty, and so has no rows.
    fn nothing(&self) -> Option<SchemaRef> {
        let columns = nothing_of(&self.query.body)?;
        let fields = columns
            .into_iter()
            .map(|name| Field::new(name, DataType::Utf8, true));
        Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    fn context(&self, catalog: &Catalog, user: &str) -> Result<(SessionContext, Query), Failure> {
        let relations = Relations::of(catalog);
        let config = SessionConfig::new()
            .with_target_partitions(1)
            .with_information_schema(false)
            .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false);
        let state = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config);
        let context = SessionContext::new_with_state(state.build());
        for (name, batch) in tables::all(&relations, user).map_err(Failure::internal)? {
            context.register_batch(&name, batch).map_err(failed)?;
        }
        functions::register(&context, &relations, user);
        let mut query = self.query.as_ref().clone();
        rewrite::rewrite(&mut query, &relations)?;
        Ok((context, query))
    }
}

async fn plan(context: &SessionContext, query: Query) -> Result<LogicalPlan, Failure> {
    let statement = ast::Statement::Query(Box::new(query));
    let statement = DataFusionStatement::Statement(Box::new(statement));
    let plan = context
        .state()
        .statement_to_plan(statement)
        .await
        .map_err(failed)?;
    presentable(plan).map_err(|fault| Failure::of_faults(&[fault], ""))
}

fn frame_schema(batches: &[RecordBatch], planned: &SchemaRef) -> SchemaRef {
    batches
        .first()
        .map_or_else(|| planned.clone(), RecordBatch::schema)
}

/// The engine behind the emulation is not what the user talks to: its words are the detail.
fn failed(error: DataFusionError) -> Failure {
    let mut failure = Failure::unsupported("this question about the catalog is not supported");
    failure.detail = Some(error.strip_backtrace());
    failure.hint("SHOW TABLES, DESCRIBE t and SHOW JOBS tell what there is")
}

/// Tables and functions that a query names, its own CTEs left out.
#[derive(Default)]
struct Names {
    tables: Vec<ObjectName>,
    functions: Vec<ObjectName>,
    ctes: BTreeSet<String>,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        self.ctes
            .extend(ctes.map(|cte| cte.alias.name.value.to_lowercase()));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, .. } = factor
            && !(name.0.len() == 1 && self.ctes.contains(&rewrite::last(name)))
        {
            self.tables.push(name.clone());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            self.functions.push(function.name.clone());
        }
        ControlFlow::Continue(())
    }
}

/// The names of the columns of a query without rows.
fn nothing_of(body: &SetExpr) -> Option<Vec<String>> {
    match body {
        SetExpr::Select(select) => {
            let mut joined = select.from.iter().flat_map(|from| {
                let inner = from.joins.iter().filter(|join| rewrite::is_inner(join));
                std::iter::once(&from.relation).chain(inner.map(|join| &join.relation))
            });
            let is_empty = |factor: &TableFactor| match factor {
                TableFactor::Table { name, .. } => tables::is_always_empty(name),
                _ => false,
            };
            if !joined.any(is_empty) {
                return None;
            }
            select.projection.iter().map(column_name).collect()
        }
        SetExpr::SetOperation { left, right, .. } => {
            nothing_of(right)?;
            nothing_of(left)
        }
        SetExpr::Query(query) => nothing_of(&query.body),
        _ => None,
    }
}

/// `None`: the columns of a table, which nobody has declared.
fn column_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(expr) => Some(match expr {
            Expr::Identifier(ident) => ident.value.clone(),
            Expr::CompoundIdentifier(parts) => parts.last()?.value.clone(),
            Expr::Function(function) => rewrite::last(&function.name),
            Expr::Cast { expr, .. } => {
                column_name(&SelectItem::UnnamedExpr(expr.as_ref().clone()))?
            }
            _ => "?column?".to_string(),
        }),
        _ => None,
    }
}
