//! The client with which a subtask reads its partitions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use thalweg_runtime::connector::ConnectorError;
use tokio::sync::Notify;

use super::client::cannot_create;
use super::config::Config;
use super::context::Context;

/// How often the client's thread looks up, where nothing wakes it.
const LOOK_UP: Duration = Duration::from_millis(100);

/// How long the end of a job waits for the client to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// A client to which partitions are assigned one by one, each with a queue of its own. A thread serves its events;
/// records wait in the queues, whose size bounds what is fetched, until a reader takes them.
pub struct SubtaskConsumer {
    topic: String,
    /// Taken only when this is dropped.
    consumer: Option<Arc<BaseConsumer<Context>>>,
    /// Assignments are made one after another.
    assigning: Mutex<()>,
    should_stop: Arc<AtomicBool>,
    /// Says when the client's thread has let go of it.
    stopped: Mutex<mpsc::Receiver<()>>,
}

impl SubtaskConsumer {
    pub fn new(
        table: &str,
        config: &Config,
        client: &ClientConfig,
    ) -> Result<Self, ConnectorError> {
        let mut client = client.clone();
        // The line of the log by which a topic that was created anew is known; see `Context`.
        let debug = match config.given("debug") {
            Some(given) => format!("{given},metadata"),
            None => "metadata".to_string(),
        };
        client.set("debug", debug);
        client.set_log_level(rdkafka::config::RDKafkaLogLevel::Debug);
        let consumer: BaseConsumer<Context> = client
            .create_with_context(Context::new(table, &config.bootstrap))
            .map_err(|e| cannot_create(config, &e))?;
        let (consumer, should_stop) = (Arc::new(consumer), Arc::new(AtomicBool::new(false)));
        let (stopped_tx, stopped) = mpsc::channel();
        let (served, stop, topic) = (consumer.clone(), should_stop.clone(), config.topic.clone());
        let serve = move || {
            serve(&served, &stop, &topic);
            drop(served);
            drop(stopped_tx);
        };
        thread::Builder::new()
            .name(format!("kafka {table}"))
            .spawn(serve)
            .map_err(|e| ConnectorError::io("a thread for the Kafka client", e))?;
        Ok(Self {
            topic: config.topic.clone(),
            consumer: Some(consumer),
            assigning: Mutex::new(()),
            should_stop,
            stopped: Mutex::new(stopped),
        })
    }

    fn consumer(&self) -> &Arc<BaseConsumer<Context>> {
        self.consumer.as_ref().expect("it is there until the end")
    }

    pub fn context(&self) -> &Arc<Context> {
        self.consumer().client().context()
    }

    /// The queue of a partition that is not assigned yet; `arrived` is notified when there is something in it.
    /// To be made before the partition is assigned, or its first records would go elsewhere.
    pub fn queue(
        &self,
        partition: i32,
        arrived: &Arc<Notify>,
    ) -> Result<PartitionQueue<Context>, KafkaError> {
        let queue = self
            .consumer()
            .split_partition_queue(&self.topic, partition);
        let mut queue = queue.ok_or(KafkaError::NoMessageReceived)?;
        let arrived = arrived.clone();
        queue.set_nonempty_callback(move || arrived.notify_one());
        Ok(queue)
    }

    /// Begins to fetch a partition at an offset.
    pub fn assign(&self, partition: i32, at: Offset) -> Result<(), KafkaError> {
        let _one_at_a_time = self
            .assigning
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.consumer()
            .incremental_assign(&self.list(partition, at)?)
    }

    /// Drops what was fetched of a partition, and begins again at another offset.
    pub fn reassign(&self, partition: i32, at: Offset) -> Result<(), KafkaError> {
        let _one_at_a_time = self
            .assigning
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let list = self.list(partition, at)?;
        self.consumer().incremental_unassign(&list)?;
        self.consumer().incremental_assign(&list)
    }

    fn list(&self, partition: i32, at: Offset) -> Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.topic, partition, at)?;
        Ok(list)
    }

    /// Tells the group how far partitions have been read: the offsets of the next records. Does not wait.
    pub fn commit(&self, positions: &[(i32, i64)]) {
        let mut list = TopicPartitionList::new();
        for (partition, next) in positions {
            if let Err(error) =
                list.add_partition_offset(&self.topic, *partition, Offset::Offset(*next))
            {
                tracing::warn!(topic = %self.topic, partition, "the offset cannot be committed: {error}");
            }
        }
        if list.count() == 0 {
            return;
        }
        if let Err(error) = self.consumer().commit(&list, CommitMode::Async) {
            tracing::warn!(topic = %self.topic, "offsets could not be committed to the group: {error}");
        }
    }
}

/// Serves the client's events until it is to stop. Records go to the queues of their partitions and not through here.
fn serve(consumer: &BaseConsumer<Context>, should_stop: &AtomicBool, topic: &str) {
    while !should_stop.load(Ordering::Acquire) {
        // Errors of the client have been told to its context.
        drop(consumer.poll(LOOK_UP));
        let context = consumer.context();
        if context.is_down() && consumer.fetch_metadata(Some(topic), LOOK_UP).is_ok() {
            context.is_up_again();
        }
    }
}

impl Drop for SubtaskConsumer {
    fn drop(&mut self) {
        self.should_stop.store(true, Ordering::Release);
        // The thread is the last to let go of the client, which then sends what is to be committed. One that hangs,
        // because the brokers are gone, must not keep the job from ending.
        drop(self.consumer.take());
        let stopped = self
            .stopped
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if stopped.recv_timeout(GOODBYE) == Err(RecvTimeoutError::Timeout) {
            tracing::debug!(topic = %self.topic, "the client is still closing");
        }
    }
}
