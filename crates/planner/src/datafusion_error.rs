//! Faults through DataFusion and back: what its planner says of a query, in our words.
//!
//! Our hooks in its planner can only give its error type, so a [`Fault`] travels inside of one.

mod wording;

use datafusion::common::{Column, DataFusionError, Diagnostic, SchemaError, Span};

use crate::error::{Fault, FaultKind, Position, closest};
use wording::{planning, sentence, wrong_arguments};

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
            format!("column \"{name}\" is ambiguous: the query gives two of that name"),
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

/// A column that is neither grouped by nor aggregated.
fn grouping(column: &str) -> Fault {
    let message = format!(
        "column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function"
    );
    Fault::new(FaultKind::Grouping, message)
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
}
