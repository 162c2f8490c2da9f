//! A column of a batch, by the way its values are written.

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, ListArray, PrimitiveArray, RecordBatch,
    StringArray,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, Field, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, Schema, Time64NanosecondType, TimeUnit,
    TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, i256,
};
use pgwire::api::Type;

use crate::pgwire::error::Failure;
use crate::pgwire::types::type_of;
use crate::results::json_texts;

pub struct Column<'a> {
    pub values: Values<'a>,
    array: &'a ArrayRef,
}

/// Values by their wire type.
pub enum Values<'a> {
    Bool(&'a BooleanArray),
    Int2(Ints<'a>),
    Int4(Ints<'a>),
    Int8(Ints<'a>),
    UInt64(&'a [u64]),
    Decimal128(&'a [i128], i8),
    Decimal256(&'a [i256], i8),
    Float4(&'a [f32]),
    Float8(&'a [f64]),
    Text(&'a StringArray),
    Bytes(&'a BinaryArray),
    Date(&'a [i32]),
    Time(&'a [i64]),
    Timestamp(&'a [i64]),
    Timestamptz(&'a [i64]),
    Interval(&'a [IntervalMonthDayNano]),
    /// The elements of all rows, where each row's are, and their type.
    Array(Box<Column<'a>>, &'a ListArray, Type),
    Json(Vec<String>),
    Nothing,
}

/// Whole numbers of up to 64 bits.
pub enum Ints<'a> {
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
}

impl Ints<'_> {
    pub fn get(&self, row: usize) -> i64 {
        match self {
            Self::I8(values) => values[row].into(),
            Self::I16(values) => values[row].into(),
            Self::I32(values) => values[row].into(),
            Self::I64(values) => values[row],
            Self::U8(values) => values[row].into(),
            Self::U16(values) => values[row].into(),
            Self::U32(values) => values[row].into(),
        }
    }
}

fn primitive<T: ArrowPrimitiveType>(array: &ArrayRef) -> &[T::Native] {
    let array: &PrimitiveArray<T> = array.as_primitive();
    array.values()
}

impl<'a> Column<'a> {
    /// Errors: JSON that cannot be made of the values.
    pub fn new(field: &Field, array: &'a ArrayRef) -> Result<Self, Failure> {
        use Values as V;
        let values = match field.data_type() {
            DataType::Boolean => V::Bool(array.as_boolean()),
            DataType::Int8 => V::Int2(Ints::I8(primitive::<Int8Type>(array))),
            DataType::UInt8 => V::Int2(Ints::U8(primitive::<UInt8Type>(array))),
            DataType::Int16 => V::Int2(Ints::I16(primitive::<Int16Type>(array))),
            DataType::UInt16 => V::Int4(Ints::U16(primitive::<UInt16Type>(array))),
            DataType::Int32 => V::Int4(Ints::I32(primitive::<Int32Type>(array))),
            DataType::UInt32 => V::Int8(Ints::U32(primitive::<UInt32Type>(array))),
            DataType::Int64 => V::Int8(Ints::I64(primitive::<Int64Type>(array))),
            DataType::UInt64 => V::UInt64(primitive::<UInt64Type>(array)),
            DataType::Decimal128(_, scale) => {
                V::Decimal128(primitive::<Decimal128Type>(array), *scale)
            }
            DataType::Decimal256(_, scale) => {
                V::Decimal256(primitive::<Decimal256Type>(array), *scale)
            }
            DataType::Float32 => V::Float4(primitive::<Float32Type>(array)),
            DataType::Float64 => V::Float8(primitive::<Float64Type>(array)),
            DataType::Utf8 => V::Text(array.as_string()),
            DataType::Binary => V::Bytes(array.as_binary()),
            DataType::Date32 => V::Date(primitive::<Date32Type>(array)),
            DataType::Time64(TimeUnit::Nanosecond) => {
                V::Time(primitive::<Time64NanosecondType>(array))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
                let nanos = primitive::<TimestampNanosecondType>(array);
                match zone {
                    None => V::Timestamp(nanos),
                    Some(_) => V::Timestamptz(nanos),
                }
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                V::Interval(primitive::<IntervalMonthDayNanoType>(array))
            }
            DataType::List(element) if type_of(field) != Type::JSON => {
                let list: &ListArray = array.as_list();
                let elements = Column::new(element, list.values())?;
                V::Array(Box::new(elements), list, type_of(element))
            }
            DataType::Null => V::Nothing,
            _ => V::Json(json(field, array)?),
        };
        Ok(Self { values, array })
    }

    pub fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Nothing) || self.array.is_null(row)
    }
}

/// Each value as JSON.
fn json(field: &Field, array: &ArrayRef) -> Result<Vec<String>, Failure> {
    const HEAD: &str = "{\"v\":";
    let field = field.clone().with_name("v").with_nullable(true);
    let batch = RecordBatch::try_new(Schema::new(vec![field]).into(), vec![array.clone()]);
    let texts = batch.map_err(Failure::internal)?;
    let mut texts = json_texts(&texts).map_err(Failure::internal)?;
    if texts.len() != array.len() {
        return Err(Failure::internal("JSON of another number of rows"));
    }
    for text in &mut texts {
        let value = text
            .strip_prefix(HEAD)
            .and_then(|rest| rest.strip_suffix('}'));
        *text = value.unwrap_or("null").to_string();
    }
    Ok(texts)
}
