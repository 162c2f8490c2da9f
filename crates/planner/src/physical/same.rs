//! Which nodes do the same: queries of one job that have an aggregate in common keep its state once.

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use thalweg_dataflow::plan::{AggregateCall, Input, Node, Op};

/// Whether `node` emits what `op` over `inputs` would. Sources, sinks and whatever has another value each
/// time are the same as nothing.
pub(super) fn is_same(node: &Node, op: &Op, inputs: &[Input], schema: &SchemaRef) -> bool {
    node.inputs == inputs && node.schema == *schema && is_same_op(&node.op, op)
}

fn is_same_op(a: &Op, b: &Op) -> bool {
    match (a, b) {
        (Op::Filter(a), Op::Filter(b)) => a == b && !is_volatile(a),
        (Op::Project(a), Op::Project(b)) => a == b && !a.iter().any(is_volatile),
        (Op::Unnest(a), Op::Unnest(b)) => a.columns == b.columns && a.keep_empty == b.keep_empty,
        (Op::Union, Op::Union) => true,
        (Op::AssignWindow(a), Op::AssignWindow(b)) => a == b,
        (Op::Aggregate(a), Op::Aggregate(b)) => {
            a.keys == b.keys
                && a.ttl == b.ttl
                && a.phase == b.phase
                && are_same_calls(&a.calls, &b.calls)
        }
        (Op::WindowAggregate(a), Op::WindowAggregate(b)) => {
            a.window == b.window
                && a.keys == b.keys
                && a.phase == b.phase
                && are_same_calls(&a.calls, &b.calls)
        }
        _ => false,
    }
}

fn are_same_calls(a: &[AggregateCall], b: &[AggregateCall]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same_call(a, b))
}

fn is_same_call(a: &AggregateCall, b: &AggregateCall) -> bool {
    let (f, g) = (&a.function, &b.function);
    a.args == b.args
        && a.filter == b.filter
        && a.state == b.state
        && f == g
        && f.is_distinct() == g.is_distinct()
        && f.ignore_nulls() == g.ignore_nulls()
        && f.order_bys() == g.order_bys()
}
