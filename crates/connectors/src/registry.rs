//! Every connector by name: what the planner asks about tables, and where the runtime gets sources and
//! sinks. The server adds connectors of its own, tests add theirs.

use std::sync::Arc;

use arrow::datatypes::Field;
use thalweg_dataflow::options::{
    ConnectorDecl, FormatDecl, OptionFault, Options, Outline, Registry, TableCheck,
};
use thalweg_dataflow::table::{SinkSpec, SourceSpec};
use thalweg_runtime::connector::{ConnectorError, ConnectorFactory, Sink, Source};

use crate::format;

/// One connector: its declaration, and how its sources and sinks are made.
pub trait Connector: Send + Sync {
    fn declaration(&self) -> &ConnectorDecl;

    /// Checks what the declaration of single options cannot say. No I/O. The format has been checked.
    fn check(&self, table: &TableCheck<'_>) -> Result<(), OptionFault>;

    /// Called only where the declaration says `can_read`.
    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError>;

    /// Called only where the declaration says `can_write`.
    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError>;

    /// The columns of a table that declares none, where what is read says them itself, as a Parquet file does.
    /// `None`: it does not; the format's schema or a sample of records must say.
    fn own_columns(&self, _table: &Outline) -> Result<Option<Vec<Field>>, ConnectorError> {
        Ok(None)
    }

    /// The options with which a sample of a table's records is read: from their beginning, where its own would begin
    /// elsewhere.
    fn sampling(&self, options: &Options) -> Options {
        options.clone()
    }
}

/// The connectors that scripts can name.
#[derive(Default)]
pub struct Connectors {
    connectors: Vec<Box<dyn Connector>>,
}

impl Connectors {
    /// The connectors of this crate.
    pub fn standard() -> Self {
        Self::default()
            .with(Box::new(crate::impulse::Impulse))
            .with(Box::new(crate::file::SingleFile))
            .with(Box::new(crate::file::Filesystem))
            .with(Box::new(crate::kafka::Kafka))
            .with(Box::new(crate::stdout::Stdout::default()))
            .with(Box::new(crate::blackhole::Blackhole))
    }

    /// Adds a connector; one of the same name gives way to it.
    pub fn with(mut self, connector: Box<dyn Connector>) -> Self {
        let name = connector.declaration().name;
        self.connectors.retain(|c| c.declaration().name != name);
        self.connectors.push(connector);
        self
    }

    fn find(&self, name: &str) -> Option<&dyn Connector> {
        self.connectors
            .iter()
            .map(Box::as_ref)
            .find(|c| c.declaration().name == name)
    }

    fn expect(&self, name: &str) -> Result<&dyn Connector, ConnectorError> {
        self.find(name).ok_or_else(|| {
            let message = format!("connector '{name}' does not exist");
            ConnectorError::configuration(message, Some(self.known()))
        })
    }

    /// See [`Connector::own_columns`].
    pub fn own_columns(&self, table: &Outline) -> Result<Option<Vec<Field>>, ConnectorError> {
        self.expect(&table.connector)?.own_columns(table)
    }

    /// See [`Connector::sampling`].
    pub fn sampling(&self, table: &Outline) -> Options {
        let connector = self.find(&table.connector);
        connector.map_or_else(|| table.options.clone(), |c| c.sampling(&table.options))
    }

    fn known(&self) -> String {
        let names: Vec<_> = self
            .connectors
            .iter()
            .map(|c| c.declaration().name)
            .collect();
        format!("there are {}", names.join(", "))
    }
}

impl Registry for Connectors {
    fn connectors(&self) -> Vec<&ConnectorDecl> {
        self.connectors.iter().map(|c| c.declaration()).collect()
    }

    fn formats(&self) -> Vec<&FormatDecl> {
        format::FORMATS.iter().collect()
    }

    fn check_table(&self, table: &TableCheck<'_>) -> Result<(), OptionFault> {
        let Some(connector) = self.find(table.connector) else {
            return Err(OptionFault {
                option: Some("connector".to_string()),
                message: format!("connector '{}' does not exist", table.connector),
                hint: Some(self.known()),
            });
        };
        if let Some(format) = table.format {
            format::check(format, table.options, table.schema, table.direction)?;
        }
        connector.check(table)
    }
}

impl ConnectorFactory for Connectors {
    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        let connector = self.expect(&spec.connector)?;
        if !connector.declaration().can_read {
            return Err(one_way(&spec.connector, "read"));
        }
        connector.source(spec)
    }

    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        let connector = self.expect(&spec.connector)?;
        if !connector.declaration().can_write {
            return Err(one_way(&spec.connector, "written"));
        }
        connector.sink(spec)
    }
}

/// The error of a connector asked for the direction that it does not have.
pub(crate) fn one_way(connector: &str, what: &str) -> ConnectorError {
    ConnectorError::configuration(
        format!("a table with connector '{connector}' cannot be {what}"),
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{sink_spec, source_spec};
    use arrow::datatypes::Schema;
    use thalweg_dataflow::options::{Direction, Options};

    #[test]
    fn every_connector_is_found_by_its_name_once() {
        let all = Connectors::standard();
        let names: Vec<_> = all.connectors().iter().map(|c| c.name).collect();
        assert_eq!(
            names,
            [
                "impulse",
                "single_file",
                "filesystem",
                "kafka",
                "stdout",
                "blackhole"
            ]
        );
        for decl in all.connectors() {
            for format in decl.formats {
                assert!(all.format(format).is_some(), "{}: {format}", decl.name);
            }
        }
    }

    #[test]
    fn a_connector_of_the_same_name_takes_the_place() {
        let all = Connectors::standard().with(Box::new(crate::blackhole::Blackhole));
        assert_eq!(all.connectors().len(), 6);
    }

    #[test]
    fn what_does_not_exist_or_is_one_way_is_an_error() {
        let all = Connectors::standard();
        let sink = |name: &str| {
            all.sink(&sink_spec(name, None, &[], &[]))
                .err()
                .unwrap()
                .to_string()
        };
        assert_eq!(sink("kaffka"), "connector 'kaffka' does not exist");
        assert_eq!(
            sink("impulse"),
            "a table with connector 'impulse' cannot be written"
        );
        let source = all
            .source(&source_spec("stdout", None, &[], &[]))
            .err()
            .unwrap()
            .to_string();
        assert_eq!(source, "a table with connector 'stdout' cannot be read");

        let fault = all
            .check_table(&TableCheck {
                connector: "kaffka",
                format: None,
                options: &Options::default(),
                schema: &Schema::empty(),
                direction: Direction::Sink,
            })
            .unwrap_err();
        assert_eq!(fault.option.as_deref(), Some("connector"));
        assert!(fault.hint.unwrap().contains("single_file"));
    }
}
