//! Widths and slides: constant expressions that must be exact durations above zero.

use std::sync::Arc;

use arrow::datatypes::{IntervalDayTime, IntervalMonthDayNano};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use thalweg_dataflow::plan::Window;
use thalweg_dataflow::time::parse_duration;

use super::WindowKind;
use crate::error::{Fault, FaultKind};

const DAY: i64 = 86_400_000_000_000;

/// The window `kind(args…)`: `tumble(width)`, `hop(slide, width)` or `session(gap)`.
pub(super) fn window(kind: WindowKind, args: &[Expr]) -> Result<Window, Fault> {
    match (kind, args) {
        (WindowKind::Tumble, [width]) => Ok(Window::Tumble {
            width: duration(width, "the width of tumble()")?,
        }),
        (WindowKind::Hop, [slide, width]) => Ok(Window::Hop {
            slide: duration(slide, "the slide of hop()")?,
            width: duration(width, "the width of hop()")?,
        }),
        (WindowKind::Session, [gap]) => Ok(Window::Session {
            gap: duration(gap, "the gap of session()")?,
        }),
        (WindowKind::Tumble, _) => Err(wrong_arguments(
            "tumble() takes one argument, the width",
            args,
        )
        .hint("write tumble(interval '10 seconds')")),
        (WindowKind::Hop, _) => Err(wrong_arguments(
            "hop() takes two arguments, the slide and the width",
            args,
        )
        .hint("write hop(interval '2 seconds', interval '10 seconds')")),
        (WindowKind::Session, _) => Err(wrong_arguments(
            "session() takes one argument, the gap",
            args,
        )
        .hint("write session(interval '30 seconds')")),
    }
}

fn wrong_arguments(expected: &str, args: &[Expr]) -> Fault {
    Fault::new(
        FaultKind::UndefinedFunction,
        format!("{expected}; here are {}", args.len()),
    )
}

/// Nanoseconds of a constant duration above zero.
fn duration(expr: &Expr, what: &str) -> Result<i64, Fault> {
    let fault = |message: String| Fault::new(FaultKind::InvalidType, message);
    let value = constant(expr).ok_or_else(|| {
        fault(format!("{what} must be a constant interval"))
            .hint("write for example interval '10 seconds'")
    })?;
    match nanos(&value) {
        Err(reason) => {
            Err(fault(format!("{what}: {reason}")).hint("write for example interval '10 seconds'"))
        }
        Ok(n) if n <= 0 => Err(fault(format!("{what} must be above zero"))),
        Ok(n) => Ok(n),
    }
}

/// Nanoseconds of a literal interval.
pub(super) fn nanos_of(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(value, _) => nanos(value).ok(),
        _ => None,
    }
}

/// The value of an expression without columns; folds what DataFusion can fold.
fn constant(expr: &Expr) -> Option<ScalarValue> {
    if let Expr::Literal(value, _) = expr {
        return Some(value.clone());
    }
    let schema = Arc::new(DFSchema::empty());
    let simplifier = ExprSimplifier::new(
        SimplifyContext::builder()
            .with_schema(schema.clone())
            .build(),
    );
    let coerced = simplifier.coerce(expr.clone(), &schema).ok()?;
    match simplifier.simplify(coerced).ok()? {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn nanos(value: &ScalarValue) -> Result<i64, String> {
    let scaled = |n: i64, unit: i64| n.checked_mul(unit).ok_or_else(too_long);
    match value {
        ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano {
            months: 0,
            days,
            nanoseconds,
        })) => scaled(i64::from(*days), DAY)?
            .checked_add(*nanoseconds)
            .ok_or_else(too_long),
        ScalarValue::IntervalDayTime(Some(IntervalDayTime { days, milliseconds })) => {
            scaled(i64::from(*days), DAY)?
                .checked_add(scaled(i64::from(*milliseconds), 1_000_000)?)
                .ok_or_else(too_long)
        }
        ScalarValue::IntervalMonthDayNano(Some(_)) | ScalarValue::IntervalYearMonth(Some(_)) => {
            Err("months and years have no exact length; use days or hours".into())
        }
        ScalarValue::DurationSecond(Some(n)) => scaled(*n, 1_000_000_000),
        ScalarValue::DurationMillisecond(Some(n)) => scaled(*n, 1_000_000),
        ScalarValue::DurationMicrosecond(Some(n)) => scaled(*n, 1_000),
        ScalarValue::DurationNanosecond(Some(n)) => Ok(*n),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => parse_duration(text),
        other => Err(format!("{other} is not an interval")),
    }
}

fn too_long() -> String {
    "longer than 292 years".into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::{col, lit};

    fn interval(months: i32, days: i32, nanoseconds: i64) -> Expr {
        lit(ScalarValue::IntervalMonthDayNano(Some(
            IntervalMonthDayNano {
                months,
                days,
                nanoseconds,
            },
        )))
    }

    #[test]
    fn widths_are_exact_durations_above_zero() {
        let second = 1_000_000_000;
        let tumble = |width| window(WindowKind::Tumble, &[width]);
        assert_eq!(
            tumble(interval(0, 1, second)),
            Ok(Window::Tumble {
                width: DAY + second
            })
        );
        assert_eq!(
            tumble(lit("10 seconds")),
            Ok(Window::Tumble { width: 10 * second })
        );
        assert_eq!(
            tumble(interval(0, 0, second) + interval(0, 0, 5)),
            Ok(Window::Tumble { width: second + 5 })
        );
        for (width, reason) in [
            (interval(1, 0, 0), "no exact length"),
            (interval(0, 0, 0), "above zero"),
            (interval(0, -1, 0), "above zero"),
            (interval(0, i32::MAX, 0), "292 years"),
            (lit(10), "10 is not an interval"),
            (col("a"), "constant"),
        ] {
            let message = tumble(width).unwrap_err().message;
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn hop_takes_the_slide_first_and_a_session_its_gap() {
        let hop = window(WindowKind::Hop, &[interval(0, 0, 2), interval(0, 0, 10)]);
        assert_eq!(
            hop,
            Ok(Window::Hop {
                slide: 2,
                width: 10
            })
        );
        let fault = window(WindowKind::Hop, &[interval(0, 0, 2)]).unwrap_err();
        assert_eq!(
            fault.message,
            "hop() takes two arguments, the slide and the width; here are 1"
        );
        let session = window(WindowKind::Session, &[interval(0, 0, 2)]);
        assert_eq!(session, Ok(Window::Session { gap: 2 }));
        for (args, reason) in [
            (vec![], "here are 0"),
            (
                vec![interval(0, 0, 0)],
                "the gap of session() must be above zero",
            ),
            (vec![interval(0, -1, 0)], "above zero"),
            (vec![interval(1, 0, 0)], "no exact length"),
        ] {
            let message = window(WindowKind::Session, &args).unwrap_err().message;
            assert!(message.contains(reason), "{message}");
        }
    }
}
