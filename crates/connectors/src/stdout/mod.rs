//! `stdout`: writes records to standard output, whole batches at a time.

use std::io::{self, Write};
use std::sync::Arc;

use thalweg_dataflow::options::{ConnectorDecl, OptionFault, TableCheck};
use thalweg_dataflow::table::{SinkSpec, SourceSpec};
use thalweg_runtime::connector::{BoxFuture, ConnectorError, Sink, SinkInput, SinkWriter, Source};

use crate::format::{self, Encoder};
use crate::registry::{Connector, one_way};

static DECLARATION: ConnectorDecl = ConnectorDecl {
    name: "stdout",
    meaning: "Writes to the standard output of the process, where each epoch appears when it is complete or \
              earlier. When the reader of a pipe goes away, the job ends.",
    options: &[],
    can_read: false,
    can_write: true,
    formats: &["json", "debezium_json", "csv", "raw_string", "raw_bytes"],
    default_format: |_| Some("json"),
    fixed_columns: &[],
    metadata: &[],
    takes_updates: false,
    bounded: |_| true,
};

/// Where the bytes go; tests put something else there.
type Output = Arc<dyn Fn() -> Box<dyn Write + Send> + Send + Sync>;

pub struct Stdout {
    output: Output,
}

impl Default for Stdout {
    fn default() -> Self {
        Self {
            output: Arc::new(|| Box::new(io::stdout())),
        }
    }
}

impl Connector for Stdout {
    fn declaration(&self) -> &ConnectorDecl {
        &DECLARATION
    }

    fn check(&self, table: &TableCheck<'_>) -> Result<(), OptionFault> {
        format::declare::refuse_messages(table.format, table.options)
    }

    fn source(&self, _spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        Err(one_way(DECLARATION.name, "read"))
    }

    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(StdoutSink {
            spec: spec.clone(),
            output: self.output.clone(),
        }))
    }
}

struct StdoutSink {
    spec: Arc<SinkSpec>,
    output: Output,
}

impl Sink for StdoutSink {
    fn is_parallel(&self) -> bool {
        false
    }

    fn open(&self, _subtask: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        let format = self.spec.format.as_deref().unwrap_or("json");
        let encoder = format::encoder(
            format,
            &self.spec.options,
            &self.spec.schema,
            self.spec.updating,
        )?;
        Ok(Box::new(StdoutWriter {
            encoder,
            output: (self.output)(),
            buffer: Vec::new(),
            has_begun: false,
            n_bytes: 0,
        }))
    }
}

struct StdoutWriter {
    encoder: Box<dyn Encoder>,
    output: Box<dyn Write + Send>,
    buffer: Vec<u8>,
    has_begun: bool,
    n_bytes: u64,
}

/// The buffer is given back when one batch made it larger than this.
const KEEP_BYTES: usize = 4 << 20;

impl StdoutWriter {
    fn begin(&mut self) -> Result<(), ConnectorError> {
        if !self.has_begun {
            self.has_begun = true;
            self.encoder.begin(&mut self.buffer)?;
        }
        Ok(())
    }

    /// One write and so one lock a batch: lines of several tables do not mix.
    fn emit(&mut self) -> Result<(), ConnectorError> {
        let written = self
            .output
            .write_all(&self.buffer)
            .and_then(|()| self.output.flush());
        self.n_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(KEEP_BYTES);
        written.map_err(|e| ConnectorError::io("standard output", e))
    }
}

impl SinkWriter for StdoutWriter {
    /// Blocks while the terminal or the pipe is full. A closed pipe is an `Io` error of kind
    /// `BrokenPipe`, which its caller should take for a wish to stop.
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        Box::pin(async move {
            self.begin()?;
            self.encoder.write(&input, &mut self.buffer)?;
            self.emit()
        })
    }

    fn end_epoch(&mut self, _epoch: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async move {
            self.begin()?;
            self.encoder.finish(&mut self.buffer)?;
            self.emit()
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
    use std::sync::Mutex;

    /// Keeps what was written, one entry a call.
    #[derive(Clone, Default)]
    struct Calls(Arc<Mutex<Vec<String>>>);

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0
                .lock()
                .unwrap()
                .push(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn writer(output: Output) -> Box<dyn SinkWriter> {
        let spec = sink_spec(
            "stdout",
            Some("raw_string"),
            &[("value", arrow::datatypes::DataType::Utf8)],
            &[],
        );
        Stdout { output }.sink(&spec).unwrap().open(0).unwrap()
    }

    #[test]
    fn a_batch_is_one_write() {
        let calls = Calls::default();
        let output = calls.clone();
        let mut writer = writer(Arc::new(move || Box::new(output.clone())));
        now(writer.write(SinkInput::Rows(&texts(&["a", "b"])))).unwrap();
        now(writer.write(SinkInput::Rows(&texts(&["c"])))).unwrap();
        now(writer.finish()).unwrap();
        assert_eq!(*calls.0.lock().unwrap(), ["a\nb\n", "c\n"]);
    }

    #[test]
    fn a_closed_pipe_is_told_apart() {
        let (reader, pipe) = io::pipe().unwrap();
        drop(reader);
        let pipe = Mutex::new(Some(pipe));
        let mut writer = writer(Arc::new(move || {
            Box::new(pipe.lock().unwrap().take().unwrap())
        }));
        let error = now(writer.write(SinkInput::Rows(&texts(&["a"])))).unwrap_err();
        let ConnectorError::Io { what, source } = error else {
            panic!("{error}")
        };
        assert_eq!(
            (what.as_str(), source.kind()),
            ("standard output", io::ErrorKind::BrokenPipe)
        );
    }
}
