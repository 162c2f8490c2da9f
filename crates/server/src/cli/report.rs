//! Faults and failures, for people and for programs.

use std::fmt::Write;

use serde_json::{Value, json};
use thalweg_planner::{Fault, FaultKind};

use super::console::tell;
use super::exit::Exit;
use super::input::SqlText;
use crate::error::Error;

/// Tells a failure on standard error: what, where, what to do. Gives the exit code for it.
pub fn failure(error: &Error) -> Exit {
    if let Error::Faults(faults) = error {
        // No text to point into: the caller that has it prints them itself.
        for fault in faults {
            tell(format_args!("error: {fault}"));
        }
        return Exit::FaultySql;
    }
    tell(format_args!("error: {error}"));
    if let Some(hint) = error.hint() {
        tell(format_args!("hint: {hint}"));
    }
    if matches!(error, Error::Usage(_)) {
        Exit::Usage
    } else {
        Exit::Failed
    }
}

/// Tells every fault of a script on standard error, each with its line.
pub fn faults(script: &SqlText, faults: &[Fault]) -> Exit {
    for fault in faults {
        tell(pretty(script, fault));
    }
    if faults.len() > 1 {
        tell(format_args!("{}: {} faults", script.name, faults.len()));
    }
    Exit::FaultySql
}

/// A fault with the line that it is in and a caret under the place.
fn pretty(script: &SqlText, fault: &Fault) -> String {
    let mut out = format!("error[{}]: {}", fault.kind.sqlstate(), fault.message);
    let margin = fault.position.map_or(0, |p| p.line.to_string().len());
    if let Some(position) = fault.position {
        let _ = write!(
            out,
            "\n{:margin$}--> {}:{}:{}",
            "", script.name, position.line, position.column
        );
        if let Some(line) = script
            .text
            .lines()
            .nth(position.line.saturating_sub(1) as usize)
        {
            let (line, column) = excerpt(line, position.column as usize);
            // A tab stays a tab, or the caret would stand elsewhere than the name.
            let indent: String = line
                .chars()
                .take(column.saturating_sub(1))
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            let _ = write!(
                out,
                "\n{} | {line}\n{:margin$} | {indent}^",
                position.line, ""
            );
        }
    }
    if let Some(hint) = &fault.hint {
        let _ = write!(out, "\n{:margin$} = hint: {hint}", "");
    }
    out
}

/// At most this many characters of a line are shown.
const EXCERPT_CHARS: usize = 120;

/// The part of a long line around a column, and the column in that part.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    let n_chars = line.chars().count();
    if n_chars <= EXCERPT_CHARS {
        return (line.to_string(), column);
    }
    let start = column
        .saturating_sub(EXCERPT_CHARS / 2)
        .min(n_chars - EXCERPT_CHARS);
    (
        line.chars().skip(start).take(EXCERPT_CHARS).collect(),
        column - start,
    )
}

/// The faults as `validate --json` prints them.
pub fn faults_json(faults: &[Fault]) -> Value {
    Value::Array(faults.iter().map(fault_json).collect())
}

fn fault_json(fault: &Fault) -> Value {
    json!({
        "kind": kind_name(fault.kind),
        "sqlstate": fault.kind.sqlstate(),
        "message": fault.message,
        "line": fault.position.map(|p| p.line),
        "column": fault.position.map(|p| p.column),
        "hint": fault.hint,
    })
}

fn kind_name(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Syntax => "syntax",
        FaultKind::UndefinedTable => "undefined_table",
        FaultKind::UndefinedColumn => "undefined_column",
        FaultKind::UndefinedFunction => "undefined_function",
        FaultKind::UndefinedObject => "undefined_object",
        FaultKind::UndefinedParameter => "undefined_parameter",
        FaultKind::DuplicateObject => "duplicate_object",
        FaultKind::InUse => "in_use",
        FaultKind::InvalidOption => "invalid_option",
        FaultKind::InvalidType => "invalid_type",
        FaultKind::Grouping => "grouping",
        FaultKind::Unsupported => "unsupported",
        FaultKind::NotStreamable => "not_streamable",
        FaultKind::Internal => "internal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use thalweg_planner::Position;

    fn fault(line: u64, column: u64) -> Fault {
        Fault::new(
            FaultKind::UndefinedColumn,
            "column \"ammount\" does not exist",
        )
        .at(Some(Position { line, column }))
        .hint("table \"orders\" has \"amount\"")
    }

    #[test]
    fn a_fault_shows_its_line_with_a_caret() {
        let script = SqlText {
            name: "a.sql".into(),
            text: "SELECT\n\tsum(ammount)\nFROM orders".into(),
        };
        expect![[r#"
            error[42703]: column "ammount" does not exist
             --> a.sql:2:6
            2 | 	sum(ammount)
              | 	    ^
              = hint: table "orders" has "amount""#]]
        .assert_eq(&pretty(&script, &fault(2, 6)));
    }

    #[test]
    fn a_position_outside_the_text_or_in_a_long_line_does_no_harm() {
        let long = format!("{}ammount{}", " ".repeat(5000), "x".repeat(5000));
        let shown = pretty(
            &SqlText {
                name: "a".into(),
                text: long,
            },
            &fault(1, 5001),
        );
        let lines: Vec<_> = shown.lines().collect();
        let caret = lines[3].find('^').unwrap();
        assert_eq!(&lines[2][caret..caret + 7], "ammount");
        pretty(
            &SqlText {
                name: "a".into(),
                text: "x".into(),
            },
            &fault(99, 99),
        );
        pretty(
            &SqlText {
                name: "a".into(),
                text: "x".into(),
            },
            &fault(0, 0),
        );
    }

    #[test]
    fn faults_as_json_have_every_field() {
        let json = faults_json(&[fault(2, 6), Fault::new(FaultKind::Syntax, "no")]);
        expect![[r#"[{"kind":"undefined_column","sqlstate":"42703","message":"column \"ammount\" does not exist","line":2,"column":6,"hint":"table \"orders\" has \"amount\""},{"kind":"syntax","sqlstate":"42601","message":"no","line":null,"column":null,"hint":null}]"#]]
        .assert_eq(&json.to_string());
    }
}
