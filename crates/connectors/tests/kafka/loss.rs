//! Records that are gone before they are read.

use thalweg_testkit::kafka::{Broker, Message};

use crate::harness::{Job, Table};

fn values(range: std::ops::Range<i64>) -> Vec<Message> {
    range
        .map(|n| Message::new(format!("{{\"n\":{n}}}")))
        .collect()
}

/// A group that stands at the third of ten records, of which retention has left the last two.
fn overtaken(broker: &Broker, topic: &str) -> Table {
    let table = Table::of(broker, topic)
        .option("source.offset", "group")
        .option("source.group_id", topic);
    broker.produce(topic, &values(0..10));
    broker.commit(topic, topic, 0, 3);
    broker.delete_records(topic, 0, 8);
    table
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_that_overtakes_a_job_fails_it() {
    let broker = Broker::shared();
    let topic = broker.topic("overtaken", 1);
    let error = overtaken(broker, &topic).start().unwrap().fails().await;
    assert!(error.is_deterministic());
    let expected = format!(
        "topic \"{topic}\", partition 0, offset 3: the records that were to be read next are gone"
    );
    assert!(error.to_string().contains(&expected), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retention_that_overtakes_a_job_is_counted_where_the_table_says_so() {
    let broker = Broker::shared();
    let topic = broker.topic("overtaken", 1);
    let table = overtaken(broker, &topic).option("fail_on_data_loss", "false");
    let job = table.start().unwrap();
    assert_eq!(job.rows(2).await.numbers("n"), [8, 9]);
    assert_eq!(job.lost(), 5);
    broker.produce(&topic, &values(10..11));
    assert_eq!(job.rows(3).await.numbers("n"), [8, 9, 10]);
    job.drain().await;
}

/// A job that has read three records of a topic, which then is another one with as many records as given.
async fn recreated(broker: &Broker, topic: &str, fails: &str, n_records: i64) -> Job {
    broker.produce(topic, &values(0..3));
    let job = Table::of(broker, topic)
        .option("fail_on_data_loss", fails)
        .start()
        .unwrap();
    job.rows(3).await;
    broker.delete_topic(topic);
    broker.create_topic(topic, 1, &[]);
    broker.produce(topic, &values(100..100 + n_records));
    job
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_is_created_again_fails_the_job_however_long_it_is() {
    let broker = Broker::shared();
    for n_records in [1, 10] {
        let topic = broker.topic("recreated", 1);
        let error = recreated(broker, &topic, "true", n_records)
            .await
            .fails()
            .await;
        assert!(error.is_deterministic());
        let text = error.to_string();
        let place = format!("topic \"{topic}\", partition 0, offset 3");
        assert!(text.contains(&place), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_is_created_again_is_read_from_its_beginning_where_the_table_says_so() {
    let broker = Broker::shared();
    for n_records in [1, 10] {
        let topic = broker.topic("recreated", 1);
        let job = recreated(broker, &topic, "false", n_records).await;
        let read = job.rows(3 + n_records as usize).await;
        let new: Vec<_> = read
            .numbers("n")
            .into_iter()
            .filter(|n| *n >= 100)
            .collect();
        assert_eq!(new, (100..100 + n_records).collect::<Vec<_>>());
        job.drain().await;
    }
}
