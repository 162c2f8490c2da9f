//! The first records of a source, whatever its connector.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::record_batch::RecordBatch;
use thalweg_runtime::connector::{ConnectorError, Read, Source};

/// Values of the only column, bytes, of at most `n` records. A source that never ends is given up on when `patience` has
/// passed; what it gave until then counts.
pub fn bytes(
    source: &Arc<dyn Source>,
    n: usize,
    patience: Duration,
) -> Result<Vec<Vec<u8>>, ConnectorError> {
    let mut values = Vec::new();
    for batch in batches(source, n, patience)? {
        let column = batch.column(0).as_binary::<i32>();
        values.extend(column.iter().flatten().map(<[u8]>::to_vec));
    }
    Ok(values)
}

/// Per column, all of which are text, the values of at most `n` records.
pub fn texts(
    source: &Arc<dyn Source>,
    n: usize,
    patience: Duration,
) -> Result<Vec<Vec<Option<String>>>, ConnectorError> {
    let mut values: Vec<Vec<Option<String>>> = Vec::new();
    for batch in batches(source, n, patience)? {
        values.resize_with(batch.num_columns(), Vec::new);
        for (column, values) in batch.columns().iter().zip(&mut values) {
            let column = column.as_string::<i32>();
            values.extend(column.iter().map(|v| v.map(str::to_string)));
        }
    }
    Ok(values)
}

fn batches(
    source: &Arc<dyn Source>,
    n: usize,
    patience: Duration,
) -> Result<Vec<RecordBatch>, ConnectorError> {
    let source = source.clone();
    run(async move {
        let mut batches = Vec::new();
        // Dropped where time is up: what was read is kept.
        tokio::time::timeout(patience, gather(&source, n, &mut batches))
            .await
            .unwrap_or(Ok(()))?;
        Ok(batches)
    })
}

async fn gather(
    source: &Arc<dyn Source>,
    n: usize,
    batches: &mut Vec<RecordBatch>,
) -> Result<(), ConnectorError> {
    let mut left = n;
    for split in source.splits(1)? {
        let mut reader = source.open(&split, None, 0)?;
        while left > 0 {
            let Read::Records(records) = reader.read(left).await? else {
                break;
            };
            left = left.saturating_sub(records.rows.num_rows() + records.bad.len());
            batches.push(records.rows);
        }
    }
    Ok(())
}

/// Waits for a future on a thread of its own, wherever it is called.
fn run<T: Send + 'static>(
    future: impl Future<Output = Result<T, ConnectorError>> + Send + 'static,
) -> Result<T, ConnectorError> {
    let failed = |e| ConnectorError::io("read a sample", e);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let thread = std::thread::Builder::new()
        .name("sample".to_string())
        .spawn(move || runtime.block_on(future))
        .map_err(failed)?;
    let joined = crate::blocking::wait(|| thread.join());
    joined.unwrap_or_else(|_| Err(failed(std::io::Error::other("its thread has panicked"))))
}
