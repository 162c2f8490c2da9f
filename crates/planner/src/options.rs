//! The options that every table takes, and checking a WITH list against all declarations.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use thalweg_dataflow::options::{
    ConnectorDecl, FormatDecl, OptionDecl, OptionKind, Options, Registry,
};

use crate::error::{Fault, FaultKind, closest, lower_first};
use crate::parse::statement::{Name, OptionClause};

/// Options of every table, whatever its connector.
pub const TABLE_OPTIONS: &[OptionDecl] = &[
    OptionDecl::optional(
        "connector",
        OptionKind::Text,
        None,
        "The system that the table reads or writes. A table without one is an intermediate stream, filled by one INSERT of the script.",
    ),
    OptionDecl::optional(
        "format",
        OptionKind::Text,
        None,
        "How records are encoded; some connectors tell it from their other options.",
    ),
    OptionDecl::optional(
        "type",
        OptionKind::Choice(&["source", "sink"]),
        None,
        "Restricts the table to reading or to writing.",
    ),
    OptionDecl::optional(
        "event_time_field",
        OptionKind::Text,
        None,
        "The column with each row's event time, where WATERMARK FOR does not name it.",
    ),
    OptionDecl::optional(
        "watermark_field",
        OptionKind::Text,
        None,
        "A column with the watermark that each row claims; by default its event time less 1 second.",
    ),
    OptionDecl::optional(
        "idle_timeout",
        OptionKind::Duration,
        Some("5 minutes"),
        "How long a split without rows holds the watermark back; 0: for ever.",
    ),
    OptionDecl::optional(
        "max_event_time_ahead",
        OptionKind::Duration,
        Some("1 hour"),
        "How far an event time of an unbounded source may lie ahead of the clock before its record counts as bad; 0: no limit.",
    ),
    OptionDecl::optional(
        "state_ttl",
        OptionKind::Duration,
        None,
        "For reading a changelog: how long, in event time, a row is kept after its last change; then it is deleted. Unset: for ever.",
    ),
    OptionDecl::optional(
        "bad_data",
        OptionKind::Choice(&["fail", "drop", "dead_letter"]),
        Some("fail"),
        "What happens to a record that cannot be used.",
    ),
    OptionDecl::optional(
        "infer_schema",
        OptionKind::Bool,
        Some("false"),
        "Whether a table without columns gets them from a sample of its records: the union of their fields, with the types that were seen. They are fixed then; a later record that does not fit is a bad record.",
    ),
    OptionDecl::optional(
        "infer_schema.records",
        OptionKind::Count,
        Some("1000"),
        "How many records the sample has at most.",
    ),
    OptionDecl::optional(
        "dead_letter",
        OptionKind::Text,
        None,
        "The table to which bad_data = 'dead_letter' writes.",
    ),
];

/// A WITH list by name, with the places of its names and values.
#[derive(Debug, Default)]
pub struct Given<'a> {
    clauses: BTreeMap<&'a str, &'a OptionClause>,
}

impl<'a> Given<'a> {
    /// Faults: an option given twice.
    pub fn new(clauses: &'a [OptionClause], faults: &mut Vec<Fault>) -> Self {
        let mut given = Self::default();
        for clause in clauses {
            match given.clauses.entry(&clause.key.text) {
                Entry::Vacant(entry) => drop(entry.insert(clause)),
                Entry::Occupied(_) => {
                    let message = format!("option '{}' is given twice", clause.key.text);
                    faults.push(
                        Fault::new(FaultKind::DuplicateObject, message)
                            .at(Some(clause.key.position)),
                    );
                }
            }
        }
        given
    }

    pub fn get(&self, name: &str) -> Option<&'a OptionClause> {
        self.clauses.get(name).copied()
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).map(|clause| clause.value.as_str())
    }

    /// The option that is written first.
    pub fn first(&self) -> Option<&'a OptionClause> {
        self.clauses
            .values()
            .copied()
            .min_by_key(|clause| clause.key.position)
    }

    /// A column that an option names.
    pub fn column(&self, name: &str) -> Option<Name> {
        self.get(name).map(|clause| Name {
            text: clause.value.clone(),
            position: clause.value_position,
        })
    }

    /// Options that belong to the connector or format, with their defaults.
    pub fn resolve(&self, connector: &ConnectorDecl, format: Option<&FormatDecl>) -> Options {
        let own = |name: &str| !TABLE_OPTIONS.iter().any(|decl| decl.declares(name));
        let given = self.clauses.iter().filter(|(name, _)| own(name));
        let given = given
            .map(|(name, clause)| (name.to_string(), clause.value.clone()))
            .collect();
        let decls: Vec<OptionDecl> = declared(connector, format).copied().collect();
        Options::resolve(&given, &decls)
    }

    /// Checks names, values and presence against the declarations.
    pub fn check(
        &self,
        connector: &ConnectorDecl,
        format: Option<&FormatDecl>,
        at: &Name,
        faults: &mut Vec<Fault>,
    ) {
        let decls: Vec<&OptionDecl> = TABLE_OPTIONS
            .iter()
            .chain(declared(connector, format))
            .collect();
        let mut meant = Vec::new();
        for clause in self.clauses.values() {
            let name = clause.key.text.as_str();
            match decls.iter().find(|decl| decl.declares(name)) {
                Some(decl) => faults.extend(check_value(decl, clause)),
                None => {
                    let known = closest(name, decls.iter().map(|decl| decl.name));
                    faults.push(unknown_option(&clause.key, connector, format, known));
                    meant.extend(known);
                }
            }
        }
        // One that was misspelt is not missing too.
        let is_missing = |decl: &&&OptionDecl| {
            decl.required && self.get(decl.name).is_none() && !meant.contains(&decl.name)
        };
        for decl in decls.iter().filter(is_missing) {
            let message = format!("table \"{}\" needs the option '{}'", at.text, decl.name);
            let meaning = lower_first(decl.meaning.trim_end_matches('.'));
            let fault = Fault::new(FaultKind::InvalidOption, message).at(Some(at.position));
            faults.push(fault.hint(format!("{meaning} ({})", decl.kind.describe())));
        }
    }
}

fn declared<'a>(
    connector: &'a ConnectorDecl,
    format: Option<&'a FormatDecl>,
) -> impl Iterator<Item = &'a OptionDecl> {
    connector
        .options
        .iter()
        .chain(format.into_iter().flat_map(|f| f.options.iter()))
}

fn check_value(decl: &OptionDecl, clause: &OptionClause) -> Option<Fault> {
    let error = decl.kind.check(&clause.value).err()?;
    let message = format!("option '{}': {error}", clause.key.text);
    let mut fault = Fault::new(FaultKind::InvalidOption, message).at(Some(clause.value_position));
    if let OptionKind::Choice(words) = decl.kind
        && let Some(word) = closest(&clause.value, words.iter().copied())
    {
        fault = fault.hint(format!("did you mean '{word}'?"));
    }
    Some(fault)
}

fn unknown_option(
    key: &Name,
    connector: &ConnectorDecl,
    format: Option<&FormatDecl>,
    known: Option<&str>,
) -> Fault {
    let with = format.map_or_else(String::new, |f| format!(" with format '{}'", f.name));
    let message = format!(
        "unknown option '{}' of connector '{}'{with}",
        key.text, connector.name
    );
    let fault = Fault::new(FaultKind::InvalidOption, message).at(Some(key.position));
    let mut own = declared(connector, format).map(|decl| decl.name).peekable();
    match known {
        Some(name) => fault.hint(format!("did you mean '{name}'?")),
        None if own.peek().is_none() => fault,
        None => fault.hint(format!("it takes {}", quoted(own))),
    }
}

/// The connector that a WITH list names; `None` where it names none or an unknown one.
pub fn find_connector<'r>(
    given: &Given<'_>,
    registry: &'r dyn Registry,
    faults: &mut Vec<Fault>,
) -> Option<&'r ConnectorDecl> {
    let clause = given.get("connector")?;
    let found = registry.connector(&clause.value);
    if found.is_none() {
        let names: Vec<_> = registry.connectors().iter().map(|c| c.name).collect();
        faults.push(unknown("connector", clause, names));
    }
    found
}

/// The format of a table: the one named, or the one that its other options say.
pub fn find_format<'r>(
    given: &Given<'_>,
    connector: &ConnectorDecl,
    table: &Name,
    registry: &'r dyn Registry,
    faults: &mut Vec<Fault>,
) -> Option<&'r FormatDecl> {
    let Some(clause) = given.get("format") else {
        return default_format(given, connector, table, registry, faults);
    };
    let found = registry.format(&clause.value);
    if found.is_none() {
        faults.push(unknown(
            "format",
            clause,
            registry.formats().iter().map(|f| f.name).collect(),
        ));
    } else if !connector.formats.contains(&clause.value.as_str()) {
        let message = format!(
            "connector '{}' does not carry format '{}'",
            connector.name, clause.value
        );
        let fault = Fault::new(FaultKind::InvalidOption, message).at(Some(clause.value_position));
        faults.push(match connector.formats {
            [] => fault.hint("its records have a fixed schema; leave 'format' out"),
            formats => fault.hint(format!("it carries {}", quoted(formats.iter().copied()))),
        });
        return None;
    }
    found
}

fn default_format<'r>(
    given: &Given<'_>,
    connector: &ConnectorDecl,
    table: &Name,
    registry: &'r dyn Registry,
    faults: &mut Vec<Fault>,
) -> Option<&'r FormatDecl> {
    let options = given
        .clauses
        .iter()
        .map(|(name, clause)| (name.to_string(), clause.value.clone()))
        .collect();
    let format = (connector.default_format)(&options).and_then(|name| registry.format(name));
    // A missing required option is the fault then, and the format may follow from it.
    let complete = connector
        .options
        .iter()
        .all(|decl| !decl.required || given.get(decl.name).is_some());
    if format.is_none() && complete && !connector.formats.is_empty() {
        let message = format!("table \"{}\" needs the option 'format'", table.text);
        let fault = Fault::new(FaultKind::InvalidOption, message).at(Some(table.position));
        faults.push(fault.hint(format!(
            "connector '{}' carries {}",
            connector.name,
            quoted(connector.formats.iter().copied())
        )));
    }
    format
}

fn unknown(what: &str, clause: &OptionClause, known: Vec<&str>) -> Fault {
    let fault = Fault::new(
        FaultKind::UndefinedObject,
        format!("unknown {what} '{}'", clause.value),
    )
    .at(Some(clause.value_position));
    match closest(&clause.value, known.iter().copied()) {
        Some(name) => fault.hint(format!("did you mean '{name}'?")),
        None => fault.hint(format!("there are {}", quoted(known))),
    }
}

fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("'{name}'")).collect();
    names.join(", ")
}
