//! `thalweg run`.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use thalweg_planner::script::QueryKind;
use thalweg_planner::{Job, Outcome, Script, ScriptOptions};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::args::RunArgs;
use super::console::tell;
use super::exit::Exit;
use super::input::SqlText;
use super::progress::Progress;
use super::report;
use super::signals::Interrupts;
use crate::error::{Error, Result};
use crate::job::{Ended, Running};
use crate::results::{Layout, Output, Printer, Shown, set_batch};
use crate::session::{Session, SessionOptions, endless_source, text_batch};

/// How long tasks may take to let go of what they hold, after everything has ended or was aborted.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(1);

pub fn run(args: RunArgs) -> Result<Exit> {
    let script = SqlText::read(&args.script)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|e| Error::io("worker threads", e))?;
    let outcome = runtime.block_on(run_script(args, &script));
    // A write to a stopped terminal or a dead mount may never return; it must not keep the process.
    runtime.shutdown_timeout(SHUTDOWN_PATIENCE);
    outcome
}

async fn run_script(args: RunArgs, script: &SqlText) -> Result<Exit> {
    let mut session = Session::new(SessionOptions {
        data_dir: args.data_dir.clone(),
        parallelism: args.parallelism.map(usize::from),
    });
    let options = ScriptOptions {
        fixtures: args.fixture.iter().cloned().collect(),
        dry_run: args.dry_run,
        ..Default::default()
    };
    let planned = match session.plan(&script.text, &options) {
        Ok(planned) => planned,
        Err(Error::Faults(faults)) => return Ok(report::faults(script, &faults)),
        Err(other) => return Err(other),
    };
    let shown = shown(&planned, args.dry_run);
    if args.format == Layout::Csv && shown.len() > 1 {
        return Err(Error::Usage(format!(
            "--format csv prints one result, and {} has {}",
            script.name,
            shown.len()
        )));
    }

    let interrupts = Interrupts::listen().map_err(|e| Error::io("signals", e))?;
    let output = Arc::new(Output::stdout());
    let Script { outcomes, jobs } = planned;
    answer_at_once(&outcomes, args.format, &output).await?;
    if jobs.is_empty() {
        return Ok(idle(script, &outcomes));
    }
    let prints = !shown.is_empty();
    let printer = Printer {
        layout: args.format,
        output: output.clone(),
        shown,
        label_others: args.dry_run,
    };
    let running = start(&mut session, jobs, Arc::new(printer))?;
    let progress = Progress::start(&running, prints);
    let exit = watch_over(running, interrupts, &output).await;
    progress.finish();
    Ok(exit)
}

/// How each result of the script is shown, by the name of its sink.
fn shown(script: &Script, dry_run: bool) -> HashMap<String, Shown> {
    let mut shown = HashMap::new();
    for (i, outcome) in script.outcomes.iter().enumerate() {
        let Outcome::Query {
            job,
            sink,
            kind,
            target,
        } = outcome
        else {
            continue;
        };
        let bare = matches!(kind, QueryKind::Select | QueryKind::Subscribe);
        if !bare && !dry_run {
            continue;
        }
        let name = if bare {
            format!("statement {}", i + 1)
        } else {
            target.clone()
        };
        let of_this = Shown {
            label: dry_run.then_some(name),
            changelog: *kind == QueryKind::Subscribe,
            ends: endless_source(&script.jobs[*job].graph, *sink).is_none(),
        };
        shown.insert(target.clone(), of_this);
    }
    shown
}

/// Prints what SHOW and EXPLAIN answer. What DDL and SET did is not told, as by `psql -q`.
async fn answer_at_once(outcomes: &[Outcome], layout: Layout, output: &Output) -> Result<()> {
    let mut text = Vec::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Rows { columns, rows } => {
                set_batch(&text_batch(columns.clone(), rows)?, layout, &mut text)?
            }
            Outcome::Text(lines) => {
                text.extend_from_slice(lines.trim_end().as_bytes());
                text.push(b'\n');
            }
            Outcome::Done(_) | Outcome::Query { .. } => {}
        }
    }
    Ok(output.write(text).await?)
}

/// A script without queries has nothing to run; one that also says nothing deserves a word.
fn idle(script: &SqlText, outcomes: &[Outcome]) -> Exit {
    if outcomes.iter().all(|o| matches!(o, Outcome::Done(_))) {
        tell(format_args!(
            "notice: {} has no query to run: add a SELECT or an INSERT",
            script.name
        ));
    }
    Exit::Ok
}

fn start(session: &mut Session, jobs: Vec<Job>, printer: Arc<Printer>) -> Result<Vec<Running>> {
    let mut running = Vec::new();
    for mut job in jobs {
        for notice in std::mem::take(&mut job.notices) {
            tell(format_args!("notice: {notice}"));
        }
        running.push(session.start(job, printer.clone())?);
    }
    Ok(running)
}

/// Waits until every job has ended. Jobs fail alone: the others go on, and the exit code tells.
async fn watch_over(running: Vec<Running>, mut interrupts: Interrupts, output: &Output) -> Exit {
    let (stop, _) = watch::channel(false);
    let mut jobs = JoinSet::new();
    for job in running {
        jobs.spawn(until_ended(job, stop.subscribe()));
    }
    let mut exit = Exit::Ok;
    let mut output_is_open = true;
    loop {
        tokio::select! {
            ended = jobs.join_next() => match ended {
                None => return exit,
                Some(ended) => exit = exit.max(told(ended, jobs.len())),
            },
            () = interrupts.next() => {
                if stop.send_replace(true) {
                    return Exit::Aborted;
                }
                tracing::info!("draining");
                if std::io::stderr().is_terminal() {
                    tell(format_args!("draining; Ctrl-C again to abort"));
                }
            }
            () = output.closed(), if output_is_open => {
                output_is_open = false;
                stop.send_replace(true);
            }
        }
    }
}

/// Runs a job to its end, draining it once `stop` says so.
async fn until_ended(mut job: Running, mut stop: watch::Receiver<bool>) -> Ended {
    tokio::select! {
        ended = job.wait() => return job.ended(ended),
        // An error means that nobody can ask any more: the process is going down.
        _ = stop.wait_for(|stop| *stop) => job.drain(),
    }
    let ended = job.wait().await;
    job.ended(ended)
}

/// Tells on standard error how a job ended, where it is worth telling.
fn told(ended: Result<Ended, tokio::task::JoinError>, n_others: usize) -> Exit {
    let ended = match ended {
        Ok(ended) => ended,
        Err(e) => {
            tell(format_args!(
                "error: internal error: {e}; please report this"
            ));
            return Exit::Failed;
        }
    };
    for warning in &ended.warnings {
        tell(format_args!("warning: {warning}"));
    }
    match ended.outcome {
        Ok(()) => Exit::Ok,
        Err(error) if error.is_broken_pipe() => Exit::Ok,
        Err(error) => {
            let exit = report::failure(error);
            if n_others > 0 {
                tell(format_args!(
                    "{n_others} other {} on",
                    if n_others == 1 { "job goes" } else { "jobs go" }
                ));
            }
            exit
        }
    }
}
