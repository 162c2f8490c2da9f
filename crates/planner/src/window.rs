//! Time windows in SQL, in both spellings: functions in GROUP BY (`tumble(width)`,
//! `hop(slide, width)`, `session(gap)`) and tables in FROM (`TUMBLE(t, DESCRIPTOR(ts), width)`).
//!
//! The binder registers what [`scalar_udfs`] and [`relation_planners`] give. Both spellings become a
//! [`WindowTvf`] node, the first by a rewrite of the bound plan ([`crate::rewrite`]): DataFusion's
//! optimizer never sees a window function, which it would take for an ordinary scalar one.

mod function;
mod node;
mod relation;
mod width;

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::planner::RelationPlanner;

pub use function::{WindowCall, window_call};
pub use node::{WindowNames, WindowTvf};
pub(crate) use relation::check_descriptor;

/// `tumble`, `hop` and `session`, to be registered with the binder.
pub fn scalar_udfs() -> Vec<Arc<ScalarUDF>> {
    function::all()
}

/// Planners of `TUMBLE(…)`, `HOP(…)` and `SESSION(…)` in FROM.
pub fn relation_planners() -> Vec<Arc<dyn RelationPlanner>> {
    vec![Arc::new(relation::WindowRelations)]
}

/// Which window function was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum WindowKind {
    Tumble,
    Hop,
    Session,
}

impl WindowKind {
    const ALL: [Self; 3] = [Self::Tumble, Self::Hop, Self::Session];

    fn name(self) -> &'static str {
        match self {
            Self::Tumble => "tumble",
            Self::Hop => "hop",
            Self::Session => "session",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

/// The type of a window's start and end: in the time zone of the event time, where that has one.
pub(crate) fn timestamp_type(zone: Option<&Arc<str>>) -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, zone.cloned())
}

/// The type of a window as one value: a struct with `start` and `end`, nullable as DataFusion's
/// `named_struct` has them.
fn pair_type(zone: Option<&Arc<str>>) -> DataType {
    let field = |name| Field::new(name, timestamp_type(zone), true);
    DataType::Struct(vec![field("start"), field("end")].into())
}
