//! What the encoder writes, the decoder reads back as equal columns: for random columns of every type.

use std::sync::Arc;

use arrow::array::types::*;
use arrow::array::*;
use arrow::buffer::OffsetBuffer;
use arrow::compute;
use arrow::datatypes::{DataType, Field, IntervalUnit, Schema};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use thalweg_dataflow::table::json_field;

use super::decoder::JsonDecoder;
use super::encoder::JsonEncoder;
use super::*;
use crate::format::encode::Encoder;
use crate::format::random::array;

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
    let mut decoder = JsonDecoder::new(rows.schema(), reading(options)).unwrap();
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
