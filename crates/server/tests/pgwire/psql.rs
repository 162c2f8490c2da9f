//! The binary and psql, as a user has them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

struct Place {
    dir: TempDir,
    server: Child,
    port: String,
}

/// psql comes with `make setup`.
const NO_PSQL: &str = "psql is not installed: run `make setup`";

impl Place {
    fn serve() -> Self {
        let dir = TempDir::new().unwrap();
        let mut server = Command::new(env!("CARGO_BIN_EXE_thalweg"))
            .args(["serve", "--listen", "127.0.0.1:0", "--parallelism", "2"])
            .current_dir(dir.path())
            .env_remove("THALWEG_LOG")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(server.stderr.take().unwrap());
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        server.stderr = Some(told.into_inner());
        let port = line.trim().rsplit(' ').next().unwrap().to_string();
        Self { dir, server, port }
    }

    fn psql(&self, args: &[&str]) -> Command {
        let mut command = Command::new("psql");
        command
            .args([
                "-X",
                "-h",
                "127.0.0.1",
                "-p",
                &self.port,
                "-U",
                "tester",
                "-v",
                "ON_ERROR_STOP=1",
            ])
            .args(args)
            .current_dir(self.dir.path())
            .env("PGCONNECT_TIMEOUT", "20");
        command
    }

    #[track_caller]
    fn says(&self, args: &[&str]) -> String {
        let output = self.psql(args).output().expect(NO_PSQL);
        assert!(output.status.success(), "{}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    fn stop(&mut self) -> (Option<i32>, String) {
        let id = self.server.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        let mut told = String::new();
        self.server
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut told)
            .unwrap();
        (self.server.wait().unwrap().code(), told)
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn psql_lists_and_describes_what_there_is() {
    let mut place = Place::serve();
    let made = place.says(&[
        "-c",
        "CREATE TABLE orders (id BIGINT NOT NULL, amount DECIMAL(10, 2), at TIMESTAMP WITH TIME ZONE, tags TEXT[]) \
         WITH (connector = 'single_file', path = 'orders.ndjson', format = 'json')",
        "-c",
        "CREATE VIEW big AS SELECT id, amount * 2 AS double FROM orders",
    ]);
    assert_eq!(made, "CREATE TABLE\nCREATE VIEW\n");
    let listed = place.says(&["-At", "-c", "\\d"]);
    assert_eq!(
        listed,
        "public|big|view|thalweg\npublic|orders|table|thalweg\n"
    );
    assert_eq!(
        place.says(&["-At", "-c", "\\dt"]),
        "public|orders|table|thalweg\n"
    );
    assert_eq!(
        place.says(&["-At", "-c", "\\dv"]),
        "public|big|view|thalweg\n"
    );
    let described = place.says(&["-At", "-c", "\\d orders"]);
    assert_eq!(
        described,
        "id|bigint||not null|\namount|numeric(10,2)|||\nat|timestamp with time zone|||\ntags|text[]|||\n"
    );
    assert!(
        place
            .says(&["-c", "\\d big"])
            .contains("View \"public.big\"")
    );
    assert!(place.says(&["-c", "\\l"]).contains("thalweg"));
    assert!(place.says(&["-c", "\\dn"]).contains("public"));
    assert!(place.says(&["-c", "\\du"]).contains("tester"));
    assert!(place.says(&["-c", "\\df"]).contains("(0 rows)"));
    let missing = place.psql(&["-c", "\\d nosuch"]).output().expect(NO_PSQL);
    assert!(
        told(&missing).contains("Did not find any relation named \"nosuch\""),
        "{}",
        told(&missing)
    );
    assert_eq!(place.stop(), (Some(0), String::new()));
}

#[test]
fn psql_runs_queries_and_points_at_errors() {
    let mut place = Place::serve();
    std::fs::write(place.dir.path().join("n.ndjson"), "{\"n\":1}\n{\"n\":2}\n").unwrap();
    let table = "CREATE TABLE t (n INT) WITH (connector = 'single_file', path = 'n.ndjson', format = 'json')";
    place.says(&["-c", table]);
    assert_eq!(
        place.says(&["-At", "-c", "SELECT n, n > 1 FROM t"]),
        "1|f\n2|t\n"
    );
    assert_eq!(place.says(&["-At", "-c", "SELECT 1; SELECT 2"]), "1\n2\n");
    assert_eq!(
        place.says(&["-c", "COPY (SELECT n FROM t) TO STDOUT CSV HEADER"]),
        "n\n1\n2\n"
    );
    assert_eq!(
        place.says(&["-At", "-c", "\\copy (SELECT n FROM t) TO 'out.csv' CSV"]),
        "COPY 2\n"
    );
    assert_eq!(
        std::fs::read_to_string(place.dir.path().join("out.csv")).unwrap(),
        "1\n2\n"
    );
    let wrong = place
        .psql(&["-c", "SELECT m FROM t"])
        .output()
        .expect(NO_PSQL);
    assert!(!wrong.status.success());
    assert_eq!(
        told(&wrong),
        "ERROR:  column \"m\" does not exist\nLINE 1: SELECT m FROM t\n               ^\nHINT:  table \"t\" has \"n\"\n"
    );
    assert_eq!(place.stop().0, Some(0));
}

/// FETCH_COUNT makes psql use a cursor, so that rows show as they come.
#[test]
fn psql_shows_a_subscription_through_a_cursor() {
    let mut place = Place::serve();
    let sql = "SET fetch_timeout = '100 ms';
        SET pipeline.update_aggregate_flush_interval = '20 ms';
        CREATE TABLE ticks WITH (connector = 'impulse', event_rate = '1000');
        BEGIN;
        DECLARE c CURSOR FOR SUBSCRIBE (SELECT counter FROM ticks);
        FETCH 2 FROM c;
        COMMIT;";
    std::fs::write(place.dir.path().join("s.sql"), sql).unwrap();
    let shown = place.says(&["-qAt", "-f", "s.sql"]);
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("|{\"counter\":") && line.ends_with("|c")),
        "{shown}"
    );
    assert_eq!(place.stop().0, Some(0));
}

#[test]
fn sigterm_drains_jobs_and_ends_clients() {
    let mut place = Place::serve();
    place.says(&[
        "-q",
        "-c",
        "SET pipeline.update_aggregate_flush_interval = '20 ms'",
        "-c",
        "CREATE TABLE ticks WITH (connector = 'impulse', event_rate = '1000')",
        "-c",
        "CREATE TABLE copy (n BIGINT UNSIGNED) WITH (connector = 'single_file', path = 'copy.ndjson', format = 'json')",
        "-c",
        "CREATE JOB copying AS INSERT INTO copy SELECT counter FROM ticks",
    ]);
    let mut client = place
        .psql(&["-At", "-c", "COPY (SELECT counter FROM ticks) TO STDOUT"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect(NO_PSQL);
    let mut first = String::new();
    let mut rows = BufReader::new(client.stdout.take().unwrap());
    rows.read_line(&mut first).unwrap();
    assert!(first.trim().parse::<u64>().is_ok(), "{first}");
    let copy = place.dir.path().join("copy.ndjson");
    assert_eq!(place.stop(), (Some(0), String::new()));
    let mut rest = String::new();
    rows.read_to_string(&mut rest).unwrap();
    let mut why = String::new();
    client
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut why)
        .unwrap();
    assert!(!client.wait().unwrap().success());
    assert!(
        why.contains("terminating connection due to administrator command"),
        "{why}"
    );
    let copied = std::fs::read_to_string(copy).unwrap();
    assert!(
        copied.ends_with("}\n") && copied.lines().count() > 0,
        "whole lines, none lost"
    );
}

#[test]
fn only_loopback_is_listened_on() {
    let output = Command::new(env!("CARGO_BIN_EXE_thalweg"))
        .args(["serve", "--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told(&output).contains("no authentication yet"),
        "{}",
        told(&output)
    );
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
