//! Rewrites of the parsed query before DataFusion binds it: spellings that its binder does not know.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectNamePart, Query, TableFactor,
    Value, VisitMut, VisitorMut,
};

/// A copy of `query` in the spellings that DataFusion binds.
pub fn normalized(query: &Query) -> Query {
    let mut query = query.clone();
    let _ = query.visit(&mut Spellings);
    query
}

pub fn normalize_expr(expr: &mut Expr) {
    let _ = expr.visit(&mut Spellings);
}

struct Spellings;

impl VisitorMut for Spellings {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundFieldAccess { access_chain, .. } = expr {
            access_chain.iter_mut().for_each(field_by_name);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        unnest(factor);
        ControlFlow::Continue(())
    }
}

/// `(w).end` is `(w)['end']`: DataFusion takes the name of a field as a string.
fn field_by_name(access: &mut AccessExpr) {
    if let AccessExpr::Dot(Expr::Identifier(ident)) = access {
        let name = match ident.quote_style {
            Some(_) => ident.value.clone(),
            None => ident.value.to_lowercase(),
        };
        *access = AccessExpr::Dot(Expr::Value(
            Value::SingleQuotedString(name).with_span(ident.span),
        ));
    }
}

/// `LATERAL unnest(x)` parses as any function in FROM would; it is the `UNNEST` that DataFusion knows.
fn unnest(factor: &mut TableFactor) {
    let (name, args, alias) = match factor {
        TableFactor::Function {
            name,
            args,
            alias,
            with_ordinality: false,
            ..
        } => (name, args, alias),
        TableFactor::Table {
            name,
            args: Some(args),
            alias,
            ..
        } => (name, &mut args.args, alias),
        _ => return,
    };
    let is_unnest = matches!(name.0.as_slice(),
        [ObjectNamePart::Identifier(Ident { value, .. })] if value.eq_ignore_ascii_case("unnest"));
    if !is_unnest {
        return;
    }
    let exprs: Option<Vec<Expr>> = args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        })
        .collect();
    if let Some(array_exprs) = exprs {
        *factor = TableFactor::UNNEST {
            alias: alias.take(),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        };
    }
}
