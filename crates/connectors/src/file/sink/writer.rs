//! One file that is being written.

use std::fs::File;
use std::io::{self, Write};

use thalweg_runtime::connector::{ConnectorError, SinkInput};

use crate::file::compression::{Compression, Output};
use crate::format::Encoder;

/// Encoded bytes gather up to this before they are written.
const BLOCK: usize = 256 * 1024;

/// Encodes into a buffer and writes that in large blocks. Errors name the file.
pub struct FileWriter {
    name: String,
    output: Output,
    buffer: Vec<u8>,
    n_bytes: u64,
}

impl FileWriter {
    /// Begins a file with what the format puts before its records.
    pub fn begin(
        name: String,
        file: File,
        compression: Compression,
        encoder: &mut dyn Encoder,
    ) -> Result<Self, ConnectorError> {
        let output = compression
            .writer(file)
            .map_err(|e| write_error(&name, e))?;
        let mut writer = Self {
            name,
            output,
            buffer: Vec::with_capacity(BLOCK),
            n_bytes: 0,
        };
        encoder.begin(&mut writer.buffer)?;
        Ok(writer)
    }

    pub fn write(
        &mut self,
        encoder: &mut dyn Encoder,
        input: &SinkInput<'_>,
    ) -> Result<(), ConnectorError> {
        encoder.write(input, &mut self.buffer)?;
        if self.buffer.len() >= BLOCK {
            self.drain()
        } else {
            Ok(())
        }
    }

    /// Everything written so far can be read.
    pub fn flush(&mut self) -> Result<(), ConnectorError> {
        self.drain()?;
        self.output.flush().map_err(|e| write_error(&self.name, e))
    }

    /// Bytes before compression.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes + self.buffer.len() as u64
    }

    /// Ends the file with what the format puts behind its records, and gives it back, all written.
    pub fn finish(mut self, encoder: &mut dyn Encoder) -> Result<File, ConnectorError> {
        encoder.finish(&mut self.buffer)?;
        self.drain()?;
        let Self { name, output, .. } = self;
        output.finish().map_err(|e| write_error(&name, e))
    }

    fn drain(&mut self) -> Result<(), ConnectorError> {
        let written = self.output.write_all(&self.buffer);
        self.n_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(4 * BLOCK);
        written.map_err(|e| write_error(&self.name, e))
    }
}

fn write_error(name: &str, error: io::Error) -> ConnectorError {
    ConnectorError::io(format!("write \"{name}\""), error)
}
