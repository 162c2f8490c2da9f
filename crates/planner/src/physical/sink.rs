//! Sinks: whether a result can be written there at all, and by which key its changes are paired.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use thalweg_dataflow::plan::{Changelog, Exchange, Input, NodeId, Op, OutputPort};
use thalweg_dataflow::table::SinkSpec;

use super::builder::Builder;
use crate::bind::{BoundSink, SinkTarget};
use crate::changelog;
use crate::error::{Fault, FaultKind};

impl Builder {
    /// Writes the rows of `input`, whose columns are the sink's. Errors: updates for a sink that can only
    /// append; a PRIMARY KEY that the result does not make unique.
    pub fn sink(&mut self, input: NodeId, sink: &BoundSink) -> Result<NodeId, Fault> {
        let SinkTarget::Connector {
            connector,
            format,
            options,
        } = &sink.target
        else {
            return Err(Fault::new(FaultKind::Internal, "a stream is no sink"));
        };
        let schema = self.sink_schema(input, sink);
        let input = self.fit(input, &schema);
        let updating = self.is_updating(input);
        if updating && !sink.takes_updates {
            return Err(cannot_update(sink, connector, format.as_deref()));
        }
        self.check_key(input, sink)?;
        let properties = self.properties(input).clone();
        let declared = (!sink.primary_key.is_empty()).then(|| sink.primary_key.clone());
        let spec = SinkSpec {
            table: sink.table.clone(),
            connector: connector.clone(),
            format: format.clone(),
            options: options.clone(),
            schema: Arc::clone(&schema),
            updating,
            key: declared.or_else(|| properties.key.clone()),
        };
        let edge = Input {
            node: input,
            port: OutputPort::Rows,
            exchange: self.pairing(input, spec.key.as_deref()),
        };
        Ok(self.add(Op::Sink(Arc::new(spec)), vec![edge], schema, properties))
    }

    /// A window's bounds have the time zone of the event time, which was not known to the binder: where
    /// nobody declared the columns, they are what they came to be.
    fn sink_schema(&self, input: NodeId, sink: &BoundSink) -> SchemaRef {
        if sink.is_result() {
            Arc::clone(&self.node(input).schema)
        } else {
            Arc::clone(&sink.schema)
        }
    }

    /// Brings the changes together that a sink pairs: those of a key, otherwise those of equal rows.
    fn pairing(&self, input: NodeId, key: Option<&[usize]>) -> Exchange {
        if !self.is_updating(input) {
            return Exchange::Forward;
        }
        let all: Vec<usize> = (0..self.node(input).schema.fields().len()).collect();
        let key = key.unwrap_or(&all);
        match self.spread(input) {
            Some(spread) if spread.iter().all(|column| key.contains(column)) => Exchange::Forward,
            _ if key.is_empty() => Exchange::Single,
            _ => Exchange::Hash(key.to_vec()),
        }
    }

    fn check_key(&mut self, input: NodeId, sink: &BoundSink) -> Result<(), Fault> {
        if sink.primary_key.is_empty() {
            return Ok(());
        }
        let name = |columns: &[usize]| {
            columns
                .iter()
                .map(|&c| sink.schema.field(c).name().as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let properties = self.properties(input);
        let (table, primary_key) = (&sink.table, name(&sink.primary_key));
        match changelog::is_unique(properties, &sink.primary_key) {
            Some(true) => Ok(()),
            Some(false) => {
                let key = properties.key.as_deref().unwrap_or_default();
                let message = format!(
                    "PRIMARY KEY ({primary_key}) of \"{table}\" is not unique in the result, whose key is ({})",
                    name(key)
                );
                let hint = format!(
                    "declare PRIMARY KEY ({}), or group by ({primary_key})",
                    name(key)
                );
                Err(Fault::new(FaultKind::NotStreamable, message).hint(hint))
            }
            None if properties.changelog == Changelog::Updating => {
                let message = format!(
                    "PRIMARY KEY ({primary_key}) of \"{table}\" is not unique in the result, which has no key"
                );
                let hint =
                    "keep the GROUP BY columns among the selected ones, or drop the PRIMARY KEY";
                Err(Fault::new(FaultKind::NotStreamable, message).hint(hint))
            }
            // Rows that repeat a key replace each other where the reader of the sink wants it so.
            None => {
                self.notices.push(format!(
                    "nothing shows that PRIMARY KEY ({primary_key}) of \"{table}\" is unique in the rows written to it"
                ));
                Ok(())
            }
        }
    }
}

fn cannot_update(sink: &BoundSink, connector: &str, format: Option<&str>) -> Fault {
    let what = match format {
        Some(format) => format!("{connector}, {format}"),
        None => connector.to_string(),
    };
    let message = if sink.is_result() {
        "the result is updating, but can only be appended to here".to_string()
    } else {
        format!(
            "the result is updating, but \"{}\" ({what}) can only be appended to",
            sink.table
        )
    };
    Fault::new(FaultKind::NotStreamable, message)
        .hint("write it with format = 'debezium_json', or group by a window such as tumble(interval '1 minute')")
}
