//! Random columns, for tests that what is written is read back equal.

use std::sync::Arc;

use arrow::array::types::*;
use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit, i256};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

fn maybe<T>(rng: &mut StdRng, n: usize, mut value: impl FnMut(&mut StdRng) -> T) -> Vec<Option<T>> {
    (0..n)
        .map(|_| (rng.random_range(0..5) > 0).then(|| value(rng)))
        .collect()
}

fn primitive<T: ArrowPrimitiveType>(
    rng: &mut StdRng,
    n: usize,
    value: impl FnMut(&mut StdRng) -> T::Native,
) -> ArrayRef {
    Arc::new(
        maybe(rng, n, value)
            .into_iter()
            .collect::<PrimitiveArray<T>>(),
    )
}

fn text(rng: &mut StdRng) -> String {
    let parts = [
        "a",
        "größe",
        "\n",
        "\"",
        "\\",
        "\u{1}",
        "😀",
        " ",
        "long text without end",
        "/",
    ];
    (0..rng.random_range(0..4))
        .map(|_| *parts.choose(rng).unwrap())
        .collect()
}

fn float(rng: &mut StdRng) -> f64 {
    match rng.random_range(0..6) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2 => -0.0,
        3 => Some(f64::from_bits(rng.random()))
            .filter(|f| f.is_finite())
            .unwrap_or(0.1),
        _ => f64::from(rng.random_range(-1000..1000)) / 8.0,
    }
}

/// `n` random values of a type, some of them null.
pub fn array(rng: &mut StdRng, data_type: &DataType, n: usize) -> ArrayRef {
    use TimeUnit as U;
    let wide = |rng: &mut StdRng| rng.random::<i64>() >> rng.random_range(0..60);
    match data_type {
        DataType::Boolean => Arc::new(BooleanArray::from(maybe(rng, n, |r| r.random::<bool>()))),
        DataType::Int8 => primitive::<Int8Type>(rng, n, |r| r.random()),
        DataType::Int16 => primitive::<Int16Type>(rng, n, |r| r.random()),
        DataType::Int32 => primitive::<Int32Type>(rng, n, |r| r.random()),
        DataType::Int64 => primitive::<Int64Type>(rng, n, wide),
        DataType::UInt8 => primitive::<UInt8Type>(rng, n, |r| r.random()),
        DataType::UInt16 => primitive::<UInt16Type>(rng, n, |r| r.random()),
        DataType::UInt32 => primitive::<UInt32Type>(rng, n, |r| r.random()),
        DataType::UInt64 => primitive::<UInt64Type>(rng, n, |r| r.random()),
        DataType::Float32 => primitive::<Float32Type>(rng, n, |r| float(r) as f32),
        DataType::Float64 => primitive::<Float64Type>(rng, n, float),
        DataType::Decimal128(p, s) => {
            let values = maybe(rng, n, |r| {
                i128::from(r.random_range(-99_999_999i64..=99_999_999))
            });
            Arc::new(
                Decimal128Array::from(values)
                    .with_precision_and_scale(*p, *s)
                    .unwrap(),
            )
        }
        DataType::Decimal256(p, s) => {
            let values = maybe(rng, n, |r| i256::from_i128(r.random::<i128>()));
            Arc::new(
                Decimal256Array::from(values)
                    .with_precision_and_scale(*p, *s)
                    .unwrap(),
            )
        }
        DataType::Utf8 => Arc::new(StringArray::from(maybe(rng, n, text))),
        DataType::Binary => {
            let bytes = maybe(rng, n, |r| text(r).into_bytes());
            Arc::new(bytes.iter().map(Option::as_deref).collect::<BinaryArray>())
        }
        DataType::Date32 => {
            primitive::<Date32Type>(rng, n, |r| r.random_range(-719_528..2_932_897))
        }
        DataType::Time32(U::Second) => {
            primitive::<Time32SecondType>(rng, n, |r| r.random_range(0..86_400))
        }
        DataType::Time64(U::Nanosecond) => {
            primitive::<Time64NanosecondType>(rng, n, |r| r.random_range(0..86_400_000_000_000))
        }
        DataType::Timestamp(U::Nanosecond, zone) => {
            let values = maybe(rng, n, wide)
                .into_iter()
                .collect::<TimestampNanosecondArray>();
            Arc::new(values.with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(U::Millisecond, None) => {
            primitive::<TimestampMillisecondType>(rng, n, |r| {
                r.random_range(-62_167_219_200_000..253_402_300_800_000)
            })
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            primitive::<IntervalMonthDayNanoType>(rng, n, |r| {
                IntervalMonthDayNano::new(r.random_range(-99..99), r.random_range(-99..99), wide(r))
            })
        }
        DataType::List(item) => {
            let lengths: Vec<_> = (0..n).map(|_| rng.random_range(0..4)).collect();
            let items = array(rng, item.data_type(), lengths.iter().sum());
            let nulls = NullBuffer::from_iter(lengths.iter().map(|len| *len > 0 || rng.random()));
            Arc::new(ListArray::new(
                item.clone(),
                OffsetBuffer::from_lengths(lengths),
                items,
                Some(nulls),
            ))
        }
        DataType::Struct(fields) => {
            let columns = fields
                .iter()
                .map(|f| array(rng, f.data_type(), n))
                .collect();
            Arc::new(StructArray::new(fields.clone(), columns, None))
        }
        other => unreachable!("{other}"),
    }
}
