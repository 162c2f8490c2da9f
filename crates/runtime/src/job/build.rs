//! From a physical plan to tasks: nodes are fused into stages, stages get subtasks, subtasks get
//! channels.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_dataflow::plan::{Exchange, Graph, JobSettings, Node, NodeId, Op, OutputPort, Phase};
use thalweg_dataflow::table::SinkSpec;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::chain::{Chain, Measured};
use crate::connector::{Sink, Source, SplitId};
use crate::error::RuntimeError;
use crate::exchange::{Inputs, Receiver, Router, channel, owned};
use crate::metrics::JobMetrics;
use crate::operators::{self, OperatorContext};
use crate::reject::Rejected;

use super::budget::EpochBudget;
use super::conflicts::{self, Files};
use super::coordinator::Ack;
use super::discovery::{SourceNode, SourceSubtask};
use super::ingest::Ingest;
use super::sink::SinkStage;
use super::source::{SourceTask, Splits};
use super::stage::{End, Stage, run_inner};
use super::{Environment, Part};

pub struct BuiltJob {
    pub domain: String,
    pub tasks: JoinSet<Result<(), RuntimeError>>,
    pub sources: Vec<SourceNode>,
    pub acks: mpsc::UnboundedReceiver<Ack>,
    /// How many source subtasks have read everything.
    pub ended: watch::Receiver<usize>,
    pub budget: Arc<EpochBudget>,
}

/// Nodes that run in one task: each the only consumer of the one before it.
struct StagePlan {
    nodes: Vec<NodeId>,
    parallelism: usize,
}

/// Where a stage's rows go.
struct Edge {
    from: usize,
    port: OutputPort,
    to: usize,
    input: usize,
    exchange: Exchange,
}

pub fn build(
    graph: &Graph,
    settings: &JobSettings,
    environment: &Environment,
    metrics: &Arc<JobMetrics>,
    part: Part,
) -> Result<BuiltJob, RuntimeError> {
    let parallelism = match settings.flush_interval {
        0 => 1,
        _ => settings.parallelism.unwrap_or_else(cores).max(1),
    };
    let mut sinks = open_sinks(graph, environment)?;
    let stages = fuse(graph, parallelism, &sinks);
    let edges = edges(graph, &stages, &sinks);
    let builder = Builder {
        graph,
        settings,
        environment,
        metrics,
        part,
        parallelism,
        stages,
        edges,
    };
    builder.spawn(&mut sinks)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

type Sinks = BTreeMap<NodeId, (Arc<SinkSpec>, Box<dyn Sink>)>;

fn open_sinks(graph: &Graph, environment: &Environment) -> Result<Sinks, RuntimeError> {
    let mut sinks = Sinks::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        if let Op::Sink(spec) = &node.op {
            let failed = |source| RuntimeError::Connector {
                table: spec.table.clone(),
                source,
            };
            sinks.insert(
                NodeId(i),
                (
                    spec.clone(),
                    environment.factory.sink(spec).map_err(failed)?,
                ),
            );
        }
    }
    Ok(sinks)
}

/// Groups nodes into stages. A node joins its producer's stage when it is its only consumer, takes its
/// rows as they are, and wants as many subtasks.
fn fuse(graph: &Graph, parallelism: usize, sinks: &Sinks) -> Vec<StagePlan> {
    let mut consumers = vec![0; graph.nodes.len()];
    for input in graph.nodes.iter().flat_map(|n| &n.inputs) {
        consumers[input.node.0] += 1;
    }
    let mut stages: Vec<StagePlan> = Vec::new();
    let mut stage_of = vec![0; graph.nodes.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        let producers = || {
            node.inputs
                .iter()
                .map(|input| stages[stage_of[input.node.0]].parallelism)
        };
        let wanted = match &node.op {
            Op::Source(_) => parallelism,
            Op::Values(_) => 1,
            Op::Sink(_) if !sinks[&NodeId(i)].1.is_parallel() => 1,
            _ if node.inputs.iter().any(|input| {
                matches!(
                    input.exchange,
                    Exchange::Hash(_) | Exchange::Changelog { .. }
                )
            }) =>
            {
                parallelism
            }
            _ if node
                .inputs
                .iter()
                .all(|input| input.exchange == Exchange::Single) =>
            {
                1
            }
            _ => producers().max().unwrap_or(1),
        };
        let fused = match node.inputs.as_slice() {
            [input] => {
                let stage = stage_of[input.node.0];
                let same_width = stages[stage].parallelism == wanted;
                let stays = wanted == 1
                    || (input.exchange == Exchange::Forward
                        && repartition_for_sink(graph, NodeId(i), wanted).is_none());
                let only = consumers[input.node.0] == 1 && input.port == OutputPort::Rows;
                (only && same_width && stays).then_some(stage)
            }
            _ => None,
        };
        stage_of[i] = fused.unwrap_or_else(|| {
            stages.push(StagePlan {
                nodes: Vec::new(),
                parallelism: wanted,
            });
            stages.len() - 1
        });
        stages[stage_of[i]].nodes.push(NodeId(i));
    }
    stages
}

/// The columns by which a parallel sink's changes must be brought together, so that changes that
/// cancel or pair meet in one subtask.
fn repartition_for_sink(graph: &Graph, id: NodeId, parallelism: usize) -> Option<Vec<usize>> {
    let node = graph.node(id);
    match &node.op {
        Op::Sink(spec) if spec.updating && parallelism > 1 => Some(
            spec.key
                .clone()
                .unwrap_or_else(|| (0..spec.schema.fields().len()).collect()),
        ),
        _ => None,
    }
}

fn edges(graph: &Graph, stages: &[StagePlan], sinks: &Sinks) -> Vec<Edge> {
    let stage_of = |id: NodeId| {
        stages
            .iter()
            .position(|s| s.nodes.contains(&id))
            .expect("every node has a stage")
    };
    let mut edges = Vec::new();
    for (to, stage) in stages.iter().enumerate() {
        let head = stage.nodes[0];
        for (index, input) in graph.node(head).inputs.iter().enumerate() {
            let exchange = match repartition_for_sink(graph, head, stage.parallelism) {
                Some(key) if sinks.contains_key(&head) => Exchange::Hash(key),
                _ => input.exchange.clone(),
            };
            // A union has one kind of input; only operators that tell theirs apart see the index.
            let port = if matches!(graph.node(head).op, Op::Union) {
                0
            } else {
                index
            };
            edges.push(Edge {
                from: stage_of(input.node),
                port: input.port,
                to,
                input: port,
                exchange,
            });
        }
    }
    edges
}

struct Builder<'a> {
    graph: &'a Graph,
    settings: &'a JobSettings,
    environment: &'a Environment,
    metrics: &'a Arc<JobMetrics>,
    part: Part,
    parallelism: usize,
    stages: Vec<StagePlan>,
    edges: Vec<Edge>,
}

/// Both ends of every edge, by stage and subtask.
#[derive(Default)]
struct Wiring {
    rows: BTreeMap<(usize, usize), Vec<Router>>,
    dead_letters: BTreeMap<(usize, usize), Vec<Router>>,
    inputs: BTreeMap<(usize, usize), Vec<(usize, Receiver)>>,
}

impl Builder<'_> {
    fn spawn(&self, sinks: &mut Sinks) -> Result<BuiltJob, RuntimeError> {
        let mut wiring = self.wire();
        let (ack, acks) = mpsc::unbounded_channel();
        let (ended_tx, ended) = watch::channel(0);
        let is_source = |s: &&StagePlan| {
            matches!(
                self.graph.node(s.nodes[0]).op,
                Op::Source(_) | Op::Values(_)
            )
        };
        let n_sources = self
            .stages
            .iter()
            .filter(is_source)
            .map(|s| s.parallelism)
            .sum();
        let budget = Arc::new(EpochBudget::new(self.settings, n_sources));
        let domain = format!("job-{}", self.part.job);
        let mut job = BuiltJob {
            domain,
            tasks: JoinSet::new(),
            sources: Vec::new(),
            acks,
            ended,
            budget,
        };
        let mut sources = self.sources()?;
        self.refuse_conflicts(&sources, sinks)?;
        // Everything is opened before anything runs, so that a fault leaves nothing behind.
        let (mut inner, mut source_tasks) = (Vec::new(), Vec::new());
        for (index, plan) in self.stages.iter().enumerate() {
            let source = sources[index].take();
            let splits = source
                .as_ref()
                .map(|(s, spec)| self.splits(s.as_ref(), &spec.table))
                .transpose()?;
            let mut node = source.as_ref().map(|(source, spec)| SourceNode {
                node: plan.nodes[0],
                table: spec.table.clone(),
                bounded: spec.bounded,
                source: source.clone(),
                subtasks: Vec::new(),
                n_splits: splits.iter().flatten().count(),
            });
            for subtask in 0..plan.parallelism {
                let end = self.end(plan, subtask, sinks, wiring.rows.remove(&(index, subtask)))?;
                let rejected = Rejected::default();
                let chain = Chain::new(self.operators(plan, subtask, &rejected)?);
                let dead_letters = wiring.dead_letters.remove(&(index, subtask));
                let mut stage = Stage {
                    chain,
                    end,
                    rejected,
                    dead_letters: dead_letters.unwrap_or_default(),
                    acks: ack.clone(),
                };
                let (Some((source, spec)), Some(node)) = (&source, &mut node) else {
                    let inputs = wiring.inputs.remove(&(index, subtask)).unwrap_or_default();
                    inner.push((stage, Inputs::new(inputs)));
                    continue;
                };
                let (request, requests) = mpsc::unbounded_channel();
                node.subtasks.push(SourceSubtask {
                    requests: request,
                    found: Vec::new(),
                });
                let splits = splits.as_deref().unwrap_or_default();
                let in_sequence = source.is_sequence();
                let n_readers = if in_sequence { 1 } else { plan.parallelism };
                let own = match subtask < n_readers {
                    true => splits
                        .iter()
                        .skip(subtask)
                        .step_by(n_readers)
                        .cloned()
                        .collect(),
                    false => Vec::new(),
                };
                let in_order = in_sequence || splits.len() <= 1;
                source_tasks.push(SourceTask {
                    node: plan.nodes[0],
                    spec: spec.clone(),
                    source: source.clone(),
                    subtask,
                    splits: Splits::new(own, node.may_grow()),
                    ingest: Ingest::new(spec.clone(), self.metrics.clone(), in_order),
                    // Those of its stage are the source's own: an operator that rejects has a stage of its own.
                    dead_letters: std::mem::take(&mut stage.dead_letters),
                    stage,
                    requests,
                    budget: job.budget.clone(),
                    metrics: self.metrics.clone(),
                    ended: ended_tx.clone(),
                });
            }
            job.sources.extend(node);
        }
        for (stage, inputs) in inner {
            job.tasks.spawn(run_inner(stage, inputs));
        }
        for task in source_tasks {
            job.tasks.spawn(task.run());
        }
        Ok(job)
    }

    fn wire(&self) -> Wiring {
        let mut wiring = Wiring::default();
        for edge in &self.edges {
            let (n_from, n_to) = (
                self.stages[edge.from].parallelism,
                self.stages[edge.to].parallelism,
            );
            for from in 0..n_from {
                let mut connect = |to: usize| {
                    let (sender, receiver) = channel();
                    wiring
                        .inputs
                        .entry((edge.to, to))
                        .or_default()
                        .push((edge.input, receiver));
                    sender
                };
                let router = match &edge.exchange {
                    Exchange::Hash(key) if n_to > 1 => {
                        Router::hash((0..n_to).map(connect).collect(), key.clone())
                    }
                    Exchange::Changelog { key, op } if n_to > 1 => {
                        Router::changelog((0..n_to).map(connect).collect(), key.clone(), *op)
                    }
                    Exchange::Forward => Router::forward(connect(from % n_to)),
                    Exchange::Hash(_) | Exchange::Changelog { .. } | Exchange::Single => {
                        Router::forward(connect(0))
                    }
                };
                let routers = match edge.port {
                    OutputPort::Rows => &mut wiring.rows,
                    OutputPort::DeadLetter => &mut wiring.dead_letters,
                };
                routers.entry((edge.from, from)).or_default().push(router);
            }
        }
        wiring
    }

    /// By stage: its source, where it has one.
    fn sources(&self) -> Result<Vec<Option<OpenedSource>>, RuntimeError> {
        self.stages
            .iter()
            .map(|plan| self.source(plan.nodes[0]))
            .collect()
    }

    fn refuse_conflicts(
        &self,
        sources: &[Option<OpenedSource>],
        sinks: &Sinks,
    ) -> Result<(), RuntimeError> {
        let read: Vec<Files> = sources
            .iter()
            .flatten()
            .map(|(source, spec)| Files {
                table: &spec.table,
                paths: source.files(),
            })
            .collect();
        let replaced: Vec<Files> = sinks
            .values()
            .map(|(spec, sink)| Files {
                table: &spec.table,
                paths: sink.replaces().into_iter().collect(),
            })
            .collect();
        conflicts::refuse(&read, &replaced)
    }

    fn source(&self, head: NodeId) -> Result<Option<OpenedSource>, RuntimeError> {
        match &self.graph.node(head).op {
            Op::Source(spec) => {
                let failed = |source| RuntimeError::Connector {
                    table: spec.table.clone(),
                    source,
                };
                let source = self.environment.factory.source(spec).map_err(failed)?;
                Ok(Some((Arc::from(source), spec.clone())))
            }
            Op::Values(rows) => Ok(Some(super::values::source(rows))),
            _ => Ok(None),
        }
    }

    fn splits(&self, source: &dyn Source, table: &str) -> Result<Vec<SplitId>, RuntimeError> {
        let failed = |source| RuntimeError::Connector {
            table: table.to_string(),
            source,
        };
        if let Some(bytes) = source.total_bytes() {
            JobMetrics::add(&self.metrics.bytes_total, bytes as usize);
        }
        source.splits(self.parallelism).map_err(failed)
    }

    fn end(
        &self,
        plan: &StagePlan,
        subtask: usize,
        sinks: &Sinks,
        routers: Option<Vec<Router>>,
    ) -> Result<End, RuntimeError> {
        let last = plan.nodes.last().expect("a stage has nodes");
        let Some((spec, sink)) = sinks.get(last) else {
            return Ok(End::Routers(routers.unwrap_or_default()));
        };
        let failed = |source| RuntimeError::Connector {
            table: spec.table.clone(),
            source,
        };
        let writer = sink.open(subtask).map_err(failed)?;
        Ok(End::Sink(Box::new(SinkStage::new(
            spec.clone(),
            writer,
            self.metrics.clone(),
            self.is_adjacent(plan, spec),
        ))))
    }

    /// Whether the sink's changes come straight from an aggregation by the sink's key, in the same task.
    fn is_adjacent(&self, plan: &StagePlan, spec: &SinkSpec) -> bool {
        let mut above = plan
            .nodes
            .iter()
            .rev()
            .skip(1)
            .map(|&id| self.graph.node(id));
        let Some(input) = above.clone().next() else {
            return false;
        };
        let by_key = spec.key.is_some() && spec.key == input.properties.key;
        let first = above.find(|n| !matches!(n.op, Op::Filter(_) | Op::Project(_)));
        // A key may be narrower than what is grouped by: then several groups have changes under it.
        let by_all = |n: &Node| match &n.op {
            Op::Aggregate(a) => spec
                .key
                .as_ref()
                .is_some_and(|key| key.len() == a.keys.len()),
            _ => false,
        };
        by_key && first.is_some_and(by_all)
    }

    fn operators(
        &self,
        plan: &StagePlan,
        subtask: usize,
        rejected: &Rejected,
    ) -> Result<Vec<Measured>, RuntimeError> {
        let mut built = Vec::new();
        for &id in &plan.nodes {
            let node = self.graph.node(id);
            let input = node.inputs.first().map(|i| self.graph.node(i.node));
            let context = OperatorContext {
                node: id,
                input_schema: input.map(|n| n.schema.clone()),
                output_schema: node.schema.clone(),
                updating_input: input.is_some_and(|n| {
                    n.properties.changelog == thalweg_dataflow::plan::Changelog::Updating
                }),
                net_input: input.is_some_and(|n| n.properties.net),
                store: self.environment.store.clone(),
                first_table: self.part.first_table,
                metrics: self.metrics.clone(),
                memory_bytes: self.memory_share(),
                vnodes: owned(subtask, plan.parallelism).collect(),
                rejected: rejected.clone(),
            };
            let operator = match &node.op {
                op if phase(op) == Some(Phase::Partial) && self.parallelism == 1 => continue,
                op if phase(op) == Some(Phase::Final) => self.final_phase(node, context)?,
                Op::Source(_) | Op::Values(_) | Op::Union | Op::Sink(_) => continue,
                op => operators::build(op, context)?,
            };
            let metrics = self.metrics.operator(id.0, node.op.name(), subtask);
            built.push(Measured { operator, metrics });
        }
        Ok(built)
    }

    /// The final phase of an aggregation. One subtask needs no partial phase: its final aggregate does all the work.
    fn final_phase(
        &self,
        node: &Node,
        context: OperatorContext,
    ) -> Result<Box<dyn crate::operator::Operator>, RuntimeError> {
        let partial = self.graph.node(node.inputs[0].node);
        // The calls of both are over the input of the partial one.
        let above = self.graph.node(partial.inputs[0].node);
        let context = OperatorContext {
            input_schema: Some(above.schema.clone()),
            ..context
        };
        if self.parallelism > 1 {
            return operators::build(&node.op, context);
        }
        let mut whole = partial.op.clone();
        match &mut whole {
            Op::WindowAggregate(aggregate) => aggregate.phase = Phase::Single,
            Op::Aggregate(aggregate) => aggregate.phase = Phase::Single,
            _ => {
                return Err(RuntimeError::Internal(
                    "a final aggregate without its partial one".into(),
                ));
            }
        }
        operators::build(&whole, context)
    }

    /// Bytes of decoded state that one operator subtask may keep.
    fn memory_share(&self) -> usize {
        let stateful = |op: &&Op| {
            matches!(
                op,
                Op::Aggregate(_) | Op::WindowAggregate(_) | Op::Normalize(_)
            )
        };
        let n = self
            .graph
            .nodes
            .iter()
            .map(|n| &n.op)
            .filter(stateful)
            .count()
            .max(1)
            * self.parallelism;
        usize::try_from(self.settings.state_memory).unwrap_or(usize::MAX) / n
    }
}

/// The phase of an aggregation.
fn phase(op: &Op) -> Option<Phase> {
    match op {
        Op::WindowAggregate(aggregate) => Some(aggregate.phase),
        Op::Aggregate(aggregate) => Some(aggregate.phase),
        _ => None,
    }
}

type OpenedSource = (Arc<dyn Source>, Arc<thalweg_dataflow::table::SourceSpec>);
