//! The contract between the runtime and connectors.
//!
//! The runtime knows no connector by name: it is given a [`ConnectorFactory`] that makes a
//! [`Source`] or [`Sink`] from a table's specification.
//!
//! **Legal order of calls.** Of a source: `splits` once, then `open` for each split that the
//! subtask owns, then `read` until it answers [`Read::End`]; `offset` and `is_caught_up` at any time between two
//! reads. Of a [`LiveSource`], beside that: `new_splits` again and again, each split it finds being opened like the
//! others, and `committed` after each commit.
//! Of a sink: `open` once for each subtask, then `write` any number of times and `end_epoch` once an
//! epoch, in turn; `finish` once, after the last `end_epoch`. Nothing is called after an error.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use arrow::array::{BinaryArray, Int8Array, Int64Array};
use arrow::buffer::ScalarBuffer;
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::marks::ChangeOp;
use thalweg_dataflow::table::{SinkSpec, SourceSpec};

use crate::pairing::PairedChanges;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes sources and sinks by their specification.
pub trait ConnectorFactory: Send + Sync {
    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError>;
    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError>;
}

/// A unit of source parallelism, named so that the name means the same after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SplitId(pub Arc<str>);

/// A position in a split, as bytes that only its connector reads. Ordered by reading, not by bytes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Offset(pub Vec<u8>);

pub trait Source: Send + Sync {
    /// Lists the splits. `parallelism` is how many subtasks will read: a source whose data has no
    /// natural splits may make about that many. Errors: what is missing or unreachable.
    fn splits(&self, parallelism: usize) -> Result<Vec<SplitId>, ConnectorError>;

    /// Bytes that there are to read in all, for progress; `None`: unknown or without end.
    fn total_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether the splits are one sequence: read one after another in the order listed, never side by side.
    /// So files of a changelog are, in which a later one changes rows of an earlier one.
    fn is_sequence(&self) -> bool {
        false
    }

    /// The local files that it reads, as far as they are known before reading. What has none reads no files.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// A reader at `start`, or at the split's beginning. `subtask` is the index of the reading subtask.
    fn open(
        &self,
        split: &SplitId,
        start: Option<&Offset>,
        subtask: usize,
    ) -> Result<Box<dyn SplitReader>, ConnectorError>;

    /// What the source needs to know and to say while it is read; `None`: its splits are those that it had at first,
    /// and nobody outside wants to hear how far they have been read.
    fn live(&self) -> Option<&dyn LiveSource>;
}

/// A source in a system that changes while it is read, and that is told how far reading has come.
pub trait LiveSource: Send + Sync {
    /// Waits until there are splits that neither [`Source::splits`] nor an earlier call has listed; the source decides
    /// how often it looks. They are read from their beginning, from the next barrier on. Errors end the job. Not
    /// asked of a bounded source. Cancel-safe.
    fn new_splits(&self) -> BoxFuture<'_, Result<Vec<SplitId>, ConnectorError>>;

    /// An epoch has been committed, or a last one has ended in good order, after which splits stand at these offsets:
    /// all before them has been processed and written. Does not block; nothing depends on it.
    fn committed(&self, positions: &[(SplitId, Offset)]);
}

pub trait SplitReader: Send {
    /// The next records: at most `max_rows` of them, as soon as there are any. Cancel-safe: a read
    /// dropped before it is ready has consumed nothing.
    fn read(&mut self, max_rows: usize) -> BoxFuture<'_, Result<Read, ConnectorError>>;

    /// The position after the last record that a read has returned, good and bad alike.
    fn offset(&self) -> Offset;

    /// Whether there was nothing more to read when the outside world was last asked, and it can be asked: only then
    /// does silence say that the split is idle (semantics 2.2).
    fn is_caught_up(&self) -> bool;
}

#[expect(
    clippy::large_enum_variant,
    reason = "one a batch, and nearly always the large one"
)]
pub enum Read {
    Records(Records),
    /// Records are gone that were there to be read, and the table says to go on behind them.
    Lost(Lost),
    /// A bounded split is exhausted; there will be no further read.
    End,
}

/// Records that could not be read any more.
#[derive(Debug, Clone)]
pub struct Lost {
    /// How many at most; 0: unknown.
    pub n_records: u64,
    /// What happened, for a person.
    pub message: String,
}

/// Decoded records, in the schema `physical ++ metadata` of the source.
pub struct Records {
    pub rows: RecordBatch,
    /// Event times in ns, where the connector has them.
    pub times: Option<ScalarBuffer<i64>>,
    /// What each record does to the row of its key, where the format reads a changelog.
    pub marks: Option<Marks>,
    /// Where each row came from: enough to name it in an error.
    pub origins: Arc<dyn Origins>,
    /// Records that could not be decoded. They count against `max_rows`.
    pub bad: Vec<BadRecord>,
    /// Bytes read from outside for these records.
    pub n_bytes: u64,
}

/// What is known of each record of a keyed changelog besides its columns, one value a row.
#[derive(Debug, Clone)]
pub struct Marks {
    /// Numbers of [`ChangeOp`].
    pub ops: Int8Array,
    /// Where the change stands in the log of its database; larger is later.
    pub positions: Int64Array,
    /// When it was made there, ns since the UTC epoch.
    pub source_times: Int64Array,
    /// Bits of the columns that keep their value, lowest first; `None` where no row has any.
    pub unavailable: Option<BinaryArray>,
}

impl Marks {
    /// Of rows whose records tell no more than what was done.
    pub fn of(ops: impl IntoIterator<Item = ChangeOp>) -> Self {
        let ops = Int8Array::from_iter_values(ops.into_iter().map(|op| op as i8));
        let unknown = Int64Array::new_null(ops.len());
        Self {
            positions: unknown.clone(),
            source_times: unknown,
            unavailable: None,
            ops,
        }
    }
}

/// Names the origin of rows of one batch; asked only about rows that the runtime rejects after
/// they were decoded (a missing event time, a generated column that cannot be computed).
pub trait Origins: Send + Sync {
    fn bad_record(&self, row: usize, reason: BadReason, message: String) -> BadRecord;
}

/// A record that was rejected, and all that is needed to find it again.
#[derive(Debug, Clone)]
pub struct BadRecord {
    pub reason: BadReason,
    /// What is wrong, for a person: `column "amount": "12,5" is not a number`.
    pub message: String,
    /// The bytes as they came, where they are still at hand.
    pub raw: Option<Vec<u8>>,
    pub topic: Arc<str>,
    pub partition: i32,
    /// In the connector's own units: bytes in a file, records in a topic.
    pub offset: i64,
    /// Where it is, for a person: `orders.ndjson, line 17 (byte 1893)`.
    pub place: String,
}

/// Why a record was rejected: the label of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BadReason {
    /// Not JSON, not CSV, cut off.
    Malformed,
    /// A value that does not fit its column's type.
    Type,
    /// A number outside its column's range or precision.
    Range,
    /// A null or nothing where a value is needed.
    Missing,
    /// Bytes that are not UTF-8.
    Encoding,
    /// An event time that is absent, unreadable or too far ahead.
    EventTime,
    /// Larger than a record may be.
    TooLarge,
    /// A change that says too little to be applied to what is stored.
    Inapplicable,
}

impl BadReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Type => "type",
            Self::Range => "range",
            Self::Missing => "missing",
            Self::Encoding => "encoding",
            Self::EventTime => "event_time",
            Self::TooLarge => "too_large",
            Self::Inapplicable => "inapplicable",
        }
    }
}

pub trait Sink: Send + Sync {
    /// Whether several subtasks may write at once (each into a file or partition of its own).
    fn is_parallel(&self) -> bool;

    /// The local file whose content `open` replaces: a job that also reads it, or writes it twice, is refused.
    fn replaces(&self) -> Option<PathBuf> {
        None
    }

    fn open(&self, subtask: usize) -> Result<Box<dyn SinkWriter>, ConnectorError>;
}

/// What a sink is given: plain rows from an append-only result, or paired changes.
pub enum SinkInput<'a> {
    Rows(&'a RecordBatch),
    Changes(&'a PairedChanges),
}

pub trait SinkWriter: Send {
    /// Takes rows or changes of the current epoch. Append-only rows come as they arise, changes of
    /// an updating result at the epoch's end.
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>>;

    /// The epoch is complete: everything written so far becomes visible.
    fn end_epoch(&mut self, epoch: u64) -> BoxFuture<'_, Result<(), ConnectorError>>;

    /// The job ends in good order: close what is open.
    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>>;

    /// Encoded bytes written so far, before any compression; what is not encoded counts nothing.
    fn n_bytes(&self) -> u64;
}

/// What went wrong at the edge, in terms of what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// An option or a file's content does not allow this; another attempt changes nothing.
    #[error("{message}")]
    Configuration {
        message: String,
        hint: Option<String>,
    },
    /// The outside world failed: a disk, a network, a permission.
    #[error("{what}: {source}")]
    Io {
        what: String,
        #[source]
        source: std::io::Error,
    },
    /// A value that the sink's format cannot express.
    #[error("{0}")]
    Encode(String),
    #[error("columns could not be handled: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
}

impl ConnectorError {
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io {
            what: what.into(),
            source,
        }
    }

    pub fn configuration(message: impl Into<String>, hint: Option<String>) -> Self {
        Self::Configuration {
            message: message.into(),
            hint,
        }
    }
}
