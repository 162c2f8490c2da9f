//! Binding a query and giving it a sink.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::sql::sqlparser::ast::Query;

use super::ast::normalized;
use super::blame::{blame, faults_of_parts};
use super::check::check_types;
use super::context::{BindContext, Scope};
use super::stream_table::StreamTable;
use super::view::{plan_normalized, rename};
use crate::error::Fault;
use crate::functions::Functions;
use crate::refuse::refuse;
use crate::rewrite;

/// The types of a query's parameters, by number, as far as binding it tells.
pub fn parameter_types(
    query: &Query,
    scope: &Scope<'_>,
) -> Result<BTreeMap<usize, DataType>, Fault> {
    let plan = plan_normalized(&BindContext::new(scope), normalized(query));
    let types = plan.and_then(|plan| plan.get_parameter_types());
    let types = types.map_err(Fault::from_datafusion)?;
    let known = types.into_iter().filter_map(|(name, data_type)| {
        let number = name.strip_prefix('$')?.parse().ok()?;
        Some((number, data_type?))
    });
    Ok(known.collect())
}

/// A query's plan, and the relations that it names, through views too.
pub struct Bound {
    pub plan: LogicalPlan,
    pub used: BTreeSet<String>,
}

/// Binds a query. Its columns have types that a sink can be given, and distinct names.
///
/// Errors: every fault found; none at all where the query names a relation whose own statement is
/// faulty.
pub fn bind_query(query: &Query, scope: &Scope<'_>) -> Result<Bound, Vec<Fault>> {
    bind_view(query, &[], scope)
}

/// Binds a view's query, whose columns `names` rename where there are any.
pub fn bind_view(query: &Query, names: &[String], scope: &Scope<'_>) -> Result<Bound, Vec<Fault>> {
    let query = normalized(query);
    let mut faults = refuse(&query);
    let context = BindContext::new(scope);
    let checked = checked_plan(&context, query.clone());
    let plan = checked.and_then(|plan| rename(plan, names).map_err(Fault::from_datafusion));
    match plan {
        Ok(plan) if faults.is_empty() => {
            check_names(&plan).map_err(|fault| vec![blame(&query, fault, &|_| None)])?;
            Ok(Bound {
                plan,
                used: context.used(),
            })
        }
        Ok(_) => Err(faults),
        Err(_) if context.met_broken() => Err(faults),
        Err(fault) => {
            // What was refused may well be what did not bind.
            if faults.is_empty() || fault.position.is_some() {
                let check = |part: Query| checked_plan(&BindContext::new(scope), part).err();
                faults.push(blame(&query, fault, &check));
                faults.extend(faults_of_parts(&query, &check));
            }
            Err(faults)
        }
    }
}

/// The plan of a query whose types have been checked and whose constants can be computed. It has the
/// casts that bring operands together, for those can change the types of the result, and a sink's casts start
/// from what the query really gives; what else checking made of it is thrown away.
fn checked_plan(context: &BindContext<'_>, query: Query) -> Result<LogicalPlan, Fault> {
    let plan = plan_normalized(context, query).map_err(Fault::from_datafusion)?;
    rewrite::check(&plan)?;
    check_types(plan.clone())?;
    TypeCoercion::new()
        .analyze(plan, Functions::get().config())
        .map_err(Fault::from_datafusion)
}

/// Columns of a result are told apart by name alone.
fn check_names(plan: &LogicalPlan) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    match plan
        .schema()
        .fields()
        .iter()
        .find(|field| !seen.insert(field.name()))
    {
        None => Ok(()),
        Some(field) => Err(Fault::duplicate_column(field.name())),
    }
}

/// The schema of a plan's result.
pub fn result_schema(plan: &LogicalPlan) -> SchemaRef {
    let fields = plan
        .schema()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone());
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

/// The tables and streams that a plan scans.
pub fn scans(plan: &LogicalPlan) -> Vec<StreamTable> {
    let mut scans = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = scan.source.downcast_ref::<StreamTable>()
        {
            scans.push(table.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .expect("the visit itself does not fail");
    scans
}
