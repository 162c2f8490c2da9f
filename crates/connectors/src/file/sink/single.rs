//! `single_file` as a sink.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thalweg_dataflow::table::SinkSpec;
use thalweg_runtime::connector::{BoxFuture, ConnectorError, Sink, SinkInput, SinkWriter};

use super::writer::FileWriter;
use crate::file::config::Config;
use crate::format::{self, Encoder};

/// Writes one file in place, so that it can be followed while it grows.
pub struct SingleFileSink {
    spec: Arc<SinkSpec>,
    config: Config,
}

impl SingleFileSink {
    pub fn new(spec: Arc<SinkSpec>) -> Result<Self, ConnectorError> {
        let config = Config::parse(&spec.options, spec.format.as_deref())
            .map_err(|f| ConnectorError::configuration(f.message, f.hint))?;
        Ok(Self { spec, config })
    }
}

impl Sink for SingleFileSink {
    fn is_parallel(&self) -> bool {
        false
    }

    fn replaces(&self) -> Option<PathBuf> {
        Some(PathBuf::from(&self.config.path))
    }

    /// Creates the file and the directories above it, or empties it.
    fn open(&self, _subtask: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        let Config { path, format, .. } = &self.config;
        let mut encoder = format::encoder(
            format,
            &self.spec.options,
            &self.spec.schema,
            self.spec.updating,
        )?;
        let create = || {
            Path::new(path)
                .parent()
                .map(fs::create_dir_all)
                .transpose()?;
            File::create(path)
        };
        let file = create().map_err(|e| ConnectorError::io(format!("create \"{path}\""), e))?;
        let compression = self.config.compression_of(path);
        let writer = FileWriter::begin(path.clone(), file, compression, encoder.as_mut())?;
        Ok(Box::new(SingleFileWriter {
            encoder,
            writer: Some(writer),
            n_bytes: 0,
        }))
    }
}

struct SingleFileWriter {
    encoder: Box<dyn Encoder>,
    /// `None` once it is finished.
    writer: Option<FileWriter>,
    /// As of the last epoch's end.
    n_bytes: u64,
}

impl SinkWriter for SingleFileWriter {
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        Box::pin(async move {
            let Some(writer) = &mut self.writer else {
                return Ok(());
            };
            writer.write(self.encoder.as_mut(), &input)
        })
    }

    fn end_epoch(&mut self, _epoch: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async move {
            let Some(writer) = &mut self.writer else {
                return Ok(());
            };
            writer.flush()?;
            self.n_bytes = writer.n_bytes();
            Ok(())
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async move {
            match self.writer.take() {
                Some(writer) => writer.finish(self.encoder.as_mut()).map(|_| ()),
                None => Ok(()),
            }
        })
    }

    fn n_bytes(&self) -> u64 {
        self.n_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{now, sink_spec, texts};
    use arrow::datatypes::DataType;
    use std::io::ErrorKind;

    fn open(path: &str) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        let columns = [("value", DataType::Utf8)];
        SingleFileSink::new(sink_spec(
            "single_file",
            Some("raw_string"),
            &columns,
            &[("path", path)],
        ))?
        .open(0)
    }

    #[test]
    fn an_epoch_can_be_read_when_it_ends_and_the_old_content_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/out.txt");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, "old content that is longer").unwrap();
        let mut writer = open(path.to_str().unwrap()).unwrap();
        now(writer.write(SinkInput::Rows(&texts(&["a", "b"])))).unwrap();
        now(writer.end_epoch(1)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\n");
        now(writer.write(SinkInput::Rows(&texts(&["c"])))).unwrap();
        now(writer.end_epoch(2)).unwrap();
        now(writer.finish()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\nc\n");
    }

    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let mut writer = open("/dev/full").unwrap();
        now(writer.write(SinkInput::Rows(&texts(&["a"])))).unwrap();
        let error = now(writer.end_epoch(1)).unwrap_err();
        assert!(
            matches!(&error, ConnectorError::Io { source, .. } if source.kind() == ErrorKind::StorageFull)
        );
        assert!(
            error
                .to_string()
                .starts_with("write \"/dev/full\": No space left"),
            "{error}"
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_an_error_at_once() {
        let error = open("/dev/null/out.txt").err().unwrap();
        assert!(
            error
                .to_string()
                .starts_with("create \"/dev/null/out.txt\": "),
            "{error}"
        );
    }
}
