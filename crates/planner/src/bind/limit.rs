//! LIMIT and OFFSET of a result without an order: any rows will do, so the first ones are taken, and
//! whoever takes them ends the query. Nothing of it is part of the plan.

use datafusion::sql::sqlparser::ast::{Expr, LimitClause, Query, Value};

/// Which rows of a result are wanted: after the first `offset`, at most `limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLimit {
    pub offset: u64,
    pub limit: Option<u64>,
}

/// The query without its own LIMIT and OFFSET, and what they say; `None` where they are not those of an
/// unordered result, or are no constants.
pub fn without_limit(query: &Query) -> Option<(Query, RowLimit)> {
    let Some(LimitClause::LimitOffset {
        limit,
        offset,
        limit_by,
    }) = &query.limit_clause
    else {
        return None;
    };
    if query.order_by.is_some() || !limit_by.is_empty() {
        return None;
    }
    let limit = match limit {
        Some(limit) => count(limit)?,
        None => None,
    };
    let offset = match offset {
        Some(offset) => count(&offset.value)?,
        None => None,
    };
    let mut query = query.clone();
    query.limit_clause = None;
    let offset = offset.unwrap_or(0);
    Some((query, RowLimit { offset, limit }))
}

/// `Some(None)`: NULL, which sets no limit.
fn count(expr: &Expr) -> Option<Option<u64>> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok().map(Some),
            Value::Null => Some(None),
            _ => None,
        },
        Expr::Cast { expr, .. } => count(expr).filter(Option::is_none),
        _ => None,
    }
}
