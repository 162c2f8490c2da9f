//! Window functions as DataFusion knows them: scalar functions that are only ever planned.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use thalweg_dataflow::plan::Window;
use thalweg_dataflow::time::format_duration;

use super::width::{nanos_of, window};
use super::{WindowKind, pair_type};
use crate::error::Fault;

#[derive(Debug, PartialEq, Eq, Hash)]
struct WindowFunction {
    kind: WindowKind,
    signature: Signature,
}

pub(super) fn all() -> Vec<Arc<ScalarUDF>> {
    WindowKind::ALL
        .into_iter()
        .map(|kind| Arc::new(ScalarUDF::new_from_impl(WindowFunction::new(kind))))
        .collect()
}

impl WindowFunction {
    fn new(kind: WindowKind) -> Self {
        // Any arguments, so that a wrong one is refused in our words; volatile, so that no rule takes
        // two calls for one or evaluates a call while planning.
        let any = TypeSignature::OneOf(vec![TypeSignature::VariadicAny, TypeSignature::Nullary]);
        Self {
            kind,
            signature: Signature::new(any, Volatility::Volatile),
        }
    }
}

impl ScalarUDFImpl for WindowFunction {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// `hop(2s, 10s)`: DataFusion's own name spells intervals out field by field.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let widths = args.iter().map(|arg| match nanos_of(arg) {
            Some(nanos) => format_duration(nanos),
            None => arg.schema_name().to_string(),
        });
        Ok(format!(
            "{}({})",
            self.name(),
            widths.collect::<Vec<_>>().join(", ")
        ))
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(pair_type(None))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("{}() has no value outside GROUP BY", self.name())
    }
}

/// A call of a window function in a bound expression.
#[derive(Debug, Clone, Copy)]
pub struct WindowCall<'a> {
    kind: WindowKind,
    args: &'a [Expr],
}

/// The window call that `expr` itself is, if it is one.
pub fn window_call(expr: &Expr) -> Option<WindowCall<'_>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else {
        return None;
    };
    let function = func.inner().downcast_ref::<WindowFunction>()?;
    Some(WindowCall {
        kind: function.kind,
        args,
    })
}

impl WindowCall<'_> {
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The window that the call describes. Errors: a wrong number of arguments, a width that is not an exact
    /// duration above zero.
    pub fn window(&self) -> Result<Window, Fault> {
        window(self.kind, self.args)
    }
}
