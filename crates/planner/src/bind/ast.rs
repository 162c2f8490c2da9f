//! Rewrites of the parsed query before DataFusion binds it: spellings that its binder does not know.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, FunctionArg, FunctionArgExpr, Ident, ObjectNamePart, Query, SelectItem,
    SetExpr, Spanned, TableFactor, Value, VisitMut, VisitorMut,
};

use crate::parse::statement::Name;

/// A copy of `query` in the spellings that DataFusion binds.
pub fn normalized(query: &Query) -> Query {
    let mut query = query.clone();
    let _ = query.visit(&mut Spellings);
    query
}

/// A copy of `query` whose SELECT items have distinct names: an INSERT takes its columns by position,
/// and DataFusion tells them apart by name.
pub fn with_distinct_names(query: &Query) -> Query {
    let mut query = query.clone();
    if let SetExpr::Select(select) = query.body.as_mut() {
        let mut seen = BTreeSet::new();
        for (n, item) in select.projection.iter_mut().enumerate() {
            let (expr, name) = match item {
                SelectItem::UnnamedExpr(expr) => (expr.clone(), name_of(expr)),
                SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), Name::of(alias).text),
                _ => continue,
            };
            if !seen.insert(name) {
                let mut alias = Ident::with_quote('"', format!("column {}", n + 1));
                alias.span = expr.span();
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
    }
    query
}

fn name_of(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => Name::of(ident).text,
        Expr::CompoundIdentifier(parts) => parts
            .last()
            .map(|ident| Name::of(ident).text)
            .unwrap_or_default(),
        other => other.to_string().to_lowercase(),
    }
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
