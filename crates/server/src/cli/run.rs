//! `thalweg run`.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use thalweg_planner::script::QueryKind;
use thalweg_planner::{Outcome, Script, ScriptOptions};

use super::args::RunArgs;
use super::console::tell;
use super::exit::Exit;
use super::input::SqlText;
use super::progress::Progress;
use super::report;
use super::signals::Interrupts;
use crate::engine::{Engine, EngineOptions};
use crate::error::{Error, Result};
use crate::jobs::{Ended, Job, JobKind, JobName, JobSpec};
use crate::results::{Layout, Output, Printer, Shown, set_batch};
use crate::session::{Session, endless_source, text_batch};

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
    let mut session = Session::new(EngineOptions {
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
    answer_at_once(&planned.outcomes, args.format, &output).await?;
    if planned.jobs.is_empty() {
        return Ok(idle(script, &planned.outcomes));
    }
    let prints = !shown.is_empty();
    let printer = Printer {
        layout: args.format,
        output: output.clone(),
        shown,
        label_others: args.dry_run,
    };
    let _endpoint = super::endpoint(args.http, session.engine()).await?;
    let running = start(session.engine(), planned, Arc::new(printer))?;
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
            ..
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

fn start(engine: &Engine, planned: Script, printer: Arc<Printer>) -> Result<Vec<Arc<Job>>> {
    let mut running = Vec::new();
    let Script { outcomes, jobs } = planned;
    for (index, mut job) in jobs.into_iter().enumerate() {
        for notice in std::mem::take(&mut job.notices) {
            tell(format_args!("notice: {notice}"));
        }
        let spec = JobSpec {
            name: JobName::Like(name(index, &outcomes)),
            kind: JobKind::Insert,
            uses: job.uses.clone(),
        };
        running.push(engine.start_job(spec, job, printer.clone())?);
    }
    Ok(running)
}

/// A job is called after the first table that it fills, or the first of its statements.
fn name(job: usize, outcomes: &[Outcome]) -> String {
    let of_job = outcomes
        .iter()
        .enumerate()
        .filter_map(|(i, outcome)| match outcome {
            Outcome::Query {
                job: of,
                kind,
                target,
                ..
            } if *of == job => Some((i, *kind, target)),
            _ => None,
        });
    let bare = |kind| matches!(kind, QueryKind::Select | QueryKind::Subscribe);
    let filled = of_job.clone().find(|(_, kind, _)| !bare(*kind));
    match (filled, of_job.clone().next()) {
        (Some((_, _, target)), _) => target.clone(),
        (None, Some((i, ..))) => format!("statement_{}", i + 1),
        (None, None) => "job".to_string(),
    }
}

/// Waits until every job has ended. Jobs fail alone: the others go on, and the exit code tells.
async fn watch_over(running: Vec<Arc<Job>>, mut interrupts: Interrupts, output: &Output) -> Exit {
    let mut ends: FuturesUnordered<_> = running.iter().map(|job| job.ended()).collect();
    let mut exit = Exit::Ok;
    let mut stopping = false;
    let mut output_is_open = true;
    loop {
        tokio::select! {
            ended = ends.next() => match ended {
                None => return exit,
                Some(ended) => exit = exit.max(told(&ended, ends.len())),
            },
            () = interrupts.next() => {
                if std::mem::replace(&mut stopping, true) {
                    return Exit::Aborted;
                }
                running.iter().for_each(|job| job.drain());
                tracing::info!("draining");
                if std::io::stderr().is_terminal() {
                    tell(format_args!("draining; Ctrl-C again to abort"));
                }
            }
            () = output.closed(), if output_is_open => {
                output_is_open = false;
                stopping = true;
                running.iter().for_each(|job| job.drain());
            }
        }
    }
}

/// Tells on standard error how a job ended, where it is worth telling.
fn told(ended: &Ended, n_others: usize) -> Exit {
    for warning in &ended.warnings {
        tell(format_args!("warning: {warning}"));
    }
    match ended.outcome.error() {
        None => Exit::Ok,
        Some(error) if error.is_broken_pipe() => Exit::Ok,
        Some(error) => {
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
