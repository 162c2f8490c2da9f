//! One measured process.
//!
//! The kernel gives a process the sums over its children and no single child's peak memory, so every
//! measured command gets a parent of its own, this binary as `measure`, which has no other child.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use wait4::{ResourceUsage, Wait4};

/// What a run took.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    pub wall_secs: f64,
    /// User and system time of all threads.
    pub cpu_secs: f64,
    pub peak_bytes: u64,
    /// Bytes that were sent towards the disk.
    pub written_bytes: u64,
}

/// Runs `command` on `threads` cores and measures it, by way of a process in between.
pub fn spawn(threads: usize, command: &[&str]) -> Result<Cost> {
    let mut wrapper = Command::new(std::env::current_exe()?);
    wrapper
        .arg("measure")
        .arg(threads.to_string())
        .args(command);
    let output = wrapper.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "'{}' failed", command.join(" "));
    let text = String::from_utf8(output.stdout)?;
    serde_json::from_str(&text).with_context(|| format!("not a measurement: {text}"))
}

/// The wrapper: runs `command` and prints its [`Cost`].
pub fn measure(threads: usize, command: &[&str]) -> Result<()> {
    let [program, ..] = command else {
        bail!("nothing to measure")
    };
    // A thread count alone would let helper threads run on cores that the other side does not have.
    let mut confined = Command::new("taskset");
    confined
        .arg("--cpu-list")
        .arg(cores(threads)?)
        .args(command)
        .stdout(Stdio::null());
    #[expect(
        clippy::disallowed_methods,
        reason = "measuring time is what a benchmark is for"
    )]
    let start = std::time::Instant::now();
    let mut child = confined
        .spawn()
        .context("cannot run taskset (of util-linux)")?;
    let ended = child.wait4()?;
    let wall_secs = start.elapsed().as_secs_f64();
    ensure!(
        ended.status.success(),
        "{program} ended with {}",
        ended.status
    );
    println!(
        "{}",
        serde_json::to_string(&cost(wall_secs, &ended.rusage)?)?
    );
    Ok(())
}

fn cost(wall_secs: f64, usage: &ResourceUsage) -> Result<Cost> {
    Ok(Cost {
        wall_secs,
        cpu_secs: (usage.utime + usage.stime).as_secs_f64(),
        peak_bytes: usage.maxrss,
        written_bytes: written_bytes()?,
    })
}

/// Bytes that this process and its children, once waited for, sent towards the disk: proc(5).
fn written_bytes() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/io")?;
    let value = text.lines().find_map(|l| l.strip_prefix("write_bytes: "));
    Ok(value
        .context("no write_bytes in /proc/self/io")?
        .trim()
        .parse()?)
}

/// The first `n` of the cores that this process may use, as taskset takes them.
fn cores(n: usize) -> Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let list = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    let allowed = expand(
        list.context("no Cpus_allowed_list in /proc/self/status")?
            .trim(),
    )?;
    ensure!(
        allowed.len() >= n,
        "{n} threads asked for, but only {} cores may be used",
        allowed.len()
    );
    let chosen: Vec<_> = allowed[..n].iter().map(ToString::to_string).collect();
    Ok(chosen.join(","))
}

/// `0-2,5` as `[0, 1, 2, 5]`.
fn expand(list: &str) -> Result<Vec<u32>> {
    let mut cores = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cores.extend(first.parse::<u32>()?..=last.parse()?);
    }
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_lists_expand() {
        assert_eq!(expand("0-2,5").unwrap(), [0, 1, 2, 5]);
        assert_eq!(expand("7").unwrap(), [7]);
        assert!(expand("").is_err());
    }
}
