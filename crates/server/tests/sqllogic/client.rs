//! Clients of a server of their own.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use futures::{StreamExt, stream};
use pgwire::api::Type;
use pgwire::messages::{
    DecodeContext, Message, PgWireBackendMessage, ProtocolVersion, simplequery, startup, terminate,
};
use sqllogictest::DBOutput;
use thalweg_server::engine::{Engine, EngineOptions};
use thalweg_server::pgwire::Server;
use thalweg_server::text::Kind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::doors::{Heard, Output, Refused, column, or_empty};
use crate::shown::{binary, text};

/// A server in this process; dropped, it goes down.
struct Running {
    address: std::net::SocketAddr,
    shutdown: watch::Sender<bool>,
}

impl Running {
    async fn start(options: EngineOptions) -> Self {
        let engine = Arc::new(Engine::new(options));
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), engine)
            .await
            .unwrap();
        let address = server.address().unwrap();
        let shutdown = watch::Sender::new(false);
        tokio::spawn(server.run(shutdown.subscribe()));
        Self { address, shutdown }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown.send_replace(true);
    }
}

/// The simple protocol, as it is on the wire: `tokio-postgres` does not tell the types of what it gets.
pub struct Simple {
    _server: Running,
    socket: TcpStream,
    buffer: BytesMut,
    pub warnings: Vec<String>,
}

impl Simple {
    pub async fn connect(options: EngineOptions) -> Self {
        let server = Running::start(options).await;
        let socket = TcpStream::connect(server.address).await.unwrap();
        let mut client = Self {
            _server: server,
            socket,
            buffer: BytesMut::new(),
            warnings: Vec::new(),
        };
        let mut hello = startup::Startup::new();
        hello.parameters.insert("user".into(), "tester".into());
        client.send(&hello).await;
        while !matches!(
            client.receive().await,
            PgWireBackendMessage::ReadyForQuery(_)
        ) {}
        client
    }

    async fn send(&mut self, message: &impl Message) {
        let mut out = BytesMut::new();
        message.encode(&mut out).unwrap();
        self.socket.write_all(&out).await.unwrap();
    }

    async fn receive(&mut self) -> PgWireBackendMessage {
        let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
        context.awaiting_frontend_ssl = false;
        context.awaiting_frontend_startup = false;
        loop {
            if let Some(message) = PgWireBackendMessage::decode(&mut self.buffer, &context).unwrap()
            {
                return message;
            }
            let n = self.socket.read_buf(&mut self.buffer).await.unwrap();
            assert!(n > 0, "the server closed the connection");
        }
    }

    /// Runs a text of statements, and gives the rows of the last that has some.
    pub async fn run(&mut self, sql: &str) -> Output {
        self.warnings.clear();
        self.send(&simplequery::Query::new(sql.to_string())).await;
        let mut types: Option<Vec<Type>> = None;
        let mut rows = Vec::new();
        let mut refused = None;
        loop {
            match self.receive().await {
                PgWireBackendMessage::RowDescription(description) => {
                    let of = |oid| Type::from_oid(oid).unwrap();
                    types = Some(
                        description
                            .fields
                            .iter()
                            .map(|field| of(field.type_id))
                            .collect(),
                    );
                    rows.clear();
                }
                PgWireBackendMessage::DataRow(mut row) => {
                    let types = types.as_ref().expect("a description comes first");
                    assert_eq!(types.len(), row.field_count as usize);
                    rows.push(types.iter().map(|of| value(&mut row.data, of)).collect());
                }
                PgWireBackendMessage::NoticeResponse(notice) => {
                    let field = |code| {
                        notice
                            .fields
                            .iter()
                            .find(|(c, _)| *c == code)
                            .unwrap()
                            .1
                            .clone()
                    };
                    if field(b'S') == "WARNING" {
                        self.warnings.push(field(b'M'));
                    }
                }
                PgWireBackendMessage::ErrorResponse(error) => {
                    refused = Some(refusal(&error.fields, sql));
                }
                PgWireBackendMessage::ReadyForQuery(_) => break,
                _ => {}
            }
        }
        match (refused, types) {
            (Some(refused), _) => Err(refused),
            (None, None) => Ok(DBOutput::StatementComplete(0)),
            (None, Some(types)) => Ok(DBOutput::Rows {
                types: types.iter().map(|t| column(kind_of(t))).collect(),
                rows,
            }),
        }
    }
}

impl Drop for Simple {
    fn drop(&mut self) {
        // Good manners; what comes of it is not waited for.
        let mut out = BytesMut::new();
        terminate::Terminate::new().encode(&mut out).unwrap();
        let _ = self.socket.try_write(&out);
    }
}

fn value(data: &mut BytesMut, pg_type: &Type) -> String {
    match data.get_i32() {
        -1 => "NULL".to_string(),
        length => {
            let bytes = data.split_to(length as usize);
            or_empty(text(pg_type, std::str::from_utf8(&bytes).unwrap()))
        }
    }
}

/// The error as the other door words it: with its place and its hint in one line.
fn refusal(fields: &[(u8, String)], sql: &str) -> Refused {
    let field = |code| {
        fields
            .iter()
            .find(|(c, _)| *c == code)
            .map(|(_, text)| text.clone())
    };
    worded(
        field(b'M').unwrap(),
        field(b'P').map(|position| place(sql, position.parse().unwrap())),
        field(b'H'),
        field(b'D'),
        field(b'C'),
    )
}

/// Line and column of a character of the text.
fn place(sql: &str, position: usize) -> String {
    let before: String = sql.chars().take(position - 1).collect();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("{line}:{column}")
}

fn worded(
    message: String,
    place: Option<String>,
    hint: Option<String>,
    detail: Option<String>,
    code: Option<String>,
) -> Refused {
    let mut message = message;
    if let Some(place) = place {
        message.push_str(&format!(" at {place}"));
    }
    if let Some(hint) = hint {
        message.push_str(&format!(" · hint: {hint}"));
    }
    if let Some(detail) = detail {
        message.push_str(&format!("\n{detail}"));
    }
    Refused { message, code }
}

pub fn kind_of(pg_type: &Type) -> Kind {
    match *pg_type {
        Type::INT2 | Type::INT4 | Type::INT8 => Kind::Whole,
        Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC => Kind::Real,
        _ => Kind::Other,
    }
}

/// The extended protocol, by `tokio-postgres`, with results in binary.
pub struct Extended {
    _server: Running,
    client: Client,
    heard: Heard,
}

impl Extended {
    pub async fn connect(options: EngineOptions) -> Self {
        let server = Running::start(options).await;
        let config = format!("host=127.0.0.1 port={} user=tester", server.address.port());
        let (client, mut connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
        let heard = Heard::default();
        let hearing = heard.clone();
        tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notice(notice) = message
                    && notice.severity() == "WARNING"
                {
                    hearing.lock().unwrap().push(notice.message().to_string());
                }
            }
        });
        Self {
            _server: server,
            client,
            heard,
        }
    }

    pub fn warnings(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    pub async fn run(&mut self, sql: &str) -> Output {
        self.heard.lock().unwrap().clear();
        let statement = match self.client.prepare(sql).await {
            Ok(statement) => statement,
            Err(error) if error.to_string().contains("multiple commands") || several(&error) => {
                return self.several(sql).await;
            }
            Err(error) => return Err(refused(error, sql)),
        };
        let rows = self
            .client
            .query(&statement, &[])
            .await
            .map_err(|error| refused(error, sql))?;
        if statement.columns().is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let types: Vec<_> = statement
            .columns()
            .iter()
            .map(|c| c.type_().clone())
            .collect();
        let rows = rows.iter().map(|row| {
            let shown = (0..types.len()).map(|i| match row.get::<_, Option<binary::Bytes>>(i) {
                None => "NULL".to_string(),
                Some(bytes) => or_empty(binary::shown(&types[i], &bytes.0)),
            });
            shown.collect()
        });
        Ok(DBOutput::Rows {
            rows: rows.collect(),
            types: types.iter().map(|t| column(kind_of(t))).collect(),
        })
    }

    /// Statements that only the simple protocol takes together. Types are not told: values are as they came.
    async fn several(&mut self, sql: &str) -> Output {
        use tokio_postgres::SimpleQueryMessage as M;
        let messages = self
            .client
            .simple_query(sql)
            .await
            .map_err(|error| refused(error, sql))?;
        let mut rows = Vec::new();
        let mut n_columns = 0;
        for message in messages {
            match message {
                M::RowDescription(columns) => {
                    n_columns = columns.len();
                    rows.clear();
                }
                M::Row(row) => {
                    let values = (0..row.len()).map(|i| row.get(i).unwrap_or("NULL").to_string());
                    rows.push(values.map(or_empty).collect());
                }
                _ => {}
            }
        }
        if n_columns == 0 {
            return Ok(DBOutput::StatementComplete(0));
        }
        Ok(DBOutput::Rows {
            types: vec![sqllogictest::DefaultColumnType::Any; n_columns],
            rows,
        })
    }
}

fn several(error: &tokio_postgres::Error) -> bool {
    let database = error.as_db_error();
    database.is_some_and(|error| error.message().contains("multiple commands"))
}

fn refused(error: tokio_postgres::Error, sql: &str) -> Refused {
    match error.as_db_error() {
        None => Refused {
            message: error.to_string(),
            code: None,
        },
        Some(error) => worded(
            error.message().to_string(),
            error.position().map(|position| match position {
                ErrorPosition::Original(position) => place(sql, *position as usize),
                ErrorPosition::Internal { .. } => panic!("{error}"),
            }),
            error.hint().map(str::to_string),
            error.detail().map(str::to_string),
            Some(error.code().code().to_string()),
        ),
    }
}
