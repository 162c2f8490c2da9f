//! The first records of a source, whatever its connector.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::record_batch::RecordBatch;
use thalweg_runtime::connector::{ConnectorError, Read, Source, SplitReader};

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

/// Once there are records, silence for this long is taken for their end.
const SILENCE: Duration = Duration::from_secs(2);

/// Reads all splits side by side, so that an empty one holds up no other.
async fn gather(
    source: &Arc<dyn Source>,
    n: usize,
    batches: &mut Vec<RecordBatch>,
) -> Result<(), ConnectorError> {
    let splits = source.splits(1)?;
    let opened = splits.iter().map(|split| source.open(split, None, 0));
    let mut readers = opened.collect::<Result<Vec<_>, _>>()?;
    let mut left = n;
    while left > 0 && !readers.is_empty() {
        let read = next(&mut readers, left);
        let (read, index) = if batches.is_empty() {
            read.await
        } else {
            match tokio::time::timeout(SILENCE, read).await {
                Ok(read) => read,
                Err(_) => break,
            }
        };
        match read? {
            Read::Records(records) => {
                left = left.saturating_sub(records.rows.num_rows() + records.bad.len());
                batches.push(records.rows);
            }
            _ => drop(readers.remove(index)),
        }
    }
    Ok(())
}

/// The first read that is ready, and whose. The others have consumed nothing (they are cancel-safe).
async fn next(
    readers: &mut [Box<dyn SplitReader>],
    max_records: usize,
) -> (Result<Read, ConnectorError>, usize) {
    let reads = readers.iter_mut().map(|reader| reader.read(max_records));
    let mut reads: Vec<_> = reads.collect();
    poll_fn(|context| {
        for (index, read) in reads.iter_mut().enumerate() {
            if let Poll::Ready(read) = read.as_mut().poll(context) {
                return Poll::Ready((read, index));
            }
        }
        Poll::Pending
    })
    .await
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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, BinaryArray};
    use thalweg_runtime::connector::{
        BadReason, BadRecord, BoxFuture, Offset, Origins, Records, SplitId,
    };

    /// Splits of which one never has anything, one ends, and one falls silent.
    struct Topic;

    struct Partition {
        values: Vec<&'static str>,
        ends: bool,
    }

    impl Source for Topic {
        fn splits(&self, _: usize) -> Result<Vec<SplitId>, ConnectorError> {
            Ok(["empty", "ends", "silent"]
                .map(|name| SplitId(name.into()))
                .to_vec())
        }

        fn open(
            &self,
            split: &SplitId,
            _: Option<&Offset>,
            _: usize,
        ) -> Result<Box<dyn SplitReader>, ConnectorError> {
            let (values, ends) = match &*split.0 {
                "ends" => (vec!["a"], true),
                "silent" => (vec!["b", "c"], false),
                _ => (vec![], false),
            };
            Ok(Box::new(Partition { values, ends }))
        }

        fn live(&self) -> Option<&dyn thalweg_runtime::connector::LiveSource> {
            None
        }
    }

    struct Nowhere;

    impl Origins for Nowhere {
        fn bad_record(&self, _: usize, _: BadReason, _: String) -> BadRecord {
            unreachable!("nothing is bad")
        }
    }

    impl SplitReader for Partition {
        fn read(&mut self, _: usize) -> BoxFuture<'_, Result<Read, ConnectorError>> {
            // Nothing is taken before it is polled: what is dropped has consumed nothing.
            Box::pin(async move {
                let Some(value) = self.values.pop() else {
                    if self.ends {
                        return Ok(Read::End);
                    }
                    return std::future::pending().await;
                };
                let value: ArrayRef = Arc::new(BinaryArray::from_vec(vec![value.as_bytes()]));
                Ok(Read::Records(Records {
                    rows: RecordBatch::try_from_iter([("value", value)]).unwrap(),
                    times: None,
                    marks: None,
                    origins: Arc::new(Nowhere),
                    bad: Vec::new(),
                    n_bytes: 1,
                }))
            })
        }

        fn offset(&self) -> Offset {
            Offset(Vec::new())
        }

        fn is_caught_up(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_sample_ends_with_silence_and_no_split_holds_up_another() {
        let source: Arc<dyn Source> = Arc::new(Topic);
        let mut values = bytes(&source, 100, Duration::from_secs(60)).unwrap();
        values.sort();
        assert_eq!(values, [b"a", b"b", b"c"]);
        assert_eq!(bytes(&source, 2, Duration::from_secs(60)).unwrap().len(), 2);
    }
}
