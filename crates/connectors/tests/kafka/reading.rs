//! What is read, and where reading begins and ends.

use arrow::datatypes::DataType;
use thalweg_dataflow::table::BadData;
use thalweg_runtime::connector::BadReason;
use thalweg_testkit::kafka::{Broker, Message};

use crate::harness::Table;

fn number(n: i64) -> Message {
    Message::new(format!("{{\"n\":{n}}}"))
}

fn numbers(range: std::ops::Range<i64>) -> Vec<Message> {
    range.map(number).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_record_of_64_partitions_is_read_once_by_two_subtasks() {
    let broker = Broker::shared();
    let topic = broker.topic("many", 64);
    let messages = (0..6400).map(|n| number(n).partition(n as i32 % 64));
    broker.produce(&topic, &messages.collect::<Vec<_>>());
    let read = Table::of(broker, &topic).parallelism(2).read().await;
    assert_eq!(read.numbers("n"), (0..6400).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bounded_table_ends_where_the_topic_ended_and_also_where_it_is_empty() {
    let broker = Broker::shared();
    let topic = broker.topic("bounded", 3);
    assert!(
        Table::of(broker, &topic)
            .read()
            .await
            .numbers("n")
            .is_empty()
    );
    let first = numbers(0..100).into_iter().map(|m| m.partition(1));
    broker.produce(&topic, &first.collect::<Vec<_>>());
    assert_eq!(
        Table::of(broker, &topic).read().await.numbers("n").len(),
        100
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn latest_begins_behind_what_is_there() {
    let broker = Broker::shared();
    let topic = broker.topic("latest", 1);
    broker.produce(&topic, &numbers(0..3));
    let table = Table::of(broker, &topic).option("source.offset", "latest");
    let job = table.start().unwrap();
    broker.produce(&topic, &numbers(3..5));
    assert_eq!(job.rows(2).await.numbers("n"), [3, 4]);
    assert_eq!(job.drain().await.numbers("n"), [3, 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_told_how_far_reading_came_and_reading_begins_there() {
    let broker = Broker::shared();
    let topic = broker.topic("group", 1);
    let group = format!("readers-of-{topic}");
    broker.produce(&topic, &numbers(0..3));
    let table = || {
        Table::of(broker, &topic)
            .option("source.offset", "group")
            .option("source.group_id", &group)
    };
    let job = table().start().unwrap();
    job.rows(3).await;
    assert_eq!(job.drain().await.numbers("n"), [0, 1, 2]);
    assert_eq!(
        broker.committed(&group, &topic, 0),
        Some(3),
        "one past the last"
    );

    broker.produce(&topic, &numbers(3..5));
    let job = table().start().unwrap();
    assert_eq!(job.rows(2).await.numbers("n"), [3, 4]);
    job.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_can_take_a_partition_away() {
    let broker = Broker::shared();
    let topic = broker.topic("shared", 2);
    let table = || Table::of(broker, &topic).option("source.group_id", "contended");
    // Two jobs of one group would share the partitions if they joined it.
    let (a, b) = (table().start().unwrap(), table().start().unwrap());
    let both = numbers(0..10).into_iter().enumerate();
    let both = both.map(|(i, m)| m.partition(i as i32 % 2));
    broker.produce(&topic, &both.collect::<Vec<_>>());
    for job in [a, b] {
        job.rows(10).await;
        assert_eq!(job.drain().await.numbers("n").len(), 10);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_that_are_added_are_found_and_read_from_their_beginning() {
    let broker = Broker::shared();
    let topic = broker.topic("growing", 1);
    let table = Table::of(broker, &topic)
        .option("source.offset", "latest")
        .option("partition_discovery_interval", "100 milliseconds");
    let job = table.start().unwrap();
    broker.produce(&topic, &[number(0)]);
    job.rows(1).await;
    broker.set_partitions(&topic, 3);
    broker.produce(&topic, &[number(1).partition(1), number(2).partition(2)]);
    assert_eq!(job.rows(3).await.numbers("n"), [0, 1, 2]);
    job.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_transactions_are_not_seen_by_read_committed() {
    let broker = Broker::shared();
    let topic = broker.topic("aborted", 1);
    broker.transaction(&topic, &numbers(0..5), false);
    broker.transaction(&topic, &numbers(5..8), true);
    broker.transaction(&topic, &numbers(8..9), false);
    let table = |mode: &str| Table::of(broker, &topic).option("source.read_mode", mode);
    let committed = table("read_committed").read().await;
    assert_eq!(committed.numbers("n"), [5, 6, 7]);
    let all = table("read_uncommitted").read().await;
    assert_eq!(all.numbers("n").len(), 9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_of_20_megabytes_is_read() {
    let broker = Broker::shared();
    let topic = broker.topic("large", 1);
    let large = "x".repeat(20 << 20);
    broker.produce(
        &topic,
        &[
            Message::new("small"),
            Message::new(large.clone()),
            Message::new("last"),
        ],
    );
    let table = Table::of(broker, &topic)
        .format("raw_string")
        .column("value", DataType::Utf8);
    let read = table.read().await;
    assert!(read.texts("value") == ["small", &large, "last"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_8_1_bad_records_are_dropped_by_reason_and_their_neighbours_stay() {
    let broker = Broker::shared();
    let topic = broker.topic("bad", 1);
    let messages = [
        number(1),
        Message::new("{\"n\":"),
        Message::tombstone("k"),
        Message::new("{\"n\":\"x\"}"),
        Message::new("{\"n\":1.5}"),
        Message::new(b"{\"n\":2, \"t\":\"\xff\"}".to_vec()),
        Message::new(""),
        number(2),
    ];
    broker.produce(&topic, &messages);
    let job = Table::of(broker, &topic)
        .bad_data(BadData::Drop)
        .start()
        .unwrap();
    assert_eq!(job.rows(2).await.numbers("n"), [1, 2]);
    let bad = job.metrics().bad_records();
    let count = |reason| bad.get(&("t".to_string(), reason)).copied().unwrap_or(0);
    assert_eq!(count(BadReason::Missing), 1, "{bad:?}");
    assert_eq!(count(BadReason::Encoding), 1, "{bad:?}");
    assert_eq!(bad.values().sum::<u64>(), 6, "{bad:?}");
    job.drain().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_8_1_a_bad_record_fails_the_job_with_topic_partition_and_offset() {
    let broker = Broker::shared();
    let topic = broker.topic("bad", 2);
    broker.produce_values(&topic, 1, &["{\"n\":1}", "nonsense"]);
    let error = Table::of(broker, &topic).fails().await;
    assert!(error.is_deterministic());
    let place = format!("topic \"{topic}\", partition 1, offset 1");
    assert!(error.to_string().contains(&place), "{error}");
}
