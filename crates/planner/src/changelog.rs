//! What is known of a changelog: append-only or updating, its key, window and event-time column.

use arrow::datatypes::Schema;
use datafusion::logical_expr::{Distinct, LogicalPlan};
use thalweg_dataflow::plan::{Changelog, Properties, Unnest, UnnestColumn, Window, WindowColumns};
use thalweg_dataflow::table::{ExprRef, SourceSpec};

use crate::bind::{RelationKind, StreamTable};
use crate::event_time::groups_by_window;
use crate::shape::{field_of, kept, plain, window_pair, without_zone};

/// Whether the relation may retract rows, seen from the logical plan: true where it is not known, as of
/// an intermediate stream. What a node really emits is in its [`Properties`].
pub fn may_update(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => match scan.source.downcast_ref::<StreamTable>() {
            Some(table) => table.kind == RelationKind::Stream || table.def.reads_changelog,
            None => true,
        },
        LogicalPlan::Aggregate(aggregate) => !groups_by_window(aggregate),
        LogicalPlan::Distinct(Distinct::All(_) | Distinct::On(_))
        | LogicalPlan::Join(_)
        | LogicalPlan::Window(_) => true,
        node => node.inputs().into_iter().any(may_update),
    }
}

/// Of a source. Its PRIMARY KEY is taken at its word: nobody enforces it on appended records.
pub fn source(spec: &SourceSpec, event_time: Option<usize>) -> Properties {
    Properties {
        changelog: Changelog::AppendOnly,
        key: (!spec.primary_key.is_empty()).then(|| spec.primary_key.clone()),
        time_column: event_time,
        ..Properties::default()
    }
}

/// Of a source of records that tell what became of rows: neither rows that stay nor rows that are taken back.
pub fn records(spec: &SourceSpec) -> Properties {
    debug_assert!(spec.updating, "else it is a source of rows");
    Properties {
        changelog: Changelog::Updating,
        ..Properties::default()
    }
}

/// Of the rows of a table, kept by this key.
pub fn normalize(key: &[usize], event_time: Option<usize>) -> Properties {
    Properties {
        changelog: Changelog::Updating,
        net: true,
        key: Some(key.to_vec()),
        time_column: event_time,
        ..Properties::default()
    }
}

/// Of a projection of rows of `schema` with `input`'s properties.
pub fn project(input: &Properties, schema: &Schema, exprs: &[ExprRef]) -> Properties {
    let place = |column: usize| exprs.iter().position(|e| kept(e, schema) == Some(column));
    let instant = |column: usize| {
        exprs
            .iter()
            .position(|e| plain(without_zone(e, schema)) == Some(column))
    };
    let window = input
        .window
        .and_then(|window| projected_window(window, schema, exprs));
    // Start and end of a window tell it equally well.
    let key_place = |column: usize| {
        let bound = || {
            input
                .window
                .filter(|w| is_bound(w, column))
                .and_then(|_| any_bound(window?))
        };
        place(column).or_else(bound)
    };
    let keeps_all = (0..schema.fields().len()).all(|column| place(column).is_some());
    Properties {
        changelog: input.changelog,
        // Two images of a row become one row where the column is gone in which they differ.
        net: input.net && keeps_all,
        key: input
            .key
            .as_ref()
            .and_then(|key| key.iter().map(|c| key_place(*c)).collect()),
        window,
        time_column: input.time_column.and_then(instant),
        silent_expiry: input.silent_expiry,
    }
}

/// What is known of the same rows in one way or in another.
pub fn either(a: Properties, b: Properties) -> Properties {
    Properties {
        net: a.net || b.net,
        key: a.key.or(b.key),
        window: a.window.or(b.window),
        time_column: a.time_column.or(b.time_column),
        ..a
    }
}

fn is_bound(window: &WindowColumns, column: usize) -> bool {
    [window.start, window.end, window.pair].contains(&Some(column))
}

fn any_bound(window: WindowColumns) -> Option<usize> {
    window.start.or(window.end).or(window.pair)
}

fn projected_window(
    window: WindowColumns,
    schema: &Schema,
    exprs: &[ExprRef],
) -> Option<WindowColumns> {
    let place =
        |is: &dyn Fn(&ExprRef) -> bool| exprs.iter().position(|e| is(without_zone(e, schema)));
    let bound = |column: Option<usize>, field: &str| {
        place(&|e| {
            plain(e).is_some() && plain(e) == column
                || window
                    .pair
                    .is_some_and(|pair| field_of(e) == Some((pair, field)))
        })
    };
    let start = bound(window.start, "start");
    let end = bound(window.end, "end");
    let pair = place(&|e| {
        let of_bounds =
            window_pair(e).is_some_and(|(s, e)| Some(s) == window.start && Some(e) == window.end);
        of_bounds || plain(e).is_some() && plain(e) == window.pair
    });
    let moved = WindowColumns {
        start,
        end,
        pair,
        window: window.window,
    };
    // A session's start does not tell when it closes.
    let is_known = match moved.window {
        Window::Session { .. } => moved.end.or(moved.pair).is_some(),
        _ => any_bound(moved).is_some(),
    };
    is_known.then_some(moved)
}

/// Of the union of all rows of the inputs.
pub fn union<'a>(inputs: impl Iterator<Item = &'a Properties>) -> Properties {
    let common = |a: &Properties, b: &Properties| Properties {
        changelog: if b.changelog == Changelog::Updating {
            b.changelog
        } else {
            a.changelog
        },
        net: false,
        key: None,
        window: a.window.filter(|w| Some(*w) == b.window),
        time_column: a.time_column.filter(|c| Some(*c) == b.time_column),
        silent_expiry: a.silent_expiry || b.silent_expiry,
    };
    inputs
        .cloned()
        .reduce(|a, b| common(&a, &b))
        .unwrap_or_default()
}

/// Of rows with their windows; the window's start and end stand at `start` and `start + 1`.
pub fn assign_window(input: &Properties, window: Window, start: usize) -> Properties {
    let key = input.key.clone().map(|mut key| {
        if matches!(window, Window::Hop { .. }) {
            key.push(start);
        }
        key
    });
    let columns = WindowColumns {
        start: Some(start),
        end: Some(start + 1),
        pair: None,
        window,
    };
    Properties {
        key,
        window: Some(columns),
        ..input.clone()
    }
}

/// Where an unnest repeats an input column.
pub fn repeated(unnest: &Unnest, column: usize) -> Option<usize> {
    unnest
        .columns
        .iter()
        .position(|(input, how)| *input == column && *how == UnnestColumn::Repeat)
}

/// Of unnested rows: two elements of a list may be equal, so the key is lost and changes are not net.
pub fn unnest(input: &Properties, unnest: &Unnest) -> Properties {
    let place = |column: usize| repeated(unnest, column);
    let window = input.window.and_then(|w| {
        let moved = WindowColumns {
            start: w.start.and_then(place),
            end: w.end.and_then(place),
            pair: w.pair.and_then(place),
            window: w.window,
        };
        any_bound(moved).map(|_| moved)
    });
    Properties {
        changelog: input.changelog,
        net: false,
        key: None,
        window,
        time_column: input.time_column.and_then(place),
        silent_expiry: input.silent_expiry,
    }
}

/// Of an aggregate whose output begins with its keys, given as positions in the input. A group keyed by
/// its rows' event time has that event time.
pub fn aggregate(input: &Properties, keys: &[usize]) -> Properties {
    let place = |column| keys.iter().position(|key| *key == column);
    let all = || (0..keys.len()).collect();
    Properties {
        changelog: Changelog::Updating,
        net: true,
        key: Some(inherited_key(input, place).unwrap_or_else(all)),
        window: None,
        time_column: input.time_column.and_then(place),
        silent_expiry: input.silent_expiry,
    }
}

/// Of an aggregate by windows: start, end, keys, calls. Each window is final when it comes.
/// `bounds` are the columns of the input that carry the window, where it has them already.
pub fn window_aggregate(
    input: &Properties,
    window: Window,
    bounds: Option<[usize; 2]>,
    keys: &[usize],
) -> Properties {
    let place = |column| match bounds {
        Some(bounds) if bounds.contains(&column) => Some(0),
        _ => keys
            .iter()
            .position(|key| *key == column)
            .map(|key| 2 + key),
    };
    // A row may have several windows, so that its own key does not tell them apart.
    let inherited = inherited_key(input, place).filter(|_| bounds.is_some());
    let all = || std::iter::once(0).chain(2..2 + keys.len()).collect();
    Properties {
        changelog: Changelog::AppendOnly,
        net: false,
        key: Some(inherited.unwrap_or_else(all)),
        window: Some(WindowColumns {
            start: Some(0),
            end: Some(1),
            pair: None,
            window,
        }),
        time_column: None,
        silent_expiry: input.silent_expiry,
    }
}

/// The input's key, where rows are grouped by all of it: other grouping columns then follow from it.
fn inherited_key(input: &Properties, place: impl Fn(usize) -> Option<usize>) -> Option<Vec<usize>> {
    input
        .key
        .as_ref()?
        .iter()
        .map(|column| place(*column))
        .collect()
}

/// Whether columns `unique` of a sink cannot repeat, as far as the key of its input tells: every column of
/// the key is among them, a window's bounds standing for each other. `None`: no key is known.
pub fn is_unique(input: &Properties, unique: &[usize]) -> Option<bool> {
    let key = input.key.as_ref()?;
    let has_window = input
        .window
        .is_some_and(|w| unique.iter().any(|c| is_bound(&w, *c)));
    let covers = |column: &usize| {
        unique.contains(column) || has_window && input.window.is_some_and(|w| is_bound(&w, *column))
    };
    Some(key.iter().all(covers))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field};
    use datafusion::physical_expr::expressions::Column;

    use super::*;

    const MINUTE: Window = Window::Tumble {
        width: 60_000_000_000,
    };

    fn schema(n: usize) -> Schema {
        let field = |i: usize| Field::new(format!("c{i}"), DataType::Int64, true);
        Schema::new((0..n).map(field).collect::<Vec<_>>())
    }

    fn columns(positions: &[usize]) -> Vec<ExprRef> {
        positions
            .iter()
            .map(|&i| Arc::new(Column::new("", i)) as ExprRef)
            .collect()
    }

    fn updating(key: &[usize]) -> Properties {
        Properties {
            changelog: Changelog::Updating,
            net: true,
            key: Some(key.to_vec()),
            ..Properties::default()
        }
    }

    #[test]
    fn changes_stay_net_only_with_every_column() {
        let all = project(&updating(&[0]), &schema(2), &columns(&[1, 0]));
        assert_eq!((all.net, all.key), (true, Some(vec![1])));
        let without_value = project(&updating(&[0]), &schema(2), &columns(&[0]));
        assert_eq!(
            (without_value.net, without_value.key),
            (false, Some(vec![0]))
        );
        let without_key = project(&updating(&[0]), &schema(2), &columns(&[1]));
        assert_eq!(without_key.key, None);
    }

    #[test]
    fn the_end_of_a_window_tells_it_as_well_as_its_start() {
        let result = window_aggregate(&Properties::default(), MINUTE, None, &[5]);
        assert_eq!(result.key, Some(vec![0, 2]));
        let by_end = project(&result, &schema(4), &columns(&[2, 1]));
        assert_eq!(by_end.key, Some(vec![1, 0]));
        assert_eq!(is_unique(&result, &[1, 2]), Some(true));
        assert_eq!(is_unique(&result, &[1]), Some(false));
        assert_eq!(is_unique(&Properties::default(), &[1]), None);
    }

    #[test]
    fn a_group_by_more_than_the_key_has_the_key() {
        assert_eq!(aggregate(&updating(&[1]), &[0, 1]).key, Some(vec![1]));
        assert_eq!(aggregate(&updating(&[1, 2]), &[0, 1]).key, Some(vec![0, 1]));
        // A row lies in several hops: its own key does not tell their results apart.
        let hops = window_aggregate(&updating(&[3]), MINUTE, None, &[3]);
        assert_eq!(hops.key, Some(vec![0, 2]));
        let carried = window_aggregate(&updating(&[3]), MINUTE, Some([0, 1]), &[3]);
        assert_eq!(carried.key, Some(vec![2]));
    }

    #[test]
    fn a_union_knows_what_all_inputs_know() {
        let timed = Properties {
            time_column: Some(1),
            ..Properties::default()
        };
        let both = union([&timed, &timed].into_iter());
        assert_eq!(
            (both.time_column, both.changelog),
            (Some(1), Changelog::AppendOnly)
        );
        let mixed = union([&timed, &updating(&[0])].into_iter());
        assert_eq!(
            (mixed.time_column, mixed.changelog, mixed.key),
            (None, Changelog::Updating, None)
        );
    }
}
