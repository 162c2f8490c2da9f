//! Reads Avro values into columns: the schema says what is there, the column what it must become.
//!
//! | column | Avro |
//! |---|---|
//! | integers | int and long in range, decimals that are whole |
//! | floats | float, double, int, long; the nearest |
//! | DECIMAL | decimal, int, long, if scale and precision keep all digits |
//! | TEXT | string, enum, uuid |
//! | BYTEA | bytes, fixed |
//! | TIMESTAMP, DATE, TIME, INTERVAL | the logical types of these; never a bare number |
//! | STRUCT, arrays | records by field name, arrays |
//! | JSON | anything; a string must be JSON itself |
//!
//! Of a union, the branch that was written counts; null is NULL.

use arrow::datatypes::{IntervalMonthDayNano, TimeUnit, i256};
use thalweg_runtime::connector::BadReason;

use super::super::column::{Column, Values};
use super::super::fault::Fault;
use super::super::json::check_record;
use super::super::value::{ValueFault, decimal_bytes, excerpt, nanos_to_unit, noun};
use super::cursor::Cursor;
use super::json::{MAX_DEPTH, too_deep, write_json, write_uuid};
use super::schema::{AvroSchema, Logical, RecordField, Shape, TypeId};

/// How values of one type become those of one column.
#[derive(Debug)]
pub enum Node {
    Leaf,
    Record(RecordNode),
    Array(Box<Node>),
    /// One for each branch.
    Union(Vec<Node>),
}

/// How records become columns.
#[derive(Debug)]
pub struct RecordNode {
    /// Per field of the record, the column it becomes; `None`: it is skipped.
    fields: Vec<Option<(usize, Node)>>,
    /// Columns that the record has no field for.
    missing: Vec<usize>,
}

impl Node {
    fn new(schema: &AvroSchema, ty: TypeId, column: &Column) -> Self {
        match (&schema.ty(ty).shape, &column.values) {
            (Shape::Union(branches), _) => Self::Union(
                branches
                    .iter()
                    .map(|branch| Self::new(schema, *branch, column))
                    .collect(),
            ),
            (Shape::Record(fields), Values::Struct(structs)) => {
                Self::Record(RecordNode::new(schema, fields, &structs.columns))
            }
            (Shape::Array(item), Values::List(lists)) => {
                Self::Array(Box::new(Self::new(schema, *item, &lists.items)))
            }
            _ => Self::Leaf,
        }
    }
}

impl RecordNode {
    pub fn new(schema: &AvroSchema, fields: &[RecordField], columns: &[Column]) -> Self {
        let mut missing: Vec<usize> = (0..columns.len()).collect();
        let fields = fields
            .iter()
            .map(|field| {
                let index = columns.iter().position(|c| c.name() == field.name)?;
                missing.retain(|m| *m != index);
                Some((index, Node::new(schema, field.ty, &columns[index])))
            })
            .collect();
        Self { fields, missing }
    }
}

/// Pushes one value into each of `columns`. After a fault they must be truncated.
pub fn read_record(
    cursor: &mut Cursor<'_>,
    schema: &AvroSchema,
    fields: &[RecordField],
    columns: &mut [Column],
    node: &RecordNode,
) -> Result<(), Box<Fault>> {
    for (field, target) in fields.iter().zip(&node.fields) {
        match target {
            Some((index, node)) => {
                let column = &mut columns[*index];
                let read = read(cursor, schema, field.ty, column, node);
                read.map_err(|fault| fault.in_field(&field.name))?;
            }
            None => skip(cursor, schema, field.ty, 0)?,
        }
    }
    for index in &node.missing {
        let column = &mut columns[*index];
        if !column.field.is_nullable() {
            return Err(Fault::missing(false).in_field(column.name()));
        }
        column.push_null();
    }
    Ok(())
}

fn read(
    cursor: &mut Cursor<'_>,
    schema: &AvroSchema,
    ty: TypeId,
    column: &mut Column,
    node: &Node,
) -> Result<(), Box<Fault>> {
    match (&schema.ty(ty).shape, node) {
        (Shape::Null, _) => null(column),
        (Shape::Union(branches), Node::Union(nodes)) => {
            let index = branch(cursor, branches)?;
            read(cursor, schema, branches[index], column, &nodes[index])
        }
        _ if matches!(column.values, Values::Json(_)) => json(cursor, schema, ty, column),
        (Shape::Record(fields), Node::Record(node)) => {
            let Values::Struct(structs) = &mut column.values else {
                return Err(mismatch(schema, ty, column));
            };
            read_record(cursor, schema, fields, &mut structs.columns, node)?;
            structs.end_value();
            Ok(())
        }
        (Shape::Array(item), Node::Array(node)) => array(cursor, schema, *item, column, node),
        _ => scalar(cursor, schema, ty, column),
    }
}

fn null(column: &mut Column) -> Result<(), Box<Fault>> {
    if !column.field.is_nullable() {
        return Err(Fault::missing(true));
    }
    column.push_null();
    Ok(())
}

/// Which branch of a union follows.
pub fn branch(cursor: &mut Cursor<'_>, branches: &[TypeId]) -> Result<usize, Box<Fault>> {
    let index = cursor.long()?;
    let found = usize::try_from(index).ok().filter(|i| *i < branches.len());
    found.ok_or_else(|| {
        let n = branches.len();
        Fault::malformed(format!("a union of {n} types has no branch {index}"))
    })
}

fn array(
    cursor: &mut Cursor<'_>,
    schema: &AvroSchema,
    item: TypeId,
    column: &mut Column,
    node: &Node,
) -> Result<(), Box<Fault>> {
    let Values::List(lists) = &mut column.values else {
        unreachable!("the node was made from the column")
    };
    let mut index = 0;
    loop {
        let n_items = cursor.block()?;
        if n_items == 0 {
            break;
        }
        for _ in 0..n_items {
            let read = read(cursor, schema, item, &mut lists.items, node);
            read.map_err(|fault| fault.in_item(index))?;
            index += 1;
        }
    }
    if let Some(n) = lists.fixed.filter(|n| *n != index) {
        let message = format!("an array of {index} where {n} are declared");
        return Err(Fault::new(BadReason::Type, message));
    }
    lists.end_value();
    Ok(())
}

fn json(
    cursor: &mut Cursor<'_>,
    schema: &AvroSchema,
    ty: TypeId,
    column: &mut Column,
) -> Result<(), Box<Fault>> {
    let Values::Json(values) = &mut column.values else {
        unreachable!("asked by the caller")
    };
    if let Shape::String = schema.ty(ty).shape {
        let text = string(cursor)?;
        if check_record(text).is_err() {
            let message = format!("\"{}\" is not JSON", excerpt(text));
            return Err(Fault::new(BadReason::Type, message));
        }
        values.push(text);
        return Ok(());
    }
    write_json(cursor, schema, ty, values.open_value(), 0)?;
    values.end_value();
    Ok(())
}

/// UTF-8, checked.
pub fn string<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Box<Fault>> {
    let text = cursor.bytes()?;
    match simdutf8::basic::from_utf8(text) {
        Ok(_) => Ok(text),
        Err(_) => Err(Fault::new(BadReason::Encoding, "a string is not UTF-8")),
    }
}

/// The symbol of an enum.
pub fn symbol<'s>(cursor: &mut Cursor<'_>, symbols: &'s [String]) -> Result<&'s str, Box<Fault>> {
    let index = cursor.int()?;
    let found = usize::try_from(index).ok().and_then(|i| symbols.get(i));
    found.map(String::as_str).ok_or_else(|| {
        let n = symbols.len();
        Fault::malformed(format!("an enum of {n} symbols has no symbol {index}"))
    })
}

fn scalar(
    cursor: &mut Cursor<'_>,
    schema: &AvroSchema,
    ty: TypeId,
    column: &mut Column,
) -> Result<(), Box<Fault>> {
    let value = schema.ty(ty);
    let kept = match (&value.shape, value.logical) {
        (Shape::Boolean, _) => match &mut column.values {
            Values::Bool(v) => {
                v.push(cursor.boolean()?);
                return Ok(());
            }
            _ => Err(ValueFault::Type),
        },
        (Shape::Int | Shape::Long, Some(logical)) => {
            let number = number(cursor, &value.shape)?;
            return logical_number(number, logical, column)
                .map_err(|fault| number_fault(fault, number, schema, ty, column));
        }
        (Shape::Int | Shape::Long, None) => {
            let number = number(cursor, &value.shape)?;
            return integer(number, &mut column.values)
                .map_err(|fault| number_fault(fault, number, schema, ty, column));
        }
        (Shape::Float, _) => float(f64::from(cursor.float()?), column),
        (Shape::Double, _) => float(cursor.double()?, column),
        (Shape::Bytes, logical) => bytes(cursor.bytes()?, logical, column),
        (Shape::Fixed(n), logical) => bytes(cursor.take(*n)?, logical, column),
        (Shape::String, _) => text(string(cursor)?, column),
        (Shape::Enum(symbols), _) => text(symbol(cursor, symbols)?.as_bytes(), column),
        _ => Err(ValueFault::Type),
    };
    kept.map_err(|fault| match fault {
        ValueFault::Type => mismatch(schema, ty, column),
        other => Fault::value(
            other,
            schema.describe(ty).as_bytes(),
            column.field.data_type(),
        ),
    })
}

fn number(cursor: &mut Cursor<'_>, shape: &Shape) -> Result<i64, Box<Fault>> {
    match shape {
        Shape::Int => cursor.int().map(i64::from),
        _ => cursor.long(),
    }
}

#[cold]
fn number_fault(
    fault: ValueFault,
    number: i64,
    schema: &AvroSchema,
    ty: TypeId,
    column: &Column,
) -> Box<Fault> {
    match fault {
        ValueFault::Type => mismatch(schema, ty, column),
        other => Fault::value(
            other,
            number.to_string().as_bytes(),
            column.field.data_type(),
        ),
    }
}

#[cold]
fn mismatch(schema: &AvroSchema, ty: TypeId, column: &Column) -> Box<Fault> {
    let (is, wanted) = (schema.describe(ty), noun(column.field.data_type()));
    let wanted = match column.values {
        Values::Binary(_) => "bytes",
        _ => wanted,
    };
    Fault::new(BadReason::Type, format!("Avro's {is} is not {wanted}"))
}

fn integer(number: i64, values: &mut Values) -> Result<(), ValueFault> {
    fn narrow<T: TryFrom<i64>>(number: i64) -> Result<T, ValueFault> {
        T::try_from(number).map_err(|_| ValueFault::Range)
    }
    match values {
        Values::Int8(v) => v.push(narrow(number)?),
        Values::Int16(v) => v.push(narrow(number)?),
        Values::Int32(v) => v.push(narrow(number)?),
        Values::Int64(v) => v.push(number),
        Values::UInt8(v) => v.push(narrow(number)?),
        Values::UInt16(v) => v.push(narrow(number)?),
        Values::UInt32(v) => v.push(narrow(number)?),
        Values::UInt64(v) => v.push(narrow(number)?),
        Values::Float32(v) => v.push(number as f32),
        Values::Float64(v) => v.push(number as f64),
        decimal => return push_decimal(i256::from(number), 0, decimal),
    }
    Ok(())
}

/// A whole number of a decimal, which may be larger than a long.
fn big_integer(number: i128, values: &mut Values) -> Result<(), ValueFault> {
    if let Values::UInt64(v) = values {
        v.push(u64::try_from(number).map_err(|_| ValueFault::Range)?);
        return Ok(());
    }
    integer(
        i64::try_from(number).map_err(|_| ValueFault::Range)?,
        values,
    )
}

fn logical_number(number: i64, logical: Logical, column: &mut Column) -> Result<(), ValueFault> {
    let nanos = |tick: i64| i128::from(number) * i128::from(tick);
    match (logical, &mut column.values) {
        (Logical::Date, Values::Date(v)) => {
            v.push(i32::try_from(number).map_err(|_| ValueFault::Range)?);
        }
        (Logical::Timestamp { tick_nanos, .. }, Values::Timestamp { values, unit }) => {
            values.push(nanos_to_unit(nanos(tick_nanos), *unit)?);
        }
        (Logical::TimeMillis, values) => return push_time(nanos(1_000_000), values),
        (Logical::TimeMicros, values) => return push_time(nanos(1_000), values),
        // The number itself, where it is asked for.
        (_, values) => return integer(number, values),
    }
    Ok(())
}

fn push_time(nanos: i128, values: &mut Values) -> Result<(), ValueFault> {
    const DAY: i128 = 86_400_000_000_000;
    let in_unit = |unit: TimeUnit| {
        if !(0..DAY).contains(&nanos) {
            return Err(ValueFault::Range);
        }
        nanos_to_unit(nanos, unit)
    };
    match values {
        Values::Time64 { values, unit } => values.push(in_unit(*unit)?),
        Values::Time32 { values, unit } => {
            values.push(i32::try_from(in_unit(*unit)?).map_err(|_| ValueFault::Range)?);
        }
        _ => return Err(ValueFault::Type),
    }
    Ok(())
}

fn push_decimal(unscaled: i256, from: i8, values: &mut Values) -> Result<(), ValueFault> {
    match values {
        Values::Decimal128 {
            values,
            precision,
            scale,
        } => values.push(decimal_bytes::to_decimal128(
            unscaled, from, *precision, *scale,
        )?),
        Values::Decimal256 {
            values,
            precision,
            scale,
        } => values.push(decimal_bytes::to_decimal256(
            unscaled, from, *precision, *scale,
        )?),
        _ => return Err(ValueFault::Type),
    }
    Ok(())
}

fn float(number: f64, column: &mut Column) -> Result<(), ValueFault> {
    match &mut column.values {
        Values::Float32(v) => v.push(number as f32),
        Values::Float64(v) => v.push(number),
        _ => return Err(ValueFault::Type),
    }
    Ok(())
}

fn text(text: &[u8], column: &mut Column) -> Result<(), ValueFault> {
    let Values::Text(v) = &mut column.values else {
        return Err(ValueFault::Type);
    };
    v.push(text);
    Ok(())
}

fn bytes(bytes: &[u8], logical: Option<Logical>, column: &mut Column) -> Result<(), ValueFault> {
    match (logical, &mut column.values) {
        (_, Values::Binary(v)) => v.push(bytes),
        (Some(Logical::Uuid), Values::Text(v)) => {
            write_uuid(bytes, v.open_value());
            v.end_value();
        }
        (Some(Logical::Duration), Values::Interval(v)) => v.push(duration(bytes)?),
        (Some(Logical::Decimal { scale, .. }), values) => {
            let unscaled = decimal_bytes::from_bytes(bytes)?;
            return match values {
                Values::Decimal128 { .. } | Values::Decimal256 { .. } => {
                    push_decimal(unscaled, scale, values)
                }
                Values::Float32(_) | Values::Float64(_) => Err(ValueFault::Type),
                whole => {
                    let number = decimal_bytes::to_decimal128(unscaled, scale, 38, 0)?;
                    big_integer(number, whole)
                }
            };
        }
        _ => return Err(ValueFault::Type),
    }
    Ok(())
}

/// Months, days and milliseconds, 4 bytes each, unsigned and little-endian.
pub fn duration(bytes: &[u8]) -> Result<IntervalMonthDayNano, ValueFault> {
    let part = |i: usize| {
        let bytes = bytes.get(4 * i..).and_then(|rest| rest.first_chunk::<4>());
        bytes
            .map(|b| u32::from_le_bytes(*b))
            .ok_or(ValueFault::Type)
    };
    let small = |n: u32| i32::try_from(n).map_err(|_| ValueFault::Range);
    let nanos = i64::from(part(2)?) * 1_000_000;
    Ok(IntervalMonthDayNano::new(
        small(part(0)?)?,
        small(part(1)?)?,
        nanos,
    ))
}

/// Steps over a value. `depth` levels are open around it.
pub fn skip(
    cursor: &mut Cursor<'_>,
    schema: &AvroSchema,
    ty: TypeId,
    depth: u32,
) -> Result<(), Box<Fault>> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match &schema.ty(ty).shape {
        Shape::Null | Shape::Undefined => {}
        Shape::Boolean => cursor.boolean().map(drop)?,
        Shape::Int | Shape::Enum(_) => cursor.int().map(drop)?,
        Shape::Long => cursor.long().map(drop)?,
        Shape::Float => cursor.take(4).map(drop)?,
        Shape::Double => cursor.take(8).map(drop)?,
        Shape::Bytes | Shape::String => cursor.bytes().map(drop)?,
        Shape::Fixed(n) => cursor.take(*n).map(drop)?,
        Shape::Array(item) => loop {
            let n_items = cursor.block()?;
            if n_items == 0 {
                break;
            }
            for _ in 0..n_items {
                skip(cursor, schema, *item, depth + 1)?;
            }
        },
        Shape::Map(value) => loop {
            let n_items = cursor.block()?;
            if n_items == 0 {
                break;
            }
            for _ in 0..n_items {
                cursor.bytes()?;
                skip(cursor, schema, *value, depth + 1)?;
            }
        },
        Shape::Union(branches) => {
            let index = branch(cursor, branches)?;
            skip(cursor, schema, branches[index], depth + 1)?;
        }
        Shape::Record(fields) => {
            for field in fields {
                skip(cursor, schema, field.ty, depth + 1)?;
            }
        }
    }
    Ok(())
}
