//! Every record of a session that Debezium 3.6 captured of a real server, in each of its spellings (`testdata/debezium`):
//! one scripted session, so that what is left of each table is known.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use serde::Deserialize;
use thalweg_dataflow::table::json_field;

use super::super::decode::{Decoded, RecordDecoder};
use super::tests::{cell, decoder, lines};

/// A message of Kafka.
#[derive(Deserialize)]
struct Message {
    topic: String,
    key: Option<String>,
    value: Option<String>,
}

fn capture(name: &str) -> Vec<Message> {
    let path = format!(
        "{}/testdata/debezium/{name}.ndjson",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A way in which the same session was captured, and the options that say so.
struct Spelling {
    name: &'static str,
    options: &'static [(&'static str, &'static str)],
}

const SPELLINGS: [Spelling; 4] = [
    Spelling {
        name: "plain",
        options: &[],
    },
    Spelling {
        name: "schemas",
        options: &[],
    },
    Spelling {
        name: "stringmodes",
        options: &[
            ("json.timestamp_format", "unix_millis"),
            ("json.decimal_encoding", "string"),
            ("debezium.binary", "hex"),
        ],
    },
    Spelling {
        name: "isodouble",
        options: &[],
    },
];

/// Decodes the messages of one topic, with their keys or as lines of a file.
fn decode(
    spelling: &Spelling,
    topic: &str,
    schema: &SchemaRef,
    key: &[&str],
    as_lines: bool,
) -> Decoded {
    let mut decoder = decoder(schema, key, spelling.options);
    let messages = capture(spelling.name);
    let of_topic = messages.iter().filter(|m| m.topic == topic);
    for (at, message) in of_topic.enumerate() {
        let value = message.value.as_deref();
        if as_lines {
            let line = format!("{}\n", value.unwrap_or("null"));
            assert_eq!(
                decoder.decode(line.as_bytes(), at as u64, 9, true).records,
                1
            );
        } else {
            let key = message.key.as_ref().map(String::as_bytes);
            assert!(decoder.decode_message(key, value.map(str::as_bytes), at as u64));
        }
    }
    decoder.flush().unwrap()
}

/// The table that a changelog leaves, by its first column.
fn table(decoded: &Decoded) -> BTreeMap<String, String> {
    let mut rows: BTreeMap<String, String> = BTreeMap::new();
    for (row, line) in lines(decoded).iter().enumerate() {
        let key = cell(&decoded.rows, row, 0);
        let (op, values) = line.split_once(' ').unwrap();
        match op {
            "delete" => drop(rows.remove(&key)),
            "truncate" => rows.clear(),
            _ => drop(rows.insert(key, values.to_string())),
        }
    }
    rows
}

fn orders() -> SchemaRef {
    let instant =
        |zone: Option<&str>| DataType::Timestamp(TimeUnit::Nanosecond, zone.map(Into::into));
    let list = |item| DataType::List(Arc::new(Field::new("item", item, true)));
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        field("id", DataType::Int64),
        field("i2", DataType::Int16),
        field("i4", DataType::Int32),
        field("f4", DataType::Float32),
        field("f8", DataType::Float64),
        field("ok", DataType::Boolean),
        field("name", DataType::Utf8),
        field("vc", DataType::Utf8),
        field("ch", DataType::Utf8),
        field("price", DataType::Decimal128(12, 2)),
        field("anynum", DataType::Decimal128(38, 9)),
        field("d", DataType::Date32),
        field("t", DataType::Time64(TimeUnit::Nanosecond)),
        field("ts", instant(None)),
        field("ts3", instant(None)),
        field("tstz", instant(Some("+00:00"))),
        field("iv", DataType::Interval(IntervalUnit::MonthDayNano)),
        field("u", DataType::Utf8),
        field("raw", DataType::Binary),
        json_field("j", true),
        json_field("jb", true),
        field("ia", list(DataType::Int32)),
        field("ta", list(DataType::Utf8)),
        field("mood", DataType::Utf8),
    ]))
}

/// The row that the session wrote first, in the words of each spelling: times in milliseconds lose digits, and so do
/// decimals as doubles.
fn first_order(spelling: &str) -> String {
    let (number, time, interval) = match spelling {
        "stringmodes" => (
            "12345678901234567890.123456789",
            "13:14:15.123",
            "14 mons 3 days 4 hours 5 mins 6.000000000 secs",
        ),
        "isodouble" => (
            "12345678901234567000.000000000",
            "13:14:15.123456",
            "10303 hours 5 mins 6.000000000 secs",
        ),
        _ => (
            "12345678901234567890.123456789",
            "13:14:15.123456",
            "10303 hours 5 mins 6.000000000 secs",
        ),
    };
    let cells = [
        "1",
        "12",
        "-34567",
        "1.5",
        "2.718281828459045",
        "true",
        "Ana",
        "vé",
        "ab   ",
        "1234.50",
        number,
        "2026-03-01",
        time,
        &format!("2026-03-01T{time}"),
        "2026-03-01T13:14:15.123",
        "2026-03-01T11:14:15.123456Z",
        interval,
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "deadbeef",
        r#"{"a": 1, "b":[true,null]}"#,
        r#"{"a": 2, "z": 1}"#,
        "[1, 2, null]",
        "[x, y z]",
        "happy",
    ];
    cells.join(" ")
}

#[test]
fn rule_6_orders_with_replica_identity_default_in_every_spelling() {
    for spelling in &SPELLINGS {
        for as_lines in [false, true] {
            let decoded = decode(
                spelling,
                "dbz.public.orders_default",
                &orders(),
                &["id"],
                as_lines,
            );
            assert_eq!(decoded.bad, [], "{}", spelling.name);
            let ops: Vec<String> = lines(&decoded)
                .iter()
                .map(|l| l.split(' ').take(2).collect::<Vec<_>>().join(" "))
                .collect();
            assert_eq!(
                ops,
                [
                    "read 1",
                    "read 2",
                    "write 10",
                    "write 10",
                    "delete 10",
                    "write 11",
                    "delete 11"
                ],
                "{}",
                spelling.name
            );
            let left = table(&decoded);
            assert_eq!(left.keys().collect::<Vec<_>>(), ["1", "2"]);
            assert_eq!(left["1"], first_order(spelling.name), "{}", spelling.name);
            assert_eq!(left["2"], format!("2{}", " null".repeat(23)));
        }
    }
}

#[test]
fn rule_6_orders_with_replica_identity_full_in_every_spelling() {
    // Those whose last update has no infinite values.
    let columns: Vec<usize> = (0..24).filter(|c| ![10, 11, 13, 15].contains(c)).collect();
    let finite = Arc::new(orders().project(&columns).unwrap());
    for spelling in &SPELLINGS {
        let decoded = decode(spelling, "dbz.public.orders_full", &finite, &["id"], false);
        assert_eq!(decoded.bad, [], "{}", spelling.name);
        let left = table(&decoded);
        // Only that capture has TRUNCATE.
        let expected: &[&str] = if spelling.name == "stringmodes" {
            &[]
        } else {
            &["1", "2"]
        };
        assert_eq!(
            left.keys().collect::<Vec<_>>(),
            expected,
            "{}",
            spelling.name
        );
        let marks = decoded.marks.unwrap();
        assert!(
            marks.positions.iter().all(|p| p.is_some())
                && marks.source_times.iter().all(|t| t.is_some())
        );
    }
}

#[test]
fn rule_8_1_what_has_no_end_is_a_bad_record() {
    for spelling in &SPELLINGS {
        for column in ["d", "ts", "tstz", "anynum"] {
            let all = orders();
            let columns = [0, all.index_of(column).unwrap()];
            let schema = Arc::new(all.project(&columns).unwrap());
            let decoded = decode(spelling, "dbz.public.orders_full", &schema, &["id"], false);
            // Debezium gives NaN as null where decimals are bytes.
            let n_bad =
                usize::from(!(column == "anynum" && matches!(spelling.name, "plain" | "schemas")));
            assert_eq!(
                decoded.bad.len(),
                n_bad,
                "{} {column}: {:?}",
                spelling.name,
                decoded.bad
            );
        }
    }
}

#[test]
fn rule_6_2_an_unchanged_toast_column_is_unavailable() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("n", DataType::Int32, true),
        Field::new("big", DataType::Utf8, true),
    ]));
    for spelling in &SPELLINGS {
        let decoded = decode(spelling, "dbz.public.toasty", &schema, &["id"], false);
        assert_eq!(decoded.rows.num_rows(), 2);
        assert_eq!(lines(&decoded)[1], "write 1 2 null");
        let unavailable = decoded.marks.unwrap().unavailable.unwrap();
        assert_eq!(
            unavailable.iter().collect::<Vec<_>>(),
            [None, Some(&[0b100u8][..])]
        );
    }
}

#[test]
fn rule_6_1_a_table_without_a_key_is_read_by_the_one_that_is_declared() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("b", DataType::Utf8, true),
    ]));
    for spelling in &SPELLINGS {
        let decoded = decode(spelling, "dbz.public.nopk", &schema, &["a"], false);
        assert_eq!(
            lines(&decoded),
            [
                "read 1 one",
                "write 1 uno",
                "delete 1 null",
                "write 5 tx-a",
                "write 6 tx-b"
            ],
            "{}",
            spelling.name
        );
        // By both columns, the update is a change of key.
        let decoded = decode(spelling, "dbz.public.nopk", &schema, &["a", "b"], false);
        assert_eq!(
            lines(&decoded),
            [
                "read 1 one",
                "delete 1 one",
                "write 1 uno",
                "delete 1 uno",
                "write 5 tx-a",
                "write 6 tx-b"
            ],
            "{}",
            spelling.name
        );
    }
}

#[test]
fn rule_6_1_boundaries_of_transactions_and_logical_messages_are_nothing() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("id", DataType::Utf8, true)]));
    for spelling in &SPELLINGS {
        for topic in ["dbz.transaction", "dbz.message"] {
            let decoded = decode(spelling, topic, &schema, &["id"], false);
            assert_eq!(
                (decoded.rows.num_rows(), decoded.bad.len()),
                (0, 0),
                "{} {topic}",
                spelling.name
            );
        }
    }
}

#[test]
fn rows_that_were_flattened_are_refused_with_a_way_out() {
    let flattened = Spelling {
        name: "unwrapped",
        options: &[],
    };
    let decoded = decode(
        &flattened,
        "dbz.public.orders_default",
        &orders(),
        &["id"],
        false,
    );
    assert_eq!(decoded.rows.num_rows(), 0);
    assert!(
        decoded
            .bad
            .iter()
            .all(|b| b.message.contains("format = 'json'"))
            && decoded.bad.len() == 7,
        "{:?}",
        decoded.bad.len()
    );
}
