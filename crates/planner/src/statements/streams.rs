//! Intermediate streams: each is filled by one query of the script and read by others, in no circle.

use std::collections::{BTreeMap, BTreeSet};

use super::ScriptBinder;
use crate::bind::{BoundQuery, RelationKind, SinkTarget, scans};
use crate::error::{Fault, FaultKind, Position};

/// The intermediate stream that a query fills.
pub fn filled_stream(query: &BoundQuery) -> Option<&str> {
    match &query.sink.target {
        SinkTarget::Stream(def) => Some(&def.name),
        SinkTarget::Connector { .. } => None,
    }
}

/// The intermediate streams that a query reads.
pub fn read_streams(query: &BoundQuery) -> BTreeSet<String> {
    let streams = scans(&query.plan)
        .into_iter()
        .filter(|table| table.kind == RelationKind::Stream);
    streams.map(|table| table.def.name.clone()).collect()
}

impl ScriptBinder {
    pub(super) fn check_streams(&mut self) {
        let fillers = self.check_fillers();
        self.check_readers(&fillers);
        self.check_circles(&fillers);
    }

    /// The query that fills each stream; more than one is a fault.
    fn check_fillers(&mut self) -> BTreeMap<String, usize> {
        let mut fillers: BTreeMap<String, usize> = BTreeMap::new();
        for (index, query) in self.out.queries.iter().enumerate() {
            let Some(stream) = filled_stream(query) else {
                continue;
            };
            let Some(&first) = fillers.get(stream) else {
                fillers.insert(stream.to_string(), index);
                continue;
            };
            let message = format!(
                "intermediate stream \"{stream}\" is filled {}already",
                at(self.out.queries[first].position)
            );
            let fault = Fault::new(FaultKind::NotStreamable, message).at(query.position);
            self.out.faults.push(
                fault.hint("fill it by one INSERT with UNION ALL, or give the table a connector"),
            );
        }
        fillers
    }

    fn check_readers(&mut self, fillers: &BTreeMap<String, usize>) {
        let mut read = BTreeSet::new();
        for query in self.out.queries.iter().chain(&self.out.explained) {
            for stream in read_streams(query) {
                if read.insert(stream.clone()) && !self.filled.contains(&stream) {
                    let message = format!("nothing fills the intermediate stream \"{stream}\"");
                    let fault = Fault::new(FaultKind::NotStreamable, message).at(query.position);
                    let hint = format!(
                        "INSERT INTO {stream} in the same script, or give the table a connector"
                    );
                    self.out.faults.push(fault.hint(hint));
                }
            }
        }
        // A query that did not bind may have read any of them.
        if self.query_failed {
            return;
        }
        for (stream, &filler) in fillers.iter().filter(|(stream, _)| !read.contains(*stream)) {
            let message = format!("nothing reads the intermediate stream \"{stream}\"");
            let fault =
                Fault::new(FaultKind::NotStreamable, message).at(self.out.queries[filler].position);
            self.out.faults.push(fault.hint(
                "give the table a connector to keep what is written, or read it in the same script",
            ));
        }
    }

    fn check_circles(&mut self, fillers: &BTreeMap<String, usize>) {
        let reads: BTreeMap<&String, BTreeSet<String>> = fillers
            .iter()
            .map(|(stream, &filler)| (stream, read_streams(&self.out.queries[filler])))
            .collect();
        for (stream, &filler) in fillers {
            if let Some(path) = circle(stream, &reads) {
                let names: Vec<_> = path.iter().map(|name| format!("\"{name}\"")).collect();
                let message = match names.as_slice() {
                    [only] => format!("intermediate stream {only} feeds itself"),
                    names => format!("intermediate streams {} feed each other", names.join(", ")),
                };
                let position = self.out.queries[filler].position;
                self.out
                    .faults
                    .push(Fault::new(FaultKind::NotStreamable, message).at(position));
                // The others lie on the same circle.
                return;
            }
        }
    }
}

fn at(position: Option<Position>) -> String {
    position.map_or_else(String::new, |Position { line, column }| {
        format!("at {line}:{column} ")
    })
}

/// A way from `start` back to it, where there is one.
fn circle<'a>(
    start: &'a String,
    reads: &'a BTreeMap<&String, BTreeSet<String>>,
) -> Option<Vec<&'a String>> {
    let mut seen = BTreeSet::new();
    let mut paths = vec![vec![start]];
    while let Some(path) = paths.pop() {
        let last = path.last().expect("a path begins somewhere");
        for next in reads.get(*last).into_iter().flatten() {
            if next == start {
                return Some(path);
            }
            if seen.insert(next) {
                paths.push([path.as_slice(), &[next]].concat());
            }
        }
    }
    None
}
