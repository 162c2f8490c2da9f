//! Connectors and formats for the planner's tests: what there is to declare, and nothing to run.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_dataflow::options::{
    ConnectorDecl, FormatDecl, OptionDecl, OptionFault, OptionKind, Registry, TableCheck,
};

use crate::error::Fault;
use crate::script::{Planner, Script, ScriptOptions};
use crate::statements::BoundScript;

pub struct TestRegistry {
    connectors: Vec<ConnectorDecl>,
    formats: Vec<FormatDecl>,
}

const PATH: OptionDecl = OptionDecl::required("path", OptionKind::Text, "The file.");
const JSON_OPTIONS: &[OptionDecl] = &[
    OptionDecl::optional(
        "json.unstructured",
        OptionKind::Bool,
        Some("false"),
        "Gives the record as one column.",
    ),
    OptionDecl::optional(
        "json.timestamp_format",
        OptionKind::Choice(&["iso8601", "micros"]),
        None,
        "How times are written.",
    ),
];
const KAFKA_OPTIONS: &[OptionDecl] = &[
    OptionDecl::required(
        "bootstrap_servers",
        OptionKind::Text,
        "Brokers to begin with.",
    ),
    OptionDecl::required("topic", OptionKind::Text, "The topic."),
    OptionDecl::optional(
        "source.offset",
        OptionKind::Choice(&["earliest", "latest"]),
        Some("latest"),
        "Where reading begins.",
    ),
];
const IMPULSE_OPTIONS: &[OptionDecl] = &[
    OptionDecl::required("event_rate", OptionKind::Number, "Rows a second."),
    OptionDecl::optional(
        "message_count",
        OptionKind::Count,
        None,
        "Rows before it ends.",
    ),
];

impl TestRegistry {
    pub fn new() -> Self {
        Self {
            connectors: connectors(),
            formats: formats(),
        }
    }

    pub fn shared() -> Arc<dyn Registry> {
        Arc::new(Self::new())
    }
}

impl Registry for TestRegistry {
    fn connectors(&self) -> Vec<&ConnectorDecl> {
        self.connectors.iter().collect()
    }

    fn formats(&self) -> Vec<&FormatDecl> {
        self.formats.iter().collect()
    }

    /// A path may not be "/": something for the planner to ask.
    fn check_table(&self, table: &TableCheck<'_>) -> Result<(), OptionFault> {
        match table.options.text("path") {
            Some("/") => Err(OptionFault {
                option: Some("path".into()),
                message: format!("'/' is a directory and no file ({:?})", table.direction),
                hint: Some("name a file".into()),
            }),
            _ => Ok(()),
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
        formats: &[],
        default_format: |_| None,
        fixed_columns: &[],
        metadata: &[],
        takes_updates: false,
        bounded: |_| false,
    }
}

fn connectors() -> Vec<ConnectorDecl> {
    let first_json: fn(&BTreeMap<String, String>) -> Option<&'static str> = |_| Some("json");
    vec![
        ConnectorDecl {
            can_write: false,
            fixed_columns: &[
                ("counter", "BIGINT UNSIGNED"),
                ("subtask_index", "BIGINT UNSIGNED"),
            ],
            bounded: |options| options.contains_key("message_count"),
            ..connector("impulse", IMPULSE_OPTIONS)
        },
        ConnectorDecl {
            formats: &["json", "debezium_json", "csv"],
            default_format: |options| match options.get("path")?.rsplit_once('.')?.1 {
                "csv" => Some("csv"),
                "ndjson" | "json" => Some("json"),
                _ => None,
            },
            bounded: |_| true,
            ..connector("single_file", &[PATH])
        },
        ConnectorDecl {
            formats: &["json", "debezium_json"],
            default_format: first_json,
            metadata: &[
                ("offset", "BIGINT", "The record's offset."),
                ("key", "BYTEA", "The record's key."),
            ],
            ..connector("kafka", KAFKA_OPTIONS)
        },
        ConnectorDecl {
            can_read: false,
            formats: &["json", "debezium_json"],
            default_format: first_json,
            ..connector("stdout", &[])
        },
        ConnectorDecl {
            can_read: false,
            takes_updates: true,
            ..connector("blackhole", &[])
        },
    ]
}

fn formats() -> Vec<FormatDecl> {
    let format = |name, options| FormatDecl {
        name,
        meaning: "",
        options,
        can_read: true,
        can_write: true,
        takes_updates: false,
        reads_changelog: false,
    };
    vec![
        format("json", JSON_OPTIONS),
        FormatDecl {
            takes_updates: true,
            reads_changelog: true,
            ..format("debezium_json", &[])
        },
        format("csv", &[]),
    ]
}

/// Binds a script against an empty catalog.
pub fn bind(sql: &str) -> BoundScript {
    bind_with(sql, &ScriptOptions::default())
}

pub fn bind_with(sql: &str, options: &ScriptOptions) -> BoundScript {
    Planner::new(TestRegistry::shared()).bind(Planner::parse(sql), options)
}

pub fn planned(sql: &str) -> Result<Script, Vec<Fault>> {
    Planner::new(TestRegistry::shared()).plan(sql, &ScriptOptions::default())
}

/// The faults of planning a script, one a line.
pub fn faults(sql: &str) -> String {
    faults_with(sql, &ScriptOptions::default())
}

pub fn faults_with(sql: &str, options: &ScriptOptions) -> String {
    match Planner::new(TestRegistry::shared()).plan(sql, options) {
        Ok(_) => "no faults".to_string(),
        Err(faults) => faults
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

/// The plan of the script's last query, as DataFusion prints it, or its faults.
pub fn plan(sql: &str) -> String {
    let script = bind(sql);
    if !script.faults.is_empty() {
        return faults(sql);
    }
    script
        .queries
        .last()
        .expect("the script has a query")
        .plan
        .display_indent()
        .to_string()
}
