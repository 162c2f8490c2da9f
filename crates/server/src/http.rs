//! `--http`: what a monitoring system asks. `/metrics` for Prometheus, `/health` for whoever restarts
//! processes, `/jobs` for people and scripts.
//!
//! Reads the list of jobs and their counters; changes nothing, and knows neither SQL nor clients.

#[cfg(test)]
mod docs;
mod families;
mod health;
mod jobs;
mod metrics;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::engine::Engine;
use crate::error::{Error, Result};

/// A running endpoint; it ends when this is dropped.
pub struct Endpoint {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Endpoint {
    /// Listens at `address`; port 0 takes a free one. Inside a Tokio runtime. Errors: the address cannot be
    /// listened at.
    pub async fn start(address: SocketAddr, engine: Arc<Engine>) -> Result<Self> {
        let what = || format!("listen at {address} (--http)");
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|e| Error::io(what(), e))?;
        let address = listener.local_addr().map_err(|e| Error::io(what(), e))?;
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router(engine)).await {
                tracing::error!(%error, "the HTTP endpoint has ended");
            }
        });
        Ok(Self { address, task })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn router(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/metrics", get(export))
        .route("/health", get(report))
        .route("/jobs", get(list))
        .with_state(engine)
}

async fn index() -> &'static str {
    "thalweg: /metrics (Prometheus), /health, /jobs (JSON)\n"
}

async fn export(State(engine): State<Arc<Engine>>) -> Response {
    match metrics::text(&engine) {
        Ok(text) => {
            let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        // A `String` takes whatever is written to it.
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn report(State(engine): State<Arc<Engine>>) -> Response {
    let (healthy, body) = health::report(&engine.jobs().list());
    let status = match healthy {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, axum::Json(body)).into_response()
}

async fn list(State(engine): State<Arc<Engine>>) -> axum::Json<serde_json::Value> {
    axum::Json(jobs::list(&engine.jobs().list()))
}
