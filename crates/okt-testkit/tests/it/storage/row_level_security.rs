use okt_model::RepositoryId;
use okt_store::{Databases, Purpose, counters};
use okt_testkit::db::TestDatabase;

/// What row-level security promises, whoever is logged in.
pub async fn tenants_are_apart(databases: &Databases) {
    let (ours, theirs) = (RepositoryId::mint(), RepositoryId::mint());
    for (repository, value) in [(ours, 3), (theirs, 5)] {
        let mut tx = databases.begin("default", repository).await.unwrap();
        counters::add(&mut tx, repository, "facts", value).await.unwrap();
        counters::add(&mut tx, repository, "facts", value).await.unwrap();
        tx.commit().await.unwrap();
    }

    let mut tx = databases.begin("default", ours).await.unwrap();
    assert_eq!(counters::list(&mut tx, ours).await.unwrap(), [("facts".to_owned(), 6)]);
    // Somebody else's id in an otherwise right query.
    assert_eq!(counters::list(&mut tx, theirs).await.unwrap(), []);
    // A query that forgot its WHERE.
    let all: Vec<i64> =
        sqlx::query_scalar("SELECT value FROM okt_repository.counters").fetch_all(&mut *tx).await.unwrap();
    assert_eq!(all, [6]);
    let changed =
        sqlx::query("UPDATE okt_repository.counters SET value = 0").execute(&mut *tx).await.unwrap();
    assert_eq!(changed.rows_affected(), 1);
    drop(tx);

    let mut tx = databases.begin("default", ours).await.unwrap();
    let written = counters::add(&mut tx, theirs, "facts", 1).await.unwrap_err();
    let cause = std::error::Error::source(&written).unwrap().to_string();
    assert!(cause.contains("row-level security"), "{cause}");
    drop(tx);

    // No tenant at all, on a connection that had one a moment ago.
    let none: Vec<i64> = sqlx::query_scalar("SELECT value FROM okt_repository.counters")
        .fetch_all(&mut *databases.acquire_system().await.unwrap())
        .await
        .unwrap();
    assert_eq!(none, [0; 0]);
}

#[tokio::test]
async fn a_forgotten_where_yields_one_tenant_and_no_tenant_yields_nothing() {
    let database = TestDatabase::migrated().await;
    let databases = Databases::open(&database.config(&[]), &[Purpose::Api]).await.unwrap().remove(0);
    tenants_are_apart(&databases).await;
}

#[tokio::test]
async fn a_superuser_login_works_as_a_role_that_cannot_pass() {
    let database = TestDatabase::migrated().await;
    let databases = Databases::open(&database.config(&[]), &[Purpose::Worker]).await.unwrap().remove(0);
    let user: String = sqlx::query_scalar("SELECT current_user::text")
        .fetch_one(&mut *databases.acquire_system().await.unwrap())
        .await
        .unwrap();
    assert_eq!(user, "okt_service");
    let ddl = sqlx::query("CREATE TABLE okt_system.planted ()")
        .execute(&mut *databases.acquire_system().await.unwrap())
        .await;
    assert!(ddl.is_err(), "the service may change rows, not tables");
    let ledger = sqlx::query("DELETE FROM okt_system.migrations")
        .execute(&mut *databases.acquire_system().await.unwrap())
        .await;
    assert!(ledger.is_err(), "nor the ledger of migrations");
}

/// Looks at the catalogue, so that it holds for every table that is ever added.
#[tokio::test]
async fn every_repository_table_is_scoped_by_its_keys_and_its_policy() {
    let database = TestDatabase::migrated().await;
    let mut conn = database.connect().await;
    assert_eq!(unscoped_tables(&mut conn).await, [""; 0]);

    okt_testkit::db::run(
        &mut conn,
        "CREATE TABLE okt_repository.planted (id uuid PRIMARY KEY, repository_id uuid NOT NULL);
         CREATE TABLE okt_repository.unguarded (repository_id uuid NOT NULL, id uuid, PRIMARY KEY (repository_id, id));
         CREATE TABLE okt_repository.linked (repository_id uuid NOT NULL, id uuid, PRIMARY KEY (repository_id, id));
         ALTER TABLE okt_repository.linked ENABLE ROW LEVEL SECURITY;
         ALTER TABLE okt_repository.linked FORCE ROW LEVEL SECURITY;
         CREATE POLICY everybody ON okt_repository.linked USING (true);
         CREATE POLICY another ON okt_repository.counters USING (true);
         CREATE TABLE okt_repository.parted (repository_id uuid NOT NULL, id uuid, PRIMARY KEY (repository_id, id))
             PARTITION BY HASH (repository_id);
         ALTER TABLE okt_repository.parted ENABLE ROW LEVEL SECURITY;
         ALTER TABLE okt_repository.parted FORCE ROW LEVEL SECURITY;
         CREATE POLICY repository ON okt_repository.parted
             USING (repository_id = okt_repository.current_repository());
         CREATE TABLE okt_repository.part PARTITION OF okt_repository.parted FOR VALUES WITH (MODULUS 1, REMAINDER 0);",
    )
    .await;
    assert_eq!(
        unscoped_tables(&mut conn).await,
        [
            "counters: policy",
            "linked: policy",
            "part: policy",
            "planted: index planted_pkey",
            "planted: policy",
            "unguarded: policy"
        ]
    );
}

async fn unscoped_tables(conn: &mut sqlx::PgConnection) -> Vec<String> {
    // Spaces of vectors belong to the installation.
    sqlx::query_scalar(
        "SELECT c.relname || ': policy'
           FROM pg_class c
          WHERE c.relnamespace IN (to_regnamespace('okt_repository'), to_regnamespace('okt_vectors'))
            AND c.relkind IN ('r', 'p') AND c.relname NOT IN ('migrations', 'spaces')
            -- Policies are alternatives, so a second one only ever lets more through. The relay copies the outbox entries of all
            -- tenants whose write fences are open, so these tables have one more policy.
            AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND coalesce((
                SELECT count(*) = 1 AND bool_and(p.polcmd = '*' AND p.polwithcheck IS NULL
                   AND pg_get_expr(p.polqual, c.oid) = CASE WHEN c.relname IN ('outbox', 'audit_outbox', 'closed')
                       THEN '((repository_id = okt_repository.current_repository()) OR okt_repository.is_relay())'
                       ELSE '(repository_id = okt_repository.current_repository())' END)
                  FROM pg_policy p
                 WHERE p.polrelid = c.oid), false))
         UNION ALL
         SELECT c.relname || ': index ' || x.relname
           FROM pg_index i
           JOIN pg_class c ON c.oid = i.indrelid
           JOIN pg_class x ON x.oid = i.indexrelid
           LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
          WHERE c.relnamespace IN (to_regnamespace('okt_repository'), to_regnamespace('okt_vectors'))
            AND c.relname NOT IN ('migrations', 'spaces')
            AND a.attname IS DISTINCT FROM 'repository_id'
         ORDER BY 1",
    )
    .fetch_all(conn)
    .await
    .unwrap()
}
