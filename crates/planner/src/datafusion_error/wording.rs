//! DataFusion's texts in our words.

use arrow::datatypes::DataType;

use crate::error::{Fault, FaultKind, closest, lower_first};
use crate::functions::Functions;
use crate::parse::TABLE_ARGUMENT;
use crate::types::sql_name;

/// What `DataFusionError::Plan` says, which is mostly text.
pub fn planning(message: &str) -> Fault {
    if let Some(name) = between(message, "Invalid function '", "'") {
        return undefined_function(name);
    }
    let known = [
        wrong_arguments,
        wrong_operator,
        wrong_condition,
        repeated_name,
    ];
    if let Some(fault) = known.iter().find_map(|translate| translate(message)) {
        return fault;
    }
    let kind = match message {
        text if text.contains("must appear in the GROUP BY clause") => FaultKind::Grouping,
        text if text.contains("must be in the GROUP BY") => FaultKind::Grouping,
        text if text.contains("arguments but received") => FaultKind::UndefinedFunction,
        _ => FaultKind::InvalidType,
    };
    Fault::new(kind, sentence(message))
}

fn undefined_function(name: &str) -> Fault {
    if name == TABLE_ARGUMENT {
        return Fault::new(
            FaultKind::Syntax,
            "TABLE stands before the first argument of TUMBLE or HOP only",
        );
    }
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
pub fn wrong_arguments(message: &str) -> Option<Fault> {
    let name = between(message, "a call to '", "' function").or_else(|| {
        let unmatched = message.contains("failed to match any signature");
        unmatched
            .then(|| between(message, "Function '", "'"))
            .flatten()
    })?;
    let given = between(message, "(DataType: ", ")")
        .map_or_else(|| "these arguments".to_string(), with_sql_types);
    let fault = Fault::new(
        FaultKind::UndefinedFunction,
        format!("function \"{name}\" does not take {given}"),
    );
    let mut forms: Vec<String> = message
        .lines()
        .filter_map(|line| line.strip_prefix('\t'))
        .map(with_sql_types)
        .collect();
    forms.retain(|form| form.starts_with(name));
    if (1..=4).contains(&forms.len())
        && !forms
            .iter()
            .any(|form| form.contains("Any") || form.contains("UserDefined"))
    {
        return Some(fault.hint(format!("it is called as {}", forms.join(" or "))));
    }
    let parts = message
        .split(" requires ")
        .skip(1)
        .filter_map(|part| part.split_once(", but received"));
    let mut wanted: Vec<String> = parts.map(|(wanted, _)| with_sql_types(wanted)).collect();
    wanted.dedup();
    Some(if wanted.is_empty() {
        fault
    } else {
        fault.hint(format!("it takes {}", wanted.join(", ")))
    })
}

/// An operator between types that it is not defined for.
fn wrong_operator(message: &str) -> Option<Fault> {
    let arithmetic = between(
        message,
        "Cannot coerce arithmetic expression ",
        " to valid types",
    );
    let comparison = || {
        message
            .split_once("common argument type for comparison operation ")
            .map(|(_, operation)| operation)
    };
    let logical = || {
        message
            .split_once("Cannot infer common argument type for logical boolean operation ")
            .map(|(_, o)| o)
    };
    let temporal = || {
        between(
            message,
            "Cannot get result type for temporal operation ",
            ": ",
        )
    };
    let operation = arithmetic
        .or_else(comparison)
        .or_else(logical)
        .or_else(temporal)?;
    let fault = Fault::new(
        FaultKind::UndefinedFunction,
        format!("{} is not defined", with_sql_types(operation)),
    );
    Some(fault.hint("CAST one side to the type of the other"))
}

/// A condition that is no condition.
fn wrong_condition(message: &str) -> Option<Fault> {
    let (_, given) = message.split_once("Cannot create filter with non-boolean predicate ")?;
    let (_, given) = given.split_once("' returning ")?;
    Some(Fault::new(
        FaultKind::InvalidType,
        format!("the condition is {}, not BOOLEAN", with_sql_types(given)),
    ))
}

fn repeated_name(message: &str) -> Option<Fault> {
    if !message.contains("require unique expression names") {
        return None;
    }
    let expression = between(message, "the expression \"", "\"")?;
    let name = expression
        .rsplit_once(" AS ")
        .map_or(expression, |(_, alias)| alias);
    // A column stands there with its table.
    let is_column = name
        .split('.')
        .all(|part| part.chars().all(|ch| ch.is_alphanumeric() || ch == '_'));
    let name = if is_column {
        name.rsplit_once('.').map_or(name, |(_, column)| column)
    } else {
        name
    };
    Some(Fault::duplicate_column(name))
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let start = text.find(before)? + before.len();
    let end = text[start..].find(after)?;
    Some(&text[start..start + end])
}

/// The first sentence of DataFusion's text, in lower case and with SQL's names of types.
pub fn sentence(text: &str) -> String {
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
        .replace("List(Utf8)", "TEXT[]")
        .replace("List(Int32)", "INT[]")
        .replace("List(Int64)", "BIGINT[]");
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
    let data_type = match word {
        "Utf8" | "LargeUtf8" | "Utf8View" | "String" => DataType::Utf8,
        "Boolean" => DataType::Boolean,
        "Int8" => DataType::Int8,
        "Int16" => DataType::Int16,
        "Int32" => DataType::Int32,
        "Int64" => DataType::Int64,
        "UInt8" => DataType::UInt8,
        "UInt16" => DataType::UInt16,
        "UInt32" => DataType::UInt32,
        "UInt64" => DataType::UInt64,
        "Float32" => DataType::Float32,
        "Float64" => DataType::Float64,
        "Date32" => DataType::Date32,
        "Binary" => DataType::Binary,
        "Decimal" => return Some("DECIMAL".to_string()),
        "Timestamp" => return Some("TIMESTAMP".to_string()),
        "Time" => return Some("TIME".to_string()),
        "Interval" | "Duration" => return Some("INTERVAL".to_string()),
        _ => return None,
    };
    Some(sql_name(&data_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrow_types_in_messages_become_those_of_sql() {
        assert_eq!(
            sentence("Cannot cast Utf8 to Int64. Sorry."),
            "cannot cast TEXT to BIGINT"
        );
        assert_eq!(sentence("UNNEST takes lists"), "UNNEST takes lists");
        assert_eq!(
            sentence("Arrow error: Cast error: Bad value: Date32"),
            "bad value: DATE"
        );
    }

    #[test]
    fn what_datafusion_says_at_length_is_said_in_short() {
        for (theirs, ours) in [
            (
                "Invalid function 'lenght'.\nDid you mean 'x'?",
                "function \"lenght\" does not exist · hint: did you mean \"length\"?",
            ),
            (
                "Cannot coerce arithmetic expression Int64 + Utf8 to valid types",
                "BIGINT + TEXT is not defined · hint: CAST one side to the type of the other",
            ),
            (
                "Cannot create filter with non-boolean predicate 't.a' returning Int64",
                "the condition is BIGINT, not BOOLEAN",
            ),
            (
                "Projections require unique expression names but the expression \"t.a\" at position 0 and \"t.a\" at position 1 have the same name.",
                "column \"a\" is ambiguous: the query gives two of that name · hint: name one of them otherwise with AS",
            ),
        ] {
            assert_eq!(planning(theirs).to_string(), ours);
        }
    }
}
