//! The source: its partitions, where each begins, and a reader for each.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_dataflow::table::SourceSpec;
use thalweg_runtime::connector::{
    BoxFuture, ConnectorError, LiveSource, Offset, Source, SplitId, SplitReader,
};

use super::client::{Lookup, Topic};
use super::config::{SourceConfig, StartAt, as_error};
use super::consumer::SubtaskConsumer;
use super::partition;
use super::place::Place;
use super::reader::{Opening, PartitionReader, Range};

pub struct KafkaSource {
    spec: Arc<SourceSpec>,
    config: SourceConfig,
    lookup: Arc<Lookup>,
    known: Mutex<Known>,
    /// By subtask.
    consumers: Mutex<HashMap<usize, Arc<SubtaskConsumer>>>,
}

/// The partitions that have been listed.
#[derive(Default)]
struct Known {
    partitions: BTreeMap<i32, Listed>,
    /// How many a subtask reads, at most, as far as that is known.
    per_subtask: usize,
}

#[derive(Debug, Clone, Copy)]
struct Listed {
    /// Where reading begins without a stored position; `None`: at the oldest record.
    start: Option<i64>,
    /// Where reading ends, where it does.
    end: Option<i64>,
}

impl KafkaSource {
    pub fn new(spec: Arc<SourceSpec>) -> Result<Self, ConnectorError> {
        let config = SourceConfig::parse(&spec.options, &spec.table).map_err(as_error)?;
        let lookup = Lookup::new(&spec.table, &config.common, &config.client(1))?;
        Ok(Self {
            spec,
            config,
            lookup: Arc::new(lookup),
            known: Mutex::default(),
            consumers: Mutex::default(),
        })
    }

    fn topic(&self) -> &str {
        &self.config.common.topic
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds where a partition begins and ends that is there when the job begins.
    fn list(&self, partition: i32) -> Result<Listed, ConnectorError> {
        let is_latest = self.config.start_at == StartAt::Latest;
        let newest = match self.config.is_bounded || is_latest {
            true => Some(self.lookup.ends(partition)?.1),
            false => None,
        };
        let start = match self.config.start_at {
            StartAt::Earliest => None,
            StartAt::Latest => newest,
            StartAt::Group => self.lookup.committed(partition)?,
        };
        let end = newest.filter(|_| self.config.is_bounded);
        Ok(Listed { start, end })
    }

    fn consumer(&self, subtask: usize) -> Result<Arc<SubtaskConsumer>, ConnectorError> {
        let n_partitions = self.known().per_subtask;
        let mut consumers = self
            .consumers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(consumer) = consumers.get(&subtask) {
            return Ok(consumer.clone());
        }
        let client = self.config.client(n_partitions);
        let consumer = SubtaskConsumer::new(&self.spec.table, &self.config.common, &client)?;
        let consumer = Arc::new(consumer);
        consumers.insert(subtask, consumer.clone());
        Ok(consumer)
    }

    /// Partitions that nobody has listed yet; they are listed then.
    fn take_new(&self, partitions: Vec<i32>) -> Vec<SplitId> {
        let mut known = self.known();
        let mut found = Vec::new();
        for partition in partitions {
            known.partitions.entry(partition).or_insert_with(|| {
                found.push(partition::split_of(self.topic(), partition));
                Listed {
                    start: None,
                    end: None,
                }
            });
        }
        found
    }

    async fn look_for_new(&self) -> Result<Vec<SplitId>, ConnectorError> {
        let lookup = self.lookup.clone();
        let asked = tokio::task::spawn_blocking(move || lookup.topic()).await;
        match asked {
            Ok(Ok(Topic::Exists(partitions))) => Ok(self.take_new(partitions)),
            // Its readers see that by themselves, and know how far they had come.
            Ok(Ok(Topic::Missing)) => Ok(Vec::new()),
            Ok(Err(error @ ConnectorError::Configuration { .. })) => Err(error),
            // Brokers that cannot be reached now are asked again later.
            Ok(Err(error)) => {
                tracing::debug!(table = %self.spec.table, "no look at the partitions: {error}");
                Ok(Vec::new())
            }
            Err(join) => Err(ConnectorError::io(
                "looking for partitions",
                std::io::Error::other(join),
            )),
        }
    }
}

impl Source for KafkaSource {
    fn splits(&self, parallelism: usize) -> Result<Vec<SplitId>, ConnectorError> {
        let partitions = self.lookup.partitions()?;
        let mut listed = BTreeMap::new();
        for &partition in &partitions {
            listed.insert(partition, self.list(partition)?);
        }
        *self.known() = Known {
            per_subtask: partitions.len().div_ceil(parallelism.max(1)),
            partitions: listed,
        };
        let split = |p: &i32| partition::split_of(self.topic(), *p);
        Ok(partitions.iter().map(split).collect())
    }

    fn open(
        &self,
        split: &SplitId,
        start: Option<&Offset>,
        subtask: usize,
    ) -> Result<Box<dyn SplitReader>, ConnectorError> {
        let number = partition::partition_of(self.topic(), split)?;
        let listed = self.known().partitions.get(&number).copied();
        let Some(Listed { start: first, end }) = listed else {
            let message = format!(
                "topic \"{}\" has no partition {number} any more",
                self.topic()
            );
            return Err(ConnectorError::configuration(message, None));
        };
        let stored = start.map(partition::decode).transpose()?;
        let start = stored.unwrap_or(first);
        let place = Place {
            topic: self.topic().into(),
            partition: number,
        };
        Ok(Box::new(PartitionReader::open(Opening {
            spec: self.spec.clone(),
            place: Arc::new(place),
            range: Range { start, end },
            fails_on_loss: self.config.fails_on_loss,
            lookup: self.lookup.clone(),
            consumer: self.consumer(subtask)?,
        })?))
    }

    fn live(&self) -> Option<&dyn LiveSource> {
        Some(self)
    }
}

impl LiveSource for KafkaSource {
    fn new_splits(&self) -> BoxFuture<'_, Result<Vec<SplitId>, ConnectorError>> {
        Box::pin(async {
            let Some(interval) = self.config.discovery_interval else {
                return pending().await;
            };
            loop {
                tokio::time::sleep(interval).await;
                let found = self.look_for_new().await?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        })
    }

    fn committed(&self, positions: &[(SplitId, Offset)]) {
        if self.config.group.is_none() {
            return;
        }
        let next = |(split, offset): &(SplitId, Offset)| {
            let partition = partition::partition_of(self.topic(), split).ok()?;
            Some((partition, partition::decode(offset).ok()??))
        };
        let positions: Vec<_> = positions.iter().filter_map(next).collect();
        let consumers = self
            .consumers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // No member has joined the group, so that any client may speak for all partitions.
        if let Some(consumer) = consumers.values().next() {
            consumer.commit(&positions);
        }
    }
}
