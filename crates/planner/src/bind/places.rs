//! Where the columns of a query's result stand in its text.

use datafusion::sql::sqlparser::ast::{Query, SelectItem, SetExpr, Spanned};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::error::Position;

/// The place of each column; of VALUES, row by row.
#[derive(Debug, Default)]
pub struct Places(Vec<Vec<Option<Position>>>);

impl Places {
    /// Of a list of VALUES, or of a SELECT list without `*`; otherwise none are known.
    pub fn of_query(query: &Query) -> Self {
        Self(match query.body.as_ref() {
            SetExpr::Select(select) if !select.projection.iter().any(is_wildcard) => {
                vec![
                    select
                        .projection
                        .iter()
                        .map(|item| position(item.span()))
                        .collect(),
                ]
            }
            SetExpr::Values(values) => {
                let rows = values.rows.iter();
                rows.map(|row| row.iter().map(|expr| position(expr.span())).collect())
                    .collect()
            }
            _ => Vec::new(),
        })
    }

    pub fn of(&self, row: usize, column: usize) -> Option<Position> {
        self.0.get(row)?.get(column).copied().flatten()
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
    )
}

fn position(span: Span) -> Option<Position> {
    (span.start.line > 0).then(|| span.start.into())
}
