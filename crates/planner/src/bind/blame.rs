//! Where in a query a fault lies that came without a position.
//!
//! DataFusion gives positions of columns, tables and some operators. For the rest the query is bound
//! again in parts, until the smallest part is found that fails in the same words.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Query, Select, SelectItem, SetExpr, Spanned, TableFactor, Value, Visit,
    Visitor, With,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use super::row::position_of;
use crate::error::{Fault, FaultKind, Position};
use crate::parse::statement::Name;

/// The fault at the place of the part that causes it. `check` binds a query and gives its fault.
pub fn blame(query: &Query, fault: Fault, check: &dyn Fn(Query) -> Option<Fault>) -> Fault {
    if fault.position.is_some() {
        return fault;
    }
    let position = match &fault.kind {
        FaultKind::DuplicateObject => second_of_a_name(&query.body),
        _ => Search {
            message: &fault.message,
            check,
        }
        .query(query, query.with.as_ref()),
    };
    fault.at(position)
}

/// The first column of a result that has the name of one before it.
fn second_of_a_name(body: &SetExpr) -> Option<Position> {
    let SetExpr::Select(select) = body else {
        return None;
    };
    let mut seen = BTreeSet::new();
    select.projection.iter().find_map(|item| {
        let ident = match item {
            SelectItem::ExprWithAlias { alias, .. } => alias,
            SelectItem::UnnamedExpr(Expr::Identifier(ident)) => ident,
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last()?,
            _ => return None,
        };
        let repeated = !seen.insert(Name::of(ident).text);
        repeated.then(|| position(item.span())).flatten()
    })
}

/// Faults of single expressions, each bound as if it stood alone: the SELECT items and WHERE clauses
/// of a query that does not bind as a whole. Other clauses may refer to each other, and are left out.
pub fn faults_of_parts(query: &Query, check: &dyn Fn(Query) -> Option<Fault>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for_each_select(query, None, &mut |select, with| {
        let parts = items(select, with).chain(condition(select, with));
        for part in parts {
            let alone = part.alone(part.expr);
            let fault = check(alone.clone()).map(|fault| blame(&alone, fault, check));
            // A fault elsewhere is of what was left out.
            faults.extend(fault.filter(|fault| {
                fault
                    .position
                    .is_some_and(|place| within(place, part.expr.span()))
            }));
        }
    });
    faults
}

fn within(place: Position, span: Span) -> bool {
    Position::from(span.start) <= place && place <= Position::from(span.end)
}

/// Every SELECT of a query but those within expressions, with the CTEs that it sees.
fn for_each_select(
    query: &Query,
    with: Option<&With>,
    visit: &mut dyn FnMut(&Select, Option<&With>),
) {
    if let Some(own) = &query.with {
        for (n, table) in own.cte_tables.iter().enumerate() {
            let before = first_tables(own, n);
            for_each_select(&table.query, before.as_ref(), visit);
        }
    }
    select_of_body(&query.body, query.with.as_ref().or(with), visit);
}

fn select_of_body(
    body: &SetExpr,
    with: Option<&With>,
    visit: &mut dyn FnMut(&Select, Option<&With>),
) {
    match body {
        SetExpr::Select(select) => {
            visit(select, with);
            for table in &select.from {
                if let TableFactor::Derived {
                    subquery,
                    lateral: false,
                    ..
                } = &table.relation
                {
                    for_each_select(subquery, with, visit);
                }
            }
        }
        SetExpr::Query(query) => for_each_select(query, with, visit),
        SetExpr::SetOperation { left, right, .. } => {
            select_of_body(left, with, visit);
            select_of_body(right, with, visit);
        }
        _ => {}
    }
}

/// The first `n` tables of a WITH.
fn first_tables(with: &With, n: usize) -> Option<With> {
    (n > 0).then(|| With {
        cte_tables: with.cte_tables[..n].to_vec(),
        ..with.clone()
    })
}

fn items<'a>(select: &'a Select, with: Option<&'a With>) -> impl Iterator<Item = Part<'a>> {
    select.projection.iter().filter_map(move |item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(Part {
            select,
            with,
            expr,
            clause: Clause::Select,
        }),
        _ => None,
    })
}

fn condition<'a>(select: &'a Select, with: Option<&'a With>) -> Option<Part<'a>> {
    select.selection.as_ref().map(|expr| Part {
        select,
        with,
        expr,
        clause: Clause::Where,
    })
}

struct Search<'a> {
    message: &'a str,
    check: &'a dyn Fn(Query) -> Option<Fault>,
}

impl Search<'_> {
    fn fails(&self, query: Query) -> bool {
        (self.check)(query).is_some_and(|fault| fault.message == self.message)
    }

    fn query(&self, query: &Query, with: Option<&With>) -> Option<Position> {
        if let Some(own) = &query.with {
            for (n, table) in own.cte_tables.iter().enumerate() {
                let before = first_tables(own, n);
                if self.fails(of_body(&table.query.body, before.as_ref())) {
                    return self.query(&table.query, before.as_ref());
                }
            }
        }
        self.body(&query.body, query.with.as_ref().or(with))
    }

    fn body(&self, body: &SetExpr, with: Option<&With>) -> Option<Position> {
        match body {
            SetExpr::Select(select) => self.select(select, with),
            SetExpr::Query(query) => self.query(query, with),
            SetExpr::SetOperation { left, right, .. } => {
                let half = [left, right]
                    .into_iter()
                    .find(|half| self.fails(of_body(half, with)));
                half.and_then(|half| self.body(half, with))
                    .or_else(|| position(right.span()))
            }
            _ => position(body.span()),
        }
    }

    fn select(&self, select: &Select, with: Option<&With>) -> Option<Position> {
        let start = position(select.span());
        for factor in select.from.iter().map(|table| &table.relation) {
            if let TableFactor::Derived { subquery, .. } = factor
                && self.fails(of_body(&subquery.body, with))
            {
                return self.query(subquery, with).or(start);
            }
        }
        let group_by = match &select.group_by {
            GroupByExpr::Expressions(exprs, _) => exprs.as_slice(),
            GroupByExpr::All(_) => &[],
        };
        let keys = group_by.iter().map(|expr| Part {
            select,
            with,
            expr,
            clause: Clause::GroupBy,
        });
        let having = select.having.as_ref().map(|expr| Part {
            select,
            with,
            expr,
            clause: Clause::Having,
        });
        let mut parts = keys
            .chain(items(select, with))
            .chain(condition(select, with))
            .chain(having);
        let part = parts.find(|part| self.fails(part.alone(part.expr)))?;
        self.narrow(&part, part.expr).or(start)
    }

    /// The place of the smallest expression within `expr` that fails alike.
    fn narrow(&self, part: &Part<'_>, expr: &Expr) -> Option<Position> {
        let child = children(expr)
            .into_iter()
            .find(|child| self.fails(part.alone(child)));
        child
            .and_then(|child| self.narrow(part, &child))
            .or_else(|| position_of(expr))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Clause {
    Select,
    Where,
    GroupBy,
    Having,
}

/// An expression of a SELECT, which can be bound without the others.
struct Part<'a> {
    select: &'a Select,
    with: Option<&'a With>,
    expr: &'a Expr,
    clause: Clause,
}

impl Part<'_> {
    /// The SELECT with `expr` alone in the place of this part.
    fn alone(&self, expr: &Expr) -> Query {
        let one = Expr::Value(Value::Number("1".to_string(), false).with_empty_span());
        let mut select = Select {
            projection: vec![SelectItem::UnnamedExpr(one)],
            distinct: None,
            selection: None,
            having: None,
            ..self.select.clone()
        };
        let none = GroupByExpr::Expressions(Vec::new(), Vec::new());
        match self.clause {
            Clause::Select => select.projection = vec![SelectItem::UnnamedExpr(expr.clone())],
            Clause::Where => {
                select.selection = Some(expr.clone());
                select.group_by = none;
            }
            Clause::GroupBy => {
                select.group_by = GroupByExpr::Expressions(vec![expr.clone()], Vec::new())
            }
            Clause::Having => select.having = Some(expr.clone()),
        }
        of_body(&SetExpr::Select(Box::new(select)), self.with)
    }
}

fn of_body(body: &SetExpr, with: Option<&With>) -> Query {
    Query {
        with: with.cloned(),
        body: Box::new(body.clone()),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

fn position(span: Span) -> Option<Position> {
    (span.start.line > 0).then(|| span.start.into())
}

/// The expressions directly within `expr`, those of subqueries left out.
fn children(expr: &Expr) -> Vec<Expr> {
    let mut children = Children::default();
    let _ = expr.visit(&mut children);
    children.found
}

#[derive(Default)]
struct Children {
    depth: usize,
    n_queries: usize,
    found: Vec<Expr>,
}

impl Visitor for Children {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.depth == 1 && self.n_queries == 0 {
            self.found.push(expr.clone());
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.n_queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.n_queries -= 1;
        ControlFlow::Continue(())
    }
}
