//! `okt-pg` alone: a service with a database, a schema and migrations of its own, as the registry will be one.

use std::path::Path;
use std::time::Duration;

use okt_pg::{Limits, Listener, Migrator, Pool, Schema};
use okt_testkit::db::{TestDatabase, server_url, url_of};
use sqlx::SqlSafeStr as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

const CHANNEL: &str = "own_entries";

fn schema() -> Schema {
    Schema::new("own", sqlx::migrate!("tests/it/storage/own_schema"))
}

fn options(url: &str, ssl_mode: PgSslMode, root: Option<&Path>) -> PgConnectOptions {
    // As a program does when it starts.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    okt_pg::options(url, "own", ssl_mode, root).expect("an address")
}

fn pool(options: &PgConnectOptions, limit: u32) -> Pool {
    let limits = Limits {
        statement: Duration::from_secs(10),
        lock: Duration::from_secs(3),
        idle_in_transaction: Duration::from_secs(30),
    };
    Pool::new(okt_pg::session(options, &limits), None, limit, Duration::from_secs(10))
}

#[tokio::test]
async fn a_service_with_tables_of_its_own_needs_no_other_crate() {
    let database = TestDatabase::empty().await;
    let options = options(database.url(), PgSslMode::Disable, None);

    // Two processes start at once: one migrates, the other waits and finds it done.
    let migrate =
        async || Migrator::lock(&options, "own migrate").await.unwrap().run(&[schema()], None).await.unwrap();
    let (one, other) = tokio::join!(migrate(), migrate());
    let mut applied: Vec<_> = [one, other].into_iter().flatten().map(|report| report.migrations).collect();
    applied.sort();
    assert_eq!(applied, [vec![], vec!["0001 entries".to_owned(), "0002 entries by length".to_owned()]]);
    let mut conn = okt_pg::connect(&options, None).await.unwrap();
    assert_eq!(schema().missing(&mut conn).await.unwrap(), Vec::<String>::new());

    let mut listener = Listener::open(&options, &[CHANNEL]).await.unwrap();
    let pool = pool(&options, 2);
    let insert = async |name: &str| {
        let mut tx = pool.begin_and_notify("BEGIN".into_sql_str(), CHANNEL).await?;
        sqlx::query("INSERT INTO own.entries (name) VALUES ($1)").bind(name).execute(&mut *tx).await?;
        Ok::<_, sqlx::Error>(tx)
    };
    drop(insert("rolled back").await.unwrap());
    insert("kept").await.unwrap().commit().await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(10), listener.hear()).await;
    assert_eq!(heard.expect("a notification after the commit").unwrap().0, CHANNEL);
    let names: Vec<String> = sqlx::query_scalar("SELECT name FROM own.entries")
        .fetch_all(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap();
    assert_eq!(names, ["kept"]);

    // A fault of ours is told from a server that does not answer in time.
    let twice = insert("kept").await.err().unwrap();
    assert!(!okt_pg::Error::from(twice).retryable());
    let mut tx = pool.begin("BEGIN; SET LOCAL statement_timeout = 50".into_sql_str()).await.unwrap();
    let slow = sqlx::query("SELECT pg_sleep(30)").execute(&mut *tx).await.unwrap_err();
    assert!(okt_pg::Error::from(slow).retryable());
    drop(tx);
    pool.close().await;
    assert!(okt_pg::Error::from(pool.acquire().await.err().unwrap()).retryable());
}

#[tokio::test]
async fn what_is_in_the_way_of_a_connection_is_said_without_the_password() {
    let said = async |url: &str, ssl_mode, root: Option<&Path>| {
        let error = okt_pg::connect(&options(url, ssl_mode, root), None).await.unwrap_err();
        let said = std::error::Error::source(&error).unwrap().to_string();
        assert!(!said.contains("s3cr3t"), "{said}");
        said
    };
    assert_eq!(
        said("postgres://okt:s3cr3t@127.0.0.1:1/knowledge", PgSslMode::Disable, None).await,
        "can't connect to database \"knowledge\" at 127.0.0.1:1 as user \"okt\": connection refused; nothing listens \
         there: start PostgreSQL, or correct the address"
    );
    let socket = "postgres://okt:s3cr3t@%2Fno%2Fsuch%2Ffolder/knowledge";
    assert!(said(socket, PgSslMode::Disable, None).await.contains("there is no such socket"));
    let other_ca = std::env::var("OKT_TEST_PG_OTHER_CA").expect("`eval \"$(scripts/services env)\"`");
    let tls = said(&server_url(), PgSslMode::VerifyCa, Some(Path::new(&other_ca))).await;
    assert!(tls.contains("TLS failed: ") && tls.contains("ssl_root_cert"), "{tls}");
    let missing = said(&url_of("no_such_database"), PgSslMode::Disable, None).await;
    assert!(missing.contains("create it: CREATE DATABASE \"no_such_database\""), "{missing}");
    assert!(okt_pg::options("/s3cr3t", "own", PgSslMode::Disable, None).is_none());
}
