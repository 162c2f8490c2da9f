use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{
    DataType, Field, Fields, Float64Type, Int32Type, Int64Type, Schema, TimestampNanosecondType,
};
use arrow::util::pretty::pretty_format_batches;
use thalweg_dataflow::table::json_field;
use thalweg_runtime::connector::BadReason;

use super::super::decode::{Consumed, Decoded};
use super::decoder::JsonDecoder;
use super::*;

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(
        fields
            .iter()
            .map(|(n, t)| Field::new(*n, t.clone(), true))
            .collect::<Vec<_>>(),
    ))
}

fn reading_of(epoch: EpochUnit) -> Reading {
    Reading {
        epoch,
        ..Reading::default()
    }
}

fn decode_with(schema: &SchemaRef, epoch: EpochUnit, text: impl AsRef<[u8]>) -> Decoded {
    let text = text.as_ref();
    let mut decoder = JsonDecoder::new(Arc::clone(schema), reading_of(epoch)).unwrap();
    let done = decoder.decode(text, 0, usize::MAX, true);
    assert_eq!(done.bytes, text.len());
    let decoded = decoder.flush().unwrap();
    assert_eq!(done.records, decoded.origins.len() + decoded.bad.len());
    decoded
}

fn decode(schema: &SchemaRef, text: impl AsRef<[u8]>) -> Decoded {
    decode_with(schema, EpochUnit::ByMagnitude, text)
}

/// Rows as text, without the frame around them.
fn rows(decoded: &Decoded) -> Vec<String> {
    let table = pretty_format_batches(std::slice::from_ref(&decoded.rows))
        .unwrap()
        .to_string();
    let n_frame = if decoded.rows.num_columns() == 0 {
        usize::MAX
    } else {
        3
    };
    let lines = table.lines().skip(n_frame).filter(|l| l.starts_with('|'));
    lines
        .map(|l| {
            l.trim_matches('|')
                .split('|')
                .map(str::trim)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

/// The fault of the one bad record.
fn fault(schema: &SchemaRef, text: impl AsRef<[u8]>) -> (BadReason, String) {
    let decoded = decode(schema, text);
    assert_eq!(
        (decoded.rows.num_rows(), decoded.bad.len()),
        (0, 1),
        "{:?}",
        decoded.bad
    );
    let bad = decoded.bad.into_iter().next().unwrap();
    (bad.reason, bad.message)
}

/// The value of column `x` read from `value`, shown, or the fault.
fn one(data_type: DataType, value: &str) -> Result<String, (BadReason, String)> {
    let schema = schema(&[("x", data_type)]);
    let decoded = decode(&schema, format!("{{\"x\":{value}}}\n"));
    match decoded.bad.first() {
        Some(bad) => Err((bad.reason, bad.message.clone())),
        None => Ok(rows(&decoded).remove(0)),
    }
}

#[test]
fn fields_go_to_their_columns_in_any_order() {
    let schema = schema(&[("id", DataType::Int64), ("name", DataType::Utf8)]);
    let text = "{\"id\":1,\"name\":\"a\"}\n{ \"name\" : \"b\" , \"x\":[{\"id\":9}], \"id\" : 2 }\r\n\n  \n{}\n{\"id\":3}";
    let decoded = decode(&schema, text);
    assert_eq!(rows(&decoded), ["1 a", "2 b", " ", "3 "]);
    let starts =
        ["{\"id\":1", "{ \"name", "{}", "{\"id\":3"].map(|start| text.find(start).unwrap() as u64);
    assert_eq!(decoded.origins, starts);
    assert!(decoded.bad.is_empty());
}

#[test]
fn of_a_repeated_key_the_last_counts() {
    let schema = schema(&[("id", DataType::Int64), ("s", DataType::Utf8)]);
    let decoded = decode(&schema, r#"{"id":1,"s":"x","id":null,"s":"y","id":3}"#);
    assert_eq!(rows(&decoded), ["3 y"]);
}

#[test]
fn no_columns_still_count_and_check_records() {
    let decoded = decode(&Arc::new(Schema::empty()), "{\"a\":1}\n{\"a\":}\n{}\n");
    assert_eq!((decoded.rows.num_rows(), decoded.bad.len()), (2, 1));
}

#[test]
fn integers_are_never_stored_as_something_else() {
    let bigint = |text| one(DataType::Int64, text);
    assert_eq!(
        bigint("-9223372036854775808").as_deref(),
        Ok("-9223372036854775808")
    );
    assert_eq!(bigint("68.0").as_deref(), Ok("68"));
    let not_whole = (
        BadReason::Type,
        "column \"x\": 68.32 is not a whole number".to_string(),
    );
    assert_eq!(bigint("68.32"), Err(not_whole));
    let too_big = "column \"x\": 9223372036854775808 is out of range for BIGINT".to_string();
    assert_eq!(
        bigint("9223372036854775808"),
        Err((BadReason::Range, too_big))
    );
    let text = (
        BadReason::Type,
        "column \"x\": \"12\" is not a whole number".to_string(),
    );
    assert_eq!(bigint("\"12\""), Err(text));
    for malformed in ["012", "1.", "NaN", "+1", "1x", "-"] {
        assert_eq!(
            bigint(malformed).unwrap_err().0,
            BadReason::Malformed,
            "{malformed}"
        );
    }
    for other in ["true", "[1]", "{\"y\":1}"] {
        assert_eq!(bigint(other).unwrap_err().0, BadReason::Type, "{other}");
    }
    assert_eq!(
        one(DataType::UInt64, "18446744073709551615").as_deref(),
        Ok("18446744073709551615")
    );
    assert_eq!(one(DataType::UInt8, "-1").unwrap_err().0, BadReason::Range);
}

#[test]
fn floats_take_the_names_of_what_has_no_digits_as_text_only() {
    assert_eq!(one(DataType::Float64, "1.5e300").as_deref(), Ok("1.5e300"));
    assert_eq!(one(DataType::Float64, "\"NaN\"").as_deref(), Ok("NaN"));
    assert_eq!(
        one(DataType::Float32, "\"-Infinity\"").as_deref(),
        Ok("-inf")
    );
    assert_eq!(
        one(DataType::Float64, "\"1.5\"").unwrap_err().0,
        BadReason::Type
    );
    assert_eq!(
        one(DataType::Float64, "Infinity").unwrap_err().0,
        BadReason::Malformed
    );
    assert_eq!(
        one(DataType::Float64, "1e400").unwrap_err().0,
        BadReason::Range
    );
}

#[test]
fn decimals_come_as_numbers_or_as_text() {
    let decimal = |text| one(DataType::Decimal128(10, 2), text);
    for text in ["50.00", "50", "5e1", "\"50.0\""] {
        assert_eq!(decimal(text).as_deref(), Ok("50.00"), "{text}");
    }
    let lost =
        "column \"x\": 50.001 has more fraction digits than DECIMAL(10, 2) keeps".to_string();
    assert_eq!(decimal("50.001"), Err((BadReason::Range, lost)));
    assert_eq!(
        decimal("\"50,0\"").unwrap_err().1,
        "column \"x\": \"50,0\" is not a number"
    );
    assert_eq!(decimal("123456789.00").unwrap_err().0, BadReason::Range);
    assert_eq!(
        one(DataType::Decimal256(40, 1), "\"0.5\"").as_deref(),
        Ok("0.5")
    );
}

#[test]
fn text_is_unescaped_and_never_made_from_numbers() {
    assert_eq!(
        one(DataType::Utf8, r#""a\tb\ud83d\ude00""#).as_deref(),
        Ok("a\tb😀")
    );
    assert_eq!(
        one(DataType::Utf8, "12").unwrap_err().1,
        "column \"x\": 12 is not text"
    );
    assert_eq!(
        one(DataType::Utf8, r#""\ud83d""#).unwrap_err().0,
        BadReason::Malformed
    );
}

#[test]
fn booleans_and_bytes() {
    assert_eq!(one(DataType::Boolean, "true").as_deref(), Ok("true"));
    assert_eq!(
        one(DataType::Boolean, "tru").unwrap_err().0,
        BadReason::Malformed
    );
    assert_eq!(one(DataType::Boolean, "1").unwrap_err().0, BadReason::Type);
    assert_eq!(one(DataType::Binary, r#""\/w==""#).as_deref(), Ok("ff"));
    assert_eq!(
        one(DataType::Binary, "\"?\"").unwrap_err().0,
        BadReason::Type
    );
}

#[test]
fn times_come_as_text_or_as_numbers() {
    let column = schema(&[("x", DataType::Timestamp(TimeUnit::Nanosecond, None))]);
    let nanos = |epoch, value: &str| {
        let decoded = decode_with(&column, epoch, format!("{{\"x\":{value}}}"));
        let values = decoded
            .rows
            .column(0)
            .as_primitive::<TimestampNanosecondType>();
        decoded
            .bad
            .first()
            .map_or_else(|| Ok(values.value(0)), |bad| Err(bad.reason))
    };
    let expected = Ok(1_704_103_215_020_000_000);
    assert_eq!(
        nanos(EpochUnit::ByMagnitude, r#""2024-01-01T10:00:15.020Z""#),
        expected
    );
    assert_eq!(nanos(EpochUnit::ByMagnitude, "1704103215020"), expected);
    assert_eq!(
        nanos(EpochUnit::Fixed(TimeUnit::Microsecond), "1704103215020000"),
        expected
    );
    assert_eq!(
        nanos(EpochUnit::Refused, "1704103215020"),
        Err(BadReason::Type)
    );
    assert_eq!(
        nanos(EpochUnit::Refused, r#""2024-01-01T10:00:15.020Z""#),
        expected
    );
    assert_eq!(
        nanos(EpochUnit::ByMagnitude, "\"soon\""),
        Err(BadReason::Type)
    );

    assert_eq!(
        one(DataType::Date32, "\"2024-02-29\"").as_deref(),
        Ok("2024-02-29")
    );
    assert_eq!(one(DataType::Date32, "19782").as_deref(), Ok("2024-02-29"));
    let time = DataType::Time64(TimeUnit::Nanosecond);
    assert_eq!(
        one(time.clone(), "\"10:00:15.5\"").as_deref(),
        Ok("10:00:15.500")
    );
    assert_eq!(one(time.clone(), "5").unwrap_err().0, BadReason::Type);
    let micros = EpochUnit::Fixed(TimeUnit::Microsecond);
    let decoded = decode_with(
        &schema(&[("x", time)]),
        micros,
        "{\"x\":1500000}\n{\"x\":86400000000}\n",
    );
    assert_eq!(rows(&decoded), ["00:00:01.500"]);
    assert_eq!(decoded.bad[0].reason, BadReason::Range);
}

#[test]
fn json_columns_keep_what_is_written() {
    let schema = Arc::new(Schema::new(vec![json_field("x", true)]));
    let decoded = decode(
        &schema,
        "{\"x\":{\"a\": [1,  2.50]}}\n{\"x\":\"s\"}\n{\"x\":null}\n{\"x\":[1,]}\n",
    );
    let texts: Vec<_> = decoded.rows.column(0).as_string::<i32>().iter().collect();
    assert_eq!(texts, [Some("{\"a\": [1,  2.50]}"), Some("\"s\""), None]);
    assert_eq!(decoded.bad[0].reason, BadReason::Malformed);
}

fn nested() -> SchemaRef {
    let item = Fields::from(vec![
        Field::new("sku", DataType::Utf8, false),
        Field::new("n", DataType::Int32, true),
    ]);
    let item = Arc::new(Field::new("item", DataType::Struct(item), true));
    schema(&[("id", DataType::Int64), ("items", DataType::List(item))])
}

#[test]
fn structs_and_arrays_nest() {
    let decoded = decode(
        &nested(),
        "{\"id\":1,\"items\":[{\"sku\":\"a\",\"n\":1},null,{\"n\":3,\"sku\":\"c\"}]}\n{\"id\":2,\"items\":[ ]}\n{\"id\":3}\n",
    );
    assert_eq!(
        rows(&decoded),
        ["1 [{sku: a, n: 1}, , {sku: c, n: 3}]", "2 []", "3 "]
    );
    let items = decoded.rows.column(1).as_list::<i32>().values().as_struct();
    assert_eq!(
        items
            .column(1)
            .as_primitive::<Int32Type>()
            .iter()
            .collect::<Vec<_>>(),
        [Some(1), None, Some(3)]
    );
}

#[test]
fn faults_inside_name_the_way_and_leave_nothing_behind() {
    let decoded = decode(
        &nested(),
        "{\"id\":1,\"items\":[{\"sku\":\"a\"}]}\n{\"id\":2,\"items\":[{\"sku\":\"b\"},{\"sku\":\"c\",\"n\":1.5}]}\n{\"id\":3,\"items\":[{\"n\":1}]}\n{\"id\":4,\"items\":[{\"sku\":\"d\"}]}\n",
    );
    assert_eq!(rows(&decoded), ["1 [{sku: a, n: }]", "4 [{sku: d, n: }]"]);
    let messages: Vec<_> = decoded.bad.iter().map(|b| b.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "column \"items[1].n\": 1.5 is not a whole number",
            "column \"items[0].sku\" is missing, but declared NOT NULL",
        ]
    );
    let items = decoded.rows.column(1).as_list::<i32>().values();
    assert_eq!(items.len(), 2);
}

#[test]
fn fixed_arrays_have_their_length() {
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let pair = DataType::FixedSizeList(item, 2);
    assert_eq!(one(pair.clone(), "[1,2]").as_deref(), Ok("[1, 2]"));
    assert_eq!(
        one(pair, "[1]").unwrap_err(),
        (
            BadReason::Type,
            "column \"x\": an array of 1 where 2 are declared".into()
        )
    );
}

#[test]
fn nulls_and_missing_fields_where_a_value_is_needed() {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let is = |what: &str| {
        (
            BadReason::Missing,
            format!("column \"id\" is {what}, but declared NOT NULL"),
        )
    };
    assert_eq!(fault(&schema, r#"{"id":null}"#), is("null"));
    assert_eq!(fault(&schema, r#"{"x":1}"#), is("missing"));
}

#[test]
fn records_that_are_no_objects_or_more_than_one() {
    let schema = schema(&[("id", DataType::Int64)]);
    for (text, message) in [
        ("[1]", "expected an object, found '['"),
        ("null", "expected an object, found 'n'"),
        ("{\"id\":1} x", "expected the end of the record, found 'x'"),
        (
            "{\"id\":1}{\"id\":2}",
            "expected the end of the record, found '{'",
        ),
        ("{\"id\":1", "the record ends inside an object or array"),
        (
            "{\"id\":",
            "column \"id\": the record ends inside an object or array",
        ),
        ("{\"id", "the record ends inside a string"),
        ("{\"id\":1,}", "expected a key in quotes, found '}'"),
        ("{\"x\":é}", "expected a value, found 'é'"),
    ] {
        assert_eq!(
            fault(&schema, text),
            (BadReason::Malformed, message.into()),
            "{text}"
        );
    }
}

/// One bad record of every kind, with the reason it is bad for.
const BAD: [(&[u8], BadReason); 9] = [
    (b"{\"id\":7,\"s\":\"half", BadReason::Malformed),
    (b"{\"id\":7,\"s\":\"x\",\"l\":[1,2", BadReason::Malformed),
    (b"oops", BadReason::Malformed),
    (
        b"{\"id\":7,\"s\":\"x\",\"l\":[1]} trailing",
        BadReason::Malformed,
    ),
    (b"{\"l\":[7],\"s\":\"x\",\"id\":1.5}", BadReason::Type),
    (b"{\"l\":[7,8,\"x\"],\"id\":7}", BadReason::Type),
    (
        b"{\"s\":\"x\",\"l\":[7],\"id\":99999999999999999999}",
        BadReason::Range,
    ),
    (b"{\"s\":\"x\",\"l\":[7]}", BadReason::Missing),
    (b"{\"id\":7,\"s\":\"\xff\"}", BadReason::Encoding),
];

#[test]
fn a_bad_record_in_any_place_leaves_its_neighbours_intact() {
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("s", DataType::Utf8, true),
        Field::new("l", DataType::List(item), true),
    ]));
    let good: [&[u8]; 3] = [
        b"{\"id\":1,\"s\":\"one\",\"l\":[1]}",
        b"{\"id\":2}",
        b"{\"id\":3,\"s\":\"\\u00fc\",\"l\":[2,3]}",
    ];
    let expected = decode(&schema, good.join(&b'\n')).rows;
    for (bad, reason) in BAD {
        for place in 0..=good.len() {
            let mut lines = good.to_vec();
            lines.insert(place, bad);
            let decoded = decode(&schema, lines.join(&b'\n'));
            assert_eq!(
                decoded.rows,
                expected,
                "{} in place {place}",
                bad.escape_ascii()
            );
            let origin: usize = lines[..place].iter().map(|l| l.len() + 1).sum();
            let [found] = decoded.bad.as_slice() else {
                panic!("{:?}", decoded.bad)
            };
            assert_eq!(
                (found.reason, found.origin, found.raw.as_slice()),
                (reason, origin as u64, bad)
            );
        }
    }
}

#[test]
fn a_block_may_end_anywhere_and_reading_stop_after_any_record() {
    let schema = schema(&[("id", DataType::Int64), ("x", DataType::Float64)]);
    let text: String = (0..100)
        .map(|i| {
            if i % 7 == 0 {
                format!("{{bad {i}}}\r\n")
            } else {
                format!("{{\"id\":{i},\"x\":{i}.5}}\n\n")
            }
        })
        .collect();
    let expected = decode(&schema, &text);
    for (block_len, max_records) in [(1, 1), (7, 3), (50, 1), (64, 1000), (1000, 10)] {
        let mut decoder = JsonDecoder::new(Arc::clone(&schema), Reading::default()).unwrap();
        let (mut start, mut end) = (0, 0);
        while start < text.len() {
            let last = end == text.len();
            let done = decoder.decode(
                &text.as_bytes()[start..end],
                start as u64,
                max_records,
                last,
            );
            assert!(done.records <= max_records);
            start += done.bytes;
            if done.records < max_records {
                end = (end + block_len).min(text.len());
            }
        }
        let decoded = decoder.flush().unwrap();
        assert_eq!(
            (decoded.rows, decoded.origins),
            (expected.rows.clone(), expected.origins.clone())
        );
        assert_eq!(decoded.bad, expected.bad);
    }
}

#[test]
fn a_decoder_is_used_again_after_a_flush() {
    let schema = schema(&[("id", DataType::Int64)]);
    let mut decoder = JsonDecoder::new(schema, Reading::default()).unwrap();
    for round in 0..3 {
        let text = format!("{{\"id\":{round}}}\n{{\"id\":null}}\n");
        assert_eq!(decoder.decode(text.as_bytes(), 0, 9, false).records, 2);
        let rows = decoder.flush().unwrap().rows;
        assert_eq!(
            rows.column(0)
                .as_primitive::<Int64Type>()
                .iter()
                .collect::<Vec<_>>(),
            [Some(round), None]
        );
    }
    assert_eq!(decoder.decode(b"", 0, 9, true), Consumed::default());
    assert_eq!(decoder.flush().unwrap().rows.num_rows(), 0);
}

#[test]
fn single_messages_may_have_line_ends() {
    let schema = schema(&[("id", DataType::Int64), ("s", DataType::Utf8)]);
    let mut decoder = JsonDecoder::new(schema, Reading::default()).unwrap();
    assert!(decoder.decode_one(b"\n{\n  \"id\": 1,\n  \"s\": \"a\"\n}\n", 17));
    assert!(decoder.decode_one(b"{\"id\": 2, \"s\": \"a\nb\"}", 18));
    assert!(decoder.decode_one(b"{\"id\":3}{}", 19));
    assert!(decoder.decode_one(b"", 20));
    assert!(decoder.decode_one(b"{\"s\":\"\xc3\"}", 21));
    let decoded = decoder.flush().unwrap();
    assert_eq!(
        (rows(&decoded), decoded.origins),
        (vec!["1 a".to_string()], vec![17])
    );
    let bad: Vec<_> = decoded.bad.iter().map(|b| (b.origin, b.reason)).collect();
    let malformed = BadReason::Malformed;
    assert_eq!(
        bad,
        [
            (18, malformed),
            (19, malformed),
            (20, malformed),
            (21, BadReason::Encoding)
        ]
    );
}

#[test]
fn a_byte_order_mark_is_no_record() {
    let mut decoder =
        JsonDecoder::new(schema(&[("id", DataType::Int64)]), Reading::default()).unwrap();
    let text = b"\xef\xbb\xbf{\"id\":1}";
    assert_eq!(decoder.head(text, false).unwrap(), Some(3));
    decoder.decode(&text[3..], 3, 9, true);
    assert_eq!(decoder.flush().unwrap().origins, [3]);
}

#[test]
fn deep_nesting_is_a_fault_not_a_crash() {
    let schema = schema(&[("id", DataType::Int64)]);
    for opening in ["[", "{\"a\":"] {
        let text = format!("{{\"x\":{}", opening.repeat(200_000));
        assert_eq!(fault(&schema, text).1, "values nest deeper than 128 levels");
    }
}

#[test]
fn a_long_record_is_one_record() {
    let schema = schema(&[("id", DataType::Int64), ("s", DataType::Utf8)]);
    let long = "x".repeat(10 << 20);
    let decoded = decode(
        &schema,
        format!("{{\"id\":1}}\n{{\"s\":\"{long}\",\"id\":2}}\n{{\"id\":3}}\n"),
    );
    assert_eq!(
        decoded.rows.column(1).as_string::<i32>().value(1).len(),
        10 << 20
    );
    assert_eq!(decoded.origins, [0, 9, 25 + (10 << 20)]);
}

#[test]
fn unstructured_records_are_kept_whole() {
    let options = [("json.unstructured".to_string(), "true".to_string())].into();
    let options = Options::resolve(&options, &[]);
    let mut decoder = decoder(&options, schema(&[("value", DataType::Utf8)])).unwrap();
    decoder.decode(b"{\"a\": 1}\n\n[2]\r\n{\"a\":\n", 0, 9, true);
    assert!(decoder.decode_one(b"{\n}", 99));
    let decoded = decoder.flush().unwrap();
    let texts: Vec<_> = decoded
        .rows
        .column(0)
        .as_string::<i32>()
        .iter()
        .flatten()
        .collect();
    assert_eq!(texts, ["{\"a\": 1}", "[2]", "{\n}"]);
    assert_eq!(decoded.bad[0].reason, BadReason::Malformed);
}

#[test]
fn a_column_that_was_all_null_gets_values_again() {
    let schema = schema(&[("x", DataType::Float64)]);
    let decoded = decode(&schema, "{}\n{\"x\":1}\n{\"x\":\"bad\"}\n{}\n{\"x\":2}\n");
    let values: Vec<_> = decoded
        .rows
        .column(0)
        .as_primitive::<Float64Type>()
        .iter()
        .collect();
    assert_eq!(values, [None, Some(1.0), None, Some(2.0)]);
}
