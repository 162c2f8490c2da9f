//! CREATE TABLE: from its clauses to a table of the catalog, or to everything that is wrong with it.

mod changelog;
mod columns;
mod outline;
mod time;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use thalweg_dataflow::options::{
    ConnectorDecl, Direction, FormatDecl, Options, Registry, TableCheck,
};
use thalweg_dataflow::table::BadData;
use thalweg_dataflow::time::parse_duration;

use crate::bind::check_row_expressions;
use crate::catalog::{ColumnDef, Relation, TableDef};
use crate::error::{Fault, FaultKind, Position};
use crate::options::{Given, find_connector, find_format};
use crate::parse::statement::{CreateTable, OriginClause, Role};
pub use changelog::check_key as check_changelog_key;
pub use columns::{FoundColumns, declared_field};
pub use outline::outline;

/// The relation that `create` declares. `query` is the schema of its `AS query`, whose columns it then
/// has; `found` are the columns that the outside world knows of a table without any. Gives every fault found.
pub fn declare(
    create: &CreateTable,
    query: Option<&SchemaRef>,
    found: Option<&FoundColumns>,
    registry: &dyn Registry,
) -> Result<Relation, Vec<Fault>> {
    let mut faults = Vec::new();
    let declaration = Declaration {
        create,
        found,
        registry,
    };
    match declaration.build(query, &mut faults) {
        Some(relation) if faults.is_empty() => Ok(relation),
        _ => Err(faults),
    }
}

struct Declaration<'a> {
    create: &'a CreateTable,
    found: Option<&'a FoundColumns>,
    registry: &'a dyn Registry,
}

impl Declaration<'_> {
    /// `None` where a fault makes the rest meaningless.
    fn build(&self, query: Option<&SchemaRef>, faults: &mut Vec<Fault>) -> Option<Relation> {
        let create = self.create;
        let given = Given::new(&create.options, faults);
        let connector = find_connector(&given, self.registry, faults);
        let unknown_connector = connector.is_none() && given.get("connector").is_some();
        let format =
            connector.and_then(|c| find_format(&given, c, &create.name, self.registry, faults));
        match connector {
            _ if unknown_connector => {}
            Some(connector) => given.check(connector, format, &create.name, faults),
            None => self.check_stream(&given, faults),
        }
        let columns = match query {
            Some(schema) => columns::of_query(create, schema, faults),
            None => columns::declared(create, connector, self.found, faults),
        }?;
        if unknown_connector {
            return None;
        }
        let def = self.table(&given, connector, format, columns, faults);
        let kind = if connector.is_some() {
            Relation::Table
        } else {
            Relation::Stream
        };
        Some(kind(Arc::new(def)))
    }

    /// A table without a connector has no reader whose records or times there were to describe.
    fn check_stream(&self, given: &Given<'_>, faults: &mut Vec<Fault>) {
        let create = self.create;
        let name = &create.name.text;
        if let Some(first) = given.first() {
            let message = format!("table \"{name}\" has options but no connector");
            faults.push(
                Fault::new(FaultKind::InvalidOption, message)
                    .at(Some(first.key.position))
                    .hint("add connector = '…'"),
            );
        }
        let hint = "it keeps the event time and the watermark of the query that fills it";
        let refuse = |what: &str, position: Position| {
            let message = format!("table \"{name}\" has no connector and so no {what}");
            Fault::new(FaultKind::InvalidOption, message)
                .at(Some(position))
                .hint(hint)
        };
        faults.extend(
            create
                .watermark
                .as_ref()
                .map(|w| refuse("WATERMARK", w.position)),
        );
        let generated = create
            .columns
            .iter()
            .find(|c| matches!(c.origin, OriginClause::Generated(_)));
        faults.extend(generated.map(|column| refuse("generated columns", column.name.position)));
    }

    fn table(
        &self,
        given: &Given<'_>,
        connector: Option<&ConnectorDecl>,
        format: Option<&FormatDecl>,
        mut columns: Vec<ColumnDef>,
        faults: &mut Vec<Fault>,
    ) -> TableDef {
        let primary_key = columns::primary_key(self.create, &mut columns, faults);
        let schema = Arc::new(Schema::new(
            columns.iter().map(|c| c.field.clone()).collect::<Vec<_>>(),
        ));
        let time = time::event_time(self.create, given, &columns, faults);
        let options = connector.map_or_else(Options::default, |c| given.resolve(c, format));
        let direction = self.directions(given, connector, format, faults);
        let def = TableDef {
            name: self.create.name.text.clone(),
            position: Some(self.create.name.position),
            connector: connector.map_or_else(String::new, |c| c.name.to_string()),
            format: format.map(|f| f.name.to_string()),
            bounded: connector.is_some_and(|c| is_bounded(c, &options)),
            options,
            columns,
            schema,
            primary_key,
            event_time: time.column,
            watermark: time.watermark,
            idle_timeout: positive_duration(given, "idle_timeout", "5 minutes"),
            max_event_time_ahead: positive_duration(given, "max_event_time_ahead", "1 hour"),
            bad_data: bad_data(given, faults),
            reads_changelog: format.is_some_and(|f| f.reads_changelog),
            state_ttl: given
                .text("state_ttl")
                .and_then(|ttl| parse_duration(ttl).ok()),
            takes_updates: connector.is_none_or(|c| c.takes_updates)
                || format.is_some_and(|f| f.takes_updates),
            can_read: direction.can_read,
            can_write: direction.can_write,
        };
        if faults.is_empty() {
            check_row_expressions(&def, faults);
        }
        changelog::check_ttl(&def, given, faults);
        if direction.only() == Some(Direction::Source) && faults.is_empty() {
            faults.extend(changelog::check_key(&def).err());
        }
        if let (true, Some(direction)) = (faults.is_empty(), direction.only()) {
            let mut positions = OptionPositions::default();
            positions.add(self.create);
            faults.extend(check_options(&def, direction, self.registry, &positions));
        }
        def
    }

    /// What connector, format, `type` and CREATE SOURCE or SINK leave of reading and writing.
    fn directions(
        &self,
        given: &Given<'_>,
        connector: Option<&ConnectorDecl>,
        format: Option<&FormatDecl>,
        faults: &mut Vec<Fault>,
    ) -> Directions {
        let Some(connector) = connector else {
            return Directions {
                can_read: true,
                can_write: true,
            };
        };
        let possible = Directions {
            can_read: connector.can_read && format.is_none_or(|f| f.can_read),
            can_write: connector.can_write && format.is_none_or(|f| f.can_write),
        };
        let role = match given.text("type") {
            Some("source") => Some(Role::Source),
            Some("sink") => Some(Role::Sink),
            _ => self.create.role,
        };
        if let (Some(said), Some(role)) = (self.create.role, role)
            && said != role
        {
            let position = given.get("type").map(|clause| clause.value_position);
            faults.push(
                Fault::new(
                    FaultKind::InvalidOption,
                    "option 'type' contradicts CREATE SOURCE or SINK",
                )
                .at(position),
            );
        }
        let left = match role {
            None => possible,
            Some(Role::Source) => Directions {
                can_write: false,
                ..possible
            },
            Some(Role::Sink) => Directions {
                can_read: false,
                ..possible
            },
        };
        if !left.can_read && !left.can_write {
            faults.push(self.useless(connector, format, role));
        }
        left
    }

    fn useless(
        &self,
        connector: &ConnectorDecl,
        format: Option<&FormatDecl>,
        role: Option<Role>,
    ) -> Fault {
        let what = match role {
            Some(Role::Source) => "read",
            Some(Role::Sink) => "written",
            None => "read or written",
        };
        let with = format.map_or_else(String::new, |f| format!(" with format '{}'", f.name));
        let message = format!("connector '{}'{with} cannot be {what}", connector.name);
        Fault::new(FaultKind::InvalidOption, message).at(Some(self.create.name.position))
    }
}

#[derive(Clone, Copy)]
struct Directions {
    can_read: bool,
    can_write: bool,
}

impl Directions {
    /// The direction, where there is one only.
    fn only(self) -> Option<Direction> {
        match self {
            Self {
                can_read: true,
                can_write: false,
            } => Some(Direction::Source),
            Self {
                can_read: false,
                can_write: true,
            } => Some(Direction::Sink),
            _ => None,
        }
    }
}

/// Asks the connectors what single declarations of options cannot say.
pub fn check_options(
    def: &TableDef,
    direction: Direction,
    registry: &dyn Registry,
    positions: &OptionPositions,
) -> Option<Fault> {
    let schema = def.record_schema();
    let check = TableCheck {
        connector: &def.connector,
        format: def.format.as_deref(),
        options: &def.options,
        schema: &schema,
        direction,
    };
    let fault = registry.check_table(&check).err()?;
    let place = fault
        .option
        .as_ref()
        .and_then(|option| positions.of(&def.name, option));
    Some(Fault {
        kind: FaultKind::InvalidOption,
        message: format!("table \"{}\": {}", def.name, fault.message),
        position: place.or(def.position),
        hint: fault.hint,
    })
}

/// Whether reading ends by itself.
pub fn is_bounded(connector: &ConnectorDecl, options: &Options) -> bool {
    let values: BTreeMap<String, String> = options
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    (connector.bounded)(&values)
}

/// Nanoseconds; `None` for zero, which means "never" or "no limit". A wrong value has been reported.
fn positive_duration(given: &Given<'_>, name: &str, default: &str) -> Option<i64> {
    let nanos = parse_duration(given.text(name).unwrap_or(default)).ok()?;
    (nanos > 0).then_some(nanos)
}

fn bad_data(given: &Given<'_>, faults: &mut Vec<Fault>) -> BadData {
    let invalid = |message: &str, position: Position| {
        Fault::new(FaultKind::InvalidOption, message).at(Some(position))
    };
    match (given.get("bad_data"), given.get("dead_letter")) {
        (Some(policy), Some(table)) if policy.value == "dead_letter" => {
            BadData::DeadLetter(table.value.clone())
        }
        (Some(policy), None) if policy.value == "dead_letter" => {
            faults.push(
                invalid(
                    "bad_data = 'dead_letter' needs the option 'dead_letter'",
                    policy.value_position,
                )
                .hint("dead_letter names the table to write to"),
            );
            BadData::Fail
        }
        (_, Some(table)) => {
            faults.push(invalid(
                "option 'dead_letter' has no effect without bad_data = 'dead_letter'",
                table.key.position,
            ));
            BadData::Fail
        }
        (Some(policy), None) if policy.value == "drop" => BadData::Drop,
        _ => BadData::Fail,
    }
}

/// Where the script gives the options of its tables.
#[derive(Debug, Default)]
pub struct OptionPositions(BTreeMap<(String, String), Position>);

impl OptionPositions {
    pub fn add(&mut self, create: &CreateTable) {
        let table = &create.name.text;
        self.0.extend(
            create
                .options
                .iter()
                .map(|o| ((table.clone(), o.key.text.clone()), o.key.position)),
        );
    }

    pub fn of(&self, table: &str, option: &str) -> Option<Position> {
        self.0
            .get(&(table.to_string(), option.to_string()))
            .copied()
    }
}
