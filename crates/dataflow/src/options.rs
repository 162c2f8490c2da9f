//! Declarations of the options that connectors and formats take.
//!
//! An option is declared once, with its type, default and meaning. Validation, error hints and the
//! reference pages of the manual all come from these declarations.

use std::collections::BTreeMap;

/// What a value of an option must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    Text,
    Bool,
    /// A whole number, 0 or more.
    Count,
    /// A number of rows or events, which may have a fraction.
    Number,
    /// `'5 minutes'`; see [`crate::time::parse_duration`].
    Duration,
    /// A number of bytes: `1048576`, `'64 MiB'`, `'1 GB'`.
    Bytes,
    /// One of a few words.
    Choice(&'static [&'static str]),
}

impl OptionKind {
    pub fn describe(self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Bool => "true or false".into(),
            Self::Count => "a whole number".into(),
            Self::Number => "a number".into(),
            Self::Duration => "a duration such as '5 minutes'".into(),
            Self::Bytes => "a size such as '64 MiB'".into(),
            Self::Choice(words) => {
                let words: Vec<_> = words.iter().map(|w| format!("'{w}'")).collect();
                words.join(", ")
            }
        }
    }

    /// Checks `value`; the error says what was expected.
    pub fn check(self, value: &str) -> Result<(), String> {
        let ok = match self {
            Self::Text => true,
            Self::Bool => parse_bool(value).is_some(),
            Self::Count => value.parse::<u64>().is_ok(),
            Self::Number => value
                .parse::<f64>()
                .is_ok_and(|n| n.is_finite() && n >= 0.0),
            Self::Duration => return crate::time::parse_duration(value).map(|_| ()),
            Self::Bytes => parse_bytes(value).is_some(),
            Self::Choice(words) => words.contains(&value),
        };
        if ok {
            Ok(())
        } else {
            Err(format!("expected {}, found '{value}'", self.describe()))
        }
    }
}

/// One option of a connector or a format.
#[derive(Debug, Clone, Copy)]
pub struct OptionDecl {
    /// A name; or a beginning of names with `*` behind it, for settings that are passed on to something that knows them.
    pub name: &'static str,
    pub kind: OptionKind,
    /// What holds where the option is not given; `None` with `required` false means "unset".
    pub default: Option<&'static str>,
    pub required: bool,
    pub meaning: &'static str,
}

impl OptionDecl {
    pub const fn optional(
        name: &'static str,
        kind: OptionKind,
        default: Option<&'static str>,
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            required: false,
            meaning,
        }
    }

    /// Whether the option called `name` is declared by this.
    pub fn declares(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(beginning) => name.len() > beginning.len() && name.starts_with(beginning),
            None => self.name == name,
        }
    }

    pub const fn required(name: &'static str, kind: OptionKind, meaning: &'static str) -> Self {
        Self {
            name,
            kind,
            default: None,
            required: true,
            meaning,
        }
    }
}

/// Which way data goes through a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Source,
    Sink,
}

/// What a connector is, as the planner sees it.
#[derive(Debug, Clone)]
pub struct ConnectorDecl {
    pub name: &'static str,
    pub meaning: &'static str,
    pub options: &'static [OptionDecl],
    pub can_read: bool,
    pub can_write: bool,
    /// Formats it carries; empty where records have a fixed schema.
    pub formats: &'static [&'static str],
    /// The format of a table that names none, from its other options: a file's extension says it.
    /// `None`: the connector takes no format, or the table must name one.
    pub default_format: fn(&BTreeMap<String, String>) -> Option<&'static str>,
    /// Columns it has by itself, where a table may leave them out: name and SQL type.
    pub fixed_columns: &'static [(&'static str, &'static str)],
    /// Keys for `METADATA FROM`: name, SQL type and meaning.
    pub metadata: &'static [(&'static str, &'static str, &'static str)],
    /// Whether the sink takes an updating result without a format that can express one.
    pub takes_updates: bool,
    /// Whether reading ends by itself, given the options.
    pub bounded: fn(&BTreeMap<String, String>) -> bool,
}

/// What a format is, as the planner sees it.
#[derive(Debug, Clone)]
pub struct FormatDecl {
    pub name: &'static str,
    pub meaning: &'static str,
    pub options: &'static [OptionDecl],
    pub can_read: bool,
    pub can_write: bool,
    /// Whether written records can express updates and deletes.
    pub takes_updates: bool,
    /// Whether the read stream is a changelog.
    pub reads_changelog: bool,
}

/// What can be named in a `CREATE TABLE`: the planner asks this, the server fills it from the
/// connectors' own declarations.
pub trait Registry: Send + Sync {
    fn connectors(&self) -> Vec<&ConnectorDecl>;
    fn formats(&self) -> Vec<&FormatDecl>;

    fn connector(&self, name: &str) -> Option<&ConnectorDecl> {
        self.connectors().into_iter().find(|c| c.name == name)
    }

    fn format(&self, name: &str) -> Option<&FormatDecl> {
        self.formats().into_iter().find(|f| f.name == name)
    }

    /// Checks what a declaration of single options cannot say: options that exclude each other, a
    /// format that needs a certain column type. No I/O.
    fn check_table(&self, table: &TableCheck<'_>) -> Result<(), OptionFault>;
}

/// A table whose options are each valid by themselves.
#[derive(Debug)]
pub struct TableCheck<'a> {
    pub connector: &'a str,
    pub format: Option<&'a str>,
    pub options: &'a Options,
    /// The columns that a record holds: neither generated nor metadata.
    pub schema: &'a arrow::datatypes::Schema,
    pub direction: Direction,
}

/// A table that declares no columns of its own: what there is to find them by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    pub table: String,
    pub connector: String,
    pub format: Option<String>,
    pub options: Options,
    /// Records to look at, where the columns may be told from records.
    pub sample: Option<usize>,
}

/// What is wrong with a table's options, and which option to point at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionFault {
    pub option: Option<String>,
    pub message: String,
    pub hint: Option<String>,
}

pub fn parse_bool(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Some(true),
        "false" | "off" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Bytes of `'1048576'`, `'64 MiB'`, `'1 GB'` (1000-based without the `i`).
pub fn parse_bytes(value: &str) -> Option<u64> {
    let value = value.trim();
    let digits = value
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(value.len());
    let number: u64 = value[..digits].parse().ok()?;
    let unit: u64 = match value[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "kib" => 1 << 10,
        "mb" => 1_000_000,
        "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// Validated options of one table, defaults filled in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// `given` must have been checked against `decls`; defaults are added from there.
    pub fn resolve(given: &BTreeMap<String, String>, decls: &[OptionDecl]) -> Self {
        let mut values = given.clone();
        for decl in decls {
            if let Some(default) = decl.default {
                values
                    .entry(decl.name.to_string())
                    .or_insert_with(|| default.to_string());
            }
        }
        Self(values)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn bool(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(parse_bool)
    }

    pub fn count(&self, name: &str) -> Option<u64> {
        self.text(name).and_then(|v| v.parse().ok())
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.text(name).and_then(|v| v.parse().ok())
    }

    pub fn bytes(&self, name: &str) -> Option<u64> {
        self.text(name).and_then(parse_bytes)
    }

    /// Nanoseconds.
    pub fn duration(&self, name: &str) -> Option<i64> {
        self.text(name)
            .and_then(|v| crate::time::parse_duration(v).ok())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        assert_eq!(parse_bytes("64 MiB"), Some(64 << 20));
        assert_eq!(parse_bytes("1GB"), Some(1_000_000_000));
        assert_eq!(parse_bytes("7"), Some(7));
        assert_eq!(parse_bytes("7 parsecs"), None);
        assert_eq!(parse_bytes("99999999999 GiB"), None);
    }

    #[test]
    fn a_star_declares_all_names_with_its_beginning() {
        let any = OptionDecl::optional("kafka.*", OptionKind::Text, None, "");
        assert!(any.declares("kafka.linger.ms"));
        assert!(!any.declares("kafka.") && !any.declares("kafk") && !any.declares("linger.ms"));
        let one = OptionDecl::optional("topic", OptionKind::Text, None, "");
        assert!(one.declares("topic") && !one.declares("topics"));
    }

    #[test]
    fn a_wrong_value_says_what_was_expected() {
        let err = OptionKind::Choice(&["fail", "drop"])
            .check("ignore")
            .unwrap_err();
        assert_eq!(err, "expected 'fail', 'drop', found 'ignore'");
        assert!(OptionKind::Number.check("-1").is_err());
        assert!(OptionKind::Number.check("inf").is_err());
    }
}
