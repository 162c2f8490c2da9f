//! Which queries make one job: those connected through a source, a stream or a sink.

use std::collections::HashMap;

use thalweg_dataflow::table::BadData;

use super::prepare::Prepared;
use crate::bind::SinkTarget;

/// What two queries of one job have in common.
#[derive(PartialEq, Eq, Hash)]
enum Shared<'a> {
    Table(&'a str),
    Stream(&'a str),
    /// Rows of one table are written by one sink, which has its file or connection for itself.
    Sink(&'a str),
}

/// Positions of the queries of each job, in their order.
pub(super) fn connect(queries: &[Prepared]) -> Vec<Vec<usize>> {
    let mut groups: Vec<usize> = (0..queries.len()).collect();
    let mut first: HashMap<Shared<'_>, usize> = HashMap::new();
    for (i, query) in queries.iter().enumerate() {
        for shared in shared(query) {
            let other = *first.entry(shared).or_insert(i);
            let (a, b) = (groups[i], groups[other]);
            let (low, high) = (a.min(b), a.max(b));
            groups
                .iter_mut()
                .filter(|g| **g == high)
                .for_each(|g| *g = low);
        }
    }
    let members = |leader: usize| {
        (0..queries.len())
            .filter(|i| groups[*i] == leader)
            .collect::<Vec<_>>()
    };
    (0..queries.len())
        .filter(|i| groups[*i] == *i)
        .map(members)
        .collect()
}

fn shared(prepared: &Prepared) -> Vec<Shared<'_>> {
    let sink = &prepared.query.sink;
    let written = match &sink.target {
        SinkTarget::Stream(def) => Some(Shared::Stream(&def.name)),
        // Each bare SELECT has a result of its own.
        SinkTarget::Connector { .. } if sink.is_result() => None,
        SinkTarget::Connector { .. } => Some(Shared::Sink(&sink.table)),
    };
    let tables = prepared.tables.iter().flat_map(|(name, (def, _))| {
        let letters = match &def.bad_data {
            BadData::DeadLetter(table) => Some(Shared::Sink(table)),
            BadData::Fail | BadData::Drop => None,
        };
        [Some(Shared::Table(name)), letters].into_iter().flatten()
    });
    let streams = prepared.streams.iter().map(|name| Shared::Stream(name));
    tables.chain(streams).chain(written).collect()
}
