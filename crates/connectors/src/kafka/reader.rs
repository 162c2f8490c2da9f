//! Reads the records of one partition.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::Offset as At;
use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message, OwnedMessage};
use thalweg_dataflow::table::SourceSpec;
use thalweg_runtime::connector::{BoxFuture, ConnectorError, Lost, Offset, Read, SplitReader};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::batch::{Batch, Taken};
use super::client::{Lookup, plain};
use super::consumer::SubtaskConsumer;
use super::context::Context;
use super::partition;
use super::place::Place;
use super::recovery::{Loss, go_on_at_oldest};

/// At most this many records and about this many bytes a read, whoever asks for more.
const MAX_RECORDS: usize = 8192;
const MAX_BYTES: u64 = 8 << 20;

/// When to look again where no arrival was announced.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Where reading begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// `None`: at the oldest record.
    pub start: Option<i64>,
    /// Behind the last record to be read; `None`: never.
    pub end: Option<i64>,
}

/// What a reader is made of.
pub struct Opening {
    pub spec: Arc<SourceSpec>,
    pub place: Arc<Place>,
    pub range: Range,
    pub fails_on_loss: bool,
    pub lookup: Arc<Lookup>,
    pub consumer: Arc<SubtaskConsumer>,
}

/// Takes what the client has fetched of a partition, and decodes it where it lies.
///
/// All work is done within a poll, without waiting: a read that is dropped before it is ready has taken nothing. What
/// is not taken fills the client's queue, which then fetches no more.
pub struct PartitionReader {
    place: Arc<Place>,
    queue: PartitionQueue<Context>,
    arrived: Arc<Notify>,
    batch: Batch,
    /// The offset of the next record, where it is known.
    position: Option<i64>,
    end: Option<i64>,
    is_end: bool,
    has_reached_end: bool,
    /// A record for which the last batch had no room.
    held: Option<OwnedMessage>,
    fails_on_loss: bool,
    /// How often the topic had been created anew when reading began.
    n_recreated: u64,
    loss: Option<Loss>,
    recovery: Option<JoinHandle<Result<(i64, Lost), ConnectorError>>>,
    lookup: Arc<Lookup>,
    consumer: Arc<SubtaskConsumer>,
}

impl PartitionReader {
    /// Begins to fetch. Errors: the format cannot read the columns, the client refuses.
    pub fn open(opening: Opening) -> Result<Self, ConnectorError> {
        let Opening {
            spec,
            place,
            range,
            fails_on_loss,
            lookup,
            consumer,
        } = opening;
        let refused = |e: KafkaError| {
            ConnectorError::configuration(format!("{place} cannot be read: {e}"), None)
        };
        let batch = Batch::new(&spec, place.clone())?;
        let arrived = Arc::new(Notify::new());
        let queue = consumer.queue(place.partition, &arrived).map_err(refused)?;
        let is_end = matches!((range.start, range.end), (_, Some(0)))
            || matches!((range.start, range.end), (Some(s), Some(e)) if s >= e);
        if !is_end {
            let at = range.start.map_or(At::Beginning, At::Offset);
            consumer.assign(place.partition, at).map_err(refused)?;
        }
        Ok(Self {
            n_recreated: consumer.context().n_recreated(),
            place,
            queue,
            arrived,
            batch,
            position: range.start,
            end: range.end,
            is_end,
            has_reached_end: is_end,
            held: None,
            fails_on_loss,
            loss: None,
            recovery: None,
            lookup,
            consumer,
        })
    }

    /// What there is, without waiting; `None`: nothing yet.
    fn read_now(&mut self, max_rows: usize) -> Result<Option<Read>, ConnectorError> {
        let max_records = max_rows.clamp(1, MAX_RECORDS);
        if self.consumer.context().n_recreated() != self.n_recreated {
            self.loss = Some(Loss::Recreated);
        }
        while self.loss.is_none()
            && !self.is_end
            && self.batch.n_records() < max_records
            && self.batch.n_bytes() < MAX_BYTES
        {
            if !self.step()? {
                break;
            }
        }
        if !self.batch.is_empty() {
            return self
                .batch
                .flush()
                .map(|records| Some(Read::Records(records)));
        }
        match self.loss {
            Some(loss) if self.fails_on_loss => Err(loss.error(&self.place, self.position)),
            _ if self.is_end => Ok(Some(Read::End)),
            _ => Ok(None),
        }
    }

    /// Takes one thing from the queue. False: there is nothing, or no room for it.
    fn step(&mut self) -> Result<bool, ConnectorError> {
        if let Some(message) = self.held.take() {
            let next = message.offset() + 1;
            if self.batch.take(&message) == Taken::No {
                self.held = Some(message);
                return Ok(false);
            }
            self.advance(next);
            return Ok(true);
        }
        match self.queue.poll(Duration::ZERO) {
            None => Ok(false),
            Some(Ok(message)) => {
                let taken = offer(&mut self.batch, &message, self.position, self.end);
                match taken {
                    Offered::Taken => self.advance(message.offset() + 1),
                    Offered::Before => {}
                    Offered::Behind => self.is_end = true,
                    Offered::Full => {
                        self.held = Some(message.detach());
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Some(Err(error)) => self.told(&error).map(|()| true),
        }
    }

    fn advance(&mut self, next: i64) {
        self.position = Some(next);
        self.has_reached_end = false;
        self.is_end = self.end.is_some_and(|end| next >= end);
    }

    /// The client has something to say about the partition.
    fn told(&mut self, error: &KafkaError) -> Result<(), ConnectorError> {
        use RDKafkaErrorCode as Code;
        match (error, error.rdkafka_error_code()) {
            (KafkaError::PartitionEOF(_), _) => {
                self.has_reached_end = true;
                self.is_end |= self.end.is_some();
            }
            (_, Some(Code::AutoOffsetReset | Code::OffsetOutOfRange)) => {
                self.loss = Some(Loss::OutOfRange);
            }
            (
                _,
                Some(Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition),
            ) => {
                self.has_reached_end = false;
                // There is nothing to go on with until the topic is there again, which is noticed then.
                if self.fails_on_loss || self.end.is_some() {
                    return Err(Loss::Deleted.error(&self.place, self.position));
                }
                tracing::warn!(
                    "{} was deleted; waiting for it to be created again",
                    self.place
                );
            }
            (_, Some(Code::TopicAuthorizationFailed)) => {
                let message = format!("{} may not be read by this user", self.place);
                return Err(ConnectorError::configuration(message, None));
            }
            (KafkaError::MessageConsumptionFatal(_), _) => {
                let reason = self.consumer.context().trouble();
                let reason =
                    reason.map_or_else(|| error.to_string(), |(_, r)| plain(&r).to_string());
                return Err(ConnectorError::io(
                    self.place.to_string(),
                    std::io::Error::other(reason),
                ));
            }
            // The client tries again by itself.
            _ => tracing::debug!("{}: {error}", self.place),
        }
        Ok(())
    }

    /// Goes on behind what was lost, where the table wants that.
    async fn recover(&mut self) -> Result<Option<Lost>, ConnectorError> {
        let Some(loss) = self
            .loss
            .filter(|_| !self.fails_on_loss && self.batch.is_empty())
        else {
            return Ok(None);
        };
        let n_recreated = self.consumer.context().n_recreated();
        let recovery = self.recovery.get_or_insert_with(|| {
            let (place, position) = (self.place.clone(), self.position);
            let (lookup, consumer) = (self.lookup.clone(), self.consumer.clone());
            tokio::task::spawn_blocking(move || {
                go_on_at_oldest(loss, &place, position, &lookup, &consumer)
            })
        });
        let ended = recovery.await;
        self.recovery = None;
        let (oldest, lost) = ended.map_err(|join| {
            ConnectorError::io(self.place.to_string(), std::io::Error::other(join))
        })??;
        self.loss = None;
        self.held = None;
        self.n_recreated = n_recreated;
        self.position = Some(oldest);
        self.has_reached_end = false;
        self.is_end = self.end.is_some_and(|end| oldest >= end);
        Ok(Some(lost))
    }
}

enum Offered {
    Taken,
    /// It lies before the position, and was read already.
    Before,
    /// It lies behind the end of what is to be read.
    Behind,
    /// The batch has no room for it.
    Full,
}

fn offer(
    batch: &mut Batch,
    message: &BorrowedMessage<'_>,
    position: Option<i64>,
    end: Option<i64>,
) -> Offered {
    if position.is_some_and(|position| message.offset() < position) {
        return Offered::Before;
    }
    if end.is_some_and(|end| message.offset() >= end) {
        return Offered::Behind;
    }
    match batch.take(message) {
        Taken::Yes => Offered::Taken,
        Taken::No => Offered::Full,
    }
}

impl SplitReader for PartitionReader {
    fn read(&mut self, max_rows: usize) -> BoxFuture<'_, Result<Read, ConnectorError>> {
        Box::pin(async move {
            loop {
                if let Some(lost) = self.recover().await? {
                    return Ok(Read::Lost(lost));
                }
                if let Some(read) = self.read_now(max_rows)? {
                    return Ok(read);
                }
                if self.loss.is_none() {
                    let _ = tokio::time::timeout(LOOK_AGAIN, self.arrived.notified()).await;
                }
            }
        })
    }

    fn offset(&self) -> Offset {
        partition::encode(self.position)
    }

    fn is_caught_up(&self) -> bool {
        self.has_reached_end && self.held.is_none() && !self.consumer.context().is_down()
    }
}
