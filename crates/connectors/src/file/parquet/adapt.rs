//! From the columns of a file to those of a table, value by value without loss.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::compute::{self, CastOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Float64Type, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use thalweg_dataflow::table::is_json;
use thalweg_runtime::connector::{BadReason, ConnectorError};

/// What becomes of a file's columns.
pub struct Adapter {
    columns: Vec<Column>,
}

struct Column {
    /// As the table declares it.
    field: FieldRef,
    /// Position among the columns that are read.
    source: usize,
    /// The file's type, dictionaries aside.
    from: DataType,
}

/// A row that does not fit the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    pub row: usize,
    pub reason: BadReason,
    pub message: String,
}

impl Adapter {
    /// The positions of the columns to read in the file's schema, ascending, and what becomes of them.
    ///
    /// Errors: the file lacks a column, or has one of a type whose values could not be the declared type's.
    pub fn new(
        name: &str,
        file: &Schema,
        table: &Schema,
    ) -> Result<(Vec<usize>, Self), ConnectorError> {
        let found = table
            .fields()
            .iter()
            .map(|field| find(name, file, field))
            .collect::<Result<Vec<_>, _>>()?;
        let mut read = found.clone();
        read.sort_unstable();
        read.dedup();
        let column = |(field, at): (&FieldRef, usize)| Column {
            field: field.clone(),
            source: read.partition_point(|&r| r < at),
            from: file.field(at).data_type().clone(),
        };
        let columns = table.fields().iter().zip(found).map(column).collect();
        Ok((read, Self { columns }))
    }

    /// The table's columns for all rows, and the rows whose values there are not those of the file, in
    /// order and each once.
    pub fn adapt(&self, rows: &RecordBatch) -> Result<(Vec<ArrayRef>, Vec<Misfit>), ArrowError> {
        let mut misfits = Vec::new();
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            columns.push(column.adapt(rows.column(column.source), &mut misfits)?);
        }
        misfits.sort_by_key(|m: &Misfit| m.row);
        misfits.dedup_by_key(|m| m.row);
        Ok((columns, misfits))
    }
}

fn find(name: &str, file: &Schema, field: &Field) -> Result<usize, ConnectorError> {
    let at = file.index_of(field.name()).map_err(|_| {
        let columns: Vec<_> = file.fields().iter().map(|f| f.name().as_str()).collect();
        let message = format!("file \"{name}\" has no column \"{}\"", field.name());
        ConnectorError::configuration(message, Some(format!("it has {}", columns.join(", "))))
    })?;
    let (from, to) = (file.field(at).data_type(), field.data_type());
    if can_adapt(from, to) {
        return Ok(at);
    }
    let message = format!(
        "column \"{}\" of file \"{name}\" is {from}, and cannot be read as {to}",
        field.name()
    );
    let hint = "declare the column as what it is in the file, and convert it in the query or in a generated column";
    Err(ConnectorError::configuration(
        message,
        Some(hint.to_string()),
    ))
}

/// Whether values of one type can be values of the other. Not every value need be.
fn can_adapt(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let is_number = |t: &DataType| t.is_numeric();
    let is_text = |t: &DataType| matches!(t, Utf8 | LargeUtf8 | Utf8View);
    let is_binary =
        |t: &DataType| matches!(t, Binary | LargeBinary | BinaryView | FixedSizeBinary(_));
    let is_instant = |t: &DataType| matches!(t, Timestamp(..) | Date32 | Date64);
    let is_time = |t: &DataType| matches!(t, Time32(_) | Time64(_));
    match (from, to) {
        _ if from == to => true,
        (List(from) | LargeList(from) | FixedSizeList(from, _), List(to) | LargeList(to)) => {
            can_adapt(from.data_type(), to.data_type())
        }
        (Struct(from), Struct(to)) => can_adapt_fields(from, to),
        _ => [is_number, is_text, is_binary, is_instant, is_time]
            .iter()
            .any(|is| is(from) && is(to)),
    }
}

fn can_adapt_fields(from: &Fields, to: &Fields) -> bool {
    let same = |(from, to): (&FieldRef, &FieldRef)| {
        from.name() == to.name() && can_adapt(from.data_type(), to.data_type())
    };
    from.len() == to.len() && from.iter().zip(to).all(same)
}

impl Column {
    fn adapt(&self, values: &ArrayRef, misfits: &mut Vec<Misfit>) -> Result<ArrayRef, ArrowError> {
        let to = self.field.data_type();
        let adapted = if &self.from == to {
            values.clone()
        } else {
            self.cast(values, misfits)?
        };
        if !self.field.is_nullable() && values.logical_null_count() > 0 {
            let missing = (0..values.len()).filter(|&row| values.is_null(row));
            misfits.extend(missing.map(|row| {
                self.misfit(row, BadReason::Missing, " is null, but declared NOT NULL")
            }));
        }
        if is_json(&self.field) {
            self.check_json(&adapted, misfits);
        }
        Ok(adapted)
    }

    fn cast(&self, values: &ArrayRef, misfits: &mut Vec<Misfit>) -> Result<ArrayRef, ArrowError> {
        let to = self.field.data_type();
        let adapted = compute::cast_with_options(values, to, &NULL_ON_FAILURE)?;
        let lost = if to.is_floating() {
            not_near(values, &adapted)?
        } else {
            not_same(values, &adapted)?
        };
        if !lost.is_empty() {
            let options = FormatOptions::default();
            let shown = ArrayFormatter::try_new(values, &options)?;
            let misfit = |row| {
                self.misfit(
                    row,
                    BadReason::Range,
                    format!(": {} cannot be kept as {to}", shown.value(row)),
                )
            };
            misfits.extend(lost.into_iter().map(misfit));
        }
        Ok(adapted)
    }

    fn check_json(&self, texts: &ArrayRef, misfits: &mut Vec<Misfit>) {
        let Some(texts) = texts.as_string_opt::<i32>() else {
            return;
        };
        for (row, text) in texts.iter().enumerate() {
            let is_valid =
                text.is_none_or(|t| serde_json::from_str::<serde::de::IgnoredAny>(t).is_ok());
            if !is_valid {
                misfits.push(self.misfit(row, BadReason::Type, ": the text is not JSON"));
            }
        }
    }

    fn misfit(&self, row: usize, reason: BadReason, message: impl std::fmt::Display) -> Misfit {
        Misfit {
            row,
            reason,
            message: format!("column \"{}\"{message}", self.field.name()),
        }
    }
}

const NULL_ON_FAILURE: CastOptions<'static> = CastOptions {
    safe: true,
    format_options: FormatOptions::new(),
};

/// The rows whose values are not got back from `adapted`.
fn not_same(values: &ArrayRef, adapted: &ArrayRef) -> Result<Vec<usize>, ArrowError> {
    let back = compute::cast_with_options(adapted, values.data_type(), &NULL_ON_FAILURE)?;
    if &back == values {
        return Ok(Vec::new());
    }
    Ok((0..values.len())
        .filter(|&row| back.slice(row, 1) != values.slice(row, 1))
        .collect())
}

/// The rows whose numbers have become infinite or nothing. A number that is declared DOUBLE or REAL becomes
/// the nearest one otherwise, as it does in every other format.
fn not_near(values: &ArrayRef, adapted: &ArrayRef) -> Result<Vec<usize>, ArrowError> {
    let (values, adapted) = (doubles(values)?, doubles(adapted)?);
    let is_near = |row| match (values.is_valid(row), adapted.is_valid(row)) {
        (true, true) => adapted.value(row).is_finite() || !values.value(row).is_finite(),
        (is_value, is_kept) => is_value == is_kept,
    };
    Ok((0..values.len()).filter(|&row| !is_near(row)).collect())
}

fn doubles(numbers: &ArrayRef) -> Result<Float64Array, ArrowError> {
    let numbers = compute::cast_with_options(numbers, &DataType::Float64, &NULL_ON_FAILURE)?;
    Ok(numbers.as_primitive::<Float64Type>().clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::schema;
    use arrow::array::{Int64Array, ListArray, StringArray, TimestampMicrosecondArray};
    use arrow::datatypes::{Int32Type, TimeUnit};
    use std::sync::Arc;
    use thalweg_dataflow::table::json_field;

    const NS: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);

    /// The column `c` of a file read as `to`: its values, and the misfits.
    fn adapt(values: impl Array + 'static, to: Field) -> (ArrayRef, Vec<Misfit>) {
        let file = schema(&[("c", values.data_type().clone())]);
        let (read, adapter) = Adapter::new("f", &file, &Schema::new(vec![to])).unwrap();
        assert_eq!(read, [0]);
        let rows = RecordBatch::try_new(file, vec![Arc::new(values)]).unwrap();
        let (mut columns, misfits) = adapter.adapt(&rows).unwrap();
        (columns.remove(0), misfits)
    }

    fn misfits(values: impl Array + 'static, to: DataType) -> Vec<(usize, String)> {
        let (_, misfits) = adapt(values, Field::new("c", to, true));
        misfits.into_iter().map(|m| (m.row, m.message)).collect()
    }

    fn one(row: usize, message: &str) -> Vec<(usize, String)> {
        vec![(row, message.to_string())]
    }

    #[test]
    fn values_that_fit_are_converted() {
        let (column, misfits) = adapt(
            Int64Array::from(vec![Some(1), None]),
            Field::new("c", DataType::Decimal128(5, 2), true),
        );
        assert!(misfits.is_empty());
        assert_eq!(column.data_type(), &DataType::Decimal128(5, 2));
        let (column, misfits) = adapt(
            TimestampMicrosecondArray::from(vec![7]).with_timezone("UTC"),
            Field::new("c", NS, true),
        );
        assert!(misfits.is_empty());
        assert_eq!(
            column
                .as_primitive::<arrow::datatypes::TimestampNanosecondType>()
                .value(0),
            7000
        );
    }

    #[test]
    fn a_value_is_never_kept_as_another_one() {
        let doubles = || Float64Array::from(vec![Some(1.0), None, Some(68.32)]);
        assert_eq!(
            misfits(doubles(), DataType::Int32),
            one(2, "column \"c\": 68.32 cannot be kept as Int32")
        );
        assert_eq!(misfits(doubles(), DataType::Decimal128(4, 2)), []);
        assert_eq!(misfits(doubles(), DataType::Decimal128(4, 1)).len(), 1);
        assert_eq!(
            misfits(Int64Array::from(vec![300, 1]), DataType::Int8).len(),
            1
        );
        assert_eq!(
            misfits(Int64Array::from(vec![-1]), DataType::UInt64).len(),
            1
        );
        assert_eq!(
            misfits(TimestampMicrosecondArray::from(vec![i64::MAX]), NS).len(),
            1
        );
        assert_eq!(
            misfits(
                TimestampMicrosecondArray::from(vec![0, 1]),
                DataType::Date32
            )
            .len(),
            1
        );
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
            Some(vec![Some(1)]),
            Some(vec![Some(300), None]),
        ]);
        let bytes = DataType::new_list(DataType::UInt8, true);
        assert_eq!(misfits(lists, bytes).len(), 1);
    }

    #[test]
    fn doubles_are_the_nearest_ones() {
        let values = || Float64Array::from(vec![0.1, 1e300, f64::NAN, f64::INFINITY]);
        assert_eq!(
            misfits(values(), DataType::Float32),
            one(1, "column \"c\": 1e300 cannot be kept as Float32")
        );
    }

    #[test]
    fn nulls_and_texts_that_are_not_json_are_found() {
        let (_, misfits) = adapt(
            Int64Array::from(vec![Some(1), None]),
            Field::new("c", DataType::Int64, false),
        );
        assert_eq!(
            misfits[0].message,
            "column \"c\" is null, but declared NOT NULL"
        );
        assert_eq!((misfits[0].row, misfits[0].reason), (1, BadReason::Missing));
        let (_, misfits) = adapt(
            StringArray::from(vec![Some("{\"a\": 1}"), None, Some("{")]),
            json_field("c", true),
        );
        assert_eq!(
            (misfits.len(), misfits[0].row, misfits[0].reason),
            (1, 2, BadReason::Type)
        );
    }

    #[test]
    fn columns_are_found_by_name_and_only_those_are_read() {
        let file = schema(&[
            ("a", DataType::Int64),
            ("b", DataType::Utf8),
            ("c", DataType::Int64),
        ]);
        let table = schema(&[("c", DataType::Int32), ("a", DataType::Int64)]);
        let (read, adapter) = Adapter::new("f", &file, &table).unwrap();
        assert_eq!(read, [0, 2]);
        let rows = RecordBatch::try_new(
            schema(&[("a", DataType::Int64), ("c", DataType::Int64)]),
            vec![
                Arc::new(Int64Array::from(vec![1])),
                Arc::new(Int64Array::from(vec![3])),
            ],
        );
        let (columns, _) = adapter.adapt(&rows.unwrap()).unwrap();
        assert_eq!(columns[0].as_primitive::<Int32Type>().value(0), 3);
    }

    #[test]
    fn what_can_never_fit_is_an_error() {
        let file = schema(&[("a", DataType::Int64), ("b", DataType::Utf8)]);
        let refused = |name, to| {
            Adapter::new("f.parquet", &file, &schema(&[(name, to)]))
                .err()
                .unwrap()
        };
        let ConnectorError::Configuration { message, hint } = refused("aa", DataType::Int64) else {
            panic!()
        };
        assert_eq!(message, "file \"f.parquet\" has no column \"aa\"");
        assert_eq!(hint.as_deref(), Some("it has a, b"));
        let message = refused("b", DataType::Int64).to_string();
        assert_eq!(
            message,
            "column \"b\" of file \"f.parquet\" is Utf8, and cannot be read as Int64"
        );
    }
}
