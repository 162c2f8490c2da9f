//! Questions that psql and drivers ask, and what they are told.

use arrow::util::display::array_value_to_string;
use thalweg_planner::Planner;

use super::*;
use crate::engine::{Engine, EngineOptions};
use crate::session::Session;

const TABLES: &str = "
    CREATE TABLE orders (id BIGINT NOT NULL, amount DECIMAL(10, 2), tags TEXT[])
      WITH (connector = 'blackhole');
    CREATE TABLE ticks WITH (connector = 'impulse', event_rate = '10');
    CREATE VIEW v AS SELECT counter AS n FROM ticks";

async fn asked(sql: &str) -> Result<Option<Vec<String>>, Failure> {
    let engine = std::sync::Arc::new(Engine::new(EngineOptions::default()));
    let mut session = Session::of(engine.clone());
    session.plan(TABLES, &Default::default()).unwrap();
    let statement = Planner::parse(sql).pop().unwrap().result.unwrap();
    let catalog = engine.catalog();
    let Some(question) = Question::of(&statement, &catalog) else {
        return Ok(None);
    };
    let schema = tokio::task::block_in_place(|| question.schema(&catalog))?;
    let answer = question.answer(&catalog, "me").await?;
    assert_eq!(schema.fields().len(), answer.num_columns());
    let cell = |column: usize, row: usize| {
        let array = answer.column(column);
        if array.is_null(row) {
            "NULL".to_string()
        } else {
            array_value_to_string(array, row).unwrap()
        }
    };
    let rows = (0..answer.num_rows()).map(|row| {
        let cells = (0..answer.num_columns()).map(|column| cell(column, row));
        cells.collect::<Vec<_>>().join("|")
    });
    Ok(Some(rows.collect()))
}

async fn told(sql: &str) -> Vec<String> {
    match asked(sql).await {
        Ok(rows) => rows.expect("a question about the catalog"),
        Err(failure) => panic!("{failure:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_tell_of_the_server() {
    assert!(told("SELECT version()").await[0].starts_with("PostgreSQL 14.0 (Thalweg "));
    assert_eq!(
        told("SELECT current_schema(), current_database(), current_user, pg_is_in_recovery()")
            .await,
        ["public|thalweg|me|false"]
    );
    assert_eq!(
        told("SELECT pg_catalog.set_config('search_path', '', false)").await,
        [""]
    );
    assert_eq!(
        told("SELECT current_setting('server_version_num')").await,
        ["140000"]
    );
    assert_eq!(told("SELECT pg_advisory_unlock_all()").await, ["NULL"]);
    assert_eq!(
        told(
            "SELECT 'orders'::regclass::oid = (SELECT oid FROM pg_class WHERE relname = 'orders')"
        )
        .await,
        ["true"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_of_our_own_tables_is_no_question() {
    assert_eq!(asked("SELECT id FROM orders").await.unwrap(), None);
    assert_eq!(asked("SELECT 1").await.unwrap(), None);
    assert_eq!(
        asked("SUBSCRIBE (SELECT id FROM orders)").await.unwrap(),
        None
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn relations_and_columns_are_listed() {
    assert_eq!(
        told("SELECT table_name, table_type FROM information_schema.tables ORDER BY 1").await,
        ["orders|BASE TABLE", "ticks|BASE TABLE", "v|VIEW"]
    );
    assert_eq!(
        told(
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns c \
              WHERE c.table_name = 'orders' ORDER BY ordinal_position"
        )
        .await,
        ["id|bigint|NO", "amount|numeric|YES", "tags|text[]|YES"]
    );
    assert_eq!(told("SELECT viewname FROM pg_views").await, ["v"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_asked_for_in_vain() {
    let publications = "SELECT pubname, NULL, NULL FROM pg_catalog.pg_publication p
        JOIN pg_catalog.pg_publication_namespace pn ON p.oid = pn.pnpubid
        UNION SELECT pubname, NULL, NULL FROM pg_catalog.pg_publication p ORDER BY 1";
    assert_eq!(told(publications).await, Vec::<String>::new());
    let policies = "SELECT pol.polname, CASE WHEN pol.polroles = '{0}' THEN NULL ELSE
        pg_catalog.array_to_string(array(select rolname from pg_catalog.pg_roles where oid = any (pol.polroles)), ',') END
        FROM pg_catalog.pg_policy pol WHERE pol.polrelid = '1' ORDER BY 1";
    assert_eq!(told(policies).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_not_understood_says_so() {
    let failure = asked("SELECT * FROM pg_catalog.pg_locks")
        .await
        .unwrap_err();
    assert_eq!(failure.code, "0A000");
    assert!(failure.detail.unwrap().contains("pg_locks"));
    let missing = asked("SELECT 'nosuch'::regclass FROM pg_class")
        .await
        .unwrap_err();
    assert_eq!(
        (missing.code, missing.message.as_str()),
        ("42P01", "relation \"nosuch\" does not exist")
    );
}
