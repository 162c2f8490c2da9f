use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};
use arrow_avro::reader::ReaderBuilder;
use arrow_avro::schema::{
    AvroSchema as LibrarySchema, Fingerprint, FingerprintAlgorithm, FingerprintStrategy,
    SchemaStore,
};
use arrow_avro::writer::WriterBuilder;
use arrow_avro::writer::format::AvroSoeFormat;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use thalweg_dataflow::table::json_field;
use thalweg_runtime::connector::{BadReason, SinkInput};

use super::*;
use crate::format::encode::{Encoder, Messages};
use crate::format::random::array;
use crate::format::registry::test_server::{Fault, TestRegistry};
use crate::format::{Decoded, RecordDecoder};
use crate::testing::options;

fn types() -> Vec<DataType> {
    let nanos =
        |zone: Option<&str>| DataType::Timestamp(TimeUnit::Nanosecond, zone.map(Into::into));
    let millis =
        |zone: Option<&str>| DataType::Timestamp(TimeUnit::Millisecond, zone.map(Into::into));
    let list = |item| DataType::List(Arc::new(Field::new("item", item, true)));
    let inner = vec![
        Field::new("a", DataType::Utf8, true),
        Field::new("b", list(DataType::Float64), true),
    ];
    vec![
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
        DataType::Decimal256(76, 10),
        DataType::Utf8,
        DataType::Binary,
        DataType::Date32,
        DataType::Time32(TimeUnit::Second),
        nanos(None),
        nanos(Some("+00:00")),
        millis(None),
        list(DataType::Int64),
        list(list(DataType::Utf8)),
        DataType::Struct(inner.into()),
    ]
}

fn random_rows(rng: &mut StdRng, types: &[DataType], n: usize) -> RecordBatch {
    let named = |(i, t): (usize, &DataType)| Field::new(format!("c{i}"), t.clone(), true);
    let schema = Schema::new(types.iter().enumerate().map(named).collect::<Vec<_>>());
    let columns = types.iter().map(|t| array(rng, t, n)).collect();
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn encode(rows: &RecordBatch, options: &Options) -> Messages {
    let mut messages = Messages::default();
    AvroEncoder::new(&rows.schema(), options)
        .unwrap()
        .messages(&SinkInput::Rows(rows), &mut messages)
        .unwrap();
    messages
}

fn decode<'a>(decoder: &mut AvroDecoder, messages: impl IntoIterator<Item = &'a [u8]>) -> Decoded {
    for (at, message) in messages.into_iter().enumerate() {
        assert!(decoder.decode_one(message, at as u64));
    }
    decoder.flush().unwrap()
}

/// A decoder of records of the Avro schema `written`, without headers.
fn raw(written: &str, columns: Vec<Field>) -> AvroDecoder {
    let schema = AvroSchema::parse(written, &[]).unwrap();
    let columns = Arc::new(Schema::new(columns));
    AvroDecoder::new(columns, Schemas::One(Arc::new(schema)), Target::Columns).unwrap()
}

fn kafka(registry: &TestRegistry) -> Options {
    options(&[
        ("schema_registry.endpoint", &registry.url()),
        ("topic", "t"),
    ])
}

#[test]
fn random_rows_are_read_back_equal() {
    let registry = TestRegistry::start();
    let options = kafka(&registry);
    let mut rng = StdRng::seed_from_u64(7);
    for _ in 0..20 {
        let n = rng.random_range(1..30);
        let rows = random_rows(&mut rng, &types(), n);
        let messages = encode(&rows, &options);
        assert_eq!(messages.len(), n);
        let mut decoder = decoder(&options, rows.schema()).unwrap();
        let decoded = decode(&mut decoder, messages.iter());
        assert_eq!(decoded.bad, []);
        for (i, field) in rows.schema().fields().iter().enumerate() {
            let (wrote, read) = (rows.column(i), decoded.rows.column(i));
            assert_eq!(wrote, read, "{}", field.data_type());
        }
    }
    // The registered schema gives the same table again, but for the integers that Avro has no types for.
    let columns = discover(&options).unwrap();
    assert_eq!(columns.len(), types().len());
    assert_eq!(columns[0].data_type(), &DataType::Boolean);
    assert_eq!(columns[17].data_type(), &types()[17]);
    assert_eq!(columns[22].data_type(), &types()[22]);
}

/// Types that the other implementation and we agree on.
fn common_types() -> Vec<DataType> {
    let agreed = |t: &DataType| {
        !t.is_unsigned_integer()
            && !matches!(t, DataType::Int8 | DataType::Int16 | DataType::Time32(_))
            && !matches!(t, DataType::Timestamp(TimeUnit::Nanosecond, _))
    };
    types().into_iter().filter(agreed).collect()
}

#[test]
fn another_implementation_reads_what_is_written() {
    let registry = TestRegistry::start();
    let options = kafka(&registry);
    let mut rng = StdRng::seed_from_u64(11);
    let rows = random_rows(&mut rng, &common_types(), 50);
    let messages = encode(&rows, &options);
    let schema = registry.latest("t-value").unwrap();
    let text = schema["schema"].as_str().unwrap().to_string();
    let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
    store
        .set(Fingerprint::Id(1), LibrarySchema::new(text))
        .unwrap();
    let mut reader = ReaderBuilder::new()
        .with_writer_schema_store(store)
        .build_decoder()
        .unwrap();
    for message in messages.iter() {
        assert_eq!(reader.decode(message).unwrap(), message.len());
    }
    let read = reader.flush().unwrap().unwrap();
    assert_same(&rows, &read);
}

#[test]
fn what_another_implementation_writes_is_read() {
    let registry = TestRegistry::start();
    let options = kafka(&registry);
    let mut rng = StdRng::seed_from_u64(13);
    let rows = random_rows(&mut rng, &common_types(), 50);
    let text = LibrarySchema::try_from(rows.schema().as_ref())
        .unwrap()
        .json_string;
    let id = registry.add("t-value", "AVRO", &text);
    let mut writer = WriterBuilder::new(rows.schema().as_ref().clone())
        .with_fingerprint_strategy(FingerprintStrategy::Id(id))
        .build_encoder::<AvroSoeFormat>()
        .unwrap();
    writer.encode(&rows).unwrap();
    let written = writer.flush();
    let messages: Vec<_> = written.iter().collect();
    let mut decoder = decoder(&options, rows.schema()).unwrap();
    let decoded = decode(&mut decoder, messages.iter().map(AsRef::as_ref));
    assert_eq!(decoded.bad, []);
    assert_same(&decoded.rows, &rows);
}

/// Equal values, whatever the types that hold them.
fn assert_same(ours: &RecordBatch, theirs: &RecordBatch) {
    for (i, field) in ours.schema().fields().iter().enumerate() {
        let column = compute::cast(theirs.column(i), field.data_type()).unwrap();
        assert_eq!(ours.column(i), &column, "{}", field.data_type());
    }
}

const ORDER: &str = r#"{"type":"record","name":"Order","fields":[
    {"name":"skipped","type":{"type":"map","values":["null","long",{"type":"array","items":"string"}]}},
    {"name":"id","type":"long"},
    {"name":"note","type":["null","string"]}]}"#;

fn order(id: u8) -> Vec<u8> {
    // {"k": ["x"]}, id, "ab"
    vec![2, 2, b'k', 4, 2, 2, b'x', 0, 0, id * 2, 2, 4, b'a', b'b']
}

fn order_columns() -> Vec<Field> {
    vec![
        Field::new("note", DataType::Utf8, true),
        Field::new("id", DataType::Int64, false),
        Field::new("absent", DataType::Float64, true),
    ]
}

#[test]
fn fields_are_found_by_name_and_others_skipped() {
    let mut decoder = raw(ORDER, order_columns());
    let decoded = decode(&mut decoder, [&order(1)[..], &order(2)]);
    assert_eq!(decoded.bad, []);
    assert_eq!(decoded.rows.column(0).as_string::<i32>().value(1), "ab");
    assert_eq!(
        decoded.rows.column(1).as_primitive::<Int64Type>().values(),
        &[1, 2]
    );
    assert_eq!(decoded.rows.column(2).null_count(), 2);
}

#[test]
fn a_bad_record_leaves_its_neighbours_alone() {
    let mut not_utf8 = order(3);
    *not_utf8.last_mut().unwrap() = 0xff;
    let mut longer = order(3);
    longer.push(0);
    let mut no_branch = order(3);
    no_branch[10] = 8;
    let empty: &[u8] = &[];
    let records: Vec<Vec<u8>> = vec![
        order(1),
        order(3)[..13].to_vec(),
        not_utf8,
        order(2),
        longer,
        no_branch,
        empty.to_vec(),
        vec![0xff; 20],
        order(4),
    ];
    let mut decoder = raw(ORDER, order_columns());
    let decoded = decode(&mut decoder, records.iter().map(Vec::as_slice));
    assert_eq!(
        decoded.rows.column(1).as_primitive::<Int64Type>().values(),
        &[1, 2, 4]
    );
    assert_eq!(decoded.origins, [0, 3, 8]);
    let bad: Vec<_> = decoded
        .bad
        .iter()
        .map(|b| (b.origin, b.reason, b.message.as_str()))
        .collect();
    assert_eq!(
        bad,
        [
            (
                1,
                BadReason::Malformed,
                "column \"note\": the record is cut off"
            ),
            (
                2,
                BadReason::Encoding,
                "column \"note\": a string is not UTF-8"
            ),
            (
                4,
                BadReason::Malformed,
                "1 bytes follow the record: it was written with another schema"
            ),
            (
                5,
                BadReason::Malformed,
                "column \"note\": a union of 2 types has no branch 4"
            ),
            (6, BadReason::Malformed, "the record is cut off"),
            (7, BadReason::Malformed, "a number has more than 64 bits"),
        ]
    );
    assert_eq!(decoded.bad[0].raw, records[1]);
}

/// The fault of one record with one field `v` of type `written`, read into a column.
fn fault(written: &str, record: &[u8], column: Field) -> String {
    let schema =
        format!(r#"{{"type":"record","name":"R","fields":[{{"name":"v","type":{written}}}]}}"#);
    let decoded = decode(&mut raw(&schema, vec![column]), [record]);
    assert_eq!(decoded.rows.num_rows(), 0, "{written}");
    decoded.bad[0].message.clone()
}

#[test]
fn values_are_never_changed_to_fit() {
    let column = |t: DataType| Field::new("v", t, true);
    let decimal = r#"{"type":"bytes","logicalType":"decimal","precision":9,"scale":3}"#;
    for (written, record, data_type, message) in [
        (
            "\"string\"",
            &[2, b'1'][..],
            DataType::Int64,
            "Avro's string is not a whole number",
        ),
        (
            "\"long\"",
            &[0x80, 4],
            DataType::Int8,
            "256 is out of range for TINYINT",
        ),
        (
            "\"long\"",
            &[1],
            DataType::UInt64,
            "-1 is out of range for BIGINT UNSIGNED",
        ),
        (
            "\"double\"",
            &[0; 8],
            DataType::Int64,
            "Avro's double is not a whole number",
        ),
        (
            "\"double\"",
            &[0; 8],
            DataType::Decimal128(9, 2),
            "Avro's double is not a number",
        ),
        ("\"long\"", &[2], DataType::Utf8, "Avro's long is not text"),
        (
            "\"long\"",
            &[2],
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            "Avro's long is not a timestamp",
        ),
        // 0.123 with two digits.
        (
            decimal,
            &[2, 123],
            DataType::Decimal128(9, 2),
            "bytes (decimal) has more fraction digits than DECIMAL(9, 2) keeps",
        ),
        (
            "\"string\"",
            &[2, b'x'],
            DataType::Binary,
            "Avro's string is not bytes",
        ),
    ] {
        let found = fault(written, record, column(data_type));
        assert_eq!(found, format!("column \"v\": {message}"));
    }
    let not_null = Field::new("v", DataType::Int64, false);
    assert_eq!(
        fault(r#"["null","long"]"#, &[0], not_null),
        "column \"v\" is null, but declared NOT NULL"
    );
    assert_eq!(
        fault("\"string\"", &[2, b'{'], json_field("v", true)),
        "column \"v\": \"{\" is not JSON"
    );
}

#[test]
fn a_count_cannot_make_a_record_endless() {
    // A trillion nulls, and a chain of records within records.
    let nulls = r#"{"type":"array","items":"null"}"#;
    let trillion = [0x80, 0x80, 0x80, 0x80, 0x80, 0x40];
    let item = Arc::new(Field::new("item", DataType::Int64, true));
    let found = fault(
        nulls,
        &trillion,
        Field::new("v", DataType::List(item), true),
    );
    assert!(
        found.contains("items are more than the record holds"),
        "{found}"
    );

    let chain = r#"{"type":"record","name":"R","fields":[{"name":"next","type":["null","R"]},{"name":"v","type":"int"}]}"#;
    let mut decoder = raw(chain, vec![Field::new("v", DataType::Int32, true)]);
    let decoded = decode(&mut decoder, [&[2; 100_000][..]]);
    assert!(
        decoded.bad[0].message.contains("nested deeper than 64"),
        "{:?}",
        decoded.bad[0].message
    );
}

#[test]
fn records_become_documents() {
    let schema = r#"{"type":"record","name":"R","fields":[
        {"name":"id","type":"long"},
        {"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},
        {"name":"t","type":{"type":"int","logicalType":"time-millis"}},
        {"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}},
        {"name":"u","type":{"type":"fixed","name":"U","size":16,"logicalType":"uuid"}},
        {"name":"color","type":{"type":"enum","name":"C","symbols":["RED","BLUE"]}},
        {"name":"m","type":{"type":"map","values":"boolean"}},
        {"name":"x","type":["null","double"]}]}"#;
    let mut record = vec![14, 0, 1, 4, 4, 0xd2];
    record.extend(0u8..16);
    record.extend([2, 4, 2, b'k', 1, 2, b'l', 0, 0, 2]);
    record.extend(f64::NAN.to_le_bytes());
    let expected = r#"{"id":7,"at":"1970-01-01T00:00:00Z","t":-1,"price":12.34,"u":"00010203-0405-0607-0809-0a0b0c0d0e0f","color":"BLUE","m":{"k":true,"l":false},"x":"NaN"}"#;
    let schema = Arc::new(AvroSchema::parse(schema, &[]).unwrap());
    let column = Arc::new(Schema::new(vec![json_field("value", true)]));
    let mut decoder =
        AvroDecoder::new(column, Schemas::One(schema.clone()), Target::Document).unwrap();
    let decoded = decode(&mut decoder, [&record[..], &record[..20]]);
    assert_eq!(decoded.rows.column(0).as_string::<i32>().value(0), expected);
    assert_eq!(decoded.bad.len(), 1);

    // A column that no query reads costs nothing, but the record is checked.
    let mut decoder = AvroDecoder::new(
        Arc::new(Schema::empty()),
        Schemas::One(schema),
        Target::Document,
    )
    .unwrap();
    let decoded = decode(&mut decoder, [&record[..], &record[..20]]);
    assert_eq!((decoded.rows.num_rows(), decoded.bad.len()), (1, 1));
}

#[test]
fn schemas_change_from_record_to_record() {
    let registry = TestRegistry::start();
    let options = kafka(&registry);
    let schema = |fields: &str| format!(r#"{{"type":"record","name":"R","fields":[{fields}]}}"#);
    let first = registry.add("t-value", "AVRO", &schema(r#"{"name":"id","type":"int"}"#));
    let second = registry.add(
        "t-value",
        "AVRO",
        &schema(r#"{"name":"note","type":"string"},{"name":"id","type":["null","long"]}"#),
    );
    let other = registry.add("t-value", "JSON", "{}");
    let message = |id: u32, body: &[u8]| [&confluent_header(id)[..], body].concat();
    let messages = [
        message(first, &[2]),
        message(second, &[2, b'x', 2, 4]),
        message(99, &[2]),
        message(other, b"{}"),
        b"{\"id\": 1}".to_vec(),
        message(first, &[6]),
    ];
    let columns = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    let mut decoder = decoder(&options, columns).unwrap();
    let decoded = decode(&mut decoder, messages.iter().map(Vec::as_slice));
    assert_eq!(
        decoded.rows.column(0).as_primitive::<Int64Type>().values(),
        &[1, 2, 3]
    );
    let bad: Vec<_> = decoded.bad.iter().map(|b| b.message.as_str()).collect();
    assert_eq!(
        bad[0],
        "the schema registry has no schema 99: Schema 99 not found"
    );
    assert_eq!(bad[1], format!("schema {other} is JSON, not AVRO"));
    assert!(bad[2].starts_with("the message begins with the byte 123"));
    // Whole messages, with their headers.
    assert_eq!(decoded.bad[0].raw, messages[2]);
}

fn confluent_header(id: u32) -> [u8; 5] {
    crate::format::confluent::header(id)
}

#[test]
fn a_registry_that_fails_is_no_fault_of_the_record() {
    let registry = TestRegistry::start();
    let url = registry.url();
    let options = options(&[
        ("schema_registry.endpoint", url.as_str()),
        ("schema_registry.timeout", "100 ms"),
    ]);
    registry.fail([Fault::Status(500); 50]);
    let columns = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
    let mut decoder = decoder(&options, columns).unwrap();
    assert!(decoder.decode_one(&confluent_header(1), 0));
    // Who cannot be asked is not asked again before that is told.
    registry.requests();
    assert!(!decoder.decode_one(&confluent_header(2), 1));
    assert_eq!(registry.requests(), Vec::<String>::new());
    let error = decoder.flush().unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("schema registry: GET {url}/schemas/ids/1: 500")),
        "{error}"
    );
}

#[test]
fn columns_come_from_a_schema() {
    let schema = AvroSchema::parse(
        r#"{"type":"record","name":"R","fields":[
            {"name":"id","type":"long"},
            {"name":"n","type":["null","int"]},
            {"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
            {"name":"local","type":{"type":"long","logicalType":"local-timestamp-nanos"}},
            {"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}},
            {"name":"tags","type":{"type":"array","items":"string"}},
            {"name":"m","type":{"type":"map","values":"string"}},
            {"name":"either","type":["string","long"]},
            {"name":"who","type":{"type":"record","name":"Who","fields":[
                {"name":"name","type":"string"},{"name":"boss","type":["null","Who"]}]}}]}"#,
        &[],
    )
    .unwrap();
    let columns = columns::columns(&schema).unwrap();
    let shown: Vec<_> = columns
        .iter()
        .map(|f| {
            let json = thalweg_dataflow::table::is_json(f);
            let name = if json {
                "JSON".to_string()
            } else {
                crate::format::value::sql_type(f.data_type())
            };
            format!(
                "{} {name}{}",
                f.name(),
                if f.is_nullable() { "" } else { " NOT NULL" }
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "id BIGINT NOT NULL",
            "n INT",
            "at TIMESTAMP(6) WITH TIME ZONE NOT NULL",
            "local TIMESTAMP NOT NULL",
            "price DECIMAL(12, 2) NOT NULL",
            "tags TEXT[] NOT NULL",
            "m JSON NOT NULL",
            "either JSON",
            "who STRUCT NOT NULL",
        ]
    );
}

#[test]
fn what_avro_cannot_express_is_refused() {
    let of = |field: Field| encoder::record_schema(&Schema::new(vec![field])).unwrap_err();
    let found = of(Field::new("größe", DataType::Int64, true));
    assert!(found.starts_with("\"größe\" is no name in Avro"), "{found}");
    let interval = DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano);
    let found = of(Field::new("i", interval, true));
    assert_eq!(
        found,
        "column \"i\" has type INTERVAL, which Avro cannot express"
    );

    let time: ArrayRef = Arc::new(arrow::array::Time64NanosecondArray::from(vec![1]));
    let rows = RecordBatch::try_from_iter([("t", time)]).unwrap();
    let raw = options(&[("avro.raw_datums", "true")]);
    let mut encoder = AvroEncoder::new(&rows.schema(), &raw).unwrap();
    let error = encoder
        .messages(&SinkInput::Rows(&rows), &mut Messages::default())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("column \"t\": a TIME is finer"),
        "{error}"
    );
}

#[test]
fn options_are_checked_together() {
    let check = |given: &[(&str, &str)], direction| {
        super::check(&options(given), direction).map_err(|f| f.message)
    };
    use thalweg_dataflow::options::Direction::{Sink, Source};
    let endpoint = ("schema_registry.endpoint", "http://localhost:8081");
    assert!(check(&[endpoint], Source).is_ok());
    assert!(check(&[], Source).unwrap_err().contains("is not said"));
    assert!(
        check(&[("avro.confluent_schema_registry", "true")], Source)
            .unwrap_err()
            .contains("registry is needed")
    );
    assert!(
        check(&[("avro.raw_datums", "true")], Source)
            .unwrap_err()
            .contains("needs the schema")
    );
    assert!(check(&[("avro.raw_datums", "true")], Sink).is_ok());
    let both = [
        endpoint,
        ("avro.raw_datums", "true"),
        ("avro.confluent_schema_registry", "true"),
    ];
    assert!(check(&both, Source).unwrap_err().contains("excludes"));
}

#[test]
fn a_record_of_ten_megabytes_is_a_record_like_any_other() {
    let mut record = order(1)[..11].to_vec();
    cursor::write_bytes(&vec![b'x'; 10 << 20], &mut record);
    let cut = &record[..record.len() - 1];
    let decoded = decode(
        &mut raw(ORDER, order_columns()),
        [&record[..], cut, &record],
    );
    assert_eq!((decoded.rows.num_rows(), decoded.bad.len()), (2, 1));
    assert_eq!(
        decoded.rows.column(0).as_string::<i32>().value(1).len(),
        10 << 20
    );
}

/// Bytes that fastavro 1 wrote, read into the columns that their schema says.
#[test]
fn golden_bytes_of_another_writer() {
    let schema = r#"{"type":"record","name":"shop.Row","fields":[
        {"name":"id","type":"long"},{"name":"note","type":["null","string"]},
        {"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}},
        {"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},
        {"name":"day","type":{"type":"int","logicalType":"date"}},
        {"name":"tags","type":{"type":"array","items":"string"}},
        {"name":"m","type":{"type":"map","values":["null","double"]}},
        {"name":"e","type":{"type":"enum","name":"E","symbols":["A","B"]}},
        {"name":"f","type":{"type":"fixed","name":"F","size":2}},
        {"name":"u","type":{"type":"string","logicalType":"uuid"}},
        {"name":"in","type":{"type":"record","name":"In","fields":[
            {"name":"x","type":"float"},{"name":"y","type":"boolean"}]}}]}"#;
    let hex = "0d020e6772c3b6c39f6506fe1dc6c0dfd5aceef786068cb50204026102620004026b02000000000000e03f026e00000201ff4830303031303230332d303430352d303630372d303830392d3061306230633064306530660000c03f01";
    let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
    let record: Vec<u8> = (0..hex.len() / 2).map(byte).collect();
    let parsed = AvroSchema::parse(schema, &[]).unwrap();
    let columns = columns::columns(&parsed).unwrap();
    let decoded = decode(&mut raw(schema, columns), [&record[..]]);
    assert_eq!(decoded.bad, []);
    let mut text = Vec::new();
    crate::format::encoder("json", &Options::default(), &decoded.rows.schema(), false)
        .unwrap()
        .rows(&decoded.rows, &mut text)
        .unwrap();
    let expected = r#"{"id":-7,"note":"größe","price":-1234.50,"at":"2024-01-01T10:00:15.02Z","day":"2024-02-29","tags":["a","b"],"m":{"k":0.5,"n":null},"e":"B","f":"Af8=","u":"00010203-0405-0607-0809-0a0b0c0d0e0f","in":{"x":1.5,"y":true}}"#;
    assert_eq!(String::from_utf8(text).unwrap().trim_end(), expected);
}
