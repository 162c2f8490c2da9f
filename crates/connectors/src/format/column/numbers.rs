//! Values of fixed width.

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::{ArrowNativeType, DataType};
use thalweg_runtime::connector::ConnectorError;

use super::Nulls;

#[derive(Debug, Default)]
pub struct Numbers<N> {
    values: Vec<N>,
    nulls: Nulls,
}

impl<N: ArrowNativeType> Numbers<N> {
    pub fn len(&self) -> usize {
        self.values.len()
    }

    #[inline(always)]
    pub fn push(&mut self, value: N) {
        self.values.push(value);
    }

    pub fn push_null(&mut self) {
        self.nulls.push_null(self.values.len());
        self.values.push(N::default());
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.nulls.truncate(len);
    }

    /// An array of `data_type`, whose values must be stored as `N`.
    pub(super) fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ConnectorError> {
        let len = self.values.len();
        let values = std::mem::replace(&mut self.values, Vec::with_capacity(len));
        let data = ArrayData::builder(data_type.clone())
            .len(len)
            .add_buffer(Buffer::from_vec(values))
            .nulls(self.nulls.take(len))
            .build()?;
        Ok(make_array(data))
    }
}
