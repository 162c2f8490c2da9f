//! What this version does not plan, found in the query's text so that the fault has a position.
//!
//! Everything here is refused again on plan nodes, where a spelling slipped through.

mod factor;

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, DuplicateTreatment, Expr, Function, FunctionArguments, GroupByExpr, LimitClause,
    ObjectName, OrderByKind, Query, Select, SetExpr, SetOperator, Spanned, TableFactor, Value,
    Visit, Visitor,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::bind::position_of;
use crate::error::{Fault, FaultKind, Position};
use crate::types::field_of;

/// Faults of everything in `query` that is not supported yet.
pub fn refuse(query: &Query) -> Vec<Fault> {
    let mut refusals = Refusals::default();
    let _ = query.visit(&mut refusals);
    refusals.faults
}

#[derive(Default)]
struct Refusals {
    faults: Vec<Fault>,
    /// Subqueries that stand among the arguments of a function in FROM.
    relations: Vec<Span>,
}

impl Refusals {
    fn refuse(&mut self, what: &str, span: Span) {
        let position = (span.start.line > 0).then(|| Position::from(span.start));
        self.faults.push(
            Fault::new(FaultKind::Unsupported, format!("{what} not supported yet")).at(position),
        );
    }

    fn refuse_with_hint(&mut self, what: &str, span: Span, hint: &str) {
        self.refuse(what, span);
        let fault = self.faults.pop().expect("pushed just now");
        self.faults.push(fault.hint(hint));
    }

    fn set_operations(&mut self, body: &SetExpr) {
        let SetExpr::SetOperation {
            op, left, right, ..
        } = body
        else {
            return;
        };
        self.set_operations(left);
        self.set_operations(right);
        if *op != SetOperator::Union {
            self.refuse(&format!("{op} is"), right.span());
        }
    }

    fn order_and_limit(&mut self, query: &Query) {
        if let Some(order_by) = &query.order_by {
            let span = match &order_by.kind {
                OrderByKind::Expressions(exprs) => {
                    exprs.first().map_or(Span::empty(), Spanned::span)
                }
                OrderByKind::All(_) => Span::empty(),
            };
            self.refuse("ORDER BY is", span);
        }
        match &query.limit_clause {
            Some(
                LimitClause::LimitOffset {
                    limit: Some(expr), ..
                }
                | LimitClause::OffsetCommaLimit { limit: expr, .. },
            ) => {
                self.refuse("LIMIT is", expr.span());
            }
            Some(LimitClause::LimitOffset {
                offset: Some(offset),
                ..
            }) => {
                self.refuse("OFFSET is", offset.value.span());
            }
            _ => {}
        }
        if query.fetch.is_some() {
            self.refuse("FETCH is", query.body.span());
        }
        if !query.locks.is_empty() {
            self.refuse("FOR UPDATE is", query.body.span());
        }
        if !query.pipe_operators.is_empty() {
            self.refuse("the pipe operator is", query.body.span());
        }
    }

    fn joins(&mut self, select: &Select) {
        let is_unnest = |factor: &TableFactor| matches!(factor, TableFactor::UNNEST { .. });
        for (n, table) in select.from.iter().enumerate() {
            if n > 0 && !is_unnest(&table.relation) {
                self.refuse("joins are", table.relation.span());
            }
            for join in table.joins.iter().filter(|join| !is_unnest(&join.relation)) {
                self.refuse("joins are", join.relation.span());
            }
        }
    }

    fn function(&mut self, function: &Function, span: Span) {
        let position = name_span(&function.name, span);
        if function.over.is_some() {
            self.refuse("window functions (OVER) are", position);
        }
        if let FunctionArguments::List(list) = &function.args
            && list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
            && list.args.len() > 1
            && !is_string_agg(&function.name)
        {
            let hint = "put them together, as in DISTINCT struct(a, b)";
            self.refuse_with_hint("DISTINCT over several arguments is", position, hint);
        }
        if matches!(function.args, FunctionArguments::Subquery(_)) {
            self.refuse("subqueries in expressions are", position);
        }
    }
}

/// Its second argument is the delimiter.
fn is_string_agg(name: &ObjectName) -> bool {
    name.to_string().eq_ignore_ascii_case("string_agg")
}

fn name_span(name: &ObjectName, otherwise: Span) -> Span {
    let span = name.span();
    if span == Span::empty() {
        otherwise
    } else {
        span
    }
}

impl Visitor for Refusals {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let Some(with) = query.with.as_ref().filter(|with| with.recursive) {
            self.refuse("WITH RECURSIVE is", with.span());
        }
        self.set_operations(&query.body);
        self.order_and_limit(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let start = select.span();
        if let Some(Distinct::On(exprs)) = &select.distinct {
            self.refuse("DISTINCT ON is", exprs.first().map_or(start, Spanned::span));
        }
        self.joins(select);
        if let Some(qualify) = &select.qualify {
            self.refuse("QUALIFY is", qualify.span());
        }
        if select.into.is_some() {
            self.refuse_with_hint(
                "SELECT INTO is",
                start,
                "use CREATE TABLE … AS or INSERT INTO",
            );
        }
        let foreign = [
            ("LATERAL VIEW is", select.lateral_views.is_empty()),
            ("TOP is", select.top.is_none()),
            ("PREWHERE is", select.prewhere.is_none()),
            ("CONNECT BY is", select.connect_by.is_empty()),
            ("CLUSTER BY is", select.cluster_by.is_empty()),
            ("DISTRIBUTE BY is", select.distribute_by.is_empty()),
            ("SORT BY is", select.sort_by.is_empty()),
            ("SELECT AS is", select.value_table_mode.is_none()),
        ];
        for (what, _) in foreign.iter().filter(|(_, absent)| !absent) {
            self.refuse(what, start);
        }
        if let GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) =
            &select.group_by
            && !modifiers.is_empty()
        {
            self.refuse_with_hint(
                "GROUP BY … WITH is",
                start,
                "write GROUP BY ROLLUP (…) or CUBE (…)",
            );
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.table_factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => self.function(function, expr.span()),
            // The input of a window in FROM, which is a relation and no value.
            Expr::Subquery(query) if self.relations.contains(&query.span()) => {}
            Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => {
                self.refuse("subqueries in expressions are", expr.span());
            }
            Expr::Cast { data_type, .. } => {
                if let Err(fault) = field_of(data_type) {
                    let position = position_of(expr);
                    self.faults.push(fault.at(position));
                }
            }
            Expr::Value(value) => {
                if let Value::Placeholder(name) = &value.value {
                    let message = format!("there is no parameter {name}");
                    let fault = Fault::new(FaultKind::UndefinedParameter, message);
                    self.faults.push(fault.at(position_of(expr)));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
