//! Every record exactly once and in order, wherever a file is cut, by stripes, reads or restarts.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::NamedTempFile;
use thalweg_dataflow::table::{MetadataColumn, SourceSpec};
use thalweg_runtime::connector::{BadReason, BadRecord, Read, Records, SplitReader};

use super::{Opening, RecordReader};
use crate::file::compression::{Compression, WORDS};
use crate::file::place::Place;
use crate::file::split::Position;
use crate::file::stripe::Stripes;
use crate::format;
use crate::testing::{now, options, source_spec};

const LIMIT: usize = 1 << 20;

fn spec() -> Arc<SourceSpec> {
    source_spec(
        "single_file",
        Some("raw_string"),
        &[("value", DataType::Utf8)],
        &[],
    )
}

fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn compressed(kind: Compression, bytes: &[u8]) -> Vec<u8> {
    let file = NamedTempFile::new().unwrap();
    let mut output = kind.writer(file.reopen().unwrap()).unwrap();
    output.write_all(bytes).unwrap();
    output.finish().unwrap();
    std::fs::read(file.path()).unwrap()
}

/// How a file is read.
#[derive(Clone)]
struct Setup {
    spec: Arc<SourceSpec>,
    compression: Compression,
    stripes: Stripes,
    limit: usize,
}

impl Setup {
    fn whole() -> Self {
        let stripes = Stripes {
            index: 0,
            of: 1,
            size: 64,
        };
        Self {
            spec: spec(),
            compression: Compression::None,
            stripes,
            limit: LIMIT,
        }
    }

    fn open(&self, path: &Path, position: Position) -> RecordReader {
        let format = self.spec.format.as_deref().unwrap();
        let opening = Opening {
            place: Arc::new(Place::new(
                path.to_path_buf(),
                "f.txt".into(),
                self.compression,
            )),
            file: std::fs::File::open(path).unwrap(),
            compression: self.compression,
            stripes: self.stripes,
            decoder: format::decoder(
                format,
                &options(&[]),
                &self.spec.declared,
                self.spec.physical.clone(),
            )
            .unwrap(),
            max_record_bytes: self.limit,
        };
        RecordReader::open(opening, self.spec.clone(), position).unwrap()
    }

    fn read_all(&self, path: &Path) -> (Vec<String>, Vec<BadRecord>) {
        let mut reader = self.open(path, Position::default());
        let (mut values, mut bad) = (Vec::new(), Vec::new());
        while let Some(records) = next(&mut reader, usize::MAX) {
            values.extend(texts(&records));
            bad.extend(records.bad);
        }
        (values, bad)
    }
}

fn next(reader: &mut RecordReader, max_rows: usize) -> Option<Records> {
    match now(reader.read(max_rows)).unwrap() {
        Read::Records(records) => Some(records),
        Read::End => None,
        Read::Lost(lost) => panic!("{}", lost.message),
    }
}

fn texts(records: &Records) -> Vec<String> {
    records
        .rows
        .column(0)
        .as_string::<i32>()
        .iter()
        .flatten()
        .map(str::to_string)
        .collect()
}

/// What an editor would call the lines of a text.
fn lines(text: &[u8]) -> Vec<String> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let line = |l: &[u8]| String::from_utf8(l.strip_suffix(b"\r").unwrap_or(l).to_vec()).unwrap();
    text.split(|b| *b == b'\n').map(line).collect()
}

/// Reads with random cuts, going on from the offset with a new reader at some of them.
fn read_with_cuts(setup: &Setup, path: &Path, rng: &mut StdRng) -> Vec<String> {
    let mut reader = setup.open(path, Position::default());
    let mut values = Vec::new();
    loop {
        let max_rows = rng.random_range(1..20);
        let Some(records) = next(&mut reader, max_rows) else {
            break;
        };
        assert!(records.rows.num_rows() <= max_rows && records.bad.is_empty());
        values.extend(texts(&records));
        if rng.random_bool(0.3) {
            let position = Position::decode(Some(&reader.offset())).unwrap();
            reader = setup.open(path, position);
        }
    }
    assert!(
        next(
            &mut setup.open(path, Position::decode(Some(&reader.offset())).unwrap()),
            1
        )
        .is_none()
    );
    values
}

/// Lines of all lengths around that of a stripe: empty ones, some with CRLF, some that end just at a
/// stripe's end, with and without a last line end or a byte order mark.
fn random_text(rng: &mut StdRng, stripe: usize) -> Vec<u8> {
    let mut text = Vec::new();
    if rng.random_bool(0.2) {
        text.extend(b"\xef\xbb\xbf");
    }
    for number in 0..rng.random_range(0..60) {
        let to_boundary = (stripe - text.len() % stripe) as i64;
        let len = match rng.random_range(0..6) {
            0 => 0,
            1 => to_boundary + rng.random_range(-2..=1),
            2 => rng.random_range(0..stripe as i64 * 4),
            _ => rng.random_range(0..12),
        };
        let line = format!("{number}:");
        text.extend(
            line.bytes()
                .chain(std::iter::repeat(b'x'))
                .take(len.max(0) as usize),
        );
        text.extend(if rng.random_bool(0.2) {
            &b"\r\n"[..]
        } else {
            &b"\n"[..]
        });
    }
    if rng.random_bool(0.3) {
        text.pop_if(|b| *b == b'\n');
    }
    text
}

#[test]
fn every_line_comes_once_whatever_the_stripes_cuts_and_restarts() {
    for seed in 0..500 {
        let mut rng = StdRng::seed_from_u64(seed);
        let size = rng.random_range(1..100);
        let text = random_text(&mut rng, size as usize);
        let file = file(&text);
        let of = rng.random_range(1..6);
        let parts = (0..of).map(|index| {
            let setup = Setup {
                stripes: Stripes { index, of, size },
                ..Setup::whole()
            };
            read_with_cuts(&setup, file.path(), &mut rng)
        });
        let parts: Vec<_> = parts.collect();
        let expected = lines(&text);
        for part in &parts {
            assert!(
                is_in_order(part, &expected),
                "seed {seed}: {part:?} is not in order"
            );
        }
        let (mut found, mut wanted) = (parts.concat(), expected);
        found.sort();
        wanted.sort();
        assert_eq!(
            found,
            wanted,
            "seed {seed}: {of} readers, stripes of {size}, {:?}",
            text.escape_ascii().to_string()
        );
    }
}

/// Whether `part` is what is left of `whole` when some of it is taken away.
fn is_in_order(part: &[String], whole: &[String]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|value| rest.any(|w| w == value))
}

#[test]
fn compressed_files_give_the_same_lines_from_any_offset() {
    for seed in 0..60 {
        let mut rng = StdRng::seed_from_u64(seed);
        let text = random_text(&mut rng, 50);
        for kind in WORDS.iter().filter_map(|w| Compression::parse(w)) {
            let file = file(&compressed(kind, &text));
            let setup = Setup {
                compression: kind,
                ..Setup::whole()
            };
            assert_eq!(
                read_with_cuts(&setup, file.path(), &mut rng),
                lines(&text),
                "seed {seed}, {kind:?}"
            );
        }
    }
}

#[test]
fn real_stripes_and_a_line_of_ten_megabytes() {
    let size = crate::file::stripe::STRIPE;
    let mut text = Vec::new();
    for number in 0..30_000 {
        writeln!(text, "{number} {}", "y".repeat(number % 200)).unwrap();
        if number == 10_000 {
            text.extend(vec![b'z'; 10 << 20]);
            text.push(b'\n');
        }
    }
    let file = file(&text);
    for of in [1, 2, 3, 7] {
        let mut found = Vec::new();
        for index in 0..of {
            let setup = Setup {
                stripes: Stripes { index, of, size },
                limit: 64 << 20,
                ..Setup::whole()
            };
            let (values, bad) = setup.read_all(file.path());
            assert!(bad.is_empty());
            found.extend(values);
        }
        let mut wanted = lines(&text);
        found.sort();
        wanted.sort();
        assert!(found == wanted, "{of} readers");
    }
}

#[test]
fn a_record_that_is_too_large_is_rejected_alone_and_takes_no_memory() {
    let huge = vec![b'h'; 5 << 20];
    let text = [
        b"before\n",
        huge.as_slice(),
        b"\nafter\n",
        huge.as_slice(),
        b"\n",
        huge.as_slice(),
    ]
    .concat();
    let file = file(&text);
    let (values, bad) = Setup {
        limit: 1 << 20,
        ..Setup::whole()
    }
    .read_all(file.path());
    assert_eq!(values, ["before", "after"]);
    let places: Vec<_> = bad.iter().map(|b| (b.reason, b.place.as_str())).collect();
    assert_eq!(
        places,
        [
            (BadReason::TooLarge, "f.txt, line 2 (byte 7)"),
            (BadReason::TooLarge, "f.txt, line 4 (byte 5242894)"),
            (BadReason::TooLarge, "f.txt, line 5 (byte 10485775)"),
        ]
    );
    assert_eq!(
        bad[0].message,
        "the record is larger than max_record_bytes (1048576 bytes)"
    );
}

#[test]
fn whether_a_record_is_too_large_does_not_depend_on_where_it_lies() {
    let limit = 2000;
    for before in 0..30 {
        let fits = "f".repeat(limit - 1);
        let too_large = "t".repeat(limit);
        let text = format!("{}\n{fits}\n{too_large}\nend\n", "b".repeat(before * 97));
        let file = file(text.as_bytes());
        let (values, bad) = Setup {
            limit,
            ..Setup::whole()
        }
        .read_all(file.path());
        let expected = if before * 97 + 1 > limit {
            vec![fits, "end".into()]
        } else {
            vec!["b".repeat(before * 97), fits, "end".into()]
        };
        assert_eq!(values, expected, "{before}");
        assert!(bad.iter().all(|b| b.reason == BadReason::TooLarge));
    }
}

#[test]
fn invalid_utf8_is_rejected_with_its_line_and_neighbours_stay() {
    let mut text = b"a\n".repeat(40_000);
    text.extend(b"bad \xff\xfe line\r\nz\n");
    let file = file(&text);
    let (values, bad) = Setup::whole().read_all(file.path());
    assert_eq!(
        (values.len(), values.last().unwrap().as_str()),
        (40_001, "z")
    );
    let [bad] = bad.as_slice() else {
        panic!("{bad:?}")
    };
    assert_eq!(
        (bad.reason, bad.place.as_str()),
        (BadReason::Encoding, "f.txt, line 40001 (byte 80000)")
    );
    assert_eq!(
        (bad.raw.as_deref(), bad.offset),
        (Some(&b"bad \xff\xfe line"[..]), 80_000)
    );
}

#[test]
fn rows_rejected_later_are_found_again_in_the_file() {
    let text = b"one\ntwo\r\nthree\n";
    for kind in [Compression::None, Compression::Gzip] {
        let file = file(&compressed(kind, text));
        let mut reader = Setup {
            compression: kind,
            ..Setup::whole()
        }
        .open(file.path(), Position::default());
        let records = next(&mut reader, 10).unwrap();
        let bad = records
            .origins
            .bad_record(1, BadReason::EventTime, "none".to_string());
        assert!(
            bad.place.starts_with("f.txt, line 2 (byte 4"),
            "{}",
            bad.place
        );
        assert_eq!(bad.raw.as_deref(), Some(&b"two"[..]));
    }
}

#[test]
fn a_stream_that_is_cut_off_gives_what_precedes_the_cut_and_then_a_bad_record() {
    let mut text = Vec::new();
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..100_000 {
        writeln!(text, "{:016x}", rng.random::<u64>()).unwrap();
    }
    let wanted = lines(&text);
    for kind in WORDS.iter().filter_map(|w| Compression::parse(w)).skip(1) {
        let whole = compressed(kind, &text);
        let file = file(&whole[..whole.len() / 2]);
        let setup = Setup {
            compression: kind,
            ..Setup::whole()
        };
        let (values, bad) = setup.read_all(file.path());
        assert!(
            values.len() > 10_000 && wanted.starts_with(&values),
            "{kind:?}: {} lines",
            values.len()
        );
        let [bad] = bad.as_slice() else {
            panic!("{kind:?}: {bad:?}")
        };
        assert_eq!(bad.reason, BadReason::Malformed);
        assert_eq!(
            bad.message,
            format!("the {} stream is cut off", kind.word())
        );
        assert_eq!(bad.offset, values.len() as i64 * 17);
        let line = values.len() + 1;
        assert!(
            bad.place.starts_with(&format!("f.txt, line {line} (byte ")),
            "{}",
            bad.place
        );
    }
}

#[test]
fn a_cut_is_reported_once_also_after_a_restart() {
    let whole = compressed(Compression::Gzip, b"one\ntwo\n");
    let file = file(&whole[..whole.len() - 4]);
    let setup = Setup {
        compression: Compression::Gzip,
        ..Setup::whole()
    };
    let mut reader = setup.open(file.path(), Position::default());
    let mut n_bad = 0;
    while let Some(records) = next(&mut reader, 1) {
        n_bad += records.bad.len();
    }
    assert_eq!(n_bad, 1);
    let position = Position::decode(Some(&reader.offset())).unwrap();
    assert!(next(&mut setup.open(file.path(), position), 1).is_none());
}

#[test]
fn an_empty_file_has_no_records() {
    for bytes in [&b""[..], b"\xef\xbb\xbf"] {
        let file = file(bytes);
        assert_eq!(Setup::whole().read_all(file.path()).0.len(), 0);
        let second = Setup {
            stripes: Stripes {
                index: 1,
                of: 2,
                size: 10,
            },
            ..Setup::whole()
        };
        assert_eq!(second.read_all(file.path()).0.len(), 0);
    }
}

#[test]
fn metadata_names_the_file_and_the_byte() {
    let columns = [("filename", DataType::Utf8), ("offset", DataType::Int64)];
    let metadata = columns.map(|(key, t)| MetadataColumn {
        key: key.to_string(),
        field: Field::new(key, t, true),
    });
    let mut spec = Arc::unwrap_or_clone(spec());
    spec.metadata = metadata.to_vec();
    let file = file(b"one\ntwo\n");
    let setup = Setup {
        spec: Arc::new(spec),
        ..Setup::whole()
    };
    let records = next(&mut setup.open(file.path(), Position::default()), 10).unwrap();
    assert_eq!(records.rows.column(1).as_string::<i32>().value(1), "f.txt");
    assert_eq!(
        records
            .rows
            .column(2)
            .as_primitive::<arrow::datatypes::Int64Type>()
            .values()
            .as_ref(),
        [0, 4]
    );
    assert_eq!(records.n_bytes, 8);
}
