use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, ListArray,
    StringArray, TimestampNanosecondArray,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use thalweg_runtime::connector::BadReason;

use super::*;
use crate::format::decode::{Decoded, Framing, RecordDecoder};
use crate::format::encode::Encoder;

fn options(given: &[(&str, &str)]) -> Options {
    Options::resolve(
        &given
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect(),
        &[],
    )
}

fn schema(fields: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(
        fields
            .iter()
            .map(|(n, t)| Field::new(*n, t.clone(), true))
            .collect::<Vec<_>>(),
    ))
}

fn people() -> SchemaRef {
    schema(&[("id", DataType::Int64), ("name", DataType::Utf8)])
}

fn decode(given: &[(&str, &str)], schema: &SchemaRef, text: impl AsRef<[u8]>) -> Decoded {
    let text = text.as_ref();
    let mut decoder = decoder(&options(given), schema, schema.clone()).unwrap();
    let head = decoder.head(text, true).unwrap().unwrap();
    let done = decoder.decode(&text[head..], head as u64, usize::MAX, true);
    assert_eq!(head + done.bytes, text.len());
    let decoded = decoder.flush().unwrap();
    assert_eq!(done.records, decoded.origins.len() + decoded.bad.len());
    decoded
}

fn rows(decoded: &Decoded) -> Vec<(Option<i64>, Option<String>)> {
    let ids = decoded.rows.column(0).as_primitive::<Int64Type>().iter();
    let names = decoded
        .rows
        .column(1)
        .as_string::<i32>()
        .iter()
        .map(|n| n.map(str::to_string));
    ids.zip(names).collect()
}

fn row(id: i64, name: &str) -> (Option<i64>, Option<String>) {
    (Some(id), Some(name.to_string()))
}

#[test]
fn columns_are_found_by_the_header() {
    let decoded = decode(
        &[],
        &people(),
        "\u{feff}name,other, id \r\nann,x,1\r\n\r\nbob,y,2",
    );
    assert_eq!(rows(&decoded), [row(1, "ann"), row(2, "bob")]);
    assert_eq!(decoded.origins, [20, 31]);
}

#[test]
fn without_a_header_columns_are_found_by_their_place_in_the_declaration() {
    let given = &[("csv.header", "false"), ("csv.delimiter", "\\t")];
    let read = schema(&[("name", DataType::Utf8)]);
    let mut decoder = decoder(&options(given), &people(), read).unwrap();
    assert_eq!(decoder.head(b"1\tann\n", false).unwrap(), Some(0));
    decoder.decode(b"1\tann\n2\tbob,\n3\n", 0, 9, true);
    let decoded = decoder.flush().unwrap();
    assert_eq!(
        decoded
            .rows
            .column(0)
            .as_string::<i32>()
            .iter()
            .flatten()
            .collect::<Vec<_>>(),
        ["ann", "bob,"]
    );
    assert_eq!(decoded.bad[0].message, "1 fields where 2 are expected");
}

#[test]
fn a_header_without_a_column_is_refused() {
    let mut decoder = decoder(&options(&[]), &people(), people()).unwrap();
    let error = decoder.head(b"id,Name\n", true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the header has no \"name\", but \"id\", \"Name\""
    );
    let error = decoder.head(b"id,name,id\n", true).unwrap_err();
    assert_eq!(error.to_string(), "the header has \"id\" more than once");
}

#[test]
fn a_header_is_asked_for_until_it_is_whole() {
    let mut decoder = decoder(&options(&[]), &people(), people()).unwrap();
    assert!(decoder.needs_head());
    for part in ["", "id,na", "id,name", "\"id\"", "\"id\",\"na\nme"] {
        assert_eq!(
            decoder.head(part.as_bytes(), false).unwrap(),
            None,
            "{part}"
        );
    }
    assert_eq!(decoder.head(b"id,name\n1", false).unwrap(), Some(8));
    assert_eq!(decoder.head(b"id,name", true).unwrap(), Some(7));
    assert_eq!(decoder.head(b"", true).unwrap(), Some(0));
}

#[test]
fn quotes_hold_delimiters_quotes_and_line_ends() {
    let decoded = decode(
        &[],
        &people(),
        "id,name\n1,\"a,\"\"b\"\"\r\nc\"\n\"2\",\"\"\r\n3,x\"y\n4,",
    );
    let last = (Some(4), None);
    assert_eq!(
        rows(&decoded),
        [row(1, "a,\"b\"\r\nc"), row(2, ""), row(3, "x\"y"), last]
    );
}

#[test]
fn null_is_a_text_without_quotes() {
    let given = &[("csv.null", "NA")];
    let decoded = decode(given, &people(), "id,name\nNA,NA\n1,\"NA\"\n2,\n,x\n");
    assert_eq!(rows(&decoded), [(None, None), row(1, "NA"), row(2, "")]);
    assert_eq!(
        decoded.bad[0].message,
        "column \"id\": \"\" is not a whole number"
    );
}

#[test]
fn broken_records_leave_their_neighbours_intact() {
    for (bad, reason) in [
        (&b"7"[..], BadReason::Malformed),
        (b"7,x,y", BadReason::Malformed),
        (b"7,\"x\"y", BadReason::Malformed),
        (b"7.5,x", BadReason::Type),
        (b"x,7", BadReason::Type),
        (b"99999999999999999999,x", BadReason::Range),
        (b"7,\xff", BadReason::Encoding),
    ] {
        for place in 0..=2 {
            let mut lines: Vec<&[u8]> = vec![b"1,one", b"2,two"];
            lines.insert(place, bad);
            let text = [b"id,name\n".to_vec(), lines.join(&b'\n')].concat();
            let decoded = decode(&[], &people(), text);
            assert_eq!(
                rows(&decoded),
                [row(1, "one"), row(2, "two")],
                "{}",
                bad.escape_ascii()
            );
            assert_eq!(
                (decoded.bad[0].reason, decoded.bad[0].raw.as_slice()),
                (reason, bad)
            );
            assert_eq!(decoded.bad[0].origin, 8 + 6 * place as u64);
        }
    }
}

#[test]
fn an_open_quote_takes_its_line_with_it() {
    let decoded = decode(&[], &people(), "id,name\n1,\"open\n2,two\n");
    assert_eq!(rows(&decoded), [row(2, "two")]);
    assert_eq!(
        decoded.bad[0].message,
        "the record ends inside a value in quotes"
    );
    let single = &[("csv.multiline", "false")];
    let decoded = decode(single, &people(), "id,name\n1,\"open\n2,\"two\"\n");
    assert_eq!(rows(&decoded), [row(2, "two")]);
    assert!(decoded.bad[0].message.contains("csv.multiline"));
}

#[test]
fn framing_follows_from_the_options() {
    let framing = |given: &[(&str, &str)]| {
        decoder(&options(given), &people(), people())
            .unwrap()
            .framing()
    };
    assert_eq!(framing(&[]), Framing::Whole);
    assert_eq!(framing(&[("csv.multiline", "false")]), Framing::Head);
    assert_eq!(
        framing(&[("csv.multiline", "false"), ("csv.header", "false")]),
        Framing::Lines
    );
}

#[test]
fn blocks_may_end_anywhere() {
    let text = "id,name\n".to_string()
        + &(0..50)
            .map(|i| format!("{i},\"a\"\"{i}\nb\"\r\n\n{i},\"x\"y\n"))
            .collect::<String>();
    let expected = decode(&[], &people(), &text);
    assert_eq!((expected.rows.num_rows(), expected.bad.len()), (50, 50));
    for (step, max_records) in [(1, 1), (5, 2), (17, 100)] {
        let mut decoder = decoder(&options(&[]), &people(), people()).unwrap();
        let mut start = decoder.head(text.as_bytes(), true).unwrap().unwrap();
        let mut end = start;
        while start < text.len() {
            let last = end == text.len();
            let done = decoder.decode(
                &text.as_bytes()[start..end],
                start as u64,
                max_records,
                last,
            );
            start += done.bytes;
            if done.records < max_records {
                end = (end + step).min(text.len());
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
fn single_messages() {
    let given = &[("csv.header", "false")];
    let mut decoder = decoder(&options(given), &people(), people()).unwrap();
    assert!(decoder.decode_one(b"1,\"a\nb\"", 5) && decoder.decode_one(b"2,b\n", 6));
    assert!(decoder.decode_one(b"3,c\n4,d", 7) && decoder.decode_one(b"", 8));
    let decoded = decoder.flush().unwrap();
    assert_eq!(
        (rows(&decoded), decoded.origins.as_slice()),
        (vec![row(1, "a\nb"), row(2, "b")], &[5, 6][..])
    );
    assert_eq!(
        decoded.bad.iter().map(|b| b.origin).collect::<Vec<_>>(),
        [7, 8]
    );
}

#[test]
fn values_of_every_kind_go_there_and_back() {
    let nanos = [Some(1_704_103_215_020_000_000), None, Some(0)];
    let amounts =
        Decimal128Array::from(vec![Some(5000), None, Some(-1)]).with_precision_and_scale(10, 2);
    let lists = vec![Some(vec![Some(1), None]), None, Some(vec![])];
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "i",
            Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(7)])),
        ),
        (
            "x",
            Arc::new(Float64Array::from(vec![
                Some(f64::INFINITY),
                Some(-0.5),
                None,
            ])),
        ),
        (
            "ok",
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
        ),
        (
            "text, quoted",
            Arc::new(StringArray::from(vec![
                Some(" a,\"b\"\r\nü "),
                Some(""),
                None,
            ])),
        ),
        (
            "ts",
            Arc::new(TimestampNanosecondArray::from(nanos.to_vec())),
        ),
        ("amount", Arc::new(amounts.unwrap())),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
        ),
    ];
    let rows =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
            .unwrap();
    for given in [
        &[][..],
        &[
            ("csv.null", "NULL"),
            ("csv.delimiter", ";"),
            ("csv.quote", "'"),
        ],
    ] {
        let mut encoder = encoder(&options(given), &rows.schema()).unwrap();
        let mut out = Vec::new();
        encoder.begin(&mut out).unwrap();
        encoder.rows(&rows, &mut out).unwrap();
        encoder.finish(&mut out).unwrap();
        let decoded = decode(given, &rows.schema(), &out);
        assert_eq!(decoded.bad, []);
        assert_eq!(decoded.rows, rows, "{}", String::from_utf8_lossy(&out));
    }
}

#[test]
fn records_as_other_programs_write_them() {
    let mut encoder = encoder(&options(&[]), &people()).unwrap();
    let names: ArrayRef = Arc::new(StringArray::from(vec![
        Some("ann"),
        Some(""),
        None,
        Some("a,b"),
    ]));
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(4)]));
    let mut out = Vec::new();
    encoder.begin(&mut out).unwrap();
    encoder
        .rows(
            &RecordBatch::try_new(people(), vec![ids, names]).unwrap(),
            &mut out,
        )
        .unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "id,name\n1,ann\n2,\"\"\n,\n4,\"a,b\"\n"
    );
}

#[test]
fn a_null_that_would_be_a_blank_line_is_refused() {
    let schema = schema(&[("x", DataType::Utf8)]);
    let rows = RecordBatch::new_empty(schema.clone());
    let nulls: ArrayRef = Arc::new(StringArray::new_null(1));
    let rows = RecordBatch::try_new(rows.schema(), vec![nulls]).unwrap();
    let mut out = Vec::new();
    assert!(
        encoder(&options(&[]), &schema)
            .unwrap()
            .rows(&rows, &mut out)
            .is_err()
    );
    let with_text = options(&[("csv.null", "NULL")]);
    out.clear();
    encoder(&with_text, &schema)
        .unwrap()
        .rows(&rows, &mut out)
        .unwrap();
    assert_eq!(out, b"NULL\n");
}

#[test]
fn numbers_and_truth_are_read_as_people_write_them() {
    let fields = [
        ("i", DataType::Int64),
        ("d", DataType::Decimal128(6, 2)),
        ("b", DataType::Boolean),
        ("t", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ];
    let schema = schema(&fields);
    let decoded = decode(
        &[],
        &schema,
        "i,d,b,t\n 007 ,+.5,TRUE,2024-01-01 10:00:15\n-1,1e2,f,1704103215\n1,1,1,1\n",
    );
    assert_eq!(
        decoded
            .rows
            .column(0)
            .as_primitive::<Int64Type>()
            .values()
            .as_ref(),
        [7, -1]
    );
    assert_eq!(
        decoded
            .rows
            .column(2)
            .as_boolean()
            .values()
            .iter()
            .collect::<Vec<_>>(),
        [true, false]
    );
    assert_eq!(
        decoded.bad[0].message,
        "column \"b\": \"1\" is not true or false"
    );
    assert_eq!(decoded.rows.column(3).len(), 2);
}

#[test]
fn options_that_cannot_be_are_refused() {
    let refused = |given: &[(&str, &str)]| Dialect::parse(&options(given)).unwrap_err().message;
    assert_eq!(
        refused(&[("csv.delimiter", ";;")]),
        "csv.delimiter must be one ASCII character, or '\\t'"
    );
    assert_eq!(
        refused(&[("csv.delimiter", "\n")]),
        "csv.delimiter cannot be a line end"
    );
    assert_eq!(
        refused(&[("csv.quote", ",")]),
        "csv.quote is the delimiter as well"
    );
    assert_eq!(
        refused(&[("csv.null", "a,b")]),
        "csv.null has a delimiter, a quote or a line end"
    );
}
