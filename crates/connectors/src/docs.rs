//! The reference pages of connectors and formats, made from their declarations.
//!
//! The pages are kept under `docs/connectors`; a test says when they no longer match.

use std::fmt::Write;

use thalweg_dataflow::options::{ConnectorDecl, FormatDecl, OptionDecl, Registry};

/// A page of the manual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Relative to `docs/connectors`.
    pub path: String,
    pub text: String,
}

const NOTE: &str =
    "<!-- Made from the declarations in crates/connectors. Do not edit it here. -->\n\n";

/// All pages: an index, one a connector, one a format.
pub fn pages(registry: &dyn Registry) -> Vec<Page> {
    let (connectors, formats) = (registry.connectors(), registry.formats());
    let index = Page {
        path: "README.md".to_string(),
        text: index(&connectors, &formats),
    };
    let connectors = connectors.iter().map(|c| Page {
        path: format!("{}.md", c.name),
        text: connector(c),
    });
    let formats = formats.iter().map(|f| Page {
        path: format!("formats/{}.md", f.name),
        text: format(f),
    });
    std::iter::once(index)
        .chain(connectors)
        .chain(formats)
        .collect()
}

fn index(connectors: &[&ConnectorDecl], formats: &[&FormatDecl]) -> String {
    let mut text = format!("{NOTE}# Connectors and formats\n\n");
    text += "The options that every table takes are in the [SQL reference](../sql-reference.md#create-table).\n\n";
    text += "| connector | reads | writes | formats |\n|---|---|---|---|\n";
    for c in connectors {
        let formats: Vec<_> = c.formats.iter().map(|f| format!("`{f}`")).collect();
        let (reads, writes) = (yes(c.can_read), yes(c.can_write));
        push(
            &mut text,
            format_args!(
                "| [`{0}`]({0}.md) | {reads} | {writes} | {1} |\n",
                c.name,
                formats.join(", ")
            ),
        );
    }
    text += "\n| format | reads | writes | updates and deletes |\n|---|---|---|---|\n";
    for f in formats {
        let updates = match (f.reads_changelog, f.takes_updates) {
            (true, true) => "read and written",
            (true, false) => "read",
            (false, true) => "written",
            (false, false) => "",
        };
        let (reads, writes) = (yes(f.can_read), yes(f.can_write));
        push(
            &mut text,
            format_args!(
                "| [`{0}`](formats/{0}.md) | {reads} | {writes} | {updates} |\n",
                f.name
            ),
        );
    }
    text
}

fn connector(decl: &ConnectorDecl) -> String {
    let mut text = format!("{NOTE}# `{}`\n\n{}\n\n", decl.name, decl.meaning);
    let direction = match (decl.can_read, decl.can_write) {
        (true, true) => "For reading and for writing.",
        (true, false) => "For reading.",
        _ => "For writing.",
    };
    push(&mut text, format_args!("{direction}\n\n"));
    if let Some((_, sql)) = EXAMPLES.iter().find(|(name, _)| *name == decl.name) {
        push(&mut text, format_args!("```sql\n{sql}\n```\n\n"));
    }
    if !decl.formats.is_empty() {
        let formats: Vec<_> = decl
            .formats
            .iter()
            .map(|f| format!("[`{f}`](formats/{f}.md)"))
            .collect();
        push(
            &mut text,
            format_args!("Formats: {}.\n\n", formats.join(", ")),
        );
    }
    text += &options(decl.options);
    if !decl.fixed_columns.is_empty() {
        text += "\n## Columns\n\nThey need not be declared.\n\n| column | type |\n|---|---|\n";
        for (name, sql_type) in decl.fixed_columns {
            push(&mut text, format_args!("| `{name}` | `{sql_type}` |\n"));
        }
    }
    if !decl.metadata.is_empty() {
        text += "\n## Metadata\n\nFor columns declared as `name TYPE METADATA FROM 'key'`.\n\n";
        text += "| key | type | meaning |\n|---|---|---|\n";
        for (key, sql_type, meaning) in decl.metadata {
            push(
                &mut text,
                format_args!("| `{key}` | `{sql_type}` | {} |\n", cell(meaning)),
            );
        }
    }
    text
}

fn format(decl: &FormatDecl) -> String {
    let mut text = format!("{NOTE}# Format `{}`\n\n{}\n\n", decl.name, decl.meaning);
    let direction = match (decl.can_read, decl.can_write) {
        (true, true) => "For reading and for writing.",
        (true, false) => "For reading.",
        _ => "For writing.",
    };
    let updates = match (decl.reads_changelog, decl.takes_updates) {
        (false, false) => " Append-only: it has no way to say that a row was changed or deleted.",
        (false, true) => " Writes updates and deletes.",
        (true, false) => " What it reads is a changelog.",
        (true, true) => " What it reads is a changelog, and it writes updates and deletes.",
    };
    push(&mut text, format_args!("{direction}{updates}\n\n"));
    text + &options(decl.options)
}

fn options(decls: &[OptionDecl]) -> String {
    if decls.is_empty() {
        return "## Options\n\nNone of its own.\n".to_string();
    }
    let mut text =
        "## Options\n\n| option | value | default | meaning |\n|---|---|---|---|\n".to_string();
    for o in decls {
        let default = match o.default {
            Some(default) => format!("`{default}`"),
            None if o.required => "required".to_string(),
            None => String::new(),
        };
        let (kind, meaning) = (cell(&o.kind.describe()), cell(o.meaning));
        push(
            &mut text,
            format_args!("| `{}` | {kind} | {default} | {meaning} |\n", o.name),
        );
    }
    text
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "" }
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn push(text: &mut String, args: std::fmt::Arguments<'_>) {
    text.write_fmt(args).expect("a string takes any text");
}

const EXAMPLES: [(&str, &str); 6] = [
    (
        "impulse",
        "CREATE TABLE impulse WITH (\n    connector = 'impulse',\n    event_rate = '100'\n);",
    ),
    (
        "single_file",
        "CREATE TABLE orders (\n    order_id BIGINT,\n    amount DECIMAL(12, 2),\n    event_time TIMESTAMP,\n    \
         WATERMARK FOR event_time\n) WITH (\n    connector = 'single_file',\n    path = 'orders.ndjson'\n);",
    ),
    (
        "filesystem",
        "CREATE TABLE events (\n    id BIGINT,\n    file TEXT METADATA FROM 'filename'\n) WITH (\n    connector = \
         'filesystem',\n    path = 'events/*.csv.gz'\n);",
    ),
    (
        "kafka",
        "CREATE TABLE orders (\n    order_id BIGINT,\n    amount DECIMAL(12, 2),\n    at BIGINT METADATA FROM 'offset'\n) \
         WITH (\n    connector = 'kafka',\n    bootstrap_servers = 'localhost:9092',\n    topic = 'orders',\n    \
         format = 'json',\n    source.offset = 'earliest'\n);",
    ),
    (
        "stdout",
        "CREATE TABLE out (\n    customer_id TEXT PRIMARY KEY,\n    total DECIMAL(12, 2)\n) WITH (\n    connector = \
         'stdout',\n    format = 'debezium_json'\n);",
    ),
    (
        "blackhole",
        "CREATE TABLE nowhere (\n    id BIGINT\n) WITH (\n    connector = 'blackhole'\n);",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Connectors;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn directory() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/connectors")
    }

    fn markdown_files(directory: &Path) -> BTreeSet<PathBuf> {
        let Ok(entries) = fs::read_dir(directory) else {
            return BTreeSet::new();
        };
        let paths = entries.map(|e| e.unwrap().path());
        paths
            .filter(|p| p.extension().is_some_and(|e| e == "md"))
            .collect()
    }

    #[test]
    fn the_manual_matches_the_declarations() {
        let directory = directory();
        let pages = pages(&Connectors::standard());
        let mut stale = markdown_files(&directory);
        stale.extend(markdown_files(&directory.join("formats")));
        for Page { path, text } in &pages {
            let path = directory.join(path);
            if std::env::var_os("UPDATE_DOCS").is_some() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, text).unwrap();
            }
            let found = fs::read_to_string(&path).unwrap_or_default();
            assert!(
                &found == text,
                "{} is out of date: run UPDATE_DOCS=1 cargo test -p thalweg-connectors the_manual",
                path.display()
            );
            stale.remove(&path);
        }
        assert!(
            stale.is_empty(),
            "pages of what no longer exists: {stale:?}"
        );
    }

    #[test]
    fn a_page_says_what_a_declaration_says() {
        let all = Connectors::standard();
        let pages = pages(&all);
        let page = |path: &str| &pages.iter().find(|p| p.path == path).unwrap().text;
        let file = page("single_file.md");
        assert!(
            file.contains("| `path` | text | required | The file."),
            "{file}"
        );
        assert!(
            file.contains("| `max_record_bytes` | a size such as '64 MiB' | `64 MiB` |"),
            "{file}"
        );
        assert!(file.contains("| `filename` | `TEXT` |"), "{file}");
        assert!(page("impulse.md").contains("| `counter` | `BIGINT UNSIGNED` |"));
        assert!(page("README.md").contains("| [`blackhole`](blackhole.md) |  | yes |  |"));
        for connector in all.connectors() {
            let example = EXAMPLES.iter().find(|(name, _)| *name == connector.name);
            assert!(
                example.is_some_and(|(name, sql)| sql.contains(&format!("connector = '{name}'")))
            );
        }
    }
}
