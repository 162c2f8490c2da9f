//! Requests that are repeated until they are answered or time is up, from a thread of their own.
//!
//! Decoders are synchronous and run wherever their reader runs; the thread lets them ask without a runtime of theirs.

use std::sync::mpsc as reply;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::Value;
use thalweg_runtime::connector::ConnectorError;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::config::Config;

/// One attempt.
const ATTEMPT: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Larger than any schema.
const MAX_BODY: usize = 16 << 20;

pub struct Http {
    requests: mpsc::UnboundedSender<Request>,
}

struct Request {
    method: Method,
    /// With a leading slash, percent-encoded.
    path: String,
    body: Option<Value>,
    reply: reply::SyncSender<Result<Answer, ConnectorError>>,
}

/// What the registry says, in JSON.
#[derive(Debug)]
pub enum Answer {
    Ok(Value),
    /// It has no such thing, and says so in its own words (not as any web server would).
    NotFound(String),
}

impl Http {
    /// Errors: no thread can be had, or no TLS.
    pub fn new(config: Config) -> Result<Self, ConnectorError> {
        let (requests, received) = mpsc::unbounded_channel();
        let client = reqwest::Client::builder()
            .timeout(ATTEMPT.min(config.timeout))
            .build()
            .map_err(|e| failed("prepare HTTP requests", e))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| ConnectorError::io("prepare HTTP requests", e))?;
        let worker = Worker { config, client };
        std::thread::Builder::new()
            .name("schema-registry".to_string())
            .spawn(move || runtime.block_on(worker.run(received)))
            .map_err(|e| ConnectorError::io("start a thread", e))?;
        Ok(Self { requests })
    }

    /// Waits for the answer. Inside a multi-threaded runtime its other tasks go on meanwhile.
    pub fn ask(
        &self,
        method: Method,
        path: String,
        body: Option<Value>,
    ) -> Result<Answer, ConnectorError> {
        let (reply, answer) = reply::sync_channel(1);
        let request = Request {
            method,
            path,
            body,
            reply,
        };
        let gone = || {
            let what = "ask the schema registry";
            ConnectorError::io(what, std::io::Error::other("its thread has ended"))
        };
        self.requests.send(request).map_err(|_| gone())?;
        crate::blocking::wait(|| answer.recv()).map_err(|_| gone())?
    }
}

struct Worker {
    config: Config,
    client: reqwest::Client,
}

/// How an attempt failed.
struct Failure {
    message: String,
    /// Whether another attempt may succeed.
    is_passing: bool,
}

impl Worker {
    async fn run(self, mut requests: mpsc::UnboundedReceiver<Request>) {
        while let Some(request) = requests.recv().await {
            let answer = self.answer(&request).await;
            // Who no longer waits needs no answer.
            let _ = request.reply.send(answer);
        }
    }

    async fn answer(&self, request: &Request) -> Result<Answer, ConnectorError> {
        let deadline = Instant::now() + self.config.timeout;
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            let left = deadline.saturating_duration_since(Instant::now());
            let tried = match tokio::time::timeout(left, self.attempt(request)).await {
                Ok(tried) => tried,
                Err(_) => Err(Failure::passing("no answer in time")),
            };
            let failure = match tried {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let is_last = !failure.is_passing || Instant::now() + pause >= deadline;
            if is_last {
                return Err(self.error(request, &failure, attempt));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        unreachable!("attempts do not run out")
    }

    fn url(&self, request: &Request) -> String {
        format!("{}{}", self.config.endpoint, request.path)
    }

    async fn attempt(&self, request: &Request) -> Result<Answer, Failure> {
        const CONTENT: &str = "application/vnd.schemaregistry.v1+json";
        let mut call = self
            .client
            .request(request.method.clone(), self.url(request))
            .header("Accept", CONTENT);
        if let Some((user, password)) = &self.config.login {
            call = call.basic_auth(user, Some(password));
        }
        if let Some(body) = &request.body {
            call = call.header("Content-Type", CONTENT).body(body.to_string());
        }
        let response = call.send().await.map_err(|e| Failure::from(&e))?;
        let status = response.status();
        let body = read(response).await?;
        judge(status, &body)
    }

    fn error(&self, request: &Request, failure: &Failure, n_attempts: u32) -> ConnectorError {
        let (method, url) = (&request.method, self.url(request));
        let what = format!("schema registry: {method} {url}");
        if failure.is_passing {
            let times = if n_attempts == 1 { "time" } else { "times" };
            let message = format!("{} (tried {n_attempts} {times})", failure.message);
            return ConnectorError::io(what, std::io::Error::other(message));
        }
        ConnectorError::configuration(
            format!("{what}: {}", failure.message),
            Some("see the options schema_registry.*".to_string()),
        )
    }
}

/// The body, up to a limit.
async fn read(mut response: reqwest::Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| Failure::from(&e))? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(Failure::lasting(format!(
                "an answer of more than {MAX_BODY} bytes"
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn judge(status: StatusCode, body: &[u8]) -> Result<Answer, Failure> {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let said = json.as_ref().and_then(|json| json.get("message")?.as_str());
    let code = json
        .as_ref()
        .and_then(|json| json.get("error_code")?.as_u64());
    let shown = said.map_or_else(
        || crate::format::value::excerpt(body.trim_ascii()),
        str::to_string,
    );
    let message = match shown.is_empty() {
        true => status.to_string(),
        false => format!("{status}: {shown}"),
    };
    if status.is_success() {
        let message = || Failure::lasting(format!("the answer is not JSON: {shown}"));
        return json.map(Answer::Ok).ok_or_else(message);
    }
    if status == StatusCode::NOT_FOUND && code.is_some() {
        return Ok(Answer::NotFound(shown));
    }
    let is_passing = status.is_server_error()
        || matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
        );
    Err(Failure {
        message,
        is_passing,
    })
}

impl Failure {
    fn passing(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_passing: true,
        }
    }

    fn lasting(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_passing: false,
        }
    }

    /// The error's innermost cause, which says most.
    fn from(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::passing("no answer in time");
        }
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Self {
            message: cause.to_string(),
            is_passing: !error.is_builder(),
        }
    }
}

fn failed(what: &str, error: reqwest::Error) -> ConnectorError {
    ConnectorError::io(what, std::io::Error::other(error))
}
