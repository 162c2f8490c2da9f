//! Reads the rows of one file, or of a share of its row groups.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::table::SourceSpec;
use thalweg_runtime::connector::{
    BadReason, BadRecord, BoxFuture, ConnectorError, Offset, Origins, Read, Records, SplitReader,
};

use super::adapt::{Adapter, Misfit};
use crate::file::records::metadata_column;
use crate::file::split::{Part, Position};

const BATCH_ROWS: usize = 8192;

/// A row group that is still to be read.
#[derive(Debug, Clone, Copy)]
struct Group {
    index: usize,
    /// Number in the file of its first row.
    first_row: u64,
    n_rows: u64,
    /// In the file, of the columns that are read.
    n_bytes: u64,
}

/// Reads whole row groups, one column chunk after another, within a poll as files of records are read.
pub struct ParquetReader {
    spec: Arc<SourceSpec>,
    schema: SchemaRef,
    part: Arc<Part>,
    file: File,
    metadata: ArrowReaderMetadata,
    columns: Vec<usize>,
    adapter: Adapter,
    waiting: VecDeque<Group>,
    open: Option<(Group, ParquetRecordBatchReader)>,
    /// Decoded rows that no read has returned yet.
    rest: Option<RecordBatch>,
    /// Number in the file of the next row.
    at: u64,
}

impl ParquetReader {
    /// At `position`. Errors: the file is no Parquet file, or its columns are not those of the table.
    pub fn open(
        part: Part,
        file: File,
        spec: Arc<SourceSpec>,
        position: Position,
    ) -> Result<Self, ConnectorError> {
        let metadata = super::metadata(&part.path, &file)?;
        let (columns, adapter) = Adapter::new(&part.path, metadata.schema(), &spec.physical)?;
        let waiting = groups(&metadata, &columns, &part, position.at);
        Ok(Self {
            schema: spec.record_schema(),
            spec,
            part: Arc::new(part),
            file,
            metadata,
            columns,
            adapter,
            waiting,
            open: None,
            rest: None,
            at: position.at,
        })
    }

    /// Bytes of the row groups that are not opened yet, of the columns that are read.
    pub fn n_bytes_waiting(&self) -> u64 {
        self.waiting.iter().map(|g| g.n_bytes).sum()
    }

    fn read_now(&mut self, max_rows: usize) -> Result<Read, ConnectorError> {
        let Some(rows) = self.next_rows()? else {
            return Ok(Read::End);
        };
        let n_rows = rows.num_rows().min(max_rows.max(1));
        if n_rows < rows.num_rows() {
            self.rest = Some(rows.slice(n_rows, rows.num_rows() - n_rows));
        }
        let first = self.at;
        self.at += n_rows as u64;
        self.records(&rows.slice(0, n_rows), first)
            .map(Read::Records)
    }

    /// Decoded rows from `self.at` on, at least one.
    fn next_rows(&mut self) -> Result<Option<RecordBatch>, ConnectorError> {
        if let Some(rest) = self.rest.take() {
            return Ok(Some(rest));
        }
        loop {
            if let Some((_, reader)) = &mut self.open {
                match reader
                    .next()
                    .transpose()
                    .map_err(|e| damaged(&self.part, self.at, &e))?
                {
                    Some(rows) if rows.num_rows() > 0 => return Ok(Some(rows)),
                    Some(_) => continue,
                    None => self.open = None,
                }
            }
            let Some(group) = self.waiting.pop_front() else {
                return Ok(None);
            };
            self.at = self.at.max(group.first_row);
            self.open = Some((group, self.open_group(group)?));
        }
    }

    fn open_group(&self, group: Group) -> Result<ParquetRecordBatchReader, ConnectorError> {
        let failed = |e| ConnectorError::io(format!("read \"{}\"", self.part.path), e);
        let file = self.file.try_clone().map_err(failed)?;
        let mask =
            ProjectionMask::roots(self.metadata.parquet_schema(), self.columns.iter().copied());
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        builder
            .with_projection(mask)
            .with_row_groups(vec![group.index])
            .with_offset((self.at - group.first_row) as usize)
            .with_batch_size(BATCH_ROWS)
            .build()
            .map_err(|e| damaged(&self.part, self.at, &e))
    }

    /// The rows from number `first` on as the table has them.
    fn records(&self, rows: &RecordBatch, first: u64) -> Result<Records, ConnectorError> {
        let (columns, misfits) = self.adapter.adapt(rows)?;
        let n_rows = rows.num_rows();
        let keep = (!misfits.is_empty()).then(|| keep(n_rows, &misfits));
        let numbers: Vec<u64> = match &keep {
            Some(keep) => (0..n_rows)
                .filter(|&row| keep.value(row))
                .map(|row| first + row as u64)
                .collect(),
            None => (first..first + n_rows as u64).collect(),
        };
        let filtered = |column: ArrayRef| match &keep {
            Some(keep) => compute::filter(&column, keep),
            None => Ok(column),
        };
        let mut columns = columns
            .into_iter()
            .map(filtered)
            .collect::<Result<Vec<_>, _>>()?;
        for column in &self.spec.metadata {
            columns.push(metadata_column(column, &self.part.path, &numbers)?);
        }
        let bad = |m: Misfit| bad_record(&self.part, first + m.row as u64, m.reason, m.message);
        Ok(Records {
            rows: record_batch(self.schema.clone(), columns, numbers.len())?,
            times: None,
            marks: None,
            bad: misfits.into_iter().map(bad).collect(),
            origins: Arc::new(Numbers {
                part: self.part.clone(),
                numbers,
            }),
            n_bytes: self.n_bytes(n_rows as u64),
        })
    }

    /// The share of the open row group's bytes that so many rows have.
    fn n_bytes(&self, n_rows: u64) -> u64 {
        self.open
            .as_ref()
            .map_or(0, |(group, _)| group.n_bytes * n_rows / group.n_rows.max(1))
    }
}

/// The row groups of the part that have rows from number `at` on.
fn groups(
    metadata: &ArrowReaderMetadata,
    columns: &[usize],
    part: &Part,
    at: u64,
) -> VecDeque<Group> {
    let schema = metadata.parquet_schema();
    let is_read = |leaf: usize| columns.contains(&schema.get_column_root_idx(leaf));
    let mut first_row = 0;
    let mut groups = VecDeque::new();
    for (index, group) in metadata.metadata().row_groups().iter().enumerate() {
        let n_rows = group.num_rows().unsigned_abs();
        let is_own = index as u64 % part.of == part.index;
        if is_own && n_rows > 0 && first_row + n_rows > at {
            let read = group
                .columns()
                .iter()
                .enumerate()
                .filter(|(leaf, _)| is_read(*leaf));
            let n_bytes = read.map(|(_, c)| c.compressed_size().unsigned_abs()).sum();
            groups.push_back(Group {
                index,
                first_row,
                n_rows,
                n_bytes,
            });
        }
        first_row += n_rows;
    }
    groups
}

fn keep(n_rows: usize, misfits: &[Misfit]) -> BooleanArray {
    let mut keep = vec![true; n_rows];
    misfits.iter().for_each(|m| keep[m.row] = false);
    keep.into()
}

fn damaged(part: &Part, at: u64, error: &impl std::error::Error) -> ConnectorError {
    ConnectorError::configuration(
        format!("\"{}\" is damaged behind row {}: {error}", part.path, at),
        None,
    )
}

fn bad_record(part: &Part, number: u64, reason: BadReason, message: String) -> BadRecord {
    BadRecord {
        reason,
        message,
        raw: None,
        topic: part.path.as_str().into(),
        partition: part.index as i32,
        offset: number as i64,
        place: format!("{}, row {}", part.path, number + 1),
    }
}

struct Numbers {
    part: Arc<Part>,
    numbers: Vec<u64>,
}

impl Origins for Numbers {
    fn bad_record(&self, row: usize, reason: BadReason, message: String) -> BadRecord {
        bad_record(&self.part, self.numbers[row], reason, message)
    }
}

impl SplitReader for ParquetReader {
    fn read(&mut self, max_rows: usize) -> BoxFuture<'_, Result<Read, ConnectorError>> {
        Box::pin(async move { self.read_now(max_rows) })
    }

    fn offset(&self) -> Offset {
        Position {
            at: self.at,
            is_end: false,
        }
        .encode()
    }

    fn is_caught_up(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{now, numbers, source_spec};
    use arrow::array::AsArray;
    use arrow::datatypes::{DataType, Int64Type};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use std::path::PathBuf;
    use tempfile::TempDir;

    const ROWS: i64 = 10_000;

    /// A file of one column `n` in row groups of 700 rows.
    fn file() -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("n.parquet");
        let rows = numbers(0..ROWS);
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(700))
            .build();
        let mut writer = ArrowWriter::try_new(
            File::create(&path).unwrap(),
            rows.schema(),
            Some(properties),
        )
        .unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        (dir, path)
    }

    fn open(
        path: &std::path::Path,
        index: u64,
        of: u64,
        to: DataType,
        position: Position,
    ) -> Result<ParquetReader, ConnectorError> {
        let spec = source_spec("single_file", Some("parquet"), &[("n", to)], &[]);
        let part = Part {
            index,
            of,
            path: path.to_str().unwrap().to_string(),
        };
        ParquetReader::open(part, File::open(path).unwrap(), spec, position)
    }

    fn next(reader: &mut ParquetReader, max_rows: usize) -> Option<Records> {
        match now(reader.read(max_rows)).unwrap() {
            Read::Records(records) => Some(records),
            Read::End => None,
            Read::Lost(lost) => panic!("{}", lost.message),
        }
    }

    #[test]
    fn every_row_comes_once_whatever_the_parts_cuts_and_restarts() {
        let (_dir, path) = file();
        for of in [1, 2, 5, 20] {
            let mut found = Vec::new();
            for index in 0..of {
                let mut reader =
                    open(&path, index, of, DataType::Int64, Position::default()).unwrap();
                let mut values: Vec<i64> = Vec::new();
                for max_rows in [1, 699, 3, 8192, 250].into_iter().cycle() {
                    let Some(records) = next(&mut reader, max_rows) else {
                        break;
                    };
                    assert!(records.rows.num_rows() <= max_rows);
                    values.extend(records.rows.column(0).as_primitive::<Int64Type>().values());
                    let position = Position::decode(Some(&reader.offset())).unwrap();
                    reader = open(&path, index, of, DataType::Int64, position).unwrap();
                }
                assert!(values.is_sorted());
                found.extend(values);
            }
            found.sort();
            assert_eq!(found, (0..ROWS).collect::<Vec<_>>(), "{of} parts");
        }
    }

    #[test]
    fn rows_that_do_not_fit_are_rejected_alone_and_named() {
        let (_dir, path) = file();
        let mut reader = open(
            &path,
            0,
            1,
            DataType::Int8,
            Position {
                at: 120,
                is_end: false,
            },
        )
        .unwrap();
        let records = next(&mut reader, 10).unwrap();
        assert_eq!(records.rows.num_rows(), 8);
        let (bad, later) = (
            &records.bad[0],
            records
                .origins
                .bad_record(7, BadReason::EventTime, String::new()),
        );
        assert_eq!(
            (bad.place.clone(), bad.offset, bad.reason),
            (
                format!("{}, row 129", path.display()),
                128,
                BadReason::Range
            )
        );
        assert!(later.place.ends_with("row 128"));
        assert_eq!(records.bad.len(), 2);
    }

    #[test]
    fn bytes_of_the_file_are_counted_about_once() {
        let (_dir, path) = file();
        let mut reader = open(&path, 0, 1, DataType::Int64, Position::default()).unwrap();
        let mut n_bytes = 0;
        while let Some(records) = next(&mut reader, 333) {
            n_bytes += records.n_bytes;
        }
        let total = open(&path, 0, 1, DataType::Int64, Position::default())
            .unwrap()
            .n_bytes_waiting();
        assert!(
            n_bytes <= total && n_bytes > total * 9 / 10,
            "{n_bytes} of {total}"
        );
        assert!(total < std::fs::metadata(&path).unwrap().len());
    }

    #[test]
    fn what_is_no_parquet_file_is_named() {
        let (_dir, path) = file();
        let bytes = std::fs::read(&path).unwrap();
        for content in [
            &bytes[..bytes.len() / 2],
            b"",
            b"PAR1",
            b"{\"plain\": \"json\"}",
        ] {
            std::fs::write(&path, content).unwrap();
            let error = open(&path, 0, 1, DataType::Int64, Position::default())
                .err()
                .unwrap()
                .to_string();
            assert!(
                error.contains("n.parquet\" is not a Parquet file, or is cut off"),
                "{error}"
            );
        }
        let mut damaged = bytes.clone();
        damaged[4..200].fill(0xff);
        std::fs::write(&path, damaged).unwrap();
        let mut reader = open(&path, 0, 1, DataType::Int64, Position::default()).unwrap();
        let error = now(reader.read(100)).err().unwrap().to_string();
        assert!(
            error.contains("n.parquet\" is damaged behind row 0"),
            "{error}"
        );
    }
}
