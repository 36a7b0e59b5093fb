use std::time::{Duration, Instant};

use okt_store::{Databases, Purpose};
use okt_testkit::db::{TestDatabase, run};
use sqlx::ConnectOptions;

const MODE: &str = "SVC__DATABASES__DEFAULT__SSL_MODE";
const ROOT: &str = "SVC__DATABASES__DEFAULT__SSL_ROOT_CERT";

async fn open(database: &TestDatabase, settings: &[(&str, &str)]) -> Databases {
    Databases::open(&database.config(settings), &[Purpose::Api]).await.unwrap().remove(0)
}

fn file(variable: &str) -> String {
    std::env::var(variable).expect("`eval \"$(scripts/services env)\"`")
}

#[tokio::test]
async fn ssl_modes_mean_what_they_say() {
    let database = TestDatabase::migrated().await;
    let (ca, other_ca) = (file("OKT_TEST_PG_CA"), file("OKT_TEST_PG_OTHER_CA"));
    let wrong_name = database.url().replace("127.0.0.1", "0x7f.0x1");
    let tls_is_used = async |settings: &[(&str, &str)]| {
        let config = database.config(settings);
        Databases::open(&config, &[Purpose::Api]).await?;
        // By the same options but as the login itself, because the service's role does not see this view's rows.
        let options = okt_store::connect_options(&config.database("default").unwrap())?;
        let mut conn = options.connect().await.unwrap();
        let query = sqlx::query_scalar("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
        Ok::<bool, okt_model::Error>(query.fetch_one(&mut conn).await.unwrap())
    };

    assert!(!tls_is_used(&[(MODE, "disable")]).await.unwrap());
    assert!(tls_is_used(&[(MODE, "require")]).await.unwrap());
    assert!(tls_is_used(&[(MODE, "verify-ca"), (ROOT, &ca)]).await.unwrap());
    assert!(tls_is_used(&[(MODE, "verify-full"), (ROOT, &ca)]).await.unwrap());
    for mode in ["verify-ca", "verify-full"] {
        let error = tls_is_used(&[(MODE, mode), (ROOT, &other_ca)]).await.unwrap_err();
        assert!(error.to_string().contains("databases.default: "), "{error}");
    }
    // The same server by a name that its certificate does not carry: what verify-full is for.
    let url = ("SVC__DATABASES__DEFAULT__URL", wrong_name.as_str());
    assert!(tls_is_used(&[url, (MODE, "verify-ca"), (ROOT, &ca)]).await.unwrap());
    assert!(tls_is_used(&[url, (MODE, "verify-full"), (ROOT, &ca)]).await.is_err());
}

#[tokio::test]
async fn pools_fit_the_server_and_are_shared_out() {
    let database = TestDatabase::migrated().await;
    let allowed: i32 = sqlx::query_scalar(
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int",
    )
    .fetch_one(&mut database.connect().await)
    .await
    .unwrap();
    let limit = |databases: &Databases| databases.usage().map(|(_, usage)| usage.limit).max().unwrap();

    let config = database.config(&[("SVC__DATABASES__DEFAULT__MAX_CONNS", "5000")]);
    let alone = Databases::open(&config, &[Purpose::Api]).await.unwrap();
    assert!(i32::try_from(limit(&alone[0])).unwrap() < allowed);
    let both = Databases::open(&config, &[Purpose::Api, Purpose::Worker]).await.unwrap();
    assert!(limit(&both[0]) <= limit(&alone[0]) / 2);
    assert_eq!(limit(&both[0]), limit(&both[1]));

    let small = open(&database, &[("SVC__DATABASES__DEFAULT__MAX_CONNS", "4")]).await;
    assert_eq!(limit(&small), 4);
}

#[tokio::test]
async fn api_and_worker_connections_have_their_own_timeouts() {
    let database = TestDatabase::migrated().await;
    // The default, which tests raise.
    let config = database.config(&[("SVC__DATABASES__DEFAULT__LOCK_TIMEOUT", "3s")]);
    let pools = Databases::open(&config, &[Purpose::Api, Purpose::Worker]).await.unwrap();
    for (databases, expected) in pools.iter().zip(["10s", "1min"]) {
        for (setting, expected) in [
            ("statement_timeout", expected),
            ("lock_timeout", "3s"),
            ("idle_in_transaction_session_timeout", "30s"),
        ] {
            let found: String = sqlx::query_scalar("SELECT current_setting($1)")
                .bind(setting)
                .fetch_one(&mut *databases.acquire_system().await.unwrap())
                .await
                .unwrap();
            assert_eq!(found, expected, "{setting}");
        }
    }
}

#[tokio::test]
async fn a_slow_statement_and_a_held_lock_end_as_unavailable() {
    let database = TestDatabase::migrated().await;
    let databases = open(
        &database,
        &[
            ("SVC__DATABASES__DEFAULT__STATEMENT_TIMEOUT", "200ms"),
            ("SVC__DATABASES__DEFAULT__LOCK_TIMEOUT", "100ms"),
        ],
    )
    .await;
    let slow = sqlx::query("SELECT pg_sleep(30)")
        .execute(&mut *databases.acquire_system().await.unwrap())
        .await
        .unwrap_err();
    assert!(okt_pg::Error::from(slow).retryable());

    let mut holder = database.connect().await;
    okt_testkit::db::run(&mut holder, "BEGIN; LOCK okt_system.idempotency_keys").await;
    let locked = sqlx::query("SELECT count(*) FROM okt_system.idempotency_keys")
        .execute(&mut *databases.acquire_system().await.unwrap())
        .await
        .unwrap_err();
    assert_eq!(locked.as_database_error().unwrap().code().unwrap(), "55P03");
    assert!(okt_pg::Error::from(locked).retryable());
}

#[tokio::test]
async fn a_full_pool_refuses_in_time_and_does_not_look_like_a_dead_database() {
    let database = TestDatabase::migrated().await;
    let databases = open(
        &database,
        &[("SVC__DATABASES__DEFAULT__MAX_CONNS", "2"), ("SVC__DATABASES__DEFAULT__ACQUIRE_TIMEOUT", "200ms")],
    )
    .await;
    let _held = (databases.acquire_system().await.unwrap(), databases.acquire_system().await.unwrap());
    let started = Instant::now();
    let refused = databases.acquire_system().await.err().unwrap();
    assert!(refused.retryable());
    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(databases.probe().await.iter().all(|probed| probed.up));
}

#[tokio::test]
async fn two_names_for_one_place_share_a_pool() {
    let database = TestDatabase::migrated().await;
    let databases = open(&database, &[]).await;
    assert_eq!(databases.usage().map(|(name, _)| name).collect::<Vec<_>>(), ["default", "tasks"]);
    let _held = databases.acquire_system().await.unwrap();
    let open: Vec<u32> = databases.usage().map(|(_, usage)| usage.open).collect();
    assert_eq!(open[0], open[1]);
    assert_eq!(databases.probe().await.len(), 1);
}

#[tokio::test]
async fn two_addresses_are_two_places_even_when_they_are_the_same() {
    let database = TestDatabase::migrated().await;
    let databases = open(
        &database,
        &[("SVC__DATABASES__TASKS__URL", database.url()), ("SVC__DATABASES__TASKS__MAX_CONNS", "3")],
    )
    .await;
    let limits: Vec<_> = databases.usage().map(|(name, usage)| (name, usage.limit == 3)).collect();
    assert_eq!(limits, [("default".into(), false), ("tasks".into(), true)]);
}

#[tokio::test]
async fn a_tenants_database_is_not_required_by_everybody() {
    let (database, tenant) = (TestDatabase::migrated().await, TestDatabase::migrated().await);
    let databases = open(&database, &[("SVC__DATABASES__TENANT__URL", tenant.url())]).await;
    let required: Vec<_> =
        databases.probe().await.into_iter().map(|probed| (probed.name, probed.required)).collect();
    assert_eq!(required, [("default".to_owned(), true), ("tenant".to_owned(), false)]);
}

#[tokio::test]
async fn what_is_wrong_with_one_database_is_said_however_long_another_takes() {
    let (database, slow) = (TestDatabase::migrated().await, TestDatabase::migrated().await);
    // Somebody migrates it, for longer than anybody waits.
    let mut migrator = slow.connect().await;
    run(&mut migrator, "SELECT pg_advisory_lock(x'6f6b745f6d696772'::bigint)").await;
    let twin = database.url().replace("127.0.0.1", "localhost");
    // In this order they are listened to.
    let config = database
        .config(&[("SVC__DATABASES__A_SLOW_ONE__URL", slow.url()), ("SVC__DATABASES__TWIN__URL", &twin)]);
    let opened = Databases::migrate_and_open(&config, &[Purpose::Api]).await;
    let error = opened.err().expect("the configuration is at fault").to_string();
    assert!(error.contains("are the same database"), "{error}");
}
