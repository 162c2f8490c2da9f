//! A broker that a test owns or shares.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::executor::block_on;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tempfile::TempDir;

use super::client::{self, Message, Received, TIMEOUT};
use super::process::{Ports, Process};

/// Times that a broker is tried on other ports, where another process has taken one meanwhile.
const ATTEMPTS: usize = 3;

/// A broker on 127.0.0.1, which ends when it is dropped or its process ends.
pub struct Broker {
    process: Option<Process>,
    ports: Ports,
    /// The broker's data, where it outlives the broker, and its log.
    directory: TempDir,
    keeps_data: bool,
}

impl Broker {
    /// The broker that all tests of this process share. It is there when this returns.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Broker> = OnceLock::new();
        SHARED.get_or_init(|| Self::launch(false))
    }

    /// A broker of the caller's own, which may be stopped and started again.
    pub fn start() -> Self {
        Self::launch(true)
    }

    fn launch(keeps_data: bool) -> Self {
        for _ in 0..ATTEMPTS {
            let mut broker = Self {
                process: None,
                ports: Ports::free(),
                directory: TempDir::with_prefix("thalweg-kafka-").unwrap(),
                keeps_data,
            };
            if broker.try_start() {
                return broker;
            }
        }
        panic!("no broker could be started on {ATTEMPTS} sets of ports")
    }

    /// Whether the broker answers; it does not where a port was taken.
    fn try_start(&mut self) -> bool {
        let data = self.keeps_data.then(|| self.directory.path().join("data"));
        let log = self.log_path();
        let mut process = Process::start(self.ports, data.as_deref(), log);
        let consumer: BaseConsumer = self.config().create().unwrap();
        // One that has to be fetched first takes its time.
        for _ in 0..180 {
            let answered = consumer.fetch_metadata(None, Duration::from_secs(1));
            if answered.is_ok_and(|m| !m.brokers().is_empty()) {
                self.process = Some(process);
                return true;
            }
            if process.has_ended() {
                let log = process.log();
                assert!(log.contains("BindException"), "the broker has ended: {log}");
                return false;
            }
        }
        panic!("the broker does not answer: {}", process.log())
    }

    fn log_path(&self) -> PathBuf {
        // The shared broker is never dropped, so that it must not leave a directory behind.
        match self.keeps_data {
            true => self.directory.path().join("broker.log"),
            false => std::env::temp_dir().join(format!("thalweg-kafka-{}.log", self.ports.plain)),
        }
    }

    /// Stops it in good order. Its topics are there when it starts again.
    pub fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop();
        }
    }

    /// Starts it again after [`stop`](Self::stop), under the same address.
    pub fn start_again(&mut self) {
        assert!(self.keeps_data && self.process.is_none());
        assert!(self.try_start(), "the broker's ports were taken meanwhile");
    }

    /// Address for clients without authentication: `host:port`.
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.ports.plain)
    }

    /// Address for clients with SASL over plain text.
    pub fn sasl_bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.ports.sasl)
    }

    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.bootstrap());
        config.set("reconnect.backoff.ms", "20");
        config.set("reconnect.backoff.max.ms", "200");
        // That nobody listens yet is no news.
        config.set("log_level", "0");
        config
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.config().create().unwrap()
    }

    /// Creates a topic whose name begins with `prefix` and is used nowhere else.
    pub fn topic(&self, prefix: &str, n_partitions: i32) -> String {
        self.topic_with(prefix, n_partitions, &[])
    }

    /// As [`topic`](Self::topic), with settings of the topic.
    pub fn topic_with(&self, prefix: &str, n_partitions: i32, settings: &[(&str, &str)]) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.create_topic(&name, n_partitions, settings);
        name
    }

    /// Creates a topic, and returns when it can be used.
    pub fn create_topic(&self, name: &str, n_partitions: i32, settings: &[(&str, &str)]) {
        let mut topic = NewTopic::new(name, n_partitions, TopicReplication::Fixed(1));
        for (key, value) in settings {
            topic = topic.set(key, value);
        }
        let results = block_on(self.admin().create_topics([&topic], &options())).unwrap();
        results[0].as_ref().unwrap();
        self.wait_for_partitions(name, n_partitions as usize);
    }

    pub fn delete_topic(&self, name: &str) {
        let results = block_on(self.admin().delete_topics(&[name], &options())).unwrap();
        results[0].as_ref().unwrap();
    }

    /// Adds partitions, so that there are `n_partitions`.
    pub fn set_partitions(&self, topic: &str, n_partitions: usize) {
        let new = NewPartitions::new(topic, n_partitions);
        let results = block_on(self.admin().create_partitions([&new], &options())).unwrap();
        results[0].as_ref().unwrap();
        self.wait_for_partitions(topic, n_partitions);
    }

    /// Waits until those who ask for the topic hear of all its partitions and their leaders.
    fn wait_for_partitions(&self, topic: &str, n_partitions: usize) {
        let consumer: BaseConsumer = self.config().create().unwrap();
        loop {
            let metadata = consumer.fetch_metadata(Some(topic), TIMEOUT).unwrap();
            let partitions = metadata.topics()[0].partitions();
            let led = partitions.iter().filter(|p| p.leader() >= 0).count();
            if led == n_partitions {
                return;
            }
        }
    }

    /// Deletes the records before an offset, as retention does.
    pub fn delete_records(&self, topic: &str, partition: i32, before: i64) {
        let mut offsets = TopicPartitionList::new();
        offsets
            .add_partition_offset(topic, partition, Offset::Offset(before))
            .unwrap();
        let done = block_on(self.admin().delete_records(&offsets, &options())).unwrap();
        done.elements()[0].error().unwrap();
    }

    /// Writes messages, and returns when all are acknowledged.
    pub fn produce(&self, topic: &str, messages: &[Message]) {
        client::produce(&self.bootstrap(), topic, messages);
    }

    /// Writes values without keys into one partition.
    pub fn produce_values(&self, topic: &str, partition: i32, values: &[&str]) {
        let message = |v: &&str| Message::new(*v).partition(partition);
        self.produce(topic, &values.iter().map(message).collect::<Vec<_>>());
    }

    /// Writes messages in one transaction, and commits or aborts it.
    pub fn transaction(&self, topic: &str, messages: &[Message], commit: bool) {
        client::transaction(&self.bootstrap(), topic, messages, commit);
    }

    /// What a topic holds now, without open and aborted transactions; by partition and offset.
    pub fn read_all(&self, topic: &str) -> Vec<Received> {
        client::read_all(&self.bootstrap(), topic, "read_committed")
    }

    /// As [`read_all`](Self::read_all), with open and aborted transactions.
    pub fn read_uncommitted(&self, topic: &str) -> Vec<Received> {
        client::read_all(&self.bootstrap(), topic, "read_uncommitted")
    }

    /// Lets a group, which has no members, stand at an offset.
    pub fn commit(&self, group: &str, topic: &str, partition: i32, offset: i64) {
        let consumer: BaseConsumer = self.config().set("group.id", group).create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(offset))
            .unwrap();
        consumer.commit(&list, CommitMode::Sync).unwrap();
    }

    /// The offset that a group has committed for a partition.
    pub fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<i64> {
        let consumer: BaseConsumer = self.config().set("group.id", group).create().unwrap();
        let mut asked = TopicPartitionList::new();
        asked.add_partition(topic, partition);
        let found = consumer.committed_offsets(asked, TIMEOUT).unwrap();
        match found.elements()[0].offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        }
    }
}

fn options() -> AdminOptions {
    AdminOptions::new()
        .operation_timeout(Some(TIMEOUT))
        .request_timeout(Some(TIMEOUT))
}
