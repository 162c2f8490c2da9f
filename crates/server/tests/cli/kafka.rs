//! Topics through the binary.

use std::io::Read;
use std::process::Child;

use thalweg_testkit::kafka::{Broker, Message, Received};

use crate::harness::Place;
use crate::stopping::{ended_well, first_line, send};

/// Options of a table in a topic.
fn options(broker: &Broker, topic: &str) -> String {
    let at = broker.bootstrap();
    format!("connector = 'kafka', bootstrap_servers = '{at}', topic = '{topic}'")
}

fn orders(broker: &Broker, topic: &str, more: &str) -> String {
    format!(
        "SET pipeline.update_aggregate_flush_interval = '50 milliseconds';
        SET updating_ttl = '0';
        CREATE TABLE orders (customer_id TEXT, amount DECIMAL(10, 2)) WITH ({}, format = 'json', type = 'source', \
        source.offset = 'earliest'{more});",
        options(broker, topic)
    )
}

fn order(customer: &str, amount: &str) -> Message {
    Message::new(format!(
        "{{\"customer_id\":\"{customer}\",\"amount\":{amount}}}"
    ))
}

/// Waits until the topic holds what is awaited; panics with what the process says if it ends instead.
fn until(
    broker: &Broker,
    topic: &str,
    child: &mut Child,
    there: impl Fn(&[Received]) -> bool,
) -> Vec<Received> {
    loop {
        let read = broker.read_all(topic);
        if there(&read) {
            return read;
        }
        if let Some(status) = child.try_wait().unwrap() {
            let mut said = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut said)
                .unwrap();
            panic!("it ended with {status}: {said}");
        }
    }
}

#[test]
fn totals_of_one_topic_are_kept_in_another_until_ctrl_c() {
    let broker = Broker::shared();
    let (from, to) = (broker.topic("orders", 2), broker.topic("totals", 1));
    broker.produce(&from, &[order("c1", "50.00"), order("c2", "30.00")]);
    let sql = format!(
        "{}
        CREATE TABLE totals (customer_id TEXT PRIMARY KEY, total DECIMAL(20, 2)) WITH ({}, format = 'debezium_json', \
        type = 'sink', sink.tombstones = 'true');
        INSERT INTO totals SELECT customer_id, sum(amount) FROM orders GROUP BY customer_id HAVING sum(amount) < 100;",
        orders(broker, &from, ", source.group_id = 'totals'"),
        options(broker, &to)
    );
    let place = Place::new();
    let mut child = place.spawn(&["run", "-e", &sql]);
    until(broker, &to, &mut child, |r| r.len() >= 2);
    broker.produce(&from, &[order("c1", "25.00")]);
    let says = |r: &Received, part: &str| r.text().contains(part);
    until(broker, &to, &mut child, |r| {
        r.iter().any(|r| says(r, "75.00"))
    });
    broker.produce(&from, &[order("c1", "75.00")]);
    let read = until(broker, &to, &mut child, |r| {
        r.iter().any(|r| r.value.is_none())
    });
    send("-INT", &child);
    ended_well(child);

    let of_c1: Vec<_> = read
        .iter()
        .filter(|r| r.key_text() == r#"{"customer_id":"c1"}"#)
        .collect();
    let texts: Vec<_> = of_c1.iter().map(|r| r.text()).collect();
    assert_eq!(
        texts,
        [
            r#"{"before":null,"after":{"customer_id":"c1","total":50.00},"op":"c"}"#,
            r#"{"before":{"customer_id":"c1","total":50.00},"after":{"customer_id":"c1","total":75.00},"op":"u"}"#,
            r#"{"before":{"customer_id":"c1","total":75.00},"after":null,"op":"d"}"#,
            "",
        ]
    );
    let read_to: i64 = (0..2)
        .filter_map(|p| broker.committed("totals", &from, p))
        .sum();
    assert_eq!(read_to, 4, "what was drained is committed to the group");
}

#[test]
fn a_topic_answers_one_question_and_the_run_ends() {
    let broker = Broker::shared();
    let topic = broker.topic("orders", 2);
    broker.produce(
        &topic,
        &[
            order("c1", "50.00"),
            order("c2", "30.00"),
            order("c1", "25.00"),
        ],
    );
    let sql = format!(
        "{} SELECT sum(amount) AS total FROM orders;",
        orders(broker, &topic, ", source.bounded = 'latest'")
    );
    let done = Place::new().thalweg(&["run", "-e", &sql]);
    assert!(done.succeeded().stdout.contains("105.00"), "{done:?}");
}

#[test]
fn rule_2_2_a_silent_partition_holds_windows_back_until_it_is_idle() {
    let broker = Broker::shared();
    let topic = broker.topic("ticks", 2);
    // The record's timestamp is the event time.
    let at = |seconds: i64| {
        Message::new("{\"n\":1}")
            .partition(0)
            .timestamp(seconds * 1000)
    };
    broker.produce(
        &topic,
        &[
            at(1_700_000_001),
            at(1_700_000_003),
            at(1_700_000_002),
            at(1_700_000_020),
        ],
    );
    let sql = format!(
        "SET pipeline.update_aggregate_flush_interval = '50 milliseconds';
        CREATE TABLE ticks (n BIGINT) WITH ({}, format = 'json', source.offset = 'earliest', \
        idle_timeout = '500 milliseconds');
        SELECT COUNT(*) AS n FROM ticks GROUP BY tumble(INTERVAL '10 seconds');",
        options(broker, &topic)
    );
    let place = Place::new();
    let mut child = place.spawn(&["run", "-e", &sql]);
    // The other partition goes on, or it would be idle as well.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let later = at(1_700_000_020);
    let producer = std::thread::spawn(move || {
        while stopped.try_recv().is_err() {
            broker.produce(&topic, std::slice::from_ref(&later));
        }
    });
    let (first, _reader) = first_line(&mut child);
    stop.send(()).unwrap();
    producer.join().unwrap();
    assert_eq!(first, "{\"n\":3}\n");
    send("-INT", &child);
    ended_well(child);
}

#[test]
fn dead_letters_of_a_topic_say_where_they_were() {
    let broker = Broker::shared();
    let topic = broker.topic("orders", 1);
    broker.produce(
        &topic,
        &[
            order("c1", "50.00"),
            Message::new("nonsense"),
            order("c2", "\"x\""),
        ],
    );
    let sql = format!(
        "CREATE TABLE bad (raw BYTEA, reason TEXT, topic TEXT, partition INT, \"offset\" BIGINT) WITH (\
         connector = 'single_file', path = 'bad.ndjson', format = 'json');
        {} SELECT customer_id, amount FROM orders;",
        orders(broker, &topic, ", source.bounded = 'latest', bad_data = 'dead_letter', dead_letter = 'bad'")
    );
    let place = Place::new();
    let done = place.thalweg(&["run", "-e", &sql]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let bad = place.read("bad.ndjson");
    let lines: Vec<serde_json::Value> = bad
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{bad}");
    for (line, offset) in lines.iter().zip(1..) {
        assert_eq!(line["topic"], topic.as_str());
        assert_eq!(
            (&line["partition"], &line["offset"]),
            (&0.into(), &offset.into())
        );
    }
    assert_eq!(lines[0]["raw"], "bm9uc2Vuc2U=");
}

#[test]
fn what_is_wrong_with_a_table_is_found_before_anything_runs() {
    let check = |more: &str, words: &[&str]| {
        let sql = format!(
            "CREATE TABLE t (n BIGINT) WITH (connector = 'kafka', bootstrap_servers = 'localhost:1', format = 'json', {more});"
        );
        Place::new()
            .thalweg(&["validate", "-e", &sql])
            .failed(10, words);
    };
    check(
        "type = 'source', topic = 'a b'",
        &["a topic's name cannot have the character ' '"],
    );
    check(
        "type = 'source', topic = 't', kafka.enable.auto.commit = 'true'",
        &[
            "the client's setting 'enable.auto.commit' is decided by thalweg",
            "offsets are committed with the state",
        ],
    );
    check(
        "type = 'source', topic = 't', kafka.lingr.ms = '5'",
        &["'lingr.ms'"],
    );
    check(
        "type = 'source', topic = 't', client_configs = 'linger.ms=x'",
        &["'linger.ms'"],
    );
    check(
        "type = 'source', topic = 't', client_configs = 'linger'",
        &["'linger' is no setting"],
    );
    check(
        "type = 'source', topic = 't', source.offset = 'group'",
        &["needs the option 'source.group_id'"],
    );
    check(
        "type = 'source', topic = 't', auth.type = 'sasl'",
        &["needs the option 'auth.mechanism'"],
    );
    check(
        "type = 'sink', topic = 't', sink.key_field = 'm'",
        &["column \"m\" does not exist"],
    );
    check(
        "type = 'sink', topic = 't', sink.timestamp_field = 'n'",
        &["column \"n\" is no TIMESTAMP"],
    );
    check(
        "type = 'sink', topic = 't', sink.commit_mode = 'exactly_once'",
        &["is not there yet"],
    );
    check(
        "type = 'source', topic = 't', bootstrap_server = 'x'",
        &["did you mean 'bootstrap_servers'?"],
    );
}
