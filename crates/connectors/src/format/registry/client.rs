//! Schemas, kept once they are known.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use thalweg_runtime::connector::ConnectorError;
use tokio::time::Instant;

use super::Kind;
use super::config::Config;
use super::http::{Answer, Http};

/// A schema as it is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    pub id: u32,
    pub kind: Kind,
    pub text: String,
    /// Schemas that it refers to, by the name by which it does, each after those that it needs itself.
    pub references: Vec<(String, String)>,
}

/// What is known of an id.
#[derive(Debug, Clone)]
pub enum Known {
    Schema(Arc<Schema>),
    /// The registry has none; in its words.
    Missing(Arc<str>),
}

pub struct Client {
    endpoint: String,
    http: Http,
    by_id: Mutex<HashMap<u32, (Known, Instant)>>,
}

/// How long it is taken for granted that a schema is missing: a topic full of such records must not ask for each.
const MISSING_FOR: Duration = Duration::from_secs(10);
/// Ids that are remembered; schemas are few, but broken records may name any.
const MAX_IDS: usize = 4096;
/// Schemas that one may refer to, directly and through others.
const MAX_REFERENCES: usize = 256;

/// The client of a registry, which all readers and writers share while there are any.
pub fn shared(config: &Config) -> Result<Arc<Client>, ConnectorError> {
    static CLIENTS: LazyLock<Mutex<HashMap<Config, Weak<Client>>>> = LazyLock::new(Mutex::default);
    let key = Config {
        subject: None,
        ..config.clone()
    };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&key).and_then(Weak::upgrade) {
        return Ok(client);
    }
    clients.retain(|_, client| client.strong_count() > 0);
    let client = Arc::new(Client::new(key.clone())?);
    clients.insert(key, Arc::downgrade(&client));
    Ok(client)
}

impl Client {
    fn new(config: Config) -> Result<Self, ConnectorError> {
        Ok(Self {
            endpoint: config.endpoint.clone(),
            http: Http::new(config)?,
            by_id: Mutex::default(),
        })
    }

    /// The schema with an id. Errors: the registry does not answer; that it has none is an answer.
    pub fn schema(&self, id: u32) -> Result<Known, ConnectorError> {
        if let Some(known) = self.remembered(id) {
            return Ok(known);
        }
        let known = match self.get(format!("/schemas/ids/{id}"))? {
            Answer::Ok(value) => Known::Schema(Arc::new(self.parse(&value, Some(id))?)),
            Answer::NotFound(said) => Known::Missing(said.into()),
        };
        let mut by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        if by_id.len() >= MAX_IDS {
            by_id.clear();
        }
        by_id.insert(id, (known.clone(), Instant::now()));
        Ok(known)
    }

    fn remembered(&self, id: u32) -> Option<Known> {
        let by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        match by_id.get(&id)? {
            (Known::Missing(_), since) if since.elapsed() > MISSING_FOR => None,
            (known, _) => Some(known.clone()),
        }
    }

    /// The newest version of a subject. Errors: there is none.
    pub fn latest(&self, subject: &str) -> Result<Schema, ConnectorError> {
        let path = format!("/subjects/{}/versions/latest", encode(subject));
        match self.get(path)? {
            Answer::Ok(value) => self.parse(&value, None),
            Answer::NotFound(said) => {
                let message = format!(
                    "subject \"{subject}\" is not in the schema registry {}: {said}",
                    self.endpoint
                );
                let hint = "schema_registry.subject names another; or declare the table's columns";
                Err(ConnectorError::configuration(
                    message,
                    Some(hint.to_string()),
                ))
            }
        }
    }

    /// Registers a schema under a subject, or finds it there; its id. Errors: it is not compatible with earlier
    /// versions, or not allowed.
    pub fn register(&self, subject: &str, kind: Kind, text: &str) -> Result<u32, ConnectorError> {
        let path = format!("/subjects/{}/versions", encode(subject));
        let body = json!({"schemaType": kind.as_str(), "schema": text});
        match self.http.ask(Method::POST, path, Some(body))? {
            Answer::Ok(value) => {
                id_of(&value).ok_or_else(|| self.unexpected("a registered schema"))
            }
            Answer::NotFound(said) => {
                let message = format!(
                    "subject \"{subject}\" cannot be registered in the schema registry {}: {said}",
                    self.endpoint
                );
                Err(ConnectorError::configuration(message, None))
            }
        }
    }

    fn get(&self, path: String) -> Result<Answer, ConnectorError> {
        self.http.ask(Method::GET, path, None)
    }

    fn parse(&self, value: &Value, id: Option<u32>) -> Result<Schema, ConnectorError> {
        let wrong = || self.unexpected("a schema");
        let text = value
            .get("schema")
            .and_then(Value::as_str)
            .ok_or_else(wrong)?;
        let kind = match value.get("schemaType") {
            None => Kind::Avro,
            Some(kind) => kind.as_str().and_then(Kind::parse).ok_or_else(wrong)?,
        };
        let mut references = Vec::new();
        self.add_references(value, &mut references, 0)?;
        Ok(Schema {
            id: id.or_else(|| id_of(value)).ok_or_else(wrong)?,
            kind,
            text: text.to_string(),
            references,
        })
    }

    /// Appends what the schema in `value` refers to, and before each what that refers to.
    fn add_references(
        &self,
        value: &Value,
        found: &mut Vec<(String, String)>,
        depth: usize,
    ) -> Result<(), ConnectorError> {
        let references = value.get("references").and_then(Value::as_array);
        for reference in references.into_iter().flatten() {
            let text = |key: &str| reference.get(key).and_then(Value::as_str);
            let version = reference.get("version").and_then(Value::as_u64);
            let (Some(name), Some(subject), Some(version)) =
                (text("name"), text("subject"), version)
            else {
                return Err(self.unexpected("a reference to a schema"));
            };
            if found.iter().any(|(known, _)| known == name) {
                continue;
            }
            if depth >= 16 || found.len() >= MAX_REFERENCES {
                let message = format!("schemas of \"{subject}\" refer to too many others");
                return Err(ConnectorError::configuration(message, None));
            }
            let path = format!("/subjects/{}/versions/{version}", encode(subject));
            let Answer::Ok(inner) = self.get(path)? else {
                let message = format!(
                    "version {version} of subject \"{subject}\", to which a schema refers, is not in the schema \
                     registry {}",
                    self.endpoint
                );
                return Err(ConnectorError::configuration(message, None));
            };
            self.add_references(&inner, found, depth + 1)?;
            let schema = inner.get("schema").and_then(Value::as_str);
            let schema = schema.ok_or_else(|| self.unexpected("a schema"))?;
            found.push((name.to_string(), schema.to_string()));
        }
        Ok(())
    }

    fn unexpected(&self, what: &str) -> ConnectorError {
        let message = format!(
            "what the schema registry {} answered is not {what}",
            self.endpoint
        );
        let hint =
            "schema_registry.endpoint must be the address of a registry with Confluent's interface";
        ConnectorError::configuration(message, Some(hint.to_string()))
    }
}

fn id_of(value: &Value) -> Option<u32> {
    value
        .get("id")?
        .as_u64()
        .and_then(|id| u32::try_from(id).ok())
}

/// A subject as part of a path.
fn encode(subject: &str) -> String {
    let mut encoded = String::with_capacity(subject.len());
    for byte in subject.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
