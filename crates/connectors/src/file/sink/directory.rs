//! `filesystem` as a sink.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use thalweg_dataflow::options::{OptionDecl, OptionKind};
use thalweg_dataflow::table::SinkSpec;
use thalweg_runtime::clock;
use thalweg_runtime::connector::{BoxFuture, ConnectorError, Sink, SinkInput, SinkWriter};
use tokio::time::Instant;

use super::writer::FileWriter;
use crate::file::compression::Compression;
use crate::file::config::{Config, extension_of};
use crate::format::{self, Encoder};

pub const ROLL_BYTES: OptionDecl = OptionDecl::optional(
    "rolling_policy.file_size",
    OptionKind::Bytes,
    Some("128 MiB"),
    "For writing: a file is complete at the end of the epoch in which it has this size, before compression.",
);

pub const ROLL_INTERVAL: OptionDecl = OptionDecl::optional(
    "rolling_policy.interval",
    OptionKind::Duration,
    Some("1 minute"),
    "For writing: a file is complete at the end of the epoch in which it is this old.",
);

/// Writes files into a directory. A file has a hidden name until it is complete, and holds whole epochs.
///
/// Names are `20240101T100000.123456789Z-00002-00001.ndjson`: when the job was started, subtask, number of
/// the file. So they sort by time, and a job does not replace what an earlier one has written.
pub struct FilesystemSink {
    spec: Arc<SinkSpec>,
    config: Config,
    policy: Policy,
    started: String,
}

#[derive(Debug, Clone, Copy)]
struct Policy {
    max_bytes: u64,
    max_age: Duration,
}

impl FilesystemSink {
    pub fn new(spec: Arc<SinkSpec>) -> Result<Self, ConnectorError> {
        let config = Config::parse(&spec.options, spec.format.as_deref())
            .map_err(|f| ConnectorError::configuration(f.message, f.hint))?;
        let max_bytes = spec.options.bytes(ROLL_BYTES.name).unwrap_or(128 << 20);
        let max_age = spec
            .options
            .duration(ROLL_INTERVAL.name)
            .and_then(|n| u64::try_from(n).ok());
        let max_age = max_age.map_or(Duration::from_secs(60), Duration::from_nanos);
        let started = DateTime::from_timestamp_nanos(clock::now_nanos())
            .format("%Y%m%dT%H%M%S%.9fZ")
            .to_string();
        Ok(Self {
            spec,
            config,
            policy: Policy { max_bytes, max_age },
            started,
        })
    }
}

impl Sink for FilesystemSink {
    fn is_parallel(&self) -> bool {
        true
    }

    /// Creates the directory.
    fn open(&self, subtask: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        let Config { path, format, .. } = &self.config;
        let encoder = format::encoder(
            format,
            &self.spec.options,
            &self.spec.schema,
            self.spec.updating,
        )?;
        fs::create_dir_all(path)
            .map_err(|e| ConnectorError::io(format!("create directory \"{path}\""), e))?;
        let compression = self.config.compression.unwrap_or(Compression::None);
        Ok(Box::new(DirectoryWriter {
            directory: PathBuf::from(path),
            prefix: format!("{}-{subtask:05}", self.started),
            extension: format!("{}{}", extension_of(format), compression.extension()),
            compression,
            policy: self.policy,
            encoder,
            n_files: 0,
            n_bytes: 0,
            open: None,
        }))
    }
}

struct DirectoryWriter {
    directory: PathBuf,
    prefix: String,
    extension: String,
    compression: Compression,
    policy: Policy,
    encoder: Box<dyn Encoder>,
    n_files: usize,
    /// In files that are complete.
    n_bytes: u64,
    /// Made with the first row, so that a subtask without rows leaves no empty file.
    open: Option<OpenFile>,
}

struct OpenFile {
    writer: FileWriter,
    hidden: PathBuf,
    visible: PathBuf,
    opened_at: Instant,
}

impl DirectoryWriter {
    fn open_file(&mut self) -> Result<OpenFile, ConnectorError> {
        let name = format!("{}-{:05}{}", self.prefix, self.n_files, self.extension);
        self.n_files += 1;
        let visible = self.directory.join(&name);
        let hidden = self.directory.join(format!(".{name}.inprogress"));
        let file = File::create(&hidden).map_err(|e| on("create", &hidden, e))?;
        let shown = hidden.display().to_string();
        let writer = FileWriter::begin(shown, file, self.compression, self.encoder.as_mut())?;
        Ok(OpenFile {
            writer,
            hidden,
            visible,
            opened_at: Instant::now(),
        })
    }

    fn write_now(&mut self, input: &SinkInput<'_>) -> Result<(), ConnectorError> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.open_file()?,
        };
        self.open
            .insert(open)
            .writer
            .write(self.encoder.as_mut(), input)
    }

    fn is_due(&self) -> bool {
        let Policy { max_bytes, max_age } = self.policy;
        self.open
            .as_ref()
            .is_some_and(|o| o.writer.n_bytes() >= max_bytes || o.opened_at.elapsed() >= max_age)
    }

    /// Completes the open file: on the disk first, and then under its name.
    fn complete(&mut self) -> Result<(), ConnectorError> {
        let Some(OpenFile {
            writer,
            hidden,
            visible,
            ..
        }) = self.open.take()
        else {
            return Ok(());
        };
        self.n_bytes += writer.n_bytes();
        let file = writer.finish(self.encoder.as_mut())?;
        file.sync_all().map_err(|e| on("sync", &hidden, e))?;
        fs::rename(&hidden, &visible).map_err(|e| on("rename", &hidden, e))
    }
}

impl SinkWriter for DirectoryWriter {
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        Box::pin(async move { self.write_now(&input) })
    }

    fn end_epoch(&mut self, _epoch: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async move {
            if self.is_due() {
                self.complete()
            } else {
                Ok(())
            }
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async move { self.complete() })
    }

    fn n_bytes(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |o| o.writer.n_bytes());
        self.n_bytes + open
    }
}

fn on(what: &str, path: &Path, error: std::io::Error) -> ConnectorError {
    ConnectorError::io(format!("{what} \"{}\"", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::list;
    use crate::testing::{now, sink_spec, texts};
    use arrow::datatypes::DataType;
    use tempfile::TempDir;

    fn sink(dir: &TempDir, extra: &[(&str, &str)]) -> FilesystemSink {
        let path = dir.path().join("out");
        let given = [&[("path", path.to_str().unwrap())], extra].concat();
        FilesystemSink::new(sink_spec(
            "filesystem",
            Some("raw_string"),
            &[("value", DataType::Utf8)],
            &given,
        ))
        .unwrap()
    }

    fn write(writer: &mut dyn SinkWriter, value: &str) {
        now(writer.write(SinkInput::Rows(&texts(&[value])))).unwrap();
    }

    /// Content of the files that a reader would find, in the order of their names.
    fn visible(dir: &TempDir) -> Vec<String> {
        let found = list::many(dir.path().join("out").to_str().unwrap()).unwrap_or_default();
        found
            .iter()
            .map(|f| fs::read_to_string(&f.path).unwrap())
            .collect()
    }

    #[test]
    fn files_appear_whole_one_a_subtask() {
        let dir = tempfile::tempdir().unwrap();
        let sink = sink(&dir, &[]);
        let mut writers: Vec<_> = (0..3).map(|i| sink.open(i).unwrap()).collect();
        write(writers[0].as_mut(), "a");
        write(writers[2].as_mut(), "b");
        for writer in &mut writers {
            now(writer.end_epoch(1)).unwrap();
        }
        assert!(visible(&dir).is_empty());
        write(writers[0].as_mut(), "c");
        for writer in &mut writers {
            now(writer.end_epoch(2)).unwrap();
            now(writer.finish()).unwrap();
        }
        assert_eq!(visible(&dir), ["a\nc\n", "b\n"]);
        assert_eq!(
            fs::read_dir(dir.path().join("out")).unwrap().count(),
            2,
            "nothing hidden is left"
        );
    }

    #[test]
    fn files_roll_at_the_end_of_an_epoch_and_never_replace_others() {
        let dir = tempfile::tempdir().unwrap();
        for _run in 0..2 {
            let mut writer = sink(&dir, &[("rolling_policy.file_size", "3")])
                .open(0)
                .unwrap();
            for (epoch, value) in ["a", "b", "c"].into_iter().enumerate() {
                write(writer.as_mut(), value);
                now(writer.end_epoch(epoch as u64)).unwrap();
            }
            now(writer.finish()).unwrap();
        }
        assert_eq!(visible(&dir), ["a\nb\n", "c\n", "a\nb\n", "c\n"]);
    }

    #[test]
    fn files_roll_by_age() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = sink(&dir, &[("rolling_policy.interval", "0")])
            .open(0)
            .unwrap();
        write(writer.as_mut(), "a");
        now(writer.end_epoch(1)).unwrap();
        assert_eq!(visible(&dir), ["a\n"]);
    }

    #[test]
    fn names_say_format_and_compression() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = sink(&dir, &[("compression", "zstd")]).open(7).unwrap();
        write(writer.as_mut(), "a");
        now(writer.finish()).unwrap();
        let found = list::many(dir.path().join("out").to_str().unwrap()).unwrap();
        assert!(
            found[0].path.ends_with("Z-00007-00000.txt.zst"),
            "{}",
            found[0].path
        );
        assert_eq!(
            zstd::decode_all(File::open(&found[0].path).unwrap()).unwrap(),
            b"a\n"
        );
    }
}
