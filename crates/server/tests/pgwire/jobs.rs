//! INSERT and the jobs that it becomes.

use crate::harness::{Served, coded};

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_insert_becomes_a_job_with_a_name() {
    let (served, one) = Served::with_tables().await;
    one.rows("INSERT INTO nowhere SELECT counter FROM ticks")
        .await;
    let notice = "NOTICE: job \"nowhere\" runs in the background; SHOW JOBS tells how it does";
    assert_eq!(one.notices(), [notice]);
    one.rows("CREATE JOB mine AS INSERT INTO nowhere SELECT counter FROM ticks")
        .await;
    let jobs = one.rows("SHOW JOBS").await;
    let named = |job: &String| job.split('|').skip(1).take(4).collect::<Vec<_>>().join("|");
    let named: Vec<_> = jobs.iter().map(named).collect();
    assert_eq!(
        named,
        ["nowhere|insert|running|NULL", "mine|insert|running|NULL"]
    );
    let taken = one
        .refused("CREATE JOB mine AS INSERT INTO nowhere SELECT counter FROM few")
        .await;
    assert_eq!(coded(&taken), "42710 job \"mine\" already exists");

    // What a job uses stays, and says for whom.
    let refused = one.refused("DROP TABLE ticks").await;
    assert_eq!(refused.code().code(), "2BP01");
    assert!(
        refused
            .message()
            .contains("\"ticks\" cannot be dropped: job \""),
        "{refused}"
    );
    one.rows("DROP JOB mine; DROP JOB nowhere").await;
    assert!(served.jobs().is_empty());
    one.rows("DROP TABLE ticks").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_that_ends_answers_when_it_has() {
    let (served, one) = Served::with_tables().await;
    let written = one
        .client
        .execute("INSERT INTO nowhere SELECT counter FROM few", &[])
        .await;
    assert_eq!(written.unwrap(), 5);
    assert!(served.jobs().is_empty());
    one.rows("CREATE TABLE kept WITH (connector = 'blackhole') AS SELECT counter FROM few")
        .await;
    assert_eq!(one.notices(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_job_keeps_its_reason_until_it_is_dropped() {
    let (served, one) = Served::with_tables().await;
    one.rows("CREATE JOB narrow AS INSERT INTO small SELECT 32766 + counter FROM ticks")
        .await;
    served
        .until_jobs("the job fails", |jobs| jobs == ["narrow failed"])
        .await;
    let jobs = one.rows("SHOW JOBS").await;
    let reason = jobs[0].split('|').nth(4).unwrap();
    assert!(reason.contains("32768"), "{jobs:?}");
    one.rows("DROP JOB narrow").await;
    assert_eq!(one.rows("SHOW JOBS").await, Vec::<String>::new());
    // In the foreground the client is told, and the reason stays as well.
    let failed = one
        .refused("INSERT INTO small SELECT 32766 + counter FROM few")
        .await;
    assert!(failed.message().contains("32768"), "{failed}");
    assert_eq!(served.jobs(), ["small failed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_are_not_there_are_named() {
    let (_served, one) = Served::with_tables().await;
    one.rows("CREATE JOB copying AS INSERT INTO nowhere SELECT counter FROM ticks")
        .await;
    let refused = one.refused("DROP JOB copyin").await;
    assert_eq!(coded(&refused), "42704 job \"copyin\" does not exist");
    assert_eq!(refused.hint(), Some("did you mean \"copying\"?"));
    one.rows("DROP JOB IF EXISTS nosuch").await;
    let notices = one.notices();
    assert_eq!(
        notices.last().unwrap(),
        "NOTICE: job \"nosuch\" does not exist"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_outlives_the_client_that_made_it() {
    let (served, one) = Served::with_tables().await;
    one.rows("CREATE JOB stays AS INSERT INTO nowhere SELECT counter FROM ticks")
        .await;
    drop(one);
    let other = served.connect().await;
    let rows_in = async || -> u64 {
        let jobs = other.rows("SHOW JOBS").await;
        jobs[0].split('|').nth(6).unwrap().parse().unwrap()
    };
    let before = rows_in().await;
    while rows_in().await <= before {}
    assert_eq!(served.jobs(), ["stays running"]);
}
