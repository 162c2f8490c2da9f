//! `thalweg serve`.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::watch;

use super::args::ServeArgs;
use super::console::tell;
use super::exit::Exit;
use super::report;
use super::signals::Interrupts;
use crate::engine::{Engine, EngineOptions};
use crate::error::{Error, Result};
use crate::jobs::JobKind;
use crate::pgwire::Server;

/// How long tasks may take to let go of what they hold, after everything has ended or was aborted.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(1);

pub fn serve(args: &ServeArgs) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|e| Error::io("worker threads", e))?;
    let outcome = runtime.block_on(serve_until_stopped(args));
    runtime.shutdown_timeout(SHUTDOWN_PATIENCE);
    outcome
}

async fn serve_until_stopped(args: &ServeArgs) -> Result<Exit> {
    let engine = Arc::new(Engine::new(EngineOptions {
        data_dir: args.data_dir.clone(),
        parallelism: args.parallelism.map(usize::from),
    }));
    // A directory that another process holds is told now, not to the first client.
    engine.open()?;
    let _endpoint = super::endpoint(args.http, &engine).await?;
    let mut interrupts = Interrupts::listen().map_err(|e| Error::io("signals", e))?;
    let server = Server::bind(args.listen, engine.clone()).await?;
    let address = server.address()?;
    let shutdown = watch::Sender::new(false);
    let serving = tokio::spawn(server.run(shutdown.subscribe()));
    tell(format_args!(
        "listening on {address}; connect with: psql -h {} -p {}",
        address.ip(),
        address.port()
    ));
    interrupts.next().await;
    tracing::info!("draining");
    if std::io::stderr().is_terminal() {
        tell(format_args!("draining; Ctrl-C again to abort"));
    }
    shutdown.send_replace(true);
    tokio::select! {
        exit = drain(&engine) => {
            // Connections end by themselves, with what they were doing.
            let _ = serving.await;
            Ok(exit)
        }
        () = interrupts.next() => Ok(Exit::Aborted),
    }
}

/// Drains every job and tells which of them failed.
async fn drain(engine: &Engine) -> Exit {
    let mut jobs = engine.jobs().running();
    jobs.retain(|job| job.kind() == JobKind::Insert);
    jobs.iter().for_each(|job| job.drain());
    let mut ends: FuturesUnordered<_> = jobs
        .iter()
        .map(|job| async move { (job, job.ended().await) })
        .collect();
    let mut exit = Exit::Ok;
    while let Some((job, ended)) = ends.next().await {
        for warning in &ended.warnings {
            tell(format_args!("warning: job \"{}\": {warning}", job.name()));
        }
        if let Some(error) = ended.outcome.error() {
            tell(format_args!("job \"{}\" failed", job.name()));
            exit = exit.max(report::failure(error));
        }
    }
    exit
}
