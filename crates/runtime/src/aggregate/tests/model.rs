//! What the accumulators should say: which rows each group has, and DataFusion's answer over them.

use std::sync::Arc;

use arrow::array::*;
use arrow::compute::{SortOptions, cast, take, take_record_batch};
use arrow::datatypes::*;
use arrow::row::{RowConverter, SortField};
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::scalar::ScalarValue;
use rand::Rng;
use rand::rngs::StdRng;
use thalweg_dataflow::plan::{AggregateCall, AggregateState};

use crate::state::testing::random_column;

/// Rows of the pool that changes are made of.
pub(super) const N_ROWS: usize = 30;
/// Position of the column that filters go by.
pub(super) const FILTER: usize = 20;

pub(super) fn schema() -> Schema {
    use DataType as D;
    let types = [
        D::Int64,
        D::Float64,
        D::UInt64,
        D::Decimal32(9, 2),
        D::Decimal64(16, 3),
        D::Decimal128(20, 4),
        D::Decimal128(38, 10),
        D::Decimal256(76, 20),
        D::Duration(TimeUnit::Millisecond),
        D::Utf8,
        D::Boolean,
        D::Int8,
        D::Float32,
        D::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into())),
        D::Date32,
        D::Binary,
        D::Utf8View,
        D::Interval(IntervalUnit::MonthDayNano),
        D::LargeUtf8,
        D::Int32, // unique, to order by
        D::Boolean,
    ];
    let field = |(i, t): (usize, &D)| Field::new(format!("c{i}"), t.clone(), true);
    Schema::new(types.iter().enumerate().map(field).collect::<Vec<_>>())
}

pub(super) fn pool(rng: &mut StdRng) -> RecordBatch {
    let schema = Arc::new(schema());
    let columns =
        schema
            .fields()
            .iter()
            .enumerate()
            .map(|(i, field)| match (i, field.data_type()) {
                (19, _) => {
                    Arc::new(Int32Array::from_iter_values((0..N_ROWS as i32).rev())) as ArrayRef
                }
                // Numbers that are summed: DataFusion wraps where we report an overflow.
                (0, t) => small_integers(rng, -5, t),
                (2..9, t) => small_integers(rng, if *t == DataType::UInt64 { 0 } else { -500 }, t),
                (1, _) => floats(rng),
                (_, t) => random_column(rng, t, N_ROWS),
            });
    let columns = columns.collect();
    RecordBatch::try_new(schema, columns).unwrap()
}

fn small_integers(rng: &mut StdRng, least: i64, data_type: &DataType) -> ArrayRef {
    let value = |rng: &mut StdRng| rng.random_bool(0.8).then(|| rng.random_range(least..500));
    let values: Int64Array = (0..N_ROWS).map(|_| value(rng)).collect();
    match data_type {
        DataType::Decimal32(_, s)
        | DataType::Decimal64(_, s)
        | DataType::Decimal128(_, s)
        | DataType::Decimal256(_, s) => {
            let thirds: Vec<_> = values
                .iter()
                .map(|v| v.map(|v| format!("{:.*}", *s as usize, v as f64 / 3.0)))
                .collect();
            cast(&StringArray::from(thirds), data_type).unwrap()
        }
        other => cast(&values, other).unwrap(),
    }
}

fn floats(rng: &mut StdRng) -> ArrayRef {
    let special = rng.random_bool(0.3);
    let value = |rng: &mut StdRng| match rng.random_range(0..12) {
        0 => None,
        1 if special => Some([f64::NAN, f64::INFINITY, f64::NEG_INFINITY][rng.random_range(0..3)]),
        2 => Some(1e18),
        3 => Some(-1e18),
        _ => Some(rng.random_range(-40..40) as f64 / 8.0),
    };
    Arc::new((0..N_ROWS).map(|_| value(rng)).collect::<Float64Array>())
}

fn column(i: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(&format!("c{i}"), i))
}

fn build(
    udaf: Arc<AggregateUDF>,
    args: &[usize],
    order_by: Option<(usize, bool)>,
    is_distinct: bool,
) -> Arc<datafusion::physical_expr::aggregate::AggregateFunctionExpr> {
    let sort = order_by.map(|(by, ascending)| PhysicalSortExpr {
        expr: column(by),
        options: SortOptions {
            descending: !ascending,
            nulls_first: !ascending,
        },
    });
    let function = AggregateExprBuilder::new(udaf, args.iter().map(|&a| column(a)).collect())
        .schema(Arc::new(schema()))
        .alias("call")
        .order_by(sort.into_iter().collect())
        .with_distinct(is_distinct)
        .build();
    Arc::new(function.unwrap())
}

pub(super) fn call(
    udaf: Arc<AggregateUDF>,
    args: Vec<usize>,
    state: AggregateState,
) -> AggregateCall {
    AggregateCall {
        function: build(udaf, &args, None, false),
        args,
        filter: None,
        state,
    }
}

pub(super) fn distinct(udaf: Arc<AggregateUDF>, arg: usize) -> AggregateCall {
    let function = build(udaf, &[arg], None, true);
    AggregateCall {
        function,
        args: vec![arg],
        filter: None,
        state: AggregateState::Multiset,
    }
}

pub(super) fn ordered(
    udaf: Arc<AggregateUDF>,
    arg: usize,
    by: usize,
    ascending: bool,
) -> AggregateCall {
    let function = build(udaf, &[arg], Some((by, ascending)), false);
    AggregateCall {
        function,
        args: vec![arg, by],
        filter: None,
        state: AggregateState::Multiset,
    }
}

pub(super) struct Model {
    pub(super) pool: RecordBatch,
    counts: Vec<Vec<i64>>,
    /// Rows as they were added, for functions that go by that.
    arrivals: Vec<Vec<u32>>,
}

impl Model {
    pub(super) fn new(pool: RecordBatch, n_slots: usize) -> Self {
        Self {
            pool,
            counts: vec![vec![0; N_ROWS]; n_slots],
            arrivals: vec![vec![]; n_slots],
        }
    }

    pub(super) fn count(&self, slot: usize, row: usize) -> i64 {
        self.counts[slot][row]
    }

    pub(super) fn n_rows(&self, slot: usize) -> i64 {
        self.counts[slot].iter().sum()
    }

    pub(super) fn add(&mut self, slot: usize, row: usize, diff: i64) {
        self.counts[slot][row] += diff;
        assert!(self.counts[slot][row] >= 0);
        (0..diff).for_each(|_| self.arrivals[slot].push(row as u32));
    }

    pub(super) fn clear(&mut self, slot: usize) {
        self.counts[slot] = vec![0; N_ROWS];
        self.arrivals[slot].clear();
    }

    /// Asserts that `found`, a column a call, holds the results of all groups.
    pub(super) fn check(&self, calls: &[AggregateCall], found: &[ArrayRef], seed: u64) {
        for (call, column) in calls.iter().zip(found) {
            assert_eq!(
                column.data_type(),
                call.function.field().data_type(),
                "seed {seed}: {call:?}"
            );
            for slot in 0..self.counts.len() {
                let found = ScalarValue::try_from_array(column, slot).unwrap();
                let expected = self.expected(call, slot);
                let (f, shown) = (call.function.fun().name(), call.function.expressions());
                let context = format!(
                    "seed {seed}, slot {slot}: {f}({shown:?}) distinct {} filter {:?} {:?}",
                    call.function.is_distinct(),
                    call.filter,
                    call.state
                );
                assert_same(&found, &expected, self.tolerance(call, slot), &context);
            }
        }
    }

    /// DataFusion's answer over the rows that a group has.
    fn expected(&self, call: &AggregateCall, slot: usize) -> ScalarValue {
        let rows = match call.state {
            AggregateState::Accumulator => self.arrivals[slot].clone(),
            _ => self.rows_by_value(call, slot),
        };
        let passes = |row: &u32| {
            let filter = self.pool.column(FILTER).as_boolean();
            call.filter.is_none() || filter.is_valid(*row as usize) && filter.value(*row as usize)
        };
        let rows = UInt32Array::from_iter_values(rows.into_iter().filter(passes));
        let args: Vec<ArrayRef> = call
            .args
            .iter()
            .map(|&a| take(self.pool.column(a), &rows, None).unwrap())
            .collect();
        let mut accumulator = call.function.create_accumulator().unwrap();
        accumulator.update_batch(&args).unwrap();
        match call.function.fun().name() {
            // Of one value that is not finite DataFusion says 0 without GROUP BY, and NaN with it.
            "var_pop" | "stddev_pop" if is_one_special(&args[0]) => f64::NAN.into(),
            _ => accumulator.evaluate().unwrap(),
        }
    }

    /// The rows of a group by the arguments of a call, in which order a multiset hands them over.
    fn rows_by_value(&self, call: &AggregateCall, slot: usize) -> Vec<u32> {
        let args: Vec<_> = call
            .args
            .iter()
            .map(|&a| self.pool.column(a).clone())
            .collect();
        let fields = args
            .iter()
            .map(|a| SortField::new(a.data_type().clone()))
            .collect();
        let keys = RowConverter::new(fields)
            .unwrap()
            .convert_columns(&args)
            .unwrap();
        let mut rows: Vec<u32> = (0..N_ROWS)
            .flat_map(|row| (0..self.counts[slot][row]).map(move |_| row as u32))
            .collect();
        rows.sort_by_key(|&row| keys.row(row as usize));
        rows
    }

    /// What order of summation may make a difference of, for floating-point results.
    fn tolerance(&self, call: &AggregateCall, slot: usize) -> f64 {
        if !matches!(call.function.field().data_type(), DataType::Float64) {
            return 0.0;
        }
        let column = self.pool.column(call.args[0]);
        let Some(values) = column.as_primitive_opt::<Float64Type>() else {
            return 1e-12;
        };
        let rows = (0..N_ROWS).filter(|&row| self.counts[slot][row] > 0 && values.is_valid(row));
        let largest = rows
            .map(|row| values.value(row).abs())
            .filter(|v| v.is_finite())
            .fold(0.0, f64::max);
        match call.function.fun().name() {
            "var" | "var_pop" => largest * largest * 1e-12,
            _ => largest * 1e-12,
        }
    }

    /// Rows of the pool at these positions.
    pub(super) fn rows(&self, rows: impl Iterator<Item = u32>) -> RecordBatch {
        take_record_batch(&self.pool, &UInt32Array::from_iter_values(rows)).unwrap()
    }
}

fn is_one_special(values: &ArrayRef) -> bool {
    let values: Vec<f64> = values
        .as_primitive::<Float64Type>()
        .iter()
        .flatten()
        .collect();
    values.len() == 1 && !values[0].is_finite()
}

fn assert_same(found: &ScalarValue, expected: &ScalarValue, tolerance: f64, context: &str) {
    if let (ScalarValue::Float64(Some(a)), ScalarValue::Float64(Some(b))) = (found, expected) {
        let same = a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance;
        assert!(same, "{context}: {a} is not {b} to {tolerance}");
    } else {
        assert_eq!(found, expected, "{context}");
    }
}
