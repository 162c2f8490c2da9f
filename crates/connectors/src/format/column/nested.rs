//! Structs and arrays.

use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeListArray, ListArray, StructArray};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, FieldRef, Fields};
use thalweg_runtime::connector::ConnectorError;

use super::{Column, Nulls};

#[derive(Debug)]
pub struct Structs {
    /// One value in each for every struct, null or not.
    pub columns: Vec<Column>,
    len: usize,
    nulls: Nulls,
}

impl Structs {
    pub(super) fn new(fields: &Fields) -> Result<Self, ConnectorError> {
        let columns = fields.iter().map(Column::new).collect::<Result<_, _>>()?;
        Ok(Self {
            columns,
            len: 0,
            nulls: Nulls::default(),
        })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Completes a struct whose fields have been pushed.
    pub fn end_value(&mut self) {
        self.len += 1;
        debug_assert!(
            self.columns.iter().all(|c| c.len() == self.len),
            "a value in every field"
        );
    }

    pub fn push_null(&mut self) {
        self.nulls.push_null(self.len);
        self.columns.iter_mut().for_each(Column::push_null);
        self.len += 1;
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.columns.iter_mut().for_each(|c| c.truncate(len));
        self.nulls.truncate(len);
        self.len = len;
    }

    pub(super) fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ConnectorError> {
        let DataType::Struct(fields) = data_type else {
            unreachable!("the column was made from a struct")
        };
        let len = std::mem::take(&mut self.len);
        let arrays = self
            .columns
            .iter_mut()
            .map(Column::take)
            .collect::<Result<Vec<_>, _>>()?;
        let nulls = self.nulls.take(len);
        Ok(Arc::new(StructArray::try_new_with_length(
            fields.clone(),
            arrays,
            nulls,
            len,
        )?))
    }
}

#[derive(Debug)]
pub struct Lists {
    pub items: Box<Column>,
    /// How many items each list must have, where the type says so.
    pub fixed: Option<usize>,
    /// Where each list ends in `items`, behind a leading 0.
    offsets: Vec<i32>,
    nulls: Nulls,
}

impl Lists {
    pub(super) fn new(item: &FieldRef, fixed: Option<usize>) -> Result<Self, ConnectorError> {
        let items = Box::new(Column::new(item)?);
        Ok(Self {
            items,
            fixed,
            offsets: vec![0],
            nulls: Nulls::default(),
        })
    }

    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Items that belong to no complete list yet.
    pub fn n_open_items(&self) -> usize {
        self.items.len() - self.last_end()
    }

    fn last_end(&self) -> usize {
        *self.offsets.last().expect("the leading 0 is never dropped") as usize
    }

    /// Completes a list of the items pushed since the last one.
    pub fn end_value(&mut self) {
        self.offsets.push(self.items.len() as i32);
    }

    pub fn push_null(&mut self) {
        self.nulls.push_null(self.len());
        for _ in 0..self.fixed.unwrap_or(0) {
            self.items.push_null();
        }
        self.end_value();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len + 1);
        self.items.truncate(self.last_end());
        self.nulls.truncate(len);
    }

    pub(super) fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ConnectorError> {
        let nulls = self.nulls.take(self.len());
        let offsets = std::mem::replace(&mut self.offsets, vec![0]);
        let items = self.items.take()?;
        match data_type {
            DataType::FixedSizeList(item, n) => {
                let list = FixedSizeListArray::try_new(Arc::clone(item), *n, items, nulls)?;
                Ok(Arc::new(list))
            }
            DataType::List(item) => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                Ok(Arc::new(ListArray::try_new(
                    Arc::clone(item),
                    offsets,
                    items,
                    nulls,
                )?))
            }
            other => unreachable!("a column of lists cannot have type {other}"),
        }
    }
}
