//! What only holds for sessions: they are known when they close, and each is of one key.

use std::collections::HashSet;

use datafusion::common::Column;
use datafusion::logical_expr::Expr;
use thalweg_dataflow::plan::{Changelog, Properties, Window, WindowColumns};

use super::bounds::Bound;
use super::peel::Peeled;
use crate::error::{Fault, FaultKind};
use crate::window::WindowTvf;

/// Rows with their session, or something of it that is known of no row before the session closes.
pub(super) fn unknown_yet(tvf: &WindowTvf) -> Fault {
    let fault = Fault::new(
        FaultKind::NotStreamable,
        "a row's session is known only when it has closed, and then there is its result alone",
    );
    fault
        .hint(
            "group by session(gap), or by window_start, window_end and the PARTITION BY columns directly above SESSION(…); \
             compute with its bounds in a query around that",
        )
        .at(tvf.descriptor())
}

/// A retraction may split a session, which would take all of its rows to find out (semantics 3.6).
pub(super) fn check_input(tvf: &WindowTvf, input: &Properties) -> Result<(), Fault> {
    if !tvf.is_session() || input.changelog == Changelog::AppendOnly {
        return Ok(());
    }
    let fault = Fault::new(
        FaultKind::NotStreamable,
        "a session window over an updating result: a row taken back could split a session",
    );
    Err(fault
        .hint("make sessions of the rows that come in, or group by tumble(width) or hop(slide, width)")
        .at(tvf.descriptor()))
}

/// Whether a grouping of SESSION(…) in FROM is one of its sessions: by all columns of PARTITION BY and by nothing
/// else, over all of their rows.
pub(super) fn check_partition(
    peeled: &Peeled<'_>,
    keys: &[(Option<Bound>, Expr)],
) -> Result<(), Fault> {
    let Some(partition) = peeled.tvf.partition() else {
        return Ok(());
    };
    let columns: HashSet<&Column> = partition.iter().flat_map(Expr::column_refs).collect();
    let of_partition = |expr: &Expr| expr.column_refs().iter().all(|c| columns.contains(c));
    let keys = || keys.iter().filter(|(bound, _)| bound.is_none());
    let fault =
        |message: String| Fault::new(FaultKind::NotStreamable, message).at(peeled.tvf.descriptor());
    if let Some(missing) = partition.iter().find(|p| keys().all(|(_, key)| key != *p)) {
        let message = format!(
            "the sessions of each {} are not grouped by it",
            name(missing)
        );
        return Err(fault(message).hint(format!(
            "add {} to GROUP BY, and bring sessions together in a query around that",
            name(missing)
        )));
    }
    if let Some((_, key)) = keys().find(|(_, key)| !of_partition(key)) {
        let message = format!(
            "sessions grouped by {}, by which they are not told apart",
            name(key)
        );
        return Err(fault(message).hint(
            "write SESSION(TABLE t PARTITION BY …) with the columns of GROUP BY, or group by session(gap)",
        ));
    }
    let asked = peeled.below.iter().flat_map(Expr::column_refs);
    if let Some(column) = asked.filter(|c| !columns.contains(c)).min() {
        let message = format!(
            "a condition on {} would take rows out of sessions that they hold together",
            column.name
        );
        return Err(fault(message).hint(
            "select the rows in a view or CTE and give that to SESSION, or count with FILTER (WHERE …)",
        ));
    }
    Ok(())
}

fn name(expr: &Expr) -> String {
    match expr {
        Expr::Column(column) => column.name.clone(),
        other => other.to_string(),
    }
}

/// Whether what is grouped by these bounds of a carried window is complete when a session ends: a start alone
/// may be that of sessions that end at any time.
pub(super) fn closes(window: &WindowColumns, mut bounds: impl Iterator<Item = Bound>) -> bool {
    let is_session = matches!(window.window, Window::Session { .. });
    !is_session || bounds.any(|b| b != Bound::Start)
}

/// Whether sessions with one end are one group, whatever their starts.
pub(super) fn only_by_end(window: &WindowColumns, mut bounds: impl Iterator<Item = Bound>) -> bool {
    let is_session = matches!(window.window, Window::Session { .. });
    is_session && bounds.all(|b| matches!(b, Bound::End | Bound::Time))
}
