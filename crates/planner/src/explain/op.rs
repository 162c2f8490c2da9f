//! The first line of a node: what it does.

use arrow::datatypes::Schema;
use thalweg_dataflow::plan::{
    Aggregate, AggregateCall, AggregateState, Graph, Node, Op, Phase, Unnest, UnnestColumn,
    WindowAggregate, WindowSource,
};
use thalweg_dataflow::table::{ExprRef, SinkSpec, SourceSpec};

use super::expression::expression;
use super::rows::{names, width};
use crate::script::RESULT_CONNECTOR;

/// The kind of node, and which one where it has a name.
pub(super) fn title(op: &Op) -> String {
    match op {
        Op::Source(spec) => format!("source \"{}\"", spec.table),
        Op::Normalize(normalize) => format!("rows of \"{}\"", normalize.spec.table),
        Op::Sink(spec) if spec.connector == RESULT_CONNECTOR => "result".into(),
        Op::Sink(spec) => format!("sink \"{}\"", spec.table),
        op => op.name().into(),
    }
}

pub(super) fn describe(graph: &Graph, node: &Node) -> String {
    let input = node
        .inputs
        .first()
        .map(|input| graph.node(input.node).schema.as_ref());
    let empty = Schema::empty();
    let input = input.unwrap_or(&empty);
    let title = title(&node.op);
    match &node.op {
        Op::Source(spec) => format!("{title}: {}", source(spec)),
        Op::Normalize(normalize) => {
            format!("{title}: the latest by {}", names(input, &normalize.key))
        }
        Op::Values(rows) => format!("{title}: {} rows", rows.num_rows()),
        Op::Filter(predicate) => format!("{title}: {}", expression(predicate)),
        Op::Project(exprs) => format!("{title}: {}", projection(exprs, &node.schema)),
        Op::Unnest(unnest) => format!("{title}: {}", unnested(unnest, input)),
        Op::Union => title,
        Op::AssignWindow(window) => format!("{title}: {}", width(*window)),
        Op::WindowAggregate(aggregate) => {
            format!("{title}: {}", window_aggregate(graph, node, aggregate))
        }
        Op::Aggregate(Aggregate {
            keys, calls, phase, ..
        }) => {
            let under = called_over(graph, node, *phase);
            let over = if keys.is_empty() {
                "all rows".to_string()
            } else {
                format!("by {}", names(input, keys))
            };
            format!("{title} {over}{}", called(calls, under))
        }
        Op::Sink(spec) => format!("{title}: {}", sink(spec)),
    }
}

fn source(spec: &SourceSpec) -> String {
    let carried = match &spec.format {
        Some(format) => format!("{}, {format}", spec.connector),
        None => spec.connector.clone(),
    };
    let bounded = if spec.bounded { "bounded" } else { "unbounded" };
    let decoded = if spec.physical.fields().is_empty() {
        "nothing".into()
    } else {
        all_names(&spec.physical)
    };
    format!("{carried}, {bounded}; decodes {decoded}")
}

fn sink(spec: &SinkSpec) -> String {
    let mut facts = Vec::new();
    if spec.connector != RESULT_CONNECTOR {
        facts.push(match &spec.format {
            Some(format) => format!("{}, {format}", spec.connector),
            None => spec.connector.clone(),
        });
        facts.push("at least once".into());
    }
    facts.push(all_names(&spec.schema));
    if spec.updating {
        facts.push(match spec.key.as_deref() {
            None => "changes paired by whole rows".into(),
            Some([]) => "changes paired: one row".into(),
            Some(key) => format!("changes paired by {}", names(&spec.schema, key)),
        });
    }
    facts.join("; ")
}

fn all_names(schema: &Schema) -> String {
    let names: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
    names.join(", ")
}

fn projection(exprs: &[ExprRef], schema: &Schema) -> String {
    let named = exprs.iter().zip(schema.fields()).map(|(expr, field)| {
        let text = expression(expr);
        if readable(&text) == readable(field.name()) {
            text
        } else {
            format!("{text} AS {}", quoted(field.name()))
        }
    });
    let named: Vec<_> = named.collect();
    if named.is_empty() {
        "no columns".into()
    } else {
        named.join(", ")
    }
}

/// With `count(*)` under its own name and not DataFusion's.
pub(super) fn readable(text: &str) -> String {
    text.replace("count(Int64(1))", "count(*)")
}

/// A name that is more than a word stands in quotes.
fn quoted(name: &str) -> String {
    let is_word = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_word {
        name.to_string()
    } else {
        format!("\"{name}\"")
    }
}

fn unnested(unnest: &Unnest, input: &Schema) -> String {
    let column = |(column, how): &(usize, UnnestColumn)| {
        let name = input.field(*column).name();
        match how {
            UnnestColumn::Repeat => None,
            UnnestColumn::List { depth: 1 } => Some(name.clone()),
            UnnestColumn::List { depth } => Some(format!("{name} {depth} deep")),
            UnnestColumn::Field(field) => Some(format!("{name}.{field}")),
        }
    };
    let lists: Vec<_> = unnest.columns.iter().filter_map(column).collect();
    let empty = if unnest.keep_empty {
        "; rows without elements stay"
    } else {
        ""
    };
    format!("{}{empty}", lists.join(", "))
}

fn window_aggregate(graph: &Graph, node: &Node, aggregate: &WindowAggregate) -> String {
    let WindowAggregate {
        window,
        keys,
        calls,
        phase,
    } = aggregate;
    let input = &graph.node(node.inputs[0].node).schema;
    let window = match window {
        WindowSource::Time(window) => format!("{} of event time", width(*window)),
        WindowSource::Columns { start, end } => format!("window {}", names(input, &[*start, *end])),
    };
    let keys = if keys.is_empty() {
        String::new()
    } else {
        format!(" by {}", names(input, keys))
    };
    let under = called_over(graph, node, *phase);
    format!("{window}{keys}{}", called(calls, under))
}

/// What the calls of an aggregate point into: for a final one, that is the input of its partial one.
fn called_over<'a>(graph: &'a Graph, node: &Node, phase: Phase) -> &'a Schema {
    let input = graph.node(node.inputs[0].node);
    let under = match phase {
        Phase::Final => input.inputs.first().map(|i| graph.node(i.node)),
        Phase::Single | Phase::Partial => None,
    };
    &under.unwrap_or(input).schema
}

fn called(calls: &[AggregateCall], input: &Schema) -> String {
    let call = |call: &AggregateCall| {
        let filter = call
            .filter
            .map(|f| format!(" filter {}", input.field(f).name()));
        format!(
            "{}{} in {}",
            call.function.name(),
            filter.unwrap_or_default(),
            state(call.state)
        )
    };
    let calls: Vec<_> = calls.iter().map(call).collect();
    if calls.is_empty() {
        String::new()
    } else {
        format!(": {}", calls.join(", "))
    }
}

fn state(state: AggregateState) -> &'static str {
    match state {
        AggregateState::Columns(_) => "columns",
        AggregateState::Accumulator => "accumulator",
        AggregateState::Multiset => "multiset",
    }
}
