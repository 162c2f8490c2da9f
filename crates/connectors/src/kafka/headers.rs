//! The headers of records as a column.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, ListArray, StringBuilder, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use rdkafka::message::{Header, Headers, Message};

/// Gathers one list of names and values a record.
pub struct HeaderLists {
    keys: StringBuilder,
    values: BinaryBuilder,
    lens: Vec<usize>,
}

/// The headers of a record in their order. Errors: a name that is not UTF-8.
pub fn read_headers<M: Message>(message: &M) -> Result<Vec<Header<'_, &[u8]>>, String> {
    let Some(headers) = message.headers() else {
        return Ok(Vec::new());
    };
    let mut read = Vec::with_capacity(headers.count());
    for index in 0..headers.count() {
        // The library panics at a name that is not UTF-8, which any producer may send.
        match catch_unwind(AssertUnwindSafe(|| headers.try_get(index))) {
            Ok(header) => read.extend(header),
            Err(_) => return Err(format!("the name of header {index} is not UTF-8")),
        }
    }
    Ok(read)
}

impl HeaderLists {
    pub fn new() -> Self {
        Self {
            keys: StringBuilder::new(),
            values: BinaryBuilder::new(),
            lens: Vec::new(),
        }
    }

    /// Appends the list of one record.
    pub fn append(&mut self, headers: &[Header<'_, &[u8]>]) {
        for header in headers {
            self.keys.append_value(header.key);
            self.values.append_option(header.value);
        }
        self.lens.push(headers.len());
    }

    /// `n_records` lists; an empty array where none was appended.
    pub fn finish(&mut self) -> ListArray {
        let fields = Fields::from(vec![
            Field::new("key", DataType::Utf8, true),
            Field::new("value", DataType::Binary, true),
        ]);
        let columns: Vec<ArrayRef> =
            vec![Arc::new(self.keys.finish()), Arc::new(self.values.finish())];
        let entries = StructArray::new(fields.clone(), columns, None);
        let item = Field::new(
            Field::LIST_FIELD_DEFAULT_NAME,
            DataType::Struct(fields),
            true,
        );
        let offsets = OffsetBuffer::from_lengths(std::mem::take(&mut self.lens));
        ListArray::new(Arc::new(item), offsets, Arc::new(entries), None)
    }
}
