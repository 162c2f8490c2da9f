//! What the encoder writes, the decoder reads back as equal columns: for random columns of every type.

use std::sync::Arc;

use arrow::array::types::*;
use arrow::array::*;
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute;
use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, IntervalUnit, Schema, i256};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use thalweg_dataflow::table::json_field;

use super::decoder::JsonDecoder;
use super::encoder::JsonEncoder;
use super::*;
use crate::format::encode::Encoder;

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

fn array(rng: &mut StdRng, data_type: &DataType, n: usize) -> ArrayRef {
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

fn fields() -> Vec<Field> {
    let nanos =
        |zone: Option<&str>| DataType::Timestamp(TimeUnit::Nanosecond, zone.map(Into::into));
    let list = |item| DataType::List(Arc::new(Field::new("item", item, true)));
    let inner = vec![
        Field::new("a \"b\"", DataType::Utf8, true),
        Field::new("c", list(DataType::Float64), true),
    ];
    [
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(10, 2),
        DataType::Decimal128(38, 38),
        DataType::Decimal256(76, 10),
        DataType::Utf8,
        DataType::Binary,
        DataType::Date32,
        DataType::Time32(TimeUnit::Second),
        DataType::Time64(TimeUnit::Nanosecond),
        nanos(None),
        nanos(Some("+00:00")),
        DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Interval(IntervalUnit::MonthDayNano),
        list(DataType::Int64),
        list(list(DataType::Utf8)),
        DataType::Struct(inner.into()),
    ]
    .into_iter()
    .enumerate()
    .map(|(i, t)| Field::new(format!("c{i} \"ü\""), t, true))
    .collect()
}

fn encode(rows: &RecordBatch, options: &Options) -> String {
    let mut out = Vec::new();
    JsonEncoder::new(&rows.schema(), options)
        .unwrap()
        .rows(rows, &mut out)
        .unwrap();
    String::from_utf8(out).unwrap()
}

fn round_trip(rows: &RecordBatch, options: &Options) -> RecordBatch {
    let text = encode(rows, options);
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    }
    let mut decoder = JsonDecoder::new(rows.schema(), epoch_unit(options)).unwrap();
    decoder.decode(text.as_bytes(), 0, usize::MAX, false);
    let decoded = decoder.flush().unwrap();
    assert_eq!(decoded.bad, [], "{text}");
    decoded.rows
}

fn options(given: &[(&str, &str)]) -> Options {
    Options::resolve(
        &given
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect(),
        &[],
    )
}

#[test]
fn random_columns_are_read_back_equal() {
    let mut rng = StdRng::seed_from_u64(5);
    for round in 0..60 {
        let schema = Arc::new(Schema::new(fields()));
        let n = rng.random_range(0..30);
        let columns = schema
            .fields()
            .iter()
            .map(|f| array(&mut rng, f.data_type(), n + 3))
            .collect();
        let rows = RecordBatch::try_new(schema, columns).unwrap().slice(2, n);
        let options = match round % 3 {
            0 => options(&[]),
            1 => options(&[
                ("json.decimal_encoding", "string"),
                ("json.timestamp_format", "rfc3339"),
            ]),
            _ => options(&[("json.timestamp_format", "unix_nanos")]),
        };
        let found = round_trip(&rows, &options);
        for ((expected, found), field) in rows
            .columns()
            .iter()
            .zip(found.columns())
            .zip(rows.schema().fields())
        {
            assert_eq!(expected, found, "{}", field.data_type());
        }
    }
}

#[test]
fn a_row_as_it_is_read_by_people() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(UInt64Array::from(vec![u64::MAX]))),
        (
            "amount",
            Arc::new(
                Decimal128Array::from(vec![5000])
                    .with_precision_and_scale(10, 2)
                    .unwrap(),
            ),
        ),
        ("x", Arc::new(Float64Array::from(vec![1.0]))),
        ("nan", Arc::new(Float64Array::from(vec![f64::NAN]))),
        (
            "local",
            Arc::new(TimestampNanosecondArray::from(vec![
                1_704_103_215_020_000_000,
            ])),
        ),
        (
            "utc",
            Arc::new(
                TimestampNanosecondArray::from(vec![1_704_103_215_000_000_000])
                    .with_timezone("+00:00"),
            ),
        ),
        ("none", Arc::new(StringArray::from(vec![None::<&str>]))),
        ("bytes", Arc::new(BinaryArray::from_vec(vec![b"\xff"]))),
        (
            "took",
            Arc::new(DurationMillisecondArray::from(vec![90_061_500])),
        ),
    ];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    assert_eq!(
        encode(&rows, &options(&[])),
        "{\"id\":18446744073709551615,\"amount\":50.00,\"x\":1.0,\"nan\":\"NaN\",\"local\":\"2024-01-01T10:00:15.02\",\
         \"utc\":\"2024-01-01T10:00:15Z\",\"none\":null,\"bytes\":\"/w==\",\"took\":\"25:01:01.5\"}\n"
    );
    let millis = options(&[
        ("json.timestamp_format", "UnixMillis"),
        ("json.decimal_encoding", "string"),
    ]);
    let text = encode(&rows, &millis);
    assert!(
        text.contains("\"amount\":\"50.00\"") && text.contains("\"local\":1704103215020,"),
        "{text}"
    );
}

#[test]
fn json_columns_are_embedded() {
    let schema = Arc::new(Schema::new(vec![json_field("doc", true)]));
    let docs: ArrayRef = Arc::new(StringArray::from(vec![
        Some("{\"a\": [1]}"),
        None,
        Some("\"x\""),
    ]));
    let rows = RecordBatch::try_new(schema, vec![docs]).unwrap();
    assert_eq!(
        encode(&rows, &options(&[])),
        "{\"doc\":{\"a\": [1]}}\n{\"doc\":null}\n{\"doc\":\"x\"}\n"
    );
    assert_eq!(round_trip(&rows, &options(&[])), rows);
}

#[test]
fn other_encodings_of_the_same_values_are_written_alike() {
    let plain: ArrayRef = Arc::new(StringArray::from(vec![
        Some("a"),
        None,
        Some("b"),
        Some("a"),
    ]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(-3), Some(4)]));
    let dictionary = |t| DataType::Dictionary(Box::new(DataType::Int8), Box::new(t));
    let list = |item| Arc::new(Field::new("item", item, true));
    let mut expected = None;
    for (text, number) in [
        (DataType::Utf8, DataType::Int64),
        (DataType::Utf8View, DataType::Int8),
        (DataType::LargeUtf8, DataType::Int16),
        (dictionary(DataType::Utf8), dictionary(DataType::Int64)),
    ] {
        let text = compute::cast(&plain, &text).unwrap();
        let number = compute::cast(&numbers, &number).unwrap();
        let offsets = OffsetBuffer::from_lengths([2, 0, 1, 1]);
        let lists = ListArray::new(list(text.data_type().clone()), offsets, text.clone(), None);
        let large =
            compute::cast(&lists, &DataType::LargeList(list(text.data_type().clone()))).unwrap();
        let rows = RecordBatch::try_from_iter([("t", text), ("n", number), ("l", large)]).unwrap();
        let written = encode(&rows, &options(&[]));
        assert_eq!(expected.get_or_insert(written.clone()), &written);
    }
    let first = "{\"t\":\"a\",\"n\":1,\"l\":[\"a\",null]}\n{\"t\":null,\"n\":null,\"l\":[]}\n";
    assert!(expected.unwrap().starts_with(first));
}

#[test]
fn maps_and_unions_are_written_as_what_they_hold() {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    maps.keys().append_value("a\"");
    maps.values().append_value(1);
    maps.append(true).unwrap();
    maps.append(false).unwrap();
    let mut unions = UnionBuilder::new_sparse();
    unions.append::<Int64Type>("int", 7).unwrap();
    unions.append::<Float64Type>("float", 0.5).unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("m", Arc::new(maps.finish())),
        ("u", Arc::new(unions.build().unwrap())),
    ];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    assert_eq!(
        encode(&rows, &options(&[])),
        "{\"m\":{\"a\\\"\":1},\"u\":7}\n{\"m\":null,\"u\":0.5}\n"
    );
}

#[test]
fn rows_without_columns_are_empty_objects() {
    let rows =
        thalweg_dataflow::change::record_batch(Arc::new(Schema::empty()), vec![], 2).unwrap();
    assert_eq!(encode(&rows, &options(&[])), "{}\n{}\n");
}
