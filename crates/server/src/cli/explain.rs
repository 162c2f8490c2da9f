//! `thalweg explain`.

use thalweg_planner::explain::explain_job;

use super::args::ExplainArgs;
use super::console;
use super::exit::Exit;
use super::input::SqlText;
use super::report;
use crate::engine::EngineOptions;
use crate::error::{Error, Result};
use crate::session::Session;

/// Prints the plan of each job.
pub fn explain(args: &ExplainArgs) -> Result<Exit> {
    let script = SqlText::read(&args.script)?;
    let mut session = Session::new(EngineOptions::default());
    let planned = match session.plan(&script.text, &Default::default()) {
        Ok(planned) => planned,
        Err(Error::Faults(faults)) => return Ok(report::faults(&script, &faults)),
        Err(other) => return Err(other),
    };
    let plans: Vec<_> = planned.jobs.iter().map(explain_job).collect();
    console::print(&plans.join("\n"))?;
    Ok(Exit::Ok)
}
