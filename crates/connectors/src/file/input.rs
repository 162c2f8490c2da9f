//! The bytes of one file, behind decompression.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::compression::{Compression, Counted};

/// Reads blocks at positions: anywhere in a plain file, forwards only in a compressed one.
pub enum Input {
    Plain(File),
    Stream(Stream),
}

/// A compressed file.
pub struct Stream {
    reader: Box<dyn Read + Send>,
    kind: Compression,
    /// Position of the next byte.
    at: u64,
    n_bytes_read: Arc<AtomicU64>,
    failed: Option<InputError>,
}

#[derive(Debug)]
pub enum InputError {
    /// The disk or the network below the file.
    Io(io::Error),
    /// The compressed stream is cut off or damaged; there is nothing to be had behind it.
    Damaged(String),
}

impl Input {
    pub fn open(file: File, kind: Compression) -> io::Result<Self> {
        // No tool makes an empty compressed file, but `touch` and failed jobs do: it holds no records.
        if kind == Compression::None || file.metadata()?.len() == 0 {
            return Ok(Self::Plain(file));
        }
        let n_bytes_read = Arc::new(AtomicU64::new(0));
        let reader = kind.reader(Counted {
            file,
            n_bytes: n_bytes_read.clone(),
        })?;
        Ok(Self::Stream(Stream {
            reader,
            kind,
            at: 0,
            n_bytes_read,
            failed: None,
        }))
    }

    /// Fills `block` from position `at`; less only at the end. `at` must not lie before what a compressed file
    /// has given already.
    pub fn read(&mut self, at: u64, block: &mut [u8]) -> Result<usize, InputError> {
        match self {
            Self::Plain(file) => fill(block, |rest, done| file.read_at(rest, at + done as u64))
                .map_err(InputError::Io),
            Self::Stream(stream) => stream.read(at, block),
        }
    }

    /// Bytes taken from a compressed file so far; `None` for a plain one, where positions say it.
    pub fn n_compressed(&self) -> Option<u64> {
        match self {
            Self::Plain(_) => None,
            Self::Stream(stream) => Some(stream.n_bytes_read.load(Ordering::Relaxed)),
        }
    }
}

impl Stream {
    fn read(&mut self, at: u64, block: &mut [u8]) -> Result<usize, InputError> {
        assert!(at >= self.at, "a compressed file is read forwards");
        self.skip(at)?;
        self.take(block)
    }

    fn skip(&mut self, at: u64) -> Result<(), InputError> {
        let mut scratch = vec![0; 64 * 1024];
        while self.at < at {
            let n = scratch.len().min((at - self.at) as usize);
            if self.take(&mut scratch[..n])? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// What comes before damage is given first, the damage at the next call.
    fn take(&mut self, block: &mut [u8]) -> Result<usize, InputError> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        let mut n = 0;
        let read = fill(block, |rest, done| {
            let read = self.reader.read(rest)?;
            n = done + read;
            Ok(read)
        });
        self.at += n as u64;
        match read {
            Ok(n) => Ok(n),
            Err(error) => {
                let error = self.describe(error);
                if n == 0 {
                    return Err(error);
                }
                self.failed = Some(error);
                Ok(n)
            }
        }
    }

    fn describe(&self, error: io::Error) -> InputError {
        if error.raw_os_error().is_some() {
            return InputError::Io(error);
        }
        let how = match error.kind() {
            io::ErrorKind::UnexpectedEof => "is cut off".to_string(),
            _ => format!("is damaged: {error}"),
        };
        InputError::Damaged(format!("the {} stream {how}", self.kind.word()))
    }
}

fn fill(
    block: &mut [u8],
    mut read: impl FnMut(&mut [u8], usize) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut done = 0;
    while done < block.len() {
        match read(&mut block[done..], done) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::compression::WORDS;
    use std::io::Write;

    fn kinds() -> impl Iterator<Item = Compression> {
        WORDS.iter().filter_map(|w| Compression::parse(w))
    }

    /// Bytes that do not compress well, so that a cut lies in the middle of data.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        (0..len)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect()
    }

    fn compressed(kind: Compression, bytes: &[u8]) -> Vec<u8> {
        let path = tempfile::NamedTempFile::new().unwrap();
        let mut output = kind.writer(path.reopen().unwrap()).unwrap();
        output.write_all(bytes).unwrap();
        output.finish().unwrap();
        std::fs::read(path.path()).unwrap()
    }

    fn open(kind: Compression, bytes: &[u8]) -> Input {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        Input::open(file.reopen().unwrap(), kind).unwrap()
    }

    #[test]
    fn blocks_come_from_positions_plain_or_compressed() {
        let bytes = noise(300_000);
        for kind in kinds() {
            let mut input = open(kind, &compressed(kind, &bytes));
            let mut block = vec![0; 1000];
            for at in [0, 1000, 150_000, 299_500] {
                let n = input.read(at as u64, &mut block).unwrap();
                assert_eq!(
                    &block[..n],
                    &bytes[at..(at + 1000).min(bytes.len())],
                    "{kind:?} at {at}"
                );
            }
            assert_eq!(input.read(300_000, &mut block).unwrap(), 0);
            assert_eq!(input.n_compressed().is_some(), kind != Compression::None);
        }
    }

    #[test]
    fn what_precedes_a_cut_is_given_before_the_cut_is_named() {
        let bytes = noise(2_500_000);
        for kind in kinds().filter(|k| *k != Compression::None) {
            let whole = compressed(kind, &bytes);
            let mut input = open(kind, &whole[..whole.len() - whole.len() / 4]);
            let (mut read, mut block) = (Vec::new(), vec![0; 100_000]);
            let error = loop {
                match input.read(read.len() as u64, &mut block) {
                    Ok(0) => panic!("{kind:?}: the cut went unseen"),
                    Ok(n) => read.extend(&block[..n]),
                    Err(error) => break error,
                }
            };
            assert!(
                read.len() > bytes.len() / 2,
                "{kind:?}: {} bytes",
                read.len()
            );
            assert!(bytes.starts_with(&read), "{kind:?}");
            let InputError::Damaged(message) = error else {
                panic!("{error:?}")
            };
            assert_eq!(message, format!("the {} stream is cut off", kind.word()));
        }
    }

    #[test]
    fn a_file_that_is_not_what_its_name_says_is_damaged() {
        for kind in kinds().filter(|k| *k != Compression::None) {
            let mut input = open(
                kind,
                b"{\"plain\": \"text, long enough for every header\"}\n",
            );
            let error = input.read(0, &mut [0; 100]).unwrap_err();
            assert!(
                matches!(&error, InputError::Damaged(m) if m.contains("is damaged")),
                "{kind:?}: {error:?}"
            );
        }
    }

    #[test]
    fn an_empty_file_is_empty_whatever_its_extension() {
        for kind in kinds() {
            assert_eq!(open(kind, b"").read(0, &mut [0; 10]).unwrap(), 0);
        }
    }
}
