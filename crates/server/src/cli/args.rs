//! What can be said on the command line.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::results::Layout;

/// Streaming SQL: compiles queries over streams into dataflows that keep their answers up to date.
#[derive(Debug, Parser)]
#[command(name = "thalweg", version, after_help = EXIT_CODES, propagate_version = true)]
#[command(arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    success; also when Ctrl-C drained a running pipeline
  1    a job, a file or a disk failed
  2    the command line makes no sense
  10   the SQL is faulty
  130  aborted by a second Ctrl-C

Environment:
  THALWEG_LOG  log level on standard error: error, warn (default), info, debug, trace";

#[derive(Debug, Subcommand)]
pub enum Command {
    Run(RunArgs),
    Serve(ServeArgs),
    Validate(ValidateArgs),
    Explain(ExplainArgs),
    Tail(TailArgs),
}

/// Run a SQL script until its sources end or Ctrl-C
///
/// INSERT and CREATE TABLE ... AS write into their tables; a SELECT by itself prints to standard
/// output. Statements that share a source run as one job.
///
/// Ctrl-C (or SIGTERM) drains: what has been read is worked off, sinks are flushed, and the exit code is
/// 0. A second Ctrl-C aborts.
#[derive(Debug, ClapArgs)]
#[command(after_help = RUN_EXAMPLES, after_long_help = RUN_EXAMPLES)]
pub struct RunArgs {
    #[command(flatten)]
    pub script: ScriptArgs,

    /// Keep state in this directory [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Read table NAME from a file instead of from its connector; may be given several times
    ///
    /// The file's format comes from its extension: .ndjson or .json, .csv, .parquet, also compressed
    /// (.gz, .zst, .bz2, .xz). Columns, event time and watermark stay those of the table.
    #[arg(long, value_name = "NAME=PATH", value_parser = parse_fixture)]
    pub fixture: Vec<(String, String)>,

    /// Write nothing: print each sink's rows to standard output, with the sink's name
    ///
    /// A line is {"sink": NAME, "value": ROW}, where ROW is what the sink would have been given.
    #[arg(long)]
    pub dry_run: bool,

    /// How the results of SELECT are printed
    #[arg(long, value_enum, default_value_t = Layout::Json)]
    pub format: Layout,

    /// Subtasks per operator [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallelism: Option<u16>,

    /// Answer /metrics, /health and /jobs over HTTP at this address and port
    ///
    /// There is no authentication: whoever reaches the address sees names and counts of jobs and tables.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub http: Option<SocketAddr>,
}

const RUN_EXAMPLES: &str = "\
Examples:
  thalweg run pipeline.sql
  thalweg run -e \"CREATE TABLE o (id INT, amount INT) WITH (connector = 'single_file',
                  path = 'orders.ndjson', format = 'json'); SELECT sum(amount) FROM o\"
  thalweg run --fixture orders=orders.ndjson --dry-run pipeline.sql
  thalweg run --format table pipeline.sql";

/// Serve psql and other clients of PostgreSQL
///
/// Clients share one catalog; settings are their own. A SELECT or SUBSCRIBE sends rows as they come and
/// ends with its client; an INSERT over sources that never end goes on as a job in the background
/// (SHOW JOBS, DROP JOB). Tables, views and jobs do not outlive the server.
///
/// There is no authentication yet, so only loopback addresses are listened on. Ctrl-C (or SIGTERM) drains
/// all jobs, and the exit code is 0. A second Ctrl-C aborts.
#[derive(Debug, ClapArgs)]
#[command(after_help = SERVE_EXAMPLES, after_long_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    /// Listen on this address and port; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5433", value_parser = parse_address)]
    pub listen: SocketAddr,

    /// Keep state in this directory [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,

    /// Subtasks per operator [default: the number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallelism: Option<u16>,

    /// Answer /metrics, /health and /jobs over HTTP at this address and port
    ///
    /// There is no authentication: whoever reaches the address sees names and counts of jobs and tables.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub http: Option<SocketAddr>,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  thalweg serve
  psql -h 127.0.0.1 -p 5433 -c \"SHOW JOBS\"
  psql -h 127.0.0.1 -p 5433 -c \"COPY (SUBSCRIBE (SELECT ...)) TO STDOUT\"";

/// Check a SQL script without running it
///
/// Reports every fault with line, column and hint, in one pass. Nothing is read or written, and
/// no connector is contacted, except for the columns of tables that declare none. The exit code is 0
/// when there is none, and 10 otherwise.
#[derive(Debug, ClapArgs)]
pub struct ValidateArgs {
    #[command(flatten)]
    pub script: ScriptArgs,

    /// Print a JSON array of faults: kind, sqlstate, message, line, column, hint
    #[arg(long)]
    pub json: bool,
}

/// Show the streaming plan of a SQL script
///
/// Per operator: append-only or updating, key, window, event time, exchange, state and how
/// long it is kept.
#[derive(Debug, ClapArgs)]
pub struct ExplainArgs {
    #[command(flatten)]
    pub script: ScriptArgs,
}

/// Print the records of a table as they are read
///
/// Reads the table's connector directly: no query runs, and nothing is written. A record is printed as a JSON object of
/// the table's columns, one a line. One that cannot be used is printed as it is, after a line that begins with `!` and
/// says why and where it is. Of a changelog, each record's effect stands before it: write, read (a snapshot's), delete or
/// truncate. Ends after -n records, at the end of the input, or with Ctrl-C.
#[derive(Debug, ClapArgs)]
#[command(after_help = TAIL_EXAMPLES, after_long_help = TAIL_EXAMPLES)]
pub struct TailArgs {
    /// The table, which the script creates
    #[arg(value_name = "TABLE")]
    pub table: String,

    #[command(flatten)]
    pub script: ScriptArgs,

    /// How many records to print, good and bad; 0: all that come
    #[arg(short = 'n', long = "records", value_name = "N", default_value_t = 20)]
    pub records: usize,

    /// Print one JSON object a line: {"row": ROW}, with "op" in a changelog, or {"bad": {reason, message, place, ...}}
    #[arg(long)]
    pub json: bool,
}

const TAIL_EXAMPLES: &str = "\
Examples:
  thalweg tail orders pipeline.sql
  thalweg tail orders -n 0 --json pipeline.sql
  thalweg tail o -e \"CREATE TABLE o WITH (connector = 'single_file', path = 'orders.ndjson',
                     infer_schema = true)\"";

#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = false)]
pub struct ScriptArgs {
    /// The script: a file, or - for standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// The script itself
    #[arg(short = 'e', long = "execute", value_name = "SQL")]
    pub execute: Option<String>,
}

fn parse_fixture(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_string(), path.to_string()))
        }
        _ => Err("expected NAME=PATH, as in orders=orders.ndjson".to_string()),
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let expected = || "expected ADDRESS:PORT, as in 127.0.0.1:5433".to_string();
    let mut addresses = text.to_socket_addrs().map_err(|_| expected())?;
    addresses.next().ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_script_comes_from_exactly_one_place() {
        assert!(Args::try_parse_from(["thalweg", "run"]).is_err());
        assert!(Args::try_parse_from(["thalweg", "run", "a.sql", "-e", "SELECT 1"]).is_err());
        assert!(Args::try_parse_from(["thalweg", "run", "-"]).is_ok());
    }

    #[test]
    fn an_address_has_a_port() {
        assert!(parse_address("127.0.0.1:5433").is_ok());
        assert!(parse_address("[::1]:0").is_ok());
        assert!(parse_address("127.0.0.1").is_err());
    }

    #[test]
    fn a_fixture_names_a_table_and_a_path() {
        assert_eq!(
            parse_fixture("o=a=b.ndjson"),
            Ok(("o".into(), "a=b.ndjson".into()))
        );
        assert!(parse_fixture("orders").is_err());
        assert!(parse_fixture("=x").is_err());
    }
}
