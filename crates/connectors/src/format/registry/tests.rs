use super::test_server::{Fault, TestRegistry};
use super::*;
use crate::testing::options;

fn config(registry: &TestRegistry, given: &[(&str, &str)]) -> Options {
    let url = registry.url();
    let endpoint = [
        ("schema_registry.endpoint", url.as_str()),
        ("topic", "orders"),
    ];
    options(&[&endpoint[..], given].concat())
}

fn client(options: &Options) -> std::sync::Arc<Client> {
    shared(&Config::parse(options).unwrap()).unwrap()
}

const AVRO: &str = r#""long""#;

#[test]
fn schemas_are_asked_for_once() {
    let registry = TestRegistry::start();
    let id = registry.add("orders-value", "AVRO", AVRO);
    let client = client(&config(&registry, &[]));
    for _ in 0..3 {
        let Known::Schema(schema) = client.schema(id).unwrap() else {
            panic!("it is there")
        };
        assert_eq!(
            (schema.id, schema.kind, schema.text.as_str()),
            (id, Kind::Avro, AVRO)
        );
    }
    let Known::Missing(said) = client.schema(99).unwrap() else {
        panic!("it is not there")
    };
    assert_eq!(&*said, "Schema 99 not found");
    client.schema(99).unwrap();
    assert_eq!(
        registry.requests(),
        ["GET /schemas/ids/1", "GET /schemas/ids/99"]
    );
}

#[test]
fn schemas_are_registered_under_the_topic() {
    let registry = TestRegistry::start();
    let options = config(&registry, &[]);
    let id = register(&options, Kind::Json, "{}", Subject::Value).unwrap();
    assert_eq!(
        register(&options, Kind::Json, "{}", Subject::Value).unwrap(),
        id
    );
    assert_eq!(
        registry.latest("orders-value").unwrap()["schemaType"],
        "JSON"
    );
    assert_eq!(latest(&options).unwrap().id, id);
    let other = config(&registry, &[("schema_registry.subject", "a/b c")]);
    assert_ne!(
        register(&other, Kind::Avro, AVRO, Subject::Value).unwrap(),
        id
    );
    assert_eq!(latest(&other).unwrap().text, AVRO);
}

#[test]
fn passing_faults_are_outlived() {
    let registry = TestRegistry::start();
    let id = registry.add("orders-value", "AVRO", AVRO);
    registry.fail([Fault::Status(500), Fault::Status(503), Fault::Status(429)]);
    let known = client(&config(&registry, &[])).schema(id).unwrap();
    assert!(matches!(known, Known::Schema(_)));
    assert_eq!(registry.requests().len(), 4);
}

#[test]
fn errors_name_the_address_and_what_was_asked() {
    let registry = TestRegistry::start();
    let options = config(&registry, &[("schema_registry.timeout", "200 ms")]);
    let url = registry.url();

    registry.fail([Fault::Status(500); 100]);
    let error = latest(&options).unwrap_err().to_string();
    let what = format!("schema registry: GET {url}/subjects/orders-value/versions/latest: ");
    assert!(error.starts_with(&what), "{error}");
    assert!(
        error.contains("500 Internal Server Error: <html>a proxy's page</html> (tried "),
        "{error}"
    );

    let registry = TestRegistry::start();
    let options = config(&registry, &[("schema_registry.timeout", "200 ms")]);
    registry.fail([Fault::Silence]);
    let error = latest(&options).unwrap_err().to_string();
    assert!(
        error.ends_with("no answer in time (tried 1 time)"),
        "{error}"
    );

    // What will not pass is not repeated.
    registry.requests();
    registry.fail([Fault::Garbage]);
    let error = latest(&options).unwrap_err().to_string();
    assert!(error.ends_with("the answer is not JSON: <html>"), "{error}");
    registry.fail([Fault::Status(404)]);
    let error = latest(&options).unwrap_err().to_string();
    assert!(error.contains("404 Not Found"), "{error}");
    assert_eq!(registry.requests().len(), 2);

    let error = latest(&options).unwrap_err().to_string();
    let url = registry.url();
    let expected = format!(
        "subject \"orders-value\" is not in the schema registry {url}: Subject 'orders-value' not found."
    );
    assert_eq!(error, expected);
}

#[test]
fn a_registry_that_is_not_there_is_named() {
    let registry = TestRegistry::start();
    let url = registry.url();
    let options = config(&registry, &[("schema_registry.timeout", "100 ms")]);
    drop(registry);
    let error = latest(&options).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("schema registry: GET {url}/")),
        "{error}"
    );
}

#[test]
fn the_login_is_sent() {
    let registry = TestRegistry::start();
    // me:hush
    registry.require("Basic bWU6aHVzaA==");
    registry.add("orders-value", "AVRO", AVRO);
    let login = [
        ("schema_registry.api_key", "me"),
        ("schema_registry.api_secret", "hush"),
    ];
    assert!(latest(&config(&registry, &login)).is_ok());
    let error = latest(&config(&registry, &[])).unwrap_err().to_string();
    assert!(error.ends_with("401 Unauthorized: Unauthorized"), "{error}");
    assert!(!error.contains("hush"));
}

#[test]
fn references_are_followed_each_before_what_needs_it() {
    let registry = TestRegistry::start();
    let reference = |name: &str, subject: &str| serde_json::json!({"name": name, "subject": subject, "version": 1});
    let add = |subject: &str, text: &str, references: Vec<serde_json::Value>| {
        let body =
            serde_json::json!({"schemaType": "PROTOBUF", "schema": text, "references": references});
        registry.add_with(subject, body)
    };
    add("base", "base text", vec![]);
    add(
        "middle",
        "middle text",
        vec![reference("base.proto", "base")],
    );
    let both = vec![
        reference("middle.proto", "middle"),
        reference("base.proto", "base"),
    ];
    let id = add("orders-value", "top text", both);
    let schema = latest(&config(&registry, &[])).unwrap();
    assert_eq!((schema.id, schema.kind), (id, Kind::Protobuf));
    let names: Vec<_> = schema
        .references
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(names, ["base.proto", "middle.proto"]);

    add("broken", "text", vec![reference("x", "nowhere")]);
    let broken = config(&registry, &[("schema_registry.subject", "broken")]);
    let error = latest(&broken).unwrap_err().to_string();
    assert!(
        error.starts_with("version 1 of subject \"nowhere\""),
        "{error}"
    );
}
