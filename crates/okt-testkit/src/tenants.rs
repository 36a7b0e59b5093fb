//! As many repositories as one likes, with people who hold roles in them: to see what becomes of the statements that run
//! with every request when there are a million tenants and not a thousand.
//!
//! The same rows come with every run. They are made by the database itself, so that a million takes a minute or two.

mod measure;
mod plans;

use std::time::Duration;

use okt_model::{RepositoryId, SessionId, UserId};
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::db::run;

pub use measure::{Figure, Installation, compare};
pub use plans::explained;

/// So that no statement takes more than some seconds.
const CHUNK: i64 = 50_000;

/// In how many repositories the busy one has a role.
const BUSY: i64 = 200;

/// People whose figures are taken in turns.
const SAMPLED: i64 = 100;

/// What is loaded.
const TABLES: [&str; 6] = [
    "okt_system.users",
    "okt_system.sessions",
    "okt_system.role_assignments",
    "okt_system.repositories",
    "okt_system.repository_settings",
    "okt_repository.counters",
];

/// Who and what was made, as far as somebody needs to name it.
pub struct Tenants {
    pub sysadmin: UserId,
    pub busy: UserId,
    /// Where the busy one has a role, with the slugs; from the oldest to the newest repository there is.
    pub theirs: Vec<(RepositoryId, String)>,
    /// People with about twenty roles, each with a session and a repository of theirs.
    pub members: Vec<(UserId, SessionId, RepositoryId)>,
}

/// An id as it would have been minted, one a second. Ids of the same number but of other things differ behind their time.
const ID: &str =
    "CREATE FUNCTION pg_temp.id_of(what text, number bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex((1735689600 + number) * 1000), 12, '0') || '7' || substr(md5(what || number), 1, 3)
        || '8' || substr(md5(what || number), 4, 15))::uuid $$";

/// Who made a repository, by its number; beyond the last repository, who was let in by somebody else. A prime far above
/// twenty, so that the repositories of a member are as far from each other as they can be. Numbers 0 and 1 are the
/// sysadmin and the busy one.
const MEMBER: &str =
    "CREATE FUNCTION pg_temp.member_of(number bigint, members bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT pg_temp.id_of('user', 2 + number * 7919 % (members - 2)) $$";

const USERS: &str = "INSERT INTO okt_system.users (id, email, email_key, name, password_hash, created_at)
    SELECT pg_temp.id_of('user', n), 'person-' || n || '@example.org', 'person-' || n || '@example.org', 'Person ' || n,
           '$argon2id$v=19$m=19456,t=2,p=1$' || left(md5('salt' || n), 22) || '$' || md5('a' || n) || left(md5('b' || n), 11),
           to_timestamp(1735689600 + n)
      FROM generate_series($1, $2 - 1) AS n";

const SESSIONS: &str = "INSERT INTO okt_system.sessions (id, user_id, expires_at)
    SELECT pg_temp.id_of('session', n), pg_temp.id_of('user', n), now() + interval '1 day'
      FROM generate_series($1, $2 - 1) AS n";

const SYSTEM_ROLES: &str = "INSERT INTO okt_system.role_assignments (user_id, domain, role)
    SELECT pg_temp.id_of('user', n), 'system', CASE n WHEN 0 THEN 'sysadmin' ELSE 'user' END
      FROM generate_series($1, $2 - 1) AS n";

const REPOSITORIES: &str =
    "INSERT INTO okt_system.repositories (id, name, slug, description, database, tier, preset, owner_id, state,
           created_at, updated_at)
    SELECT pg_temp.id_of('repository', n), 'Repository ' || n, 'repository-' || n,
           repeat('What is known of number ' || n || '. ', 3), 'default', 'shared', 'general',
           pg_temp.member_of(n, $3), 'active', to_timestamp(1735689600 + n), to_timestamp(1735689600 + n)
      FROM generate_series($1, $2 - 1) AS n";

/// For every fifty that can be seen there is one that was deleted, of which only the id is left.
const DELETED: &str =
    "INSERT INTO okt_system.repositories (id, name, slug, description, database, tier, preset, state)
    SELECT pg_temp.id_of('deleted', n), '', '', '', 'default', 'shared', 'general', 'deleted'
      FROM generate_series($1, $2 - 1, 50) AS n";

const SETTINGS: &str = "INSERT INTO okt_system.repository_settings (repository_id, search, resolution)
    SELECT pg_temp.id_of('repository', n), '{}', '{}' FROM generate_series($1, $2 - 1) AS n";

/// Lists show counts, so there is something to count.
const COUNTERS: &str = "INSERT INTO okt_repository.counters (repository_id, name, value)
    SELECT pg_temp.id_of('repository', n), 'sources', n FROM generate_series($1, $2 - 1) AS n";

/// First everybody who made a repository, then those who were let in: as they would lie in a table that grew.
const ROLES: &str = "INSERT INTO okt_system.role_assignments (user_id, domain, role)
    SELECT pg_temp.member_of(n, $3), pg_temp.id_of('repository', n % $4),
           CASE WHEN n < $4 THEN 'repoadmin' ELSE (ARRAY['editor', 'curator', 'viewer'])[1 + n % 3] END
      FROM generate_series($1, $2 - 1) AS n";

const BUSY_ROLES: &str = "INSERT INTO okt_system.role_assignments (user_id, domain, role)
    SELECT pg_temp.id_of('user', 1), pg_temp.id_of('repository', n * $3 / $2), 'editor'
      FROM generate_series($1, $2 - 1) AS n";

const THEIRS: &str = "SELECT r.id, r.slug
      FROM okt_system.role_assignments a JOIN okt_system.repositories r ON r.id::text = a.domain
     WHERE a.user_id = pg_temp.id_of('user', 1) AND a.domain <> 'system' ORDER BY r.id";

const MEMBERS: &str = "SELECT s.user_id, s.id, (SELECT max(a.domain)::uuid FROM okt_system.role_assignments a
                                WHERE a.user_id = s.user_id AND a.domain <> 'system')
      FROM generate_series(0, $1 - 1) AS n
      JOIN okt_system.sessions s ON s.id = pg_temp.id_of('session', 2 + n * ($2 - 2) / $1)
     ORDER BY n";

impl Tenants {
    /// Loads this many repositories and twice as many roles in them into a database where there is nobody yet. There is
    /// one person with roles for every ten repositories. All tables have statistics afterwards.
    pub async fn load(conn: &mut PgConnection, repositories: u32) -> Self {
        let repositories = i64::from(repositories);
        assert!(repositories >= BUSY, "too few repositories for the busy one");
        let members = (repositories / 10).max(100);
        // Some signed up and were never let in anywhere. Below a thousand people a table of them is so small that reading
        // it whole is the best plan, and that is not the one to be compared.
        let people = members.max(1_000);
        run(conn, ID).await;
        run(conn, MEMBER).await;
        for table in TABLES {
            // The server would look after the tables on its own while they are loaded, and while somebody measures.
            run(conn, &format!("ALTER TABLE {table} SET (autovacuum_enabled = off)")).await;
        }
        // Nobody remembers roles yet; counting the changes of a million people would leave as many dead rows behind.
        run(conn, "ALTER TABLE okt_system.role_assignments DISABLE TRIGGER role_assignments_inserted").await;
        chunks(conn, USERS, people, &[]).await;
        chunks(conn, SESSIONS, people, &[]).await;
        chunks(conn, SYSTEM_ROLES, people, &[]).await;
        chunks(conn, REPOSITORIES, repositories, &[members]).await;
        chunks(conn, DELETED, repositories, &[]).await;
        chunks(conn, SETTINGS, repositories, &[]).await;
        chunks(conn, COUNTERS, repositories, &[]).await;
        chunks(conn, ROLES, 2 * repositories - BUSY, &[members, repositories]).await;
        chunks(conn, BUSY_ROLES, BUSY, &[repositories]).await;
        run(conn, "ALTER TABLE okt_system.role_assignments ENABLE TRIGGER role_assignments_inserted").await;
        settle(conn).await;
        Self::find(conn, members).await
    }

    async fn find(conn: &mut PgConnection, members: i64) -> Self {
        let user = "SELECT pg_temp.id_of('user', $1)";
        let mut users = Vec::new();
        for number in 0..2_i64 {
            let id: Uuid = sqlx::query_scalar(user).bind(number).fetch_one(&mut *conn).await.expect("a user");
            users.push(UserId::from(id));
        }
        let theirs: Vec<(Uuid, String)> =
            sqlx::query_as(THEIRS).fetch_all(&mut *conn).await.expect("repositories");
        assert_eq!(i64::try_from(theirs.len()), Ok(BUSY));
        let sampled = sqlx::query_as(MEMBERS).bind(SAMPLED.min(members - 2)).bind(members);
        let sampled: Vec<(Uuid, Uuid, Uuid)> = sampled.fetch_all(conn).await.expect("members");
        Self {
            sysadmin: users[0],
            busy: users[1],
            theirs: theirs.into_iter().map(|(id, slug)| (id.into(), slug)).collect(),
            members: sampled
                .into_iter()
                .map(|(user, session, id)| (user.into(), session.into(), id.into()))
                .collect(),
        }
    }
}

/// Does what the server would have done long ago with tables that grew slowly: statistics, and the map of what everybody
/// sees. Whether an index alone can answer depends on that map, and with it the plan. A page that somebody might see
/// otherwise is left out of it, and it takes no more than a connection being made elsewhere, so it is tried until it is whole.
async fn settle(conn: &mut PgConnection) {
    let whole =
        "SELECT bool_and(relallvisible >= relpages) FROM pg_class WHERE oid = ANY ($1::text[]::regclass[])";
    for _ in 0..100 {
        run(conn, &format!("VACUUM ANALYZE {}", TABLES.join(", "))).await;
        let whole: bool =
            sqlx::query_scalar(whole).bind(TABLES).fetch_one(&mut *conn).await.expect("the catalogue");
        if whole {
            run(conn, "CHECKPOINT").await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("somebody holds on to an old view of the database");
}

/// Runs a statement for the numbers from 0 to below `until`, which are its first two parameters, some at a time.
async fn chunks(conn: &mut PgConnection, statement: &'static str, until: i64, more: &[i64]) {
    let mut from = 0;
    while from < until {
        let to = (from + CHUNK).min(until);
        let query = sqlx::query(AssertSqlSafe(statement)).bind(from).bind(to);
        let query = more.iter().fold(query, |query, number| query.bind(*number));
        let done = query.execute(&mut *conn).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
        from = to;
    }
}
