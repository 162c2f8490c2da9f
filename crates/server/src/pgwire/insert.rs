//! INSERT: statements that fill tables, and statements that an intermediate stream connects.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use thalweg_dataflow::plan::Op;
use thalweg_planner::script::QueryKind;
use thalweg_planner::{Outcome, Script};

use super::client::{Client, Result};
use super::error::Failure;
use super::execute::{Answer, endless};
use crate::error::Error;
use crate::jobs::{JobKind, JobName, JobSpec, Outcome as Ending, Owned};
use crate::results::{Collector, RowStream};
use crate::session::{StatementResult, result, subscribed};

impl Client {
    /// Runs a job that fills a table: to its end if it has one, else, and where `in_background` says so,
    /// behind. Gives the number of rows that were written.
    pub async fn insert(
        &mut self,
        script: Script,
        name: JobName,
        in_background: bool,
    ) -> Result<u64> {
        let endless = script
            .outcomes
            .iter()
            .any(|outcome| endless(&script, outcome).is_some());
        let has_dead_letters = script.jobs.iter().any(|job| {
            let sinks = job
                .graph
                .nodes
                .iter()
                .filter(|n| matches!(n.op, Op::Sink(_)));
            sinks.count() > 1
        });
        let spec = JobSpec {
            name,
            kind: JobKind::Insert,
            uses: script
                .jobs
                .first()
                .map(|job| job.uses.clone())
                .unwrap_or_default(),
        };
        let job = self
            .start(spec, script, Arc::new(Collector::default()))
            .await?;
        if endless || in_background {
            self.leave_behind(job);
            return Ok(0);
        }
        let ended = job.job().ended().await;
        for warning in &ended.warnings {
            self.output.warning(warning);
        }
        match ended.outcome.error() {
            Some(error) => return Err(Failure::of_error(error, "").into()),
            None if matches!(ended.outcome, Ending::Cancelled) => {
                let message = format!("job \"{}\" was ended by DROP JOB", job.job().name());
                return Err(Failure::new("57014", message).into());
            }
            None => {}
        }
        // Its client knows how it ended.
        self.engine.jobs().forget(job.job().id());
        let metrics = job.job().metrics();
        let written = metrics.rows_out.load(Relaxed);
        let bad: u64 = metrics.bad_records().values().sum();
        Ok(if has_dead_letters {
            written.saturating_sub(bad)
        } else {
            written
        })
    }

    /// Runs statements that an intermediate stream connects. Errors: results of something that never ends.
    pub async fn together(&mut self, script: Script) -> Result<Answer> {
        let endless = script
            .outcomes
            .iter()
            .find_map(|outcome| endless(&script, outcome));
        let has_results = script.outcomes.iter().any(is_result);
        if let (Some(table), true) = (&endless, has_results) {
            let message =
                format!("statements that run together read \"{table}\", which never ends");
            let hint = "give the intermediate stream a connector, or make it a view";
            return Err(Failure::unsupported(message).hint(hint).into());
        }
        let collector = Arc::new(Collector::new(subscribed(&script)));
        let mut jobs = Vec::new();
        let Script {
            outcomes,
            jobs: planned,
        } = script;
        for (index, job) in planned.into_iter().enumerate() {
            let name = outcomes.iter().find_map(|outcome| match outcome {
                Outcome::Query { job, target, .. } if *job == index && !is_result(outcome) => {
                    Some(target.clone())
                }
                _ => None,
            });
            let spec = JobSpec {
                name: JobName::Like(name.unwrap_or_else(|| "select".into())),
                kind: JobKind::Insert,
                uses: job.uses.clone(),
            };
            let one = Script {
                outcomes: Vec::new(),
                jobs: vec![job],
            };
            jobs.push(self.start(spec, one, collector.clone()).await?);
        }
        for job in jobs {
            if endless.is_some() {
                self.leave_behind(job);
                continue;
            }
            let ended = job.job().ended().await;
            ended
                .warnings
                .iter()
                .for_each(|warning| self.output.warning(warning));
            if let Some(error) = ended.outcome.error() {
                return Err(Failure::of_error(error, "").into());
            }
            self.engine.jobs().forget(job.job().id());
        }
        let answers = outcomes
            .into_iter()
            .map(|outcome| answer(outcome, &collector));
        Ok(Answer::Several(answers.collect::<Result<_, Failure>>()?))
    }

    /// Lets a job run on, and says so.
    fn leave_behind(&mut self, job: Owned) {
        let job = job.release();
        let name = job.name();
        let message = format!("job \"{name}\" runs in the background; SHOW JOBS tells how it does");
        self.output.notice(&message);
    }
}

fn answer(outcome: Outcome, collector: &Collector) -> Result<Answer, Failure> {
    let kind = match &outcome {
        Outcome::Query { kind, .. } => Some(*kind),
        _ => None,
    };
    let result =
        result(outcome, collector).map_err(|error: Error| Failure::of_error(&error, ""))?;
    Ok(match (result, kind) {
        (StatementResult::Done(_), Some(QueryKind::Insert)) => Answer::Done("INSERT 0 0".into()),
        (StatementResult::Done(tag), _) => Answer::Done(tag),
        (StatementResult::Rows { schema, batches }, kind) => {
            let tag = match kind {
                Some(QueryKind::Subscribe) => "SUBSCRIBE",
                Some(_) => "SELECT",
                None => "SHOW",
            };
            Answer::Rows(RowStream::of(schema, batches), tag)
        }
    })
}

fn is_result(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Query {
            kind: QueryKind::Select | QueryKind::Subscribe,
            ..
        }
    )
}
