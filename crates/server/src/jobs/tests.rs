use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::engine::{Engine, EngineOptions};
use crate::results::Collector;
use crate::session::Session;

const TABLES: &str = "
    SET pipeline.update_aggregate_flush_interval = '20 milliseconds';
    CREATE TABLE ticks WITH (connector = 'impulse', event_rate = '1000');
    CREATE TABLE few WITH (connector = 'impulse', event_rate = '1000', message_count = 5);
    CREATE TABLE nowhere (n BIGINT UNSIGNED) WITH (connector = 'blackhole');
    CREATE TABLE small (n SMALLINT) WITH (connector = 'blackhole');";

fn engine() -> (Arc<Engine>, Session) {
    let engine = Arc::new(Engine::new(EngineOptions::default()));
    let mut session = Session::of(engine.clone());
    session.plan(TABLES, &Default::default()).unwrap();
    (engine, session)
}

fn start(session: &mut Session, name: &str, kind: JobKind, sql: &str) -> Result<Arc<Job>, String> {
    let script = session.plan(sql, &Default::default()).unwrap();
    let job = script.jobs.into_iter().next().unwrap();
    let spec = JobSpec {
        name: match name.strip_suffix('*') {
            Some(base) => JobName::Like(base.to_string()),
            None => JobName::Exactly(name.to_string()),
        },
        kind,
        uses: job.uses.clone(),
    };
    let started = session
        .engine()
        .start_job(spec, job, Arc::new(Collector::default()));
    started.map_err(|error| error.to_string())
}

const ENDLESS: &str = "INSERT INTO nowhere SELECT counter FROM ticks";

#[tokio::test]
async fn a_drained_job_finishes_and_stays_in_the_list() {
    let (engine, mut session) = engine();
    let job = start(&mut session, "copy", JobKind::Insert, ENDLESS).unwrap();
    assert_eq!(job.state().as_str(), "running");
    let users: Vec<_> = engine.jobs().in_use().into_iter().collect();
    let copy = "copy".to_string();
    assert_eq!(
        users,
        [("nowhere".into(), copy.clone()), ("ticks".into(), copy)]
    );
    job.drain();
    let ended = job.ended().await;
    assert!(matches!(ended.outcome, Outcome::Finished), "{ended:?}");
    assert_eq!(job.state().as_str(), "finished");
    assert_eq!(
        job.metrics().rows_in.load(Relaxed),
        job.metrics().rows_out.load(Relaxed)
    );
    assert_eq!(engine.jobs().find("copy").unwrap().id(), job.id());
    assert!(engine.jobs().in_use().is_empty());
    engine.jobs().forget(job.id());
    assert!(engine.jobs().list().is_empty());
}

#[tokio::test]
async fn a_name_is_taken_until_its_job_has_ended() {
    let (engine, mut session) = engine();
    let first = start(&mut session, "copy", JobKind::Insert, ENDLESS).unwrap();
    let refused = start(&mut session, "copy", JobKind::Insert, ENDLESS).unwrap_err();
    assert_eq!(refused, "job \"copy\" already exists");
    let another = start(&mut session, "copy*", JobKind::Insert, ENDLESS).unwrap();
    let other = start(&mut session, "other*", JobKind::Insert, ENDLESS).unwrap();
    assert_eq!((another.name(), other.name()), ("copy_2", "other"));
    first.cancel();
    assert!(matches!(first.ended().await.outcome, Outcome::Cancelled));
    let second = start(&mut session, "copy", JobKind::Insert, ENDLESS).unwrap();
    assert_eq!(engine.jobs().find("copy").unwrap().id(), second.id());
    assert_eq!(engine.jobs().list().len(), 3);
}

#[tokio::test]
async fn a_failed_job_keeps_its_reason() {
    let (engine, mut session) = engine();
    let sql = "INSERT INTO small SELECT 32767 + counter FROM few";
    let job = start(&mut session, "narrow", JobKind::Insert, sql).unwrap();
    let ended = job.ended().await;
    let error = ended.outcome.error().expect("32768 does not fit");
    let state = engine.jobs().find("narrow").unwrap().state();
    assert_eq!(
        (state.as_str(), state.reason()),
        ("failed", Some(error.to_string()))
    );
}

#[tokio::test]
async fn a_query_ends_with_its_owner_and_leaves_the_list() {
    let (engine, mut session) = engine();
    let sql = "SUBSCRIBE (SELECT count(*) FROM ticks)";
    let job = start(&mut session, "query", JobKind::Subscribe, sql).unwrap();
    assert_eq!(engine.jobs().running().len(), 1);
    drop(Owned::new(job.clone()));
    assert!(matches!(job.ended().await.outcome, Outcome::Cancelled));
    assert!(engine.jobs().list().is_empty());
}
