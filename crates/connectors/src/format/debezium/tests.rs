//! Envelopes one by one: what becomes of them, and what is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use thalweg_dataflow::marks::ChangeOp;
use thalweg_dataflow::options::Options;
use thalweg_dataflow::table::json_field;

use super::super::decode::{Decoded, RecordDecoder};
use super::DebeziumDecoder;

pub fn options(given: &[(&str, &str)]) -> Options {
    let given: BTreeMap<_, _> = given
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    Options::resolve(&given, &[])
}

pub fn decoder(schema: &SchemaRef, key: &[&str], given: &[(&str, &str)]) -> DebeziumDecoder {
    let key: Vec<String> = key.iter().map(ToString::to_string).collect();
    DebeziumDecoder::new(Arc::clone(schema), &key, &options(given)).unwrap()
}

/// A cell for a person.
pub fn cell(rows: &RecordBatch, row: usize, column: usize) -> String {
    let options = FormatOptions::default().with_null("null");
    let formatter = ArrayFormatter::try_new(rows.column(column), &options).unwrap();
    formatter.value(row).to_string()
}

/// Each row as its operation and its cells.
pub fn lines(decoded: &Decoded) -> Vec<String> {
    let marks = decoded.marks.as_ref().unwrap();
    let line = |row: usize| {
        let op = match ChangeOp::of(marks.ops.value(row)).unwrap() {
            ChangeOp::Write => "write",
            ChangeOp::Read => "read",
            ChangeOp::Delete => "delete",
            ChangeOp::Truncate => "truncate",
        };
        let cells: Vec<String> = (0..decoded.rows.num_columns())
            .map(|c| cell(&decoded.rows, row, c))
            .collect();
        format!("{op} {}", cells.join(" "))
    };
    (0..decoded.rows.num_rows()).map(line).collect()
}

fn schema(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

fn id_and(field: Field) -> SchemaRef {
    schema(vec![Field::new("id", DataType::Int64, true), field])
}

fn id_v() -> SchemaRef {
    id_and(Field::new("v", DataType::Utf8, true))
}

/// Decodes lines; rows, and the faults.
fn decode(schema: &SchemaRef, given: &[(&str, &str)], text: &str) -> (Vec<String>, Vec<String>) {
    let mut decoder = decoder(schema, &["id"], given);
    let done = decoder.decode(text.as_bytes(), 0, usize::MAX, true);
    assert_eq!(done.bytes, text.len());
    let decoded = decoder.flush().unwrap();
    assert_eq!(decoded.origins.len(), decoded.rows.num_rows());
    (
        lines(&decoded),
        decoded.bad.iter().map(|b| b.message.clone()).collect(),
    )
}

fn rows(text: &str) -> Vec<String> {
    let (rows, faults) = decode(&id_v(), &[], text);
    assert_eq!(faults, Vec::<String>::new());
    rows
}

fn fault(text: &str) -> String {
    let (rows, faults) = decode(&id_v(), &[], text);
    assert_eq!(
        (rows.len(), faults.len()),
        (0, 1),
        "{text}: {rows:?} {faults:?}"
    );
    faults[0].clone()
}

const NOTHING: [&str; 0] = [];

#[test]
fn rule_6_1_operations() {
    assert_eq!(
        rows(concat!(
            r#"{"before":null,"after":{"id":1,"v":"a"},"op":"c"}"#,
            "\n",
            r#"{"op":"r", "after" : {"v":"b","id":2}}"#,
            "\r\n\n",
            r#"{"before":{"id":1,"v":"a"},"after":{"id":1,"v":"c"},"op":"u","ts_ms":5}"#,
            "\n",
            r#"{"before":{"id":1,"v":null},"after":null,"op":"d"}"#,
            "\n",
            r#"{"before":null,"after":null,"op":"t"}"#,
        )),
        [
            "write 1 a",
            "read 2 b",
            "write 1 c",
            "delete 1 null",
            "truncate null null"
        ]
    );
    // The schema may come first or last, be null, or be all that there is.
    assert_eq!(
        rows(concat!(
            r#"{"schema":{"type":"struct"},"payload":{"after":{"id":1,"v":"a"},"op":"c"}}"#,
            "\n",
            r#"{"payload":{"op":"c","after":{"id":2,"v":"b"}},"schema":null}"#,
            "\n",
            r#"{"schema":null,"payload":null}"#,
            "\n",
        )),
        ["write 1 a", "write 2 b"]
    );
}

#[test]
fn rule_6_1_some_messages_are_no_changes() {
    assert_eq!(
        rows(concat!(
            "null\n",
            r#"{"status":"BEGIN","id":"571:53195829","event_count":null,"ts_ms":1}"#,
            "\n",
            r#"{"op":"m","message":{"prefix":"p","content":"aGVsbG8="}}"#,
            "\n",
            r#"{"schema":{},"payload":{"op":"m"}}"#,
            "\n",
        )),
        NOTHING
    );
}

#[test]
fn rule_6_2_images_may_be_missing_or_hold_the_key_only() {
    let text = concat!(
        r#"{"after":{"id":1,"v":"a"},"op":"u"}"#,
        "\n",
        r#"{"before":{"id":1},"after":{"id":1,"v":"b"},"op":"u"}"#,
        "\n",
        r#"{"before":{"id":1},"op":"d"}"#,
        "\n",
    );
    assert_eq!(rows(text), ["write 1 a", "write 1 b", "delete 1 null"]);
    assert_eq!(
        fault(r#"{"op":"d"}"#),
        "the deletion has neither \"before\" nor a key"
    );
    // That is for the source to refuse, which knows the table.
    assert_eq!(
        rows(r#"{"before":{"v":"a"},"op":"d"}"#),
        ["delete null null"]
    );
}

#[test]
fn an_update_that_changes_the_key_deletes_the_old_one() {
    let update = |before: &str, after: &str| {
        rows(&format!(
            r#"{{"before":{before},"after":{after},"op":"u"}}"#
        ))
    };
    assert_eq!(
        update(r#"{"id":1,"v":"a"}"#, r#"{"id":2,"v":"a"}"#),
        ["delete 1 null", "write 2 a"]
    );
    // Spelled otherwise it may be the same: then the deletion is undone by what follows it.
    assert_eq!(
        update(r#"{"id":1.0}"#, r#"{"id":1,"v":"a"}"#),
        ["delete 1 null", "write 1 a"]
    );
    for before in [
        "null",
        r#"{"id":null,"v":null}"#,
        r#"{"v":"a"}"#,
        r#"{"id":2}"#,
    ] {
        assert_eq!(
            update(before, r#"{"id":2,"v":"a"}"#),
            ["write 2 a"],
            "{before}"
        );
    }
}

#[test]
fn keys_of_messages_stand_in_for_images() {
    let mut decoder = decoder(&id_v(), &["id"], &[]);
    let deletion: &[u8] = br#"{"before":null,"after":null,"op":"d"}"#;
    for key in [
        r#"{"id":1}"#,
        r#"{"schema":{"type":"struct"},"payload":{"id":2}}"#,
        "{\n\"id\" : 3 }",
    ] {
        assert!(decoder.decode_message(Some(key.as_bytes()), Some(deletion), 0));
    }
    // A tombstone, with a key or, as of a table without one, without.
    assert!(decoder.decode_message(Some(br#"{"id":1}"#), None, 0));
    assert!(decoder.decode_message(None, None, 0));
    for key in [&b"7"[..], b"{", b"\xff", b"null", br#"{"id":"x"}"#] {
        assert!(decoder.decode_message(Some(key), Some(deletion), 0));
    }
    let decoded = decoder.flush().unwrap();
    assert_eq!(
        lines(&decoded),
        ["delete 1 null", "delete 2 null", "delete 3 null"]
    );
    let faults: Vec<&str> = decoded.bad.iter().map(|b| b.message.as_str()).collect();
    assert_eq!(
        faults,
        [
            "the key of the message is no object",
            "the record ends inside an object or array",
            "the key of the message is not UTF-8",
            "the key of the message is no object",
            "column \"id\": \"x\" is not a whole number",
        ]
    );
}

#[test]
fn rule_8_1_what_is_no_envelope_is_a_bad_record_and_leaves_its_neighbours_alone() {
    for (text, message) in [
        ("[1]", "expected an object, found '['"),
        (
            r#"{"id":1,"v":"a"}"#,
            "the record has no \"op\": it is no change envelope (rows that were flattened are read with format = 'json')",
        ),
        (r#"{"op":"x"}"#, "\"op\" is \"x\", which is no operation"),
        (r#"{"op":1}"#, "\"op\" is 1, which is no operation"),
        (r#"{"op":"c","after":null}"#, "the change has no \"after\""),
        (
            r#"{"op":"u","before":{"id":1}}"#,
            "the change has no \"after\"",
        ),
        (r#"{"op":"c","after":[1]}"#, "\"after\" is no object"),
        (
            r#"{"op":"c","after":{"id":1},"before":7}"#,
            "\"before\" is no object",
        ),
        (
            r#"{"op":"c","after":{"id":1},"source":"x"}"#,
            "\"source\" is no object",
        ),
        (
            r#"{"schema":{},"payload":[1]}"#,
            "expected an object as \"payload\", found '['",
        ),
        (
            r#"{"op":"c","after":{"id":1}"#,
            "the record ends inside an object or array",
        ),
        (
            r#"{"op":"c","after":{"id":1}} x"#,
            "expected the end of the record, found 'x'",
        ),
        (
            r#"{"op":"c","after":{"id":1 "v":"a"}}"#,
            "expected ',' or '}', found '\"'",
        ),
        (
            r#"{"op":"c","after":{"id":"1","v":"a"}}"#,
            "column \"id\": \"1\" is not a whole number",
        ),
        (
            r#"{"op":"c","after":{"id":1.5,"v":"a"}}"#,
            "column \"id\": 1.5 is not a whole number",
        ),
        (
            r#"{"op":"c","after":{"v":"a","id":1,"v":5}}"#,
            "column \"v\": 5 is not text",
        ),
        (
            r#"{"op":"u","before":{"id":1},"after":{"id":2,"v":false}}"#,
            "column \"v\": false is not text",
        ),
    ] {
        let good = r#"{"op":"c","after":{"id":7,"v":"good"}}"#;
        let (rows, faults) = decode(&id_v(), &[], &format!("{good}\n{text}\n{good}\n"));
        assert_eq!(rows, ["write 7 good", "write 7 good"], "{text}");
        assert_eq!(faults, [message], "{text}");
    }
    let mut decoder = decoder(&id_v(), &["id"], &[]);
    decoder.decode(
        b"{\"op\":\"c\",\"after\":{\"id\":1,\"v\":\"\xff\"}}\n",
        0,
        9,
        true,
    );
    assert!(
        decoder.flush().unwrap().bad[0]
            .message
            .contains("is not UTF-8")
    );
}

#[test]
fn unavailable_values_are_marked_in_every_type_that_may_have_them() {
    let placeholder = "__debezium_unavailable_value";
    let base64 = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";
    let bytes: Vec<String> = placeholder.bytes().map(|b| b.to_string()).collect();
    let text = |t: &str| format!("\"{t}\"");
    let list = |item: DataType| DataType::List(Arc::new(Field::new("item", item, true)));
    for (field, value) in [
        (Field::new("v", DataType::Utf8, true), text(placeholder)),
        (json_field("v", true), text(placeholder)),
        (Field::new("v", DataType::Binary, true), text(base64)),
        (
            Field::new("v", DataType::Decimal128(38, 2), true),
            text(base64),
        ),
        (
            Field::new("v", list(DataType::Utf8), true),
            format!("[\"{placeholder}\"]"),
        ),
        (
            Field::new("v", list(DataType::Int32), true),
            format!("[{}]", bytes.join(",")),
        ),
    ] {
        let schema = id_and(field);
        let mut decoder = decoder(&schema, &["id"], &[]);
        let record = format!(r#"{{"op":"u","after":{{"id":1,"v":{value}}}}}"#);
        let whole = r#"{"op":"u","after":{"id":1,"v":null}}"#;
        for record in [whole, &record, whole] {
            assert!(decoder.decode_one(record.as_bytes(), 0));
        }
        let decoded = decoder.flush().unwrap();
        assert_eq!(decoded.bad, [], "{value}");
        let unavailable = decoded.marks.unwrap().unavailable.unwrap();
        assert_eq!(
            unavailable.iter().collect::<Vec<_>>(),
            [None, Some(&[2u8][..]), None],
            "{value}"
        );
        assert!(decoded.rows.column(1).is_null(1));
    }
    // Elsewhere it is a value like any other, and so it is where the table says that another stands for it.
    let given = [("debezium.unavailable_value", "gone")];
    let (rows, _) = decode(
        &id_v(),
        &given,
        r#"{"op":"c","after":{"id":1,"v":"__debezium_unavailable_value"}}"#,
    );
    assert_eq!(rows, ["write 1 __debezium_unavailable_value"]);
}

/// The value that one column of this type gets from a JSON value, or the fault.
fn value(field: DataType, given: &[(&str, &str)], json: &str) -> Result<String, String> {
    value_in(Field::new("v", field, true), given, json, "")
}

fn value_in(
    field: Field,
    given: &[(&str, &str)],
    json: &str,
    more: &str,
) -> Result<String, String> {
    let text = format!(r#"{{"op":"c","after":{{"id":1,"v":{json}}}{more}}}"#);
    let (rows, faults) = decode(&id_and(field), given, &text);
    match (rows.as_slice(), faults.as_slice()) {
        ([row], []) => Ok(row.strip_prefix("write 1 ").unwrap().to_string()),
        ([], [fault]) => Err(fault.clone()),
        _ => panic!("{rows:?} {faults:?}"),
    }
}

/// The same under a schema that gives the column this type.
fn under(schema: &str, field: DataType, json: &str) -> Result<String, String> {
    let text = format!(
        r#"{{"schema":{{"fields":[{{"field":"after","fields":[{{"field":"v",{schema}}}]}}]}},"payload":{{"op":"c","after":{{"id":1,"v":{json}}}}}}}"#
    );
    let (rows, faults) = decode(&id_and(Field::new("v", field, true)), &[], &text);
    match (rows.as_slice(), faults.as_slice()) {
        ([row], []) => Ok(row.strip_prefix("write 1 ").unwrap().to_string()),
        ([], [fault]) => Err(fault.clone()),
        _ => panic!("{rows:?} {faults:?}"),
    }
}

const INSTANT: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);
const CLOCK: DataType = DataType::Time64(TimeUnit::Nanosecond);

#[test]
fn rule_6_4_timestamps() {
    let expected = || Ok("2024-01-01T10:00:15".to_string());
    for json in [
        "1704103215",
        "1704103215000",
        "1704103215000000",
        "1704103215000000000",
        "\"2024-01-01T10:00:15Z\"",
        "\"2024-01-01T10:00:15\"",
    ] {
        assert_eq!(value(INSTANT, &[], json), expected(), "{json}");
    }
    let micros = [("json.timestamp_format", "unix_micros")];
    assert_eq!(
        value(INSTANT, &micros, "1000000"),
        Ok("1970-01-01T00:00:01".into())
    );
    for (name, json) in [
        ("io.debezium.time.Timestamp", "1000"),
        ("org.apache.kafka.connect.data.Timestamp", "1000"),
        ("io.debezium.time.MicroTimestamp", "1000000"),
        ("io.debezium.time.NanoTimestamp", "1000000000"),
    ] {
        let found = under(&format!(r#""type":"int64","name":"{name}""#), INSTANT, json);
        assert_eq!(found, Ok("1970-01-01T00:00:01".into()), "{name}");
    }
    assert_eq!(
        under(r#""name":"io.debezium.time.Date""#, INSTANT, "1"),
        Ok("1970-01-02T00:00:00".into())
    );
    for json in [
        "9223372036825200000",
        "-9223372036832400000",
        "9223372036825200",
    ] {
        assert_eq!(
            value(INSTANT, &[], json),
            Err("column \"v\": the timestamp is infinite".into())
        );
        assert!(under(r#""name":"io.debezium.time.MicroTimestamp""#, INSTANT, json).is_err());
    }
    assert!(value(INSTANT, &[], "\"infinity\"").is_err());
}

#[test]
fn rule_6_4_dates_and_times_of_day() {
    for json in ["20513", "\"2026-03-01\"", "\"2026-03-01Z\""] {
        assert_eq!(value(DataType::Date32, &[], json), Ok("2026-03-01".into()));
    }
    assert_eq!(
        value(DataType::Date32, &[], "-2147472692"),
        Err("column \"v\": -2147472692 is out of range for DATE".into())
    );
    assert!(value(DataType::Date32, &[], "\"infinity\"").is_err());
    for json in ["47655123456", "\"13:14:15.123456\"", "\"13:14:15.123456Z\""] {
        assert_eq!(value(CLOCK, &[], json), Ok("13:14:15.123456".into()));
    }
    let millis = [("json.timestamp_format", "unix_millis")];
    assert_eq!(value(CLOCK, &millis, "47655123"), Ok("13:14:15.123".into()));
    assert_eq!(
        under(r#""name":"io.debezium.time.Time""#, CLOCK, "47655123"),
        Ok("13:14:15.123".into())
    );
    assert!(value(CLOCK, &[], "86400000000").is_err());
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    assert_eq!(
        value(interval.clone(), &[], "1500000"),
        value(interval.clone(), &[], "\"PT1.5S\"")
    );
    assert!(
        value(interval.clone(), &[], "\"P1Y2M3DT4H5M6S\"")
            .unwrap()
            .contains("14 mons 3 days")
    );
    assert!(value(interval, &[], "\"soon\"").is_err());
}

#[test]
fn rule_6_4_decimals() {
    let decimal = DataType::Decimal128(12, 2);
    let bytes = [("json.decimal_encoding", "bytes")];
    let text = [("json.decimal_encoding", "string")];
    for json in [
        "1234.50",
        "1234.5",
        "\"1234.50\"",
        "\"AeI6\"",
        r#"{"scale":2,"value":"AeI6"}"#,
        r#"{ "value" : "MDk=" , "scale" : 1 }"#,
    ] {
        assert_eq!(
            value(decimal.clone(), &[], json),
            Ok("1234.50".into()),
            "{json}"
        );
    }
    assert_eq!(
        under(
            r#""name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}"#,
            decimal.clone(),
            "\"AeI6\""
        ),
        Ok("1234.50".into())
    );
    assert_eq!(
        under(r#""type":"string""#, decimal.clone(), "\"1234\""),
        Ok("1234.00".into())
    );
    // Digits may be base64; who knows says so.
    let doubt = "column \"v\": \"1234\" may be a number or base64 of one; say which with json.decimal_encoding";
    assert_eq!(value(decimal.clone(), &[], "\"1234\""), Err(doubt.into()));
    assert_eq!(
        value(decimal.clone(), &text, "\"1234\""),
        Ok("1234.00".into())
    );
    assert_eq!(
        value(decimal.clone(), &bytes, "\"1234\""),
        Ok("-26588.24".into())
    );
    assert!(value(decimal.clone(), &text, "\"AeI6\"").is_err());
    for json in [
        "\"NAN\"",
        "\"\"",
        "{}",
        r#"{"scale":2}"#,
        r#"{"scale":3,"value":"AeI6"}"#.replace("AeI6", "AeI7").as_str(),
        "true",
        "1e99",
    ] {
        assert!(value(decimal.clone(), &[], json).is_err(), "{json}");
    }
    assert_eq!(
        value(DataType::Decimal256(60, 3), &[], "\"AeI6\""),
        Ok("123.450".into())
    );
    // Other columns take what the schema, or the value itself, says is a decimal.
    let schema = r#""name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}"#;
    assert_eq!(
        under(schema, DataType::Utf8, "\"AeI6\""),
        Ok("1234.50".into())
    );
    assert_eq!(
        under(schema, DataType::Float64, "\"AeI6\""),
        Ok("1234.5".into())
    );
    assert_eq!(
        value(DataType::Float32, &[], r#"{"scale":2,"value":"AeI6"}"#),
        Ok("1234.5".into())
    );
    assert_eq!(value(DataType::Float64, &[], "\"NaN\""), Ok("NaN".into()));
}

#[test]
fn json_and_bytes() {
    let json = |value: &str, more: &str| value_in(json_field("v", true), &[], value, more);
    let source = r#","source":{"lsn":1}"#;
    assert_eq!(
        json(r#""{\"a\": [1]}""#, source),
        Ok(r#"{"a": [1]}"#.into())
    );
    assert_eq!(json(r#""\"text\"""#, source), Ok(r#""text""#.into()));
    assert_eq!(json(r#"{"a":1}"#, source), Ok(r#"{"a":1}"#.into()));
    assert!(
        json(r#""{a}""#, source)
            .unwrap_err()
            .starts_with("column \"v\": the text is not JSON")
    );
    // Who tells no source embeds JSON as it is, as we do: a string is a string.
    assert_eq!(json(r#""12""#, ""), Ok(r#""12""#.into()));
    let binary = |given: &[(&str, &str)], json: &str| value(DataType::Binary, given, json);
    for (mode, json) in [
        ("base64", "\"+v/+\""),
        ("base64-url-safe", "\"-v_-\""),
        ("hex", "\"faFFfe\""),
    ] {
        assert_eq!(
            binary(&[("debezium.binary", mode)], json),
            Ok("fafffe".into()),
            "{mode}"
        );
    }
    for (mode, json) in [
        ("hex", "\"fa0\""),
        ("hex", "\"zz\""),
        ("base64-url-safe", "\"+v/+\""),
        ("base64", "\"-v\""),
    ] {
        assert!(
            binary(&[("debezium.binary", mode)], json).is_err(),
            "{mode}"
        );
    }
}

#[test]
fn positions_and_snapshots_are_marked() {
    let mut decoder = decoder(&id_v(), &["id"], &[]);
    for record in [
        r#"{"op":"c","after":{"id":1},"source":{"lsn":5,"ts_ms":2,"snapshot":"false"}}"#,
        r#"{"op":"c","after":{"id":1},"source":{"snapshot":"true"}}"#,
        r#"{"op":"r","after":{"id":1},"source":{"lsn":6}}"#,
        r#"{"op":"c","after":{"id":1},"source":null}"#,
    ] {
        assert!(decoder.decode_one(record.as_bytes(), 0));
    }
    let decoded = decoder.flush().unwrap();
    assert_eq!(
        lines(&decoded),
        ["write 1 null", "read 1 null", "read 1 null", "write 1 null"]
    );
    let marks = decoded.marks.unwrap();
    assert_eq!(
        marks.positions.iter().collect::<Vec<_>>(),
        [Some(5), None, Some(6), None]
    );
    assert_eq!(
        marks.source_times.iter().collect::<Vec<_>>(),
        [Some(2_000_000), None, None, None]
    );
    assert!(marks.unavailable.is_none());
}

#[test]
fn schemas_may_change_in_mid_stream() {
    let decimal = DataType::Decimal128(12, 3);
    let record = |scale: &str| {
        format!(
            r#"{{"schema":{{"fields":[{{"field":"after","fields":[{{"field":"v","name":"org.apache.kafka.connect.data.Decimal","parameters":{{"scale":"{scale}"}}}}]}}]}},"payload":{{"op":"c","after":{{"id":1,"v":"AeI6"}}}}}}"#
        )
    };
    let text = [
        record("2"),
        record("2"),
        record("3"),
        r#"{"op":"c","after":{"id":1,"v":"AeI6"}}"#.into(),
        record("2"),
    ]
    .join("\n");
    let (rows, faults) = decode(&id_and(Field::new("v", decimal, true)), &[], &text);
    assert_eq!(
        (rows.join(";"), faults.len()),
        (
            "write 1 1234.500;write 1 1234.500;write 1 123.450;write 1 123.450;write 1 1234.500"
                .into(),
            0
        )
    );
}
