//! Prepared statements, parameters and binary values.

use tokio_postgres::types::Type;

use crate::harness::{Served, coded};

#[tokio::test(flavor = "multi_thread")]
async fn parameters_have_the_types_of_what_is_around_them() {
    let (_served, one) = Served::with_tables().await;
    let sql = "SELECT $1::INT, $2, counter FROM few WHERE counter = $3 AND '2024-01-01'::DATE < $4 LIMIT $5";
    let statement = one.client.prepare(sql).await.unwrap();
    let date = Type::DATE;
    assert_eq!(
        statement.params(),
        [Type::INT4, Type::TEXT, Type::INT8, date, Type::INT8]
    );
    let names: Vec<_> = statement
        .columns()
        .iter()
        .map(|column| column.type_().name())
        .collect();
    assert_eq!(names, ["int4", "text", "numeric"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_take_the_place_of_parameters() {
    let (_served, one) = Served::with_tables().await;
    let client = &one.client;
    let text = "'; DROP TABLE few; --";
    let sql = "SELECT $1::INT + 1, $2::TEXT, $3::BOOL, $4::FLOAT8";
    let row = client
        .query_one(sql, &[&-7, &text, &true, &1.5_f64])
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, &str>(1)), (-6, text));
    assert_eq!((row.get::<_, bool>(2), row.get::<_, f64>(3)), (true, 1.5));
    let nothing = client
        .query_one("SELECT $1::INT IS NULL", &[&None::<i32>])
        .await
        .unwrap();
    assert!(nothing.get::<_, bool>(0));
    let rows = client
        .query(
            "SELECT CAST(counter AS BIGINT) FROM few WHERE counter > $1",
            &[&2_i64],
        )
        .await
        .unwrap();
    assert_eq!(
        rows.iter()
            .map(|row| row.get::<_, i64>(0))
            .collect::<Vec<_>>(),
        [3, 4]
    );
    let bytes = client
        .query_one("SELECT $1::BYTEA", &[&&b"\x00\xff'"[..]])
        .await
        .unwrap();
    assert_eq!(bytes.get::<_, &[u8]>(0), b"\x00\xff'");
    let written = client
        .execute("INSERT INTO small VALUES ($1), ($2)", &[&1_i16, &-2_i16])
        .await
        .unwrap();
    assert_eq!(written, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_and_times_come_in_binary() {
    let (_served, one) = Served::with_tables().await;
    let sql =
        "SELECT make_array(1, 2), TIMESTAMP '2024-01-01 10:00:15.5', INTERVAL '90 minutes', 'x'";
    let row = one.client.query_one(sql, &[]).await.unwrap();
    assert_eq!(row.get::<_, Vec<i64>>(0), [1, 2]);
    let at = row.get::<_, std::time::SystemTime>(1);
    let since = at.duration_since(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(since.as_millis(), 1_704_103_215_500);
    assert_eq!(row.columns()[2].type_(), &Type::INTERVAL);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_prepared_statement_is_told() {
    let (_served, one) = Served::with_tables().await;
    let refused = async |sql: &str| {
        let error = one.client.prepare(sql).await.unwrap_err();
        coded(error.as_db_error().unwrap())
    };
    assert_eq!(
        refused("SELECT 1; SELECT 2").await,
        "42601 cannot insert multiple commands into a prepared statement"
    );
    assert_eq!(
        refused("SELECT nosuch FROM few").await,
        "42703 column \"nosuch\" does not exist"
    );
    assert_eq!(
        refused("SELECT $0").await,
        "42601 \"$0\" is no parameter: they are $1, $2, …"
    );
    let statement = one.client.prepare("SELECT $1::INT").await.unwrap();
    let few = one
        .client
        .query_raw::<_, i32, [i32; 0]>(&statement, [])
        .await;
    assert!(few.is_err());
    assert_eq!(one.rows("SELECT 1").await, ["1"], "the connection goes on");
    let in_simple = one.refused("SELECT $1").await;
    assert_eq!(coded(&in_simple), "42P02 there is no parameter $1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_planned_anew_when_it_runs() {
    let (_served, one) = Served::with_tables().await;
    let client = &one.client;
    client
        .batch_execute("CREATE VIEW v AS SELECT count(*) AS n FROM few")
        .await
        .unwrap();
    let statement = client.prepare("SELECT n FROM v").await.unwrap();
    client
        .batch_execute("CREATE OR REPLACE VIEW v AS SELECT count(*) + 1 AS n FROM few")
        .await
        .unwrap();
    assert_eq!(
        client
            .query_one(&statement, &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        6
    );
    client
        .batch_execute("CREATE OR REPLACE VIEW v AS SELECT 'x' AS n FROM few")
        .await
        .unwrap();
    let changed = client.query(&statement, &[]).await.unwrap_err();
    assert_eq!(
        coded(changed.as_db_error().unwrap()),
        "0A000 cached plan must not change result type"
    );
    client.batch_execute("DROP VIEW v").await.unwrap();
    let gone = client.query(&statement, &[]).await.unwrap_err();
    assert_eq!(
        coded(gone.as_db_error().unwrap()),
        "42P01 table \"v\" does not exist"
    );
}
