//! The options of the connector and what surrounds a record, as the planner and the manual see them.

use thalweg_dataflow::options::{OptionDecl, OptionKind};

pub const BOOTSTRAP: &str = "bootstrap_servers";
pub const TOPIC: &str = "topic";
pub const CONNECT_TIMEOUT: &str = "connect_timeout";
pub const OFFSET: &str = "source.offset";
pub const READ_MODE: &str = "source.read_mode";
pub const GROUP_ID: &str = "source.group_id";
pub const GROUP_ID_PREFIX: &str = "source.group_id_prefix";
pub const BOUNDED: &str = "source.bounded";
pub const DISCOVERY: &str = "partition_discovery_interval";
pub const FAIL_ON_LOSS: &str = "fail_on_data_loss";
pub const KEY_FIELD: &str = "sink.key_field";
pub const TIMESTAMP_FIELD: &str = "sink.timestamp_field";
pub const COMMIT_MODE: &str = "sink.commit_mode";
pub const TOMBSTONES: &str = "sink.tombstones";
pub const AUTH: &str = "auth.type";
pub const MECHANISM: &str = "auth.mechanism";
pub const PROTOCOL: &str = "auth.protocol";
pub const USERNAME: &str = "auth.username";
pub const PASSWORD: &str = "auth.password";
pub const CLIENT_CONFIGS: &str = "client_configs";
/// What options of the client begin with.
pub const CLIENT: &str = "kafka.";

pub const OPTIONS: &[OptionDecl] = &[
    OptionDecl::required(
        BOOTSTRAP,
        OptionKind::Text,
        "Brokers to ask first, as `host:port`, with commas between them.",
    ),
    OptionDecl::required(TOPIC, OptionKind::Text, "The topic."),
    OptionDecl::optional(
        OFFSET,
        OptionKind::Choice(&["earliest", "latest", "group"]),
        Some("latest"),
        "Where a job that has no state begins to read: at the oldest record, behind the newest, or where the group \
         stands (and at the oldest record of a partition for which it has committed nothing).",
    ),
    OptionDecl::optional(
        READ_MODE,
        OptionKind::Choice(&["read_uncommitted", "read_committed"]),
        Some("read_uncommitted"),
        "Whether records of transactions are read before these are committed, and of those that are aborted.",
    ),
    OptionDecl::optional(
        GROUP_ID,
        OptionKind::Text,
        None,
        "The consumer group in whose name offsets are committed, for others to see how far reading has come. No member \
         joins it, so that it never rebalances; where a job goes on is decided by its state.",
    ),
    OptionDecl::optional(
        GROUP_ID_PREFIX,
        OptionKind::Text,
        None,
        "Makes the group's name where `source.group_id` does not give it: the prefix, `-` and the table's name.",
    ),
    OptionDecl::optional(
        BOUNDED,
        OptionKind::Choice(&["latest"]),
        None,
        "Ends reading where the topic ended when the job began. Without it reading never ends.",
    ),
    OptionDecl::optional(
        DISCOVERY,
        OptionKind::Duration,
        Some("30 seconds"),
        "How often to look for partitions that were added; they are read from their beginning. 0: never.",
    ),
    OptionDecl::optional(
        FAIL_ON_LOSS,
        OptionKind::Bool,
        Some("true"),
        "Whether the job fails when records are gone that it was to read next (by retention, or because the topic was \
         deleted and created again). With `false` it goes on at the oldest record that is left, and counts those lost.",
    ),
    OptionDecl::optional(
        KEY_FIELD,
        OptionKind::Text,
        None,
        "The column whose value is the record's key, as text. Without it, the key is a JSON object of the table's \
         PRIMARY KEY or of the result's key, where there is one.",
    ),
    OptionDecl::optional(
        TIMESTAMP_FIELD,
        OptionKind::Text,
        None,
        "The column, of a timestamp type, that is the record's timestamp. Without it, that is the time of writing.",
    ),
    OptionDecl::optional(
        COMMIT_MODE,
        OptionKind::Choice(&["at_least_once", "exactly_once"]),
        Some("at_least_once"),
        "What a reader of the topic sees when a job is restarted: every record at least once. `exactly_once` is not \
         there yet.",
    ),
    OptionDecl::optional(
        TOMBSTONES,
        OptionKind::Bool,
        Some("false"),
        "Whether a deletion is followed by a record with its key and no value, for topics that are compacted.",
    ),
    OptionDecl::optional(
        AUTH,
        OptionKind::Choice(&["none", "sasl"]),
        Some("none"),
        "Whether to authenticate.",
    ),
    OptionDecl::optional(
        MECHANISM,
        OptionKind::Choice(&["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]),
        None,
        "How, with `auth.type = 'sasl'`.",
    ),
    OptionDecl::optional(
        PROTOCOL,
        OptionKind::Choice(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]),
        None,
        "What the brokers speak. By default `SASL_SSL` with `auth.type = 'sasl'`, else `PLAINTEXT`.",
    ),
    OptionDecl::optional(USERNAME, OptionKind::Text, None, "For PLAIN and SCRAM."),
    OptionDecl::optional(PASSWORD, OptionKind::Text, None, "For PLAIN and SCRAM."),
    OptionDecl::optional(
        CONNECT_TIMEOUT,
        OptionKind::Duration,
        Some("10 seconds"),
        "How long to try to reach a broker when a job begins. One that is running waits for ever.",
    ),
    OptionDecl::optional(
        "kafka.*",
        OptionKind::Text,
        None,
        "Any setting of the client library under its own name, as in `kafka.compression.type = 'zstd'` or \
         `kafka.ssl.ca.location = '/etc/ca.pem'`: see librdkafka's CONFIGURATION.md. Those that decide what is read \
         or acknowledged are refused.",
    ),
    OptionDecl::optional(
        CLIENT_CONFIGS,
        OptionKind::Text,
        None,
        "The same as a list: `'linger.ms=20,compression.type=zstd'`.",
    ),
];

pub const METADATA: &[(&str, &str, &str)] = &[
    (
        "key",
        "BYTEA",
        "The record's key, null where it has none. As TEXT it has to be UTF-8.",
    ),
    (
        "headers",
        "STRUCT<key TEXT, value BYTEA>[]",
        "The record's headers in their order; a name may be there more than once.",
    ),
    (
        "timestamp",
        "TIMESTAMP WITH TIME ZONE",
        "The record's timestamp, null in topics that keep none.",
    ),
    (
        "offset",
        "BIGINT",
        "The record's position in its partition.",
    ),
    ("offset_id", "BIGINT", "Another name of `offset`."),
    ("partition", "INT", "The number of the record's partition."),
    ("topic", "TEXT", "The topic."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_values_of_their_options() {
        for option in OPTIONS {
            let default = option.default.map_or(Ok(()), |d| option.kind.check(d));
            assert_eq!(default, Ok(()), "{}", option.name);
        }
    }
}
