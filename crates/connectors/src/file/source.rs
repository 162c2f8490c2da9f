//! The source of both file connectors: which splits there are, and a reader for each.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_dataflow::table::SourceSpec;
use thalweg_runtime::connector::{ConnectorError, Offset, Source, SplitId, SplitReader};

use super::compression::Compression;
use super::config::Config;
use super::list::{self, Found};
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
    stripe_bytes: u64,
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
            stripe_bytes: STRIPE,
            places: Mutex::default(),
        })
    }

    fn decoder(&self) -> Result<Box<dyn RecordDecoder>, ConnectorError> {
        format::decoder(
            &self.config.format,
            &self.spec.options,
            self.spec.physical.clone(),
        )
    }

    fn parts(&self, files: &[Found], parallelism: usize) -> Result<Vec<Part>, ConnectorError> {
        let can_stripe = self.decoder()?.framing().can_stripe();
        let total: u64 = files.iter().map(|f| f.len).sum();
        let parts_of = |file: &Found| {
            let is_plain = self.config.compression_of(&file.path) == Compression::None;
            let of = if can_stripe && is_plain {
                n_readers(file.len, total, parallelism)
            } else {
                1
            };
            let path = file.path.clone();
            (0..of).map(move |index| Part {
                index,
                of,
                path: path.clone(),
            })
        };
        Ok(files.iter().flat_map(parts_of).collect())
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
        Some(files.iter().map(|f| f.len).sum())
    }

    fn open(
        &self,
        split: &SplitId,
        start: Option<&Offset>,
        _subtask: usize,
    ) -> Result<Box<dyn SplitReader>, ConnectorError> {
        let Part { index, of, path } = Part::parse(split)?;
        let position = Position::decode(start)?;
        let opening = Opening {
            file: File::open(&path).map_err(|e| list::cannot_open(&path, e))?,
            compression: self.config.compression_of(&path),
            place: self.place(&path),
            stripes: Stripes {
                index,
                of,
                size: self.stripe_bytes,
            },
            decoder: self.decoder()?,
            max_record_bytes: self.config.max_record_bytes,
        };
        Ok(Box::new(RecordReader::open(
            opening,
            self.spec.clone(),
            position,
        )?))
    }
}
