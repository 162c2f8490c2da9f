//! How queries end from outside: cancelled, left alone by their client, with the server.

use std::io::Write;

use futures::StreamExt;
use tokio_postgres::NoTls;

use crate::harness::{PATIENCE, Served, coded};

/// Rows that come seldom: nothing is written to a client that could show that it has gone.
const SILENT: &str = "SUBSCRIBE (SELECT counter FROM ticks WHERE counter < 0)";

const CANCELLED: &str = "57014 canceling statement due to user request";

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_request_ends_the_query_and_not_the_connection() {
    let (served, one) = Served::with_tables().await;
    let token = one.client.cancel_token();
    let running_then_cancelled = async || {
        served
            .until_jobs("the query runs", |jobs| jobs.len() == 1)
            .await;
        token.cancel_query(NoTls).await.unwrap();
    };
    for sql in [SILENT, "SELECT counter FROM ticks"] {
        let (refused, ()) = tokio::join!(one.refused(sql), running_then_cancelled());
        assert_eq!(coded(&refused), CANCELLED, "{sql}");
        served.until_jobs("the job ends", <[_]>::is_empty).await;
    }
    let copied = async {
        let sql = "COPY (SELECT counter FROM ticks) TO STDOUT";
        let mut chunks = std::pin::pin!(one.client.copy_out(sql).await.unwrap());
        loop {
            if let Err(error) = chunks.next().await.expect("it has no end") {
                return error;
            }
        }
    };
    let (error, ()) = tokio::join!(copied, running_then_cancelled());
    assert_eq!(coded(error.as_db_error().unwrap()), CANCELLED);
    assert_eq!(one.rows("SELECT 1").await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_request_ends_an_execution_in_the_extended_protocol() {
    let (served, one) = Served::with_tables().await;
    let token = one.client.cancel_token();
    let query = one
        .client
        .query("SELECT counter FROM ticks WHERE counter < 0", &[]);
    let cancel = async {
        served
            .until_jobs("the query runs", |jobs| jobs.len() == 1)
            .await;
        token.cancel_query(NoTls).await.unwrap();
    };
    let (ended, ()) = tokio::join!(query, cancel);
    let error = ended.unwrap_err();
    assert_eq!(error.as_db_error().unwrap().code().code(), "57014");
    assert_eq!(
        one.client
            .query_one("SELECT 1", &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_gone_takes_its_silent_query_along() {
    let (served, one) = Served::with_tables().await;
    let other = served.connect().await;
    let client = one.client;
    let query = tokio::spawn(async move { client.simple_query(SILENT).await.map(drop) });
    served
        .until_jobs("the query runs", |jobs| jobs.len() == 1)
        .await;
    let jobs = other.rows("SHOW JOBS").await;
    assert!(jobs[0].contains("|subscribe|running|"), "{jobs:?}");
    // The socket closes without a word.
    one.driver.abort();
    let _ = query.await;
    served.until_jobs("the job ends", <[_]>::is_empty).await;
    assert_eq!(other.rows("SHOW JOBS").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_gone_takes_its_open_cursors_along() {
    let (served, one) = Served::with_tables().await;
    one.rows(&format!("BEGIN; DECLARE c CURSOR FOR {SILENT}"))
        .await;
    assert_eq!(served.jobs(), ["subscribe running"]);
    one.driver.abort();
    served.until_jobs("the job ends", <[_]>::is_empty).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_slows_its_query_and_can_still_cancel_it() {
    let (served, one) = Served::with_tables().await;
    // A connection that sends a query and never reads.
    let mut deaf = std::net::TcpStream::connect(served.address).unwrap();
    deaf.write_all(b"\0\0\0\x11\0\x03\0\0user\0me\0\0").unwrap();
    one.rows("CREATE TABLE flood WITH (connector = 'impulse', event_rate = '10000000')")
        .await;
    let sql = b"SELECT counter, counter + 1 AS a, counter + 2 AS b FROM flood\0";
    let length = (sql.len() as u32 + 4).to_be_bytes();
    deaf.write_all(&[b"Q", &length[..], sql].concat()).unwrap();
    served
        .until_jobs("the query runs", |jobs| jobs.len() == 1)
        .await;
    assert_eq!(
        one.rows("SELECT count(*) FROM few").await,
        ["5"],
        "others are served"
    );
    drop(deaf);
    served.until_jobs("the job ends", <[_]>::is_empty).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_clients_query_tells_the_client() {
    let (served, one) = Served::with_tables().await;
    let other = served.connect().await;
    let drop_it = async {
        served
            .until_jobs("the query runs", |jobs| jobs.len() == 1)
            .await;
        other.rows("DROP JOB subscribe").await;
    };
    let (refused, ()) = tokio::join!(one.refused(SILENT), drop_it);
    assert_eq!(
        coded(&refused),
        "57014 the job of this query was ended by DROP JOB"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_end_is_told_to_every_client() {
    let (served, one) = Served::with_tables().await;
    let idle = served.connect().await;
    let down = async {
        served
            .until_jobs("the query runs", |jobs| jobs.len() == 1)
            .await;
        served.shutdown.send_replace(true);
    };
    let (refused, ()) = tokio::join!(one.refused(SILENT), down);
    assert_eq!(refused.code().code(), "57P01");
    let ended = tokio::time::timeout(PATIENCE, async {
        let mut gone = std::pin::pin!(
            futures::stream::repeat(()).then(|()| async { idle.client.is_closed() })
        );
        while !gone.next().await.unwrap() {
            tokio::task::yield_now().await;
        }
    });
    ended.await.unwrap();
    served.until_jobs("the job ends", <[_]>::is_empty).await;
    served.server.await.unwrap();
}
