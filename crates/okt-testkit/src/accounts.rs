//! People with accounts on a service under test: most come through the front door, some by SQL where no route leads.

use std::time::{Duration, Instant};

use http::Method;
use okt_auth::NewAccess;
use okt_model::{GrantId, RepositoryId, SessionId, TokenId, UserId};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::client::Answer;
use crate::db::run;
use crate::served::TestService;

/// Everybody's.
pub const PASSWORD: &str = "correct horse";

/// Somebody with an account and a session.
#[derive(Clone, Debug)]
pub struct Person {
    pub id: Uuid,
    pub email: String,
    pub token: String,
    pub refresh: String,
}

impl Person {
    /// As register and login answer.
    pub fn of(answer: &Answer) -> Self {
        assert!(answer.status.is_success(), "{answer:?}");
        let body = answer.json();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Self {
            id: text(&body["user"]["id"]).parse().expect("an id"),
            email: text(&body["user"]["email"]),
            token: text(&body["token"]),
            refresh: text(&body["refresh_token"]),
        }
    }
}

/// Registers `name@example.org`. The first one on a service is its sysadmin.
pub async fn register(service: &TestService, name: &str) -> Person {
    let account = json!({"email": format!("{name}@example.org"), "password": PASSWORD, "name": name});
    Person::of(&post(service, "/api/v1/auth/register", &account).await)
}

/// Signs in, for another session.
pub async fn login(service: &TestService, email: &str) -> Person {
    Person::of(&post(service, "/api/v1/auth/login", &json!({"email": email, "password": PASSWORD})).await)
}

/// Asks for the next pair of tokens.
pub async fn refresh(service: &TestService, token: &str) -> Answer {
    post(service, "/api/v1/auth/refresh", &json!({"refresh_token": token})).await
}

/// An access token for a session made by SQL: no password is hashed, so there can be as many as one likes.
pub async fn session(service: &TestService, user: Uuid) -> String {
    let session = SessionId::mint();
    sqlx::query("INSERT INTO okt_system.sessions VALUES ($1, $2, now(), now() + interval '1 hour')")
        .bind(session.uuid())
        .bind(user)
        .execute(&mut *service.api.app.databases().acquire_system().await.expect("a connection"))
        .await
        .expect("a session");
    service.api.app.auth().sign_session(UserId::from(user), session).expose().to_owned()
}

/// The access token of a client that a user let in, made by SQL: for tests that are not about letting one in.
pub async fn access_token(service: &TestService, user: Uuid, scope: &str) -> String {
    access_token_for(service, user, scope, &service.url).await
}

/// As [`access_token`], for an audience other than the service.
pub async fn access_token_for(service: &TestService, user: Uuid, scope: &str, audience: &str) -> String {
    let grant = GrantId::mint();
    let mut conn = service.database.connect().await;
    for statement in [
        "INSERT INTO okt_system.oauth_clients (id, name, redirect_uris, grant_types, auth_method)
         VALUES ('client_of_a_test', 'a client', '{}', '{authorization_code}', 'none') ON CONFLICT DO NOTHING",
        "INSERT INTO okt_system.sessions (id, user_id, expires_at) VALUES ($1, $2, now() + interval '1 hour')",
        "INSERT INTO okt_system.oauth_grants (id, client_id, scope, resource)
         VALUES ($1, 'client_of_a_test', '{}', '')",
    ] {
        let mut query = sqlx::query(statement);
        if statement.contains("$1") {
            query = query.bind(grant.uuid());
        }
        if statement.contains("$2") {
            query = query.bind(user);
        }
        query.execute(&mut conn).await.expect("a grant");
    }
    let new = NewAccess {
        issuer: &service.url,
        user: user.into(),
        audience,
        client: "client_of_a_test",
        scope,
        grant,
        id: TokenId::mint(),
    };
    service.api.app.auth().sign_access(&new, Duration::from_mins(30)).expose().to_owned()
}

/// A repository without anybody in it, made by SQL.
pub async fn repository(service: &TestService) -> RepositoryId {
    let id = RepositoryId::mint();
    for statement in [
        "INSERT INTO okt_system.repositories (id, name, slug, description, database, tier, preset, state)
         VALUES ($1, 'A repository', 'slug-' || $1, '', 'default', 'shared', 'general', 'active')",
        "INSERT INTO okt_system.repository_settings (repository_id, search, resolution) VALUES ($1, '{}', '{}')",
    ] {
        let mut conn = service.database.connect().await;
        sqlx::query(statement).bind(id.uuid()).execute(&mut conn).await.expect("a repository");
    }
    id
}

/// Gives a role by SQL; the domain is `system` or the id of a repository.
pub async fn give(service: &TestService, user: Uuid, domain: &str, role: &str) {
    let given = "INSERT INTO okt_system.role_assignments VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    change_roles(service, given, user, domain, role).await;
}

/// Takes a role by SQL.
pub async fn take(service: &TestService, user: Uuid, domain: &str, role: &str) {
    let taken = "DELETE FROM okt_system.role_assignments WHERE user_id = $1 AND domain = $2 AND role = $3";
    change_roles(service, taken, user, domain, role).await;
}

async fn change_roles(service: &TestService, statement: &'static str, user: Uuid, domain: &str, role: &str) {
    let change = sqlx::query(statement).bind(user).bind(domain).bind(role);
    change
        .execute(&mut *service.api.app.databases().acquire_system().await.expect("a connection"))
        .await
        .expect("roles can be changed");
}

/// Makes an API key; returns its id and its token.
pub async fn api_key(service: &TestService, owner: &Person, permissions: &[&str]) -> (String, String) {
    let body = json!({"name": "a key", "permissions": permissions});
    key_of(&send(service, &owner.token, Method::POST, KEYS, &body).await)
}

/// Makes an API key for one repository; returns its id and its token.
pub async fn api_key_in(
    service: &TestService,
    owner: &Person,
    permissions: &[&str],
    repository: Uuid,
) -> (String, String) {
    let body = json!({"name": "a key", "permissions": permissions, "repository_id": repository});
    key_of(&send(service, &owner.token, Method::POST, KEYS, &body).await)
}

/// Where a user's keys are.
pub const KEYS: &str = "/api/v1/users/me/api-keys";

/// Without a credential.
pub async fn post(service: &TestService, path: &str, body: &Value) -> Answer {
    Answer::of(service.request(Method::POST, path).json(body)).await
}

/// With a credential.
pub async fn send(service: &TestService, token: &str, method: Method, path: &str, body: &Value) -> Answer {
    Answer::of(service.request(method, path).bearer_auth(token).json(body)).await
}

/// Runs a statement as the owner of the database would.
pub async fn sql(service: &TestService, statement: &str) {
    run(&mut service.database.connect().await, statement).await;
}

/// The number that a statement yields.
pub async fn count(service: &TestService, statement: &str) -> i64 {
    let number = sqlx::query_scalar(AssertSqlSafe(statement.to_owned()));
    let number = number
        .fetch_one(&mut *service.api.app.databases().acquire_system().await.expect("a connection"))
        .await;
    number.unwrap_or_else(|error| panic!("{statement}: {error}"))
}

/// Holds back whoever writes to a table, so that many can be let go at once.
pub struct Barrier {
    lock: PgConnection,
    watch: PgConnection,
}

impl Barrier {
    /// Settings of a service that waits as long as the barrier may be closed.
    pub const PATIENT: [(&str, &str); 3] = [
        ("SVC__DATABASES__DEFAULT__LOCK_TIMEOUT", "20s"),
        ("SVC__DATABASES__DEFAULT__STATEMENT_TIMEOUT", "20s"),
        ("SVC__SERVER__WRITE_TIMEOUT", "25s"),
    ];

    pub async fn before(service: &TestService, table: &str) -> Self {
        let (mut lock, watch) = (service.database.connect().await, service.database.connect().await);
        run(&mut lock, &format!("BEGIN; LOCK TABLE okt_system.{table} IN SHARE MODE")).await;
        Self { lock, watch }
    }

    /// Opens when this many wait, at the barrier or for one another, or after a while.
    pub async fn open_for(mut self, many: i64) {
        let locked = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let deadline = Instant::now() + Duration::from_secs(12);
        let mut waiting: i64 = 0;
        while waiting < many && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(50)).await;
            waiting = sqlx::query_scalar(locked).fetch_one(&mut self.watch).await.expect("a number");
        }
        run(&mut self.lock, "COMMIT").await;
    }
}

/// The tables of the system schema with a row in which `text` can be read, plainly or as the bytes of a column.
pub async fn tables_with(service: &TestService, text: &str) -> Vec<String> {
    let mut conn = service.database.connect().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'okt_system' ORDER BY 1",
    )
    .fetch_all(&mut conn)
    .await
    .expect("the catalogue");
    assert!(tables.len() > 5, "{tables:?}");
    let mut found = Vec::new();
    for table in tables {
        let rows = format!(
            "SELECT count(*) FROM okt_system.{table} t
              WHERE strpos(t::text, $1) > 0 OR strpos(t::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0"
        );
        let rows: i64 =
            sqlx::query_scalar(AssertSqlSafe(rows)).bind(text).fetch_one(&mut conn).await.expect("a number");
        if rows > 0 {
            found.push(table);
        }
    }
    found
}

fn key_of(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 201, "{answer:?}");
    let text = |name: &str| answer.json()[name].as_str().expect("a text").to_owned();
    (text("id"), text("token"))
}
