//! What is written, and what happens when it cannot be.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampNanosecondArray};
use arrow::record_batch::RecordBatch;
use rdkafka::mocking::MockCluster;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use thalweg_connectors::Connectors;
use thalweg_dataflow::options::{Options, Registry};
use thalweg_dataflow::table::SinkSpec;
use thalweg_runtime::connector::{ConnectorError, ConnectorFactory, SinkInput, SinkWriter};
use thalweg_runtime::pairing::{PairedChange, PairedChanges};
use thalweg_testkit::kafka::{Broker, Message};

use crate::harness::timely;

struct Table {
    options: Vec<(String, String)>,
    format: &'static str,
    key: Option<Vec<usize>>,
}

impl Table {
    fn new(bootstrap: &str, topic: &str) -> Self {
        let table = Self {
            options: Vec::new(),
            format: "json",
            key: None,
        };
        table
            .option("bootstrap_servers", bootstrap)
            .option("topic", topic)
    }

    fn of(broker: &Broker, topic: &str) -> Self {
        Self::new(&broker.bootstrap(), topic)
    }

    fn option(mut self, name: &str, value: &str) -> Self {
        self.options.push((name.to_string(), value.to_string()));
        self
    }

    fn key(mut self, column: usize) -> Self {
        self.key = Some(vec![column]);
        self
    }

    fn updating(mut self) -> Self {
        self.format = "debezium_json";
        self
    }

    fn open(&self, rows: &RecordBatch) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        let connectors = Connectors::standard();
        let declaration = connectors.connector("kafka").unwrap();
        let spec = SinkSpec {
            table: "t".to_string(),
            connector: "kafka".to_string(),
            format: Some(self.format.to_string()),
            options: Options::resolve(&self.options.iter().cloned().collect(), declaration.options),
            schema: rows.schema(),
            updating: self.format == "debezium_json",
            key: self.key.clone(),
        };
        connectors.sink(&Arc::new(spec))?.open(0)
    }

    /// Writes one epoch.
    async fn write(&self, rows: &RecordBatch) -> Result<(), ConnectorError> {
        let mut writer = self.open(rows)?;
        timely(writer.write(SinkInput::Rows(rows))).await?;
        timely(writer.end_epoch(1)).await?;
        timely(writer.finish()).await
    }
}

/// Columns `k TEXT`, `n BIGINT`, `ts TIMESTAMP`, the last one second later in each row.
fn rows(keys: &[Option<&str>]) -> RecordBatch {
    let n = keys.len() as i64;
    let times = TimestampNanosecondArray::from_iter_values((0..n).map(|i| (i + 1) * 1_000_000_000));
    let columns: [(&str, ArrayRef); 3] = [
        ("k", Arc::new(StringArray::from(keys.to_vec()))),
        ("n", Arc::new(Int64Array::from_iter_values(0..n))),
        ("ts", Arc::new(times)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap()
}

#[tokio::test]
async fn a_row_is_a_record_with_the_key_and_time_that_are_asked_for() {
    let broker = Broker::shared();
    let topic = broker.topic("written", 1);
    let table = Table::of(broker, &topic)
        .option("sink.key_field", "k")
        .option("sink.timestamp_field", "ts")
        .option("kafka.compression.type", "zstd");
    table.write(&rows(&[Some("a"), None])).await.unwrap();
    let read = broker.read_all(&topic);
    assert_eq!(
        read[0].text(),
        r#"{"k":"a","n":0,"ts":"1970-01-01T00:00:01"}"#
    );
    assert_eq!(
        (read[0].key_text().as_str(), read[0].timestamp),
        ("a", Some(1_000))
    );
    assert_eq!((&read[1].key, read[1].timestamp), (&None, Some(2_000)));
    assert_eq!(read.len(), 2);
}

#[tokio::test]
async fn the_key_of_the_result_is_an_object_and_chooses_the_partition_that_other_clients_choose() {
    let broker = Broker::shared();
    let topic = broker.topic("keyed", 8);
    let table = Table::of(broker, &topic).key(0);
    let keys: Vec<_> = (0..40).map(|i| format!("key-{}", i % 20)).collect();
    let keys: Vec<_> = keys.iter().map(|k| Some(k.as_str())).collect();
    table.write(&rows(&keys)).await.unwrap();
    let read = broker.read_all(&topic);
    let first = read
        .iter()
        .find(|r| r.text().contains("\"key-0\""))
        .unwrap();
    assert_eq!(first.key_text(), r#"{"k":"key-0"}"#);
    for record in &read {
        let expected = murmur2(record.key.as_ref().unwrap()) & 0x7fff_ffff;
        assert_eq!(
            record.partition as u32,
            expected % 8,
            "{}",
            record.key_text()
        );
    }
}

/// MurmurHash2 (Appleby, public domain) with the seed of the Java client.
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut h = 0x9747_b28c ^ data.len() as u32;
    let chunks = data.chunks_exact(4);
    let rest = chunks.remainder();
    for chunk in chunks {
        let k = u32::from_le_bytes(chunk.try_into().unwrap()).wrapping_mul(M);
        let k = (k ^ (k >> 24)).wrapping_mul(M);
        h = h.wrapping_mul(M) ^ k;
    }
    for (i, byte) in rest.iter().enumerate() {
        h ^= u32::from(*byte) << (8 * i);
    }
    if !rest.is_empty() {
        h = h.wrapping_mul(M);
    }
    h = (h ^ (h >> 13)).wrapping_mul(M);
    h ^ (h >> 15)
}

#[tokio::test]
async fn a_deletion_is_followed_by_a_tombstone_where_that_is_asked_for() {
    let broker = Broker::shared();
    let topic = broker.topic("tombstones", 1);
    let rows = rows(&[Some("a"), Some("a"), Some("b")]);
    let changes = vec![
        PairedChange::Update {
            before: 0,
            after: 1,
        },
        PairedChange::Delete { before: 1 },
        PairedChange::Create { after: 2 },
    ];
    let table = Table::of(broker, &topic)
        .updating()
        .key(0)
        .option("sink.tombstones", "true");
    let mut writer = table.open(&rows).unwrap();
    let changes = PairedChanges { rows, changes };
    writer.write(SinkInput::Changes(&changes)).await.unwrap();
    writer.end_epoch(1).await.unwrap();
    let read = broker.read_all(&topic);
    let op = |r: &thalweg_testkit::kafka::Received| {
        let text = r.text();
        text.rsplit_once("\"op\":")
            .map_or("∅".to_string(), |(_, op)| op[1..2].to_string())
    };
    let ops: Vec<_> = read.iter().map(op).collect();
    assert_eq!(ops, ["u", "d", "∅", "c"]);
    let keys: Vec<_> = read.iter().map(|r| r.key_text()).collect();
    let (a, b) = (r#"{"k":"a"}"#, r#"{"k":"b"}"#);
    assert_eq!(keys, [a, a, a, b]);
}

#[tokio::test]
async fn tombstones_without_a_key_are_refused() {
    let broker = Broker::shared();
    let topic = broker.topic("keyless", 1);
    let table = Table::of(broker, &topic)
        .updating()
        .option("sink.tombstones", "true");
    let error = table.open(&rows(&[None])).err().unwrap();
    assert_eq!(
        error.to_string(),
        "sink.tombstones needs a key, and the result has none"
    );
}

#[tokio::test]
async fn more_than_the_client_holds_is_written_all_the_same() {
    let broker = Broker::shared();
    let topic = broker.topic("full", 1);
    let table = Table::of(broker, &topic).option("kafka.queue.buffering.max.messages", "100");
    let keys = vec![Some("k"); 5_000];
    table.write(&rows(&keys)).await.unwrap();
    assert_eq!(broker.read_all(&topic).len(), 5_000);
}

#[tokio::test]
async fn a_record_that_the_topic_does_not_take_fails_with_its_place_and_reason() {
    let broker = Broker::shared();
    let topic = broker.topic_with("small", 1, &[("max.message.bytes", "1000")]);
    let table = Table::of(broker, &topic);
    let large = "x".repeat(2_000);
    let error = table.write(&rows(&[Some(&large)])).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("topic \"{topic}\", partition 0: a record of 20")),
        "{text}"
    );
    assert!(text.contains("Message size too large"), "{text}");
    let ConnectorError::Configuration { hint, .. } = error else {
        panic!("another attempt changes nothing")
    };
    assert!(hint.unwrap().contains("max.message.bytes"));
}

#[tokio::test]
async fn a_topic_to_be_written_has_to_exist() {
    let broker = Broker::shared();
    let error = Table::of(broker, "nobody-made-this")
        .open(&rows(&[None]))
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .contains("topic \"nobody-made-this\" does not exist at"),
        "{error}"
    );
}

#[tokio::test]
async fn an_epoch_does_not_end_before_what_was_written_is_acknowledged() {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("t", 1, 1).unwrap();
    let bootstrap = cluster.bootstrap_servers();
    // The first two attempts fail in ways that pass; the third is acknowledged.
    let passing = [
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE,
    ];
    cluster.request_errors(RDKafkaApiKey::Produce, &passing);
    Table::new(&bootstrap, "t")
        .write(&rows(&[Some("a")]))
        .await
        .unwrap();

    let lasting = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED];
    cluster.request_errors(RDKafkaApiKey::Produce, &lasting);
    let error = Table::new(&bootstrap, "t")
        .write(&rows(&[Some("a")]))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("topic \"t\", partition 0: a record of"),
        "{error}"
    );
}

#[tokio::test]
async fn a_broker_that_stays_away_is_an_error_in_the_end() {
    let mut broker = Broker::start();
    let topic = broker.topic("gone", 1);
    let table = Table::of(&broker, &topic).option("kafka.message.timeout.ms", "1000");
    let rows = rows(&[Some("a")]);
    let mut writer = table.open(&rows).unwrap();
    broker.stop();
    let written = async {
        writer.write(SinkInput::Rows(&rows)).await?;
        writer.end_epoch(1).await
    };
    let error = timely(written).await.unwrap_err();
    assert!(
        matches!(error, ConnectorError::Io { .. }),
        "a restart may help: {error}"
    );
    assert!(error.to_string().contains(&topic), "{error}");
}

#[tokio::test]
async fn what_is_written_is_what_is_read() {
    let broker = Broker::shared();
    let topic = broker.topic("round", 2);
    Table::of(broker, &topic)
        .write(&rows(&[Some("a"), Some("b"), None]))
        .await
        .unwrap();
    broker.produce(&topic, &[Message::new("{\"n\":3}")]);
    let read = crate::harness::Table::of(broker, &topic).read().await;
    assert_eq!(read.numbers("n"), [0, 1, 2, 3]);
}
