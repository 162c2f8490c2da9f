//! What a table needs whose records are a changelog: a key by which they replace each other.

use crate::catalog::{ColumnOrigin, TableDef};
use crate::error::{Fault, FaultKind};
use crate::options::Given;

/// Whether a table can be read as a changelog, if it is one: by a PRIMARY KEY of columns that a record has.
pub fn check_key(def: &TableDef) -> Result<(), Fault> {
    if !def.reads_changelog {
        return Ok(());
    }
    let format = def.format.as_deref().unwrap_or_default();
    let fault = |message: String| Fault::new(FaultKind::InvalidOption, message).at(def.position);
    if def.primary_key.is_empty() {
        let message = format!(
            "table \"{}\" is read with format '{format}' and has no PRIMARY KEY",
            def.name
        );
        return Err(fault(message).hint(
            "a record of a changelog tells what became of one row: declare the columns that say which, as the \
             database has them, with PRIMARY KEY (…)",
        ));
    }
    let is_physical =
        |&&column: &&usize| matches!(def.columns[column].origin, ColumnOrigin::Physical);
    match def.primary_key.iter().find(|column| !is_physical(column)) {
        None => Ok(()),
        Some(&column) => {
            let name = def.columns[column].field.name();
            let message = format!(
                "column \"{name}\" of the PRIMARY KEY is not part of the records of table \"{}\"",
                def.name
            );
            Err(fault(message)
                .hint("the record of a deletion holds the key and nothing else to compute it from"))
        }
    }
}

/// A time to live that nothing would ask for, or that is none.
pub fn check_ttl(def: &TableDef, given: &Given<'_>, faults: &mut Vec<Fault>) {
    let Some(clause) = given.get("state_ttl") else {
        return;
    };
    let fault = |message: &str| Fault::new(FaultKind::InvalidOption, message);
    if !def.reads_changelog {
        let message = "option 'state_ttl' has no effect: the table is not read as a changelog";
        faults.push(fault(message).at(Some(clause.key.position)));
    } else if def.state_ttl.is_some_and(|ttl| ttl <= 0) {
        let message = "option 'state_ttl' must be above zero; leave it out to keep rows for ever";
        faults.push(fault(message).at(Some(clause.value_position)));
    }
}
