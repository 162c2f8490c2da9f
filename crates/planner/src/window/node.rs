//! The logical node that both spellings of a window become.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use thalweg_dataflow::plan::Window;
use thalweg_dataflow::time::format_duration;

use super::timestamp_type;
use crate::error::Position;
use crate::event_time::EventTime;

/// Names of the three columns that a window adds to its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowNames {
    pub start: &'static str,
    pub end: &'static str,
    pub time: &'static str,
}

impl WindowNames {
    /// As a query sees them that names the window in FROM.
    pub const TABLE: Self = Self {
        start: "window_start",
        end: "window_end",
        time: "window_time",
    };
    /// Below a GROUP BY; out of the way of the input's columns, which may have come from a window in FROM.
    pub const GROUP: Self = Self {
        start: "__window_start",
        end: "__window_end",
        time: "__window_time",
    };

    fn all(self) -> [&'static str; 3] {
        [self.start, self.end, self.time]
    }
}

/// Gives each row its windows: the input's columns, then start, end and `end − 1 ns`. A row leaves
/// once for each window that it lies in, by its event time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WindowTvf {
    window: Window,
    names: WindowNames,
    input: LogicalPlan,
    /// The column that is meant to be the event time. Kept in the plan, though rows carry their event
    /// time beside their columns: a retraction finds its insertion's window by it (semantics 3.6).
    time: Option<Expr>,
    /// Where a DESCRIPTOR named that column.
    descriptor: Option<Position>,
    /// Of sessions in FROM: the columns of PARTITION BY. Sessions of a GROUP BY are those of its other keys.
    partition: Option<Vec<Expr>>,
    zone: Option<Arc<str>>,
    schema: DFSchemaRef,
}

impl WindowTvf {
    /// `zone` is the time zone of the three columns. Errors: the input has a column of such a name.
    pub fn try_new(
        window: Window,
        names: WindowNames,
        input: LogicalPlan,
        time: Option<Expr>,
        zone: Option<Arc<str>>,
    ) -> Result<Self> {
        let schema = Arc::new(schema(&input, names, zone.as_ref())?);
        Ok(Self {
            window,
            names,
            input,
            time,
            descriptor: None,
            partition: None,
            zone,
            schema,
        })
    }

    pub fn with_descriptor(mut self, position: Option<Position>) -> Self {
        self.descriptor = position;
        self
    }

    pub fn with_partition(mut self, partition: Option<Vec<Expr>>) -> Self {
        self.partition = partition;
        self
    }

    /// The same window over the event time that is known by now; `keep` says whether its column must stay.
    pub fn resolved(&self, event_time: &EventTime, keep: bool) -> Result<Self> {
        let time = self.time.clone().filter(|_| keep);
        let zone = event_time.zone.clone();
        let node = Self::try_new(self.window, self.names, self.input.clone(), time, zone)?;
        Ok(node
            .with_descriptor(self.descriptor)
            .with_partition(self.partition.clone()))
    }

    pub fn into_plan(self) -> LogicalPlan {
        LogicalPlan::Extension(Extension {
            node: Arc::new(self),
        })
    }

    /// The node that `plan` is, if it is one.
    pub fn of(plan: &LogicalPlan) -> Option<&Self> {
        let LogicalPlan::Extension(Extension { node }) = plan else {
            return None;
        };
        node.as_any().downcast_ref()
    }

    pub fn window(&self) -> Window {
        self.window
    }

    pub fn names(&self) -> WindowNames {
        self.names
    }

    pub fn input(&self) -> &LogicalPlan {
        &self.input
    }

    pub fn time(&self) -> Option<&Expr> {
        self.time.as_ref()
    }

    pub fn descriptor(&self) -> Option<Position> {
        self.descriptor
    }

    /// Of sessions in FROM, the columns by which they are told apart.
    pub fn partition(&self) -> Option<&[Expr]> {
        self.partition.as_deref()
    }

    pub fn is_session(&self) -> bool {
        matches!(self.window, Window::Session { .. })
    }

    pub fn zone(&self) -> Option<&Arc<str>> {
        self.zone.as_ref()
    }

    /// Number of columns before the three of the window.
    pub fn n_input_columns(&self) -> usize {
        self.input.schema().fields().len()
    }
}

fn is_column(expr: &Expr, column: &Column) -> bool {
    matches!(expr, Expr::Column(c) if c == column)
}

fn schema(input: &LogicalPlan, names: WindowNames, zone: Option<&Arc<str>>) -> Result<DFSchema> {
    let added = names.all().map(|name| {
        (
            None,
            Arc::new(Field::new(name, timestamp_type(zone), false)),
        )
    });
    let given = input
        .schema()
        .iter()
        .map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
    DFSchema::new_with_metadata(
        given.chain(added).collect(),
        input.schema().metadata().clone(),
    )
}

// The schema follows from the other fields and is not ordered; nothing sorts these nodes.
impl PartialOrd for WindowTvf {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for WindowTvf {
    fn name(&self) -> &str {
        "WindowTvf"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let partition = self.partition.iter().flatten();
        self.time.iter().chain(partition).cloned().collect()
    }

    // Predicates on other columns hold for all windows of a row or for none, and may go below; but a row that is left
    // out below a session may have held it together, unless all of the session's rows are left out.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let mut kept: HashSet<String> = self.names.all().into_iter().map(str::to_string).collect();
        if let Some(partition) = &self.partition {
            let is_partition = |column: &Column| partition.iter().any(|p| is_column(p, column));
            let others = self.input.schema().columns().into_iter();
            kept.extend(others.filter(|c| !is_partition(c)).map(|c| c.name));
        }
        kept
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.window {
            Window::Tumble { width } => write!(f, "WindowTvf: tumble {}", format_duration(width)),
            Window::Hop { slide, width } => {
                write!(
                    f,
                    "WindowTvf: hop {} by {}",
                    format_duration(width),
                    format_duration(slide)
                )
            }
            Window::Session { gap } => write!(f, "WindowTvf: session {}", format_duration(gap)),
        }
    }

    fn with_exprs_and_inputs(
        &self,
        mut exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let n_exprs = self.expressions().len();
        let (Some(input), true) = (inputs.pop(), inputs.is_empty() && exprs.len() == n_exprs)
        else {
            return internal_err!("a window has one input, its time and its partition");
        };
        let partition = exprs.split_off(usize::from(self.time.is_some()));
        let node = Self::try_new(
            self.window,
            self.names,
            input,
            exprs.pop(),
            self.zone.clone(),
        )?;
        Ok(node
            .with_descriptor(self.descriptor)
            .with_partition(self.partition.as_ref().map(|_| partition)))
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let n = self.n_input_columns();
        Some(vec![
            output_columns.iter().copied().filter(|&i| i < n).collect(),
        ])
    }
}
