//! Ctrl-C, SIGTERM and readers that go away.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use crate::harness::Place;

/// Rows without end, printed and counted into a file, an epoch every 50 ms.
const ENDLESS: &str = "
    SET pipeline.update_aggregate_flush_interval = '50 milliseconds';
    CREATE TABLE ticks WITH (connector = 'impulse', event_rate = '1000');
    CREATE TABLE copy (n BIGINT UNSIGNED) WITH (connector = 'single_file', path = 'copy.ndjson', format = 'json');
    INSERT INTO copy SELECT counter FROM ticks;
    SELECT counter FROM ticks;";

pub fn send(signal: &str, child: &Child) {
    let killed = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

/// Waits for the first line of output, so that the job is known to run.
pub fn first_line(child: &mut Child) -> (String, BufReader<std::process::ChildStdout>) {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    (line, reader)
}

/// Waits for the end; kills the process if it does not come within a while.
fn ended(child: &mut Child) -> ExitStatus {
    let (done, waiting) = std::sync::mpsc::channel();
    let id = child.id().to_string();
    let watchdog = std::thread::spawn(move || {
        if waiting.recv_timeout(Duration::from_secs(20)).is_err() {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    let status = child.wait().unwrap();
    let _ = done.send(());
    watchdog.join().unwrap();
    status
}

/// It ended well and without a word on standard error.
pub fn ended_well(mut child: Child) {
    let status = ended(&mut child);
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
}

fn drains_on(signal: &str) {
    let place = Place::new();
    let mut child = place.spawn(&["run", "--parallelism", "1", "-e", ENDLESS]);
    let (first, mut reader) = first_line(&mut child);
    assert_eq!(first, "{\"counter\":0}\n");
    send(signal, &child);
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    ended_well(child);

    // Both sinks got every row up to the final epoch, whole lines only.
    let printed = 1 + rest.lines().count();
    assert!(rest.is_empty() || rest.ends_with("}\n"));
    let copied = place.read("copy.ndjson");
    assert!(copied.ends_with("}\n"), "{copied:?}");
    assert_eq!(copied.lines().count(), printed);
}

#[test]
fn ctrl_c_drains_with_a_final_epoch_and_exits_with_0() {
    drains_on("-INT");
}

#[test]
fn sigterm_drains_as_well() {
    drains_on("-TERM");
}

#[test]
fn a_drain_closes_no_window() {
    let place = Place::new();
    let sql = "
        SET pipeline.update_aggregate_flush_interval = '50 milliseconds';
        CREATE TABLE ticks WITH (connector = 'impulse', event_rate = '1000');
        SELECT counter FROM ticks;
        CREATE TABLE hours (n BIGINT) WITH (connector = 'single_file', path = 'hours.ndjson', format = 'json');
        INSERT INTO hours SELECT COUNT(*) FROM ticks GROUP BY tumble(INTERVAL '1000 days');";
    let mut child = place.spawn(&["run", "-e", sql]);
    let (_, mut reader) = first_line(&mut child);
    send("-INT", &child);
    reader.read_to_string(&mut String::new()).unwrap();
    ended_well(child);
    assert_eq!(
        std::fs::read_to_string(place.path("hours.ndjson")).unwrap_or_default(),
        ""
    );
}

#[test]
fn a_second_ctrl_c_aborts() {
    let place = Place::new();
    // Nobody reads the output, so that the drain cannot end.
    let sql = "
        SET pipeline.update_aggregate_flush_interval = '50 milliseconds';
        CREATE TABLE ticks WITH (connector = 'impulse', event_rate = '1000000');
        SELECT counter, repeat('x', 1000) FROM ticks;";
    let mut child = place
        .command(&["run", "-e", sql])
        .env("THALWEG_LOG", "info")
        .spawn()
        .unwrap();
    let (_, reader) = first_line(&mut child);
    send("-INT", &child);
    // Two signals that are pending at once are one: the first must have been taken.
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("draining") {
        line.clear();
        assert_ne!(
            log.read_line(&mut line).unwrap(),
            0,
            "it ended before it said that it drains"
        );
    }
    send("-INT", &child);
    let status = ended(&mut child);
    drop(reader);
    assert_eq!(status.code(), Some(130));
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let place = Place::new();
    let mut child = place.spawn(&["run", "--parallelism", "1", "-e", ENDLESS]);
    let (first, reader) = first_line(&mut child);
    assert_eq!(first, "{\"counter\":0}\n");
    drop(reader);
    ended_well(child);
    // The other sink was flushed.
    assert!(place.read("copy.ndjson").ends_with("}\n"));
}
