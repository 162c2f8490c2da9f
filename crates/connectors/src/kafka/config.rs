//! From options to what a table asks of the client.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow::datatypes::{DataType, Schema};
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use thalweg_dataflow::options::{Direction, OptionFault, Options, TableCheck};
use thalweg_runtime::connector::ConnectorError;

use super::declare as name;

/// Settings of the client that are decided here: what is read, from where, and what counts as written.
const OURS: &[(&str, &str)] = &[
    ("bootstrap.servers", "use 'bootstrap_servers'"),
    ("metadata.broker.list", "use 'bootstrap_servers'"),
    ("group.id", "use 'source.group_id'"),
    (
        "auto.offset.reset",
        "use 'source.offset' and 'fail_on_data_loss'",
    ),
    ("isolation.level", "use 'source.read_mode'"),
    (
        "enable.auto.commit",
        "offsets are committed with the state of the job",
    ),
    (
        "enable.auto.offset.store",
        "offsets are committed with the state of the job",
    ),
    (
        "auto.commit.enable",
        "offsets are committed with the state of the job",
    ),
    ("enable.partition.eof", "it is always on"),
    (
        "group.instance.id",
        "partitions are assigned, no group is joined",
    ),
    (
        "partition.assignment.strategy",
        "partitions are assigned, no group is joined",
    ),
    (
        "group.protocol",
        "partitions are assigned, no group is joined",
    ),
    (
        "group.remote.assignor",
        "partitions are assigned, no group is joined",
    ),
    (
        "transactional.id",
        "transactions come with sink.commit_mode = 'exactly_once', which is not there yet",
    ),
    (
        "enable.idempotence",
        "it is always on, so that nothing is written twice by a retry",
    ),
    (
        "acks",
        "every record is acknowledged by all replicas in sync",
    ),
    (
        "request.required.acks",
        "every record is acknowledged by all replicas in sync",
    ),
    (
        "partitioner",
        "a key goes to the partition that other clients choose for it",
    ),
    (
        "delivery.report.only.error",
        "every delivery is accounted for",
    ),
    ("log.queue", "the log goes to the log of thalweg"),
    (
        "plugin.library.paths",
        "code is not loaded into this process",
    ),
];

/// Where a job without state begins to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    Earliest,
    Latest,
    Group,
}

/// What reading and writing have in common.
#[derive(Debug, Clone)]
pub struct Config {
    pub bootstrap: String,
    pub topic: String,
    pub connect_timeout: Duration,
    /// Settings of the client that reading and writing share.
    client: BTreeMap<String, String>,
}

#[derive(Debug, Clone)]
pub struct SourceConfig {
    pub common: Config,
    pub start_at: StartAt,
    pub is_bounded: bool,
    /// `None`: partitions are listed once.
    pub discovery_interval: Option<Duration>,
    pub fails_on_loss: bool,
    /// In whose name offsets are committed; `None`: in nobody's.
    pub group: Option<String>,
    read_mode: String,
}

impl Config {
    fn parse(options: &Options) -> Result<Self, OptionFault> {
        let text = |name: &str| options.text(name).unwrap_or_default().to_string();
        let topic = text(name::TOPIC);
        check_topic(&topic)?;
        let bootstrap = text(name::BOOTSTRAP);
        check_bootstrap(&bootstrap)?;
        let mut client = given_to_client(options)?;
        authentication(options, &mut client)?;
        Ok(Self {
            bootstrap,
            topic,
            connect_timeout: duration(options, name::CONNECT_TIMEOUT),
            client,
        })
    }

    /// The client's configuration: `defaults`, over them what the table says, over that `decided`.
    pub fn client(&self, defaults: &[(&str, &str)], decided: &[(&str, &str)]) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (key, value) in defaults {
            config.set(*key, *value);
        }
        for (key, value) in &self.client {
            config.set(key, value);
        }
        for (key, value) in decided {
            config.set(*key, *value);
        }
        config.set("bootstrap.servers", &self.bootstrap);
        config
    }

    /// What the table itself says of a setting of the client.
    pub fn given(&self, key: &str) -> Option<&str> {
        self.client.get(key).map(String::as_str)
    }
}

impl SourceConfig {
    /// `table`: names the group where there is a prefix only.
    pub fn parse(options: &Options, table: &str) -> Result<Self, OptionFault> {
        let prefixed = options
            .text(name::GROUP_ID_PREFIX)
            .map(|prefix| format!("{prefix}-{table}"));
        let group = options
            .text(name::GROUP_ID)
            .map(str::to_string)
            .or(prefixed);
        let start_at = match options.text(name::OFFSET) {
            Some("earliest") => StartAt::Earliest,
            Some("group") => StartAt::Group,
            _ => StartAt::Latest,
        };
        if group.as_deref() == Some("") {
            return Err(fault(name::GROUP_ID, "the group's name is empty", None));
        }
        if start_at == StartAt::Group && group.is_none() {
            let message = "source.offset = 'group' needs the option 'source.group_id'";
            return Err(fault(name::OFFSET, message, None));
        }
        let discovery = duration(options, name::DISCOVERY);
        let read_mode = options.text(name::READ_MODE).unwrap_or("read_uncommitted");
        Ok(Self {
            common: Config::parse(options)?,
            start_at,
            is_bounded: options.text(name::BOUNDED).is_some(),
            discovery_interval: (!discovery.is_zero()).then_some(discovery),
            fails_on_loss: options.bool(name::FAIL_ON_LOSS).unwrap_or(true),
            group,
            read_mode: read_mode.to_string(),
        })
    }

    /// The configuration of a client for `n_partitions`.
    pub fn client(&self, n_partitions: usize) -> ClientConfig {
        // What one subtask may hold of records that it has not asked for yet, all its partitions together, in KiB.
        const BUFFER: usize = 64 << 10;
        const LEAST: usize = 1 << 10;
        let buffer = (BUFFER / n_partitions.max(1)).max(LEAST).to_string();
        self.common.client(
            &[
                ("queued.max.messages.kbytes", &buffer),
                // A partition whose buffer was full is fetched again soon, and no fetch waits long for silent ones.
                ("fetch.queue.backoff.ms", "20"),
                ("fetch.wait.max.ms", "100"),
                // An outage ends when it ends, not up to ten seconds later.
                ("reconnect.backoff.max.ms", "1000"),
                ("topic.metadata.propagation.max.ms", "5000"),
            ],
            &[
                // A client without a group cannot be assigned partitions.
                ("group.id", self.group.as_deref().unwrap_or("thalweg")),
                ("enable.auto.commit", "false"),
                ("enable.auto.offset.store", "false"),
                ("auto.offset.reset", "error"),
                ("enable.partition.eof", "true"),
                ("isolation.level", &self.read_mode),
            ],
        )
    }
}

/// What writing asks of the client.
#[derive(Debug, Clone)]
pub struct SinkConfig {
    pub common: Config,
    pub key_field: Option<String>,
    pub timestamp_field: Option<String>,
    pub writes_tombstones: bool,
}

impl SinkConfig {
    pub fn parse(options: &Options) -> Result<Self, OptionFault> {
        Ok(Self {
            common: Config::parse(options)?,
            key_field: options.text(name::KEY_FIELD).map(str::to_string),
            timestamp_field: options.text(name::TIMESTAMP_FIELD).map(str::to_string),
            writes_tombstones: options.bool(name::TOMBSTONES).unwrap_or(false),
        })
    }

    pub fn producer(&self) -> ClientConfig {
        self.common.client(
            &[
                // What a subtask may have under way; then it waits, and so do its sources.
                ("queue.buffering.max.kbytes", "131072"),
                // Whether a record is too large is for the topic to say.
                ("message.max.bytes", "67108864"),
                ("reconnect.backoff.max.ms", "1000"),
            ],
            &[
                ("enable.idempotence", "true"),
                ("acks", "all"),
                // As the Java client does, so that tables written by both are partitioned alike.
                ("partitioner", "murmur2_random"),
            ],
        )
    }

    /// The configuration of a client that asks for the topic, which brokers that are set so then create.
    pub fn lookup(&self) -> ClientConfig {
        self.common
            .client(&[], &[("allow.auto.create.topics", "true")])
    }
}

/// Checks what single options cannot say, the names and values of the client's settings among it.
pub fn check(table: &TableCheck<'_>) -> Result<(), OptionFault> {
    match table.direction {
        Direction::Source => {
            let config = SourceConfig::parse(table.options, "")?;
            check_client(table.options, &config.client(1))
        }
        Direction::Sink => {
            let config = SinkConfig::parse(table.options)?;
            check_sink(table.options, table.schema)?;
            check_client(table.options, &config.producer())
        }
    }
}

fn check_sink(options: &Options, schema: &Schema) -> Result<(), OptionFault> {
    if options.text(name::COMMIT_MODE) == Some("exactly_once") {
        let message = "sink.commit_mode = 'exactly_once' is not there yet";
        let hint =
            "leave it out: records are written at least once, and a key makes repeats harmless";
        return Err(fault(name::COMMIT_MODE, message, Some(hint)));
    }
    if let Some(column) = options.text(name::KEY_FIELD) {
        let data_type = column_type(name::KEY_FIELD, column, schema)?;
        if data_type.is_nested() {
            let message = format!("column \"{column}\" is nested, and cannot be a record's key");
            return Err(fault(name::KEY_FIELD, message, None));
        }
    }
    if let Some(column) = options.text(name::TIMESTAMP_FIELD) {
        let data_type = column_type(name::TIMESTAMP_FIELD, column, schema)?;
        if !matches!(data_type, DataType::Timestamp(..)) {
            let message = format!("column \"{column}\" is no TIMESTAMP");
            return Err(fault(name::TIMESTAMP_FIELD, message, None));
        }
    }
    Ok(())
}

fn column_type<'a>(
    option: &str,
    column: &str,
    schema: &'a Schema,
) -> Result<&'a DataType, OptionFault> {
    schema
        .field_with_name(column)
        .map(|field| field.data_type())
        .map_err(|_| fault(option, format!("column \"{column}\" does not exist"), None))
}

/// A name that a broker would refuse is refused with its reason.
fn check_topic(topic: &str) -> Result<(), OptionFault> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let message = match topic {
        "" => "the topic's name is empty".to_string(),
        "." | ".." => format!("a topic cannot be called '{topic}'"),
        _ if topic.len() > 249 => "a topic's name has at most 249 characters".to_string(),
        _ => match topic.chars().find(|c| !is_legal(*c)) {
            None => return Ok(()),
            Some(c) => format!("a topic's name cannot have the character {c:?}"),
        },
    };
    Err(fault(
        name::TOPIC,
        message,
        Some("a name has letters, digits, '.', '_' and '-'"),
    ))
}

fn check_bootstrap(servers: &str) -> Result<(), OptionFault> {
    let has_host = |server: &str| !server.trim().is_empty() && !server.contains('\0');
    if servers.split(',').all(has_host) {
        return Ok(());
    }
    let message = format!("'{}' is no list of brokers", servers.escape_default());
    Err(fault(
        name::BOOTSTRAP,
        message,
        Some("for example 'localhost:9092'"),
    ))
}

/// Settings that the table gives for the client, one by one and as a list.
fn given_to_client(options: &Options) -> Result<BTreeMap<String, String>, OptionFault> {
    let mut client = BTreeMap::new();
    let list = options.text(name::CLIENT_CONFIGS).unwrap_or_default();
    for pair in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            let message = format!("'{pair}' is no setting");
            let hint = "write name=value, with commas between them";
            return Err(fault(name::CLIENT_CONFIGS, message, Some(hint)));
        };
        let (key, value) = (key.trim(), value.trim());
        check_ours(name::CLIENT_CONFIGS, key)?;
        client.insert(key.to_string(), value.to_string());
    }
    for (option, value) in options.iter() {
        if let Some(key) = option.strip_prefix(name::CLIENT) {
            check_ours(option, key)?;
            client.insert(key.to_string(), value.to_string());
        }
    }
    Ok(client)
}

fn check_ours(option: &str, key: &str) -> Result<(), OptionFault> {
    match OURS.iter().find(|(ours, _)| *ours == key) {
        None => Ok(()),
        Some((_, hint)) => {
            let message = format!("the client's setting '{key}' is decided by thalweg");
            Err(fault(option, message, Some(hint)))
        }
    }
}

fn authentication(
    options: &Options,
    client: &mut BTreeMap<String, String>,
) -> Result<(), OptionFault> {
    let is_sasl = options.text(name::AUTH) == Some("sasl");
    let mut set = |key: &str, value: &str| client.insert(key.to_string(), value.to_string());
    match options.text(name::PROTOCOL) {
        Some(protocol) if is_sasl != protocol.starts_with("SASL") => {
            let message = format!(
                "auth.protocol = '{protocol}' contradicts auth.type = '{}'",
                options.text(name::AUTH).unwrap_or("none")
            );
            return Err(fault(name::PROTOCOL, message, None));
        }
        Some(protocol) => drop(set("security.protocol", protocol)),
        None if is_sasl => drop(set("security.protocol", "SASL_SSL")),
        None => {}
    }
    if !is_sasl {
        let given = [name::MECHANISM, name::USERNAME, name::PASSWORD];
        let stray = given.into_iter().find(|o| options.text(o).is_some());
        return match stray {
            None => Ok(()),
            Some(option) => Err(fault(
                option,
                format!("option '{option}' has no effect without auth.type = 'sasl'"),
                None,
            )),
        };
    }
    let Some(mechanism) = options.text(name::MECHANISM) else {
        let message = "auth.type = 'sasl' needs the option 'auth.mechanism'";
        return Err(fault(name::AUTH, message, None));
    };
    set("sasl.mechanism", mechanism);
    if mechanism == "OAUTHBEARER" {
        return Ok(());
    }
    for (option, key) in [
        (name::USERNAME, "sasl.username"),
        (name::PASSWORD, "sasl.password"),
    ] {
        let Some(value) = options.text(option) else {
            let message = format!("auth.mechanism = '{mechanism}' needs the option '{option}'");
            return Err(fault(name::MECHANISM, message, None));
        };
        set(key, value);
    }
    Ok(())
}

/// Asks the client itself whether it knows the settings.
fn check_client(options: &Options, config: &ClientConfig) -> Result<(), OptionFault> {
    match config.create_native_config() {
        Ok(_) => Ok(()),
        Err(KafkaError::ClientConfig(_, message, key, _)) => {
            let mut fault = client_fault(&key, &message);
            if options.text(&format!("{}{key}", name::CLIENT)).is_none() {
                fault.option = Some(name::CLIENT_CONFIGS.to_string());
            }
            Err(fault)
        }
        Err(other) => Err(fault(name::CLIENT_CONFIGS, other.to_string(), None)),
    }
}

/// What the client says of one of its settings.
pub fn client_fault(key: &str, message: &str) -> OptionFault {
    let message = format!("the client's setting '{key}': {}", lower_first(message));
    fault(&format!("{}{key}", name::CLIENT), message, None)
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_lowercase);
    first.into_iter().flatten().chain(chars).collect()
}

fn duration(options: &Options, name: &str) -> Duration {
    let nanos = options.duration(name).unwrap_or_default();
    Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

fn fault(option: &str, message: impl Into<String>, hint: Option<&str>) -> OptionFault {
    OptionFault {
        option: Some(option.to_string()),
        message: message.into(),
        hint: hint.map(str::to_string),
    }
}

/// A fault that planning should have found.
pub fn as_error(fault: OptionFault) -> ConnectorError {
    ConnectorError::configuration(fault.message, fault.hint)
}
