use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    Float32Array, Float64Array, Int32Array, IntervalMonthDayNanoArray, ListArray, RecordBatch,
    StringArray, StructArray, Time64NanosecondArray, TimestampNanosecondArray, UInt8Array,
    UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int32Type, IntervalMonthDayNano, Schema, i256};
use bytes::BytesMut;

use super::*;

fn batch(array: ArrayRef) -> RecordBatch {
    let field = Field::new("c", array.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap()
}

/// Every value as text, `NULL` where there is none.
fn texts(array: impl arrow::array::Array + 'static) -> Vec<String> {
    let batch = batch(Arc::new(array));
    let rows = Rows::new(&batch, &Formats::default()).unwrap();
    let text = |row| {
        let mut out = BytesMut::new();
        if rows.is_null(row, 0) {
            return "NULL".to_string();
        }
        rows.text(row, 0, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    };
    (0..rows.n_rows()).map(text).collect()
}

/// The bytes of the first value.
fn bytes(array: impl arrow::array::Array + 'static) -> Vec<u8> {
    let batch = batch(Arc::new(array));
    let rows = Rows::new(&batch, &Formats(vec![1])).unwrap();
    let mut out = BytesMut::new();
    rows.data_row(0, &mut out).unwrap();
    // The number of columns and the length of the value precede it.
    assert_eq!(out[2..6], ((out.len() - 6) as i32).to_be_bytes());
    out[6..].to_vec()
}

#[test]
fn floats_are_short_and_have_an_exponent_where_postgresql_has_one() {
    let values = [
        1.0,
        -0.5,
        0.1,
        1e15,
        123_456_789_012_345.0,
        1e-4,
        1.5e-5,
        f64::NAN,
        f64::NEG_INFINITY,
        1.797_693_134_862_315_7e308,
        0.0,
        12.25,
    ];
    assert_eq!(
        texts(Float64Array::from(values.to_vec())),
        [
            "1",
            "-0.5",
            "0.1",
            "1e+15",
            "123456789012345",
            "0.0001",
            "1.5e-05",
            "NaN",
            "-Infinity",
            "1.7976931348623157e+308",
            "0",
            "12.25"
        ]
    );
    assert_eq!(
        texts(Float32Array::from(vec![0.1, 1e6, 123456.0])),
        ["0.1", "1e+06", "123456"]
    );
}

#[test]
fn decimals_keep_their_scale() {
    let values = vec![Some(1250), Some(-5), Some(0), None, Some(i128::MAX)];
    let array = Decimal128Array::from(values).with_precision_and_scale(38, 2);
    // The largest does not fit 38 digits, and is written all the same.
    let expected = [
        "12.50",
        "-0.05",
        "0.00",
        "NULL",
        "1701411834604692317316873037158841057.27",
    ];
    assert_eq!(texts(array.unwrap()), expected);
    let wide = Decimal256Array::from(vec![i256::from_i128(-123_456)]);
    assert_eq!(
        texts(wide.with_precision_and_scale(60, 4).unwrap()),
        ["-12.3456"]
    );
    assert_eq!(
        texts(UInt64Array::from(vec![u64::MAX])),
        ["18446744073709551615"]
    );
}

#[test]
fn binary_decimals_are_groups_of_four_digits() {
    let numeric = |value: i128, scale: i8| {
        let array = Decimal128Array::from(vec![value]).with_precision_and_scale(38, scale);
        let bytes = bytes(array.unwrap());
        let words: Vec<i16> = bytes
            .chunks(2)
            .map(|pair| i16::from_be_bytes(pair.try_into().unwrap()))
            .collect();
        words
    };
    // Groups, weight, sign, scale, then the groups.
    assert_eq!(numeric(0, 2), [0, 0, 0, 2]);
    assert_eq!(numeric(1250, 2), [2, 0, 0, 2, 12, 5000]);
    assert_eq!(numeric(-5, 4), [1, -1, 0x4000, 4, 5]);
    assert_eq!(numeric(5, 5), [1, -2, 0, 5, 5000]);
    assert_eq!(numeric(10_000, 0), [1, 1, 0, 0, 1]);
    assert_eq!(numeric(123_456_789, 1), [3, 1, 0, 1, 1234, 5678, 9000]);
}

#[test]
fn times_are_iso_to_the_microsecond() {
    let nanos = vec![0, 1_704_103_215_500_000_999, -1, 1_704_103_215_000_000_000];
    let local = [
        "1970-01-01 00:00:00",
        "2024-01-01 10:00:15.5",
        "1969-12-31 23:59:59.999999",
        "2024-01-01 10:00:15",
    ];
    assert_eq!(texts(TimestampNanosecondArray::from(nanos.clone())), local);
    let instants = TimestampNanosecondArray::from(nanos).with_timezone("+00:00");
    assert_eq!(texts(instants), local.map(|text| format!("{text}+00")));
    assert_eq!(
        texts(Date32Array::from(vec![0, 19_723, -719_163, -719_528])),
        ["1970-01-01", "2024-01-01", "0001-12-31 BC", "0001-01-01 BC"]
    );
    assert_eq!(
        texts(Time64NanosecondArray::from(vec![0, 36_615_250_000_000])),
        ["00:00:00", "10:10:15.25"]
    );
    let interval = |months, days, nanoseconds| IntervalMonthDayNano::new(months, days, nanoseconds);
    let intervals = vec![
        interval(0, 0, 0),
        interval(14, -3, 3_661_500_000_000),
        interval(1, 1, -1_000_000_000),
        interval(0, 2, 0),
    ];
    assert_eq!(
        texts(IntervalMonthDayNanoArray::from(intervals)),
        [
            "00:00:00",
            "1 year 2 mons -3 days 01:01:01.5",
            "1 mon 1 day -00:00:01",
            "2 days"
        ]
    );
}

#[test]
fn binary_times_count_from_2000() {
    assert_eq!(bytes(Date32Array::from(vec![10_958])), 1_i32.to_be_bytes());
    let nanos = 946_684_800_000_001_999;
    assert_eq!(
        bytes(TimestampNanosecondArray::from(vec![nanos])),
        1_i64.to_be_bytes()
    );
    let far = batch(Arc::new(Date32Array::from(vec![i32::MIN])));
    let rows = Rows::new(&far, &Formats(vec![1])).unwrap();
    assert!(rows.data_row(0, &mut BytesMut::new()).is_err());
}

#[test]
fn arrays_quote_what_would_be_read_otherwise() {
    let values = StringArray::from(vec![
        Some("a"),
        Some(""),
        Some("null"),
        None,
        Some("b c"),
        Some("\"\\"),
        Some("{,}"),
    ]);
    let list = ListArray::try_new(
        Arc::new(Field::new("item", DataType::Utf8, true)),
        arrow::buffer::OffsetBuffer::from_lengths([7, 0]),
        Arc::new(values),
        None,
    );
    assert_eq!(
        texts(list.unwrap()),
        [r#"{a,"","null",NULL,"b c","\"\\","{,}"}"#, "{}"]
    );
    let numbers =
        ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(7), None])]);
    let expected: Vec<u8> = [1, 1, 23, 2, 1, 4, 7, -1]
        .iter()
        .flat_map(|n: &i32| n.to_be_bytes())
        .collect();
    assert_eq!(bytes(numbers), expected);
}

#[test]
fn what_postgresql_does_not_have_is_json() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let texts_: ArrayRef = Arc::new(StringArray::from(vec!["x\ny", "\""]));
    let fields = vec![
        (Arc::new(Field::new("n", DataType::Int32, true)), numbers),
        (Arc::new(Field::new("t", DataType::Utf8, true)), texts_),
    ];
    assert_eq!(
        texts(StructArray::from(fields)),
        [r#"{"n":1,"t":"x\ny"}"#, r#"{"n":null,"t":"\""}"#]
    );
}

#[test]
fn small_values_are_plain() {
    assert_eq!(
        texts(BooleanArray::from(vec![Some(true), Some(false), None])),
        ["t", "f", "NULL"]
    );
    assert_eq!(texts(UInt8Array::from(vec![255])), ["255"]);
    assert_eq!(bytes(UInt8Array::from(vec![255])), 255_i16.to_be_bytes());
    assert_eq!(
        texts(BinaryArray::from(vec![&b"\x00\xff"[..]])),
        ["\\x00ff"]
    );
    assert_eq!(
        bytes(BinaryArray::from(vec![&b"\x00\xff"[..]])),
        b"\x00\xff"
    );
}
