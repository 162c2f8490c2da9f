//! What a client of the library tells while it works: its log, its errors, and what they mean for us.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rdkafka::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::topic_partition_list::TopicPartitionList;
use rdkafka::types::RDKafkaErrorCode;

/// Shared by a client and those who use it.
pub struct Context {
    table: String,
    bootstrap: String,
    /// The last error that the client had as a whole, with its reason.
    trouble: Mutex<Option<(RDKafkaErrorCode, String)>>,
    is_down: AtomicBool,
    /// The topic's identity as the cluster gives it, and how often it has changed.
    topic_id: Mutex<Option<String>>,
    n_recreated: AtomicU64,
}

impl Context {
    pub fn new(table: &str, bootstrap: &str) -> Self {
        Self {
            table: table.to_string(),
            bootstrap: bootstrap.to_string(),
            trouble: Mutex::default(),
            is_down: AtomicBool::new(false),
            topic_id: Mutex::default(),
            n_recreated: AtomicU64::new(0),
        }
    }

    pub fn trouble(&self) -> Option<(RDKafkaErrorCode, String)> {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.clone()
    }

    /// Whether no broker can be reached.
    pub fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Acquire)
    }

    pub fn is_up_again(&self) {
        if self.is_down.swap(false, Ordering::AcqRel) {
            tracing::info!(table = %self.table, "the brokers at {} answer again", self.bootstrap);
        }
    }

    /// How often the topic has been deleted and created again since the client began.
    pub fn n_recreated(&self) -> u64 {
        self.n_recreated.load(Ordering::Acquire)
    }

    /// Reads the one line of the library's log that says that a topic's identity is another one: nothing else that a
    /// client is told does, and fetching goes on at the old offset.
    fn notice_recreated(&self, line: &str) {
        let Some((_, ids)) = line.split_once(" changed id from ") else {
            return;
        };
        let Some((_, id)) = ids.trim().split_once(" to ") else {
            return;
        };
        let mut known = self.topic_id.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.replace(id.to_string());
        if before.is_some_and(|before| before != id) {
            self.n_recreated.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn went_down(&self, reason: &str) {
        if !self.is_down.swap(true, Ordering::AcqRel) {
            let (table, at) = (&self.table, &self.bootstrap);
            tracing::warn!(%table, "no broker at {at} can be reached, waiting for one: {reason}");
        }
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, fac: &str, message: &str) {
        self.notice_recreated(message);
        let table = &self.table;
        match level {
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error
            | RDKafkaLogLevel::Warning
            | RDKafkaLogLevel::Notice => tracing::debug!(%table, "{fac}: {message}"),
            RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => {
                tracing::trace!(%table, "{fac}: {message}");
            }
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let Some(code) = error.rdkafka_error_code() else {
            return;
        };
        match code {
            // That a partition has been read to its end is news for its reader only.
            RDKafkaErrorCode::PartitionEOF => return,
            RDKafkaErrorCode::AllBrokersDown => return self.went_down(&self.last_reason(reason)),
            _ => {}
        }
        tracing::debug!(table = %self.table, "{code}: {reason}");
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = Some((code, reason.to_string()));
    }
}

impl Context {
    /// Why the last broker went away, which says more than that none is left.
    fn last_reason(&self, otherwise: &str) -> String {
        self.trouble()
            .map_or_else(|| otherwise.to_string(), |(_, reason)| reason)
    }
}

impl ConsumerContext for Context {
    fn commit_callback(&self, result: KafkaResult<()>, _: &TopicPartitionList) {
        if let Err(error) = result {
            tracing::warn!(table = %self.table, "offsets could not be committed to the group: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_with_another_identity_is_another_topic() {
        let context = Context::new("t", "localhost:9092");
        let log = |line: &str| context.log(RDKafkaLogLevel::Debug, "METADATA", line);
        log("[thrd:main]: Topic orders changed id from AAAAAAAAAAAAAAAAAAAAAA to f0o");
        log("[thrd:main]: Topic orders changed id from f0o to f0o");
        assert_eq!(context.n_recreated(), 0);
        log("[thrd:main]: Topic orders changed id from f0o to b4r");
        assert_eq!(context.n_recreated(), 1);
    }
}
