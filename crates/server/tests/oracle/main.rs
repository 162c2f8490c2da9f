//! The oracle: random queries over random changelogs, cut into epochs at random, against the answer of
//! DataFusion as a batch engine, which is linked in.
//!
//! At the end of every epoch the accumulated changelog must equal the batch answer over the rows read so
//! far (semantics 1.3); each epoch's changes must be net and no row may be deleted that is not there.
//!
//! `THALWEG_ORACLE_CASES` sets the number of cases (10,000), `THALWEG_ORACLE_SEED` where they begin: a
//! failure prints the seed that gives it as the first case. With `THALWEG_ORACLE_SURVEY=1` it does not stop at
//! the first failure and makes none smaller, but prints a line for each.

#![allow(clippy::unwrap_used, reason = "a test")]

mod check;
mod connector;
mod expr;
mod generate;
mod input;
mod model;
mod query;
mod run;
mod shrink;

use std::fmt::Write;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use rand::SeedableRng;
use rand::rngs::StdRng;
use thalweg_runtime::job::Environment;

use crate::connector::NoConnectors;
use crate::input::Input;
use crate::model::BatchEngine;
use crate::run::{Case, Failure, Subject, explain, script};
use crate::shrink::shrink;

/// Inputs, with their cuts, that each query is run on.
const INPUTS_PER_QUERY: u64 = 5;

/// Cases that are tried to make a failing one smaller.
const SHRINK_TRIES: usize = 600;

#[test]
fn the_changelog_adds_up_to_the_batch_answer_at_every_epoch() {
    let n_cases = number("THALWEG_ORACLE_CASES", 10_000);
    let hunt = Hunt {
        first_seed: number("THALWEG_ORACLE_SEED", 1),
        n_queries: n_cases.div_ceil(INPUTS_PER_QUERY),
        survey: number("THALWEG_ORACLE_SURVEY", 0) > 0,
        ..Hunt::default()
    };
    println!("{n_cases} cases from seed {}", hunt.first_seed);
    let n_workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| hunt.work());
        }
    });
    if let Some(report) = hunt.failure.into_inner().unwrap() {
        panic!("{report}");
    }
    let n_unanswered = hunt.n_unanswered.into_inner();
    assert!(
        n_unanswered * 100 <= n_cases,
        "the batch engine has no answer for {n_unanswered} of {n_cases} cases"
    );
}

/// The search for a failure, shared by the threads that search.
#[derive(Default)]
struct Hunt {
    first_seed: u64,
    n_queries: u64,
    survey: bool,
    next_query: AtomicU64,
    n_unanswered: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Hunt {
    fn work(&self) {
        let worker = Worker::new();
        loop {
            let query = self.next_query.fetch_add(1, Relaxed);
            if query >= self.n_queries || self.failure.lock().unwrap().is_some() {
                return;
            }
            let seed = self.first_seed.wrapping_add(query);
            let tried = std::panic::catch_unwind(AssertUnwindSafe(|| worker.try_seed(seed, self)));
            match tried.unwrap_or_else(|_| Err(format!("seed {seed}: panic"))) {
                Ok(()) => {}
                Err(report) if self.survey => println!("{}", report.replace('\n', " ")),
                Err(report) => {
                    self.failure.lock().unwrap().get_or_insert(report);
                }
            }
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    }
}

struct Worker {
    runtime: tokio::runtime::Runtime,
    engine: BatchEngine,
    /// One store for all cases: each job has a part of its own.
    environment: Environment,
}

impl Worker {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let environment = Environment::open(Arc::new(NoConnectors), None).unwrap();
        Self {
            runtime,
            engine: BatchEngine::new().unwrap(),
            environment,
        }
    }

    /// Runs the query of `seed` on its inputs. The error is a report on a small case that fails.
    fn try_seed(&self, seed: u64, hunt: &Hunt) -> Result<(), String> {
        let mut rng = StdRng::seed_from_u64(seed);
        let rel = generate::query(&mut rng);
        let tables = rel.tables();
        let mut inputs: Vec<Input> = (0..INPUTS_PER_QUERY)
            .map(|_| input::input(&mut rng, &tables))
            .collect();
        // The query is planned once, with the lags of the first input.
        let lags: Vec<_> = inputs[0]
            .tables
            .iter()
            .map(|(name, t)| (*name, t.lag))
            .collect();
        for input in &mut inputs {
            lags.iter()
                .for_each(|(name, lag)| input.tables.get_mut(name).unwrap().lag = *lag);
        }
        let mut failed = None;
        self.runtime.block_on(async {
            match Subject::new(&self.engine, &rel, &inputs[0]).await {
                Err(Failure::NoAnswer) => {
                    hunt.n_unanswered.fetch_add(INPUTS_PER_QUERY, Relaxed);
                }
                Err(failure) => failed = Some((failure, inputs[0].clone())),
                Ok(mut subject) => {
                    for input in inputs {
                        match subject.run(&self.environment, &input).await {
                            Ok(()) => {}
                            Err(Failure::NoAnswer) => {
                                hunt.n_unanswered.fetch_add(1, Relaxed);
                            }
                            Err(failure) => {
                                failed = Some((failure, input));
                                break;
                            }
                        }
                    }
                }
            }
        });
        match failed {
            None => Ok(()),
            Some((failure, _)) if hunt.survey => Err(format!("seed {seed}: {failure}")),
            Some((failure, input)) => Err(self.report(seed, Case { rel, input }, failure)),
        }
    }

    fn try_case(&self, case: &Case) -> Result<(), Failure> {
        self.runtime.block_on(async {
            let mut subject = Subject::new(&self.engine, &case.rel, &case.input).await?;
            subject.run(&self.environment, &case.input).await
        })
    }

    fn report(&self, seed: u64, case: Case, failure: Failure) -> String {
        let mut last = failure;
        let small = shrink(case, SHRINK_TRIES, |candidate| {
            match self.try_case(candidate) {
                Err(failure) if failure.is_like(&last) => {
                    last = failure;
                    true
                }
                _ => false,
            }
        });
        let mut report = format!(
            "seed {seed}: {last}\n\n{}\n",
            script(&small.rel, &small.input)
        );
        writeln!(report, "\n{}", explain(&small.rel, &small.input)).unwrap();
        writeln!(report, "\n{:?}", small.input.reading).unwrap();
        for (name, table) in &small.input.tables {
            for (i, split) in table.splits.iter().enumerate() {
                writeln!(report, "{name}, split {i}:").unwrap();
                for change in split {
                    writeln!(report, "  {:+} {:?}", change.diff, change.row).unwrap();
                }
            }
        }
        write!(
            report,
            "\nreplay with THALWEG_ORACLE_SEED={seed} THALWEG_ORACLE_CASES=1"
        )
        .unwrap();
        report
    }
}

/// The model works out an answer for nearly every generated query.
#[test]
fn the_model_answers_every_generated_query() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let engine = BatchEngine::new().unwrap();
    let mut n_unanswered = 0;
    for seed in 0..300 {
        let mut rng = StdRng::seed_from_u64(seed);
        let rel = generate::query(&mut rng);
        let input = input::input(&mut rng, &rel.tables());
        let answers = |rows_per_epoch: usize| {
            let progress = model::Progress::even(&input, rows_per_epoch);
            runtime.block_on(async {
                let mut model = model::Model::new(&engine, &rel).await?;
                model.answers(&input, &progress).await
            })
        };
        match answers(3) {
            Err(error) if error.is::<model::NoAnswer>() => n_unanswered += 1,
            Err(error) => panic!("seed {seed}: {error:#}"),
            Ok(answers) => assert!(!answers.is_empty()),
        }
    }
    assert!(
        n_unanswered <= 6,
        "the batch engine has no answer for {n_unanswered} of 300"
    );
}
