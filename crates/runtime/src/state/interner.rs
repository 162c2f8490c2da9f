//! Keys to slots: small integers that address the accumulators of a group.
//!
//! A whole batch of keys is looked up at once. A key of one column of fixed width is compared as an
//! integer, one of one string column as the string; all others as key bytes ([`super::keys`]). What
//! is the same key is decided as in key bytes: nulls are equal, and so are zeros and NaNs.

mod bytes;
mod slots;
mod words;

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::fixed::{FixedType, WordType, with_word_type};
use super::hash::{hash_wide_word, hash_word, vnodes};
use super::keys::{KeyCodec, KeyError, KeyRows};
use bytes::ByteTable;
use slots::Slots;
use words::WordTable;

/// The keys of one subtask, each with a slot. Slots of removed keys are given out again.
pub struct KeyInterner {
    codec: KeyCodec,
    slots: Slots,
    table: Table,
}

/// What an interner keeps when it is cleared: windows of a few hundred keys come and go by the thousand.
const MAX_KEPT_BYTES: usize = 1 << 20;

enum Table {
    /// A key without columns: the one group of a global aggregate.
    Single(Option<u32>),
    Word(WordTable<u64>),
    WideWord(WordTable<u128>),
    /// One column of strings or bytes.
    Bytes(ByteTable),
    /// Key bytes of all columns.
    Rows(ByteTable),
}

impl KeyInterner {
    /// Errors: [`KeyError::UnsupportedType`].
    pub fn new(types: impl IntoIterator<Item = DataType>) -> Result<Self, KeyError> {
        let codec = KeyCodec::new(types)?;
        let table = Table::new(codec.types());
        Ok(Self {
            codec,
            slots: Slots::default(),
            table,
        })
    }

    /// Gives the slot of each row's key in `slots`, which is cleared first, and appends to `new` the
    /// slots that this call gave out, in the order of their first rows.
    ///
    /// `keys` are the key columns, in the types given to [`new`](Self::new), `n_rows` long.
    pub fn intern(
        &mut self,
        keys: &[ArrayRef],
        n_rows: usize,
        slots: &mut Vec<u32>,
        new: &mut Vec<u32>,
    ) -> Result<(), KeyError> {
        slots.clear();
        slots.reserve(n_rows);
        let free = &mut self.slots;
        match &mut self.table {
            Table::Single(slot) => {
                let slot = *slot.get_or_insert_with(|| free.give(new));
                slots.resize(n_rows, slot);
            }
            Table::Word(table) => intern_words(table, free, &keys[0], slots, new),
            Table::WideWord(table) => intern_wide_words(table, free, &keys[0], slots, new),
            Table::Bytes(table) => intern_bytes(table, free, &keys[0], slots, new),
            Table::Rows(table) => {
                let rows = self.codec.encode(keys, n_rows)?;
                table.intern(None, n_rows, |row| rows.row(row), free, slots, new);
            }
        }
        Ok(())
    }

    /// All slots are below this.
    pub fn n_slots(&self) -> usize {
        self.slots.n_slots()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.slots.n_taken()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slots that hold a key, ascending.
    pub fn taken_slots(&self) -> Vec<u32> {
        self.slots.taken()
    }

    pub fn codec(&self) -> &KeyCodec {
        &self.codec
    }

    /// The key columns of these slots, in the types given to [`new`](Self::new).
    pub fn key_columns(&self, slots: &[u32]) -> Result<Vec<ArrayRef>, KeyError> {
        let types = self.codec.types();
        match &self.table {
            Table::Single(_) => Ok(vec![]),
            Table::Word(table) => Ok(vec![word_column(&types[0], table.get(slots))]),
            Table::WideWord(table) => Ok(vec![wide_word_column(&types[0], table.get(slots))]),
            Table::Bytes(table) => Ok(vec![byte_column(&types[0], table, slots)?]),
            Table::Rows(table) => self.codec.decode(rows_of(table, slots).iter()),
        }
    }

    /// The key bytes of these slots, as [`KeyCodec`] encodes their keys.
    pub fn key_rows(&self, slots: &[u32]) -> Result<KeyRows, KeyError> {
        match &self.table {
            Table::Rows(table) => Ok(rows_of(table, slots)),
            _ => self.codec.encode(&self.key_columns(slots)?, slots.len()),
        }
    }

    /// The virtual partitions of these slots' keys.
    pub fn vnodes(&self, slots: &[u32]) -> Result<Vec<u8>, KeyError> {
        vnodes(&self.key_columns(slots)?, slots.len())
    }

    /// Forgets the keys of these slots, which must hold one each and be different.
    pub fn remove(&mut self, slots: &[u32]) {
        match &mut self.table {
            Table::Single(slot) => *slot = slot.filter(|s| !slots.contains(s)),
            Table::Word(table) => table.remove(slots),
            Table::WideWord(table) => table.remove(slots),
            Table::Bytes(table) | Table::Rows(table) => table.remove(slots),
        }
        self.slots.take_back(slots);
    }

    /// Forgets all keys. Memory is kept for the next ones, unless it is much.
    pub fn clear(&mut self) {
        if self.memory_bytes() > MAX_KEPT_BYTES {
            self.table = Table::new(self.codec.types());
            self.slots = Slots::default();
            return;
        }
        match &mut self.table {
            Table::Single(slot) => *slot = None,
            Table::Word(table) => table.clear(),
            Table::WideWord(table) => table.clear(),
            Table::Bytes(table) | Table::Rows(table) => table.clear(),
        }
        self.slots.clear();
    }

    /// Bytes held, approximately.
    pub fn memory_bytes(&self) -> usize {
        let table = match &self.table {
            Table::Single(_) => 0,
            Table::Word(table) => table.memory_bytes(),
            Table::WideWord(table) => table.memory_bytes(),
            Table::Bytes(table) | Table::Rows(table) => table.memory_bytes(),
        };
        table + self.slots.memory_bytes()
    }
}

impl Table {
    fn new(types: &[DataType]) -> Self {
        match types {
            [] => Self::Single(None),
            [one] => {
                macro_rules! word {
                    ($t:ty) => {
                        match size_of::<<$t as ArrowPrimitiveType>::Native>() {
                            0..=8 => Self::Word(WordTable::new(hash_word)),
                            _ => Self::WideWord(WordTable::new(hash_wide_word)),
                        }
                    };
                }
                with_word_type!(one => word!(),
                    D::Boolean => Self::Word(WordTable::new(hash_word)),
                    D::Utf8 | D::LargeUtf8 | D::Utf8View => Self::Bytes(ByteTable::default()),
                    D::Binary | D::LargeBinary | D::BinaryView => Self::Bytes(ByteTable::default()),
                    _ => Self::Rows(ByteTable::default()))
            }
            _ => Self::Rows(ByteTable::default()),
        }
    }
}

fn some_nulls(column: &ArrayRef) -> Option<&NullBuffer> {
    column.nulls().filter(|n| n.null_count() > 0)
}

fn intern_words(
    table: &mut WordTable<u64>,
    free: &mut Slots,
    column: &ArrayRef,
    slots: &mut Vec<u32>,
    new: &mut Vec<u32>,
) {
    let nulls = some_nulls(column);
    macro_rules! intern {
        ($t:ty) => {{
            let values = column.as_primitive::<$t>().values();
            let word = |row: usize| <$t>::to_word(<$t>::canonical(values[row])) as u64;
            table.intern(nulls, column.len(), word, free, slots, new)
        }};
    }
    with_word_type!(column.data_type() => intern!(), _ => {
        let values = column.as_boolean().values();
        table.intern(nulls, column.len(), |row| values.value(row).into(), free, slots, new)
    });
}

fn intern_wide_words(
    table: &mut WordTable<u128>,
    free: &mut Slots,
    column: &ArrayRef,
    slots: &mut Vec<u32>,
    new: &mut Vec<u32>,
) {
    macro_rules! intern {
        ($t:ty) => {{
            let values = column.as_primitive::<$t>().values();
            let word = |row: usize| <$t>::to_word(<$t>::canonical(values[row]));
            table.intern(some_nulls(column), column.len(), word, free, slots, new)
        }};
    }
    with_word_type!(column.data_type() => intern!(), other => unreachable!("{other} is no word"));
}

fn intern_bytes(
    table: &mut ByteTable,
    free: &mut Slots,
    column: &ArrayRef,
    slots: &mut Vec<u32>,
    new: &mut Vec<u32>,
) {
    let nulls = some_nulls(column);
    macro_rules! intern {
        ($column:expr) => {{
            let column = $column;
            table.intern(
                nulls,
                column.len(),
                |row| column.value(row).as_ref(),
                free,
                slots,
                new,
            )
        }};
    }
    match column.data_type() {
        DataType::Utf8 => intern!(column.as_string::<i32>()),
        DataType::LargeUtf8 => intern!(column.as_string::<i64>()),
        DataType::Utf8View => intern!(column.as_string_view()),
        DataType::Binary => intern!(column.as_binary::<i32>()),
        DataType::LargeBinary => intern!(column.as_binary::<i64>()),
        DataType::BinaryView => intern!(column.as_binary_view()),
        other => unreachable!("{other} is no string of bytes"),
    }
}

fn word_column(data_type: &DataType, words: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    macro_rules! column {
        ($t:ty) => {{
            let values = words.map(|w| w.map(|w| <$t>::from_word(w.into())));
            let array = values.collect::<PrimitiveArray<$t>>();
            Arc::new(array.with_data_type(data_type.clone()))
        }};
    }
    with_word_type!(data_type => column!(), _ => {
        Arc::new(words.map(|w| w.map(|w| w == 1)).collect::<BooleanArray>())
    })
}

fn wide_word_column(data_type: &DataType, words: impl Iterator<Item = Option<u128>>) -> ArrayRef {
    macro_rules! column {
        ($t:ty) => {{
            let array = words
                .map(|w| w.map(<$t>::from_word))
                .collect::<PrimitiveArray<$t>>();
            Arc::new(array.with_data_type(data_type.clone()))
        }};
    }
    with_word_type!(data_type => column!(), other => unreachable!("{other} is no word"))
}

fn rows_of(table: &ByteTable, slots: &[u32]) -> KeyRows {
    let mut rows = KeyRows::default();
    slots
        .iter()
        .for_each(|&slot| rows.push_with(|bytes| table.write(slot, bytes)));
    rows
}

fn byte_column(
    data_type: &DataType,
    table: &ByteTable,
    slots: &[u32],
) -> Result<ArrayRef, KeyError> {
    let mut bytes = Vec::with_capacity(slots.len() * 16);
    let mut ends = Vec::with_capacity(slots.len() + 1);
    ends.push(0);
    for &slot in slots {
        table.write(slot, &mut bytes);
        let end = i32::try_from(bytes.len());
        ends.push(end.map_err(|_| KeyError::Malformed("keys of more than 2 GiB".into()))?);
    }
    let has_null = slots.iter().any(|&slot| table.is_null(slot));
    let nulls = has_null.then(|| slots.iter().map(|&slot| !table.is_null(slot)).collect());
    let (offsets, bytes) = (OffsetBuffer::new(ends.into()), Buffer::from_vec(bytes));
    let column: ArrayRef = match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
        }
        _ => Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?),
    };
    if column.data_type() == data_type {
        Ok(column)
    } else {
        Ok(cast(&column, data_type)?)
    }
}

#[cfg(test)]
mod tests;
