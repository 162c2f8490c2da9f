//! DataFusion's analyzer and the part of its optimizer that is right for a plan that runs for ever.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::decorrelate_lateral_join::DecorrelateLateralJoin;
use datafusion::optimizer::decorrelate_predicate_subquery::DecorrelatePredicateSubquery;
use datafusion::optimizer::eliminate_cross_join::EliminateCrossJoin;
use datafusion::optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion::optimizer::eliminate_filter::EliminateFilter;
use datafusion::optimizer::eliminate_join::EliminateJoin;
use datafusion::optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::filter_null_join_keys::FilterNullJoinKeys;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimize_unions::OptimizeUnions;
use datafusion::optimizer::propagate_empty_relation::PropagateEmptyRelation;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::rewrite_set_comparison::RewriteSetComparison;
use datafusion::optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerContext, OptimizerRule};

use crate::functions::Functions;

/// Checks and coerces types, then optimises. `plan` has been through [`crate::rewrite::rewrite`].
pub fn optimize(plan: LogicalPlan, functions: &Functions) -> Result<LogicalPlan> {
    let analyzed = functions
        .analyzer()
        .execute_and_check(plan, functions.config(), |_, _| {})?;
    // Without a start time now() and its like are not frozen to the moment of planning.
    let context = OptimizerContext::new_with_config_options(Arc::clone(functions.config()))
        .without_query_execution_start_time();
    Optimizer::with_rules(rules()).optimize(analyzed, &context, |_, _| {})
}

/// DataFusion's rules in its order, but for those that do harm here:
///
/// - `replace_distinct_aggregate` plans DISTINCT ON by a sort in mid-plan;
/// - `push_down_limit` and `eliminate_limit` put limits into scans, where a changelog cannot have them;
/// - `eliminate_group_by_constant` fails where one key is computed from another (GROUP BY a, CAST(a AS TEXT));
/// - `single_distinct_aggregation_to_group_by` makes two aggregates of one, with keyed state for each;
/// - `common_sub_expression_eliminate`, `extract_leaf_expressions` and `push_down_leaf_projections` change
///   the shape of the plan with every detail of the query, and with it the names of its state;
/// - `unions_to_filter` takes two scans of a source for one.
fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    vec![
        Arc::new(RewriteSetComparison::new()),
        Arc::new(OptimizeUnions::new()),
        Arc::new(SimplifyExpressions::new()),
        Arc::new(EliminateJoin::new()),
        Arc::new(DecorrelatePredicateSubquery::new()),
        Arc::new(ScalarSubqueryToJoin::new()),
        Arc::new(DecorrelateLateralJoin::new()),
        Arc::new(ExtractEquijoinPredicate::new()),
        Arc::new(EliminateDuplicatedExpr::new()),
        Arc::new(EliminateFilter::new()),
        Arc::new(EliminateCrossJoin::new()),
        Arc::new(PropagateEmptyRelation::new()),
        Arc::new(FilterNullJoinKeys::default()),
        Arc::new(EliminateOuterJoin::new()),
        Arc::new(PushDownFilter::new()),
        Arc::new(OptimizeProjections::new()),
    ]
}
