//! What has become of the records that were handed to the client.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::ProducerContext;
use thalweg_runtime::connector::ConnectorError;
use tokio::sync::Notify;

use super::super::context::Context;

/// When to look again where no delivery was announced.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// A producer's records under way, and the first that was not delivered.
pub struct Deliveries {
    client: Context,
    topic: String,
    n_under_way: AtomicUsize,
    changed: Notify,
    failure: Mutex<Option<Failure>>,
}

/// A record that was not delivered, and why.
#[derive(Debug, Clone)]
struct Failure {
    code: Option<RDKafkaErrorCode>,
    message: String,
}

impl Deliveries {
    pub fn new(client: Context, topic: &str) -> Self {
        Self {
            client,
            topic: topic.to_string(),
            n_under_way: AtomicUsize::new(0),
            changed: Notify::new(),
            failure: Mutex::default(),
        }
    }

    /// A record is about to be handed over.
    pub fn begin(&self) {
        self.n_under_way.fetch_add(1, Ordering::AcqRel);
    }

    /// The record was not taken.
    pub fn take_back(&self) {
        self.n_under_way.fetch_sub(1, Ordering::AcqRel);
    }

    /// Errors: a record was not delivered.
    pub fn check(&self) -> Result<(), ConnectorError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map_or(Ok(()), |f| Err(f.error()))
    }

    /// Waits until something has been delivered, or a little.
    pub async fn progress(&self) -> Result<(), ConnectorError> {
        let _ = tokio::time::timeout(LOOK_AGAIN, self.changed.notified()).await;
        self.check()
    }

    /// Waits until all records are acknowledged. The client gives each up in the end (`kafka.message.timeout.ms`).
    pub async fn all(self: Arc<Self>) -> Result<(), ConnectorError> {
        while self.n_under_way.load(Ordering::Acquire) > 0 {
            self.progress().await?;
        }
        self.check()
    }

    /// The client did not take a record.
    pub fn refused(&self, error: &KafkaError, n_bytes: usize) -> ConnectorError {
        let failure = Failure {
            code: error.rdkafka_error_code(),
            message: format!(
                "topic \"{}\": a record of {n_bytes} bytes was not taken: {}",
                self.topic,
                reason(error)
            ),
        };
        failure.error()
    }
}

impl Failure {
    fn error(&self) -> ConnectorError {
        use RDKafkaErrorCode as Code;
        let hint = match self.code {
            Some(Code::MessageSizeTooLarge) => {
                "raise max.message.bytes of the topic, and kafka.message.max.bytes of the table if that is given"
            }
            Some(Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed) => {
                "ask for access to the topic, or set auth.username to another user"
            }
            Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition) => {
                "create the topic"
            }
            Some(Code::InvalidRecord) => "a topic that is compacted takes records with a key only",
            // Whatever is wrong now may be well later.
            _ => {
                let source = io::Error::other("it was given up");
                return ConnectorError::io(self.message.clone(), source);
            }
        };
        ConnectorError::configuration(self.message.clone(), Some(hint.to_string()))
    }
}

/// An error's own words, without the library's about where it happened.
fn reason(error: &KafkaError) -> String {
    error
        .rdkafka_error_code()
        .map_or_else(|| error.to_string(), |code| code.to_string())
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, fac: &str, message: &str) {
        self.client.log(level, fac, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.client.error(error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(_) => self.client.is_up_again(),
            Err((error, message)) => {
                let bytes = message.payload().map_or(0, <[u8]>::len);
                let (partition, why) = (message.partition(), reason(error));
                let failure = Failure {
                    code: error.rdkafka_error_code(),
                    message: format!(
                        "topic \"{}\", partition {partition}: a record of {bytes} bytes was not delivered: {why}",
                        self.topic
                    ),
                };
                let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(failure);
            }
        }
        self.n_under_way.fetch_sub(1, Ordering::AcqRel);
        self.changed.notify_one();
    }
}
