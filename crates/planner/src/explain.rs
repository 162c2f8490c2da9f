//! EXPLAIN: the streaming plan as text, a tree for each sink.
//!
//! A node has two lines: what it does, and what is known of the rows that it emits. Ids are positions in the
//! job's graph, the same each time that the script is planned. A node that several read stands once.

mod expression;
mod op;
mod rows;

use std::collections::HashSet;
use std::fmt::Write;

use thalweg_dataflow::plan::{Exchange, Graph, Input, NodeId, OutputPort};
use thalweg_dataflow::time::format_duration;

use crate::script::Job;

/// The plan of a job, with its settings and what a user should know of it.
pub fn explain_job(job: &Job) -> String {
    let settings = &job.settings;
    let mut out = format!(
        "job: flush interval {}",
        format_duration(settings.flush_interval)
    );
    if let Some(rows) = settings.epoch_max_rows {
        let _ = write!(out, "; epoch of at most {rows} rows");
    }
    if let Some(parallelism) = settings.parallelism {
        let _ = write!(out, "; parallelism {parallelism}");
    }
    out.push('\n');
    for notice in &job.notices {
        let _ = writeln!(out, "notice: {notice}");
    }
    out + &explain(&job.graph)
}

/// The plan of a graph: its sinks, and whatever else nothing reads.
pub fn explain(graph: &Graph) -> String {
    let read: HashSet<NodeId> = graph
        .nodes
        .iter()
        .flat_map(|n| &n.inputs)
        .map(|i| i.node)
        .collect();
    let mut tree = Tree {
        graph,
        shown: HashSet::new(),
        out: String::new(),
    };
    let roots = (0..graph.nodes.len())
        .map(NodeId)
        .filter(|id| !read.contains(id));
    for root in roots {
        tree.node(root, 0, "");
    }
    op::readable(&tree.out)
}

struct Tree<'a> {
    graph: &'a Graph,
    shown: HashSet<NodeId>,
    out: String,
}

impl Tree<'_> {
    fn node(&mut self, id: NodeId, depth: usize, edge: &str) {
        let node = self.graph.node(id);
        let indent = "  ".repeat(depth);
        let number = format!("[{}]", id.0);
        if !self.shown.insert(id) {
            let _ = writeln!(
                self.out,
                "{indent}{number} {edge}{}, as above",
                op::title(&node.op)
            );
            return;
        }
        let _ = writeln!(
            self.out,
            "{indent}{number} {edge}{}",
            op::describe(self.graph, node)
        );
        let margin = " ".repeat(number.len() + 1);
        let _ = writeln!(self.out, "{indent}{margin}{}", rows::describe(node));
        for input in &node.inputs {
            self.node(input.node, depth + 1, &self.edge(input));
        }
    }

    /// How rows come to the reader, where that is not the plain way.
    fn edge(&self, input: &Input) -> String {
        let exchange = match &input.exchange {
            Exchange::Forward => String::new(),
            Exchange::Hash(key) | Exchange::Changelog { key, .. } => {
                let schema = &self.graph.node(input.node).schema;
                format!("exchange by {} ← ", rows::names(schema, key))
            }
            Exchange::Single => "exchange to one subtask ← ".into(),
        };
        match input.port {
            OutputPort::Rows => exchange,
            OutputPort::DeadLetter => format!("{exchange}rejected records ← "),
        }
    }
}
