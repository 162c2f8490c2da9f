//! State columns as bytes, a value for each key.
//!
//! Described byte by byte in `docs/state-format.md`: a bitmap of which nullable columns have a value,
//! then the columns in order, numbers in the bytes that Arrow keeps them in, everything of varying
//! length after its length. Unlike key bytes these need no order, only to be short and quick.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{Buffer, MutableBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};

use super::fixed::with_fixed_type;
use super::keys::{KeyCodec, KeyError, KeyRows};

/// Version of the encoding, stored in the header of a state directory.
pub const VALUE_FORMAT_VERSION: u8 = 1;

const _: () = assert!(
    cfg!(target_endian = "little"),
    "numbers are stored as they lie in memory"
);

/// Encodes and decodes rows of given fields.
#[derive(Debug)]
pub struct ValueCodec {
    fields: Vec<(Field, Kind)>,
    bitmap_bytes: usize,
}

/// How a column's values are laid out.
#[derive(Debug)]
enum Kind {
    /// As many bytes as the type is wide.
    Fixed(usize),
    /// A byte, 0 or 1.
    Bool,
    /// A length as a varint, and the bytes.
    Bytes,
    /// A length as a varint, and the value in the encoding of keys, bit for bit.
    Nested(KeyCodec),
}

impl ValueCodec {
    /// Errors: [`KeyError::UnsupportedType`] for a field that cannot be kept.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Result<Self, KeyError> {
        let with_kind = |field: Field| {
            let kind = Kind::new(field.data_type())?;
            Ok((field, kind))
        };
        let fields = fields
            .into_iter()
            .map(with_kind)
            .collect::<Result<Vec<_>, KeyError>>()?;
        let n_nullable = fields.iter().filter(|(f, _)| f.is_nullable()).count();
        Ok(Self {
            fields,
            bitmap_bytes: n_nullable.div_ceil(8),
        })
    }

    /// The bytes of each row. Columns are of the codec's types and `n_rows` long.
    pub fn encode(&self, columns: &[ArrayRef], n_rows: usize) -> Result<KeyRows, KeyError> {
        debug_assert_eq!(columns.len(), self.fields.len());
        let columns = self
            .fields
            .iter()
            .zip(columns)
            .map(|((field, kind), column)| Column::new(field, kind, column))
            .collect::<Result<Vec<_>, _>>()?;
        let mut lengths = vec![self.bitmap_bytes; n_rows];
        columns.iter().for_each(|c| c.add_lengths(&mut lengths));
        let (mut rows, mut cursors) = KeyRows::with_lengths(lengths);
        let starts = cursors.clone();
        cursors.iter_mut().for_each(|c| *c += self.bitmap_bytes);
        let mut nullable = 0;
        for column in &columns {
            if column.is_nullable {
                column.write_bits(rows.bytes_mut(), &starts, nullable);
                nullable += 1;
            }
            column.write(rows.bytes_mut(), &mut cursors);
        }
        Ok(rows)
    }

    /// The columns of some rows.
    ///
    /// Errors: [`KeyError::Malformed`] for bytes that this codec did not make.
    pub fn decode<'a>(
        &self,
        rows: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<ArrayRef>, KeyError> {
        let rows: Vec<&[u8]> = rows.into_iter().collect();
        let mut rests = Vec::with_capacity(rows.len());
        for row in &rows {
            rests.push(row.get(self.bitmap_bytes..).ok_or_else(ends_early)?);
        }
        let mut nullable = 0..;
        let mut columns = Vec::with_capacity(self.fields.len());
        for (field, kind) in &self.fields {
            let nulls = field.is_nullable().then(|| {
                let bit: usize = nullable.next().expect("counts without end");
                rows.iter()
                    .map(|row| row[bit / 8] >> (bit % 8) & 1 == 1)
                    .collect::<NullBuffer>()
            });
            columns.push(kind.read(field.data_type(), &mut rests, nulls)?);
        }
        match rests.iter().all(|rest| rest.is_empty()) {
            true => Ok(columns),
            false => Err(KeyError::Malformed("bytes follow the last column".into())),
        }
    }
}

fn ends_early() -> KeyError {
    KeyError::Malformed("they end within a value".into())
}

impl Kind {
    fn new(data_type: &DataType) -> Result<Self, KeyError> {
        macro_rules! fixed {
            ($t:ty) => {
                Ok(Self::Fixed(size_of::<<$t as ArrowPrimitiveType>::Native>()))
            };
        }
        with_fixed_type!(data_type => fixed!(),
            D::Boolean => Ok(Self::Bool),
            D::FixedSizeBinary(width) => Ok(Self::Fixed(*width as usize)),
            D::Utf8 | D::LargeUtf8 | D::Utf8View => Ok(Self::Bytes),
            D::Binary | D::LargeBinary | D::BinaryView => Ok(Self::Bytes),
            other => Ok(Self::Nested(KeyCodec::exact([other.clone()])?)))
    }

    /// Reads a column from the front of each row that has one and moves those rows on.
    fn read(
        &self,
        data_type: &DataType,
        rows: &mut [&[u8]],
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef, KeyError> {
        match self {
            Self::Fixed(8) => read_fixed::<8>(data_type, 8, rows, nulls),
            Self::Fixed(width) => read_fixed::<0>(data_type, *width, rows, nulls),
            Self::Bool => read_bools(rows, nulls),
            Self::Bytes => {
                let bytes = read_bytes(rows, nulls)?;
                Ok(match data_type {
                    DataType::Binary => Arc::new(bytes),
                    DataType::LargeBinary | DataType::BinaryView => cast(&bytes, data_type)?,
                    _ => {
                        let (offsets, values, nulls) = bytes.into_parts();
                        cast(&StringArray::try_new(offsets, values, nulls)?, data_type)?
                    }
                })
            }
            Self::Nested(codec) => {
                let bytes = read_bytes(rows, nulls)?;
                // A null has no bytes; as key bytes it has one.
                let rows = bytes.iter().map(|b| b.unwrap_or(&[0]));
                Ok(codec.decode(rows)?.remove(0))
            }
        }
    }
}

fn take<'a>(row: &mut &'a [u8], n: usize) -> Result<&'a [u8], KeyError> {
    let (front, rest) = row.split_at_checked(n).ok_or_else(ends_early)?;
    *row = rest;
    Ok(front)
}

fn is_valid(nulls: &Option<NullBuffer>, row: usize) -> bool {
    nulls.as_ref().is_none_or(|n| n.is_valid(row))
}

/// `WIDTH` is `width`, or 0 where that is not known at compile time.
fn read_fixed<const WIDTH: usize>(
    data_type: &DataType,
    width: usize,
    rows: &mut [&[u8]],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, KeyError> {
    let width = if WIDTH == 0 { width } else { WIDTH };
    let mut values = MutableBuffer::from_len_zeroed(rows.len() * width);
    let places = values.as_slice_mut().chunks_exact_mut(width.max(1));
    for (i, (row, place)) in rows.iter_mut().zip(places).enumerate() {
        if is_valid(&nulls, i) {
            place.copy_from_slice(take(row, width)?);
        }
    }
    let data = ArrayData::builder(data_type.clone())
        .len(rows.len())
        .add_buffer(values.into())
        .nulls(nulls.filter(|n| n.null_count() > 0));
    Ok(make_array(data.build()?))
}

fn read_bools(rows: &mut [&[u8]], nulls: Option<NullBuffer>) -> Result<ArrayRef, KeyError> {
    let mut values = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter_mut().enumerate() {
        values.push(is_valid(&nulls, i) && take(row, 1)? == [1]);
    }
    Ok(Arc::new(BooleanArray::new(
        values.into(),
        nulls.filter(|n| n.null_count() > 0),
    )))
}

fn read_bytes(rows: &mut [&[u8]], nulls: Option<NullBuffer>) -> Result<BinaryArray, KeyError> {
    let mut bytes = Vec::new();
    let mut ends = vec![0i32];
    for (i, row) in rows.iter_mut().enumerate() {
        if is_valid(&nulls, i) {
            let len = read_varint(row)?;
            bytes.extend_from_slice(take(row, len)?);
        }
        let end = i32::try_from(bytes.len());
        ends.push(end.map_err(|_| KeyError::Malformed("more than 2 GiB in one batch".into()))?);
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    let nulls = nulls.filter(|n| n.null_count() > 0);
    Ok(BinaryArray::try_new(
        offsets,
        Buffer::from_vec(bytes),
        nulls,
    )?)
}

/// Reads a number in groups of seven bits, lowest first, from the front of `row`.
pub(crate) fn read_varint(row: &mut &[u8]) -> Result<usize, KeyError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(row, 1)?[0];
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(KeyError::Malformed("a length without an end".into()))
}

fn varint_length(value: usize) -> usize {
    (usize::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// Appends a number in groups of seven bits, lowest first, the top bit set in all but the last.
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn write_varint(bytes: &mut [u8], cursor: &mut usize, mut value: usize) {
    while value >= 0x80 {
        bytes[*cursor] = value as u8 | 0x80;
        *cursor += 1;
        value >>= 7;
    }
    bytes[*cursor] = value as u8;
    *cursor += 1;
}

/// A column, ready to be written.
struct Column<'a> {
    is_nullable: bool,
    nulls: Option<NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Fixed { bytes: Buffer, width: usize },
    Bool(&'a BooleanArray),
    Bytes(BinaryArray),
    Rows(KeyRows),
}

impl<'a> Column<'a> {
    fn new(field: &Field, kind: &Kind, column: &'a ArrayRef) -> Result<Self, KeyError> {
        let nulls = column.logical_nulls().filter(|n| n.null_count() > 0);
        if nulls.is_some() && !field.is_nullable() {
            return Err(KeyError::Malformed(format!(
                "a null in column {}",
                field.name()
            )));
        }
        let values = match kind {
            Kind::Fixed(width) => Values::Fixed {
                bytes: fixed_bytes(column, *width),
                width: *width,
            },
            Kind::Bool => Values::Bool(column.as_boolean()),
            Kind::Bytes => Values::Bytes(cast(column, &DataType::Binary)?.as_binary().clone()),
            Kind::Nested(codec) => {
                Values::Rows(codec.encode(std::slice::from_ref(column), column.len())?)
            }
        };
        Ok(Self {
            is_nullable: field.is_nullable(),
            nulls,
            values,
        })
    }

    fn add_lengths(&self, lengths: &mut [usize]) {
        let with_length = |len: usize| varint_length(len) + len;
        match &self.values {
            Values::Fixed { width, .. } => self.add(lengths, |_| *width),
            Values::Bool(_) => self.add(lengths, |_| 1),
            Values::Bytes(c) => self.add(lengths, |row| with_length(c.value_length(row) as usize)),
            Values::Rows(rows) => self.add(lengths, |row| with_length(rows.row(row).len())),
        }
    }

    #[inline(always)]
    fn add(&self, lengths: &mut [usize], length: impl Fn(usize) -> usize) {
        for (row, total) in lengths.iter_mut().enumerate() {
            if is_valid(&self.nulls, row) {
                *total += length(row);
            }
        }
    }

    /// Sets the column's bit in the bitmap of each row that has a value.
    fn write_bits(&self, bytes: &mut [u8], starts: &[usize], bit: usize) {
        for (row, start) in starts.iter().enumerate() {
            bytes[start + bit / 8] |= u8::from(is_valid(&self.nulls, row)) << (bit % 8);
        }
    }

    /// Writes each row at its cursor and moves the cursor on.
    fn write(&self, bytes: &mut [u8], cursors: &mut [usize]) {
        let put = |bytes: &mut [u8], cursor: &mut usize, value: &[u8]| {
            bytes[*cursor..*cursor + value.len()].copy_from_slice(value);
            *cursor += value.len();
        };
        for (row, cursor) in cursors.iter_mut().enumerate() {
            if !is_valid(&self.nulls, row) {
                continue;
            }
            match &self.values {
                Values::Fixed {
                    bytes: values,
                    width,
                } => {
                    put(bytes, cursor, &values[row * width..][..*width]);
                }
                Values::Bool(column) => put(bytes, cursor, &[column.value(row).into()]),
                Values::Bytes(column) => {
                    write_varint(bytes, cursor, column.value(row).len());
                    put(bytes, cursor, column.value(row));
                }
                Values::Rows(rows) => {
                    write_varint(bytes, cursor, rows.row(row).len());
                    put(bytes, cursor, rows.row(row));
                }
            }
        }
    }
}

/// The values of a column of fixed width, as Arrow keeps them.
fn fixed_bytes(column: &ArrayRef, width: usize) -> Buffer {
    let data = column.to_data();
    data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::testing::{random_column, types};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Stored state depends on these bytes: a change is a change of the format.
    #[test]
    fn bytes_are_what_they_always_were() {
        let codec = ValueCodec::new([
            Field::new("n", DataType::Int64, false),
            Field::new("x", DataType::Float64, true),
            Field::new("s", DataType::Utf8, true),
            Field::new("b", DataType::Boolean, false),
            Field::new("l", DataType::new_list(DataType::Int16, true), true),
        ])
        .unwrap();
        let list = ListArray::from_iter_primitive::<arrow::datatypes::Int16Type, _, _>([
            Some(vec![Some(1), None]),
            None,
        ]);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![1, -2])),
            Arc::new(Float64Array::from(vec![Some(-0.0), None])),
            Arc::new(StringArray::from(vec![None, Some("ab")])),
            Arc::new(BooleanArray::from(vec![true, false])),
            Arc::new(list),
        ];
        let rows = codec.encode(&columns, 2).unwrap();
        let first = [
            &[0b101][..], // x and l have values
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 0, 0x80],
            &[1],
            &[8, 1, 1, 1, 0x80, 1, 1, 0, 0], // eight bytes: a list of 1 and null
        ];
        let second = [
            &[0b010][..],
            &[254, 255, 255, 255, 255, 255, 255, 255],
            &[2, b'a', b'b'],
            &[0],
        ];
        assert_eq!(rows.row(0), first.concat());
        assert_eq!(rows.row(1), second.concat());
        assert_eq!(codec.decode(rows.iter()).unwrap(), columns);
    }

    #[test]
    fn columns_of_every_type_go_there_and_back() {
        let types = types();
        for seed in 0..200 {
            let mut rng = StdRng::seed_from_u64(seed);
            let n_columns = rng.random_range(0..12);
            let n_rows = rng.random_range(0..20);
            let fields: Vec<_> = (0..n_columns)
                .map(|i| {
                    Field::new(
                        format!("c{i}"),
                        types[rng.random_range(0..types.len())].clone(),
                        true,
                    )
                })
                .collect();
            let columns: Vec<_> = fields
                .iter()
                .map(|f| random_column(&mut rng, f.data_type(), n_rows))
                .collect();
            let codec = ValueCodec::new(fields).unwrap();
            let rows = codec.encode(&columns, n_rows).unwrap();
            assert_eq!(codec.decode(rows.iter()).unwrap(), columns, "seed {seed}");
        }
    }

    #[test]
    fn broken_bytes_are_an_error() {
        let codec = ValueCodec::new([
            Field::new("s", DataType::Utf8, true),
            Field::new("n", DataType::Int64, false),
        ])
        .unwrap();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec!["abc"])),
            Arc::new(Int64Array::from(vec![7])),
        ];
        let rows = codec.encode(&columns, 1).unwrap();
        let bytes = rows.row(0);
        for len in 0..bytes.len() {
            assert!(codec.decode([&bytes[..len]]).is_err(), "cut to {len}");
        }
        assert!(
            codec.decode([&[bytes, &[0]].concat()[..]]).is_err(),
            "one byte too many"
        );
        let mut not_text = bytes.to_vec();
        not_text[2] = 0xff;
        assert!(codec.decode([&not_text[..]]).is_err());
    }
}
