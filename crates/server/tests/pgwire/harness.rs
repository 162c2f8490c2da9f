//! A server of one's own, and connections to it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt, stream};
use thalweg_server::engine::{Engine, EngineOptions};
use thalweg_server::pgwire::Server;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::error::DbError;
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage};

/// Whatever takes longer will not come.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Served {
    pub engine: Arc<Engine>,
    pub address: SocketAddr,
    pub shutdown: watch::Sender<bool>,
    pub server: JoinHandle<()>,
}

/// A connection, and what the server told it beside answers.
pub struct Connected {
    pub client: Client,
    notices: Arc<Mutex<Vec<String>>>,
    pub driver: JoinHandle<()>,
}

/// Sources and sinks for queries: five rows, rows without end, and sinks that forget.
const TABLES: &str = "
    SET pipeline.update_aggregate_flush_interval = '20 milliseconds';
    CREATE TABLE few WITH (connector = 'impulse', event_rate = '100000', message_count = 5);
    CREATE TABLE ticks WITH (connector = 'impulse', event_rate = '1000');
    CREATE TABLE nowhere (n BIGINT UNSIGNED) WITH (connector = 'blackhole');
    CREATE TABLE small (n SMALLINT) WITH (connector = 'blackhole');";

impl Served {
    pub async fn start() -> Self {
        let engine = Arc::new(Engine::new(EngineOptions {
            // Rows then come in the order of their making.
            parallelism: Some(1),
            ..EngineOptions::default()
        }));
        let address = "127.0.0.1:0".parse().unwrap();
        let server = Server::bind(address, engine.clone()).await.unwrap();
        let address = server.address().unwrap();
        let shutdown = watch::Sender::new(false);
        let server = tokio::spawn(server.run(shutdown.subscribe()));
        Self {
            engine,
            address,
            shutdown,
            server,
        }
    }

    /// With the tables, and a connection that made them.
    pub async fn with_tables() -> (Self, Connected) {
        let served = Self::start().await;
        let connected = served.connect().await;
        connected.client.batch_execute(TABLES).await.unwrap();
        (served, connected)
    }

    pub fn config(&self) -> String {
        format!("host=127.0.0.1 port={} user=tester", self.address.port())
    }

    pub async fn connect(&self) -> Connected {
        let (client, mut connection) = tokio_postgres::connect(&self.config(), NoTls)
            .await
            .unwrap();
        let notices = Arc::new(Mutex::new(Vec::new()));
        let heard = notices.clone();
        let driver = tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notice(notice) = message {
                    let text = format!("{}: {}", notice.severity(), notice.message());
                    heard.lock().unwrap().push(text);
                }
            }
        });
        Connected {
            client,
            notices,
            driver,
        }
    }

    /// Waits until the list of jobs is as wished for.
    pub async fn until_jobs(&self, what: &str, wished: impl Fn(&[String]) -> bool) {
        let mut tick = tokio::time::interval(Duration::from_millis(5));
        let waiting = async {
            loop {
                tick.tick().await;
                if wished(&self.jobs()) {
                    return;
                }
            }
        };
        let came = tokio::time::timeout(PATIENCE, waiting).await;
        came.unwrap_or_else(|_| panic!("{what}: jobs are {:?}", self.jobs()));
    }

    /// `name state` of each job.
    pub fn jobs(&self) -> Vec<String> {
        let jobs = self.engine.jobs().list();
        jobs.iter()
            .map(|job| format!("{} {}", job.name(), job.state().as_str()))
            .collect()
    }
}

impl Connected {
    /// What was told since last asked.
    pub fn notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap())
    }

    /// The rows of a text of statements as text, `-` between columns, and the number after each tag as `#n`.
    pub async fn rows(&self, sql: &str) -> Vec<String> {
        shown(self.client.simple_query(sql).await.unwrap())
    }

    pub async fn refused(&self, sql: &str) -> DbError {
        let error = self.client.simple_query(sql).await.unwrap_err();
        error
            .as_db_error()
            .unwrap_or_else(|| panic!("{error}"))
            .clone()
    }
}

pub fn shown(messages: Vec<SimpleQueryMessage>) -> Vec<String> {
    let mut rows = Vec::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            let cells = (0..row.len()).map(|i| row.get(i).unwrap_or("NULL"));
            rows.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    rows
}

/// `42703 message`
pub fn coded(error: &DbError) -> String {
    format!("{} {}", error.code().code(), error.message())
}
