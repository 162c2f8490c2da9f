//! Compressed files: recognised by their extension, read and written as streams.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
    Bzip2,
    Xz,
}

/// Words for the option `compression`.
pub const WORDS: &[&str] = &["none", "gzip", "zstd", "bzip2", "xz"];

const EXTENSIONS: [(&str, Compression); 6] = [
    ("gz", Compression::Gzip),
    ("gzip", Compression::Gzip),
    ("zst", Compression::Zstd),
    ("zstd", Compression::Zstd),
    ("bz2", Compression::Bzip2),
    ("xz", Compression::Xz),
];

impl Compression {
    /// By the extension of `path`, and `path` without it.
    pub fn of(path: &str) -> (Self, &str) {
        let found = path.rsplit_once('.').and_then(|(stem, extension)| {
            let known = EXTENSIONS
                .iter()
                .find(|(e, _)| extension.eq_ignore_ascii_case(e))?;
            Some((known.1, stem))
        });
        found.unwrap_or((Self::None, path))
    }

    pub fn parse(word: &str) -> Option<Self> {
        const ALL: [Compression; 5] = [
            Compression::None,
            Compression::Gzip,
            Compression::Zstd,
            Compression::Bzip2,
            Compression::Xz,
        ];
        WORDS.iter().position(|w| *w == word).map(|i| ALL[i])
    }

    pub fn word(self) -> &'static str {
        WORDS[self as usize]
    }

    /// With its dot; empty for `None`.
    pub fn extension(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
            Self::Bzip2 => ".bz2",
            Self::Xz => ".xz",
        }
    }

    /// Concatenated streams are read as one, as the command line tools do.
    pub fn reader(self, file: Counted) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::None => Box::new(file),
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(file)),
            Self::Zstd => Box::new(zstd::Decoder::new(file)?),
            Self::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(file)),
            Self::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(file)),
        })
    }

    pub fn writer(self, file: File) -> io::Result<Output> {
        Ok(match self {
            Self::None => Output::Plain(file),
            Self::Gzip => Output::Gzip(flate2::write::GzEncoder::new(
                file,
                flate2::Compression::default(),
            )),
            Self::Zstd => Output::Zstd(zstd::Encoder::new(file, 0)?),
            Self::Bzip2 => Output::Bzip2(bzip2::write::BzEncoder::new(
                file,
                bzip2::Compression::default(),
            )),
            Self::Xz => Output::Xz(liblzma::write::XzEncoder::new(file, 6)),
        })
    }
}

/// A file that counts the bytes read from it.
pub struct Counted {
    pub file: File,
    pub n_bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.n_bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A file that is being written.
pub enum Output {
    Plain(File),
    Gzip(flate2::write::GzEncoder<File>),
    Zstd(zstd::Encoder<'static, File>),
    Bzip2(bzip2::write::BzEncoder<File>),
    Xz(liblzma::write::XzEncoder<File>),
}

impl Output {
    fn inner(&mut self) -> &mut dyn Write {
        match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
            Self::Bzip2(encoder) => encoder,
            Self::Xz(encoder) => encoder,
        }
    }

    /// Ends the stream and hands the file back.
    pub fn finish(self) -> io::Result<File> {
        match self {
            Self::Plain(file) => Ok(file),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
            Self::Bzip2(encoder) => encoder.finish(),
            Self::Xz(encoder) => encoder.finish(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_say_how_a_file_is_compressed() {
        assert_eq!(
            Compression::of("a/b.ndjson.gz"),
            (Compression::Gzip, "a/b.ndjson")
        );
        assert_eq!(Compression::of("b.csv.ZST"), (Compression::Zstd, "b.csv"));
        assert_eq!(Compression::of("*.bz2"), (Compression::Bzip2, "*"));
        assert_eq!(Compression::of("b.csv"), (Compression::None, "b.csv"));
        assert_eq!(Compression::of("plain"), (Compression::None, "plain"));
    }

    #[test]
    fn words_and_kinds_match() {
        for word in WORDS {
            assert_eq!(Compression::parse(word).unwrap().word(), *word);
        }
        assert_eq!(Compression::parse("lzip"), None);
        for kind in WORDS.iter().filter_map(|w| Compression::parse(w)).skip(1) {
            assert_eq!(
                Compression::of(&format!("x{}", kind.extension())),
                (kind, "x")
            );
        }
    }

    #[test]
    fn every_kind_reads_what_it_writes_also_in_pieces() {
        let dir = tempfile::tempdir().unwrap();
        for kind in WORDS.iter().filter_map(|w| Compression::parse(w)) {
            let path = dir.path().join(kind.word());
            let mut whole = Vec::new();
            for piece in ["one\n", "two\n"] {
                let mut output = kind.writer(File::create(&path).unwrap()).unwrap();
                output.write_all(piece.as_bytes()).unwrap();
                output.flush().unwrap();
                output.finish().unwrap();
                whole.extend(std::fs::read(&path).unwrap());
            }
            std::fs::write(&path, &whole).unwrap();
            let n_bytes = Arc::new(AtomicU64::new(0));
            let file = Counted {
                file: File::open(&path).unwrap(),
                n_bytes: n_bytes.clone(),
            };
            let mut text = String::new();
            kind.reader(file)
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            assert_eq!(text, "one\ntwo\n", "{kind:?}");
            assert_eq!(n_bytes.load(Ordering::Relaxed), whole.len() as u64);
        }
    }
}
