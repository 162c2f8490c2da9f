//! Random columns of every type that state can hold, for tests.

use std::sync::Arc;

use arrow::array::*;
use arrow::compute::{cast, take};
use arrow::datatypes::*;
use rand::Rng;
use rand::rngs::StdRng;

use super::fixed::{FixedType, with_fixed_type};

/// Types of which a key may consist, nested ones among them.
pub(crate) fn types() -> Vec<DataType> {
    use DataType as D;
    let item = |t: D| Arc::new(Field::new("item", t, true));
    let fields = Fields::from(vec![
        Field::new("a", D::Int32, true),
        Field::new("b", D::Utf8, true),
    ]);
    let entries = Fields::from(vec![
        Field::new("keys", D::Utf8, false),
        Field::new("values", D::Int32, true),
    ]);
    vec![
        D::Null,
        D::Boolean,
        D::Int8,
        D::Int16,
        D::Int32,
        D::Int64,
        D::UInt8,
        D::UInt16,
        D::UInt32,
        D::UInt64,
        D::Float16,
        D::Float32,
        D::Float64,
        D::Decimal32(7, 2),
        D::Decimal64(15, 3),
        D::Decimal128(38, 9),
        D::Decimal256(76, 20),
        D::Date32,
        D::Date64,
        D::Time32(TimeUnit::Second),
        D::Time64(TimeUnit::Nanosecond),
        D::Timestamp(TimeUnit::Second, None),
        D::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into())),
        D::Duration(TimeUnit::Millisecond),
        D::Interval(IntervalUnit::YearMonth),
        D::Interval(IntervalUnit::DayTime),
        D::Interval(IntervalUnit::MonthDayNano),
        D::Utf8,
        D::LargeUtf8,
        D::Utf8View,
        D::Binary,
        D::LargeBinary,
        D::BinaryView,
        D::FixedSizeBinary(3),
        D::List(item(D::Int64)),
        D::LargeList(item(D::Utf8)),
        D::FixedSizeList(item(D::Float64), 2),
        D::List(item(D::List(item(D::Utf8)))),
        D::Struct(fields.clone()),
        D::List(item(D::Struct(fields))),
        D::Map(
            Arc::new(Field::new("entries", D::Struct(entries), false)),
            false,
        ),
        D::Dictionary(Box::new(D::Int32), Box::new(D::Utf8)),
    ]
}

/// Values from a small range that repeat, with nulls and the type's extremes among them.
pub(crate) fn random_column(rng: &mut StdRng, data_type: &DataType, n_rows: usize) -> ArrayRef {
    macro_rules! fixed {
        ($t:ty) => {{
            let array: PrimitiveArray<$t> = (0..n_rows).map(|_| random_fixed::<$t>(rng)).collect();
            Arc::new(array.with_data_type(data_type.clone()))
        }};
    }
    with_fixed_type!(data_type => fixed!(),
        DataType::Null => Arc::new(NullArray::new(n_rows)),
        DataType::Boolean => {
            let value = |rng: &mut StdRng| rng.random_bool(0.8).then(|| rng.random_bool(0.5));
            Arc::new((0..n_rows).map(|_| value(rng)).collect::<BooleanArray>())
        },
        DataType::Utf8 => Arc::new((0..n_rows).map(|_| random_text(rng)).collect::<StringArray>()),
        DataType::FixedSizeBinary(width) => {
            let value = |rng: &mut StdRng| rng.random_bool(0.8).then(|| vec![rng.random_range(0..3u8); *width as usize]);
            let values: Vec<_> = (0..n_rows).map(|_| value(rng)).collect();
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), *width).unwrap())
        },
        DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::Dictionary(..) => {
            cast(&random_column(rng, &DataType::Utf8, n_rows), data_type).unwrap()
        },
        nested => random_nested(rng, nested, n_rows),
    )
}

fn random_fixed<T: FixedType>(rng: &mut StdRng) -> Option<T::Native> {
    let mut bytes = vec![0u8; size_of::<T::Native>()];
    match rng.random_range(0..10) {
        0 => return None,
        1 => bytes.fill(0xff),
        2 => {}
        3 => rng.fill(&mut bytes[..]),
        _ => {
            bytes[0] = 0x80;
            *bytes.last_mut().unwrap() ^= rng.random_range(0..4u8);
        }
    }
    Some(T::canonical(T::read_ordered(&bytes)))
}

fn random_text(rng: &mut StdRng) -> Option<String> {
    const PARTS: [&str; 6] = [
        "",
        "a",
        "b",
        "\0",
        "\u{1}",
        "a longer part, beyond sixteen bytes",
    ];
    let n = rng.random_range(0..4);
    rng.random_bool(0.9).then(|| {
        (0..n)
            .map(|_| PARTS[rng.random_range(0..PARTS.len())])
            .collect()
    })
}

fn random_nested(rng: &mut StdRng, data_type: &DataType, n_rows: usize) -> ArrayRef {
    let lengths: Vec<usize> = (0..n_rows).map(|_| rng.random_range(0..3)).collect();
    let nulls: arrow::buffer::NullBuffer = (0..n_rows).map(|_| rng.random_bool(0.85)).collect();
    let offsets = arrow::buffer::OffsetBuffer::<i32>::from_lengths(lengths.iter().copied());
    let total = lengths.iter().sum();
    match data_type {
        DataType::List(f) => {
            let values = random_column(rng, f.data_type(), total);
            Arc::new(ListArray::new(f.clone(), offsets, values, Some(nulls)))
        }
        DataType::LargeList(f) => {
            let values = random_column(rng, f.data_type(), total);
            let offsets = arrow::buffer::OffsetBuffer::from_lengths(lengths);
            Arc::new(LargeListArray::new(f.clone(), offsets, values, Some(nulls)))
        }
        DataType::FixedSizeList(f, n) => {
            let values = random_column(rng, f.data_type(), n_rows * *n as usize);
            Arc::new(FixedSizeListArray::new(f.clone(), *n, values, Some(nulls)))
        }
        DataType::Struct(fields) => {
            let columns = fields
                .iter()
                .map(|f| random_column(rng, f.data_type(), n_rows))
                .collect();
            Arc::new(StructArray::new(fields.clone(), columns, Some(nulls)))
        }
        DataType::Map(entries, sorted) => {
            let keys: ArrayRef = Arc::new(StringArray::from_iter_values(
                (0..total).map(|i| format!("k{i}")),
            ));
            let values = random_column(rng, &DataType::Int32, total);
            let DataType::Struct(fields) = entries.data_type() else {
                unreachable!("a map has entries")
            };
            let structs = StructArray::new(fields.clone(), vec![keys, values], None);
            Arc::new(MapArray::new(
                entries.clone(),
                offsets,
                structs,
                Some(nulls),
                *sorted,
            ))
        }
        other => unreachable!("no random {other}"),
    }
}

/// The same rows through a detour, so that slices and offsets differ.
pub(crate) fn resliced(column: &ArrayRef) -> ArrayRef {
    let n = column.len() as u32;
    let doubled = take(
        column,
        &UInt32Array::from_iter_values((0..n).chain(0..n)),
        None,
    )
    .unwrap();
    doubled.slice(n as usize, n as usize)
}
