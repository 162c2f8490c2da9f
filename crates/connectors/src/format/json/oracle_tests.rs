//! Random records, many of them broken, against `serde_json`: what it accepts and what the types allow
//! must come out as it reads it; all else must be rejected, with the neighbours intact.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int64Type, Schema, UInt8Type};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use thalweg_dataflow::table::json_field;

use super::super::decode::RecordDecoder;
use super::decoder::JsonDecoder;
use super::*;

const NAMES: [&str; 9] = [
    "id", "small", "x", "ok", "s", "doc", "list", "pair", "Größe",
];

fn all_fields() -> Vec<Field> {
    let int = Arc::new(Field::new("item", DataType::Int64, true));
    let pair = Fields::from(vec![
        Field::new("x", DataType::Float64, true),
        Field::new("s", DataType::Utf8, false),
    ]);
    vec![
        Field::new("id", DataType::Int64, false),
        Field::new("small", DataType::UInt8, true),
        Field::new("x", DataType::Float64, true),
        Field::new("ok", DataType::Boolean, true),
        Field::new("s", DataType::Utf8, true),
        json_field("doc", true),
        Field::new("list", DataType::List(int), true),
        Field::new("pair", DataType::Struct(pair), true),
        Field::new("Größe", DataType::Utf8, true),
    ]
}

// What is generated.

fn space(rng: &mut StdRng) -> &'static str {
    if rng.random_range(0..10) == 0 {
        [" ", "  ", "\t", "\r"].choose(rng).expect("not empty")
    } else {
        ""
    }
}

fn quoted(rng: &mut StdRng) -> String {
    let parts = [
        "a",
        "bc",
        "größe",
        "\\n",
        "\\\"",
        "\\\\",
        "\\u0041",
        "\\ud83d\\ude00",
        "😀",
        "long text without end",
    ];
    let broken = ["\\x", "\\u12", "\\ud800", "\t"];
    let mut text = String::from("\"");
    for _ in 0..rng.random_range(0..4) {
        text += parts.choose(rng).expect("not empty");
        if rng.random_range(0..60) == 0 {
            text += broken.choose(rng).expect("not empty");
        }
    }
    text + "\""
}

fn number(rng: &mut StdRng) -> String {
    match rng.random_range(0..8) {
        0 => format!("{}", rng.random::<i64>()),
        1 => format!("{}.0", rng.random_range(-300..300)),
        2 => format!(
            "{}.{}",
            rng.random_range(-300..300),
            rng.random_range(0..1000)
        ),
        3 => format!(
            "{}e{}",
            rng.random_range(-300..300),
            rng.random_range(-20..20)
        ),
        4 => "-0".to_string(),
        5 => "01".to_string(),
        _ => format!("{}", rng.random_range(-10..300)),
    }
}

fn value(rng: &mut StdRng, depth: usize) -> String {
    match rng.random_range(0..if depth > 3 { 8 } else { 12 }) {
        0..3 => number(rng),
        3..5 => quoted(rng),
        5 => "null".to_string(),
        6 => ["true", "false"]
            .choose(rng)
            .expect("not empty")
            .to_string(),
        7 => ["NaN", "tru", "", "'x'", "-", "1.", "Infinity"]
            .choose(rng)
            .expect("not empty")
            .to_string(),
        8..10 => {
            let items: Vec<_> = (0..rng.random_range(0..3))
                .map(|_| value(rng, depth + 1))
                .collect();
            format!("[{}{}]", space(rng), items.join(","))
        }
        _ => object(rng, depth + 1),
    }
}

/// A value that fits the field, mostly. One of a repeated key always does: the other parser does not see
/// the first, while each must fit here.
fn fitting(rng: &mut StdRng, name: &str, depth: usize, is_repeated: bool) -> String {
    if !is_repeated && rng.random_range(0..40) == 0 {
        return value(rng, depth);
    }
    match name {
        "id" => rng.random::<i32>().to_string(),
        "small" => rng.random::<u8>().to_string(),
        "x" => format!("{:?}", f64::from(rng.random::<f32>())),
        "ok" => rng.random::<bool>().to_string(),
        "list" => {
            let items: Vec<_> = (0..rng.random_range(0..4)).map(|i| i.to_string()).collect();
            format!("[{}]", items.join(", "))
        }
        "pair" => format!("{{\"x\":{},\"s\":{}}}", number(rng), quoted(rng)),
        "s" | "Größe" => quoted(rng),
        _ => value(rng, depth),
    }
}

fn object(rng: &mut StdRng, depth: usize) -> String {
    let mut fields = Vec::new();
    for name in NAMES {
        let n = [0, 1, 1, 1, 1, 1, 1, 1, 1, 2]
            .choose(rng)
            .expect("not empty");
        for _ in 0..if depth > 0 { n / 2 } else { *n } {
            let key = if rng.random_range(0..20) == 0 {
                name.replace('i', "\\u0069")
            } else {
                name.to_string()
            };
            fields.push(format!(
                "{}\"{key}\"{}:{}{}",
                space(rng),
                space(rng),
                space(rng),
                fitting(rng, name, depth, *n > 1)
            ));
        }
    }
    if rng.random_range(0..3) == 0 {
        fields.push(format!("\"other\":{}", value(rng, depth)));
    }
    if rng.random_range(0..4) == 0 {
        let last = fields.len().max(1) - 1;
        if !fields.is_empty() {
            let other = rng.random_range(0..=last);
            fields.swap(other, last);
        }
    }
    format!("{{{}{}}}", fields.join(","), space(rng))
}

fn record(rng: &mut StdRng) -> Vec<u8> {
    let mut bytes = format!("{}{}{}", space(rng), object(rng, 0), space(rng)).into_bytes();
    match rng.random_range(0..12) {
        0 => bytes.truncate(rng.random_range(0..bytes.len())),
        1 => {
            let at = rng.random_range(0..bytes.len());
            bytes[at] = *b"{}[]\",:\\ \x00\xff\xc3\x80a01-"
                .choose(rng)
                .expect("not empty");
        }
        2 => bytes.extend_from_slice(b" x"),
        _ => {}
    }
    bytes
}

// What is expected.

#[derive(Debug, Clone)]
enum Cell {
    Null,
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Json(Value),
    List(Vec<Cell>),
    Struct(Vec<Cell>),
}

impl PartialEq for Cell {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Int(a), Self::Int(b)) => a == b,
            // The other parser rounds without care, as it is configured here.
            (Self::Float(a), Self::Float(b)) => {
                a == b || (a / b - 1.0).abs() < 1e-15 || a.is_nan() && b.is_nan()
            }
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Json(a), Self::Json(b)) => a == b,
            (Self::List(a), Self::List(b)) | (Self::Struct(a), Self::Struct(b)) => a == b,
            _ => false,
        }
    }
}

fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let float = value
            .as_f64()
            .filter(|f| f.fract() == 0.0 && f.abs() < 9.2e18)?;
        value.is_f64().then_some(float as i64)
    })
}

fn expect(value: Option<&Value>, field: &Field) -> Option<Cell> {
    let value = match value {
        None | Some(Value::Null) => return field.is_nullable().then_some(Cell::Null),
        Some(value) => value,
    };
    if thalweg_dataflow::table::is_json(field) {
        return Some(Cell::Json(value.clone()));
    }
    match field.data_type() {
        DataType::Int64 => whole(value).map(Cell::Int),
        DataType::UInt8 => whole(value).filter(|n| (0..256).contains(n)).map(Cell::Int),
        DataType::Float64 => match value {
            Value::String(s) if s == "NaN" => Some(Cell::Float(f64::NAN)),
            value => value.as_f64().map(Cell::Float),
        },
        DataType::Boolean => value.as_bool().map(Cell::Bool),
        DataType::Utf8 => value.as_str().map(|s| Cell::Text(s.to_string())),
        DataType::List(item) => {
            let items = value.as_array()?.iter().map(|v| expect(Some(v), item));
            items.collect::<Option<_>>().map(Cell::List)
        }
        DataType::Struct(fields) => {
            let object = value.as_object()?;
            fields
                .iter()
                .map(|f| expect(object.get(f.name()), f))
                .collect::<Option<_>>()
                .map(Cell::Struct)
        }
        other => unreachable!("{other}"),
    }
}

fn found(array: &ArrayRef, field: &Field, row: usize) -> Cell {
    if array.is_null(row) {
        return Cell::Null;
    }
    match field.data_type() {
        DataType::Int64 => Cell::Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => Cell::Int(array.as_primitive::<UInt8Type>().value(row).into()),
        DataType::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Cell::Bool(array.as_boolean().value(row)),
        DataType::Utf8 => {
            let text = array.as_string::<i32>().value(row);
            match thalweg_dataflow::table::is_json(field) {
                true => Cell::Json(serde_json::from_str(text).expect("a JSON column holds JSON")),
                false => Cell::Text(text.to_string()),
            }
        }
        DataType::List(item) => {
            let items = array.as_list::<i32>().value(row);
            Cell::List((0..items.len()).map(|i| found(&items, item, i)).collect())
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            Cell::Struct(
                columns
                    .iter()
                    .zip(fields)
                    .map(|(c, f)| found(c, f, row))
                    .collect(),
            )
        }
        other => unreachable!("{other}"),
    }
}

#[test]
fn random_records_come_out_as_another_parser_reads_them() {
    let seed = std::env::var("THALWEG_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(7);
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut n_good, mut n_bad) = (0, 0);
    for round in 0..300 {
        let mut fields = all_fields();
        fields.retain(|_| rng.random_range(0..4) > 0);
        let records: Vec<_> = (0..rng.random_range(1..30))
            .map(|_| record(&mut rng))
            .collect();
        let context = format!("seed {seed}, round {round}");
        let (good, bad) = check(&mut rng, fields, &records, &context);
        n_good += good;
        n_bad += bad;
    }
    assert!(
        n_good > 1000 && n_bad > 1000,
        "the generator is out of balance: {n_good} {n_bad}"
    );
}

fn check(
    rng: &mut StdRng,
    fields: Vec<Field>,
    records: &[Vec<u8>],
    context: &str,
) -> (usize, usize) {
    let schema = Arc::new(Schema::new(fields));
    let mut decoder =
        JsonDecoder::new(Arc::clone(&schema), Reading::default()).expect("types are known");
    let text = records.join(&b'\n');
    let (mut start, mut n_records) = (0, 0);
    while start < text.len() {
        let done = decoder.decode(&text[start..], start as u64, rng.random_range(1..10), true);
        start += done.bytes;
        n_records += done.records;
    }
    let decoded = decoder.flush().expect("columns fit the schema");

    let (mut row, mut bad) = (0, decoded.bad.iter());
    for record in records.iter().filter(|r| !r.trim_ascii().is_empty()) {
        n_records -= 1;
        let shown = format!("{context}: {}", record.escape_ascii());
        let value: Option<Value> = serde_json::from_slice(record).ok();
        let cells = value
            .as_ref()
            .and_then(Value::as_object)
            .and_then(|object| {
                schema
                    .fields()
                    .iter()
                    .map(|f| expect(object.get(f.name()), f))
                    .collect::<Option<Vec<_>>>()
            });
        let Some(cells) = cells else {
            let bad = bad.next().unwrap_or_else(|| panic!("accepted: {shown}"));
            let raw = record.strip_suffix(b"\r").unwrap_or(record);
            assert_eq!(bad.raw, raw, "{shown}");
            continue;
        };
        assert!(
            row < decoded.rows.num_rows(),
            "rejected: {shown}: {:?}",
            decoded.bad
        );
        for ((cell, column), field) in cells
            .iter()
            .zip(decoded.rows.columns())
            .zip(schema.fields())
        {
            assert_eq!(
                &found(column, field, row),
                cell,
                "{} in {shown}",
                field.name()
            );
        }
        row += 1;
    }
    assert_eq!((row, n_records), (decoded.rows.num_rows(), 0), "{context}");
    assert_eq!(bad.next(), None, "{context}");
    (row, decoded.bad.len())
}
