use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{
    DataType, Field, Float64Type, Int32Type, Int64Type, Schema, TimeUnit, TimestampNanosecondType,
};
use prost_reflect::prost::Message;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use thalweg_dataflow::options::Direction;
use thalweg_dataflow::table::json_field;
use thalweg_runtime::connector::{BadReason, SinkInput};

use super::*;
use crate::discover::describe;
use crate::format::encode::{Encoder, Messages};
use crate::format::random::array;
use crate::format::registry::test_server::{Fault, TestRegistry};
use crate::format::{Decoded, RecordDecoder, confluent};
use crate::testing::options;

const SHOP: &str = r#"
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

message Order {
  int64 id = 1;
  optional string note = 2;
  Color color = 3;
  repeated int32 sizes = 4;
  Person who = 5;
  oneof payment { string card = 6; double cash = 7; }
  google.protobuf.Timestamp at = 8;
  map<string, int64> counts = 9;
  bytes raw = 10;
  google.protobuf.Int32Value maybe = 11;
  repeated Person others = 12;
  enum Color { NONE = 0; RED = 1; BLUE = 2; }
  message Person { string name = 1; Person boss = 2; }
}
message Other { uint64 n = 1; }
"#;

fn file(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("shop.proto"), text).unwrap();
    dir
}

fn path(dir: &tempfile::TempDir) -> String {
    dir.path().join("shop.proto").to_str().unwrap().to_string()
}

fn order_type() -> MessageDescriptor {
    let types = descriptor::of_text(SHOP, &[]).unwrap();
    descriptor::message(&types, Some("shop.Order")).unwrap()
}

fn decode(columns: Vec<Field>, records: &[&[u8]]) -> Decoded {
    let schema = Arc::new(Schema::new(columns));
    let schemas = Schemas::One(order_type());
    let mut decoder = ProtobufDecoder::new(schema, schemas, false, false).unwrap();
    feed(&mut decoder, records)
}

fn feed(decoder: &mut ProtobufDecoder, records: &[&[u8]]) -> Decoded {
    for (at, record) in records.iter().enumerate() {
        assert!(decoder.decode_one(record, at as u64));
    }
    decoder.flush().unwrap()
}

/// id 7, note "hi", color BLUE, sizes [1, 2] packed, who {name "a", boss {}}, cash 1.5, at 1 s + 5 ns, counts {"k": 3},
/// raw ff, maybe 0, written by hand; Google's own implementation for Python writes the same.
fn golden() -> Vec<u8> {
    let mut bytes = vec![8, 7, 0x12, 2, b'h', b'i', 0x18, 2, 0x22, 2, 1, 2];
    bytes.extend([0x2a, 5, 0x0a, 1, b'a', 0x12, 0]);
    bytes.push(0x39);
    bytes.extend(1.5f64.to_le_bytes());
    bytes.extend([0x42, 4, 8, 1, 0x10, 5]);
    bytes.extend([0x4a, 5, 0x0a, 1, b'k', 0x10, 3]);
    bytes.extend([0x52, 1, 0xff, 0x5a, 0]);
    bytes
}

#[test]
fn columns_come_from_the_message_type() {
    let shown: Vec<_> = columns::columns(&order_type())
        .iter()
        .map(describe)
        .collect();
    assert_eq!(
        shown,
        [
            "id BIGINT NOT NULL",
            "note TEXT",
            "color TEXT NOT NULL",
            "sizes INT[] NOT NULL",
            "who STRUCT",
            "card TEXT",
            "cash DOUBLE",
            "at TIMESTAMP",
            "counts JSON NOT NULL",
            "raw BYTEA NOT NULL",
            "maybe INT",
            "others STRUCT[] NOT NULL",
        ]
    );
}

#[test]
fn fields_become_columns() {
    let decoded = decode(columns::columns(&order_type()), &[&golden(), &[]]);
    assert_eq!(decoded.bad, []);
    let rows = &decoded.rows;
    let column = |name: &str| rows.column_by_name(name).unwrap();
    let text = |name: &str| column(name).as_string::<i32>().clone();
    assert_eq!(column("id").as_primitive::<Int64Type>().values(), &[7, 0]);
    assert_eq!(
        (text("note").value(0), text("note").is_null(1)),
        ("hi", true)
    );
    assert_eq!(
        (text("color").value(0), text("color").value(1)),
        ("BLUE", "NONE")
    );
    let sizes = column("sizes").as_list::<i32>();
    assert_eq!(sizes.value(0).as_primitive::<Int32Type>().values(), &[1, 2]);
    assert_eq!(sizes.value(1).len(), 0);
    let who = column("who").as_struct();
    assert_eq!(who.column(0).as_string::<i32>().value(0), "a");
    assert_eq!(
        who.column(1).as_string::<i32>().value(0),
        r#"{"name":"","boss":null}"#
    );
    assert!(who.is_null(1) && text("card").is_null(0));
    assert_eq!(column("cash").as_primitive::<Float64Type>().value(0), 1.5);
    let at = column("at").as_primitive::<TimestampNanosecondType>();
    assert_eq!((at.value(0), at.is_null(1)), (1_000_000_005, true));
    assert_eq!(
        (text("counts").value(0), text("counts").value(1)),
        (r#"{"k":3}"#, "{}")
    );
    assert_eq!(column("raw").as_binary::<i32>().value(0), b"\xff");
    let maybe = column("maybe").as_primitive::<Int32Type>();
    assert_eq!(
        (maybe.value(0), maybe.is_null(0), maybe.is_null(1)),
        (0, false, true)
    );
}

#[test]
fn a_bad_record_leaves_its_neighbours_alone() {
    let columns = vec![
        Field::new("id", DataType::Int64, true),
        Field::new("note", DataType::Utf8, true),
    ];
    let good = [8, 1];
    let records: [&[u8]; 7] = [
        &good,
        &[8],                      // cut off
        &[0x12, 1, 0xff],          // not UTF-8
        &[0x08, 2, 0x12, 9, b'x'], // a length beyond the end
        &[0x0d, 1, 2, 3, 4],       // id with another wire type
        &[0xff; 30],
        &good,
    ];
    let decoded = decode(columns, &records);
    assert_eq!(decoded.origins, [0, 6]);
    let bad: Vec<_> = decoded.bad.iter().map(|b| (b.origin, b.reason)).collect();
    assert_eq!(
        bad,
        (1..6)
            .map(|i| (i, BadReason::Malformed))
            .collect::<Vec<_>>()
    );
    for bad in &decoded.bad {
        assert!(
            bad.message.starts_with("it is no shop.Order: "),
            "{}",
            bad.message
        );
    }
}

#[test]
fn values_are_never_changed_to_fit() {
    let message = |name: &str, data_type: DataType, nullable: bool, record: &[u8]| {
        let decoded = decode(vec![Field::new(name, data_type, nullable)], &[record]);
        decoded.bad[0].message.clone()
    };
    let of = |name: &str, data_type: DataType| message(name, data_type, true, &golden());
    assert_eq!(
        of("id", DataType::Utf8),
        "column \"id\": Protobuf's int64 is not text"
    );
    assert_eq!(
        of("note", DataType::Int64),
        "column \"note\": Protobuf's string is not a whole number"
    );
    assert_eq!(
        of("at", DataType::Int64),
        "column \"at\": Protobuf's google.protobuf.Timestamp is not a whole number"
    );
    assert_eq!(
        of("sizes", DataType::Int32),
        "column \"sizes\": a repeated field is not a whole number"
    );
    assert_eq!(
        of("raw", DataType::Utf8),
        "column \"raw\": Protobuf's bytes is not text"
    );
    let seconds = DataType::Timestamp(TimeUnit::Second, None);
    assert!(of("at", seconds).contains("more fraction digits than TIMESTAMP(0) keeps"));
    assert_eq!(
        message("id", DataType::Int8, true, &[8, 0x80, 4]),
        "column \"id\": 512 is out of range for TINYINT"
    );
    assert_eq!(
        message("note", DataType::Utf8, false, &[]),
        "column \"note\" is null, but declared NOT NULL"
    );
    assert_eq!(
        message("gone", DataType::Utf8, false, &[]),
        "column \"gone\" is missing, but declared NOT NULL"
    );
    let json = decode(vec![json_field("note", true)], &[&[0x12, 1, b'{']]);
    assert_eq!(json.bad[0].message, "column \"note\": \"{\" is not JSON");
    // Year 10000.
    let at = [0x42, 7, 8, 0x80, 0x90, 0xf8, 0xfe, 0x9e, 0x07];
    assert!(
        message(
            "at",
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            true,
            &at
        )
        .contains("out of range")
    );
}

#[test]
fn values_of_an_enum_without_a_name_are_numbers() {
    let decoded = decode(
        vec![Field::new("color", DataType::Utf8, true)],
        &[&[0x18, 9]],
    );
    assert_eq!(decoded.rows.column(0).as_string::<i32>().value(0), "9");
    let decoded = decode(
        vec![Field::new("color", DataType::Int32, true)],
        &[&[0x18, 2]],
    );
    assert_eq!(
        decoded.rows.column(0).as_primitive::<Int32Type>().value(0),
        2
    );
}

#[test]
fn records_become_documents() {
    let schema = Arc::new(Schema::new(vec![json_field("value", true)]));
    let mut decoder =
        ProtobufDecoder::new(schema, Schemas::One(order_type()), true, false).unwrap();
    let decoded = feed(&mut decoder, &[&golden()]);
    let expected = r#"{"id":7,"note":"hi","color":"BLUE","sizes":[1,2],"who":{"name":"a","boss":{"name":"","boss":null}},"card":null,"cash":1.5,"at":"1970-01-01T00:00:01.000000005Z","counts":{"k":3},"raw":"/w==","maybe":0,"others":[]}"#;
    assert_eq!(decoded.rows.column(0).as_string::<i32>().value(0), expected);
}

#[test]
fn messages_within_messages_have_a_limit() {
    // who { boss { boss { … } } }, a thousand levels deep.
    let mut record = Vec::new();
    for _ in 0..1000 {
        let mut outer = vec![0x12];
        wire::write_varint(record.len() as u64, &mut outer);
        outer.extend(record);
        record = outer;
    }
    let mut outer = vec![0x2a];
    wire::write_varint(record.len() as u64, &mut outer);
    outer.extend(record);
    let decoded = decode(vec![json_field("who", true)], &[&outer]);
    assert_eq!((decoded.rows.num_rows(), decoded.bad.len()), (0, 1));
}

#[test]
fn types_come_from_text_or_compiled_descriptors() {
    let dir = file(SHOP);
    let path = path(&dir);
    let named = |name: &str| {
        options(&[
            ("protobuf.descriptor", &path),
            ("protobuf.message_name", name),
        ])
    };
    assert_eq!(discover(&named("shop.Other")).unwrap().len(), 1);
    assert_eq!(discover(&named("shop.Order.Person")).unwrap().len(), 2);
    let error = discover(&named("Order")).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("\"{path}\": it has no message type 'Order'; it has 'shop.Order', 'shop.Other'")
    );
    let error = discover(&options(&[("protobuf.descriptor", &path)]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("say which message type with protobuf.message_name"),
        "{error}"
    );

    let set = dir.path().join("shop.desc");
    std::fs::write(&set, order_type().parent_pool().encode_to_vec()).unwrap();
    let set = set.to_str().unwrap();
    let compiled = options(&[
        ("protobuf.descriptor", set),
        ("protobuf.message_name", "shop.Order"),
    ]);
    assert_eq!(
        discover(&compiled).unwrap(),
        columns::columns(&order_type())
    );
}

#[test]
fn files_that_define_no_types_are_named() {
    let error = |text: &str| {
        let dir = file(text);
        let path = path(&dir);
        let error = discover(&options(&[("protobuf.descriptor", &path)]))
            .unwrap_err()
            .to_string();
        error
            .strip_prefix(&format!("\"{path}\": "))
            .unwrap()
            .to_string()
    };
    assert_eq!(error("syntax = \"proto3\";"), "it defines no message type");
    assert!(!error("message {").is_empty());
    assert!(
        error("syntax = \"proto3\"; import \"nowhere.proto\"; message M {}")
            .contains("nowhere.proto")
    );
    let missing = discover(&options(&[("protobuf.descriptor", "/no/such.desc")]))
        .unwrap_err()
        .to_string();
    assert!(missing.starts_with("\"/no/such.desc\": "), "{missing}");
    let dir = file(SHOP);
    let not_compiled = dir.path().join("x.desc");
    std::fs::write(&not_compiled, "hello").unwrap();
    let not_compiled = not_compiled.to_str().unwrap();
    let error = discover(&options(&[("protobuf.descriptor", not_compiled)]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("it is neither a .proto file nor a set of descriptors"),
        "{error}"
    );
}

fn types() -> Vec<DataType> {
    let list = |item| DataType::List(Arc::new(Field::new("item", item, false)));
    let inner = vec![
        Field::new("a", DataType::Utf8, true),
        Field::new("b", DataType::Float64, true),
    ];
    vec![
        DataType::Boolean,
        DataType::Int16,
        DataType::Int64,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal128(10, 2),
        DataType::Utf8,
        DataType::Binary,
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Struct(inner.into()),
        list(DataType::Boolean),
    ]
}

/// Random rows, but for what Protobuf cannot tell apart: a null list is an empty one.
fn random_rows(rng: &mut StdRng, n: usize) -> RecordBatch {
    let named = |(i, t): (usize, &DataType)| {
        let is_list = matches!(t, DataType::List(_));
        Field::new(format!("c{i}"), t.clone(), !is_list)
    };
    let types = types();
    let schema = Schema::new(types.iter().enumerate().map(named).collect::<Vec<_>>());
    let columns: Vec<ArrayRef> = types
        .iter()
        .map(|t| match t {
            DataType::List(item) => {
                let offsets = arrow::buffer::OffsetBuffer::from_lengths((0..n).map(|i| i % 3));
                let len = offsets.last().copied().unwrap() as usize;
                let items: ArrayRef = Arc::new(arrow::array::BooleanArray::from(vec![true; len]));
                Arc::new(arrow::array::ListArray::new(
                    item.clone(),
                    offsets,
                    items,
                    None,
                ))
            }
            other => array(rng, other, n),
        })
        .collect();
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn encode(rows: &RecordBatch, options: &Options) -> Vec<Vec<u8>> {
    let mut messages = Messages::default();
    ProtobufEncoder::new(&rows.schema(), options)
        .unwrap()
        .messages(&SinkInput::Rows(rows), &mut messages)
        .unwrap();
    messages.iter().map(<[u8]>::to_vec).collect()
}

#[test]
fn random_rows_are_read_back_equal() {
    let registry = TestRegistry::start();
    let url = registry.url();
    let options = options(&[("schema_registry.endpoint", url.as_str()), ("topic", "t")]);
    let mut rng = StdRng::seed_from_u64(17);
    for _ in 0..20 {
        let n = rng.random_range(1..30);
        let rows = random_rows(&mut rng, n);
        let messages = encode(&rows, &options);
        let messages: Vec<_> = messages.iter().map(Vec::as_slice).collect();
        let decoded = feed(&mut decoder(&options, rows.schema()).unwrap(), &messages);
        assert_eq!(decoded.bad, []);
        for (i, field) in rows.schema().fields().iter().enumerate() {
            assert_eq!(
                rows.column(i),
                decoded.rows.column(i),
                "{}",
                field.data_type()
            );
        }
    }
    assert_eq!(
        registry.latest("t-value").unwrap()["schemaType"],
        "PROTOBUF"
    );
    assert_eq!(discover(&options).unwrap().len(), types().len());
}

#[test]
fn messages_name_their_type_by_its_place() {
    let registry = TestRegistry::start();
    let url = registry.url();
    let options = options(&[("schema_registry.endpoint", url.as_str()), ("topic", "t")]);
    let id = registry.add("t-value", "PROTOBUF", SHOP);
    let avro = registry.add("t-value", "AVRO", "\"long\"");
    let message = |id: u32, rest: &[u8]| [&confluent::header(id)[..], rest].concat();
    let messages = [
        message(id, &[0, 8, 1]),                // Order
        message(id, &[2, 2, 8, 2]),             // Other: field 1 is "n", so no id
        message(id, &[4, 0, 0, 0x0a, 1, b'x']), // Order.Person
        message(id, &[2, 20]),
        message(id, &[]),
        message(avro, &[0, 8, 1]),
        message(77, &[0, 8, 1]),
        b"{}".to_vec(),
        message(id, &[0, 8, 3]),
    ];
    let columns = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("name", DataType::Utf8, true),
    ]));
    let messages: Vec<_> = messages.iter().map(Vec::as_slice).collect();
    let decoded = feed(&mut decoder(&options, columns).unwrap(), &messages);
    assert_eq!(decoded.origins, [0, 1, 2, 8]);
    assert_eq!(decoded.rows.column(1).as_string::<i32>().value(2), "x");
    let bad: Vec<_> = decoded.bad.iter().map(|b| b.message.clone()).collect();
    assert_eq!(
        bad[0],
        format!("schema {id} has no message type at the path [10]")
    );
    assert_eq!(bad[1], "the path to the message type is cut off");
    assert_eq!(bad[2], format!("schema {avro} is AVRO, not PROTOBUF"));
    assert_eq!(
        bad[3],
        "the schema registry has no schema 77: Schema 77 not found"
    );
    assert!(bad[4].starts_with("the message begins with the byte 123"));

    registry.fail([Fault::Garbage]);
    let columns = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    let mut decoder = decoder(&options, columns).unwrap();
    assert!(decoder.decode_one(&message(1234, &[0]), 0));
    assert!(
        decoder
            .flush()
            .unwrap_err()
            .to_string()
            .contains("the answer is not JSON")
    );
}

#[test]
fn rows_fit_the_type_of_a_file() {
    let dir = file(SHOP);
    let path = path(&dir);
    let given = [
        ("protobuf.descriptor", path.as_str()),
        ("protobuf.message_name", "shop.Order"),
    ];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("note", Arc::new(StringArray::from(vec![Some("hi"), None]))),
        ("color", Arc::new(StringArray::from(vec!["RED", "2"]))),
    ];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let messages = encode(&rows, &options(&given));
    assert_eq!(
        messages,
        [vec![0x12, 2, b'h', b'i', 0x18, 1], vec![0x18, 2]]
    );

    let refused = |columns: Vec<Field>| {
        let schema = Arc::new(Schema::new(columns));
        ProtobufEncoder::new(&schema, &options(&given))
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        refused(vec![Field::new("price", DataType::Int64, true)]),
        "the message type shop.Order has no field for column \"price\""
    );
    assert_eq!(
        refused(vec![Field::new("id", DataType::Utf8, true)]),
        "column \"id\" has type TEXT, which field shop.Order.id cannot hold"
    );
    assert!(refused(vec![json_field("counts", true)]).contains("cannot hold"));

    let colors: ArrayRef = Arc::new(StringArray::from(vec!["PINK"]));
    let rows = RecordBatch::try_from_iter([("color", colors)]).unwrap();
    let error = ProtobufEncoder::new(&rows.schema(), &options(&given))
        .unwrap()
        .messages(&SinkInput::Rows(&rows), &mut Messages::default())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "column \"color\": \"PINK\" is no value of the enum shop.Order.Color"
    );
}

#[test]
fn records_behind_their_lengths() {
    let dir = file("syntax = \"proto3\"; message M { int64 id = 1; }");
    let path = path(&dir);
    let given = [("protobuf.descriptor", path.as_str())];
    let ids: ArrayRef = Arc::new(arrow::array::Int64Array::from_iter_values(0..300));
    let rows = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let mut stream = Vec::new();
    let mut encoder = ProtobufEncoder::new(&rows.schema(), &options(&given)).unwrap();
    encoder.rows(&rows, &mut stream).unwrap();

    // In blocks of any size.
    let mut decoder = decoder(&options(&given), rows.schema()).unwrap();
    let (mut start, mut end, mut n) = (0, 0, 0);
    while start < stream.len() {
        end = (end + 7).min(stream.len());
        let done = decoder.decode(&stream[start..end], start as u64, 3, end == stream.len());
        start += done.bytes;
        n += done.records;
    }
    assert_eq!(n, 300);
    assert_eq!(decoder.flush().unwrap().rows.column(0), rows.column(0));

    // A message with several, of which one is bad and the last cut off.
    let given = [given[0], ("protobuf.length_delimited", "true")];
    let mut decoder = super::decoder(&options(&given), rows.schema()).unwrap();
    let decoded = feed(&mut decoder, &[&[2, 8, 1, 1, 8, 2, 8, 3, 9, 8]]);
    assert_eq!(
        decoded.rows.column(0).as_primitive::<Int64Type>().values(),
        &[1, 3]
    );
    assert_eq!(decoded.bad.len(), 2);
    assert_eq!(decoded.bad[1].message, "the message ends within a record");
    // A broken length loses what follows it, and says so.
    let done = decoder.decode(&[0xff; 20], 5, 10, false);
    assert_eq!((done.bytes, done.records), (20, 1));
    assert_eq!(decoder.flush().unwrap().bad[0].origin, 5);
}

#[test]
fn options_are_checked_together() {
    let check = |given: &[(&str, &str)]| {
        super::check(&options(given), Direction::Source).map_err(|f| f.message)
    };
    let endpoint = ("schema_registry.endpoint", "http://localhost:8081");
    assert_eq!(check(&[]).unwrap_err(), "the message type is not said");
    assert!(check(&[endpoint]).is_ok());
    assert!(check(&[("protobuf.descriptor", "x.proto")]).is_ok());
    assert!(
        check(&[endpoint, ("protobuf.length_delimited", "true")])
            .unwrap_err()
            .contains("excludes")
    );
    // What other implementations write is what is read: the library's own encoding of a message.
    let message = prost_reflect::DynamicMessage::decode(order_type(), golden().as_slice()).unwrap();
    assert_eq!(message.encode_to_vec().len(), golden().len());
}

#[test]
fn a_record_of_ten_megabytes_is_a_record_like_any_other() {
    let mut record = vec![0x12];
    wire::write_varint(10 << 20, &mut record);
    record.resize(record.len() + (10 << 20), b'x');
    let cut = &record[..record.len() - 1];
    let decoded = decode(
        vec![Field::new("note", DataType::Utf8, true)],
        &[&record, cut, &record],
    );
    assert_eq!((decoded.rows.num_rows(), decoded.bad.len()), (2, 1));
}
