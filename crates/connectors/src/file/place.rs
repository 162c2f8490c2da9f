//! Where in a file a record is, for people. Read only for records that are rejected.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use memchr::{memchr, memchr_iter};

use super::compression::Compression;
use super::input::{Input, InputError};

/// A file, and an index of its lines that grows as far as it is asked.
pub struct Place {
    /// As the table names it.
    pub name: Arc<str>,
    path: PathBuf,
    compression: Compression,
    index: Mutex<LineIndex>,
}

const BLOCK: usize = 64 * 1024;

/// Blocks kept of a compressed file, which cannot be read backwards: more than one read returns.
const KEPT: usize = 256;

/// Longer records are not kept for a dead letter.
const MAX_RAW: usize = 1 << 20;

#[derive(Default)]
struct LineIndex {
    input: Option<Input>,
    /// Line ends before each block that has been read, and before the one behind them.
    before: Vec<u64>,
    /// The last blocks read, with the number of the first.
    blocks: VecDeque<Vec<u8>>,
    first: usize,
}

impl Place {
    pub fn new(path: PathBuf, name: Arc<str>, compression: Compression) -> Self {
        Self {
            name,
            path,
            compression,
            index: Mutex::default(),
        }
    }

    /// `orders.ndjson, line 17 (byte 1893)`; without the line where the file can no longer be read.
    pub fn describe(&self, at: u64) -> String {
        let of = if self.compression == Compression::None {
            ""
        } else {
            " of the uncompressed text"
        };
        match self.with_index(|index, place| index.line(place, at)) {
            Ok(line) => format!("{}, line {line} (byte {at}{of})", self.name),
            Err(_) => format!("{}, byte {at}{of}", self.name),
        }
    }

    /// The line that begins at `at`, without its line end; `None` where it is too long or gone.
    pub fn line_at(&self, at: u64) -> Option<Vec<u8>> {
        self.with_index(|index, place| index.text(place, at))
            .ok()
            .flatten()
    }

    fn with_index<T>(
        &self,
        f: impl FnOnce(&mut LineIndex, &Self) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let result = f(&mut index, self);
        if result.is_err() {
            *index = LineIndex::default();
        }
        result
    }
}

impl LineIndex {
    /// From 1.
    fn line(&mut self, place: &Place, at: u64) -> io::Result<u64> {
        let (number, within) = ((at / BLOCK as u64) as usize, (at % BLOCK as u64) as usize);
        while self.before.len() <= number {
            let next = self.before.len().saturating_sub(1);
            self.block(place, next)?;
        }
        let block = self.block(place, number)?;
        let within = count_lines(&block[..within.min(block.len())]);
        Ok(self.before[number] + within + 1)
    }

    fn text(&mut self, place: &Place, at: u64) -> io::Result<Option<Vec<u8>>> {
        let (mut number, mut within) = ((at / BLOCK as u64) as usize, (at % BLOCK as u64) as usize);
        let mut text = Vec::new();
        while text.len() <= MAX_RAW {
            let block = self.block(place, number)?;
            let rest = &block[within.min(block.len())..];
            if let Some(end) = memchr(b'\n', rest) {
                text.extend(&rest[..end]);
                text.pop_if(|last| *last == b'\r');
                return Ok(Some(text));
            }
            text.extend(rest);
            if block.len() < BLOCK {
                return Ok(Some(text));
            }
            (number, within) = (number + 1, 0);
        }
        Ok(None)
    }

    /// The block of this number, empty behind the end.
    fn block(&mut self, place: &Place, number: usize) -> io::Result<&[u8]> {
        if self.input.is_none() || number < self.first {
            let input = Input::open(File::open(&place.path)?, place.compression)?;
            self.blocks.clear();
            // A plain file is read from anywhere; a compressed one again from its beginning.
            self.first = if input.n_compressed().is_none() {
                number
            } else {
                0
            };
            self.input = Some(input);
        }
        let is_plain = self
            .input
            .as_ref()
            .is_some_and(|i| i.n_compressed().is_none());
        if is_plain && number >= self.first + self.blocks.len() {
            self.blocks.clear();
            self.first = number;
        }
        while number >= self.first + self.blocks.len() {
            self.read_next()?;
        }
        Ok(&self.blocks[number - self.first])
    }

    fn read_next(&mut self) -> io::Result<()> {
        let number = self.first + self.blocks.len();
        let mut block = vec![0; BLOCK];
        let input = self.input.as_mut().expect("the file has been opened");
        let n = match input.read((number * BLOCK) as u64, &mut block) {
            Ok(n) => n,
            Err(InputError::Damaged(_)) => 0,
            Err(InputError::Io(error)) => return Err(error),
        };
        block.truncate(n);
        if self.before.is_empty() {
            self.before.push(0);
        }
        if number + 1 == self.before.len() {
            self.before.push(self.before[number] + count_lines(&block));
        }
        self.blocks.push_back(block);
        if self.blocks.len() > KEPT {
            self.blocks.pop_front();
            self.first += 1;
        }
        Ok(())
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn line(number: usize) -> String {
        format!("{number:<200}")
    }

    /// A file of `n` lines that begin with their number, and where each begins.
    fn lines(compression: Compression, n: usize) -> (tempfile::NamedTempFile, Place, Vec<u64>) {
        let (mut text, mut starts) = (Vec::new(), Vec::new());
        for i in 1..=n {
            starts.push(text.len() as u64);
            text.extend(line(i).bytes().chain([b'\n']));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut output = compression.writer(file.reopen().unwrap()).unwrap();
        output.write_all(&text).unwrap();
        output.finish().unwrap();
        let place = Place::new(file.path().to_path_buf(), "f.txt".into(), compression);
        (file, place, starts)
    }

    #[test]
    fn records_are_found_in_any_order() {
        for compression in [Compression::None, Compression::Zstd] {
            // Some 20 MiB, so that a compressed file must be read again to go back.
            let n = 100_000;
            let (_file, place, starts) = lines(compression, n);
            let of = if compression == Compression::None {
                ""
            } else {
                " of the uncompressed text"
            };
            for number in [17, 1, 60_000, 59_999, n, 5] {
                let at = starts[number - 1];
                assert_eq!(
                    place.describe(at),
                    format!("f.txt, line {number} (byte {at}{of})")
                );
                assert_eq!(place.line_at(at).unwrap(), line(number).into_bytes());
            }
        }
    }

    #[test]
    fn a_file_that_is_gone_still_has_a_place() {
        let (file, place, starts) = lines(Compression::None, 10);
        drop(file);
        assert_eq!(place.describe(starts[1]), "f.txt, byte 201");
        assert_eq!(place.line_at(starts[1]), None);
    }

    #[test]
    fn very_long_lines_are_not_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            [vec![b'x'; MAX_RAW + BLOCK + 1], b"\r\nnext".to_vec()].concat(),
        )
        .unwrap();
        let place = Place::new(file.path().to_path_buf(), "f".into(), Compression::None);
        assert_eq!(place.line_at(0), None);
        assert_eq!(place.line_at(MAX_RAW as u64).unwrap().len(), BLOCK + 1);
        assert_eq!(
            place.line_at((MAX_RAW + BLOCK + 3) as u64).unwrap(),
            b"next"
        );
    }
}
