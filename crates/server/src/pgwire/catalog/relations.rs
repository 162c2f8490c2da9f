//! Our relations as PostgreSQL would count them: with object ids and columns.

use arrow::datatypes::Field;
use pgwire::api::Type;
use thalweg_planner::catalog::{Catalog, Relation};
use thalweg_planner::describe;

use crate::pgwire::types::{element_of, modifier, type_of};

pub struct Relations(pub Vec<Described>);

pub struct Described {
    pub oid: i64,
    pub name: String,
    pub is_view: bool,
    /// The query of a view.
    pub definition: Option<String>,
    pub columns: Vec<Field>,
}

impl Relations {
    pub fn of(catalog: &Catalog) -> Self {
        let described = catalog.relations.iter().map(|(name, relation)| Described {
            oid: oid(name),
            name: name.clone(),
            is_view: matches!(relation, Relation::View(_)),
            definition: match relation {
                Relation::View(view) => Some(view.query.to_string()),
                _ => None,
            },
            columns: describe::columns(catalog, name),
        });
        Self(described.collect())
    }

    pub fn by_name(&self, name: &str) -> Option<&Described> {
        self.0.iter().find(|relation| relation.name == name)
    }
}

/// The object id of a relation: the same for the same name, in every connection. FNV-1a, above what PostgreSQL
/// keeps for itself.
fn oid(name: &str) -> i64 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    16_384 + i64::from(hash >> 2)
}

/// `numeric(10,2)`, as format_type has it.
pub fn type_name(pg_type: &Type, modifier: i32) -> String {
    let name = match *pg_type {
        Type::BOOL => "boolean",
        Type::INT2 => "smallint",
        Type::INT4 => "integer",
        Type::INT8 => "bigint",
        Type::FLOAT4 => "real",
        Type::FLOAT8 => "double precision",
        Type::TIME => "time without time zone",
        Type::TIMESTAMP => "timestamp without time zone",
        Type::TIMESTAMPTZ => "timestamp with time zone",
        Type::NUMERIC if modifier >= 4 => {
            let packed = modifier - 4;
            return format!("numeric({},{})", packed >> 16, packed & 0x7ff);
        }
        _ => match element_of(pg_type) {
            Some(element) => return format!("{}[]", type_name(&element, -1)),
            None => pg_type.name(),
        },
    };
    name.to_string()
}

/// Oid, modifier and length of a column's type.
pub fn type_of_column(field: &Field) -> (i64, i64, i64) {
    let pg_type = type_of(field);
    let length = crate::pgwire::types::size(&pg_type);
    (pg_type.oid().into(), modifier(field).into(), length.into())
}
