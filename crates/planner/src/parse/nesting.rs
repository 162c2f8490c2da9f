//! Limits on how deeply a statement is nested.
//!
//! Plans are walked, copied and dropped recursively, here and in DataFusion. The limits keep what leaves
//! the planner within an ordinary stack, and what is refused within the one that planning has.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, SetExpr, Visit, Visitor};

use super::{Result, StatementParser};
use crate::error::{Fault, FaultKind};

/// Operators in a row, as in `a + b + c`, or calls within calls.
const MAX_DEPTH: usize = 1000;

/// Words and signs of one statement.
pub(super) const MAX_TOKENS: usize = 500_000;

impl StatementParser<'_> {
    /// Refuses what is nested too deeply to be worked on.
    pub(super) fn shallow<T: Visit>(&self, node: T) -> Result<T> {
        let mut depth = Depth { now: 0 };
        match node.visit(&mut depth) {
            ControlFlow::Continue(()) => Ok(node),
            ControlFlow::Break(()) => Err(Fault::new(FaultKind::Unsupported, too_deep())),
        }
    }
}

fn too_deep() -> String {
    format!("the statement is nested more than {MAX_DEPTH} levels deep")
}

struct Depth {
    now: usize,
}

impl Visitor for Depth {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.now += 1;
        if self.now > MAX_DEPTH {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.now -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let mut body = query.body.as_ref();
        let mut n_operations = 0;
        while let SetExpr::SetOperation { left, .. } = body {
            body = left;
            n_operations += 1;
        }
        if n_operations > MAX_DEPTH {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
