//! Aggregates by window: each window's result once, final when it comes (semantics 1.1).
//!
//! Where an aggregate stands directly above the window that it groups by, rows keep the event time that
//! they have and no window is assigned: the operator adds them to panes. Where something in between
//! looks at the windows, or they come from an earlier aggregate, they are columns.

use std::sync::Arc;

use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, UserDefinedLogicalNodeCore};
use thalweg_dataflow::plan::{Changelog, Input, NodeId, Op, WindowSource};
use thalweg_dataflow::table::ExprRef;

use super::aggregate::Grouping;
use super::bounds::{Bound, bound_exprs, bound_of_column, bound_type, last_instant, pair};
use super::builder::{Builder, column};
use super::input::InputColumns;
use super::peel::{Peeled, peel};
use super::phases::WindowKeys;
use super::relation::arrow_schema;
use super::session;
use crate::changelog;
use crate::error::{Fault, FaultKind};
use crate::window::{WindowNames, WindowTvf};

/// Where a grouping expression of the query is in the output of the window aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Bound(Bound),
    /// The *n*th key.
    Key(usize),
}

impl Builder {
    /// Rows with their windows as columns.
    pub fn assign_window(&mut self, tvf: &WindowTvf) -> Result<NodeId, Fault> {
        if tvf.is_session() {
            return Err(session::unknown_yet(tvf));
        }
        let input = self.relation(tvf.input())?;
        self.check_time(input, tvf)?;
        let properties =
            changelog::assign_window(self.properties(input), tvf.window(), tvf.n_input_columns());
        let schema = arrow_schema(UserDefinedLogicalNodeCore::schema(tvf));
        Ok(self.add(
            Op::AssignWindow(tvf.window()),
            vec![Input::forward(input)],
            schema,
            properties,
        ))
    }

    /// A retraction must find the window of its insertion (semantics 3.6).
    fn check_time(&self, input: NodeId, tvf: &WindowTvf) -> Result<(), Fault> {
        let properties = self.properties(input);
        if properties.changelog == Changelog::AppendOnly || properties.time_column.is_some() {
            return Ok(());
        }
        let fault = Fault::new(
            FaultKind::NotStreamable,
            "a window over an updating result whose event time is not a column of the row",
        );
        Err(fault.hint("a retracted row must fall into the window that it was counted in: keep the event time among the columns and GROUP BY keys below, or use the window there").at(tvf.descriptor()))
    }

    /// The aggregate, where it groups by a window below it that nothing in between looks at.
    pub fn window_of_time(&mut self, grouping: &Grouping<'_>) -> Result<Option<NodeId>, Fault> {
        let Some(peeled) = peel(grouping.input).map_err(Fault::from_datafusion)? else {
            return Ok(None);
        };
        let Some(OverWindow { keys, calls }) = over_window(grouping, &peeled)? else {
            return Ok(None);
        };

        let tvf = peeled.tvf;
        session::check_partition(&peeled, &keys)?;
        let mut input = self.relation(tvf.input())?;
        session::check_input(tvf, self.properties(input))?;
        self.check_time(input, tvf)?;
        for predicate in &peeled.below {
            let predicate = self.physical(predicate, tvf.input().schema(), input)?;
            input = self.filter(input, predicate);
        }
        let mut columns = InputColumns::new(tvf.input().schema());
        let (places, keys) = places(keys, &mut columns);
        let inner = Grouping {
            input: tvf.input(),
            keys: grouping.keys.clone(),
            calls,
            schema: grouping.schema,
        };
        let by = WindowKeys {
            source: WindowSource::Time(tvf.window()),
            window: tvf.window(),
            bound_type: crate::window::timestamp_type(tvf.zone()),
            keys,
        };
        let mut node = self.windowed(&inner, input, columns, by)?;
        for predicate in &peeled.above {
            let predicate = self.over_bounds(predicate, node)?;
            node = self.filter(node, predicate);
        }
        self.restore(node, &places, grouping).map(Some)
    }

    /// The aggregate, where it groups by a window that its input carries in columns.
    pub fn window_of_columns(
        &mut self,
        grouping: &Grouping<'_>,
        input: NodeId,
    ) -> Result<Option<NodeId>, Fault> {
        let Some(window) = self.properties(input).window else {
            return Ok(None);
        };
        let over = grouping.input.schema();
        let keys: Vec<_> = grouping
            .keys
            .iter()
            .map(|key| (bound_of_column(key, over, &window), key.clone()))
            .collect();
        let bounds = || keys.iter().filter_map(|(bound, _)| *bound);
        if bounds().next().is_none() || !session::closes(&window, bounds()) {
            return Ok(None);
        }
        let only_by_end = session::only_by_end(&window, bounds());
        let mut columns = InputColumns::new(over);
        let [mut start, end] = bound_exprs(over, &window);
        if only_by_end {
            start = end.clone();
        }
        let start = columns.named(&start, Some(WindowNames::TABLE.start));
        let end = columns.named(&end, Some(WindowNames::TABLE.end));
        let (places, keys) = places(keys, &mut columns);
        let by = WindowKeys {
            source: WindowSource::Columns { start, end },
            window: window.window,
            bound_type: bound_type(over, &window),
            keys,
        };
        let node = self.windowed(grouping, input, columns, by)?;
        self.restore(node, &places, grouping).map(Some)
    }

    /// The columns that the query asked for, in its order, from start, end, keys and calls.
    fn restore(
        &mut self,
        node: NodeId,
        places: &[Place],
        grouping: &Grouping<'_>,
    ) -> Result<NodeId, Fault> {
        let from = Arc::clone(&self.node(node).schema);
        let n_keys = places.iter().filter(|p| matches!(p, Place::Key(_))).count();
        let mut exprs = Vec::with_capacity(places.len() + grouping.calls.len());
        for place in places {
            exprs.push(match place {
                Place::Bound(Bound::Start) => column(&from, 0),
                Place::Bound(Bound::End) => column(&from, 1),
                Place::Bound(Bound::Time) => self.over_bounds(&last_instant(), node)?,
                Place::Bound(Bound::Pair) => self.over_bounds(&pair(), node)?,
                Place::Key(n) => column(&from, 2 + n),
            });
        }
        exprs.extend((0..grouping.calls.len()).map(|i| column(&from, 2 + n_keys + i)));
        let restored = self.project(node, exprs, arrow_schema(grouping.schema));
        // A result row's event time is its window's end − 1 ns (semantics 3.4).
        if let Some(time) = places.iter().position(|p| *p == Place::Bound(Bound::Time)) {
            self.graph.nodes[restored.0].properties.time_column = Some(time);
        }
        Ok(restored)
    }

    /// An expression over a window's start and end, which are the first columns of `node`.
    fn over_bounds(&self, expr: &Expr, node: NodeId) -> Result<ExprRef, Fault> {
        let fields = &self.node(node).schema.fields()[..2];
        let named = fields.iter().map(|f| (None, Arc::clone(f))).collect();
        let schema = DFSchema::new_with_metadata(named, Default::default())
            .map_err(Fault::from_datafusion)?;
        self.physical(expr, &schema, node)
    }
}

/// A grouping told in the columns of the window below it.
struct OverWindow {
    /// Each with the bound that it is.
    keys: Vec<(Option<Bound>, Expr)>,
    calls: Vec<Expr>,
}

/// `None` where a key or a call looks at the window other than by being its bound, or no key does.
fn over_window(grouping: &Grouping<'_>, peeled: &Peeled<'_>) -> Result<Option<OverWindow>, Fault> {
    let translate = |exprs: &[Expr]| {
        let translated = exprs
            .iter()
            .map(|e| peeled.translate(e, grouping.input.schema()));
        translated
            .collect::<Result<Vec<_>, _>>()
            .map_err(Fault::from_datafusion)
    };
    let (keys, calls) = (translate(&grouping.keys)?, translate(&grouping.calls)?);
    let keys: Vec<_> = keys
        .into_iter()
        .map(|key| (peeled.bound(&key), key))
        .collect();
    let groups = keys.iter().any(|(bound, _)| bound.is_some());
    let looks = keys
        .iter()
        .any(|(bound, key)| bound.is_none() && peeled.uses_window(key))
        || calls.iter().any(|call| peeled.uses_window(call));
    Ok((groups && !looks).then_some(OverWindow { keys, calls }))
}

/// Places of the grouping expressions, and the positions of those that are keys.
fn places(
    keys: Vec<(Option<Bound>, Expr)>,
    columns: &mut InputColumns<'_>,
) -> (Vec<Place>, Vec<usize>) {
    let mut positions = Vec::new();
    let place = |(bound, key): (Option<Bound>, Expr)| match bound {
        Some(bound) => Place::Bound(bound),
        None => {
            positions.push(columns.position(&key));
            Place::Key(positions.len() - 1)
        }
    };
    let places = keys.into_iter().map(place).collect();
    (places, positions)
}
