//! What may stand around records: Connect's schema, the header of a schema registry; and decimals as bytes.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Date32Array, Decimal128Array, Decimal256Array, Int64Array, RecordBatch,
    StringArray, Time64MicrosecondArray, TimestampNanosecondArray,
};
use arrow::datatypes::{DataType, Decimal128Type, Field, Int64Type, Schema, i256};
use serde_json::{Value, json};
use thalweg_dataflow::table::json_field;
use thalweg_runtime::connector::SinkInput;

use super::*;
use crate::format::decode::Decoded;
use crate::format::encode::{Encoder, Messages};
use crate::format::registry::test_server::TestRegistry;
use crate::format::{confluent, decoder, encoder, key_encoder};
use crate::testing::options;

fn written(encoder: &mut dyn Encoder, rows: &RecordBatch) -> Vec<Vec<u8>> {
    let mut messages = Messages::default();
    encoder
        .messages(&SinkInput::Rows(rows), &mut messages)
        .unwrap();
    messages.iter().map(<[u8]>::to_vec).collect()
}

fn read(schema: &SchemaRef, given: &[(&str, &str)], messages: &[&[u8]]) -> Decoded {
    let mut decoder = decoder("json", &options(given), schema, schema.clone()).unwrap();
    for (at, message) in messages.iter().enumerate() {
        assert!(decoder.decode_one(message, at as u64));
    }
    decoder.flush().unwrap()
}

fn decimals() -> RecordBatch {
    let narrow = Decimal128Array::from(vec![Some(123_450), None, Some(-1)]);
    let wide = Decimal256Array::from(vec![i256::MAX, i256::ZERO, i256::MIN]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "n",
            Arc::new(narrow.with_precision_and_scale(12, 2).unwrap()),
        ),
        ("w", Arc::new(wide.with_precision_and_scale(76, 0).unwrap())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn decimals_are_bytes_where_that_is_wanted() {
    let rows = decimals();
    let given = [("json.decimal_encoding", "bytes")];
    let mut encoder = encoder("json", &options(&given), &rows.schema(), false).unwrap();
    let messages = written(encoder.as_mut(), &rows);
    let first: Value = serde_json::from_slice(&messages[0]).unwrap();
    assert_eq!(first["n"], "AeI6");
    // Precision 76 cannot hold the ends of 256 bits: what does not fit is bad, not cut.
    let schema = Arc::new(rows.schema().project(&[0]).unwrap());
    let messages: Vec<_> = messages.iter().map(Vec::as_slice).collect();
    let decoded = read(&schema, &given, &messages);
    assert_eq!(decoded.rows.column(0), rows.column(0));
    let decoded = read(&rows.schema(), &given, &messages);
    assert_eq!((decoded.rows.num_rows(), decoded.bad.len()), (1, 2));
    assert!(
        decoded.bad[0]
            .message
            .contains("out of range for DECIMAL(76, 0)")
    );
}

#[test]
fn texts_are_base64_only_where_that_is_said() {
    let schema = Arc::new(Schema::new(vec![Field::new(
        "d",
        DataType::Decimal128(6, 2),
        true,
    )]));
    let messages: [&[u8]; 3] = [br#"{"d":"12.34"}"#, br#"{"d":12.34}"#, br#"{"d":"BNI="}"#];
    let values = |given: &[(&str, &str)]| {
        let decoded = read(&schema, given, &messages);
        let column = decoded.rows.column(0).as_primitive::<Decimal128Type>();
        (column.values().to_vec(), decoded.bad.len())
    };
    assert_eq!(values(&[]), (vec![1234, 1234], 1));
    assert_eq!(
        values(&[("json.decimal_encoding", "bytes")]),
        (vec![1234, 1234], 1)
    );
}

fn rows() -> RecordBatch {
    let price = Decimal128Array::from(vec![123_450]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![1]))),
        (
            "price",
            Arc::new(price.with_precision_and_scale(12, 2).unwrap()),
        ),
        ("day", Arc::new(Date32Array::from(vec![19_782]))),
        ("t", Arc::new(Time64MicrosecondArray::from(vec![1_500_000]))),
        (
            "ts",
            Arc::new(TimestampNanosecondArray::from(vec![1_000_000_000])),
        ),
        (
            "utc",
            Arc::new(TimestampNanosecondArray::from(vec![1_000_000_000]).with_timezone("+00:00")),
        ),
        ("j", Arc::new(StringArray::from(vec![r#"{"a":1}"#]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut fields: Vec<Field> = batch
        .schema()
        .fields()
        .iter()
        .map(|f| f.as_ref().clone())
        .collect();
    fields.iter_mut().skip(1).for_each(|f| f.set_nullable(true));
    fields[6] = json_field("j", true);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec()).unwrap()
}

fn types(fields: &Value) -> Vec<String> {
    let fields = fields.as_array().unwrap().iter();
    fields
        .map(|f| {
            let name = f.get("name").and_then(Value::as_str).unwrap_or_default();
            let optional = if f["optional"] == true { "?" } else { "" };
            format!(
                "{}: {}{optional} {name}",
                f["field"].as_str().unwrap(),
                f["type"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
fn changes_carry_the_schema_that_debezium_gives_them() {
    let given = [("json.include_schema", "true"), ("topic", "shop.orders")];
    let rows = rows();
    let mut encoder = encoder("debezium_json", &options(&given), &rows.schema(), true).unwrap();
    let message: Value = serde_json::from_slice(&written(encoder.as_mut(), &rows)[0]).unwrap();
    let schema = &message["schema"];
    assert_eq!(schema["name"], "shop.orders.Envelope");
    assert_eq!(
        types(&schema["fields"]),
        [
            "before: struct? shop.orders.Value",
            "after: struct? shop.orders.Value",
            "op: string "
        ]
    );
    // As a Debezium connector names them, precise times aside.
    assert_eq!(
        types(&schema["fields"][1]["fields"]),
        [
            "id: int64 ",
            "price: bytes? org.apache.kafka.connect.data.Decimal",
            "day: int32? io.debezium.time.Date",
            "t: int64? io.debezium.time.MicroTime",
            "ts: int64? io.debezium.time.MicroTimestamp",
            "utc: int64? io.debezium.time.MicroTimestamp",
            "j: string? io.debezium.data.Json",
        ]
    );
    let price = &schema["fields"][1]["fields"][1];
    assert_eq!(
        price["parameters"],
        json!({"scale": "2", "connect.decimal.precision": "12"})
    );
    let after = json!({
        "id": 1, "price": "AeI6", "day": 19_782, "t": 1_500_000, "ts": 1_000_000, "utc": 1_000_000, "j": "{\"a\":1}"
    });
    assert_eq!(
        message["payload"],
        json!({"before": null, "after": after, "op": "c"})
    );
}

#[test]
fn rows_in_an_envelope_are_read_back() {
    let given = [("json.include_schema", "true"), ("topic", "t")];
    let rows = rows();
    let mut encoder = encoder("json", &options(&given), &rows.schema(), false).unwrap();
    let messages = written(encoder.as_mut(), &rows);
    let message: Value = serde_json::from_slice(&messages[0]).unwrap();
    assert_eq!(message["schema"]["name"], "t.Value");
    assert_eq!(
        types(&message["schema"]["fields"])[2..6],
        [
            "day: string? io.debezium.time.IsoDate",
            "t: string? io.debezium.time.IsoTime",
            "ts: string? io.debezium.time.IsoTimestamp",
            "utc: string? io.debezium.time.ZonedTimestamp",
        ]
    );
    // JSON comes back as text, so the last column is another.
    let schema = Arc::new(rows.schema().project(&[0, 1, 2, 3, 4, 5]).unwrap());
    let decoded = read(&schema, &given, &[&messages[0]]);
    assert_eq!(decoded.bad, []);
    assert_eq!(decoded.rows.columns(), &rows.columns()[..6]);

    let key = Arc::new(rows.schema().project(&[0]).unwrap());
    let mut encoder = key_encoder(&options(&given), &key).unwrap();
    let key = &written(encoder.as_mut(), &rows.project(&[0]).unwrap())[0];
    let key: Value = serde_json::from_slice(key).unwrap();
    assert_eq!(
        (&key["schema"]["name"], &key["payload"]),
        (&json!("t.Key"), &json!({"id": 1}))
    );
}

#[test]
fn only_the_payload_of_an_envelope_is_read() {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    let given = [("json.include_schema", "true")];
    let messages: [&[u8]; 8] = [
        br#"{"schema":{"id":7},"payload":{"id":1}}"#,
        br#" { "payload" : { "id" : 2 } , "schema" : null } "#,
        br#"{"payload":{"id":7},"payload":{"id":3}}"#,
        br#"{"id":4}"#,
        br#"{"schema":{},"payload":null}"#,
        br#"{"payload":{"id":"x"}}"#,
        br#"{}"#,
        br#"{"payload":{"id":5}"#,
    ];
    let decoded = read(&schema, &given, &messages);
    assert_eq!(
        decoded.rows.column(0).as_primitive::<Int64Type>().values(),
        &[1, 2, 3]
    );
    let bad: Vec<_> = decoded
        .bad
        .iter()
        .map(|b| (b.origin, b.message.as_str()))
        .collect();
    let no_payload = "the record has no \"payload\", as 'json.include_schema' says it has";
    assert_eq!(
        bad,
        [
            (3, no_payload),
            (4, "expected an object as payload, found 'n'"),
            (5, "column \"id\": \"x\" is not a whole number"),
            (6, no_payload),
            (7, "the record ends inside an object or array"),
        ]
    );
    // In files too, a line each.
    let mut decoder = decoder("json", &options(&given), &schema, schema.clone()).unwrap();
    let text = [messages[0], messages[3], messages[1]].join(&b'\n');
    assert_eq!(decoder.decode(&text, 0, 10, true).records, 3);
    let decoded = decoder.flush().unwrap();
    assert_eq!((decoded.rows.num_rows(), decoded.bad.len()), (2, 1));
}

#[test]
fn messages_begin_with_the_id_of_their_schema() {
    let registry = TestRegistry::start();
    let url = registry.url();
    let given = [
        ("json.confluent_schema_registry", "true"),
        ("schema_registry.endpoint", url.as_str()),
        ("topic", "orders"),
    ];
    // Ids that are line ends too.
    for _ in 0..9 {
        registry.add("other", "AVRO", &format!("{:?}", registry.requests().len()));
    }
    let rows = rows().project(&[0, 1]).unwrap();
    let mut encoder = encoder("json", &options(&given), &rows.schema(), false).unwrap();
    let messages = written(encoder.as_mut(), &rows);
    let registered = registry.latest("orders-value").unwrap();
    assert_eq!(registered["schemaType"], "JSON");
    let id = confluent::schema_id(&messages[0]).unwrap();
    assert_eq!(messages[0][..5], confluent::header(id));
    assert_eq!(&messages[0][5..], br#"{"id":1,"price":1234.50}"#);

    let wrong: [&[u8]; 3] = [&messages[0][5..], b"\0\0", &messages[0][..5]];
    let decoded = read(
        &rows.schema(),
        &given,
        &[&messages[0], wrong[0], wrong[1], wrong[2]],
    );
    assert_eq!(decoded.rows.columns(), rows.columns());
    let bad: Vec<_> = decoded.bad.iter().map(|b| b.raw.as_slice()).collect();
    assert_eq!(bad, wrong);

    let columns = discover(&options(&given)).unwrap();
    let names: Vec<_> = columns
        .iter()
        .map(|f| (f.name().as_str(), f.data_type()))
        .collect();
    assert_eq!(
        names,
        [("id", &DataType::Int64), ("price", &DataType::Float64)]
    );
}

#[test]
fn unstructured_messages_may_have_a_header() {
    let schema = Arc::new(Schema::new(vec![json_field("value", true)]));
    let given = [
        ("json.confluent_schema_registry", "true"),
        ("json.unstructured", "true"),
    ];
    let message = [&confluent::header(3)[..], b"{\"a\":\n1}"].concat();
    let decoded = read(&schema, &given, &[&message, b"{}"]);
    assert_eq!(
        decoded.rows.column(0).as_string::<i32>().value(0),
        "{\"a\":\n1}"
    );
    assert_eq!(decoded.bad.len(), 1);
}

#[test]
fn unstructured_records_are_written_as_they_are() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![
        Some("{\"a\": 1}"),
        Some("oops"),
        None,
    ]));
    let rows = RecordBatch::try_from_iter([("value", texts)]).unwrap();
    let given = [("json.unstructured", "true")];
    let mut encoder = encoder("json", &options(&given), &rows.schema(), false).unwrap();
    let messages = written(encoder.as_mut(), &rows);
    // What is no JSON becomes a string: a reader must not stumble over it.
    assert_eq!(messages, [&b"{\"a\": 1}"[..], b"\"oops\"", b"null"]);
}

#[test]
fn a_message_of_ten_megabytes_is_a_record_like_any_other() {
    let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8, true)]));
    let text = "x".repeat(10 << 20);
    let message = format!("{{\"t\":\"{text}\"}}");
    let cut = &message.as_bytes()[..message.len() - 2];
    let decoded = read(&schema, &[], &[message.as_bytes(), cut, message.as_bytes()]);
    assert_eq!((decoded.rows.num_rows(), decoded.bad.len()), (2, 1));
}
