//! Keys, headers, timestamps and positions of records as columns.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Field, Fields, TimeUnit, TimestampNanosecondType};
use thalweg_testkit::kafka::{Broker, Message};

use crate::harness::Table;

fn header_type() -> DataType {
    let fields = Fields::from(vec![
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Binary, true),
    ]);
    let item = Field::new(
        Field::LIST_FIELD_DEFAULT_NAME,
        DataType::Struct(fields),
        true,
    );
    DataType::List(Arc::new(item))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_surrounds_a_record_stays_with_it_when_others_are_bad() {
    let broker = Broker::shared();
    let topic = broker.topic("surrounded", 1);
    let messages = [
        Message::new("{\"n\":0}")
            .key("a")
            .timestamp(3_000)
            .header("h", Some(b"1"))
            .header("h", None),
        Message::new("bad")
            .key("lost")
            .timestamp(9_000)
            .header("lost", None),
        Message::new("{\"n\":2}").timestamp(1_000),
        Message::new("{\"n\":3}")
            .key("")
            .timestamp(2_000)
            .header("i", Some(b"")),
    ];
    broker.produce(&topic, &messages);
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into()));
    let table = Table::of(broker, &topic)
        .bad_data(thalweg_dataflow::table::BadData::Drop)
        .metadata("key", DataType::Binary)
        .metadata("headers", header_type())
        .metadata("timestamp", time)
        .metadata("offset", DataType::Int64)
        .metadata("offset_id", DataType::Int64)
        .metadata("partition", DataType::Int32)
        .metadata("topic", DataType::Utf8);
    let read = table.read().await;
    assert_eq!(read.texts("n"), ["0", "2", "3"]);
    assert_eq!(read.texts("key"), ["a", "∅", ""]);
    assert_eq!(read.texts("offset"), ["0", "2", "3"]);
    assert_eq!(read.texts("offset_id"), ["0", "2", "3"]);
    assert_eq!(read.texts("partition"), ["0", "0", "0"]);
    assert_eq!(read.texts("topic"), [topic.as_str(); 3]);
    let times = read.0.column_by_name("timestamp").unwrap();
    let times = times.as_primitive::<TimestampNanosecondType>().values();
    assert_eq!(times[..], [3_000_000_000, 1_000_000_000, 2_000_000_000]);

    let lists = read.0.column_by_name("headers").unwrap().as_list::<i32>();
    let lens: Vec<_> = (0..3).map(|i| lists.value_length(i)).collect();
    assert_eq!(lens, [2, 0, 1], "a name that is there twice is two");
    let entries = lists.values().as_struct();
    let names: Vec<_> = entries
        .column(0)
        .as_string::<i32>()
        .iter()
        .flatten()
        .collect();
    let values = entries.column(1).as_binary::<i32>();
    let values: Vec<_> = values.iter().collect();
    assert_eq!(names, ["h", "h", "i"]);
    assert_eq!(values, [Some(&b"1"[..]), None, Some(b"")]);
}
