//! Avro values as JSON text, for columns of type JSON and for records kept as documents: as `json` would write them,
//! so that a union is its value and not an object around it.

use arrow::datatypes::TimeUnit;
use thalweg_runtime::connector::BadReason;

use super::super::fault::Fault;
use super::super::json::write_string;
use super::super::value::{ValueFault, binary, decimal_bytes, write};
use super::cursor::Cursor;
use super::read::{branch, duration, string, symbol};
use super::schema::{AvroSchema, Logical, Shape, TypeId};

/// How deep values of types that contain themselves may be nested.
pub const MAX_DEPTH: u32 = 64;

/// Bytes that a column may hold before another value is begun: names of fields make JSON many times larger than Avro.
const MAX_JSON: usize = 256 << 20;

#[cold]
pub fn too_deep() -> Box<Fault> {
    Fault::malformed(format!("values are nested deeper than {MAX_DEPTH} levels"))
}

/// Appends the value at hand.
pub fn write_json(
    cursor: &mut Cursor<'_>,
    schema: &AvroSchema,
    ty: TypeId,
    out: &mut Vec<u8>,
    depth: u32,
) -> Result<(), Box<Fault>> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    if out.len() > MAX_JSON {
        let message = "the record as JSON is too large";
        return Err(Fault::new(BadReason::TooLarge, message));
    }
    let value = schema.ty(ty);
    match (&value.shape, value.logical) {
        (Shape::Null | Shape::Undefined, _) => out.extend_from_slice(b"null"),
        (Shape::Boolean, _) => {
            let word: &[u8] = if cursor.boolean()? { b"true" } else { b"false" };
            out.extend_from_slice(word);
        }
        (Shape::Int, logical) => number(cursor.int()?.into(), logical, out),
        (Shape::Long, logical) => number(cursor.long()?, logical, out),
        (Shape::Float, _) => {
            let float = cursor.float()?;
            quoted(!float.is_finite(), out, |out| write::float(float, out));
        }
        (Shape::Double, _) => {
            let float = cursor.double()?;
            quoted(!float.is_finite(), out, |out| write::float(float, out));
        }
        (Shape::String, _) => write_string(string(cursor)?, out),
        (Shape::Enum(symbols), _) => write_string(symbol(cursor, symbols)?.as_bytes(), out),
        (Shape::Bytes, logical) => bytes(cursor.bytes()?, logical, out)?,
        (Shape::Fixed(n), logical) => bytes(cursor.take(*n)?, logical, out)?,
        (Shape::Array(item), _) => items(cursor, [b'[', b']'], out, |cursor, out| {
            write_json(cursor, schema, *item, out, depth + 1)
        })?,
        (Shape::Map(value), _) => items(cursor, [b'{', b'}'], out, |cursor, out| {
            write_string(string(cursor)?, out);
            out.push(b':');
            write_json(cursor, schema, *value, out, depth + 1)
        })?,
        (Shape::Union(branches), _) => {
            let index = branch(cursor, branches)?;
            write_json(cursor, schema, branches[index], out, depth + 1)?;
        }
        (Shape::Record(fields), _) => {
            out.push(b'{');
            for (i, field) in fields.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(field.name.as_bytes(), out);
                out.push(b':');
                write_json(cursor, schema, field.ty, out, depth + 1)
                    .map_err(|fault| fault.in_field(&field.name))?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn items(
    cursor: &mut Cursor<'_>,
    [open, close]: [u8; 2],
    out: &mut Vec<u8>,
    mut item: impl FnMut(&mut Cursor<'_>, &mut Vec<u8>) -> Result<(), Box<Fault>>,
) -> Result<(), Box<Fault>> {
    out.push(open);
    let mut is_first = true;
    loop {
        let n_items = cursor.block()?;
        if n_items == 0 {
            break;
        }
        for _ in 0..n_items {
            if !std::mem::replace(&mut is_first, false) {
                out.push(b',');
            }
            item(cursor, out)?;
        }
    }
    out.push(close);
    Ok(())
}

fn quoted(is_text: bool, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    if is_text {
        out.push(b'"');
    }
    write(out);
    if is_text {
        out.push(b'"');
    }
}

fn number(number: i64, logical: Option<Logical>, out: &mut Vec<u8>) {
    let timestamp = |unit, is_local: bool, out: &mut Vec<u8>| {
        quoted(true, out, |out| {
            write::timestamp(number, unit, !is_local, out)
        });
    };
    match (logical, i32::try_from(number)) {
        (Some(Logical::Date), Ok(days)) => quoted(true, out, |out| write::date(days, out)),
        (Some(Logical::TimeMillis), _) if (0..86_400_000).contains(&number) => {
            quoted(true, out, |out| {
                write::time(number, TimeUnit::Millisecond, out)
            });
        }
        (Some(Logical::TimeMicros), _) if (0..86_400_000_000).contains(&number) => {
            quoted(true, out, |out| {
                write::time(number, TimeUnit::Microsecond, out)
            });
        }
        (
            Some(Logical::Timestamp {
                tick_nanos,
                is_local,
            }),
            _,
        ) => match tick_nanos {
            1 => timestamp(TimeUnit::Nanosecond, is_local, out),
            1_000 => timestamp(TimeUnit::Microsecond, is_local, out),
            _ => timestamp(TimeUnit::Millisecond, is_local, out),
        },
        _ => write::int(number, out),
    }
}

fn bytes(bytes: &[u8], logical: Option<Logical>, out: &mut Vec<u8>) -> Result<(), Box<Fault>> {
    let broken = |fault: ValueFault, what: &str| {
        let (reason, _) = fault.describe("", &arrow::datatypes::DataType::Null);
        Fault::new(reason, format!("{what} is out of range"))
    };
    match logical {
        Some(Logical::Decimal { scale, .. }) => {
            let unscaled = decimal_bytes::from_bytes(bytes).map_err(|f| broken(f, "a decimal"))?;
            write::decimal256(unscaled, scale, out);
        }
        Some(Logical::Uuid) => quoted(true, out, |out| write_uuid(bytes, out)),
        Some(Logical::Duration) => {
            let interval = duration(bytes).map_err(|f| broken(f, "a duration"))?;
            quoted(true, out, |out| write::interval(interval, out));
        }
        _ => quoted(true, out, |out| binary::encode_into(bytes, out)),
    }
    Ok(())
}

/// Appends 16 bytes as a UUID is written.
pub fn write_uuid(bytes: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.push(HEX[usize::from(byte >> 4)]);
        out.push(HEX[usize::from(byte & 15)]);
    }
}
