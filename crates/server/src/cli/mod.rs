//! The command line: arguments, dispatch, exit codes.

mod args;
mod console;
mod exit;
mod explain;
mod input;
mod progress;
mod report;
mod run;
mod serve;
mod signals;
mod tail;
mod validate;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

pub use args::Args;
use args::Command;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::engine::Engine;
use crate::error::Result;
use crate::http;

/// Runs one command. Whatever goes wrong has been told on standard error when this returns.
pub fn main(args: Args) -> ExitCode {
    let outcome = match args.command {
        Command::Run(args) => run::run(args),
        Command::Serve(args) => serve::serve(&args),
        Command::Validate(args) => validate::validate(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Tail(args) => tail::tail(args),
    };
    outcome
        .unwrap_or_else(|error| report::failure(&error))
        .into()
}

/// The HTTP endpoint, where one is asked for; says where it listens.
async fn endpoint(
    address: Option<SocketAddr>,
    engine: &Arc<Engine>,
) -> Result<Option<http::Endpoint>> {
    let Some(address) = address else {
        return Ok(None);
    };
    let endpoint = http::Endpoint::start(address, engine.clone()).await?;
    console::tell(format_args!(
        "http://{}/metrics, /health, /jobs",
        endpoint.address()
    ));
    Ok(Some(endpoint))
}

/// Log lines go to standard error, from the level that `THALWEG_LOG` names (default: warnings).
pub fn init_logging() {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .with_env_var("THALWEG_LOG")
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}
