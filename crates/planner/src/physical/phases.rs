//! The operators of an aggregate by window: in two phases where nothing is retracted, every call can be
//! merged and windows are the same for all rows; otherwise in one.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use thalweg_dataflow::plan::{
    AggregateCall, Changelog, Input, NodeId, Op, Phase, Properties, Window, WindowAggregate,
    WindowSource,
};

use super::aggregate::{Grouping, by_key, finish_calls, mergeable, place_calls};
use super::builder::Builder;
use super::calls::Surroundings;
use super::input::{InputColumns, Projected};
use crate::changelog;
use crate::error::Fault;
use crate::window::WindowNames;

/// By what a window aggregate groups.
pub(super) struct WindowKeys {
    pub source: WindowSource,
    pub window: Window,
    /// The type of start and end.
    pub bound_type: DataType,
    /// Positions in the projection below.
    pub keys: Vec<usize>,
}

impl Builder {
    /// Appends the aggregate of `grouping`, whose keys stand in `columns`.
    pub fn windowed(
        &mut self,
        grouping: &Grouping<'_>,
        input: NodeId,
        mut columns: InputColumns<'_>,
        by: WindowKeys,
    ) -> Result<NodeId, Fault> {
        let placed = place_calls(grouping, &mut columns)?;
        let projected = columns.project(self, input)?;
        let changelog = self.properties(projected.node).changelog;
        let around = Surroundings {
            input: changelog,
            windowed: true,
        };
        let calls = finish_calls(self, placed, &projected, around)?;

        let is_session = matches!(by.window, Window::Session { .. })
            && matches!(by.source, WindowSource::Time(_));
        let appends = changelog == Changelog::AppendOnly;
        if appends && calls.iter().all(mergeable) && !is_session {
            Ok(self.two_phases(&projected, by, calls))
        } else {
            Ok(self.one_phase(&projected, by, calls))
        }
    }

    fn one_phase(
        &mut self,
        input: &Projected,
        by: WindowKeys,
        calls: Vec<AggregateCall>,
    ) -> NodeId {
        let properties = by.properties(self.properties(input.node));
        let schema = by.schema(input, calls.iter().map(|call| call.function.field()));
        let edge = by_key(input.node, &by.keys);
        let WindowKeys { source, keys, .. } = by;
        let op = WindowAggregate {
            window: source,
            keys,
            calls,
            phase: Phase::Single,
        };
        self.add(Op::WindowAggregate(op), vec![edge], schema, properties)
    }

    /// Aggregates before the exchange and merges after it, which saves the exchange most of its rows.
    fn two_phases(
        &mut self,
        input: &Projected,
        by: WindowKeys,
        calls: Vec<AggregateCall>,
    ) -> NodeId {
        let properties = by.properties(self.properties(input.node));
        let n_rows = Arc::new(Field::new("n_rows", DataType::Int64, false));
        let schema = by.schema(input, [n_rows]);
        let result = by.schema(input, calls.iter().map(|call| call.function.field()));
        let WindowKeys { source, keys, .. } = by;
        let merged_keys: Vec<usize> = (2..2 + keys.len()).collect();
        // Partial aggregates of windows by time are panes, from which the final one puts windows together.
        let merged = match &source {
            WindowSource::Time(window) => WindowSource::Time(*window),
            WindowSource::Columns { .. } => WindowSource::Columns { start: 0, end: 1 },
        };

        let op = WindowAggregate {
            window: source,
            keys,
            calls: calls.clone(),
            phase: Phase::Partial,
        };
        let panes = Properties {
            key: None,
            window: None,
            ..properties.clone()
        };
        let partial = self.add(
            Op::WindowAggregate(op),
            vec![Input::forward(input.node)],
            schema,
            panes,
        );
        let edge = by_key(partial, &merged_keys);
        let op = WindowAggregate {
            window: merged,
            keys: merged_keys,
            calls,
            phase: Phase::Final,
        };
        self.add(Op::WindowAggregate(op), vec![edge], result, properties)
    }
}

impl WindowKeys {
    fn properties(&self, input: &Properties) -> Properties {
        let bounds = match self.source {
            WindowSource::Time(_) => None,
            WindowSource::Columns { start, end } => Some([start, end]),
        };
        changelog::window_aggregate(input, self.window, bounds, &self.keys)
    }

    /// Start, end and the keys, then `rest`.
    fn schema(&self, input: &Projected, rest: impl IntoIterator<Item = Arc<Field>>) -> SchemaRef {
        let WindowNames { start, end, .. } = WindowNames::TABLE;
        let bounds =
            [start, end].map(|name| Arc::new(Field::new(name, self.bound_type.clone(), false)));
        let keys = self
            .keys
            .iter()
            .map(|&k| Arc::clone(&input.schema.fields()[k]));
        Arc::new(Schema::new(
            bounds
                .into_iter()
                .chain(keys)
                .chain(rest)
                .collect::<Vec<_>>(),
        ))
    }
}
