//! Jobs that cannot begin.

use thalweg_runtime::RuntimeError;
use thalweg_runtime::connector::ConnectorError;
use thalweg_testkit::kafka::{Broker, PASSWORD, USER};

use crate::harness::Table;

/// The message and hint of a table that cannot be read.
async fn refused(table: Table) -> (String, String) {
    let error = table.option("connect_timeout", "2 seconds").fails().await;
    let hint = match &error {
        RuntimeError::Connector {
            source: ConnectorError::Configuration { hint, .. },
            ..
        } => hint.clone().unwrap_or_default(),
        _ => String::new(),
    };
    (error.to_string(), hint)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_not_there_is_named_in_bounded_time() {
    // Nobody listens on port 1.
    let (message, _) = refused(Table::new("127.0.0.1:1", "orders")).await;
    assert!(
        message.contains("no broker at 127.0.0.1:1 has answered within 2 s"),
        "{message}"
    );
    assert!(message.contains("Connection refused"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_does_not_exist_is_named() {
    let (message, _) = refused(Table::new("nowhere.invalid:9092", "orders")).await;
    assert!(
        message.contains("no broker at nowhere.invalid:9092"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_does_not_exist_is_named() {
    let broker = Broker::shared();
    let (message, _) = refused(Table::of(broker, "no-such-topic")).await;
    let expected = format!(
        "topic \"no-such-topic\" does not exist at {}",
        broker.bootstrap()
    );
    assert!(message.contains(&expected), "{message}");
}

fn sasl(broker: &Broker, topic: &str, mechanism: &str, password: &str) -> Table {
    Table::new(&broker.sasl_bootstrap(), topic)
        .option("auth.type", "sasl")
        .option("auth.protocol", "SASL_PLAINTEXT")
        .option("auth.mechanism", mechanism)
        .option("auth.username", USER)
        .option("auth.password", password)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_are_let_in_by_their_password_only() {
    let broker = Broker::shared();
    let topic = broker.topic("secret", 1);
    broker.produce_values(&topic, 0, &["{\"n\":1}"]);
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        let read = sasl(broker, &topic, mechanism, PASSWORD).read().await;
        assert_eq!(read.numbers("n"), [1]);
        let (message, hint) = refused(sasl(broker, &topic, mechanism, "wrong")).await;
        assert!(message.contains("refuse the authentication"), "{message}");
        assert!(message.contains(&broker.sasl_bootstrap()), "{message}");
        assert!(hint.contains("auth.password"), "{hint}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_lets_in_as_well() {
    let broker = Broker::shared();
    let topic = broker.topic("token", 1);
    broker.produce_values(&topic, 0, &["{\"n\":1}"]);
    let table = Table::new(&broker.sasl_bootstrap(), &topic)
        .option("auth.type", "sasl")
        .option("auth.protocol", "SASL_PLAINTEXT")
        .option("auth.mechanism", "OAUTHBEARER")
        .option("kafka.enable.sasl.oauthbearer.unsecure.jwt", "true")
        .option("kafka.sasl.oauthbearer.config", "principal=alice");
    assert_eq!(table.read().await.numbers("n"), [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_speaks_otherwise_is_an_error_that_names_it() {
    let broker = Broker::shared();
    let plain = Table::new(&broker.sasl_bootstrap(), "orders");
    let (message, _) = refused(plain).await;
    assert!(message.contains(&broker.sasl_bootstrap()), "{message}");
    let tls = Table::of(broker, "orders").option("auth.protocol", "SSL");
    let (message, _) = refused(tls).await;
    assert!(message.contains(&broker.bootstrap()), "{message}");
}
