//! Where results go that no table takes: a bare SELECT, a SUBSCRIBE, and every sink of a dry run.
//!
//! The planner gives such a query a sink of the connector [`RESULT_CONNECTOR`]. [`WithResults`] answers
//! for that name with a [`ResultTarget`] and passes everything else on.

mod answer;
mod changelog;
mod collect;
mod encode;
mod output;
mod print;
mod stream;
mod table;

use std::sync::Arc;

use thalweg_dataflow::table::{SinkSpec, SourceSpec};
use thalweg_planner::script::RESULT_CONNECTOR;
use thalweg_runtime::connector::{ConnectorError, ConnectorFactory, Sink, Source};

pub use changelog::schema as changelog_schema;
pub use collect::{Collected, Collector};
pub use encode::json_texts;
pub use output::Output;
pub use print::{Layout, Printer, Shown, set_batch};
pub use stream::{Broken, RowStream, View, channel};

/// Makes the sinks of results.
pub trait ResultTarget: Send + Sync {
    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError>;
}

/// The connectors, with results added.
pub struct WithResults {
    pub connectors: Arc<dyn ConnectorFactory>,
    pub results: Arc<dyn ResultTarget>,
}

impl ConnectorFactory for WithResults {
    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        self.connectors.source(spec)
    }

    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        if spec.connector == RESULT_CONNECTOR {
            self.results.sink(spec)
        } else {
            self.connectors.sink(spec)
        }
    }
}
