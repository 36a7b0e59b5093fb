use std::time::Duration;

use okt_store::Databases;
use okt_testkit::db::{TestDatabase, run, url_of};
use okt_testkit::wait::eventually;
use sqlx::Connection;

#[tokio::test]
async fn an_empty_database_is_migrated_once_and_then_up_to_date() {
    let database = TestDatabase::empty().await;
    let config = database.config(&[]);

    let pending = Databases::pending(&config).await.unwrap();
    assert_eq!(pending.len(), if has_pgvector(&database).await { 4 } else { 3 });
    assert!(pending.iter().all(|report| !report.migrations.is_empty()), "{pending:?}");

    let applied = Databases::migrate(&config).await.unwrap();
    assert_eq!(applied, pending);
    assert!(Databases::pending(&config).await.unwrap().iter().all(|report| report.migrations.is_empty()));
    assert!(Databases::migrate(&config).await.unwrap().iter().all(|report| report.migrations.is_empty()));
}

async fn has_pgvector(database: &TestDatabase) -> bool {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')")
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap()
}

async fn has_vectors(conn: &mut sqlx::PgConnection) -> bool {
    sqlx::query_scalar("SELECT to_regclass('okt_vectors.points') IS NOT NULL").fetch_one(conn).await.unwrap()
}

/// PostgreSQL's own login may switch pgvector on; an ordinary one may not, and goes without until somebody has.
#[tokio::test]
async fn vectors_are_there_as_soon_as_pgvector_is() {
    let database = TestDatabase::empty().await;
    if !has_pgvector(&database).await {
        return;
    }
    let mut conn = database.connect().await;
    let role = format!("{}_plain", database.name());
    run(&mut conn, &format!("CREATE ROLE {role} LOGIN PASSWORD 'plain'")).await;
    run(&mut conn, &format!("ALTER DATABASE {} OWNER TO {role}", database.name())).await;
    let url = url_of(database.name());
    let (_, address) = url.split_once('@').unwrap();
    let config =
        database.config(&[("SVC__DATABASES__DEFAULT__URL", &format!("postgres://{role}:plain@{address}"))]);

    assert_eq!(Databases::migrate(&config).await.unwrap().len(), 3);
    assert!(!has_vectors(&mut conn).await);
    run(&mut conn, "CREATE EXTENSION vector").await;
    assert_eq!(Databases::pending(&config).await.unwrap()[3].schema, "okt_vectors");
    assert_eq!(Databases::migrate(&config).await.unwrap().len(), 4);
    assert!(has_vectors(&mut conn).await);

    run(&mut conn, &format!("REASSIGN OWNED BY {role} TO postgres; DROP OWNED BY {role}")).await;
    run(&mut conn, &format!("DROP ROLE {role}")).await;
}

#[tokio::test]
async fn a_dozen_migrators_at_once_apply_each_migration_once() {
    let database = TestDatabase::empty().await;
    let config = database.config(&[]);
    let mut migrators = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let config = config.clone();
        migrators.spawn(async move { Databases::migrate(&config).await.unwrap() });
    }
    let reports = migrators.join_all().await;
    let busy =
        reports.iter().filter(|reports| reports.iter().any(|report| !report.migrations.is_empty())).count();
    assert_eq!(busy, 1, "exactly one of them did the work");
}

#[tokio::test]
async fn schemas_live_apart_when_told_to() {
    let (main, tasks, tenant) =
        (TestDatabase::empty().await, TestDatabase::empty().await, TestDatabase::empty().await);
    let config = main.config(&[
        ("SVC__DATABASES__TASKS__URL", tasks.url()),
        ("SVC__DATABASES__TENANT__URL", tenant.url()),
    ]);
    Databases::migrate(&config).await.unwrap();
    let vectors = if has_pgvector(&main).await { vec!["okt_vectors"] } else { Vec::new() };
    for (database, expected) in [
        (&main, [vec!["okt_repository", "okt_system"], vectors.clone()].concat()),
        (&tasks, vec!["okt_tasks"]),
        (&tenant, [vec!["okt_repository"], vectors].concat()),
    ] {
        let schemas: Vec<String> =
            sqlx::query_scalar("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'okt\\_%' ORDER BY 1")
                .fetch_all(&mut database.connect().await)
                .await
                .unwrap();
        assert_eq!(schemas, expected);
    }
}

#[tokio::test]
async fn a_newer_schema_does_not_stop_an_older_process() {
    let database = TestDatabase::migrated().await;
    run(
        &mut database.connect().await,
        "INSERT INTO okt_system.migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'from the future', true, '\\x00', 0)",
    )
    .await;
    assert!(Databases::migrate(&database.config(&[])).await.is_ok());
}

#[tokio::test]
async fn a_migration_that_was_changed_after_the_fact_is_refused() {
    let database = TestDatabase::migrated().await;
    run(
        &mut database.connect().await,
        "UPDATE okt_system.migrations SET checksum = '\\x00' WHERE version = 1",
    )
    .await;
    let error = Databases::migrate(&database.config(&[])).await.unwrap_err();
    assert!(error.to_string().contains("migration 1 of okt_system was changed"), "{error}");
}

#[tokio::test]
async fn an_ordinary_owner_can_migrate_and_serve() {
    let database = TestDatabase::empty().await;
    let role = format!("{}_owner", database.name());
    let mut conn = database.connect().await;
    run(
        &mut conn,
        &format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'plain'; ALTER DATABASE {} OWNER TO {role}",
            database.name()
        ),
    )
    .await;
    let url = url_of(database.name());
    let (_, address) = url.split_once('@').unwrap();
    let config =
        database.config(&[("SVC__DATABASES__DEFAULT__URL", &format!("postgres://{role}:plain@{address}"))]);

    Databases::migrate(&config).await.unwrap();
    let databases = Databases::open(&config, &[okt_store::Purpose::Api]).await.unwrap().remove(0);
    let user: String = sqlx::query_scalar("SELECT current_user::text")
        .fetch_one(&mut *databases.acquire_system().await.unwrap())
        .await
        .unwrap();
    assert_eq!(user, role, "no second role is needed");
    super::row_level_security::tenants_are_apart(&databases).await;

    databases.close().await;
    run(&mut conn, &format!("REASSIGN OWNED BY {role} TO postgres; DROP OWNED BY {role}")).await;
    conn.close().await.unwrap();
    drop(database);
    let mut server = sqlx::PgConnection::connect(&okt_testkit::db::server_url()).await.unwrap();
    run(&mut server, &format!("DROP ROLE {role}")).await;
}

/// Waiting migrators must not stand in the way of an index that is built concurrently by the one who works.
#[tokio::test]
async fn a_waiting_migrator_holds_up_nobody() {
    let database = TestDatabase::migrated().await;
    let config = database.config(&[]);
    let mut worker = database.connect().await;
    run(&mut worker, "SELECT pg_advisory_lock(x'6f6b745f6d696772'::bigint)").await;
    let waiting = tokio::spawn(async move { Databases::migrate(&config).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    run(&mut worker, "SET statement_timeout = '5s'").await;
    run(&mut worker, "CREATE INDEX CONCURRENTLY planted ON okt_system.idempotency_keys (claim)").await;
    assert!(!waiting.is_finished(), "it waits for the lock");
    worker.close().await.unwrap();
    waiting.await.unwrap().unwrap();
}

/// An operator builds an index of theirs, and an old transaction keeps it from becoming valid.
#[tokio::test]
async fn an_index_that_is_being_built_is_not_mended() {
    let database = TestDatabase::migrated().await;
    let mut old = database.connect().await;
    run(&mut old, "BEGIN; SELECT FROM okt_system.idempotency_keys").await;
    run(&mut old, "LOCK TABLE okt_system.idempotency_keys IN ROW EXCLUSIVE MODE").await;
    let mut operator = database.connect().await;
    let building = tokio::spawn(async move {
        run(&mut operator, "CREATE INDEX CONCURRENTLY planted ON okt_system.idempotency_keys (claim)").await;
    });
    let mut conn = database.connect().await;
    eventually(Duration::from_secs(20), "the index is there and not valid", async || {
        let found = "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('okt_system.planted')
                                       AND NOT indisvalid)";
        let found: bool = sqlx::query_scalar(found).fetch_one(&mut conn).await.unwrap();
        if found { Ok(()) } else { Err("it is not") }
    })
    .await;
    let config = database.config(&[]);
    let migrated = tokio::time::timeout(Duration::from_secs(20), Databases::migrate(&config));
    migrated.await.expect("it waits for nobody").unwrap();
    run(&mut old, "COMMIT").await;
    building.await.unwrap();
}

#[tokio::test]
async fn a_table_that_was_never_granted_is_granted_at_the_next_start() {
    let database = TestDatabase::migrated().await;
    run(&mut database.connect().await, "CREATE TABLE okt_system.left_alone (id bigserial)").await;
    Databases::migrate(&database.config(&[])).await.unwrap();
    let granted: bool = sqlx::query_scalar(
        "SELECT has_table_privilege('okt_service', 'okt_system.left_alone', 'INSERT')
            AND has_sequence_privilege('okt_service', 'okt_system.left_alone_id_seq', 'USAGE')",
    )
    .fetch_one(&mut database.connect().await)
    .await
    .unwrap();
    assert!(granted);
}

/// What managed services hand out: may pass row-level security, but is no superuser.
#[tokio::test]
async fn a_login_that_may_pass_but_not_become_the_role_is_told_what_to_do() {
    let database = TestDatabase::migrated().await;
    let role = format!("{}_passes", database.name());
    let mut conn = database.connect().await;
    let make = format!("CREATE ROLE {role} LOGIN BYPASSRLS PASSWORD 'plain'; GRANT {role} TO postgres;");
    run(&mut conn, &make).await;
    run(&mut conn, &format!("GRANT USAGE ON SCHEMA okt_system, okt_repository, okt_tasks TO {role}")).await;
    let grant = format!(
        "GRANT SELECT ON okt_system.migrations, okt_repository.migrations, okt_tasks.migrations TO {role}"
    );
    run(&mut conn, &grant).await;
    if has_vectors(&mut conn).await {
        run(&mut conn, &format!("GRANT USAGE ON SCHEMA okt_vectors TO {role}; GRANT SELECT ON okt_vectors.migrations TO {role}")).await;
    }
    let url = url_of(database.name());
    let (_, address) = url.split_once('@').unwrap();
    let config =
        database.config(&[("SVC__DATABASES__DEFAULT__URL", &format!("postgres://{role}:plain@{address}"))]);

    let error = Databases::migrate(&config).await.unwrap_err().to_string();
    assert!(error.contains("not take on the role okt_service"), "{error}");
    assert!(!error.contains("plain"), "{error}");

    run(&mut conn, &format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

const INDEX: &str = "okt_system.role_assignments_member_idx";

/// Whether there is such an index, and whether it can be used.
async fn is_valid(database: &TestDatabase, index: &str) -> Option<bool> {
    sqlx::query_scalar("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)")
        .bind(index)
        .fetch_optional(&mut database.connect().await)
        .await
        .unwrap()
}

/// A transaction that an index which is built concurrently has to wait for.
async fn old_transaction(database: &TestDatabase) -> sqlx::PgConnection {
    let mut conn = database.connect().await;
    run(&mut conn, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM okt_system.role_assignments")
        .await;
    conn
}

#[tokio::test]
async fn an_index_waits_for_old_transactions_and_is_valid_in_the_end() {
    let database = TestDatabase::migrated().await;
    let forget = format!("DROP INDEX {INDEX}; DELETE FROM okt_system.migrations WHERE version = 6");
    run(&mut database.connect().await, &forget).await;
    let mut old = old_transaction(&database).await;
    let config = database.config(&[]);
    let migrating = tokio::spawn(async move { Databases::migrate(&config).await });
    // Longer than a migration waits for the lock of a table.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let waits = !migrating.is_finished();
    run(&mut old, "COMMIT").await;
    migrating.await.unwrap().unwrap();
    assert_eq!(is_valid(&database, INDEX).await, Some(true));
    assert!(waits, "it gave up early");
}

#[tokio::test]
async fn what_an_earlier_try_has_left_of_an_index_is_rebuilt() {
    let database = TestDatabase::migrated().await;
    for recorded in [false, true] {
        let mut conn = database.connect().await;
        run(&mut conn, &format!("DROP INDEX {INDEX}; SET lock_timeout = '100ms'")).await;
        if !recorded {
            run(&mut conn, "DELETE FROM okt_system.migrations WHERE version = 6").await;
        }
        let old = old_transaction(&database).await;
        let build = "CREATE INDEX CONCURRENTLY role_assignments_member_idx ON okt_system.role_assignments (domain, user_id)";
        let gave_up = sqlx::query(build).execute(&mut conn).await.unwrap_err();
        assert_eq!(gave_up.as_database_error().unwrap().code().unwrap(), "55P03");
        assert_eq!(is_valid(&database, INDEX).await, Some(false));
        old.close().await.unwrap();

        Databases::migrate(&database.config(&[])).await.unwrap();
        assert_eq!(is_valid(&database, INDEX).await, Some(true), "recorded as done: {recorded}");
    }
}

#[tokio::test]
async fn an_index_that_can_not_be_rebuilt_is_an_error_that_names_it() {
    let database = TestDatabase::migrated().await;
    let mut conn = database.connect().await;
    run(&mut conn, "CREATE TABLE okt_system.planted (n int); INSERT INTO okt_system.planted VALUES (1), (1)")
        .await;
    let build = "CREATE UNIQUE INDEX CONCURRENTLY planted_idx ON okt_system.planted (n)";
    sqlx::query(build).execute(&mut conn).await.unwrap_err();
    let refused = Databases::migrate(&database.config(&[])).await.unwrap_err().to_string();
    for part in
        ["databases.default", "okt_system.planted_idx", "could not create unique index", "okt migrate"]
    {
        assert!(refused.contains(part), "{refused}");
    }

    run(&mut conn, "TRUNCATE okt_system.planted").await;
    Databases::migrate(&database.config(&[])).await.unwrap();
    assert_eq!(is_valid(&database, "okt_system.planted_idx").await, Some(true));
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_index WHERE NOT indisvalid")
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert_eq!(left, 0, "nothing of the tries is left");
}
