//! The broker's process: `dev/kafka/broker.sh` with ports and a directory.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ports of 127.0.0.1.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    pub plain: u16,
    pub sasl: u16,
    controller: u16,
}

impl Ports {
    /// Ports that were free a moment ago.
    pub fn free() -> Self {
        let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [plain, sasl, controller] =
            listeners.each_ref().map(|l| l.local_addr().unwrap().port());
        Self {
            plain,
            sasl,
            controller,
        }
    }
}

pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a broker on `data`, or on a directory of its own that goes with it. It ends with this value, and
    /// also when this process ends in any other way.
    pub fn start(ports: Ports, data: Option<&Path>, log: PathBuf) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/kafka/broker.sh");
        let mut command = Command::new(&script);
        command.args(["run", "--lifeline"]);
        command.args(["--port", &ports.plain.to_string()]);
        command.args(["--sasl-port", &ports.sasl.to_string()]);
        command.args(["--controller-port", &ports.controller.to_string()]);
        if let Some(data) = data {
            command.arg("--data").arg(data);
        }
        let out = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        command
            .stdin(Stdio::piped())
            .stdout(out.try_clone().unwrap())
            .stderr(out);
        let child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", script.display()));
        Self { child, log }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// What the broker has said.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it in good order: what it has acknowledged is on disk.
    pub fn stop(mut self) {
        let pid = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(asked.success(), "the broker had ended: {}", self.log());
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
