//! Records as tests write and read them.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Header, Headers, Message as _, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A record to be written. Without a partition its key decides, or chance.
#[derive(Debug, Clone, Default)]
pub struct Message {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    pub partition: Option<i32>,
    /// Milliseconds.
    pub timestamp: Option<i64>,
}

impl Message {
    pub fn new(value: impl Into<Vec<u8>>) -> Self {
        Self {
            value: Some(value.into()),
            ..Self::default()
        }
    }

    /// A record without a value.
    pub fn tombstone(key: impl Into<Vec<u8>>) -> Self {
        Self::default().key(key)
    }

    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.key = Some(key.into());
        self
    }

    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    pub fn timestamp(mut self, millis: i64) -> Self {
        self.timestamp = Some(millis);
        self
    }

    pub fn header(mut self, key: &str, value: Option<&[u8]>) -> Self {
        self.headers
            .push((key.to_string(), value.map(<[u8]>::to_vec)));
        self
    }

    fn record<'a>(&'a self, topic: &'a str) -> BaseRecord<'a, Vec<u8>, Vec<u8>> {
        let mut record = BaseRecord::to(topic);
        record.key = self.key.as_ref();
        record.payload = self.value.as_ref();
        record.partition = self.partition;
        record.timestamp = self.timestamp;
        if !self.headers.is_empty() {
            let headers = OwnedHeaders::new_with_capacity(self.headers.len());
            record.headers = Some(self.headers.iter().fold(headers, |all, (key, value)| {
                all.insert(Header {
                    key,
                    value: value.as_ref(),
                })
            }));
        }
        record
    }
}

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Milliseconds.
    pub timestamp: Option<i64>,
}

impl Received {
    fn new(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().map(|headers| {
            let owned = |h: Header<'_, &[u8]>| (h.key.to_string(), h.value.map(<[u8]>::to_vec));
            headers.iter().map(owned).collect()
        });
        Self {
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers: headers.unwrap_or_default(),
            timestamp: message.timestamp().to_millis(),
        }
    }

    /// The value as text; empty where there is none.
    pub fn text(&self) -> String {
        String::from_utf8(self.value.clone().unwrap_or_default()).unwrap()
    }

    /// The key as text; empty where there is none.
    pub fn key_text(&self) -> String {
        String::from_utf8(self.key.clone().unwrap_or_default()).unwrap()
    }
}

/// A producer that has acknowledged all when it has flushed.
pub fn producer(bootstrap: &str, transactional_id: Option<&str>) -> BaseProducer {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap);
    config.set("message.max.bytes", "33554432");
    config.set("linger.ms", "1");
    if let Some(id) = transactional_id {
        config.set("transactional.id", id);
    }
    config.create().unwrap()
}

/// Hands messages to the producer, waiting where its queue is full.
pub fn send(producer: &BaseProducer, topic: &str, messages: &[Message]) {
    for message in messages {
        let mut record = message.record(topic);
        while let Err((error, again)) = producer.send(record) {
            let full = rdkafka::types::RDKafkaErrorCode::QueueFull;
            assert_eq!(error, KafkaError::MessageProduction(full));
            producer.poll(Duration::from_millis(10));
            record = again;
        }
    }
}

pub fn produce(bootstrap: &str, topic: &str, messages: &[Message]) {
    let producer = producer(bootstrap, None);
    send(&producer, topic, messages);
    producer.flush(TIMEOUT).unwrap();
}

/// Writes messages in one transaction, which is committed or aborted.
pub fn transaction(bootstrap: &str, topic: &str, messages: &[Message], commit: bool) {
    let producer = producer(bootstrap, Some(&format!("test-{topic}")));
    producer.init_transactions(TIMEOUT).unwrap();
    producer.begin_transaction().unwrap();
    send(&producer, topic, messages);
    producer.flush(TIMEOUT).unwrap();
    match commit {
        true => producer.commit_transaction(TIMEOUT).unwrap(),
        false => producer.abort_transaction(TIMEOUT).unwrap(),
    }
}

/// All records of a topic up to its present end, ordered by partition and offset.
pub fn read_all(bootstrap: &str, topic: &str, isolation: &str) -> Vec<Received> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "thalweg-testkit")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "earliest")
        .set("isolation.level", isolation)
        .create()
        .unwrap();
    let metadata = consumer.fetch_metadata(Some(topic), TIMEOUT).unwrap();
    let partitions = metadata.topics()[0].partitions();
    let mut assignment = TopicPartitionList::new();
    for partition in partitions {
        assignment
            .add_partition_offset(topic, partition.id(), Offset::Beginning)
            .unwrap();
    }
    consumer.assign(&assignment).unwrap();
    let (mut received, mut open) = (Vec::new(), partitions.len());
    while open > 0 {
        match consumer.poll(TIMEOUT) {
            Some(Ok(message)) => received.push(Received::new(&message)),
            Some(Err(KafkaError::PartitionEOF(_))) => open -= 1,
            Some(Err(error)) => panic!("reading topic {topic}: {error}"),
            None => panic!("topic {topic} could not be read to its end"),
        }
    }
    received.sort_by_key(|r| (r.partition, r.offset));
    received
}
