//! A schema registry in memory, with faults on demand. It needs nothing of this crate, so that other crates' tests
//! can include it as a module of theirs.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};

/// What happens to a request instead of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An answer with this status, as a broken proxy gives it.
    Status(u16),
    /// 200, and no JSON.
    Garbage,
    /// Nothing, for ever.
    Silence,
}

#[derive(Default)]
struct Contents {
    /// Subject, version (from 1), id, and what was registered.
    versions: Vec<(String, u64, u64, Value)>,
    faults: VecDeque<Fault>,
    requests: Vec<String>,
    /// The header that every request must have.
    authorization: Option<String>,
}

type Shared = Arc<Mutex<Contents>>;

/// Stops when it is dropped.
pub struct TestRegistry {
    contents: Shared,
    address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl TestRegistry {
    /// An empty registry on a port of its own.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the port is known");
        listener
            .set_nonblocking(true)
            .expect("sockets need not block");
        let contents = Shared::default();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let app = app(contents.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    served = async { axum::serve(listener, app).await } => served.expect("it serves"),
                    _ = stopped => {}
                }
            });
        });
        Self {
            contents,
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Registers a schema (`kind`: AVRO, JSON, PROTOBUF); its id.
    pub fn add(&self, subject: &str, kind: &str, schema: &str) -> u32 {
        self.add_with(subject, json!({"schemaType": kind, "schema": schema}))
    }

    /// The same with everything that a request can hold.
    pub fn add_with(&self, subject: &str, body: Value) -> u32 {
        let mut contents = self.contents.lock().expect("no test panics in here");
        u32::try_from(register(&mut contents, subject, body)).expect("ids are small")
    }

    /// The next requests fail like this, one each.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        let mut contents = self.contents.lock().expect("no test panics in here");
        contents.faults.extend(faults);
    }

    /// Every request must carry this header.
    pub fn require(&self, authorization: &str) {
        let mut contents = self.contents.lock().expect("no test panics in here");
        contents.authorization = Some(authorization.to_string());
    }

    /// What has been asked since the last call: `GET /schemas/ids/1`.
    pub fn requests(&self) -> Vec<String> {
        let mut contents = self.contents.lock().expect("no test panics in here");
        std::mem::take(&mut contents.requests)
    }

    /// What was registered last under a subject.
    pub fn latest(&self, subject: &str) -> Option<Value> {
        let contents = self.contents.lock().expect("no test panics in here");
        let mut versions = contents.versions.iter().rev();
        versions
            .find(|(s, ..)| s == subject)
            .map(|(.., body)| body.clone())
    }
}

impl Drop for TestRegistry {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that panicked has said so already.
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn app(contents: Shared) -> Router {
    Router::new()
        .route("/schemas/ids/{id}", get(by_id))
        .route("/subjects/{subject}/versions", post(add))
        .route("/subjects/{subject}/versions/{version}", get(by_version))
        .layer(middleware::from_fn_with_state(contents.clone(), disturb))
        .with_state(contents)
}

async fn disturb(State(contents): State<Shared>, request: Request, next: Next) -> Response {
    let (fault, is_allowed) = {
        let mut contents = contents.lock().expect("no test panics in here");
        contents
            .requests
            .push(format!("{} {}", request.method(), request.uri().path()));
        let given = request.headers().get("authorization");
        let given = given
            .and_then(|value| value.to_str().ok())
            .map(str::to_string);
        let wanted = &contents.authorization;
        let is_allowed = wanted.is_none() || *wanted == given;
        (contents.faults.pop_front(), is_allowed)
    };
    match fault {
        _ if !is_allowed => error(StatusCode::UNAUTHORIZED, 40101, "Unauthorized"),
        None => next.run(request).await,
        Some(Fault::Status(status)) => {
            let status = StatusCode::from_u16(status).expect("a status");
            (status, "<html>a proxy's page</html>").into_response()
        }
        Some(Fault::Garbage) => "<html>".into_response(),
        Some(Fault::Silence) => std::future::pending().await,
    }
}

async fn by_id(State(contents): State<Shared>, Path(id): Path<u64>) -> Response {
    let contents = contents.lock().expect("no test panics in here");
    match contents
        .versions
        .iter()
        .find(|(_, _, known, _)| *known == id)
    {
        Some((.., body)) => axum::Json(shown(body)).into_response(),
        None => error(
            StatusCode::NOT_FOUND,
            40403,
            &format!("Schema {id} not found"),
        ),
    }
}

async fn by_version(
    State(contents): State<Shared>,
    Path((subject, version)): Path<(String, String)>,
) -> Response {
    let contents = contents.lock().expect("no test panics in here");
    let mut of_subject = contents.versions.iter().filter(|(s, ..)| *s == subject);
    let found = match version.parse::<u64>() {
        Ok(number) => of_subject.find(|(_, v, ..)| *v == number),
        Err(_) => of_subject.next_back(),
    };
    let Some((subject, version, id, body)) = found else {
        return error(
            StatusCode::NOT_FOUND,
            40401,
            &format!("Subject '{subject}' not found."),
        );
    };
    let mut answer = shown(body);
    answer["subject"] = subject.as_str().into();
    answer["version"] = (*version).into();
    answer["id"] = (*id).into();
    axum::Json(answer).into_response()
}

async fn add(
    State(contents): State<Shared>,
    Path(subject): Path<String>,
    body: String,
) -> Response {
    let Ok(body) = serde_json::from_str::<Value>(&body) else {
        return error(StatusCode::BAD_REQUEST, 400, "the body is not JSON");
    };
    let mut contents = contents.lock().expect("no test panics in here");
    let id = register(&mut contents, &subject, body);
    axum::Json(json!({"id": id})).into_response()
}

/// The same schema has the same id, whatever the subject.
fn register(contents: &mut Contents, subject: &str, body: Value) -> u64 {
    let same = |known: &&(String, u64, u64, Value)| known.3 == body;
    let known = contents.versions.iter().find(same).map(|(_, _, id, _)| *id);
    let of_subject = contents.versions.iter().filter(|(s, ..)| s == subject);
    if of_subject.clone().any(|version| version.3 == body) {
        return known.expect("it is there");
    }
    let version = of_subject.count() as u64 + 1;
    let newest = contents.versions.iter().map(|(_, _, id, _)| *id).max();
    let id = known.unwrap_or(newest.unwrap_or(0) + 1);
    contents
        .versions
        .push((subject.to_string(), version, id, body));
    id
}

/// A registry leaves out that a schema is Avro.
fn shown(body: &Value) -> Value {
    let mut shown = json!({"schema": body["schema"]});
    if body["schemaType"] != "AVRO" && !body["schemaType"].is_null() {
        shown["schemaType"] = body["schemaType"].clone();
    }
    if let Some(references) = body.get("references") {
        shown["references"] = references.clone();
    }
    shown
}

fn error(status: StatusCode, code: u64, message: &str) -> Response {
    (
        status,
        axum::Json(json!({"error_code": code, "message": message})),
    )
        .into_response()
}
