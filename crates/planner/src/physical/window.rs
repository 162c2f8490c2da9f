//! Aggregates by window: each window's result once, final when it comes (semantics 1.1).
//!
//! Where an aggregate stands directly above the window that it groups by, rows keep the event time that
//! they have and no window is assigned: the operator adds them to panes. Where something in between
//! looks at the windows, or they come from an earlier aggregate, they are columns.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, Schema};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::functions::core::expr_fn::{get_field, named_struct};
use datafusion::logical_expr::{Expr, lit};
use thalweg_dataflow::plan::{
    AggregateCall, AggregateState, Changelog, Input, NodeId, Op, Phase, Properties, Window,
    WindowAggregate, WindowColumns, WindowSource,
};

use super::aggregate::{Grouping, by_key, finish_calls, place_calls};
use super::builder::{Builder, column};
use super::calls::Surroundings;
use super::grouped::{Bound, Peeled, bound_of_column, peel};
use super::input::{InputColumns, Projected};
use super::relation::arrow_schema;
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

/// How the rows of a window aggregate are made.
struct Windowed {
    source: WindowSource,
    window: Window,
    bound_type: DataType,
    keys: Vec<usize>,
}

impl Builder {
    /// Rows with their windows as columns.
    pub fn assign_window(&mut self, tvf: &WindowTvf) -> Result<NodeId, Fault> {
        let input = self.relation(tvf.input())?;
        self.check_time(input, tvf)?;
        let properties =
            changelog::assign_window(self.properties(input), tvf.window(), tvf.n_input_columns());
        let schema =
            arrow_schema(datafusion::logical_expr::UserDefinedLogicalNodeCore::schema(tvf));
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
        let Some((keys, calls)) = over_window(grouping, &peeled)? else {
            return Ok(None);
        };

        let tvf = peeled.tvf;
        let mut input = self.relation(tvf.input())?;
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
        let windowed = Windowed {
            source: WindowSource::Time(tvf.window()),
            window: tvf.window(),
            bound_type: crate::window::timestamp_type(tvf.zone()),
            keys,
        };
        let mut node = self.windowed(&inner, input, columns, windowed)?;
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
        if keys.iter().all(|(bound, _)| bound.is_none()) {
            return Ok(None);
        }
        let mut columns = InputColumns::new(over);
        let [start, end] = bound_exprs(over, &window);
        let start = columns.named(&start, Some(WindowNames::TABLE.start));
        let end = columns.named(&end, Some(WindowNames::TABLE.end));
        let (places, keys) = places(keys, &mut columns);
        let windowed = Windowed {
            source: WindowSource::Columns { start, end },
            window: window.window,
            bound_type: bound_type(over, &window),
            keys,
        };
        let node = self.windowed(grouping, input, columns, windowed)?;
        self.restore(node, &places, grouping).map(Some)
    }

    /// The operators of an aggregate by window: in two phases where nothing is retracted and every call can
    /// be merged, which saves the exchange most of its rows.
    fn windowed(
        &mut self,
        grouping: &Grouping<'_>,
        input: NodeId,
        mut columns: InputColumns<'_>,
        windowed: Windowed,
    ) -> Result<NodeId, Fault> {
        let Windowed {
            source,
            window,
            bound_type,
            keys,
        } = windowed;
        let placed = place_calls(grouping, &mut columns)?;
        let projected = columns.project(self, input)?;
        let changelog = self.properties(projected.node).changelog;
        let calls = finish_calls(
            self,
            placed,
            &projected,
            Surroundings {
                input: changelog,
                windowed: true,
            },
        )?;
        let bounds = match source {
            WindowSource::Time(_) => None,
            WindowSource::Columns { start, end } => Some([start, end]),
        };
        let properties =
            changelog::window_aggregate(self.properties(projected.node), window, bounds, &keys);
        let mut fields = key_fields(&projected, &keys, &bound_type);
        let mergeable = |call: &AggregateCall| call.state != AggregateState::Multiset;
        let is_two_phase = changelog == Changelog::AppendOnly && calls.iter().all(mergeable);

        let (edge, source, keys, phase) = if is_two_phase {
            let partial = self.partial(
                &projected,
                source.clone(),
                &keys,
                &calls,
                &fields,
                &properties,
            );
            let keys: Vec<usize> = (2..2 + keys.len()).collect();
            // Partial aggregates of windows by time are panes, from which the final one puts windows together.
            let merged = match source {
                WindowSource::Time(window) => WindowSource::Time(window),
                WindowSource::Columns { .. } => WindowSource::Columns { start: 0, end: 1 },
            };
            (by_key(partial, &keys), merged, keys, Phase::Final)
        } else {
            (by_key(projected.node, &keys), source, keys, Phase::Single)
        };
        fields.extend(calls.iter().map(|call| call.function.field()));
        let op = Op::WindowAggregate(WindowAggregate {
            window: source,
            keys,
            calls,
            phase,
        });
        Ok(self.add(op, vec![edge], Arc::new(Schema::new(fields)), properties))
    }

    fn partial(
        &mut self,
        input: &Projected,
        window: WindowSource,
        keys: &[usize],
        calls: &[AggregateCall],
        fields: &[Arc<Field>],
        result: &Properties,
    ) -> NodeId {
        let n_rows = Arc::new(Field::new("n_rows", DataType::Int64, false));
        let schema = Schema::new(fields.iter().cloned().chain([n_rows]).collect::<Vec<_>>());
        let properties = Properties {
            key: None,
            window: None,
            ..result.clone()
        };
        let (keys, calls) = (keys.to_vec(), calls.to_vec());
        let op = Op::WindowAggregate(WindowAggregate {
            window,
            keys,
            calls,
            phase: Phase::Partial,
        });
        self.add(
            op,
            vec![Input::forward(input.node)],
            Arc::new(schema),
            properties,
        )
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
    fn over_bounds(
        &self,
        expr: &Expr,
        node: NodeId,
    ) -> Result<thalweg_dataflow::table::ExprRef, Fault> {
        let fields = &self.node(node).schema.fields()[..2];
        let named = fields.iter().map(|f| (None, Arc::clone(f))).collect();
        let schema = DFSchema::new_with_metadata(named, Default::default())
            .map_err(Fault::from_datafusion)?;
        self.physical(expr, &schema, node)
    }
}

/// Keys and calls of the grouping over the window's input, the keys with the bound that they are. `None`
/// where one of them looks at the window in another way, or no key does.
#[expect(clippy::type_complexity)]
fn over_window(
    grouping: &Grouping<'_>,
    peeled: &Peeled<'_>,
) -> Result<Option<(Vec<(Option<Bound>, Expr)>, Vec<Expr>)>, Fault> {
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
    let grouped = keys.iter().any(|(bound, _)| bound.is_some());
    let looks = |expr: &Expr| peeled.uses_window(expr);
    if !grouped
        || keys
            .iter()
            .any(|(bound, key)| bound.is_none() && looks(key))
        || calls.iter().any(looks)
    {
        return Ok(None);
    }
    Ok(Some((keys, calls)))
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

/// Start, end and the keys, as both phases emit them.
fn key_fields(input: &Projected, keys: &[usize], bound_type: &DataType) -> Vec<Arc<Field>> {
    let WindowNames { start, end, .. } = WindowNames::TABLE;
    let bounds = [start, end].map(|name| Arc::new(Field::new(name, bound_type.clone(), false)));
    let keys = keys.iter().map(|&k| Arc::clone(&input.schema.fields()[k]));
    bounds.into_iter().chain(keys).collect()
}

/// Start and end of the window that columns of `over` carry; where one is missing, from the other.
fn bound_exprs(over: &DFSchema, window: &WindowColumns) -> [Expr; 2] {
    let at = |i: usize| Expr::Column(Column::from(over.qualified_field(i)));
    let (Window::Tumble { width } | Window::Hop { width, .. }) = window.window;
    let width = || lit(nanoseconds(width));
    let of_pair = |name: &str| window.pair.map(|pair| get_field(at(pair), name));
    let start = window.start.map(at).or_else(|| of_pair("start"));
    let end = window.end.map(at).or_else(|| of_pair("end"));
    let known = start
        .clone()
        .or_else(|| end.clone())
        .expect("a carried window has a bound");
    [
        start.unwrap_or_else(|| known.clone() - width()),
        end.unwrap_or_else(|| known.clone() + width()),
    ]
}

fn bound_type(over: &DFSchema, window: &WindowColumns) -> DataType {
    let any = window
        .start
        .or(window.end)
        .or(window.pair)
        .expect("a carried window has a bound");
    match over.field(any).data_type() {
        DataType::Struct(fields) => fields[0].data_type().clone(),
        bound => bound.clone(),
    }
}

fn last_instant() -> Expr {
    Expr::Column(Column::new_unqualified(WindowNames::TABLE.end)) - lit(nanoseconds(1))
}

fn pair() -> Expr {
    let bound = |name: &str| Expr::Column(Column::new_unqualified(name));
    let WindowNames { start, end, .. } = WindowNames::TABLE;
    named_struct(vec![lit("start"), bound(start), lit("end"), bound(end)])
}

fn nanoseconds(nanoseconds: i64) -> ScalarValue {
    ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano {
        months: 0,
        days: 0,
        nanoseconds,
    }))
}
