//! What the file sinks write, the file sources read.

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use thalweg_runtime::connector::{ConnectorFactory, Read, SinkInput, SinkWriter};

use crate::Connectors;
use crate::file::config::extension_of;
use crate::testing::{now, numbers, sink_spec, source_spec};

const COLUMNS: [(&str, DataType); 1] = [("n", DataType::Int64)];
const ROWS: i64 = 20_000;

/// Writes the numbers in two epochs, shared out to so many writers.
fn write(connector: &str, format: &str, given: &[(&str, &str)], n_writers: usize) {
    let sink = Connectors::standard()
        .sink(&sink_spec(connector, Some(format), &COLUMNS, given))
        .unwrap();
    assert!(n_writers == 1 || sink.is_parallel());
    let mut writers: Vec<Box<dyn SinkWriter>> =
        (0..n_writers).map(|i| sink.open(i).unwrap()).collect();
    for epoch in 0..2 {
        let n = ROWS / 2;
        for at in (epoch * n..(epoch + 1) * n).step_by(1000) {
            let writer = &mut writers[(at / 1000) as usize % n_writers];
            now(writer.write(SinkInput::Rows(&numbers(at..at + 1000)))).unwrap();
        }
        for writer in &mut writers {
            now(writer.end_epoch(epoch as u64)).unwrap();
        }
    }
    for writer in &mut writers {
        now(writer.finish()).unwrap();
    }
}

fn read(connector: &str, format: &str, given: &[(&str, &str)], parallelism: usize) -> Vec<i64> {
    let source = Connectors::standard()
        .source(&source_spec(connector, Some(format), &COLUMNS, given))
        .unwrap();
    let mut values: Vec<i64> = Vec::new();
    for (subtask, split) in source.splits(parallelism).unwrap().iter().enumerate() {
        let mut reader = source.open(split, None, subtask).unwrap();
        while let Read::Records(records) = now(reader.read(3000)).unwrap() {
            assert!(records.bad.is_empty(), "{:?}", records.bad[0]);
            values.extend(records.rows.column(0).as_primitive::<Int64Type>().values());
        }
    }
    values.sort();
    values
}

#[test]
fn every_format_and_compression_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    for format in ["json", "csv", "parquet"] {
        for compression in ["", ".gz", ".zst", ".bz2", ".xz"] {
            if format == "parquet" && !compression.is_empty() {
                continue;
            }
            let path = dir
                .path()
                .join(format!("n{}{compression}", extension_of(format)));
            let given = [("path", path.to_str().unwrap())];
            write("single_file", format, &given, 1);
            let found = read("single_file", format, &given, 3);
            assert_eq!(found, (0..ROWS).collect::<Vec<_>>(), "{}", path.display());
        }
    }
}

#[test]
fn a_directory_that_several_writers_have_filled_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    for format in ["json", "csv", "parquet"] {
        let path = dir.path().join(format);
        let given = [
            ("path", path.to_str().unwrap()),
            ("rolling_policy.interval", "0"),
        ];
        write("filesystem", format, &given, 3);
        assert_eq!(
            std::fs::read_dir(&path).unwrap().count(),
            6,
            "one file an epoch and writer"
        );
        assert_eq!(
            read("filesystem", format, &given, 2),
            (0..ROWS).collect::<Vec<_>>(),
            "{format}"
        );
    }
}
