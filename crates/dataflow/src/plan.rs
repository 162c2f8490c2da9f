//! The physical plan: a graph of operator descriptions, with what is known of every edge.
//!
//! The planner makes it, the runtime builds operators from it, `EXPLAIN` prints it. Columns are
//! positional. Nodes stand in topological order: a node's inputs have smaller ids.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;

use crate::table::{ExprRef, SinkSpec, SourceSpec};

/// Position of a node in [`Graph::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// A whole job: every source, operator and sink of one script that belong together.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
}

impl Graph {
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// Appends a node and gives its id. Its inputs must already be there.
    pub fn add(
        &mut self,
        op: Op,
        inputs: Vec<Input>,
        schema: SchemaRef,
        properties: Properties,
    ) -> NodeId {
        debug_assert!(inputs.iter().all(|i| i.node.0 < self.nodes.len()));
        self.nodes.push(Node {
            op,
            inputs,
            schema,
            properties,
        });
        NodeId(self.nodes.len() - 1)
    }
}

#[derive(Debug, Clone)]
pub struct Node {
    pub op: Op,
    pub inputs: Vec<Input>,
    /// What the node emits.
    pub schema: SchemaRef,
    pub properties: Properties,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    pub node: NodeId,
    pub port: OutputPort,
    pub exchange: Exchange,
}

impl Input {
    pub fn forward(node: NodeId) -> Self {
        Self {
            node,
            port: OutputPort::Rows,
            exchange: Exchange::Forward,
        }
    }

    pub fn hash(node: NodeId, key: Vec<usize>) -> Self {
        Self {
            node,
            port: OutputPort::Rows,
            exchange: Exchange::Hash(key),
        }
    }
}

/// Which stream of a node an edge carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputPort {
    Rows,
    /// Rejected records of a source, in [`crate::table::dead_letter_schema`].
    DeadLetter,
}

/// How rows travel from the subtasks of one node to those of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchange {
    /// To the subtask of the same index.
    Forward,
    /// To the subtask that owns the virtual partition of these columns (positions in the input).
    Hash(Vec<usize>),
    /// As `Hash`, but a row whose mark says [`crate::marks::ChangeOp::Truncate`] goes to every subtask: it
    /// concerns all keys. `op` is the position of that mark.
    Changelog { key: Vec<usize>, op: usize },
    /// To one subtask.
    Single,
}

/// What an operator does. Expressions and positions refer to the (first) input's schema.
#[derive(Debug, Clone)]
pub enum Op {
    Source(Arc<SourceSpec>),
    /// Keeps the row of each key of a source's changelog and emits, at every barrier, how the table has
    /// changed. Output: the columns of a record, without marks.
    Normalize(Normalize),
    /// Constant rows, emitted once.
    Values(RecordBatch),
    Filter(ExprRef),
    /// One expression per output column.
    Project(Vec<ExprRef>),
    Unnest(Unnest),
    /// All rows of all inputs; schemas are equal.
    Union,
    /// Appends `window_start`, `window_end` and `window_time` (timestamps in ns); a row becomes one
    /// row per window that it lies in.
    AssignWindow(Window),
    /// Groups by window and key; emits a window once, when the watermark reaches its end.
    /// Output: `window_start`, `window_end`, the keys, the calls.
    WindowAggregate(WindowAggregate),
    /// Groups by key; emits the net change of the result at every barrier. Output: keys, calls.
    Aggregate(Aggregate),
    Sink(Arc<SinkSpec>),
}

impl Op {
    /// The kind of operator, as EXPLAIN and the metrics name it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Source(_) => "source",
            Self::Normalize(_) => "rows by key",
            Self::Values(_) => "values",
            Self::Filter(_) => "filter",
            Self::Project(_) => "project",
            Self::Unnest(_) => "unnest",
            Self::Union => "union",
            Self::AssignWindow(_) => "assign window",
            Self::WindowAggregate(w) if w.phase == Phase::Partial => "partial window aggregate",
            Self::WindowAggregate(_) => "window aggregate",
            Self::Aggregate(a) if a.phase == Phase::Partial => "partial aggregate",
            Self::Aggregate(_) => "aggregate",
            Self::Sink(_) => "sink",
        }
    }
}

/// Time windows (semantics 3.1). All widths in nanoseconds, above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Window {
    /// Aligned to the UTC epoch, as those of `Hop`.
    Tumble {
        width: i64,
    },
    Hop {
        slide: i64,
        width: i64,
    },
    /// From a row to `gap` past the last one, for each key by itself: where it lies follows from the rows, so only an
    /// aggregation knows it.
    Session {
        gap: i64,
    },
}

/// Turns list columns into rows, as SQL's `unnest` in a SELECT list or in FROM does: lists of one row
/// run in parallel, the shorter ones padded with nulls.
#[derive(Debug, Clone)]
pub struct Unnest {
    /// Per output column: its input column and how it is expanded.
    pub columns: Vec<(usize, UnnestColumn)>,
    /// Whether a row whose lists are all empty or null stays, with nulls.
    pub keep_empty: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnnestColumn {
    /// Repeated for every row that the lists give.
    Repeat,
    /// A list, expanded this many levels deep.
    List { depth: usize },
    /// One field of a struct column.
    Field(usize),
}

/// Where the window of a row comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WindowSource {
    /// From its event time.
    Time(Window),
    /// From columns that an earlier window made: start and end.
    Columns { start: usize, end: usize },
}

#[derive(Debug, Clone)]
pub struct WindowAggregate {
    pub window: WindowSource,
    pub keys: Vec<usize>,
    pub calls: Vec<AggregateCall>,
    pub phase: Phase,
}

impl WindowAggregate {
    /// Of an aggregation by session, ns. It has a single phase.
    pub fn gap(&self) -> Option<i64> {
        match self.window {
            WindowSource::Time(Window::Session { gap }) => Some(gap),
            _ => None,
        }
    }
}

/// A keyed changelog made into retractions and insertions (semantics 6).
#[derive(Debug, Clone)]
pub struct Normalize {
    /// The table: what its columns are, and what becomes of records that cannot be applied.
    pub spec: Arc<SourceSpec>,
    /// Positions of the PRIMARY KEY among the columns of a record.
    pub key: Vec<usize>,
    /// Nanoseconds of event time that a row outlives its last change; `None`: for ever.
    pub ttl: Option<i64>,
}

#[derive(Debug, Clone)]
pub struct Aggregate {
    pub keys: Vec<usize>,
    pub calls: Vec<AggregateCall>,
    /// Nanoseconds that a key's state outlives its last row; `None`: for ever.
    pub ttl: Option<i64>,
    pub phase: Phase,
}

/// How a two-phase aggregation is split. A partial aggregate gathers the rows of an epoch and is empty at every
/// barrier; the final one merges what it emits and holds what stays.
///
/// A partial window aggregate emits, per pane and key, the columns `window_start`, `window_end`, the keys,
/// `n_rows`, and the state columns of every call. Panes are windows where those come from columns,
/// otherwise the longest stretches of time that no window's start or end cuts. A partial updating
/// aggregate emits, at least once per key that it saw, the keys, `n_rows`, `first_seen` (event time, ns), and
/// the state columns; the event time of its row is that of the last row which it stands for.
///
/// The planned schema of a partial node ends before the state columns, which are the runtime's affair. The
/// final node has the window or the ttl of the partial one, and its calls, which point into *that* one's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Single,
    Partial,
    Final,
}

/// One aggregate function over columns of its input.
#[derive(Debug, Clone)]
pub struct AggregateCall {
    pub function: Arc<AggregateFunctionExpr>,
    /// Positions of the arguments, then of the ORDER BY keys of the call; none for `count(*)`.
    pub args: Vec<usize>,
    /// Position of a boolean column: rows where it is not true do not count.
    pub filter: Option<usize>,
    pub state: AggregateState,
}

/// What is kept per group for an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateState {
    /// Numbers in columns, from which a retraction subtracts.
    Columns(ColumnAggregate),
    /// DataFusion's accumulator; its input has no retractions.
    Accumulator,
    /// The values themselves with their multiplicities, from which the result is recomputed.
    Multiset,
}

/// Aggregates with state of fixed width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnAggregate {
    Count,
    Sum,
    Avg,
    /// Only over input without retractions.
    Min,
    /// Only over input without retractions.
    Max,
    VarSamp,
    VarPop,
    StddevSamp,
    StddevPop,
    BoolAnd,
    BoolOr,
}

/// What is known of the stream that a node emits.
#[derive(Debug, Clone, Default)]
pub struct Properties {
    pub changelog: Changelog,
    /// An epoch's changes are already net: no two of them concern the same row.
    pub net: bool,
    /// Columns that identify a row of the result, where known. `Some(vec![])`: at most one row.
    pub key: Option<Vec<usize>>,
    /// The columns that carry a row's window, where rows belong to one.
    pub window: Option<WindowColumns>,
    /// The column that equals the row's event time, where one does.
    pub time_column: Option<usize>,
    /// TTLs of keyed state upstream that expires without a deletion in the output, for `EXPLAIN`.
    pub silent_expiry: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Changelog {
    #[default]
    AppendOnly,
    Updating,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowColumns {
    pub start: Option<usize>,
    pub end: Option<usize>,
    /// A struct column with the fields `start` and `end`.
    pub pair: Option<usize>,
    pub window: Window,
}

/// Settings of a job, fixed when it is created.
#[derive(Debug, Clone)]
pub struct JobSettings {
    /// `pipeline.update-aggregate-flush-interval`, nanoseconds; 0: an epoch per source row.
    pub flush_interval: i64,
    /// `pipeline.epoch_max_rows`.
    pub epoch_max_rows: Option<u64>,
    /// `pipeline.epoch_max_bytes`.
    pub epoch_max_bytes: u64,
    /// `checkpoint.interval`, nanoseconds: how often state is committed.
    pub checkpoint_interval: i64,
    /// `pipeline.parallelism`; `None`: the number of cores.
    pub parallelism: Option<usize>,
    /// `state.memory`: bytes of decoded state to keep in memory, over all operators.
    pub state_memory: u64,
}

impl Default for JobSettings {
    fn default() -> Self {
        Self {
            flush_interval: 1_000_000_000,
            epoch_max_rows: None,
            epoch_max_bytes: 256 << 20,
            checkpoint_interval: 10_000_000_000,
            parallelism: None,
            state_memory: 1 << 30,
        }
    }
}
