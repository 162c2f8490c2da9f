//! A few connectors and formats to plan against.

use std::collections::BTreeMap;

use thalweg_dataflow::options::{
    ConnectorDecl, FormatDecl, OptionDecl, OptionFault, OptionKind, Registry, TableCheck,
};

pub struct TestRegistry {
    connectors: Vec<ConnectorDecl>,
    formats: Vec<FormatDecl>,
}

const PATH: OptionDecl = OptionDecl::required("path", OptionKind::Text, "The file.");
const TOPIC: OptionDecl = OptionDecl::required("topic", OptionKind::Text, "The topic.");

impl TestRegistry {
    pub fn new() -> Self {
        let json: fn(&BTreeMap<String, String>) -> Option<&'static str> = |_| Some("json");
        let connectors = vec![
            ConnectorDecl {
                can_write: false,
                formats: &[],
                default_format: |_| None,
                fixed_columns: &[("counter", "BIGINT UNSIGNED")],
                ..connector("impulse", &[])
            },
            ConnectorDecl {
                default_format: json,
                bounded: |_| true,
                ..connector("single_file", &[PATH])
            },
            ConnectorDecl {
                default_format: json,
                ..connector("kafka", &[TOPIC])
            },
            ConnectorDecl {
                can_read: false,
                default_format: json,
                ..connector("stdout", &[])
            },
        ];
        let formats = vec![format("json", false), format("debezium_json", true)];
        Self {
            connectors,
            formats,
        }
    }
}

fn connector(name: &'static str, options: &'static [OptionDecl]) -> ConnectorDecl {
    ConnectorDecl {
        name,
        meaning: "",
        options,
        can_read: true,
        can_write: true,
        formats: &["json", "debezium_json"],
        default_format: |_| None,
        fixed_columns: &[],
        metadata: &[],
        takes_updates: false,
        bounded: |_| false,
    }
}

fn format(name: &'static str, is_changelog: bool) -> FormatDecl {
    FormatDecl {
        name,
        meaning: "",
        options: &[],
        can_read: true,
        can_write: true,
        takes_updates: is_changelog,
        reads_changelog: is_changelog,
    }
}

impl Registry for TestRegistry {
    fn connectors(&self) -> Vec<&ConnectorDecl> {
        self.connectors.iter().collect()
    }

    fn formats(&self) -> Vec<&FormatDecl> {
        self.formats.iter().collect()
    }

    fn check_table(&self, _: &TableCheck<'_>) -> Result<(), OptionFault> {
        Ok(())
    }
}
