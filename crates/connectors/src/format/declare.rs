//! What formats there are, with their options: the planner checks against this, the manual prints it.

use arrow::datatypes::{DataType, Schema};
use thalweg_dataflow::options::{
    Direction, FormatDecl, OptionDecl, OptionFault, OptionKind, Options,
};

use super::{avro, csv, debezium, framing, parquet, protobuf, registry};

/// Every format.
pub static FORMATS: &[FormatDecl] = &[
    JSON,
    DEBEZIUM_JSON,
    AVRO,
    CSV,
    PARQUET,
    PROTOBUF,
    RAW_STRING,
    RAW_BYTES,
];

const UNSTRUCTURED: &str = "json.unstructured";

const TIMESTAMP_FORMAT: OptionDecl = OptionDecl::optional(
    "json.timestamp_format",
    OptionKind::Choice(&[
        "rfc3339",
        "unix_seconds",
        "unix_millis",
        "unix_micros",
        "unix_nanos",
        "RFC3339",
        "UnixMillis",
    ]),
    None,
    "How times are written: as ISO 8601 text or as numbers since the UTC epoch. On reading, what numbers \
     count; ISO text is understood in any case, except that 'rfc3339' refuses numbers. Unset, 'json' writes \
     text and reads a number by its magnitude (below 10^11 seconds, below 10^14 milliseconds, below 10^17 \
     microseconds, else nanoseconds), and 'debezium_json' uses microseconds. 'RFC3339' and 'UnixMillis' \
     are other names of 'rfc3339' and 'unix_millis'.",
);

const DECIMAL_ENCODING: OptionDecl = OptionDecl::optional(
    "json.decimal_encoding",
    OptionKind::Choice(&["number", "string", "bytes"]),
    None,
    "Whether decimals are written as numbers, as text, or as base64 of their unscaled value (big-endian two's \
     complement; readers must know the scale). Numbers are always read, and text is what this says. By default \
     'number', or 'bytes' with `json.include_schema`.",
);

const INCLUDE_SCHEMA: OptionDecl = OptionDecl::optional(
    "json.include_schema",
    OptionKind::Bool,
    Some("false"),
    "Whether records stand in an envelope with their schema, `{\"schema\":…,\"payload\":…}`, as Kafka Connect's JSON \
     converter wants it and Debezium's JDBC sink needs it. On reading, the payload is the record. JSON columns are \
     then text.",
);

const JSON_CONFLUENT: OptionDecl = OptionDecl::optional(
    "json.confluent_schema_registry",
    OptionKind::Bool,
    Some("false"),
    "Whether messages begin with the id of their schema in a registry, as Confluent's serializers write them. The \
     schema of what is written is registered. For messages, not for files.",
);

const JSON: FormatDecl = FormatDecl {
    name: "json",
    meaning: "One JSON object a line or message; columns are fields by name, and other fields are skipped. A field that \
              is missing is null; of a repeated one the last counts. Values are never changed to fit: integers and \
              DECIMAL take numbers that they can hold exactly (68.0 is a BIGINT, 68.32 and \"68\" are none; a \
              DECIMAL may be text), TEXT takes text only, BYTEA base64, TIMESTAMP, DATE and TIME ISO 8601 text, \
              the floats also \"NaN\", \"Infinity\" and \"-Infinity\", and JSON anything, kept as it is written. All else \
              is a bad record.",
    options: &[
        TIMESTAMP_FORMAT,
        DECIMAL_ENCODING,
        OptionDecl::optional(
            UNSTRUCTURED,
            OptionKind::Bool,
            Some("false"),
            "Whether the table's only column, of type TEXT or JSON, is the whole record.",
        ),
        INCLUDE_SCHEMA,
        JSON_CONFLUENT,
        registry::ENDPOINT,
        registry::API_KEY,
        registry::API_SECRET,
        registry::SUBJECT,
        registry::TIMEOUT,
        framing::METHOD,
        framing::ALIAS,
        framing::MAX_LENGTH,
    ],
    can_read: true,
    can_write: true,
    takes_updates: false,
    reads_changelog: false,
};

const DEBEZIUM_JSON: FormatDecl = FormatDecl {
    name: "debezium_json",
    meaning: "Debezium's change envelopes, one a line or message: before, after and op.",
    options: &[
        TIMESTAMP_FORMAT,
        DECIMAL_ENCODING,
        INCLUDE_SCHEMA,
        debezium::BINARY,
        debezium::UNAVAILABLE_VALUE,
    ],
    can_read: true,
    can_write: true,
    takes_updates: true,
    reads_changelog: true,
};

const AVRO: FormatDecl = FormatDecl {
    name: "avro",
    meaning: "Apache Avro, one record a message. Columns are fields by name, and other fields are skipped; a field that is \
              missing is null. Of a union the branch that was written counts. Numbers that a column cannot hold \
              exactly are bad records; enums and UUIDs are TEXT, decimals DECIMAL, times the types that their logical \
              types say, and maps and whatever else has no SQL type JSON. Written columns that may be null are unions \
              with null.",
    options: &[
        avro::CONFLUENT,
        registry::ENDPOINT,
        registry::API_KEY,
        registry::API_SECRET,
        registry::SUBJECT,
        registry::TIMEOUT,
        avro::RAW_DATUMS,
        avro::SCHEMA_FILE,
        avro::INTO_JSON,
    ],
    can_read: true,
    can_write: true,
    takes_updates: false,
    reads_changelog: false,
};

const PROTOBUF: FormatDecl = FormatDecl {
    name: "protobuf",
    meaning: "Protocol Buffers, one record a message; in files each behind its length (a varint). Columns are fields by \
              name, and other fields are skipped. A field that tells whether it is there (`optional`, of a `oneof`, a \
              message) is null where it is not; others have their default. Enums are TEXT, nested messages STRUCT, \
              repeated fields arrays, `google.protobuf.Timestamp` TIMESTAMP, maps JSON.",
    options: &[
        protobuf::DESCRIPTOR,
        protobuf::MESSAGE_NAME,
        protobuf::CONFLUENT,
        registry::ENDPOINT,
        registry::API_KEY,
        registry::API_SECRET,
        registry::SUBJECT,
        registry::TIMEOUT,
        protobuf::LENGTH_DELIMITED,
        protobuf::INTO_JSON,
    ],
    can_read: true,
    can_write: true,
    takes_updates: false,
    reads_changelog: false,
};

const CSV: FormatDecl = FormatDecl {
    name: "csv",
    meaning: "Comma-separated values (RFC 4180). With a header, columns are found by name, and each must be \
              there; without one, they are the fields of a record in the order of declaration. An empty text is \
              told from a null by its quotes.",
    options: &[
        OptionDecl::optional(
            "csv.delimiter",
            OptionKind::Text,
            Some(","),
            "The character between fields; `\\t` is a tab.",
        ),
        OptionDecl::optional(
            "csv.quote",
            OptionKind::Text,
            Some("\""),
            "The character around values that hold delimiters, quotes (doubled) or line ends.",
        ),
        OptionDecl::optional(
            "csv.header",
            OptionKind::Bool,
            Some("true"),
            "Whether a file's first line names the columns.",
        ),
        OptionDecl::optional(
            "csv.null",
            OptionKind::Text,
            Some(""),
            "The text for null, where it is not in quotes.",
        ),
        OptionDecl::optional(
            "csv.multiline",
            OptionKind::Bool,
            Some("true"),
            "Whether values in quotes may have line ends. Where they have none, `false` lets several readers share \
             a file.",
        ),
    ],
    can_read: true,
    can_write: true,
    takes_updates: false,
    reads_changelog: false,
};

const PARQUET: FormatDecl = FormatDecl {
    name: "parquet",
    meaning: "Apache Parquet files. Columns are found by name, and converted where their values allow it: a row with one \
              that cannot be kept exactly is a bad record. (A number becomes the nearest REAL or DOUBLE.) A file that is \
              being written can be read when it is complete.",
    options: &[OptionDecl::optional(
        parquet::COMPRESSION,
        OptionKind::Choice(parquet::COMPRESSIONS),
        Some("zstd"),
        "How the columns of a file that is written are compressed.",
    )],
    can_read: true,
    can_write: true,
    takes_updates: false,
    reads_changelog: false,
};

const RAW_STRING: FormatDecl = FormatDecl {
    name: "raw_string",
    meaning: "Each line or message is the value of the table's only column, of type TEXT.",
    options: &[framing::METHOD, framing::ALIAS, framing::MAX_LENGTH],
    can_read: true,
    can_write: true,
    takes_updates: false,
    reads_changelog: false,
};

const RAW_BYTES: FormatDecl = FormatDecl {
    name: "raw_bytes",
    meaning: "Each message is the value of the table's only column, of type BYTEA. In a file each line is, up to its \
              line end; a value with one cannot be written there.",
    options: &[framing::METHOD, framing::ALIAS, framing::MAX_LENGTH],
    can_read: true,
    can_write: true,
    takes_updates: false,
    reads_changelog: false,
};

pub(super) fn takes_updates(format: &str) -> bool {
    FORMATS.iter().any(|f| f.name == format && f.takes_updates)
}

/// Checks what the options cannot say one by one. `schema`: the columns that are decoded from a record, or
/// written into one.
pub fn check(
    format: &str,
    options: &Options,
    schema: &Schema,
    direction: Direction,
) -> Result<(), OptionFault> {
    framing::check(options)?;
    match format {
        "raw_string" => one_column("format", "'raw_string'", schema, "TEXT"),
        "raw_bytes" => one_column("format", "'raw_bytes'", schema, "BYTEA"),
        "csv" => csv::Dialect::parse(options).map(|_| ()),
        "avro" => {
            avro::check(options, direction)?;
            match avro::is_document(options) {
                true => one_column(
                    avro::INTO_JSON.name,
                    "'avro.into_unstructured_json'",
                    schema,
                    "TEXT",
                ),
                false => Ok(()),
            }
        }
        "json" => check_json(options, schema, direction),
        "protobuf" => {
            protobuf::check(options, direction)?;
            match protobuf::is_document(options) {
                true => one_column(
                    protobuf::INTO_JSON.name,
                    "'protobuf.into_unstructured_json'",
                    schema,
                    "TEXT",
                ),
                false => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

fn check_json(options: &Options, schema: &Schema, direction: Direction) -> Result<(), OptionFault> {
    let is = |name: &str| options.bool(name) == Some(true);
    if is(UNSTRUCTURED) {
        one_column(UNSTRUCTURED, "'json.unstructured'", schema, "TEXT")?;
    }
    if is(INCLUDE_SCHEMA.name) {
        for other in [UNSTRUCTURED, JSON_CONFLUENT.name] {
            if is(other) {
                return Err(excludes(INCLUDE_SCHEMA.name, other));
            }
        }
    }
    if is(JSON_CONFLUENT.name) && direction == Direction::Sink {
        registry::Config::parse(options)?;
    }
    Ok(())
}

fn excludes(option: &str, other: &str) -> OptionFault {
    OptionFault {
        option: Some(option.to_string()),
        message: format!("'{option}' excludes '{other}'"),
        hint: None,
    }
}

/// Refuses options that are about messages, for tables whose records are lines or files.
pub fn refuse_messages(format: Option<&str>, options: &Options) -> Result<(), OptionFault> {
    let given = match format {
        Some("protobuf") => protobuf::is_confluent(options).then_some(protobuf::CONFLUENT.name),
        _ => (options.bool(JSON_CONFLUENT.name) == Some(true)).then_some(JSON_CONFLUENT.name),
    };
    match given {
        None => Ok(()),
        Some(name) => Err(OptionFault {
            option: Some(name.to_string()),
            message: format!("'{name}' is for messages, which this connector has none of"),
            hint: Some("leave it and the schema registry out".to_string()),
        }),
    }
}

/// Checks that the schema is one column of a type by its SQL name: TEXT or BYTEA.
fn one_column(
    option: &str,
    what: &str,
    schema: &Schema,
    sql_type: &str,
) -> Result<(), OptionFault> {
    use DataType as T;
    let fits = |t: &T| match sql_type {
        "BYTEA" => matches!(t, T::Binary | T::LargeBinary | T::BinaryView),
        _ => matches!(t, T::Utf8 | T::LargeUtf8 | T::Utf8View),
    };
    match schema.fields().as_ref() {
        [only] if fits(only.data_type()) => Ok(()),
        _ => Err(OptionFault {
            option: Some(option.to_string()),
            message: format!("{what} needs exactly one column, of type {sql_type}"),
            hint: Some(format!("declare the table as (value {sql_type})")),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Field;
    use thalweg_dataflow::table::json_field;

    fn check(format: &str, given: &[(&str, &str)], fields: Vec<Field>) -> Result<(), OptionFault> {
        let given = given
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        super::check(
            format,
            &Options::resolve(&given, &[]),
            &Schema::new(fields),
            Direction::Source,
        )
    }

    #[test]
    fn defaults_are_values_of_their_options() {
        for format in FORMATS {
            for option in format.options {
                let default = option.default.map_or(Ok(()), |d| option.kind.check(d));
                assert_eq!(default, Ok(()), "{} of {}", option.name, format.name);
            }
        }
    }

    #[test]
    fn whole_records_need_one_column_of_text() {
        let text = || Field::new("value", DataType::Utf8, true);
        assert_eq!(check("raw_string", &[], vec![text()]), Ok(()));
        assert_eq!(
            check(
                "json",
                &[(UNSTRUCTURED, "true")],
                vec![json_field("doc", true)]
            ),
            Ok(())
        );
        for fields in [
            vec![],
            vec![text(), text()],
            vec![Field::new("n", DataType::Int64, true)],
        ] {
            assert_eq!(check("json", &[], fields.clone()), Ok(()));
            let fault = check("raw_string", &[], fields.clone()).unwrap_err();
            assert_eq!(
                fault.message,
                "'raw_string' needs exactly one column, of type TEXT"
            );
            let fault = check("json", &[(UNSTRUCTURED, "true")], fields).unwrap_err();
            assert_eq!(fault.option.as_deref(), Some(UNSTRUCTURED));
        }
    }

    #[test]
    fn options_of_csv_are_checked_together() {
        let fault = check("csv", &[("csv.quote", ",")], vec![]).unwrap_err();
        assert_eq!(fault.option.as_deref(), Some("csv.quote"));
    }
}
