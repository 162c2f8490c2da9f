//! That the broker for tests does what tests rely on.

use thalweg_testkit::kafka::{Broker, Message, Received};

fn texts(received: &[Received]) -> Vec<String> {
    received.iter().map(Received::text).collect()
}

#[test]
fn an_aborted_transaction_is_invisible_to_read_committed() {
    let broker = Broker::shared();
    let topic = broker.topic("transactions", 1);
    broker.transaction(&topic, &[Message::new("aborted")], false);
    broker.transaction(&topic, &[Message::new("committed")], true);
    assert_eq!(texts(&broker.read_all(&topic)), ["committed"]);
    assert_eq!(
        texts(&broker.read_uncommitted(&topic)),
        ["aborted", "committed"]
    );
}

#[test]
fn deleted_records_are_gone_and_offsets_go_on() {
    let broker = Broker::shared();
    let topic = broker.topic("deleted", 1);
    broker.produce_values(&topic, 0, &["a", "b", "c"]);
    broker.delete_records(&topic, 0, 2);
    let left = broker.read_all(&topic);
    assert_eq!((left[0].offset, left[0].text()), (2, "c".to_string()));
    assert_eq!(left.len(), 1);
}

#[test]
fn records_keep_their_parts() {
    let broker = Broker::shared();
    let topic = broker.topic("parts", 2);
    let message = Message::tombstone("k")
        .partition(1)
        .timestamp(1_000)
        .header("h", Some(b"1"))
        .header("h", None);
    broker.produce(&topic, &[message]);
    let read = &broker.read_all(&topic)[0];
    assert_eq!(
        (read.partition, read.offset, read.timestamp),
        (1, 0, Some(1_000))
    );
    assert_eq!((read.key_text().as_str(), &read.value), ("k", &None));
    let header = |v: Option<&[u8]>| ("h".to_string(), v.map(<[u8]>::to_vec));
    assert_eq!(read.headers, [header(Some(b"1")), header(None)]);
}

#[test]
fn a_broker_that_was_stopped_has_its_records_when_it_is_back() {
    let mut broker = Broker::start();
    let topic = broker.topic("restart", 1);
    broker.produce_values(&topic, 0, &["before"]);
    broker.stop();
    broker.start_again();
    broker.produce_values(&topic, 0, &["after"]);
    assert_eq!(texts(&broker.read_all(&topic)), ["before", "after"]);
}
