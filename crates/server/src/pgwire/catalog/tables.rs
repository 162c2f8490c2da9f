//! The tables of the emulated catalog.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::ObjectName;
use pgwire::api::Type;

use super::relations::{Relations, type_name, type_of_column};
use super::rewrite::{first, last};
use crate::pgwire::types::{ARRAYS, size, type_of};

/// A value of a catalog table.
#[derive(Clone)]
enum Cell {
    Text(String),
    Int(i64),
    Bool(bool),
    Null,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_string())
    }
}

impl From<i64> for Cell {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl From<bool> for Cell {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

macro_rules! row {
    ($($cell:expr),* $(,)?) => { vec![$(Cell::from($cell)),*] };
}

const FILLED: [&str; 12] = [
    "pg_am",
    "pg_attribute",
    "pg_class",
    "pg_database",
    "pg_namespace",
    "pg_roles",
    "pg_tables",
    "pg_type",
    "pg_user",
    "pg_views",
    "information_schema.columns",
    "information_schema.tables",
];

/// Of what does not exist here.
const ALWAYS_EMPTY: [&str; 33] = [
    "pg_aggregate",
    "pg_attrdef",
    "pg_cast",
    "pg_collation",
    "pg_constraint",
    "pg_conversion",
    "pg_cursors",
    "pg_depend",
    "pg_description",
    "pg_enum",
    "pg_event_trigger",
    "pg_extension",
    "pg_foreign_server",
    "pg_foreign_table",
    "pg_index",
    "pg_indexes",
    "pg_inherits",
    "pg_language",
    "pg_matviews",
    "pg_opclass",
    "pg_operator",
    "pg_partitioned_table",
    "pg_policy",
    "pg_proc",
    "pg_publication",
    "pg_range",
    "pg_rewrite",
    "pg_sequence",
    "pg_shdescription",
    "pg_statistic_ext",
    "pg_subscription",
    "pg_trigger",
    "pg_ts_config",
];

const PG_CATALOG: i64 = 11;
const PUBLIC: i64 = 2200;
const OWNER: i64 = 10;
const HEAP: i64 = 2;

/// Whether a table is one of the catalog, or would be.
pub fn is_known(name: &ObjectName) -> bool {
    match first(name).as_str() {
        "pg_catalog" | "information_schema" if name.0.len() > 1 => true,
        _ => {
            let last = last(name);
            name.0.len() == 1
                && (FILLED.contains(&last.as_str()) || ALWAYS_EMPTY.contains(&last.as_str()))
        }
    }
}

pub fn is_always_empty(name: &ObjectName) -> bool {
    let in_catalog = name.0.len() == 1 || first(name) == "pg_catalog";
    in_catalog && ALWAYS_EMPTY.contains(&last(name).as_str())
}

/// Every table that has rows, or may be joined, by the name that [`super::rewrite`] gives it.
pub fn all(relations: &Relations, user: &str) -> Result<Vec<(String, RecordBatch)>, ArrowError> {
    let mut tables = vec![
        ("pg_am", am()?),
        ("pg_attribute", attribute(relations)?),
        ("pg_class", class(relations)?),
        ("pg_database", database()?),
        ("pg_namespace", namespace()?),
        ("pg_roles", roles(user)?),
        ("pg_tables", pg_tables(relations)?),
        ("pg_type", types()?),
        ("pg_user", users(user)?),
        ("pg_views", views(relations)?),
        (
            "information_schema_columns",
            information_columns(relations)?,
        ),
        ("information_schema_tables", information_tables(relations)?),
    ];
    // The right sides of outer joins.
    tables.extend([
        (
            "pg_attrdef",
            table("oid:i adrelid:i adnum:i adbin:t", vec![])?,
        ),
        (
            "pg_constraint",
            table("oid:i conname:t conrelid:i contype:t conindid:i", vec![])?,
        ),
        (
            "pg_description",
            table("objoid:i classoid:i objsubid:i description:t", vec![])?,
        ),
        (
            "pg_index",
            table(
                "indexrelid:i indrelid:i indisprimary:b indisunique:b",
                vec![],
            )?,
        ),
        ("pg_enum", table("oid:i enumtypid:i enumlabel:t", vec![])?),
        (
            "pg_range",
            table("rngtypid:i rngsubtype:i rngmultitypid:i", vec![])?,
        ),
    ]);
    Ok(tables
        .into_iter()
        .map(|(name, batch)| (name.to_string(), batch))
        .collect())
}

/// `columns` are names with a letter for the type: `t`ext, `i`nteger, `b`oolean.
fn table(columns: &str, rows: Vec<Vec<Cell>>) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (i, column) in columns.split_ascii_whitespace().enumerate() {
        let (name, letter) = column.split_once(':').unwrap_or((column, "t"));
        let cells = rows.iter().map(|row| row.get(i));
        let (data_type, array): (_, ArrayRef) = match letter {
            "i" => {
                let values = cells.map(|cell| match cell {
                    Some(Cell::Int(n)) => Some(*n),
                    _ => None,
                });
                (DataType::Int64, Arc::new(values.collect::<Int64Array>()))
            }
            "b" => {
                let values = cells.map(|cell| match cell {
                    Some(Cell::Bool(truth)) => Some(*truth),
                    _ => None,
                });
                (
                    DataType::Boolean,
                    Arc::new(values.collect::<BooleanArray>()),
                )
            }
            _ => {
                let values = cells.map(|cell| match cell {
                    Some(Cell::Text(text)) => Some(text.as_str()),
                    _ => None,
                });
                (DataType::Utf8, Arc::new(values.collect::<StringArray>()))
            }
        };
        fields.push(Field::new(name, data_type, true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn am() -> Result<RecordBatch, ArrowError> {
    table("oid:i amname:t amtype:t", vec![row![HEAP, "heap", "t"]])
}

fn namespace() -> Result<RecordBatch, ArrowError> {
    let rows = vec![
        row![PG_CATALOG, "pg_catalog", OWNER, Cell::Null],
        row![PUBLIC, "public", OWNER, Cell::Null],
    ];
    table("oid:i nspname:t nspowner:i nspacl:t", rows)
}

fn database() -> Result<RecordBatch, ArrowError> {
    let columns = "oid:i datname:t datdba:i encoding:i datcollate:t datctype:t datlocprovider:t daticulocale:t \
                   datistemplate:b datallowconn:b datconnlimit:i dattablespace:i datacl:t";
    let row = row![
        1,
        "thalweg",
        OWNER,
        6,
        "C.UTF-8",
        "C.UTF-8",
        "c",
        Cell::Null,
        false,
        true,
        -1,
        1663,
        Cell::Null
    ];
    table(columns, vec![row])
}

fn roles(user: &str) -> Result<RecordBatch, ArrowError> {
    let columns = "oid:i rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b \
                   rolconnlimit:i rolvaliduntil:t rolreplication:b rolbypassrls:b";
    let row = row![
        OWNER,
        user,
        false,
        true,
        false,
        false,
        true,
        -1,
        Cell::Null,
        false,
        false
    ];
    table(columns, vec![row])
}

fn users(user: &str) -> Result<RecordBatch, ArrowError> {
    table(
        "usename:t usesysid:i usesuper:b",
        vec![row![user, OWNER, false]],
    )
}

fn class(relations: &Relations) -> Result<RecordBatch, ArrowError> {
    let columns = "oid:i relname:t relnamespace:i reltype:i reloftype:i relowner:i relam:i relfilenode:i \
                   reltablespace:i relpages:i reltuples:i reltoastrelid:i relhasindex:b relisshared:b \
                   relpersistence:t relkind:t relnatts:i relchecks:i relhasrules:b relhastriggers:b \
                   relhassubclass:b relrowsecurity:b relforcerowsecurity:b relispopulated:b relreplident:t \
                   relispartition:b relrewrite:i reloptions:t relacl:t relpartbound:t";
    let rows = relations.0.iter().map(|relation| {
        let (kind, am) = if relation.is_view {
            ("v", 0)
        } else {
            ("r", HEAP)
        };
        row![
            relation.oid,
            relation.name.as_str(),
            PUBLIC,
            0,
            0,
            OWNER,
            am,
            0,
            0,
            0,
            -1,
            0,
            false,
            false,
            "p",
            kind,
            relation.columns.len() as i64,
            0,
            false,
            false,
            false,
            false,
            false,
            true,
            "n",
            false,
            0,
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ]
    });
    table(columns, rows.collect())
}

fn attribute(relations: &Relations) -> Result<RecordBatch, ArrowError> {
    let columns = "attrelid:i attname:t atttypid:i attstattarget:i attlen:i attnum:i attndims:i atttypmod:i \
                   attnotnull:b atthasdef:b attidentity:t attgenerated:t attisdropped:b attislocal:b \
                   attcollation:i attstorage:t attcompression:t attacl:t attoptions:t attfdwoptions:t";
    let mut rows = Vec::new();
    for relation in &relations.0 {
        for (i, field) in relation.columns.iter().enumerate() {
            let (oid, modifier, length) = type_of_column(field);
            let name = field.name().as_str();
            rows.push(row![
                relation.oid,
                name,
                oid,
                -1,
                length,
                i as i64 + 1,
                0,
                modifier,
                !field.is_nullable(),
                false,
                "",
                "",
                false,
                true,
                0,
                "p",
                "",
                Cell::Null,
                Cell::Null,
                Cell::Null,
            ]);
        }
    }
    table(columns, rows)
}

fn types() -> Result<RecordBatch, ArrowError> {
    let columns = "oid:i typname:t typnamespace:i typowner:i typlen:i typbyval:b typtype:t typcategory:t \
                   typispreferred:b typdelim:t typrelid:i typelem:i typarray:i typnotnull:b typbasetype:i \
                   typtypmod:i typndims:i typcollation:i typinput:t typoutput:t";
    let row = |pg_type: &Type, element: i64, array: i64| {
        let length = i64::from(size(pg_type));
        row![
            i64::from(pg_type.oid()),
            pg_type.name(),
            PG_CATALOG,
            OWNER,
            length,
            length > 0,
            "b",
            if element == 0 { "U" } else { "A" },
            false,
            ",",
            0,
            element,
            array,
            false,
            0,
            -1,
            0,
            0,
            "",
            "",
        ]
    };
    let mut rows = vec![row(&Type::JSON, 0, 0)];
    for (element, array) in &ARRAYS {
        rows.push(row(element, 0, array.oid().into()));
        rows.push(row(array, element.oid().into(), 0));
    }
    table(columns, rows)
}

fn pg_tables(relations: &Relations) -> Result<RecordBatch, ArrowError> {
    let columns = "schemaname:t tablename:t tableowner:t tablespace:t hasindexes:b hasrules:b hastriggers:b \
                   rowsecurity:b";
    let tables = relations.0.iter().filter(|relation| !relation.is_view);
    let rows = tables.map(|relation| {
        row![
            "public",
            relation.name.as_str(),
            "thalweg",
            Cell::Null,
            false,
            false,
            false,
            false
        ]
    });
    table(columns, rows.collect())
}

fn views(relations: &Relations) -> Result<RecordBatch, ArrowError> {
    let rows = relations.0.iter().filter_map(|relation| {
        let definition = relation.definition.as_deref()?;
        Some(row![
            "public",
            relation.name.as_str(),
            "thalweg",
            definition
        ])
    });
    table(
        "schemaname:t viewname:t viewowner:t definition:t",
        rows.collect(),
    )
}

fn information_tables(relations: &Relations) -> Result<RecordBatch, ArrowError> {
    let rows = relations.0.iter().map(|relation| {
        let kind = if relation.is_view {
            "VIEW"
        } else {
            "BASE TABLE"
        };
        row!["thalweg", "public", relation.name.as_str(), kind]
    });
    table(
        "table_catalog:t table_schema:t table_name:t table_type:t",
        rows.collect(),
    )
}

fn information_columns(relations: &Relations) -> Result<RecordBatch, ArrowError> {
    let columns = "table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i \
                   column_default:t is_nullable:t data_type:t udt_name:t";
    let mut rows = Vec::new();
    for relation in &relations.0 {
        for (i, field) in relation.columns.iter().enumerate() {
            let pg_type = type_of(field);
            let name = type_name(&pg_type, -1);
            rows.push(row![
                "thalweg",
                "public",
                relation.name.as_str(),
                field.name().as_str(),
                i as i64 + 1,
                Cell::Null,
                if field.is_nullable() { "YES" } else { "NO" },
                name.as_str(),
                pg_type.name(),
            ]);
        }
    }
    table(columns, rows)
}
