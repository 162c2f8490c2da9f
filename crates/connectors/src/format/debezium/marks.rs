//! Marks in the making, one for each row.

use arrow::array::{BinaryArray, Int8Array, Int64Array};
use thalweg_dataflow::marks::ChangeOp;
use thalweg_runtime::connector::Marks;

use super::position::SourceInfo;

#[derive(Debug, Default)]
pub struct MarkBuilder {
    ops: Vec<i8>,
    positions: Vec<Option<i64>>,
    source_times: Vec<Option<i64>>,
    /// Rows with columns that are unavailable, ascending, and their bits one after another.
    partial: Vec<usize>,
    bits: Vec<u8>,
}

impl MarkBuilder {
    /// Marks the next row. `unavailable` is empty where it is whole.
    pub fn push(&mut self, op: ChangeOp, source: &SourceInfo, unavailable: &[u8]) {
        if !unavailable.is_empty() {
            self.partial.push(self.ops.len());
            self.bits.extend_from_slice(unavailable);
        }
        self.ops.push(op as i8);
        self.positions.push(source.position);
        self.source_times.push(source.time);
    }

    /// The marks of all rows since the last call.
    pub fn take(&mut self) -> Marks {
        let n_rows = self.ops.len();
        let partial = std::mem::take(&mut self.partial);
        let bits = std::mem::take(&mut self.bits);
        let unavailable = (!partial.is_empty()).then(|| {
            let width = bits.len() / partial.len();
            let mut values: Vec<Option<&[u8]>> = vec![None; n_rows];
            for (&row, bits) in partial.iter().zip(bits.chunks(width.max(1))) {
                values[row] = Some(bits);
            }
            BinaryArray::from_iter(values)
        });
        Marks {
            ops: Int8Array::from(std::mem::take(&mut self.ops)),
            positions: Int64Array::from(std::mem::take(&mut self.positions)),
            source_times: Int64Array::from(std::mem::take(&mut self.source_times)),
            unavailable,
        }
    }
}
