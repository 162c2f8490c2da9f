//! A directory of one's own and the binary in it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A working directory for one test.
pub struct Place {
    dir: TempDir,
}

/// What a finished process left.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
        }
    }

    /// With the orders of the worked examples as `orders.ndjson`.
    pub fn with_orders() -> Self {
        let place = Self::new();
        place.write(
            "orders.ndjson",
            std::fs::read(sql_tests().join("data/orders.ndjson")).unwrap(),
        );
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_remove("THALWEG_LOG");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn thalweg(&self, args: &[&str]) -> Finished {
        Finished::from(self.command(args).output().unwrap())
    }

    /// With `input` on standard input.
    pub fn thalweg_reading(&self, args: &[&str], input: &str) -> Finished {
        use std::io::Write;
        let mut child = self.spawn_reading(args);
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        Finished::from(child.wait_with_output().unwrap())
    }

    fn spawn_reading(&self, args: &[&str]) -> Child {
        self.command(args).stdin(Stdio::piped()).spawn().unwrap()
    }

    pub fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Finished {
    /// What it said on standard error but for notices.
    pub fn warnings(&self) -> Vec<&str> {
        let lines = self.stderr.lines();
        lines.filter(|line| !line.starts_with("notice: ")).collect()
    }

    /// It went well, and without a warning.
    #[track_caller]
    pub fn succeeded(&self) -> &Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        assert_eq!(self.warnings(), Vec::<&str>::new());
        self
    }

    /// It failed with this code, saying each of `words` on standard error, on one screen.
    #[track_caller]
    pub fn failed(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{word:?} is not in:\n{}",
                self.stderr
            );
        }
        assert!(
            self.stderr.lines().count() < 24,
            "more than a screen:\n{}",
            self.stderr
        );
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    #[track_caller]
    pub fn lines(&self) -> Vec<&str> {
        self.stdout.lines().collect()
    }

    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }
}

pub fn sql_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sql-tests")
}

/// A declaration of `orders.ndjson`.
pub const ORDERS: &str = "CREATE TABLE orders (order_id BIGINT, customer_id TEXT, amount DECIMAL(10, 2), \
    event_time TIMESTAMP WITH TIME ZONE, WATERMARK FOR event_time) \
    WITH (connector = 'single_file', path = 'orders.ndjson', format = 'json');\n";

pub fn with_orders(sql: &str) -> String {
    format!("{ORDERS}{sql}")
}
