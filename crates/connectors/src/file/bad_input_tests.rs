//! Bad input in files of JSON, as a table with a `single_file` or `filesystem` connector meets it: the
//! neighbours of a bad record are intact, and the record is named.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use tempfile::TempDir;
use thalweg_runtime::connector::{
    BadReason, BadRecord, ConnectorError, ConnectorFactory, Read, Source,
};

use crate::Connectors;
use crate::file::compression::Compression;
use crate::testing::{now, source_spec};

const COLUMNS: [(&str, DataType); 3] = [
    ("id", DataType::Int64),
    ("name", DataType::Utf8),
    ("price", DataType::Decimal128(12, 2)),
];

fn source(connector: &str, path: &Path) -> Box<dyn Source> {
    source_with(connector, "json", path, &[])
}

fn source_with(
    connector: &str,
    format: &str,
    path: &Path,
    extra: &[(&str, &str)],
) -> Box<dyn Source> {
    let given = [&[("path", path.to_str().unwrap())], extra].concat();
    let spec = source_spec(connector, Some(format), &COLUMNS, &given);
    Connectors::standard().source(&spec).unwrap()
}

struct Found {
    ids: Vec<i64>,
    prices: Vec<i128>,
    bad: Vec<BadRecord>,
}

/// Everything that the splits give, in the order of the splits.
fn read(connector: &str, path: &Path, parallelism: usize) -> Found {
    read_all(source(connector, path).as_ref(), parallelism)
}

fn read_all(source: &dyn Source, parallelism: usize) -> Found {
    let mut found = Found {
        ids: Vec::new(),
        prices: Vec::new(),
        bad: Vec::new(),
    };
    for (subtask, split) in source.splits(parallelism).unwrap().iter().enumerate() {
        let mut reader = source.open(split, None, subtask).unwrap();
        while let Read::Records(records) = now(reader.read(1000)).unwrap() {
            let column = |i: usize| records.rows.column(i).clone();
            found
                .ids
                .extend(column(0).as_primitive::<Int64Type>().values());
            found
                .prices
                .extend(column(2).as_primitive::<Decimal128Type>().values());
            found.bad.extend(records.bad);
        }
    }
    found
}

fn good(id: usize) -> String {
    format!("{{\"id\": {id}, \"name\": \"n{id}\", \"price\": {id}.25}}\n")
}

fn write(dir: &TempDir, name: &str, lines: &[&[u8]]) -> std::path::PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, lines.concat()).unwrap();
    path
}

/// Reads one bad line among good ones and expects them to be whole.
fn one_bad(line: &[u8]) -> BadRecord {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (good(1), good(2));
    let path = write(
        &dir,
        "orders.ndjson",
        &[a.as_bytes(), line, b"\n", b.as_bytes()],
    );
    let found = read("single_file", &path, 1);
    assert_eq!((found.ids, found.prices), (vec![1, 2], vec![125, 225]));
    let [bad] = found.bad.as_slice() else {
        panic!("{:?}", found.bad)
    };
    assert_eq!(bad.raw.as_deref(), Some(line));
    assert_eq!(
        bad.place,
        format!("{}, line 2 (byte {})", path.display(), a.len())
    );
    assert_eq!((bad.offset, bad.partition), (a.len() as i64, 0));
    bad.clone()
}

#[test]
fn broken_json_in_the_middle() {
    for line in [
        &b"{\"id\": 7, \"na"[..],
        b"not json",
        b"{\"id\": 7}}",
        b"[1]",
        b"{'id': 7}",
    ] {
        assert_eq!(
            one_bad(line).reason,
            BadReason::Malformed,
            "{}",
            line.escape_ascii()
        );
    }
}

#[test]
fn wrong_types_and_numbers_that_do_not_fit() {
    for (line, reason) in [
        (&b"{\"id\": \"seven\", \"price\": 1}"[..], BadReason::Type),
        (b"{\"id\": 68.32}", BadReason::Type),
        (b"{\"id\": 7, \"name\": {}, \"price\": []}", BadReason::Type),
        (b"{\"id\": 9223372036854775808}", BadReason::Range),
        (b"{\"id\": 7, \"price\": 99999999999.99}", BadReason::Range),
    ] {
        let bad = one_bad(line);
        assert_eq!(
            bad.reason,
            reason,
            "{}: {}",
            line.escape_ascii(),
            bad.message
        );
        assert!(bad.message.starts_with("column \""), "{}", bad.message);
    }
}

#[test]
fn invalid_utf8() {
    assert_eq!(
        one_bad(b"{\"id\": 7, \"name\": \"\xff\xfe\"}").reason,
        BadReason::Encoding
    );
}

#[test]
fn a_line_of_ten_megabytes_is_a_record_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let huge = format!(
        "{{\"id\": 3, \"name\": \"{}\", \"price\": 3.25}}\n",
        "h".repeat(10 << 20)
    );
    let path = write(
        &dir,
        "orders.ndjson",
        &[good(1).as_bytes(), huge.as_bytes(), good(2).as_bytes()],
    );
    for parallelism in [1, 4] {
        let mut found = read("single_file", &path, parallelism);
        found.ids.sort();
        assert_eq!((found.ids, found.bad.len()), (vec![1, 2, 3], 0));
    }
}

#[test]
fn a_file_that_ends_in_the_middle_of_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(
        &dir,
        "orders.ndjson",
        &[good(1).as_bytes(), b"{\"id\": 2, \"na"],
    );
    let found = read("single_file", &path, 1);
    assert_eq!(
        (found.ids, found.bad[0].reason),
        (vec![1], BadReason::Malformed)
    );
    assert!(found.bad[0].place.contains("line 2"));
}

#[test]
fn an_empty_file_and_one_of_blank_lines() {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("a.ndjson", &b""[..]),
        ("b.ndjson", b"\n\r\n  \n"),
        ("c.ndjson.gz", b""),
    ] {
        let path = write(&dir, name, &[content]);
        let found = read("single_file", &path, 4);
        assert_eq!((found.ids.len(), found.bad.len()), (0, 0), "{name}");
    }
}

#[test]
fn every_record_comes_once_at_any_parallelism_with_bad_ones_among_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("orders.ndjson");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    for id in 0..100_000 {
        file.write_all(
            if id % 1000 == 999 {
                b"{broken\n".to_vec()
            } else {
                good(id).into_bytes()
            }
            .as_slice(),
        )
        .unwrap();
    }
    drop(file.into_inner().unwrap());
    assert_eq!(
        source("single_file", &path).total_bytes(),
        Some(fs::metadata(&path).unwrap().len())
    );
    for parallelism in [1, 2, 3] {
        assert_eq!(
            source("single_file", &path)
                .splits(parallelism)
                .unwrap()
                .len(),
            parallelism
        );
        let mut found = read("single_file", &path, parallelism);
        found.ids.sort();
        assert_eq!(
            found.ids,
            (0..100_000)
                .filter(|id| id % 1000 != 999)
                .collect::<Vec<_>>()
        );
        found.bad.sort_by_key(|b| b.offset);
        let lines: Vec<_> = found
            .bad
            .iter()
            .map(|b| b.place.split([' ', '(']).nth(2).unwrap().to_string())
            .collect();
        assert_eq!(
            lines,
            (1..=100)
                .map(|n| (n * 1000).to_string())
                .collect::<Vec<_>>()
        );
    }
}

#[test]
fn many_files_of_several_compressions_are_one_table() {
    let dir = tempfile::tempdir().unwrap();
    for (id, compression) in [Compression::None, Compression::Gzip, Compression::Zstd]
        .into_iter()
        .enumerate()
    {
        let path = dir
            .path()
            .join(format!("{id}.ndjson{}", compression.extension()));
        let mut output = compression.writer(fs::File::create(path).unwrap()).unwrap();
        output.write_all(good(id).as_bytes()).unwrap();
        output.finish().unwrap();
    }
    write(&dir, "_SUCCESS", &[b"not data"]);
    assert_eq!(source("filesystem", dir.path()).splits(2).unwrap().len(), 3);
    assert_eq!(read("filesystem", dir.path(), 2).ids, [0, 1, 2]);
    assert_eq!(read("filesystem", &dir.path().join("*.gz"), 2).ids, [1]);
}

#[test]
fn what_cannot_be_read_is_an_error_before_the_job_begins() {
    let dir = tempfile::tempdir().unwrap();
    let splits = |connector, path: &Path| source(connector, path).splits(2).unwrap_err();
    let missing = splits("single_file", &dir.path().join("none.ndjson"));
    assert!(
        missing
            .to_string()
            .ends_with("none.ndjson\" does not exist"),
        "{missing}"
    );
    let directory = splits("single_file", dir.path());
    assert!(
        directory.to_string().ends_with("is a directory"),
        "{directory}"
    );
    let nothing = splits("filesystem", &dir.path().join("*.ndjson"));
    assert!(
        nothing.to_string().starts_with("no file matches"),
        "{nothing}"
    );

    let path = write(&dir, "secret.ndjson", &[b"{}"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // Who may read everything meets no such error.
    if fs::File::open(&path).is_err() {
        let denied = splits("single_file", &path);
        assert!(
            matches!(&denied, ConnectorError::Io { what, .. } if what.contains("secret.ndjson")),
            "{denied}"
        );
    }
}

/// Lines of CSV with their header; every one about 50 bytes.
fn csv(ids: std::ops::Range<usize>) -> String {
    let line = |id| format!("{id},\"name {id:030}\",{id}.25\n");
    ids.map(line)
        .fold("id,name,price\n".to_string(), |text, line| text + &line)
}

#[test]
fn csv_of_single_lines_is_read_by_several_readers_each_with_the_header() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(
        &dir,
        "orders.csv",
        &[csv(0..80_000).as_bytes(), b"7,\"seven\n", b"8,eight,8.25\n"],
    );
    let source = source_with("single_file", "csv", &path, &[("csv.multiline", "false")]);
    assert_eq!(source.splits(3).unwrap().len(), 3);
    let mut found = read_all(source.as_ref(), 3);
    found.ids.sort();
    assert_eq!(found.ids.len(), 80_001);
    let [bad] = found.bad.as_slice() else {
        panic!("{:?}", found.bad)
    };
    assert!(bad.place.contains("line 80002 "), "{}", bad.place);
    assert_eq!(
        (bad.reason, bad.raw.as_deref()),
        (BadReason::Malformed, Some(&b"7,\"seven"[..]))
    );
}

#[test]
fn values_of_csv_may_have_line_ends_and_then_one_reader_reads_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = csv(0..60_000);
    text += "60000,\"two\nlines, and \"\"quotes\"\"\",1.25\n60001,last,2.25";
    let path = write(&dir, "orders.csv", &[text.as_bytes()]);
    let source = source_with("single_file", "csv", &path, &[]);
    assert_eq!(source.splits(3).unwrap().len(), 1);
    let found = read_all(source.as_ref(), 3);
    assert_eq!((found.ids.len(), found.bad.len()), (60_002, 0));
    assert_eq!(found.prices[60_000..], [125, 225]);
}

#[test]
fn a_quote_that_is_never_closed_costs_its_line_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = "id,name,price\n".to_string();
    for id in 0..1000 {
        text += &if id == 300 {
            format!("{id},\"n,1.25\n")
        } else {
            format!("{id},n,1.25\n")
        };
    }
    let path = write(&dir, "orders.csv", &[text.as_bytes()]);
    for limit in ["1 KiB", "64 MiB"] {
        let source = source_with("single_file", "csv", &path, &[("max_record_bytes", limit)]);
        let found = read_all(source.as_ref(), 1);
        assert_eq!(
            found.ids,
            (0..1000).filter(|id| *id != 300).collect::<Vec<_>>(),
            "{limit}"
        );
        let [bad] = found.bad.as_slice() else {
            panic!("{:?}", found.bad)
        };
        assert!(bad.place.contains("line 302 "), "{}", bad.place);
        assert_eq!(bad.raw.as_deref(), Some(&b"300,\"n,1.25"[..]));
    }
}

#[test]
fn a_header_without_the_columns_is_an_error_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(&dir, "orders.csv", &[b"id,price\n1,2\n"]);
    let source = source_with("single_file", "csv", &path, &[]);
    let error = source
        .open(&source.splits(1).unwrap()[0], None, 0)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.starts_with("file \"") && error.contains("the header has no \"name\""),
        "{error}"
    );
}
