//! One job: its sources, the queries over them, and its sinks.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::physical_expr::expressions::Literal;
use thalweg_dataflow::plan::{
    Exchange, Graph, Input, JobSettings, NodeId, Op, OutputPort, Properties,
};
use thalweg_dataflow::table::{BadData, ExprRef, SourceSpec, dead_letter_schema};

use super::Tables;
use super::builder::{Builder, Scanned, cast_column};
use super::prepare::Prepared;
use crate::bind::{BoundSink, SinkTarget};
use crate::catalog::TableDef;
use crate::changelog;
use crate::declare::check_changelog_key;
use crate::error::{Fault, FaultKind, Position};
use crate::script::{Job, RESULT_CONNECTOR};

/// A job, and the node of each statement's result.
pub(super) struct BuiltJob {
    pub job: Job,
    pub sinks: Vec<(usize, NodeId)>,
}

/// Builds the job of the queries at `group`.
pub(super) fn build(
    queries: &[Prepared],
    group: &[usize],
    tables: Tables<'_>,
) -> Result<BuiltJob, Vec<Fault>> {
    let queries: Vec<&Prepared> = group.iter().map(|&i| &queries[i]).collect();
    let mut builder = Builder::new();
    let mut written = Written::default();
    let mut faults = Vec::new();
    for source in sources(&queries) {
        if let Err(fault) = builder.source(&source, tables, &mut written) {
            faults.push(fault);
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut missing = BTreeSet::new();
    for prepared in &queries {
        let result = if prepared.streams.is_disjoint(&missing) {
            builder.query(prepared, &mut written)
        } else {
            Ok(())
        };
        faults.extend(result.err().map(|fault| fault.at(prepared.query.position)));
        if let SinkTarget::Stream(def) = &prepared.query.sink.target
            && !builder.streams.contains_key(&def.name)
        {
            missing.insert(def.name.clone());
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let sinks = builder.sinks(written)?;
    let mut settings = settings(&queries);
    if settings.flush_interval == 0 {
        settings.parallelism = Some(1);
        let notice = "flush interval 0: every row is an epoch of its own, at parallelism 1; meant for teaching and debugging";
        builder.notices.push(notice.to_string());
    }
    let mut uses = tables_of(&builder.graph);
    uses.extend(queries.iter().flat_map(|q| q.query.uses.iter().cloned()));
    let job = Job {
        uses,
        graph: builder.graph,
        settings,
        notices: builder.notices,
    };
    Ok(BuiltJob { job, sinks })
}

/// The tables that a graph reads or writes.
fn tables_of(graph: &Graph) -> BTreeSet<String> {
    let tables = graph.nodes.iter().filter_map(|node| match &node.op {
        Op::Source(spec) => Some(spec.table.clone()),
        Op::Sink(spec) if spec.connector != RESULT_CONNECTOR => Some(spec.table.clone()),
        _ => None,
    });
    tables.collect()
}

/// A table, and the columns of it that the job reads.
struct SourceNeed<'a> {
    def: &'a Arc<TableDef>,
    columns: Vec<usize>,
}

/// The tables that the queries read, in the order of their first use.
fn sources<'a>(queries: &[&'a Prepared]) -> Vec<SourceNeed<'a>> {
    let mut needs: Vec<SourceNeed<'a>> = Vec::new();
    for (name, (def, columns)) in queries.iter().flat_map(|q| &q.tables) {
        match needs.iter_mut().find(|need| need.def.name == *name) {
            Some(need) => need.columns.extend(columns),
            None => needs.push(SourceNeed {
                def,
                columns: columns.iter().copied().collect(),
            }),
        }
    }
    for need in &mut needs {
        if need.def.reads_changelog {
            need.columns.extend(&need.def.primary_key);
        }
        need.columns.sort_unstable();
        need.columns.dedup();
    }
    needs
}

/// Results to be written.
#[derive(Default)]
struct Written {
    targets: Vec<Target>,
    /// Statements that fill streams.
    filled: Vec<(usize, NodeId)>,
}

/// A table and all that goes there: one sink has its file or connection for itself.
struct Target {
    sink: BoundSink,
    position: Option<Position>,
    nodes: Vec<NodeId>,
    statements: Vec<usize>,
}

impl Written {
    fn add(&mut self, sink: &BoundSink, position: Option<Position>, node: NodeId) -> &mut Target {
        let shares =
            |t: &Target| t.sink.table == sink.table && !sink.is_result() && !t.sink.is_result();
        let at = self.targets.iter().position(shares).unwrap_or_else(|| {
            let (nodes, statements) = (vec![], vec![]);
            self.targets.push(Target {
                sink: sink.clone(),
                position,
                nodes,
                statements,
            });
            self.targets.len() - 1
        });
        self.targets[at].nodes.push(node);
        &mut self.targets[at]
    }
}

impl Builder {
    fn source(
        &mut self,
        need: &SourceNeed<'_>,
        tables: Tables<'_>,
        written: &mut Written,
    ) -> Result<(), Fault> {
        let def = need.def;
        check_changelog_key(def)?;
        let spec = (tables.source)(def, &need.columns).map_err(|fault| fault.at(def.position))?;
        let spec = Arc::new(spec);
        let time = def
            .event_time
            .and_then(|time| need.columns.iter().position(|c| *c == time));
        let properties = match spec.updating {
            true => changelog::records(&spec),
            false => changelog::source(&spec, time),
        };
        let schema = spec.emitted_schema();
        let source = self.add(Op::Source(Arc::clone(&spec)), vec![], schema, properties);
        let normalized = spec
            .updating
            .then(|| self.normalized(source, &spec, def, time));
        let node = normalized.as_ref().map_or(source, |n| n.table);
        self.sources.insert(
            def.name.clone(),
            Scanned {
                node,
                columns: need.columns.clone(),
            },
        );
        let keeper = normalized.map(|n| n.rows);
        for rejects in [Some(source), keeper].into_iter().flatten() {
            self.dead_letters(rejects, &spec, tables, written)
                .map_err(|fault| fault.at(def.position))?;
        }
        Ok(())
    }

    /// Writes the rejected records of a source, or of what keeps its rows, into the table that it names.
    fn dead_letters(
        &mut self,
        source: NodeId,
        spec: &SourceSpec,
        tables: Tables<'_>,
        written: &mut Written,
    ) -> Result<(), Fault> {
        let BadData::DeadLetter(table) = &spec.bad_data else {
            return Ok(());
        };
        let sink = (tables.sink)(table)?;
        let from = dead_letter_schema();
        let exprs = sink
            .schema
            .fields()
            .iter()
            .map(|field| match from.index_of(field.name()) {
                Ok(i) => Ok(cast_column(&from, i, field.data_type())),
                Err(_) => null(field.data_type()),
            });
        let exprs = exprs.collect::<Result<Vec<_>, Fault>>()?;
        let edge = Input {
            node: source,
            port: OutputPort::DeadLetter,
            exchange: Exchange::Forward,
        };
        let letters = self.add(
            Op::Project(exprs),
            vec![edge],
            Arc::clone(&sink.schema),
            Properties::default(),
        );
        written.add(&sink, None, letters);
        Ok(())
    }

    fn query(&mut self, prepared: &Prepared, written: &mut Written) -> Result<(), Fault> {
        self.ttl = prepared.query.settings.updating_ttl;
        let query = &prepared.query;
        let node = self.relation(&query.plan)?;
        match &query.sink.target {
            SinkTarget::Stream(def) => {
                let node = self.fit(node, &query.sink.schema);
                self.streams.insert(def.name.clone(), node);
                written.filled.push((query.statement, node));
            }
            SinkTarget::Connector { .. } => {
                let target = written.add(&query.sink, query.position, node);
                target.statements.push(query.statement);
            }
        }
        Ok(())
    }

    /// One sink a table, and the sink of each statement. Errors: the results that cannot be written.
    fn sinks(&mut self, written: Written) -> Result<Vec<(usize, NodeId)>, Vec<Fault>> {
        let mut placed = written.filled;
        let mut faults = Vec::new();
        for Target {
            sink,
            position,
            nodes,
            statements,
        } in written.targets
        {
            let input = match nodes.as_slice() {
                [only] => *only,
                several => {
                    let renamed: Vec<_> =
                        several.iter().map(|n| self.fit(*n, &sink.schema)).collect();
                    self.unite(&renamed, Arc::clone(&sink.schema))
                }
            };
            match self.sink(input, &sink) {
                Ok(node) => {
                    placed.extend(statements.into_iter().map(|statement| (statement, node)))
                }
                Err(fault) => faults.push(fault.at(position)),
            }
        }
        if faults.is_empty() {
            Ok(placed)
        } else {
            Err(faults)
        }
    }
}

fn null(data_type: &arrow::datatypes::DataType) -> Result<ExprRef, Fault> {
    let value = ScalarValue::try_from(data_type)
        .map_err(|e| Fault::new(FaultKind::Internal, e.to_string()))?;
    Ok(Arc::new(Literal::new(value)))
}

/// Of connected queries, the strictest.
fn settings(queries: &[&Prepared]) -> JobSettings {
    let all = queries.iter().map(|q| q.query.settings.job.clone());
    let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
    let stricter = |a: JobSettings, b: JobSettings| JobSettings {
        flush_interval: a.flush_interval.min(b.flush_interval),
        epoch_max_rows: least(a.epoch_max_rows, b.epoch_max_rows),
        epoch_max_bytes: a.epoch_max_bytes.min(b.epoch_max_bytes),
        checkpoint_interval: a.checkpoint_interval.min(b.checkpoint_interval),
        parallelism: a.parallelism.into_iter().chain(b.parallelism).min(),
        state_memory: a.state_memory.max(b.state_memory),
    };
    all.reduce(stricter).unwrap_or_default()
}
