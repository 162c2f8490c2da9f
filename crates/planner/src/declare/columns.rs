//! The columns and the key of a table.

use std::collections::BTreeSet;

use arrow::datatypes::{Field, SchemaRef};
use thalweg_dataflow::options::{ConnectorDecl, OptionFault};

use crate::catalog::{ColumnDef, ColumnOrigin};
use crate::error::{Fault, FaultKind, closest};
use crate::parse::parse_type;
use crate::parse::statement::{ColumnClause, CreateTable, OriginClause};
use crate::types::{field_of, sql_name_of};

/// The columns of a table that declares none, or why they could not be found.
pub type FoundColumns = Result<Vec<Field>, OptionFault>;

/// The declared columns, or those that the connector has by itself; those found before them.
pub fn declared(
    create: &CreateTable,
    connector: Option<&ConnectorDecl>,
    found: Option<&FoundColumns>,
    faults: &mut Vec<Fault>,
) -> Option<Vec<ColumnDef>> {
    let fixed = connector.map(fixed_columns).unwrap_or_default();
    if create.columns.is_empty() && !fixed.is_empty() {
        return Some(fixed.into_iter().map(physical).collect());
    }
    let n_faults = faults.len();
    let found = match found {
        Some(Ok(fields)) => fields.as_slice(),
        Some(Err(fault)) => {
            faults.push(not_found(create, fault));
            &[]
        }
        None => &[],
    };
    if create.columns.is_empty() && found.is_empty() && faults.len() == n_faults {
        let message = format!("table \"{}\" has no columns", create.name.text);
        let fault = Fault::new(FaultKind::Syntax, message).at(Some(create.name.position));
        faults.push(match connector {
            Some(_) => fault.hint("declare them, or add infer_schema = true"),
            None => fault,
        });
    }
    report_duplicates(create, found, faults);
    let found = found.iter().cloned().map(physical);
    let declared = create.columns.iter();
    let columns: Vec<_> = found
        .chain(declared.filter_map(|clause| column(clause, connector, &fixed, faults)))
        .collect();
    (faults.len() == n_faults).then_some(columns)
}

fn not_found(create: &CreateTable, fault: &OptionFault) -> Fault {
    let mut options = create.options.iter();
    let named = fault
        .option
        .as_ref()
        .and_then(|name| options.find(|o| o.key.text == *name));
    let position = named.map_or(create.name.position, |option| option.key.position);
    Fault {
        kind: FaultKind::InvalidOption,
        message: format!("table \"{}\": {}", create.name.text, fault.message),
        position: Some(position),
        hint: fault.hint.clone(),
    }
}

/// The columns of `CREATE TABLE … AS query`.
pub fn of_query(
    create: &CreateTable,
    schema: &SchemaRef,
    faults: &mut Vec<Fault>,
) -> Option<Vec<ColumnDef>> {
    if let Some(column) = create.columns.first() {
        let fault = Fault::new(
            FaultKind::Unsupported,
            "columns of CREATE TABLE … AS come from its query",
        );
        faults.push(
            fault
                .at(Some(column.name.position))
                .hint("leave them out, or use CREATE TABLE and INSERT INTO"),
        );
        return None;
    }
    Some(
        schema
            .fields()
            .iter()
            .map(|field| physical(field.as_ref().clone()))
            .collect(),
    )
}

/// Positions of the PRIMARY KEY's columns, which become NOT NULL.
pub fn primary_key(
    create: &CreateTable,
    columns: &mut [ColumnDef],
    faults: &mut Vec<Fault>,
) -> Vec<usize> {
    let mut positions = Vec::new();
    for name in create.primary_key.iter().flat_map(|key| &key.columns) {
        match columns.iter().position(|c| *c.field.name() == name.text) {
            Some(position) if positions.contains(&position) => {
                let message = format!("column \"{}\" is in the PRIMARY KEY twice", name.text);
                faults
                    .push(Fault::new(FaultKind::DuplicateObject, message).at(Some(name.position)));
            }
            Some(position) => {
                columns[position].field.set_nullable(false);
                positions.push(position);
            }
            None => faults.push(undefined(&name.text, create, columns).at(Some(name.position))),
        }
    }
    positions
}

/// The fault of naming a column that the table does not have.
pub fn undefined(name: &str, create: &CreateTable, columns: &[ColumnDef]) -> Fault {
    let fault = Fault::new(
        FaultKind::UndefinedColumn,
        format!("column \"{name}\" does not exist"),
    );
    match closest(name, columns.iter().map(|c| c.field.name().as_str())) {
        Some(known) => fault.hint(format!("table \"{}\" has \"{known}\"", create.name.text)),
        None => fault,
    }
}

fn physical(field: Field) -> ColumnDef {
    ColumnDef {
        field,
        origin: ColumnOrigin::Physical,
        position: None,
    }
}

/// Columns that `connector` declares of itself.
fn fixed_columns(connector: &ConnectorDecl) -> Vec<Field> {
    let field = |(name, sql_type): &(&str, &str)| declared_field(sql_type).with_name(*name);
    connector.fixed_columns.iter().map(field).collect()
}

/// The field of a type that a connector's declaration gives as SQL text.
pub fn declared_field(sql_type: &str) -> Field {
    let parsed = parse_type(sql_type).and_then(|t| field_of(&t));
    parsed.unwrap_or_else(|fault| panic!("a connector declares the type {sql_type}: {fault}"))
}

fn report_duplicates(create: &CreateTable, found: &[Field], faults: &mut Vec<Fault>) {
    let mut seen: BTreeSet<&String> = found.iter().map(Field::name).collect();
    for column in create.columns.iter().filter(|c| !seen.insert(&c.name.text)) {
        let message = format!("column \"{}\" is declared twice", column.name.text);
        faults.push(Fault::new(FaultKind::DuplicateObject, message).at(Some(column.name.position)));
    }
}

fn column(
    clause: &ColumnClause,
    connector: Option<&ConnectorDecl>,
    fixed: &[Field],
    faults: &mut Vec<Fault>,
) -> Option<ColumnDef> {
    let field = match field_of(&clause.data_type) {
        Ok(field) => field
            .with_name(&clause.name.text)
            .with_nullable(!clause.not_null),
        Err(fault) => {
            faults.push(fault.at(Some(clause.type_position)));
            return None;
        }
    };
    let origin = match &clause.origin {
        OriginClause::Physical => {
            faults.extend(check_fixed(clause, &field, connector, fixed));
            ColumnOrigin::Physical
        }
        OriginClause::Metadata { key, position } => {
            faults.extend(
                check_metadata(clause, key, &field, connector).map(|f| f.at(Some(*position))),
            );
            ColumnOrigin::Metadata(key.clone())
        }
        OriginClause::Generated(expr) => ColumnOrigin::Generated(expr.clone()),
    };
    Some(ColumnDef {
        field,
        origin,
        position: Some(clause.name.position),
    })
}

/// A connector with a schema of its own has no other columns.
fn check_fixed(
    clause: &ColumnClause,
    field: &Field,
    connector: Option<&ConnectorDecl>,
    fixed: &[Field],
) -> Option<Fault> {
    let connector = connector.filter(|_| !fixed.is_empty())?;
    let Some(own) = fixed.iter().find(|own| own.name() == field.name()) else {
        let message = format!(
            "connector '{}' has no column \"{}\"",
            connector.name,
            field.name()
        );
        let names: Vec<_> = fixed.iter().map(|f| format!("\"{}\"", f.name())).collect();
        let fault = Fault::new(FaultKind::UndefinedColumn, message).at(Some(clause.name.position));
        return Some(fault.hint(format!("it has {}", names.join(", "))));
    };
    if own.data_type() == field.data_type() {
        return None;
    }
    let message = format!(
        "column \"{}\" of connector '{}' has type {}",
        field.name(),
        connector.name,
        sql_name_of(own)
    );
    Some(Fault::new(FaultKind::InvalidType, message).at(Some(clause.type_position)))
}

fn check_metadata(
    clause: &ColumnClause,
    key: &str,
    field: &Field,
    connector: Option<&ConnectorDecl>,
) -> Option<Fault> {
    let known = connector.map_or(&[][..], |c| c.metadata);
    let Some((_, sql_type, _)) = known.iter().find(|(name, ..)| *name == key) else {
        let of = connector.map_or_else(
            || "a table without a connector".to_string(),
            |c| format!("connector '{}'", c.name),
        );
        let fault = Fault::new(
            FaultKind::UndefinedObject,
            format!("{of} has no metadata '{key}'"),
        );
        let names: Vec<_> = known.iter().map(|(name, ..)| format!("'{name}'")).collect();
        return Some(if names.is_empty() {
            fault
        } else {
            fault.hint(format!("it has {}", names.join(", ")))
        });
    };
    let own = declared_field(sql_type);
    if arrow::compute::can_cast_types(own.data_type(), field.data_type()) {
        return None;
    }
    let message = format!(
        "metadata '{key}' has type {}, which does not fit column \"{}\"",
        sql_name_of(&own),
        clause.name.text
    );
    Some(Fault::new(FaultKind::InvalidType, message))
}
