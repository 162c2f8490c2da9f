//! The second line of a node: what is known of the rows that it emits.

use arrow::datatypes::Schema;
use thalweg_dataflow::plan::{
    Aggregate, Changelog, Node, Op, Phase, Properties, Window, WindowColumns,
};
use thalweg_dataflow::table::{BadData, EventTimeSource, SourceSpec, WatermarkSpec};
use thalweg_dataflow::time::format_duration;

use super::expression::expression;

pub(super) fn describe(node: &Node) -> String {
    let Properties {
        changelog,
        net,
        key,
        window,
        time_column,
        silent_expiry,
    } = &node.properties;
    let is_records = matches!(&node.op, Op::Source(spec) if spec.updating);
    let mut facts = vec![match (changelog, net) {
        _ if is_records => "records of changes".to_string(),
        (Changelog::AppendOnly, _) => "append-only".to_string(),
        (Changelog::Updating, true) => "updating, net".to_string(),
        (Changelog::Updating, false) => "updating".to_string(),
    }];
    match key.as_deref() {
        None => {}
        Some([]) => facts.push("one row".into()),
        Some(key) => facts.push(format!("key {}", names(&node.schema, key))),
    }
    if let Some(window) = window {
        facts.push(format!("window {}", carried(&node.schema, window)));
    }
    if let Some(time) = time_column {
        facts.push(format!("event time {}", node.schema.field(*time).name()));
    }
    match &node.op {
        Op::Source(spec) => facts.extend(source(spec, time_column.is_some())),
        Op::Aggregate(Aggregate { phase, .. }) if *phase == Phase::Partial => {}
        Op::Aggregate(Aggregate { keys, ttl, .. }) if !keys.is_empty() => facts.push(kept(*ttl)),
        Op::Normalize(normalize) => facts.push(kept(normalize.ttl)),
        _ => {}
    }
    if *silent_expiry {
        facts.push("misses what expired silently above".into());
    }
    facts.join("; ")
}

fn kept(ttl: Option<i64>) -> String {
    ttl.map_or_else(
        || "no ttl".into(),
        |ttl| format!("ttl {}", format_duration(ttl)),
    )
}

fn source(spec: &SourceSpec, time_is_column: bool) -> Vec<String> {
    let mut facts = Vec::new();
    match &spec.event_time {
        EventTimeSource::Expr(expr) if !time_is_column => {
            facts.push(format!("event time {}", expression(expr)))
        }
        EventTimeSource::Expr(_) => {}
        EventTimeSource::Connector => facts.push("event time from the connector".into()),
    }
    facts.push(match &spec.watermark {
        WatermarkSpec::Lag(lag) => format!("watermark {} behind", format_duration(*lag)),
        WatermarkSpec::Expr(expr) => format!("watermark {}", expression(expr)),
    });
    facts.push(match spec.idle_timeout {
        Some(timeout) => format!("idle after {}", format_duration(timeout)),
        None => "never idle".into(),
    });
    facts.push(match &spec.bad_data {
        BadData::Fail => "bad data fails".into(),
        BadData::Drop => "bad data is dropped".into(),
        BadData::DeadLetter(table) => format!("bad data goes to \"{table}\""),
    });
    facts
}

fn carried(schema: &Schema, window: &WindowColumns) -> String {
    let columns: Vec<usize> = [window.start, window.end, window.pair]
        .into_iter()
        .flatten()
        .collect();
    format!("{} in {}", width(window.window), names(schema, &columns))
}

pub(super) fn width(window: Window) -> String {
    match window {
        Window::Tumble { width } => format!("tumble {}", format_duration(width)),
        Window::Hop { slide, width } => format!(
            "hop {} by {}",
            format_duration(width),
            format_duration(slide)
        ),
        Window::Session { gap } => format!("session {}", format_duration(gap)),
    }
}

/// `(a, b)`.
pub(super) fn names(schema: &Schema, columns: &[usize]) -> String {
    let names: Vec<&str> = columns
        .iter()
        .map(|&c| schema.field(c).name().as_str())
        .collect();
    format!("({})", names.join(", "))
}
