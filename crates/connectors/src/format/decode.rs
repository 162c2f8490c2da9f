//! The contract of decoding: bytes of records in, columns and rejected records out.

use arrow::record_batch::RecordBatch;
use thalweg_runtime::connector::{BadReason, ConnectorError, Marks};

/// Turns encoded records into rows of the source's `physical` schema.
///
/// Rows gather in the decoder's columns over any number of `decode` and `decode_one` calls until
/// `flush` takes them. A record that cannot be used leaves no trace in the columns, so its
/// neighbours are the same with or without it.
///
/// Order of calls: where [`needs_head`](Self::needs_head) says so, `head` before the first `decode`
/// of each file, whatever the position in the file at which decoding then begins.
pub trait RecordDecoder: Send {
    /// How records are told apart, and so how a file may be cut.
    fn framing(&self) -> Framing;

    /// Whether a file's beginning says how the rest is to be read.
    fn needs_head(&self) -> bool {
        self.framing() == Framing::Head
    }

    /// Reads a file's first bytes and answers how many of them precede the first record: a byte order
    /// mark, a header line. `None`: `bytes` are not enough to tell, come back with more. With `last` they
    /// are the whole file, and the answer is never `None`.
    fn head(&mut self, bytes: &[u8], last: bool) -> Result<Option<usize>, ConnectorError>;

    /// Decodes records from `bytes`, which begin at a record's start, and stops after `max_records`
    /// good or bad ones, at the last whole record, or when the gathered columns are full. With `last`
    /// nothing follows `bytes`, so that a record without a line end is whole. `at` is the position of
    /// `bytes[0]` in the split, from which the origins in [`Decoded`] are counted.
    fn decode(&mut self, bytes: &[u8], at: u64, max_records: usize, last: bool) -> Consumed;

    /// Decodes exactly one record, framed by something else, whose origin is `at`. False: it does not fit
    /// before a flush, and nothing was done.
    #[must_use]
    fn decode_one(&mut self, record: &[u8], at: u64) -> bool;

    /// Decodes a message, whose origin is `at`, from its key and its payload, either of which may be missing; as
    /// [`decode_one`](Self::decode_one), to which a payload is all, and one without a payload is no record. Formats
    /// whose records mean something by their keys have their own way.
    #[must_use]
    fn decode_message(&mut self, _key: Option<&[u8]>, payload: Option<&[u8]>, at: u64) -> bool {
        payload.is_none_or(|payload| self.decode_one(payload, at))
    }

    /// Takes what has been gathered.
    fn flush(&mut self) -> Result<Decoded, ConnectorError>;
}

/// How records are told apart in a stream of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Every line end ends a record: a file may be cut behind any of them.
    Lines,
    /// As `Lines`, but the file's first line says how the others are to be read.
    Head,
    /// As `Lines`, but a record may change what an earlier one has said: records are read in their order, and so are
    /// the files of a table.
    Sequence,
    /// A line end may lie inside a record: a file is read from its beginning to its end.
    Whole,
    /// Records say how long they are: so too, and behind a broken one nothing is found again.
    Lengths,
}

impl Framing {
    /// Whether stripes of one file may be read independently of one another.
    pub fn can_stripe(self) -> bool {
        matches!(self, Self::Lines | Self::Head)
    }

    /// Whether a record is a line.
    pub fn is_line(self) -> bool {
        !matches!(self, Self::Whole | Self::Lengths)
    }
}

/// What one call of [`RecordDecoder::decode`] used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Consumed {
    /// Bytes up to the end of the last record, line end included. 0 of some bytes: they hold no whole
    /// record, or the columns are full and must be flushed first (then `full` is set).
    pub bytes: usize,
    /// Good and bad records; blank lines are none.
    pub records: usize,
    /// No further record fits before a flush.
    pub full: bool,
}

/// Gathered rows and rejected records.
#[derive(Debug, Clone)]
pub struct Decoded {
    pub rows: RecordBatch,
    /// Per row, the position at which its record begins.
    pub origins: Vec<u64>,
    /// In the order of their origins.
    pub bad: Vec<BadSpan>,
    /// Of a format that reads a changelog: what each row's record does.
    pub marks: Option<Marks>,
}

/// A record that was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSpan {
    /// The position at which the record begins.
    pub origin: u64,
    /// The record, without its line end.
    pub raw: Vec<u8>,
    pub reason: BadReason,
    /// What is wrong, for a person: `column "amount": "12,5" is not a number`.
    pub message: String,
}
