//! Two projections as one, where one of them only moves columns: no expression is then computed twice.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use thalweg_dataflow::table::ExprRef;

use crate::shape::{field_of, plain, window_bound, window_pair};

/// `upper`, which is over the columns of `lower`, over what `lower` is over.
pub(super) fn merge(upper: &[ExprRef], lower: &[ExprRef]) -> Option<Vec<ExprRef>> {
    let only_moves = |exprs: &[ExprRef]| exprs.iter().all(|e| plain(e).is_some());
    // A window as one value costs nothing where only its bounds are looked at.
    let lower_is_cheap = lower
        .iter()
        .all(|e| plain(e).is_some() || window_pair(e).is_some());
    if !(lower_is_cheap || only_moves(upper) && is_injective(upper, lower)) {
        return None;
    }
    upper.iter().map(|expr| over(expr, lower)).collect()
}

/// Whether no computed column of `lower` is taken twice.
fn is_injective(upper: &[ExprRef], lower: &[ExprRef]) -> bool {
    let computed = |i: &usize| plain(&lower[*i]).is_none();
    let mut taken: Vec<usize> = upper.iter().filter_map(plain).filter(computed).collect();
    let n = taken.len();
    taken.sort_unstable();
    taken.dedup();
    taken.len() == n
}

fn over(expr: &ExprRef, lower: &[ExprRef]) -> Option<ExprRef> {
    let replaced = Arc::clone(expr).transform_down(|e| {
        let bound = field_of(&e).and_then(|(pair, name)| window_bound(&lower[pair], name));
        let below = bound.or_else(|| plain(&e).map(|i| Arc::clone(&lower[i])));
        Ok(match below {
            Some(below) => Transformed::new(below, true, TreeNodeRecursion::Jump),
            None => Transformed::no(e),
        })
    });
    replaced.ok().map(|replaced| replaced.data)
}
