//! DECLARE, FETCH, CLOSE, and portals with a number of rows.

use crate::harness::{Served, coded};

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_gives_rows_in_portions() {
    let (served, one) = Served::with_tables().await;
    one.rows("BEGIN; DECLARE c CURSOR FOR SELECT counter FROM few")
        .await;
    assert_eq!(one.rows("FETCH 2 FROM c").await, ["0", "1"]);
    assert_eq!(one.rows("FETCH c").await, ["2"]);
    assert_eq!(one.rows("FETCH FORWARD ALL IN c").await, ["3", "4"]);
    assert_eq!(one.rows("FETCH 1 FROM c").await, Vec::<String>::new());
    one.rows("CLOSE c; COMMIT").await;
    assert_eq!(
        coded(&one.refused("FETCH c").await),
        "34000 cursor \"c\" does not exist"
    );
    assert!(served.jobs().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_of_an_endless_result_ends_at_its_timeout() {
    let (served, one) = Served::with_tables().await;
    one.rows("SET fetch_timeout = '50 ms'; BEGIN; DECLARE c CURSOR FOR SUBSCRIBE (SELECT counter FROM ticks)").await;
    assert_eq!(one.rows("FETCH 3 c").await.len(), 3);
    // All that comes within the timeout, and then the same again.
    assert!(!one.rows("FETCH ALL c").await.is_empty());
    assert!(!one.rows("FETCH ALL c").await.is_empty());
    one.rows("DECLARE silent CURSOR FOR SELECT counter FROM ticks WHERE counter < 0")
        .await;
    assert_eq!(one.rows("FETCH 1 silent").await, Vec::<String>::new());
    one.rows("COMMIT").await;
    served
        .until_jobs("cursors end with their transaction", <[_]>::is_empty)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_needs_a_transaction_or_hold() {
    let (_served, one) = Served::with_tables().await;
    let refused = one.refused("DECLARE c CURSOR FOR SELECT 1").await;
    assert_eq!(refused.code().code(), "25P01");
    one.rows("DECLARE c CURSOR WITH HOLD FOR SELECT 1").await;
    assert_eq!(
        coded(&one.refused("DECLARE c CURSOR WITH HOLD FOR SELECT 1").await),
        "42P03 cursor \"c\" already exists"
    );
    assert_eq!(one.rows("FETCH ALL FROM c").await, ["1"]);
    one.rows("CLOSE ALL").await;
    assert_eq!(
        one.refused("FETCH BACKWARD 1 FROM c").await.code().code(),
        "0A000"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_portal_is_suspended_after_a_number_of_rows() {
    let (served, mut one) = Served::with_tables().await;
    let transaction = one.client.transaction().await.unwrap();
    let portal = transaction
        .bind("SELECT counter FROM ticks", &[])
        .await
        .unwrap();
    for _ in 0..3 {
        assert_eq!(transaction.query_portal(&portal, 2).await.unwrap().len(), 2);
    }
    transaction.commit().await.unwrap();
    served
        .until_jobs("portals end with their transaction", <[_]>::is_empty)
        .await;
}
