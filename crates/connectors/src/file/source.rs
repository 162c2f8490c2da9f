//! The source of both file connectors: which splits there are, and a reader for each.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::Field;
use thalweg_dataflow::options::Outline;
use thalweg_dataflow::table::SourceSpec;
use thalweg_runtime::connector::{
    ConnectorError, LiveSource, Offset, Source, SplitId, SplitReader,
};

use super::compression::Compression;
use super::config::Config;
use super::list::{self, Found};
use super::parquet::{self, ParquetReader};
use super::place::Place;
use super::records::{Opening, RecordReader};
use super::split::{Part, Position};
use super::stripe::{STRIPE, Stripes, n_readers};
use crate::format::{self, RecordDecoder};

/// Finds the files that a path means.
pub type List = fn(&str) -> Result<Vec<Found>, ConnectorError>;

pub struct FileSource {
    spec: Arc<SourceSpec>,
    config: Config,
    list: List,
    /// The splits of a file share the index of its lines.
    places: Mutex<HashMap<String, Arc<Place>>>,
}

impl FileSource {
    pub fn new(spec: Arc<SourceSpec>, list: List) -> Result<Self, ConnectorError> {
        let config = Config::parse(&spec.options, spec.format.as_deref())
            .map_err(|f| ConnectorError::configuration(f.message, f.hint))?;
        Ok(Self {
            spec,
            config,
            list,
            places: Mutex::default(),
        })
    }

    fn decoder(&self) -> Result<Box<dyn RecordDecoder>, ConnectorError> {
        format::source_decoder(&self.config.format, &self.spec)
    }

    fn parts(&self, files: &[Found], parallelism: usize) -> Result<Vec<Part>, ConnectorError> {
        let total: u64 = files.iter().map(|f| f.len).sum();
        let mut parts = Vec::new();
        for file in files {
            let of = n_readers(file.len, total, parallelism, self.n_units(file)?);
            parts.extend((0..of).map(|index| Part {
                index,
                of,
                path: file.path.clone(),
            }));
        }
        Ok(parts)
    }

    /// Into how many pieces the file can be cut: row groups, stripes, or one.
    fn n_units(&self, file: &Found) -> Result<u64, ConnectorError> {
        if self.is_parquet() {
            return parquet::n_row_groups(&file.path, &open(&file.path)?);
        }
        let is_plain = self.config.compression_of(&file.path) == Compression::None;
        let can_stripe =
            is_plain && file.len >= 2 * STRIPE && self.decoder()?.framing().can_stripe();
        Ok(if can_stripe { file.len / STRIPE } else { 1 })
    }

    /// Bytes to read of a file: of Parquet only the columns that are needed.
    fn n_bytes(&self, file: &Found) -> Result<u64, ConnectorError> {
        if !self.is_parquet() {
            return Ok(file.len);
        }
        let part = Part {
            index: 0,
            of: 1,
            path: file.path.clone(),
        };
        let reader = ParquetReader::open(
            part,
            open(&file.path)?,
            self.spec.clone(),
            Position::default(),
        )?;
        Ok(reader.n_bytes_waiting())
    }

    fn is_parquet(&self) -> bool {
        self.config.format == "parquet"
    }

    fn place(&self, path: &str) -> Arc<Place> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            Arc::new(Place::new(
                PathBuf::from(path),
                path.into(),
                self.config.compression_of(path),
            ))
        };
        places.entry(path.to_string()).or_insert_with(make).clone()
    }
}

impl Source for FileSource {
    fn splits(&self, parallelism: usize) -> Result<Vec<SplitId>, ConnectorError> {
        let files = (self.list)(&self.config.path)?;
        Ok(self
            .parts(&files, parallelism)?
            .iter()
            .map(Part::name)
            .collect())
    }

    fn total_bytes(&self) -> Option<u64> {
        let files = (self.list)(&self.config.path).ok()?;
        files.iter().map(|f| self.n_bytes(f).ok()).sum()
    }

    fn is_sequence(&self) -> bool {
        self.spec.updating
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = (self.list)(&self.config.path).unwrap_or_default();
        files.into_iter().map(|f| f.path.into()).collect()
    }

    fn open(
        &self,
        split: &SplitId,
        start: Option<&Offset>,
        _subtask: usize,
    ) -> Result<Box<dyn SplitReader>, ConnectorError> {
        let (part, position) = (Part::parse(split)?, Position::decode(start)?);
        let (file, spec) = (open(&part.path)?, self.spec.clone());
        if self.is_parquet() {
            return Ok(Box::new(ParquetReader::open(part, file, spec, position)?));
        }
        let opening = Opening {
            file,
            compression: self.config.compression_of(&part.path),
            place: self.place(&part.path),
            stripes: Stripes {
                index: part.index,
                of: part.of,
                size: STRIPE,
            },
            decoder: self.decoder()?,
            max_record_bytes: self.config.max_record_bytes,
        };
        Ok(Box::new(RecordReader::open(opening, spec, position)?))
    }

    fn live(&self) -> Option<&dyn LiveSource> {
        None
    }
}

/// The columns of the first Parquet file that a path means; `None` for other formats.
pub fn own_columns(table: &Outline, list: List) -> Result<Option<Vec<Field>>, ConnectorError> {
    let config = Config::parse(&table.options, table.format.as_deref())
        .map_err(|f| ConnectorError::configuration(f.message, f.hint))?;
    if config.format != "parquet" {
        return Ok(None);
    }
    let files = list(&config.path)?;
    let Some(first) = files.first() else {
        return Ok(Some(Vec::new()));
    };
    parquet::columns(&first.path, &open(&first.path)?).map(Some)
}

fn open(path: &str) -> Result<File, ConnectorError> {
    File::open(path).map_err(|e| list::cannot_open(path, e))
}
