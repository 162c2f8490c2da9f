//! Constant rows as a source: one bounded split, read once.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::physical_expr::expressions::Column;
use thalweg_dataflow::table::{BadData, EventTimeSource, ExprRef, SourceSpec, WatermarkSpec};
use thalweg_dataflow::time::TIMELESS;

use crate::connector::{
    BadReason, BadRecord, BoxFuture, ConnectorError, LiveSource, Offset, Origins, Read, Records,
    Source, SplitId, SplitReader,
};

struct ValuesSource(RecordBatch);

struct ValuesReader {
    rows: RecordBatch,
    next: usize,
}

struct ValuesOrigins;

/// Whether `spec` is of constant rows.
pub fn are_constant(spec: &SourceSpec) -> bool {
    spec.connector.is_empty()
}

/// A source of these rows and its specification. They have no event time.
pub fn source(rows: &RecordBatch) -> (Arc<dyn Source>, Arc<SourceSpec>) {
    let schema = rows.schema();
    let columns = schema
        .fields()
        .iter()
        .enumerate()
        .map(|(i, f)| Arc::new(Column::new(f.name(), i)) as ExprRef)
        .collect();
    let spec = SourceSpec {
        table: "values".into(),
        connector: String::new(),
        format: None,
        options: Default::default(),
        bounded: true,
        declared: schema.clone(),
        physical: schema.clone(),
        metadata: Vec::new(),
        columns,
        schema,
        event_time: EventTimeSource::Connector,
        watermark: WatermarkSpec::DEFAULT,
        idle_timeout: None,
        max_event_time_ahead: None,
        bad_data: BadData::Fail,
        updating: false,
        primary_key: Vec::new(),
    };
    (Arc::new(ValuesSource(rows.clone())), Arc::new(spec))
}

impl Source for ValuesSource {
    fn splits(&self, _parallelism: usize) -> Result<Vec<SplitId>, ConnectorError> {
        Ok(vec![SplitId("values".into())])
    }

    fn open(
        &self,
        _: &SplitId,
        start: Option<&Offset>,
        _: usize,
    ) -> Result<Box<dyn SplitReader>, ConnectorError> {
        let next = start
            .and_then(|o| o.0.as_slice().try_into().ok())
            .map_or(0, |b| u64::from_be_bytes(b) as usize);
        Ok(Box::new(ValuesReader {
            rows: self.0.clone(),
            next,
        }))
    }

    fn live(&self) -> Option<&dyn LiveSource> {
        None
    }
}

impl SplitReader for ValuesReader {
    fn read(&mut self, max_rows: usize) -> BoxFuture<'_, Result<Read, ConnectorError>> {
        // All of it inside the future: one that is dropped unpolled has consumed nothing.
        Box::pin(async move {
            let n = max_rows.min(self.rows.num_rows() - self.next);
            if n == 0 {
                return Ok(Read::End);
            }
            let rows = self.rows.slice(self.next, n);
            self.next += n;
            let times = Some(std::iter::repeat_n(TIMELESS, n).collect());
            let (marks, bad) = (None, Vec::new());
            Ok(Read::Records(Records {
                rows,
                times,
                marks,
                origins: Arc::new(ValuesOrigins),
                bad,
                n_bytes: 0,
            }))
        })
    }

    fn offset(&self) -> Offset {
        Offset((self.next as u64).to_be_bytes().to_vec())
    }

    fn is_caught_up(&self) -> bool {
        true
    }
}

impl Origins for ValuesOrigins {
    fn bad_record(&self, row: usize, reason: BadReason, message: String) -> BadRecord {
        let place = format!("VALUES, row {} of a batch", row + 1);
        BadRecord {
            reason,
            message,
            raw: None,
            topic: "values".into(),
            partition: 0,
            offset: row as i64,
            place,
        }
    }
}
