//! The impulse source and its readers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::SchemaRef;
use thalweg_dataflow::change::record_batch;
use thalweg_runtime::clock;
use thalweg_runtime::connector::{
    BadReason, BadRecord, BoxFuture, ConnectorError, LiveSource, Offset, Origins, Read, Records,
    Source, SplitId, SplitReader,
};
use tokio::time::{Instant, sleep_until};

use super::Config;
use super::offset::{Position, Share};
use super::pace::Pace;

/// At most this many events a read, whoever asks for more.
const MAX_BATCH: u64 = 65_536;

/// When the source began to give events, by both clocks, and with which counter.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    instant: Instant,
    wall: i64,
    base: u64,
}

pub struct ImpulseSource {
    config: Config,
    /// Event time of counter 0, ns.
    start: i64,
    schema: SchemaRef,
    beginning: Arc<OnceLock<Beginning>>,
}

impl ImpulseSource {
    /// `schema`: some of the columns `counter` and `subtask_index`.
    pub fn new(config: Config, schema: SchemaRef) -> Self {
        let start = config.start.unwrap_or_else(clock::now_nanos);
        Self {
            config,
            start,
            schema,
            beginning: Arc::default(),
        }
    }
}

impl Source for ImpulseSource {
    fn splits(&self, parallelism: usize) -> Result<Vec<SplitId>, ConnectorError> {
        let of = (parallelism as u64).clamp(1, self.config.count.max(1));
        Ok((0..of).map(|index| Share { index, of }.name()).collect())
    }

    fn open(
        &self,
        split: &SplitId,
        start: Option<&Offset>,
        _subtask: usize,
    ) -> Result<Box<dyn SplitReader>, ConnectorError> {
        let share = Share::parse(split)?;
        let position = match start {
            Some(offset) => Position::decode(offset)?,
            None => Position {
                next: share.index,
                start: self.start,
            },
        };
        Ok(Box::new(ImpulseReader {
            config: self.config,
            share,
            position,
            schema: self.schema.clone(),
            beginning: self.beginning.clone(),
            last: None,
        }))
    }

    fn live(&self) -> Option<&dyn LiveSource> {
        None
    }
}

struct ImpulseReader {
    config: Config,
    share: Share,
    position: Position,
    schema: SchemaRef,
    beginning: Arc<OnceLock<Beginning>>,
    /// When the last read returned, from the beginning.
    last: Option<Duration>,
}

impl ImpulseReader {
    /// Events of this split that are still to come.
    fn n_left(&self) -> u64 {
        match self.config.count.checked_sub(self.position.next) {
            None | Some(0) => 0,
            Some(counters) => (counters - 1) / self.share.of + 1,
        }
    }

    fn beginning(&self) -> Beginning {
        *self.beginning.get_or_init(|| Beginning {
            instant: Instant::now(),
            wall: clock::now_nanos(),
            base: self.position.next - self.share.index,
        })
    }

    /// Waits until some of the `wanted` next events are due, and answers how many. Changes nothing but the
    /// time of the last return, so that it may be dropped while it waits.
    async fn wait(&mut self, wanted: u64) -> u64 {
        let Beginning { instant, base, .. } = self.beginning();
        let Some(rate) = self.config.rate else {
            return wanted;
        };
        let pace = Pace { rate, base };
        let (next, step) = (self.position.next, self.share.of);
        let wake = instant.checked_add(pace.wake(next, step, wanted, self.last));
        match wake {
            Some(wake) if wake > Instant::now() => sleep_until(wake).await,
            Some(_) => {}
            // So slow a rate that the next event is out of reach of the clock.
            None => std::future::pending().await,
        }
        let elapsed = instant.elapsed();
        self.last = Some(elapsed);
        pace.n_due(next, step, elapsed).clamp(1, wanted)
    }

    /// Event times of the next `n` events, in ns.
    fn times(&self, n: u64) -> ScalarBuffer<i64> {
        let Beginning { wall, base, .. } = self.beginning();
        let counters = (0..n).map(|i| self.position.next + i * self.share.of);
        match (self.config.interval, self.config.rate) {
            (Some(interval), _) => {
                let at = |c: u64| {
                    self.position
                        .start
                        .saturating_add(interval.saturating_mul(c as i64))
                };
                counters.map(at).collect()
            }
            (None, Some(rate)) => {
                let pace = Pace { rate, base };
                let after = |c| i64::try_from(pace.due(c).as_nanos()).unwrap_or(i64::MAX);
                counters.map(|c| wall.saturating_add(after(c))).collect()
            }
            (None, None) => {
                let now = clock::now_nanos();
                counters.map(|_| now).collect()
            }
        }
    }

    fn take(&mut self, n: u64) -> Result<Records, ConnectorError> {
        let first = self.position.next;
        let times = self.times(n);
        let column = |name: &str| -> ArrayRef {
            if name == "counter" {
                Arc::new(UInt64Array::from_iter_values(
                    (0..n).map(|i| first + i * self.share.of),
                ))
            } else {
                Arc::new(UInt64Array::from_value(self.share.index, n as usize))
            }
        };
        let columns = self
            .schema
            .fields()
            .iter()
            .map(|f| column(f.name()))
            .collect();
        let rows = record_batch(self.schema.clone(), columns, n as usize)?;
        self.position.next = first.saturating_add(n * self.share.of);
        let origins = Arc::new(Counters {
            first,
            share: self.share,
        });
        Ok(Records {
            rows,
            times: Some(times),
            marks: None,
            origins,
            bad: Vec::new(),
            n_bytes: 0,
        })
    }
}

impl SplitReader for ImpulseReader {
    fn read(&mut self, max_rows: usize) -> BoxFuture<'_, Result<Read, ConnectorError>> {
        Box::pin(async move {
            let wanted = self.n_left().min(max_rows as u64).min(MAX_BATCH);
            if wanted == 0 {
                return Ok(Read::End);
            }
            let n = self.wait(wanted).await;
            self.take(n).map(Read::Records)
        })
    }

    fn offset(&self) -> Offset {
        self.position.encode()
    }

    fn is_caught_up(&self) -> bool {
        true
    }
}

struct Counters {
    first: u64,
    share: Share,
}

impl Origins for Counters {
    fn bad_record(&self, row: usize, reason: BadReason, message: String) -> BadRecord {
        let counter = self.first + row as u64 * self.share.of;
        BadRecord {
            reason,
            message,
            raw: None,
            topic: "impulse".into(),
            partition: self.share.index as i32,
            offset: counter as i64,
            place: format!("counter {counter}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impulse::Impulse;
    use crate::registry::Connector;
    use crate::testing::source_spec;
    use arrow::array::AsArray;
    use arrow::datatypes::{DataType, UInt64Type};
    use std::pin::pin;
    use std::task::{Context, Waker};

    const COLUMNS: [(&str, DataType); 2] = [
        ("counter", DataType::UInt64),
        ("subtask_index", DataType::UInt64),
    ];

    fn source(given: &[(&str, &str)]) -> Box<dyn Source> {
        Impulse
            .source(&source_spec("impulse", None, &COLUMNS, given))
            .unwrap()
    }

    async fn next(reader: &mut dyn SplitReader, max_rows: usize) -> Option<Records> {
        match reader.read(max_rows).await.unwrap() {
            Read::Records(records) => Some(records),
            Read::End => None,
            Read::Lost(lost) => panic!("{}", lost.message),
        }
    }

    fn counters(records: &Records) -> Vec<u64> {
        records
            .rows
            .column(0)
            .as_primitive::<UInt64Type>()
            .values()
            .to_vec()
    }

    #[tokio::test]
    async fn splits_share_the_counters_exactly_whatever_the_parallelism() {
        let start = ("event_time_start", "1970-01-01T00:00:00Z");
        let source = source(&[("message_count", "10"), ("event_time_interval", "5"), start]);
        for parallelism in [1, 3, 4, 99] {
            let mut seen = Vec::new();
            for (index, split) in source.splits(parallelism).unwrap().iter().enumerate() {
                let mut reader = source.open(split, None, index).unwrap();
                while let Some(records) = next(reader.as_mut(), 2).await {
                    assert!(records.rows.num_rows() <= 2);
                    let times = records.times.clone().unwrap();
                    let index_column = records.rows.column(1).as_primitive::<UInt64Type>();
                    assert!(index_column.values().iter().all(|&i| i == index as u64));
                    seen.extend(counters(&records).into_iter().zip(times.iter().copied()));
                }
            }
            seen.sort();
            assert_eq!(
                seen,
                (0..10).map(|c| (c, c as i64 * 5)).collect::<Vec<_>>(),
                "parallelism {parallelism}"
            );
        }
    }

    #[tokio::test]
    async fn no_message_is_an_end() {
        let source = source(&[("message_count", "0")]);
        let splits = source.splits(4).unwrap();
        assert_eq!(splits.len(), 1);
        assert!(
            next(source.open(&splits[0], None, 0).unwrap().as_mut(), 8)
                .await
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_reader_goes_on_from_an_offset_with_the_same_event_times() {
        let given = [("message_count", "9"), ("event_time_interval", "1 second")];
        let (before, after) = (source(&given), source(&given));
        let split = &before.splits(2).unwrap()[1];
        let mut reader = before.open(split, None, 1).unwrap();
        let first = next(reader.as_mut(), 3).await.unwrap();
        assert_eq!(counters(&first), [1, 3, 5]);
        let mut reader = after.open(split, Some(&reader.offset()), 1).unwrap();
        let second = next(reader.as_mut(), 100).await.unwrap();
        assert_eq!(counters(&second), [7]);
        assert_eq!(
            second.times.unwrap()[0] - first.times.unwrap()[0],
            6_000_000_000
        );
        assert!(next(reader.as_mut(), 100).await.is_none());
    }

    #[tokio::test]
    async fn the_rate_is_kept_and_event_times_are_evenly_spaced() {
        let source = source(&[("event_rate", "1000"), ("message_count", "100")]);
        let mut reader = source.open(&source.splits(1).unwrap()[0], None, 0).unwrap();
        let began = Instant::now();
        let (mut n_reads, mut times) = (0, Vec::new());
        while let Some(records) = next(reader.as_mut(), 8192).await {
            n_reads += 1;
            times.extend(records.times.unwrap().iter().copied());
        }
        assert!(
            began.elapsed() >= Duration::from_millis(99),
            "{:?}",
            began.elapsed()
        );
        assert!(n_reads <= 20, "{n_reads} reads for 100 events");
        assert!(
            times.windows(2).all(|w| w[1] - w[0] == 1_000_000),
            "{times:?}"
        );
    }

    #[tokio::test]
    async fn a_dropped_read_has_consumed_nothing() {
        let source = source(&[("event_rate", "0.001")]);
        let mut reader = source.open(&source.splits(1).unwrap()[0], None, 0).unwrap();
        assert_eq!(
            counters(&next(reader.as_mut(), 8192).await.unwrap()),
            [0],
            "the first event is due at once"
        );
        let before = reader.offset();
        {
            let mut waiting = pin!(reader.read(8192));
            assert!(
                waiting
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()))
                    .is_pending()
            );
        }
        assert_eq!(reader.offset(), before);
    }

    #[test]
    fn rejected_rows_are_named_by_their_counter() {
        let origins = Counters {
            first: 10,
            share: Share { index: 1, of: 3 },
        };
        let bad = origins.bad_record(2, BadReason::EventTime, "too late".to_string());
        assert_eq!(
            (bad.place.as_str(), bad.offset, bad.partition),
            ("counter 16", 16, 1)
        );
    }
}
