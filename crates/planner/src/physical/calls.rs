//! Aggregate functions: their arguments as columns, and what is kept of them per group.

use arrow::datatypes::{DataType, Schema};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, Sort};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, lit, when};
use datafusion::physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregateBuilder};
use thalweg_dataflow::plan::{AggregateCall, AggregateState, Changelog, ColumnAggregate};

use super::builder::Builder;
use super::input::{InputColumns, Projected};
use crate::error::{Fault, FaultKind};
use crate::event_time::strip_alias;

/// What surrounds a call and decides what may be kept for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings {
    pub input: Changelog,
    /// Each group belongs to a window and is evaluated once.
    pub windowed: bool,
}

/// A call whose arguments have their places in the projection below.
pub(super) struct PlacedCall {
    name: String,
    call: AggregateFunction,
    /// Per argument its position; `None`: a constant that `count` need not look at.
    args: Vec<Option<usize>>,
    order_by: Vec<usize>,
    filter: Option<usize>,
}

/// Places the arguments of an aggregate expression, which the result calls `name`.
pub(super) fn place(
    expr: &Expr,
    name: &str,
    columns: &mut InputColumns<'_>,
) -> Result<PlacedCall, Fault> {
    let Expr::AggregateFunction(call) = strip_alias(expr) else {
        return Err(Fault::new(
            FaultKind::Internal,
            format!("{expr} is no aggregate"),
        ));
    };
    let AggregateFunctionParams {
        args,
        filter,
        order_by,
        distinct,
        ..
    } = &call.params;
    let filter = filter.as_deref();
    let counts_rows = call.func.name() == "count" && !distinct;
    let place_arg = |arg: &Expr| match arg {
        Expr::Literal(value, _) if counts_rows && !value.is_null() => Ok(None),
        arg => guarded(arg, filter, columns.over).map(|arg| Some(columns.position(&arg))),
    };
    let args = args.iter().map(place_arg).collect::<Result<_, Fault>>()?;
    Ok(PlacedCall {
        name: name.to_string(),
        args,
        // As the arguments are: with DISTINCT, what it orders by must be one of them.
        order_by: order_by
            .iter()
            .map(|sort| Ok(columns.position(&guarded(&sort.expr, filter, columns.over)?)))
            .collect::<Result<_, Fault>>()?,
        filter: filter.map(|predicate| columns.position(predicate)),
        call: call.clone(),
    })
}

/// An argument that is computed only where the filter holds, which may guard it from a division by zero.
fn guarded(arg: &Expr, filter: Option<&Expr>, over: &DFSchema) -> Result<Expr, Fault> {
    match (arg, filter) {
        (Expr::Column(_) | Expr::Literal(..), _) | (_, None) => Ok(arg.clone()),
        (arg, Some(filter)) => {
            let nothing = datafusion::common::ScalarValue::try_from(&data_type(arg, over)?);
            let nothing = nothing.map_err(Fault::from_datafusion)?;
            when(filter.clone(), arg.clone())
                .otherwise(lit(nothing))
                .map_err(Fault::from_datafusion)
        }
    }
}

fn data_type(expr: &Expr, over: &DFSchema) -> Result<DataType, Fault> {
    use datafusion::logical_expr::ExprSchemable;
    expr.get_type(over).map_err(Fault::from_datafusion)
}

impl PlacedCall {
    /// The call over the columns of the projection. Errors: a function that cannot take retractions.
    pub fn finish(
        self,
        builder: &Builder,
        input: &Projected,
        around: Surroundings,
    ) -> Result<AggregateCall, Fault> {
        let expr = Expr::AggregateFunction(self.over_columns(&input.schema));
        let schema: &Schema = input.schema.as_arrow();
        let context = PhysicalPlanningContext::default();
        let lowered =
            LoweredAggregateBuilder::new(&expr, &input.schema, schema, &builder.props, &context)
                .with_name(self.name.as_str())
                .build()
                .map_err(Fault::from_datafusion)?;
        let args: Vec<usize> = self
            .args
            .into_iter()
            .flatten()
            .chain(self.order_by)
            .collect();
        let state = state(&lowered.aggregate, &args, schema, around)?;
        Ok(AggregateCall {
            function: lowered.aggregate,
            args,
            filter: self.filter,
            state,
        })
    }

    /// The call with columns in place of its expressions. Constants stay: some functions read them
    /// when they are created, as the fraction of a percentile or the delimiter of a string.
    fn over_columns(&self, schema: &DFSchema) -> AggregateFunction {
        let column =
            |position: usize| Expr::Column(Column::new_unqualified(schema.field(position).name()));
        let params = &self.call.params;
        let arg = |(expr, position): (&Expr, &Option<usize>)| match (expr, position) {
            (Expr::Literal(..), _) | (_, None) => expr.clone(),
            (_, Some(position)) => column(*position),
        };
        let sort = |(sort, position): (&Sort, &usize)| Sort {
            expr: arg((&sort.expr, &Some(*position))),
            ..sort.clone()
        };
        AggregateFunction {
            func: self.call.func.clone(),
            params: AggregateFunctionParams {
                args: params.args.iter().zip(&self.args).map(arg).collect(),
                filter: None,
                order_by: params
                    .order_by
                    .iter()
                    .zip(&self.order_by)
                    .map(sort)
                    .collect(),
                ..params.clone()
            },
        }
    }
}

/// What is kept per group: numbers where a retraction can be subtracted from them, DataFusion's
/// accumulator where nothing is ever retracted, otherwise the values themselves.
fn state(
    function: &AggregateFunctionExpr,
    args: &[usize],
    input: &Schema,
    around: Surroundings,
) -> Result<AggregateState, Fault> {
    let appended = around.input == Changelog::AppendOnly;
    let name = function.fun().name();
    if !appended && name.starts_with("approx_") {
        return Err(approximate(name));
    }
    // Whether a value comes once or twice makes no difference to these.
    let is_set_function = matches!(
        name,
        "min" | "max" | "bool_and" | "bool_or" | "bit_and" | "bit_or"
    );
    let distinct = function.is_distinct() && !is_set_function;
    let arg = args.first().map(|&i| input.field(i).data_type());
    if !distinct && let Some(columns) = column_aggregate(name, arg, appended) {
        return Ok(AggregateState::Columns(columns));
    }
    // A set of distinct values must outlive the epoch, and rows in order must be sorted together.
    let needs_values = distinct && !around.windowed
        || !function.order_bys().is_empty() && function.order_sensitivity().hard_requires();
    Ok(if appended && !needs_values {
        AggregateState::Accumulator
    } else {
        AggregateState::Multiset
    })
}

fn column_aggregate(name: &str, arg: Option<&DataType>, appended: bool) -> Option<ColumnAggregate> {
    use ColumnAggregate as C;
    let summable = |t: &DataType| {
        t.is_integer() || t.is_decimal() || matches!(t, DataType::Float64 | DataType::Duration(_))
    };
    match (name, arg) {
        ("count", _) => Some(C::Count),
        ("sum", Some(t)) if summable(t) => Some(C::Sum),
        ("avg", Some(t)) if summable(t) => Some(C::Avg),
        ("var", Some(DataType::Float64)) => Some(C::VarSamp),
        ("var_pop", Some(DataType::Float64)) => Some(C::VarPop),
        ("stddev", Some(DataType::Float64)) => Some(C::StddevSamp),
        ("stddev_pop", Some(DataType::Float64)) => Some(C::StddevPop),
        ("bool_and", Some(DataType::Boolean)) => Some(C::BoolAnd),
        ("bool_or", Some(DataType::Boolean)) => Some(C::BoolOr),
        ("min", Some(t)) if appended && is_flat(t) => Some(C::Min),
        ("max", Some(t)) if appended && is_flat(t) => Some(C::Max),
        _ => None,
    }
}

/// Types whose smallest and largest value fit a column of plain values.
fn is_flat(t: &DataType) -> bool {
    use DataType as T;
    t.is_numeric()
        || t.is_temporal()
        || t.is_string()
        || t.is_binary()
        || matches!(t, T::Boolean | T::FixedSizeBinary(_))
}

fn approximate(name: &str) -> Fault {
    let exact = match name {
        "approx_distinct" => "count(DISTINCT x)",
        "approx_median" => "median(x)",
        _ => "percentile_cont(x, fraction)",
    };
    Fault::new(
        FaultKind::NotStreamable,
        format!("{name}() over an updating result: a sketch cannot take a row back"),
    )
    .hint(format!("use {exact}, which is exact and takes retractions"))
}
