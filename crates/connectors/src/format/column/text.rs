//! Values of variable width: text, JSON and bytes.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, StringArray};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use thalweg_runtime::connector::ConnectorError;

use super::Nulls;

/// Bytes of all values, one after another. Never more than [`MAX_BYTES`] of them: the decoders see to
/// it that no more is gathered between two flushes.
#[derive(Debug)]
pub struct Text {
    bytes: Vec<u8>,
    /// Where each value ends, behind a leading 0.
    offsets: Vec<i32>,
    nulls: Nulls,
}

/// What the 32-bit offsets of Arrow's text columns can reach.
pub const MAX_BYTES: usize = i32::MAX as usize;

impl Default for Text {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            offsets: vec![0],
            nulls: Nulls::default(),
        }
    }
}

impl Text {
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Bytes of all values, and of the one that is being written.
    pub fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.end_value();
    }

    /// The bytes of the value that is being written; [`end_value`](Self::end_value) completes it, and
    /// [`truncate`](Self::truncate) drops it.
    pub fn open_value(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    #[inline]
    pub fn end_value(&mut self) {
        debug_assert!(self.bytes.len() <= MAX_BYTES, "decoders flush before that");
        self.offsets.push(self.bytes.len() as i32);
    }

    pub fn push_null(&mut self) {
        self.nulls.push_null(self.len());
        self.end_value();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len + 1);
        let end = *self.offsets.last().expect("the leading 0 is never dropped");
        self.bytes.truncate(end as usize);
        self.nulls.truncate(len);
    }

    /// An array of text. Errors: the bytes are not UTF-8, which decoders check first.
    pub(super) fn take_text(&mut self) -> Result<ArrayRef, ConnectorError> {
        let len = self.len();
        let (offsets, bytes) = self.take_buffers();
        Ok(Arc::new(StringArray::try_new(
            offsets,
            bytes.into(),
            self.nulls.take(len),
        )?))
    }

    pub(super) fn take_binary(&mut self) -> Result<ArrayRef, ConnectorError> {
        let len = self.len();
        let (offsets, bytes) = self.take_buffers();
        Ok(Arc::new(BinaryArray::try_new(
            offsets,
            bytes.into(),
            self.nulls.take(len),
        )?))
    }

    fn take_buffers(&mut self) -> (OffsetBuffer<i32>, Vec<u8>) {
        let mut fresh = Vec::with_capacity(self.offsets.len());
        fresh.push(0);
        let room = Vec::with_capacity(self.bytes.len());
        let offsets = std::mem::replace(&mut self.offsets, fresh);
        let bytes = std::mem::replace(&mut self.bytes, room);
        (OffsetBuffer::new(ScalarBuffer::from(offsets)), bytes)
    }
}
