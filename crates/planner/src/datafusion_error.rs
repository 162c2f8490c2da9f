//! Faults through DataFusion and back: what its planner says of a query, in our words.
//!
//! Our hooks in its planner can only give its error type, so a [`Fault`] travels inside of one.

use datafusion::common::{Column, DataFusionError, Diagnostic, SchemaError, Span};

use crate::error::{Fault, FaultKind, Position, closest, lower_first};
use crate::functions::Functions;
use crate::types::sql_name;

impl From<Fault> for DataFusionError {
    fn from(fault: Fault) -> Self {
        Self::External(Box::new(fault))
    }
}

impl Fault {
    /// The fault that `error` carries, or what DataFusion says in our words. With the position that
    /// its diagnostics give, where they give one.
    pub fn from_datafusion(error: DataFusionError) -> Self {
        translate(&error)
    }

    /// Two columns of a result with one name.
    pub fn duplicate_column(name: &str) -> Self {
        let fault = Self::new(
            FaultKind::DuplicateObject,
            format!("the query gives two columns named \"{name}\""),
        );
        fault.hint("name one of them otherwise with AS")
    }
}

fn translate(error: &DataFusionError) -> Fault {
    match error {
        DataFusionError::External(inner) => {
            match (inner.downcast_ref::<Fault>(), inner.downcast_ref()) {
                (Some(fault), _) => fault.clone(),
                (None, Some(error)) => translate(error),
                (None, None) => Fault::new(FaultKind::Internal, inner.to_string()),
            }
        }
        DataFusionError::Diagnostic(diagnostic, inner) => diagnosed(diagnostic, inner),
        DataFusionError::Context(_, inner) => translate(inner),
        DataFusionError::Shared(inner) => translate(inner),
        DataFusionError::Collection(errors) => match errors.first() {
            Some(first) => translate(first),
            None => Fault::new(FaultKind::Internal, "DataFusion failed without an error"),
        },
        DataFusionError::SchemaError(error, _) => schema_fault(error),
        DataFusionError::Plan(message) => planning(message),
        DataFusionError::NotImplemented(message) => {
            Fault::new(FaultKind::Unsupported, sentence(message))
        }
        DataFusionError::Internal(message) => match wrong_arguments(message) {
            Some(fault) => fault,
            None => Fault::new(FaultKind::Internal, sentence(message)),
        },
        other => Fault::new(FaultKind::InvalidType, sentence(&other.strip_backtrace())),
    }
}

fn diagnosed(diagnostic: &Diagnostic, inner: &DataFusionError) -> Fault {
    let mut fault = translate(inner);
    if let Some(column) = diagnostic
        .message
        .strip_suffix("' must appear in GROUP BY clause because it's not an aggregate expression")
    {
        let column = column.trim_start_matches('\'');
        fault = grouping(column);
    }
    fault.at(diagnostic.span.map(position))
}

fn position(span: Span) -> Position {
    Position {
        line: span.start.line,
        column: span.start.column,
    }
}

fn schema_fault(error: &SchemaError) -> Fault {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => undefined_column(field, valid_fields),
        SchemaError::AmbiguousReference { field } => {
            let fault = Fault::new(
                FaultKind::UndefinedColumn,
                format!("column \"{}\" is ambiguous", field.name),
            );
            fault
                .at(field.spans.first().map(position))
                .hint("name its table before it, as in t.column")
        }
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => Fault::duplicate_column(name),
    }
}

fn undefined_column(field: &Column, valid: &[Column]) -> Fault {
    let name = match &field.relation {
        Some(relation) => format!("{relation}.{}", field.name),
        None => field.name.clone(),
    };
    let fault = Fault::new(
        FaultKind::UndefinedColumn,
        format!("column \"{name}\" does not exist"),
    );
    let fault = fault.at(field.spans.first().map(position));
    let Some(known) = closest(&field.name, valid.iter().map(|column| column.name.as_str())) else {
        return fault;
    };
    match valid
        .iter()
        .find(|column| column.name == known)
        .and_then(|column| column.relation.as_ref())
    {
        Some(table) => fault.hint(format!("table \"{table}\" has \"{known}\"")),
        None => fault.hint(format!("did you mean \"{known}\"?")),
    }
}

fn grouping(column: &str) -> Fault {
    let message = format!(
        "column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function"
    );
    Fault::new(FaultKind::Grouping, message)
}

/// What `DataFusionError::Plan` says, which is mostly text.
fn planning(message: &str) -> Fault {
    if let Some(name) = between(message, "Invalid function '", "'") {
        return undefined_function(name);
    }
    if let Some(fault) = wrong_arguments(message) {
        return fault;
    }
    if message.contains("must appear in the GROUP BY clause")
        || message.contains("must be in the GROUP BY")
    {
        return Fault::new(FaultKind::Grouping, sentence(message));
    }
    if message.contains("require unique expression names")
        && let Some(name) = between(message, "the expression \"", "\"")
    {
        return Fault::duplicate_column(name.rsplit_once(" AS ").map_or(name, |(_, alias)| alias));
    }
    Fault::new(FaultKind::InvalidType, sentence(message))
}

fn undefined_function(name: &str) -> Fault {
    let fault = Fault::new(
        FaultKind::UndefinedFunction,
        format!("function \"{name}\" does not exist"),
    );
    match closest(name, Functions::get().names()) {
        Some(known) => fault.hint(format!("did you mean \"{known}\"?")),
        None => fault,
    }
}

/// A call whose arguments no form of the function takes.
fn wrong_arguments(message: &str) -> Option<Fault> {
    let name = between(message, "a call to '", "' function").or_else(|| {
        message
            .contains("failed to match any signature")
            .then(|| between(message, "Function '", "'"))
            .flatten()
    })?;
    let given = between(message, "(DataType: ", ")")
        .map_or_else(|| "these arguments".to_string(), with_sql_types);
    let fault = Fault::new(
        FaultKind::UndefinedFunction,
        format!("function \"{name}\" does not take {given}"),
    );
    let forms: Vec<_> = message
        .lines()
        .filter_map(|line| line.strip_prefix('\t'))
        .map(with_sql_types)
        .collect();
    if !forms.is_empty()
        && forms.len() <= 4
        && !forms
            .iter()
            .any(|form| form.contains("Any") || form.contains("UserDefined"))
    {
        return Some(fault.hint(format!("it is called as {}", forms.join(" or "))));
    }
    let wanted: Vec<_> = message
        .split(" requires ")
        .skip(1)
        .filter_map(|part| part.split_once(", but received"))
        .map(|(wanted, _)| with_sql_types(wanted))
        .collect();
    Some(if wanted.is_empty() {
        fault
    } else {
        fault.hint(format!("it takes {}", wanted.join(", ")))
    })
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let start = text.find(before)? + before.len();
    let end = text[start..].find(after)?;
    Some(&text[start..start + end])
}

/// The first sentence of DataFusion's text, in lower case and with SQL's names of types.
fn sentence(text: &str) -> String {
    const PREFIXES: [&str; 8] = [
        "Error during planning: ",
        "Arrow error: ",
        "Cast error: ",
        "Parser error: ",
        "Compute error: ",
        "Invalid argument error: ",
        "Execution error: ",
        "This feature is not implemented: ",
    ];
    let mut text = text;
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    let line = text.lines().next().unwrap_or_default();
    let line = line
        .split(". ")
        .next()
        .unwrap_or_default()
        .trim_end_matches(['.', ' ']);
    lower_first(&with_sql_types(line))
}

/// Replaces words such as `Int64` by `BIGINT`.
fn with_sql_types(text: &str) -> String {
    let text = text
        .replace("Timestamp(ns, \"+00:00\")", "TIMESTAMP WITH TIME ZONE")
        .replace("Timestamp(ns)", "TIMESTAMP")
        .replace("Time64(ns)", "TIME")
        .replace("Interval(MonthDayNano)", "INTERVAL")
        .replace("Decimal128(", "DECIMAL(")
        .replace("List(Utf8)", "TEXT[]");
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    for ch in text.chars().chain(['\0']) {
        if ch.is_ascii_alphanumeric() {
            word.push(ch);
            continue;
        }
        out.push_str(&sql_type_of_word(&word).unwrap_or_else(|| word.clone()));
        word.clear();
        if ch != '\0' {
            out.push(ch);
        }
    }
    out
}

fn sql_type_of_word(word: &str) -> Option<String> {
    use arrow::datatypes::DataType as A;
    let data_type = match word {
        "Utf8" | "LargeUtf8" | "Utf8View" => A::Utf8,
        "Boolean" => A::Boolean,
        "Int8" => A::Int8,
        "Int16" => A::Int16,
        "Int32" => A::Int32,
        "Int64" => A::Int64,
        "UInt8" => A::UInt8,
        "UInt16" => A::UInt16,
        "UInt32" => A::UInt32,
        "UInt64" => A::UInt64,
        "Float32" => A::Float32,
        "Float64" => A::Float64,
        "Date32" => A::Date32,
        "Binary" => A::Binary,
        "Decimal" => return Some("DECIMAL".to_string()),
        "Interval" | "Duration" => return Some("INTERVAL".to_string()),
        _ => return None,
    };
    Some(sql_name(&data_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_survives_the_way_through_datafusion() {
        let fault = Fault::new(FaultKind::NotStreamable, "no").hint("yes");
        let error = DataFusionError::from(fault.clone())
            .context("rule")
            .context("pass");
        assert_eq!(Fault::from_datafusion(error), fault);
    }

    #[test]
    fn arrow_types_in_messages_become_those_of_sql() {
        assert_eq!(
            sentence("Cannot cast Utf8 to Int64. Sorry."),
            "cannot cast TEXT to BIGINT"
        );
        assert_eq!(sentence("UNNEST takes lists"), "UNNEST takes lists");
    }
}
