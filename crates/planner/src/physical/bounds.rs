//! Start and end of a window: which expressions they are, and what follows from them.

use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::functions::core::expr_fn::{get_field, named_struct};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, lit};
use thalweg_dataflow::plan::{Window, WindowColumns};

use crate::event_time::strip_alias;
use crate::window::WindowNames;

/// What of a window an expression is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Start,
    End,
    /// `end − 1 ns`.
    Time,
    /// Start and end as one value.
    Pair,
}

/// What of a carried window an expression over columns `over` is.
pub(super) fn bound_of_column(
    expr: &Expr,
    over: &DFSchema,
    window: &WindowColumns,
) -> Option<Bound> {
    match strip_alias(expr) {
        Expr::Column(column) => {
            let index = Some(over.index_of_column(column).ok()?);
            match () {
                () if index == window.start => Some(Bound::Start),
                () if index == window.end => Some(Bound::End),
                () if index == window.pair => Some(Bound::Pair),
                () => None,
            }
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "get_field" => {
            match args.as_slice() {
                [Expr::Column(column), field]
                    if Some(over.index_of_column(column).ok()?) == window.pair =>
                {
                    match text(field)? {
                        "start" => Some(Bound::Start),
                        "end" => Some(Bound::End),
                        _ => None,
                    }
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Start and end of the window that columns of `over` carry; where one is missing, from the other. A session whose
/// start is missing is told by its end alone.
pub(super) fn bound_exprs(over: &DFSchema, window: &WindowColumns) -> [Expr; 2] {
    let at = |i: usize| Expr::Column(Column::from(over.qualified_field(i)));
    let width = match window.window {
        Window::Tumble { width } | Window::Hop { width, .. } => width,
        Window::Session { .. } => 0,
    };
    let width = || lit(nanoseconds(width));
    let of_pair = |name: &str| window.pair.map(|pair| get_field(at(pair), name));
    let start = window.start.map(at).or_else(|| of_pair("start"));
    let end = window.end.map(at).or_else(|| of_pair("end"));
    let known = start
        .clone()
        .or_else(|| end.clone())
        .expect("a carried window has a bound");
    [
        start.unwrap_or_else(|| known.clone() - width()),
        end.unwrap_or_else(|| known.clone() + width()),
    ]
}

/// The type of its start and end.
pub(super) fn bound_type(over: &DFSchema, window: &WindowColumns) -> DataType {
    let any = window
        .start
        .or(window.end)
        .or(window.pair)
        .expect("a carried window has a bound");
    match over.field(any).data_type() {
        DataType::Struct(fields) => fields[0].data_type().clone(),
        bound => bound.clone(),
    }
}

/// The event time of a window's result, from its end.
pub(super) fn last_instant() -> Expr {
    Expr::Column(Column::new_unqualified(WindowNames::TABLE.end)) - lit(nanoseconds(1))
}

/// The window as one value, from its start and end.
pub(super) fn pair() -> Expr {
    let bound = |name: &str| Expr::Column(Column::new_unqualified(name));
    let WindowNames { start, end, .. } = WindowNames::TABLE;
    named_struct(vec![lit("start"), bound(start), lit("end"), bound(end)])
}

fn nanoseconds(nanoseconds: i64) -> ScalarValue {
    ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano {
        months: 0,
        days: 0,
        nanoseconds,
    }))
}

pub(super) fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}
