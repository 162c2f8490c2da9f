//! Statements in the simple protocol: what they answer, and how they fail.

use tokio_postgres::error::ErrorPosition;

use crate::harness::{Served, coded};

#[tokio::test(flavor = "multi_thread")]
async fn a_bounded_select_gives_its_final_rows_and_an_endless_one_rows_as_they_come() {
    let (_served, one) = Served::with_tables().await;
    assert_eq!(
        one.rows("SELECT count(*), sum(counter) FROM few").await,
        ["5|10"]
    );
    assert_eq!(
        one.rows("SELECT 1 + 1, 'a', NULL, true").await,
        ["2|a|NULL|t"]
    );
    let ticks = one.rows("SELECT counter FROM ticks LIMIT 3 OFFSET 2").await;
    assert_eq!(ticks, ["2", "3", "4"]);
    assert_eq!(
        one.rows("SELECT counter FROM ticks LIMIT 0").await,
        Vec::<String>::new()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_select_that_changes_is_refused_with_a_way_out() {
    let (served, one) = Served::with_tables().await;
    let error = one.refused("SELECT count(*) FROM ticks").await;
    assert_eq!(
        coded(&error),
        "0A000 this SELECT reads \"ticks\", which never ends, and its rows change"
    );
    assert!(error.hint().unwrap().contains("SUBSCRIBE"));
    assert!(served.jobs().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_gives_the_changelog() {
    let (_served, one) = Served::with_tables().await;
    let changes = one.rows("SUBSCRIBE (SELECT count(*) AS n FROM few)").await;
    assert_eq!(changes, [r#"NULL|{"n":5}|c"#]);
    let rows = one
        .rows("SUBSCRIBE (SELECT counter FROM few WHERE counter = 4)")
        .await;
    assert_eq!(rows, [r#"NULL|{"counter":4}|c"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_a_code_a_position_and_a_hint() {
    let (_served, one) = Served::with_tables().await;
    let error = one.refused("SELECT 'é',\n  countr FROM few").await;
    assert_eq!(coded(&error), "42703 column \"countr\" does not exist");
    // The character, not the byte, in the whole text.
    assert_eq!(error.position(), Some(&ErrorPosition::Original(15)));
    assert_eq!(error.hint(), Some("table \"few\" has \"counter\""));
    assert_eq!(
        coded(&one.refused("SELECT 32768::SMALLINT").await)
            .split_once(' ')
            .unwrap()
            .0,
        "42804"
    );
    let failed = one.refused("SELECT 1 / (counter - 4) FROM few").await;
    assert_eq!(failed.code().code(), "22000");
    assert!(failed.message().contains("division by zero"), "{failed}");
    assert_eq!(one.rows("SELECT 1").await, ["1"], "the connection goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_error_of_a_text_stops_the_rest() {
    let (_served, one) = Served::with_tables().await;
    // A fault is found before anything is done.
    one.refused(
        "CREATE VIEW v AS SELECT 1 AS n; SELECT nosuch FROM v; CREATE VIEW w AS SELECT 1 AS n",
    )
    .await;
    assert_eq!(
        coded(&one.refused("SELECT * FROM v").await),
        "42P01 table \"v\" does not exist"
    );
    // A failure ends the text where it happens.
    one.refused("SET updating_ttl = '2 hours'; SELECT 1 / (counter - 4) FROM few; INSERT INTO nowhere SELECT counter FROM few")
        .await;
    assert_eq!(one.rows("SHOW updating_ttl").await, ["2 hours"]);
    assert_eq!(one.rows("SHOW JOBS").await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_a_connections_own_and_tables_are_not() {
    let (served, one) = Served::with_tables().await;
    let other = served.connect().await;
    one.rows("SET updating_ttl = '3 hours'; SET application_name = 'x'")
        .await;
    assert_eq!(
        one.rows("SHOW updating_ttl; SHOW application_name").await,
        ["3 hours", "x"]
    );
    assert_eq!(
        other.rows("SHOW updating_ttl; SHOW application_name").await,
        ["1 day", ""]
    );
    other
        .rows("CREATE VIEW five AS SELECT counter FROM few")
        .await;
    assert_eq!(one.rows("SELECT count(*) FROM five").await, ["5"]);
    one.rows("RESET ALL; DROP VIEW five").await;
    assert_eq!(one.rows("SHOW updating_ttl").await, ["1 day"]);
    assert_eq!(
        coded(&other.refused("SELECT * FROM five").await),
        "42P01 table \"five\" does not exist"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_a_text_that_a_stream_connects_run_together() {
    let (_served, one) = Served::with_tables().await;
    let rows = one
        .rows(
            "CREATE TABLE between (n BIGINT UNSIGNED);
             INSERT INTO between SELECT counter FROM few WHERE counter > 1;
             SELECT sum(n) FROM between",
        )
        .await;
    assert_eq!(rows, ["9"]);
    let error = one
        .refused("INSERT INTO between SELECT counter FROM ticks; SELECT n FROM between")
        .await;
    assert_eq!(error.code().code(), "0A000");
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_are_kept_book_of() {
    let (_served, one) = Served::with_tables().await;
    one.rows("BEGIN").await;
    one.refused("SELECT nosuch").await;
    let refused = one.refused("SELECT 1").await;
    assert_eq!(refused.code().code(), "25P02");
    one.rows("ROLLBACK").await;
    assert_eq!(one.rows("SELECT 1").await, ["1"]);
    one.rows("COMMIT").await;
    assert_eq!(
        one.notices(),
        ["WARNING: there is no transaction in progress"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_writes_text_and_csv() {
    use futures::TryStreamExt;
    let (_served, one) = Served::with_tables().await;
    let copied = async |sql: &str| {
        let stream = one.client.copy_out(sql).await.unwrap();
        let chunks: Vec<_> = stream.try_collect().await.unwrap();
        String::from_utf8(chunks.concat()).unwrap()
    };
    assert_eq!(
        copied("COPY (SELECT counter, NULL AS x, 'a\tb' FROM few WHERE counter < 2) TO STDOUT")
            .await,
        "0\t\\N\ta\\tb\n1\t\\N\ta\\tb\n"
    );
    assert_eq!(
        copied(
            "COPY (SELECT counter, NULL AS x, 'a;b' AS t FROM few WHERE counter < 1) TO STDOUT \
                WITH (FORMAT csv, HEADER, DELIMITER ';')"
        )
        .await,
        "counter;x;t\n0;;\"a;b\"\n"
    );
    assert_eq!(
        copied("COPY (SUBSCRIBE (SELECT count(*) AS n FROM few)) TO STDOUT CSV").await,
        "\"\",\"{\"\"n\"\":5}\",c\n".replace("\"\",\"{", ",\"{")
    );
    let refused = one.refused("COPY few TO STDOUT").await;
    assert!(
        refused.hint().unwrap().contains("COPY (SELECT"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_query_holds_nobody_up() {
    let (served, one) = Served::with_tables().await;
    let other = served.connect().await;
    let endless = one
        .client
        .simple_query("SUBSCRIBE (SELECT count(*) FROM ticks)");
    let quick = other.rows("SELECT count(*) FROM few");
    tokio::select! {
        ended = endless => panic!("{:?}", ended.map(|_| ())),
        rows = quick => assert_eq!(rows, ["5"]),
    }
}
