//! The graph of one job in the making.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use thalweg_dataflow::plan::{
    Changelog, Exchange, Graph, Input, Node, NodeId, Op, OutputPort, Properties,
};
use thalweg_dataflow::table::ExprRef;

use super::merge;
use super::same::is_same;
use crate::changelog;
use crate::error::{Fault, FaultKind};
use crate::functions::Functions;
use crate::shape::{kept, plain};

pub(super) struct Builder {
    pub graph: Graph,
    /// Per node the columns whose values decide which subtask has a row, where that is known.
    spread: Vec<Option<Vec<usize>>>,
    /// Nodes that stand for several.
    shared: HashSet<NodeId>,
    pub sources: HashMap<String, Scanned>,
    /// The node that emits each intermediate stream.
    pub streams: HashMap<String, NodeId>,
    /// `updating_ttl` of the query that is being lowered, nanoseconds.
    pub ttl: Option<i64>,
    pub notices: Vec<String>,
    pub props: ExecutionProps,
}

/// A source of the job: one, however many queries read the table.
pub(super) struct Scanned {
    pub node: NodeId,
    /// Position in the table of each column that the source gives.
    pub columns: Vec<usize>,
}

impl Builder {
    pub fn new() -> Self {
        let mut props = ExecutionProps::new();
        props.config_options = Some(Arc::clone(Functions::get().config()));
        Self {
            graph: Graph::default(),
            spread: Vec::new(),
            shared: HashSet::new(),
            sources: HashMap::new(),
            streams: HashMap::new(),
            ttl: None,
            notices: Vec::new(),
            props,
        }
    }

    pub fn node(&self, id: NodeId) -> &Node {
        self.graph.node(id)
    }

    pub fn properties(&self, id: NodeId) -> &Properties {
        &self.node(id).properties
    }

    pub fn is_updating(&self, id: NodeId) -> bool {
        self.properties(id).changelog == Changelog::Updating
    }

    /// The columns by which the rows of a node are spread over subtasks; empty: one subtask has all.
    pub fn spread(&self, id: NodeId) -> Option<&[usize]> {
        self.spread[id.0].as_deref()
    }

    /// Appends a node, or gives the one that does the same already: queries share what they have in common.
    pub fn add(
        &mut self,
        op: Op,
        inputs: Vec<Input>,
        schema: SchemaRef,
        properties: Properties,
    ) -> NodeId {
        if let Some(same) = self
            .graph
            .nodes
            .iter()
            .position(|node| is_same(node, &op, &inputs, &schema))
        {
            self.shared.insert(NodeId(same));
            return NodeId(same);
        }
        let spread = self.spread_of(&op, &inputs);
        self.spread.push(spread);
        self.graph.add(op, inputs, schema, properties)
    }

    fn spread_of(&self, op: &Op, inputs: &[Input]) -> Option<Vec<usize>> {
        let [input] = inputs else { return None };
        let given = match &input.exchange {
            Exchange::Forward => self.spread[input.node.0].clone(),
            Exchange::Hash(key) | Exchange::Changelog { key, .. } => Some(key.clone()),
            Exchange::Single => Some(vec![]),
        }?;
        let moved =
            |place: &dyn Fn(usize) -> Option<usize>| given.iter().map(|c| place(*c)).collect();
        match op {
            Op::Filter(_) | Op::AssignWindow(_) | Op::Normalize(_) | Op::Sink(_) => Some(given),
            Op::Project(exprs) => {
                let from = &self.node(inputs[0].node).schema;
                moved(&|c| exprs.iter().position(|e| kept(e, from) == Some(c)))
            }
            Op::Unnest(unnest) => moved(&|c| changelog::repeated(unnest, c)),
            Op::Aggregate(aggregate) => moved(&|c| aggregate.keys.iter().position(|k| *k == c)),
            Op::WindowAggregate(aggregate) => {
                moved(&|c| Some(2 + aggregate.keys.iter().position(|k| *k == c)?))
            }
            Op::Source(_) | Op::Values(_) | Op::Union => None,
        }
    }

    pub fn filter(&mut self, input: NodeId, predicate: ExprRef) -> NodeId {
        let Node {
            schema, properties, ..
        } = self.node(input);
        let (schema, properties) = (Arc::clone(schema), properties.clone());
        self.add(
            Op::Filter(predicate),
            vec![Input::forward(input)],
            schema,
            properties,
        )
    }

    /// A projection onto `schema`: none where it would change nothing, and one with that below it where
    /// one of the two only moves columns.
    pub fn project(&mut self, input: NodeId, exprs: Vec<ExprRef>, schema: SchemaRef) -> NodeId {
        let node = self.node(input);
        let is_identity = exprs.len() == node.schema.fields().len()
            && exprs.iter().enumerate().all(|(i, e)| plain(e) == Some(i));
        if is_identity && node.schema.fields() == schema.fields() {
            return input;
        }
        let properties = changelog::project(&node.properties, &node.schema, &exprs);
        let Some((below, merged)) = self.take_projection(input, &exprs) else {
            return self.add(
                Op::Project(exprs),
                vec![Input::forward(input)],
                schema,
                properties,
            );
        };
        let from = self.node(below);
        let direct = changelog::project(&from.properties, &from.schema, &merged);
        let properties = changelog::either(direct, properties);
        self.add(
            Op::Project(merged),
            vec![Input::forward(below)],
            schema,
            properties,
        )
    }

    /// Takes the projection `input` out of the graph if nothing else can read it and `exprs` can be computed
    /// from what is below it: gives that node, and the expressions over it.
    fn take_projection(
        &mut self,
        input: NodeId,
        exprs: &[ExprRef],
    ) -> Option<(NodeId, Vec<ExprRef>)> {
        let is_last = input.0 + 1 == self.graph.nodes.len();
        // A stream and a table may be read again.
        let is_read = self.shared.contains(&input)
            || self.streams.values().any(|s| *s == input)
            || self.sources.values().any(|s| s.node == input);
        if !is_last || is_read {
            return None;
        }
        let node = self.node(input);
        let (Op::Project(lower), [edge]) = (&node.op, node.inputs.as_slice()) else {
            return None;
        };
        if edge.port != OutputPort::Rows || edge.exchange != Exchange::Forward {
            return None;
        }
        let (below, merged) = (edge.node, merge::merge(exprs, lower)?);
        self.graph.nodes.pop();
        self.spread.pop();
        Some((below, merged))
    }

    /// Some columns of a node, by position.
    pub fn select(&mut self, input: NodeId, columns: &[usize]) -> NodeId {
        let schema = Arc::clone(&self.node(input).schema);
        let fields: Vec<Arc<Field>> = columns
            .iter()
            .map(|&c| Arc::clone(&schema.fields()[c]))
            .collect();
        let exprs = columns.iter().map(|&c| column(&schema, c)).collect();
        self.project(input, exprs, Arc::new(Schema::new(fields)))
    }

    /// The same columns under the names, nullabilities and types of `schema`.
    pub fn fit(&mut self, input: NodeId, schema: &SchemaRef) -> NodeId {
        let from = Arc::clone(&self.node(input).schema);
        let exprs = schema
            .fields()
            .iter()
            .enumerate()
            .map(|(c, to)| cast_column(&from, c, to.data_type()));
        self.project(input, exprs.collect(), Arc::clone(schema))
    }
}

/// The column of `schema` at a position, as a value of type `to`.
pub(super) fn cast_column(schema: &Schema, position: usize, to: &DataType) -> ExprRef {
    let column = column(schema, position);
    if schema.field(position).data_type() == to {
        return column;
    }
    Arc::new(CastExpr::new(column, to.clone(), None))
}

/// The column of `schema` at a position, as an expression.
pub(super) fn column(schema: &Schema, position: usize) -> ExprRef {
    Arc::new(Column::new(schema.field(position).name(), position))
}

pub(super) fn unsupported(what: impl Into<String>) -> Fault {
    Fault::new(FaultKind::Unsupported, what)
}
