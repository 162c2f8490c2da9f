//! Key bytes: how the columns of a key become bytes that sort as the values do.
//!
//! Described byte by byte in `docs/state-format.md`. Properties that others rely on: bytes compare as
//! the key columns do, one after another, nulls first; no encoding is a prefix of another, so that the
//! bytes of a key's first columns are a prefix to scan by, and something may follow a whole key; equal
//! keys (−0.0 and 0.0, all NaNs; semantics 4.6) have equal bytes.

mod decode;
mod encode;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

/// Version of the encoding, stored in the header of a state directory.
pub const KEY_FORMAT_VERSION: u8 = 1;

const NULL: u8 = 0;
const VALUE: u8 = 1;
/// Before each element of a list, and after the last one.
const ELEMENT: u8 = 1;
const END: u8 = 0;
/// What stands for a zero byte within a string, and what ends the string.
const ESCAPED_ZERO: [u8; 2] = [0x00, 0xff];
const TERMINATOR: [u8; 2] = [0x00, 0x01];

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("a value of type {0} cannot be part of a key")]
    UnsupportedType(DataType),
    #[error("key bytes are malformed: {0}")]
    Malformed(String),
    #[error("key columns could not be handled: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
}

impl From<KeyError> for crate::error::RuntimeError {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Arrow(source) => Self::Arrow(source),
            KeyError::Malformed(message) => Self::StateCorrupt {
                table: "keys".into(),
                message,
            },
            KeyError::UnsupportedType(_) => Self::Internal(error.to_string()),
        }
    }
}

/// Encodes and decodes keys of given column types.
#[derive(Debug, Clone)]
pub struct KeyCodec {
    types: Vec<DataType>,
    floats: Floats,
}

/// What becomes of floating-point numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Floats {
    /// Values that are the same key get the same bytes.
    Canonical,
    /// Every value reads back bit for bit.
    Exact,
}

/// Key bytes of the rows of a batch, one after another.
#[derive(Debug, Default)]
pub struct KeyRows {
    bytes: Vec<u8>,
    /// Where each row starts, and at last where all end.
    offsets: Vec<usize>,
}

impl KeyRows {
    #[inline]
    pub fn row(&self, row: usize) -> &[u8] {
        &self.bytes[self.offsets[row]..self.offsets[row + 1]]
    }

    /// Appends one more key, which `write` appends to the bytes.
    pub(super) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        write(&mut self.bytes);
        self.offsets.push(self.bytes.len());
    }

    /// Zeroed rows of these lengths, and where each begins.
    pub(super) fn with_lengths(mut lengths: Vec<usize>) -> (Self, Vec<usize>) {
        let mut total = 0;
        for length in &mut lengths {
            total += std::mem::replace(length, total);
        }
        let starts = lengths.clone();
        lengths.push(total);
        (
            Self {
                bytes: vec![0; total],
                offsets: lengths,
            },
            starts,
        )
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub fn n_rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.n_rows()).map(|row| self.row(row))
    }

    /// Appends one more key.
    pub fn push(&mut self, key: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(key));
    }

    /// The same keys, each behind these bytes.
    pub fn behind(&self, prefix: &[u8]) -> Self {
        let mut longer = Self {
            bytes: Vec::with_capacity(self.bytes.len() + self.n_rows() * prefix.len()),
            offsets: Vec::with_capacity(self.offsets.len()),
        };
        for key in self.iter() {
            longer.push_with(|bytes| {
                bytes.extend_from_slice(prefix);
                bytes.extend_from_slice(key);
            });
        }
        longer
    }
}

impl KeyCodec {
    /// Errors: [`KeyError::UnsupportedType`].
    pub fn new(types: impl IntoIterator<Item = DataType>) -> Result<Self, KeyError> {
        let types: Vec<_> = types.into_iter().collect();
        types.iter().try_for_each(check_type)?;
        Ok(Self {
            types,
            floats: Floats::Canonical,
        })
    }

    /// For values that are no keys: the same encoding, but bit for bit.
    pub(crate) fn exact(types: impl IntoIterator<Item = DataType>) -> Result<Self, KeyError> {
        Ok(Self {
            floats: Floats::Exact,
            ..Self::new(types)?
        })
    }

    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// The key bytes of each row. Columns are of the codec's types and `n_rows` long.
    pub fn encode(&self, columns: &[ArrayRef], n_rows: usize) -> Result<KeyRows, KeyError> {
        debug_assert_eq!(columns.len(), self.types.len());
        encode::encode(columns, n_rows, self.floats)
    }

    /// The columns that some keys were made of. Bytes after a key are ignored.
    ///
    /// Errors: [`KeyError::Malformed`] for bytes that this codec did not make.
    pub fn decode<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<ArrayRef>, KeyError> {
        let mut rests: Vec<&[u8]> = keys.into_iter().collect();
        self.decode_prefix(&mut rests)
    }

    /// As [`decode`](Self::decode), leaving in `keys` what follows each key.
    pub fn decode_prefix(&self, keys: &mut [&[u8]]) -> Result<Vec<ArrayRef>, KeyError> {
        self.types.iter().map(|t| decode::column(t, keys)).collect()
    }
}

fn check_type(data_type: &DataType) -> Result<(), KeyError> {
    use DataType as D;
    match data_type {
        D::List(f) | D::LargeList(f) | D::FixedSizeList(f, _) | D::Map(f, _) => {
            check_type(f.data_type())
        }
        D::Struct(fields) => fields.iter().try_for_each(|f| check_type(f.data_type())),
        D::Dictionary(_, value) => check_type(value),
        D::ListView(_) | D::LargeListView(_) | D::Union(..) | D::RunEndEncoded(..) => {
            Err(KeyError::UnsupportedType(data_type.clone()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
