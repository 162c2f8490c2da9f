//! Brokers that go away.

use thalweg_testkit::kafka::Broker;

use crate::harness::Table;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_waits_for_a_broker_that_is_gone_and_goes_on_where_it_was() {
    let mut broker = Broker::start();
    let topic = broker.topic("outage", 1);
    broker.produce_values(&topic, 0, &["{\"n\":1}"]);
    let job = Table::of(&broker, &topic).start().unwrap();
    job.rows(1).await;
    broker.stop();
    broker.start_again();
    broker.produce_values(&topic, 0, &["{\"n\":2}"]);
    assert_eq!(job.rows(2).await.numbers("n"), [1, 2]);
    assert_eq!(job.drain().await.numbers("n"), [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_can_be_drained_while_no_broker_is_there() {
    let mut broker = Broker::start();
    let topic = broker.topic("outage", 1);
    broker.produce_values(&topic, 0, &["{\"n\":1}"]);
    let table = Table::of(&broker, &topic).option("source.group_id", "g");
    let job = table.start().unwrap();
    job.rows(1).await;
    broker.stop();
    assert_eq!(job.drain().await.numbers("n"), [1]);
}
