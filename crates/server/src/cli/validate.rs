//! `thalweg validate`.

use thalweg_planner::{Fault, Outcome, Script, ScriptOptions};

use super::args::ValidateArgs;
use super::console;
use super::exit::Exit;
use super::input::SqlText;
use super::report;
use crate::engine::EngineOptions;
use crate::error::{Error, Result};
use crate::session::Session;

/// Plans the script and reports every fault; runs nothing.
pub fn validate(args: &ValidateArgs) -> Result<Exit> {
    let script = SqlText::read(&args.script)?;
    let mut session = Session::new(EngineOptions::default());
    match session.plan(&script.text, &ScriptOptions::default()) {
        Ok(planned) => {
            let sound = if args.json {
                faults_json(&[])
            } else {
                praise(&script, &planned)
            };
            console::print(&sound)?;
            for notice in planned.jobs.iter().flat_map(|job| &job.notices) {
                console::tell(format_args!("notice: {notice}"));
            }
            Ok(Exit::Ok)
        }
        Err(Error::Faults(faults)) if args.json => {
            console::print(&faults_json(&faults))?;
            Ok(Exit::FaultySql)
        }
        Err(Error::Faults(faults)) => Ok(report::faults(&script, &faults)),
        Err(other) => Err(other),
    }
}

fn faults_json(faults: &[Fault]) -> String {
    format!("{:#}\n", report::faults_json(faults))
}

fn praise(script: &SqlText, planned: &Script) -> String {
    let is_query = |outcome: &&Outcome| matches!(outcome, Outcome::Query { .. });
    let n_queries = planned.outcomes.iter().filter(is_query).count();
    format!(
        "{}: no faults ({}, {})\n",
        script.name,
        count(planned.outcomes.len(), "statement", "statements"),
        count(n_queries, "query", "queries")
    )
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
