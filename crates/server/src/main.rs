use std::process::ExitCode;

use clap::Parser;
use thalweg_server::cli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::init_logging();
    cli::main(cli::Args::parse())
}
