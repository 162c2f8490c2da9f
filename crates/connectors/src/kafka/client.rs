//! Questions to the brokers that are answered in bounded time, or else with a reason.

use std::io;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use thalweg_runtime::connector::ConnectorError;

use super::config::{Config, as_error};
use super::context::Context;

/// How long to wait for one answer before looking at what the client has to say.
const PATIENCE: Duration = Duration::from_millis(250);

/// A client that asks about a topic and reads none of it.
pub struct Lookup {
    config: Config,
    consumer: BaseConsumer<Context>,
}

/// What a broker says of a topic.
pub enum Topic {
    /// The numbers of its partitions, in order.
    Exists(Vec<i32>),
    Missing,
}

impl Lookup {
    pub fn new(
        table: &str,
        config: &Config,
        client: &ClientConfig,
    ) -> Result<Self, ConnectorError> {
        let context = Context::new(table, &config.bootstrap);
        let consumer = client
            .create_with_context(context)
            .map_err(|e| cannot_create(config, &e))?;
        Ok(Self {
            config: config.clone(),
            consumer,
        })
    }

    /// The partitions of the topic. Errors: there is no such topic, or none that may be read, or nobody who knows.
    pub fn partitions(&self) -> Result<Vec<i32>, ConnectorError> {
        match self.topic()? {
            Topic::Exists(partitions) => Ok(partitions),
            Topic::Missing => {
                let Config {
                    topic, bootstrap, ..
                } = &self.config;
                let message = format!("topic \"{topic}\" does not exist at {bootstrap}");
                Err(ConnectorError::configuration(message, None))
            }
        }
    }

    pub fn topic(&self) -> Result<Topic, ConnectorError> {
        let name = &self.config.topic;
        self.ask(|patience| {
            let metadata = self.consumer.fetch_metadata(Some(name), patience)?;
            let topic = metadata.topics().iter().find(|t| t.name() == name);
            let error = topic.and_then(|t| t.error()).map(RDKafkaErrorCode::from);
            match (topic, error) {
                (
                    _,
                    Some(
                        RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic,
                    ),
                ) => Ok(Topic::Missing),
                (_, Some(code)) => Err(KafkaError::MetadataFetch(code)),
                (None, None) => Ok(Topic::Missing),
                (Some(topic), None) => {
                    let mut numbers: Vec<i32> = topic.partitions().iter().map(|p| p.id()).collect();
                    numbers.sort_unstable();
                    Ok(Topic::Exists(numbers))
                }
            }
        })
    }

    /// Waits a little for a topic that is to be written, which the brokers may be creating.
    pub fn wait_for_topic(&self) -> Result<(), ConnectorError> {
        const ROUNDS: usize = 8;
        for _ in 0..ROUNDS {
            if matches!(self.topic()?, Topic::Exists(_)) {
                return Ok(());
            }
            drop(self.consumer.poll(PATIENCE));
        }
        self.partitions().map(drop)
    }

    /// The offset of the oldest record of a partition, and the one behind its newest.
    pub fn ends(&self, partition: i32) -> Result<(i64, i64), ConnectorError> {
        let name = &self.config.topic;
        self.ask(|patience| self.consumer.fetch_watermarks(name, partition, patience))
    }

    /// What the group has committed for a partition.
    pub fn committed(&self, partition: i32) -> Result<Option<i64>, ConnectorError> {
        self.ask(|patience| {
            let mut asked = TopicPartitionList::new();
            asked.add_partition(&self.config.topic, partition);
            let found = self.consumer.committed_offsets(asked, patience)?;
            let elements = found.elements();
            let Some(element) = elements.first() else {
                return Ok(None);
            };
            element.error()?;
            Ok(match element.offset() {
                Offset::Offset(offset) => Some(offset),
                _ => None,
            })
        })
    }

    /// Asks again and again until there is an answer, a reason why there will be none, or no time left.
    fn ask<T>(
        &self,
        question: impl Fn(Duration) -> Result<T, KafkaError>,
    ) -> Result<T, ConnectorError> {
        let mut left = self.config.connect_timeout;
        loop {
            let error = match question(PATIENCE) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            left = left.saturating_sub(PATIENCE);
            // What went wrong with a connection is told to those who poll. An answer that came at once but is not
            // one yet (an election) is not asked for in a circle.
            let at_once = error.rdkafka_error_code() != Some(RDKafkaErrorCode::OperationTimedOut);
            let pause = if at_once { PATIENCE } else { Duration::ZERO };
            if self.consumer.poll(pause).is_some() {
                while self.consumer.poll(Duration::ZERO).is_some() {}
            }
            let trouble = self.consumer.context().trouble();
            if let Some(refused) = refusal(&self.config, &error, trouble.as_ref()) {
                return Err(refused);
            }
            if left.is_zero() {
                return Err(unreachable(&self.config, &error, trouble));
            }
        }
    }
}

/// Errors that no further attempt will mend.
fn refusal(
    config: &Config,
    error: &KafkaError,
    trouble: Option<&(RDKafkaErrorCode, String)>,
) -> Option<ConnectorError> {
    use RDKafkaErrorCode as Code;
    let (topic, at) = (&config.topic, &config.bootstrap);
    let refuse = |message: String, hint: &str| {
        Some(ConnectorError::configuration(
            message,
            Some(hint.to_string()),
        ))
    };
    match error.rdkafka_error_code() {
        Some(Code::TopicAuthorizationFailed) => {
            let message =
                format!("topic \"{topic}\" at {at} may not be read or written by this user");
            return refuse(
                message,
                "ask for access, or set auth.username to another user",
            );
        }
        Some(Code::GroupAuthorizationFailed) => {
            let message =
                format!("the group of topic \"{topic}\" at {at} may not be used by this user");
            return refuse(message, "ask for access, or choose another source.group_id");
        }
        Some(Code::InvalidTopic) => {
            return refuse(
                format!("\"{topic}\" is no name of a topic at {at}"),
                "check the option 'topic'",
            );
        }
        _ => {}
    }
    match trouble {
        Some((Code::Authentication | Code::SaslAuthenticationFailed, reason)) => refuse(
            format!(
                "the brokers at {at} refuse the authentication: {}",
                plain(reason)
            ),
            "check auth.mechanism, auth.username and auth.password",
        ),
        Some((Code::SSL, reason)) => refuse(
            format!("no secure connection to {at}: {}", plain(reason)),
            "check auth.protocol and the options kafka.ssl.*",
        ),
        _ => None,
    }
}

fn unreachable(
    config: &Config,
    error: &KafkaError,
    trouble: Option<(RDKafkaErrorCode, String)>,
) -> ConnectorError {
    let within = config.connect_timeout.as_secs_f64();
    let reason = match trouble {
        Some((_, reason)) => plain(&reason).to_string(),
        None => error.to_string(),
    };
    let at = &config.bootstrap;
    let what = format!("no broker at {at} has answered within {within} s");
    ConnectorError::io(what, io::Error::new(io::ErrorKind::TimedOut, reason))
}

/// A reason without the client's own name for the connection in front of it.
pub fn plain(reason: &str) -> &str {
    match reason.split_once("]: ") {
        Some((connection, rest)) if connection.starts_with('[') => rest,
        _ => reason,
    }
}

pub fn cannot_create(config: &Config, error: &KafkaError) -> ConnectorError {
    let message = format!("no client for {}: {error}", config.bootstrap);
    match error {
        KafkaError::ClientConfig(_, message, key, _) => {
            as_error(super::config::client_fault(key, message))
        }
        _ => ConnectorError::configuration(message, None),
    }
}
