//! The columns of a table from the schema of its records.

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use thalweg_dataflow::table::json_field;

use super::schema::{AvroSchema, AvroType, Logical, Shape, TypeId};

/// One column for each field of the record. What SQL types do not say exactly (maps, unions of several types,
/// types that contain themselves) is JSON. Errors: the schema describes no record.
pub fn columns(schema: &AvroSchema) -> Result<Vec<Field>, String> {
    let fields = schema.record().ok_or_else(|| {
        let is = schema.describe(schema.root);
        format!("the Avro schema describes values of type {is}, not records")
    })?;
    let mut open = vec![schema.root];
    Ok(fields
        .iter()
        .map(|f| field(&f.name, schema, f.ty, &mut open))
        .collect())
}

/// `open`: the records around the field.
fn field(name: &str, schema: &AvroSchema, ty: TypeId, open: &mut Vec<TypeId>) -> Field {
    let AvroType { shape, logical } = schema.ty(ty);
    if let Shape::Union(branches) = shape {
        let is_null = |id: &&TypeId| matches!(schema.ty(**id).shape, Shape::Null);
        let nullable = branches.iter().any(|id| is_null(&id));
        let mut others = branches.iter().filter(|id| !is_null(id));
        return match (others.next(), others.next()) {
            (Some(only), None) => {
                let inner = field(name, schema, *only, open);
                let nullable = nullable || inner.is_nullable();
                inner.with_nullable(nullable)
            }
            _ => json_field(name, true),
        };
    }
    match data_type(schema, ty, shape, *logical, open) {
        Some(data_type) => Field::new(name, data_type, false),
        None => json_field(name, matches!(shape, Shape::Null)),
    }
}

fn data_type(
    schema: &AvroSchema,
    ty: TypeId,
    shape: &Shape,
    logical: Option<Logical>,
    open: &mut Vec<TypeId>,
) -> Option<DataType> {
    use DataType as T;
    Some(match (shape, logical) {
        (_, Some(Logical::Date)) => T::Date32,
        (_, Some(Logical::TimeMillis | Logical::TimeMicros)) => T::Time64(TimeUnit::Nanosecond),
        (
            _,
            Some(Logical::Timestamp {
                tick_nanos,
                is_local,
            }),
        ) => {
            // As fine as it is written, so that every value fits.
            let unit = match tick_nanos {
                1 => TimeUnit::Nanosecond,
                1_000 => TimeUnit::Microsecond,
                _ => TimeUnit::Millisecond,
            };
            T::Timestamp(unit, (!is_local).then(|| "+00:00".into()))
        }
        (_, Some(Logical::Uuid)) => T::Utf8,
        (_, Some(Logical::Duration)) => T::Interval(IntervalUnit::MonthDayNano),
        (_, Some(Logical::Decimal { precision, scale })) => match u8::try_from(precision) {
            Ok(precision @ ..=38) => T::Decimal128(precision, scale),
            Ok(precision @ ..=76) => T::Decimal256(precision, scale),
            _ => return None,
        },
        (Shape::Boolean, _) => T::Boolean,
        (Shape::Int, _) => T::Int32,
        (Shape::Long, _) => T::Int64,
        (Shape::Float, _) => T::Float32,
        (Shape::Double, _) => T::Float64,
        (Shape::Bytes | Shape::Fixed(_), _) => T::Binary,
        (Shape::String | Shape::Enum(_), _) => T::Utf8,
        (Shape::Array(item), _) => T::List(field("item", schema, *item, open).into()),
        (Shape::Record(fields), _) if !fields.is_empty() && !open.contains(&ty) => {
            open.push(ty);
            let inner = fields.iter().map(|f| field(&f.name, schema, f.ty, open));
            let inner = inner.collect();
            open.pop();
            T::Struct(inner)
        }
        _ => return None,
    })
}
