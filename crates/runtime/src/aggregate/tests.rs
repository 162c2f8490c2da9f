//! Random calls over random changes against DataFusion's accumulators over what is left of the rows.

mod model;
mod stored;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::functions_aggregate as f;
use datafusion::logical_expr::AggregateUDF;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use thalweg_dataflow::plan::{AggregateCall, AggregateState, ColumnAggregate as C};

use super::*;
use crate::state::ValueCodec;
use model::{Model, call, distinct, ordered, pool};

const N_SLOTS: usize = 4;

/// Columns of the pool that `sum` and `avg` take.
const NUMBERS: [usize; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
const FLOAT: usize = 1;
const BOOL: usize = 10;
const N_COLUMNS: usize = 19;
const ORDER: usize = 19;

/// Calls that take retractions from columns of numbers.
fn column_calls() -> Vec<AggregateCall> {
    let columns = |udaf: Arc<AggregateUDF>, column, aggregate| {
        call(udaf, vec![column], AggregateState::Columns(aggregate))
    };
    let mut calls = vec![
        columns(f::variance::var_samp_udaf(), FLOAT, C::VarSamp),
        columns(f::variance::var_pop_udaf(), FLOAT, C::VarPop),
        columns(f::stddev::stddev_udaf(), FLOAT, C::StddevSamp),
        columns(f::stddev::stddev_pop_udaf(), FLOAT, C::StddevPop),
        columns(f::bool_and_or::bool_and_udaf(), BOOL, C::BoolAnd),
        columns(f::bool_and_or::bool_or_udaf(), BOOL, C::BoolOr),
        call(
            f::count::count_udaf(),
            vec![0, 9],
            AggregateState::Columns(C::Count),
        ),
    ];
    for column in NUMBERS {
        calls.push(columns(f::sum::sum_udaf(), column, C::Sum));
        let type_of = pool_type(column);
        if !matches!(type_of, DataType::Int64 | DataType::UInt64) {
            calls.push(columns(f::average::avg_udaf(), column, C::Avg));
        }
    }
    for column in 0..N_COLUMNS {
        calls.push(columns(f::count::count_udaf(), column, C::Count));
    }
    calls
}

fn pool_type(column: usize) -> DataType {
    model::schema().field(column).data_type().clone()
}

/// Calls that keep their values.
fn multiset_calls() -> Vec<AggregateCall> {
    let mut calls = vec![
        distinct(f::sum::sum_udaf(), 0),
        distinct(f::sum::sum_udaf(), 2),
        distinct(f::average::avg_udaf(), 4),
        call(
            f::median::median_udaf(),
            vec![FLOAT],
            AggregateState::Multiset,
        ),
        call(
            f::bit_and_or_xor::bit_and_udaf(),
            vec![0],
            AggregateState::Multiset,
        ),
        call(
            f::array_agg::array_agg_udaf(),
            vec![9],
            AggregateState::Multiset,
        ),
        call(
            f::correlation::corr_udaf(),
            vec![FLOAT, FLOAT],
            AggregateState::Multiset,
        ),
        ordered(f::first_last::first_value_udaf(), 9, ORDER, true),
        ordered(f::first_last::last_value_udaf(), 9, ORDER, false),
        ordered(f::array_agg::array_agg_udaf(), 0, ORDER, true),
    ];
    for column in 0..N_COLUMNS {
        calls.push(call(
            f::min_max::min_udaf(),
            vec![column],
            AggregateState::Multiset,
        ));
        calls.push(call(
            f::min_max::max_udaf(),
            vec![column],
            AggregateState::Multiset,
        ));
        calls.push(distinct(f::count::count_udaf(), column));
    }
    calls
}

/// Calls over input without retractions.
fn append_only_calls() -> Vec<AggregateCall> {
    let fallback = |udaf, args| call(udaf, args, AggregateState::Accumulator);
    let mut calls = vec![
        fallback(f::median::median_udaf(), vec![0]),
        fallback(f::bit_and_or_xor::bit_or_udaf(), vec![0]),
        fallback(f::bit_and_or_xor::bit_xor_udaf(), vec![0]),
        fallback(f::array_agg::array_agg_udaf(), vec![9]),
        fallback(f::correlation::corr_udaf(), vec![FLOAT, FLOAT]),
        fallback(f::approx_distinct::approx_distinct_udaf(), vec![9]),
        fallback(f::count::count_udaf(), vec![0]),
        distinct_fallback(f::count::count_udaf(), 9),
    ];
    for column in 0..N_COLUMNS {
        for (udaf, aggregate) in [
            (f::min_max::min_udaf(), C::Min),
            (f::min_max::max_udaf(), C::Max),
        ] {
            calls.push(call(udaf, vec![column], AggregateState::Columns(aggregate)));
        }
    }
    let mut nth = ordered(f::first_last::first_value_udaf(), 9, ORDER, true);
    nth.state = AggregateState::Accumulator;
    calls.push(nth);
    calls
}

fn distinct_fallback(udaf: Arc<AggregateUDF>, column: usize) -> AggregateCall {
    AggregateCall {
        state: AggregateState::Accumulator,
        ..distinct(udaf, column)
    }
}

/// Some of the calls, each with a filter or without.
fn some_of(rng: &mut StdRng, calls: &[AggregateCall]) -> Vec<AggregateCall> {
    let n = rng.random_range(1..6);
    let mut calls: Vec<_> = calls.choose_multiple(rng, n).cloned().collect();
    calls
        .iter_mut()
        .for_each(|c| c.filter = rng.random_bool(0.3).then_some(model::FILTER));
    calls
}

struct Run {
    rng: StdRng,
    calls: Vec<AggregateCall>,
    accumulators: Accumulators,
    model: Model,
    seed: u64,
}

impl Run {
    fn new(seed: u64, calls: &[AggregateCall]) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let calls = some_of(&mut rng, calls);
        let mut accumulators = Accumulators::new(&calls, &model::schema()).unwrap();
        accumulators.resize(N_SLOTS);
        let model = Model::new(pool(&mut rng), N_SLOTS);
        Self {
            rng,
            calls,
            accumulators,
            model,
            seed,
        }
    }

    /// Changes that leave every row with a count of at least 0, in any order.
    fn changes(&mut self, retract: bool) -> Vec<(u32, u32, i64)> {
        let n = self.rng.random_range(0..40);
        let mut changes = vec![];
        for _ in 0..n {
            let slot = self.rng.random_range(0..N_SLOTS);
            let row = self.rng.random_range(0..model::N_ROWS);
            let have = self.model.count(slot, row);
            let diff = match self.rng.random_range(0..4) {
                0 if retract && have > 0 => -self.rng.random_range(1..=have),
                1 if retract && have > 0 => -1,
                2 => self.rng.random_range(1..4),
                _ => 1,
            };
            self.model.add(slot, row, diff);
            changes.push((slot as u32, row as u32, diff));
        }
        if retract {
            changes.shuffle(&mut self.rng);
        }
        changes
    }

    fn apply(&mut self, changes: &[(u32, u32, i64)]) {
        if self.rng.random_bool(0.3) {
            // By way of another accumulator, as in two phases.
            let mut other = Accumulators::new(&self.calls, &model::schema()).unwrap();
            other.resize(N_SLOTS);
            update(&mut other, &self.model, changes, self.rng.random());
            let slots: Vec<u32> = (0..N_SLOTS as u32).collect();
            let state = stored_and_read(&mut other, &slots);
            self.accumulators.merge(&slots, &state).unwrap();
        } else {
            update(
                &mut self.accumulators,
                &self.model,
                changes,
                self.rng.random(),
            );
        }
    }

    fn check(&mut self) {
        let slots: Vec<u32> = (0..N_SLOTS as u32).collect();
        let found = self.accumulators.evaluate(&slots).unwrap();
        self.model.check(&self.calls, &found, self.seed);
    }

    fn reset_some(&mut self) {
        let slot = self.rng.random_range(0..N_SLOTS);
        self.accumulators.reset(&[slot as u32]);
        self.model.clear(slot);
    }

    /// The same accumulators, restored from what they store.
    fn restore(&mut self) {
        let slots: Vec<u32> = (0..N_SLOTS as u32).collect();
        let state = stored_and_read(&mut self.accumulators, &slots);
        self.accumulators = Accumulators::new(&self.calls, &model::schema()).unwrap();
        self.accumulators.resize(N_SLOTS);
        self.accumulators.merge(&slots, &state).unwrap();
    }
}

fn update(to: &mut Accumulators, model: &Model, changes: &[(u32, u32, i64)], seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut rest = changes;
    while !rest.is_empty() {
        let part;
        (part, rest) = rest.split_at(rng.random_range(1..=rest.len()));
        let rows = UInt32Array::from_iter_values(part.iter().map(|c| c.1));
        let rows = take_record_batch(&model.pool, &rows).unwrap();
        let slots: Vec<u32> = part.iter().map(|c| c.0).collect();
        let diffs: Vec<i64> = part.iter().map(|c| c.2).collect();
        let diffs = diffs.iter().any(|&d| d != 1).then_some(diffs);
        to.update(&slots, &rows, diffs.as_deref()).unwrap();
    }
}

/// The state columns after they have been bytes.
fn stored_and_read(from: &mut Accumulators, slots: &[u32]) -> Vec<ArrayRef> {
    let codec = ValueCodec::new(from.state_fields()).unwrap();
    let state = from.state(slots).unwrap();
    let bytes = codec.encode(&state, slots.len()).unwrap();
    codec.decode(bytes.iter()).unwrap()
}

fn run(seed: u64, calls: &[AggregateCall], retract: bool) {
    let mut run = Run::new(seed, calls);
    for _ in 0..12 {
        let changes = run.changes(retract);
        run.apply(&changes);
        run.check();
        match run.rng.random_range(0..6) {
            0 => run.reset_some(),
            1 => run.restore(),
            2 => run.check(),
            _ => {}
        }
    }
}

#[test]
fn numbers_in_columns_equal_the_batch_answer_under_retraction() {
    let calls = column_calls();
    (0..150).for_each(|seed| run(seed, &calls, true));
}

#[test]
fn multisets_equal_the_batch_answer_under_retraction() {
    let calls = multiset_calls();
    (1000..1150).for_each(|seed| run(seed, &calls, true));
}

#[test]
fn append_only_accumulators_equal_the_batch_answer() {
    let calls = append_only_calls();
    (2000..2150).for_each(|seed| run(seed, &calls, false));
}

#[test]
fn append_only_accumulators_refuse_a_retraction() {
    for call in append_only_calls() {
        let mut accumulators =
            Accumulators::new(std::slice::from_ref(&call), &model::schema()).unwrap();
        accumulators.resize(1);
        let pool = pool(&mut StdRng::seed_from_u64(1));
        let is_value = |row: &usize| call.args.iter().all(|&a| pool.column(a).is_valid(*row));
        let row = pool.slice((0..model::N_ROWS).find(is_value).unwrap(), 1);
        if sets::keeps_values(&call) {
            continue;
        }
        let error = accumulators.update(&[0], &row, Some(&[-1])).unwrap_err();
        assert!(matches!(error, RuntimeError::Internal(_)), "{error}");
    }
}

#[test]
fn rule_4_8_an_exact_sum_that_does_not_fit_is_an_error_and_not_before() {
    let call = call(f::sum::sum_udaf(), vec![0], AggregateState::Columns(C::Sum));
    let mut sum = create(&call, &model::schema()).unwrap();
    sum.resize(1);
    let values =
        |v: &[i64]| -> Vec<ArrayRef> { vec![Arc::new(arrow::array::Int64Array::from(v.to_vec()))] };
    sum.update(&[0, 0], &values(&[i64::MAX, 1]), None, None)
        .unwrap();
    assert!(matches!(sum.evaluate(&[0]), Err(RuntimeError::Overflow(_))));
    sum.update(&[0], &values(&[1]), None, Some(&[-1])).unwrap();
    assert_eq!(&sum.evaluate(&[0]).unwrap(), &values(&[i64::MAX])[0]);
}

#[test]
fn averages_of_integers_are_of_the_exact_sum() {
    let call = call(
        f::average::avg_udaf(),
        vec![FLOAT],
        AggregateState::Columns(C::Avg),
    );
    let integers = Schema::new(vec![Field::new("c0", DataType::Int64, true); 2]);
    let mut avg = create(&call, &integers).unwrap();
    avg.resize(2);
    let values: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![i64::MAX, 4, i64::MAX]));
    avg.update(&[0, 0, 0], &[values], None, Some(&[1, 1, -1]))
        .unwrap();
    let expected: ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![Some(4.0), None]));
    assert_eq!(&avg.evaluate(&[0, 1]).unwrap(), &expected);
}

#[test]
fn rule_4_6_zeros_are_one_distinct_value_and_so_are_nans() {
    let floats = [0.0, -0.0, f64::NAN, -f64::NAN];
    for state in [AggregateState::Multiset, AggregateState::Accumulator] {
        let call = AggregateCall {
            state,
            ..distinct(f::count::count_udaf(), FLOAT)
        };
        let mut accumulators = Accumulators::new(&[call], &model::schema()).unwrap();
        accumulators.resize(1);
        let mut columns = pool(&mut StdRng::seed_from_u64(1))
            .slice(0, 4)
            .columns()
            .to_vec();
        columns[FLOAT] = Arc::new(arrow::array::Float64Array::from(floats.to_vec()));
        let rows = RecordBatch::try_new(Arc::new(model::schema()), columns).unwrap();
        accumulators.update(&[0; 4], &rows, None).unwrap();
        let expected: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![2]));
        assert_eq!(accumulators.evaluate(&[0]).unwrap(), [expected]);
    }
}

#[test]
fn taking_away_what_is_not_there_is_an_error() {
    let call = distinct(f::count::count_udaf(), 0);
    let mut accumulators = Accumulators::new(&[call], &model::schema()).unwrap();
    accumulators.resize(1);
    let row = pool(&mut StdRng::seed_from_u64(1)).slice(0, 1);
    accumulators.update(&[0], &row, Some(&[-1])).unwrap();
    let error = accumulators.evaluate(&[0]).unwrap_err();
    assert!(
        matches!(&error, RuntimeError::Internal(m) if m.contains("-1 times")),
        "{error}"
    );
}
