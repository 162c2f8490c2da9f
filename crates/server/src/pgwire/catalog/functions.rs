//! Functions that tell of the server, the connection and the catalog.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::ObjectName;
use pgwire::api::Type;

use super::relations::{Relations, type_name};
use super::rewrite::{first, last};
use crate::pgwire::client_settings::{SERVER_VERSION, by_name};

/// The name of a relation by its oid: what `::regclass` shows.
pub const REGCLASS_NAME: &str = "regclass_name";
pub const FORMAT_TYPE: &str = "format_type";

const OURS: [&str; 26] = [
    "version",
    "current_schema",
    "current_schemas",
    "current_database",
    "current_catalog",
    "current_user",
    "session_user",
    "current_role",
    "user",
    "set_config",
    "current_setting",
    "pg_backend_pid",
    "pg_is_in_recovery",
    "pg_advisory_unlock_all",
    "pg_encoding_to_char",
    "pg_postmaster_start_time",
    "inet_server_addr",
    "inet_server_port",
    "txid_current",
    "has_schema_privilege",
    "to_regclass",
    // The time when a question is asked, which a query that runs on does not have.
    "now",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtimestamp",
];

/// Whether a function makes a query without tables a question about the catalog.
pub fn is_ours(name: &ObjectName) -> bool {
    (name.0.len() > 1 && first(name) == "pg_catalog") || OURS.contains(&last(name).as_str())
}

pub fn register(context: &SessionContext, relations: &Relations, user: &str) {
    let text = |text: &str| ScalarValue::Utf8(Some(text.to_string()));
    let null = || ScalarValue::Utf8(None);
    let schemas = ["pg_catalog", "public"].map(text);
    let schemas = ScalarValue::List(ScalarValue::new_list_nullable(&schemas, &DataType::Utf8));
    let version = format!("PostgreSQL {SERVER_VERSION}");
    let fixed = [
        ("version", text(&version)),
        ("current_schema", text("public")),
        ("current_schemas", schemas),
        ("current_database", text("thalweg")),
        ("current_catalog", text("thalweg")),
        ("current_user", text(user)),
        ("session_user", text(user)),
        ("current_role", text(user)),
        ("user", text(user)),
        // Asked of rights, which nobody has been given.
        ("array_to_string", null()),
        ("pg_get_userbyid", text("thalweg")),
        ("pg_encoding_to_char", text("UTF8")),
        (
            "pg_backend_pid",
            ScalarValue::Int32(Some(std::process::id() as i32)),
        ),
        ("pg_is_in_recovery", ScalarValue::Boolean(Some(false))),
        ("pg_advisory_unlock_all", null()),
        ("pg_table_is_visible", ScalarValue::Boolean(Some(true))),
        ("pg_type_is_visible", ScalarValue::Boolean(Some(true))),
        ("has_schema_privilege", ScalarValue::Boolean(Some(true))),
        ("has_table_privilege", ScalarValue::Boolean(Some(true))),
        ("has_database_privilege", ScalarValue::Boolean(Some(true))),
        ("pg_get_expr", null()),
        ("pg_get_constraintdef", null()),
        ("pg_get_indexdef", null()),
        ("pg_get_partkeydef", null()),
        ("obj_description", null()),
        ("col_description", null()),
        ("shobj_description", null()),
        ("pg_relation_size", ScalarValue::Int64(Some(0))),
        ("pg_table_size", ScalarValue::Int64(Some(0))),
        ("pg_total_relation_size", ScalarValue::Int64(Some(0))),
        ("pg_database_size", ScalarValue::Int64(Some(0))),
        ("pg_size_pretty", text("0 bytes")),
        (
            "pg_relation_is_publishable",
            ScalarValue::Boolean(Some(false)),
        ),
        ("inet_server_addr", null()),
        ("inet_server_port", ScalarValue::Int32(None)),
    ];
    for (name, value) in fixed {
        add(context, name, Body::Fixed(value));
    }
    add(context, "set_config", Body::Argument(1));
    add(context, "quote_ident", Body::Argument(0));
    let names = relations
        .0
        .iter()
        .map(|relation| (relation.oid, relation.name.clone()));
    add(context, REGCLASS_NAME, Body::ByOid(names.collect()));
    let views = relations.0.iter().filter_map(|relation| {
        let definition = format!(" {};", relation.definition.as_deref()?);
        Some((relation.oid, definition))
    });
    add(context, "pg_get_viewdef", Body::ByOid(views.collect()));
    let oids = relations
        .0
        .iter()
        .map(|relation| (relation.name.clone(), relation.oid.to_string()));
    add(context, "to_regclass", Body::ByText(oids.collect()));
    add(context, "current_setting", Body::Setting);
    add(context, FORMAT_TYPE, Body::FormatType);
}

fn add(context: &SessionContext, name: &'static str, body: Body) {
    let any_number = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
    context.register_udf(ScalarUDF::from(Told {
        name,
        body: Arc::new(body),
        signature: Signature::one_of(any_number, Volatility::Stable),
    }));
}

/// What a function gives.
#[derive(Debug)]
enum Body {
    Fixed(ScalarValue),
    /// One of its arguments.
    Argument(usize),
    /// By its first argument.
    ByOid(HashMap<i64, String>),
    ByText(HashMap<String, String>),
    Setting,
    FormatType,
}

#[derive(Debug)]
struct Told {
    name: &'static str,
    body: Arc<Body>,
    signature: Signature,
}

// A context has one function of a name.
impl PartialEq for Told {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Told {}

impl Hash for Told {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Told {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _args: &[DataType]) -> Result<DataType> {
        Ok(match self.body.as_ref() {
            Body::Fixed(value) => value.data_type(),
            _ => DataType::Utf8,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Body::Fixed(value) = self.body.as_ref() {
            return Ok(ColumnarValue::Scalar(value.clone()));
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let texts = |index: usize| -> Result<StringArray> {
            match arrays.get(index) {
                Some(array) => Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone()),
                None => Ok(StringArray::new_null(args.number_rows)),
            }
        };
        let oids = |index: usize| -> Result<Vec<Option<i64>>> {
            match arrays.get(index) {
                Some(array) => {
                    let array = cast(array, &DataType::Int64)?;
                    Ok(array.as_primitive::<Int64Type>().iter().collect())
                }
                None => Ok(vec![None; args.number_rows]),
            }
        };
        let told: StringArray = match self.body.as_ref() {
            Body::Fixed(_) => StringArray::new_null(0),
            Body::Argument(index) => texts(*index)?,
            Body::ByOid(known) => {
                let found = oids(0)?.into_iter().map(|oid| known.get(&oid?).cloned());
                found.collect()
            }
            Body::ByText(known) => texts(0)?
                .iter()
                .map(|text| known.get(text?).cloned())
                .collect(),
            Body::Setting => {
                let names = texts(0)?;
                names
                    .iter()
                    .map(|name| Some(by_name(name?)?.default))
                    .collect()
            }
            Body::FormatType => {
                let types = oids(0)?.into_iter().zip(oids(1)?);
                let formatted = types.map(|(oid, modifier)| {
                    let pg_type = Type::from_oid(u32::try_from(oid?).ok()?);
                    let modifier = modifier.and_then(|m| i32::try_from(m).ok()).unwrap_or(-1);
                    Some(pg_type.map_or_else(|| "???".to_string(), |t| type_name(&t, modifier)))
                });
                formatted.collect()
            }
        };
        Ok(ColumnarValue::Array(Arc::new(told)))
    }
}
