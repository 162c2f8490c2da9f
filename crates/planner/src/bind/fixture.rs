//! Fixtures: tables that a file stands in for.

use std::collections::BTreeMap;
use std::sync::Arc;

use thalweg_dataflow::options::{OptionDecl, Options, Registry};

use crate::catalog::{ColumnDef, ColumnOrigin, TableDef};
use crate::declare::is_bounded;
use crate::error::{Fault, FaultKind};

/// The connector that reads a fixture's file.
const CONNECTOR: &str = "single_file";

/// The files of a script's fixtures, by table.
pub struct Fixtures {
    paths: BTreeMap<String, String>,
    registry: Arc<dyn Registry>,
}

impl Fixtures {
    pub fn new(paths: BTreeMap<String, String>, registry: Arc<dyn Registry>) -> Self {
        Self { paths, registry }
    }

    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.paths.keys().map(String::as_str)
    }

    /// The table read from its fixture's file where it has one, else as it is.
    pub fn replace(&self, def: &Arc<TableDef>) -> Result<Arc<TableDef>, Fault> {
        match self.paths.get(&def.name) {
            None => Ok(Arc::clone(def)),
            Some(path) => self.recorded(def, path).map(Arc::new),
        }
    }

    fn recorded(&self, def: &TableDef, path: &str) -> Result<TableDef, Fault> {
        let invalid = |message: String| Fault::new(FaultKind::InvalidOption, message);
        let connector = self.registry.connector(CONNECTOR).ok_or_else(|| {
            invalid(format!(
                "fixtures need the connector '{CONNECTOR}', which this build does not have"
            ))
        })?;
        let extension = extension_format(path).ok_or_else(|| {
            invalid(format!(
                "fixture of table \"{}\": the format of '{path}' is not known",
                def.name
            ))
            .hint("name it .ndjson, .json, .jsonl, .csv or .parquet")
        })?;
        // What is JSON within JSON stays it: a Debezium feed is recorded as it came.
        let own = def
            .format
            .as_deref()
            .filter(|own| extension == "json" && own.ends_with("json"));
        let format_name = own.unwrap_or(extension);
        let format = self.registry.format(format_name).ok_or_else(|| {
            invalid(format!(
                "fixture of table \"{}\": there is no format '{format_name}'",
                def.name
            ))
        })?;
        let mut given: BTreeMap<String, String> = def
            .options
            .iter()
            .filter(|(name, _)| format.options.iter().any(|decl| decl.name == *name))
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        given.insert("path".to_string(), path.to_string());
        let decls: Vec<OptionDecl> = connector
            .options
            .iter()
            .chain(format.options)
            .copied()
            .collect();
        let options = Options::resolve(&given, &decls);
        let known: Vec<&str> = connector.metadata.iter().map(|(key, ..)| *key).collect();
        Ok(TableDef {
            connector: CONNECTOR.to_string(),
            format: Some(format_name.to_string()),
            bounded: is_bounded(connector, &options),
            options,
            columns: def
                .columns
                .iter()
                .map(|column| without_metadata(column, &known))
                .collect(),
            reads_changelog: format.reads_changelog,
            can_read: true,
            ..def.clone()
        })
    }
}

/// Metadata that files do not have is a field of the recorded row.
fn without_metadata(column: &ColumnDef, known: &[&str]) -> ColumnDef {
    let origin = match &column.origin {
        ColumnOrigin::Metadata(key) if !known.contains(&key.as_str()) => ColumnOrigin::Physical,
        origin => origin.clone(),
    };
    ColumnDef {
        origin,
        ..column.clone()
    }
}

/// The format that a file's name stands for, with or without a compression's extension after it.
fn extension_format(path: &str) -> Option<&'static str> {
    let lower = path.to_lowercase();
    let plain = [".gz", ".zst", ".bz2", ".xz"]
        .iter()
        .find_map(|suffix| lower.strip_suffix(suffix))
        .unwrap_or(&lower);
    match plain.rsplit_once('.')?.1 {
        "ndjson" | "json" | "jsonl" => Some("json"),
        "csv" => Some("csv"),
        "parquet" => Some("parquet"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::extension_format;

    #[test]
    fn the_format_follows_the_name_under_any_compression() {
        for (path, format) in [
            ("a.ndjson", Some("json")),
            ("dir.csv/a.JSONL.gz", Some("json")),
            ("a.csv.zst", Some("csv")),
            ("a.parquet", Some("parquet")),
            ("a.gz", None),
            ("orders", None),
        ] {
            assert_eq!(extension_format(path), format, "{path}");
        }
    }
}
