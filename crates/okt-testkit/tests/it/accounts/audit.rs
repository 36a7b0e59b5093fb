use http::Method;
use okt_jobs::{Expired, delete_expired};
use okt_testkit::accounts::{
    KEYS, PASSWORD, Person, api_key, count, post, refresh, register, repository, send, sql, tables_with,
};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::accounts::fields;

const AUDIT: &str = "/api/v1/admin/audit";
const ROLES: &str = "/api/v1/admin/users/roles";

/// The first second of 2026.
const JANUARY: u64 = 1_767_225_600;

/// A row of the table: actor, kind, action, object, address.
type Row = (Option<Uuid>, String, String, String, Option<String>);

/// The one row that this request left.
async fn row(service: &TestService, answer: &Answer) -> Row {
    let mut rows = rows(service, answer).await;
    assert_eq!(rows.len(), 1, "{rows:?} for {answer:?}");
    rows.remove(0)
}

async fn rows(service: &TestService, answer: &Answer) -> Vec<Row> {
    let id = answer.header("x-request-id");
    assert!(!id.is_empty());
    sqlx::query_as(
        "SELECT actor_id, actor_kind, action, object, address FROM okt_system.audit WHERE request_id = $1",
    )
    .bind(id)
    .fetch_all(&mut *service.api.app.databases().acquire_system().await.unwrap())
    .await
    .unwrap()
}

/// What was done by somebody on this machine.
fn done(actor: Option<Uuid>, kind: &str, action: &str, object: &str) -> Row {
    (actor, kind.to_owned(), action.to_owned(), object.to_owned(), Some("127.0.0.1".to_owned()))
}

#[tokio::test]
async fn coming_and_going_leaves_one_row_each() {
    let service = TestService::product(&[]).await;
    register(&service, "admin").await;
    let account = json!({"email": "ada@example.org", "password": PASSWORD});
    let registered = post(&service, "/api/v1/auth/register", &account).await;
    let ada = Person::of(&registered);
    let by_ada = |action, object: &str| done(Some(ada.id), "session", action, object);
    let id = ada.id.to_string();
    assert_eq!(row(&service, &registered).await, by_ada("user.registered", &id));

    let login = post(&service, "/api/v1/auth/login", &account).await;
    assert_eq!(row(&service, &login).await, by_ada("login", &id));
    let wrong = json!({"email": "ada@example.org", "password": "not hers"});
    let failed = post(&service, "/api/v1/auth/login", &wrong).await;
    assert_eq!(row(&service, &failed).await, done(None, "anonymous", "login.failed", &id));
    let wrong = json!({"email": "nobody@example.org", "password": "not theirs"});
    let failed = post(&service, "/api/v1/auth/login", &wrong).await;
    assert_eq!(row(&service, &failed).await, done(None, "anonymous", "login.failed", ""));

    let renamed =
        send(&service, &ada.token, Method::PUT, &format!("/api/v1/users/{id}"), &json!({"name": "A"})).await;
    assert_eq!(row(&service, &renamed).await, by_ada("user.updated", &id));
    let session: Uuid =
        sqlx::query_scalar("SELECT id FROM okt_system.sessions WHERE user_id = $1 ORDER BY id LIMIT 1")
            .bind(ada.id)
            .fetch_one(&mut *service.api.app.databases().acquire_system().await.unwrap())
            .await
            .unwrap();
    let out = Answer::of(service.request(Method::POST, "/api/v1/auth/logout").bearer_auth(&ada.token)).await;
    assert_eq!(row(&service, &out).await, by_ada("logout", &session.to_string()));
}

#[tokio::test]
async fn the_promotion_of_the_first_user_is_recorded() {
    let service = TestService::product(&[]).await;
    let account = json!({"email": "ada@example.org", "password": PASSWORD});
    let registered = post(&service, "/api/v1/auth/register", &account).await;
    let id = Person::of(&registered).id;
    let promoted = done(None, "service", "role.assigned", &format!("{id} sysadmin in system"));
    assert_eq!(
        rows(&service, &registered).await,
        [done(Some(id), "session", "user.registered", &id.to_string()), promoted]
    );
}

#[tokio::test]
async fn a_stolen_refresh_token_is_recorded() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let next = refresh(&service, &ada.refresh).await.json()["refresh_token"].as_str().unwrap().to_owned();
    assert_eq!(refresh(&service, &next).await.status, 200);
    let stolen = refresh(&service, &ada.refresh).await;
    let (actor, kind, action, _, address) = row(&service, &stolen).await;
    assert_eq!((actor, kind.as_str(), action.as_str()), (None, "anonymous", "session.token_reused"));
    assert_eq!(address.as_deref(), Some("127.0.0.1"));
}

#[tokio::test]
async fn changes_of_roles_and_keys_leave_one_row_each() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let by_admin = |action, object: &str| done(Some(admin.id), "session", action, object);
    let repository = repository(&service).await.to_string();
    let body = json!({"user_id": ada.id, "role": "viewer", "domain": repository});
    let described = format!("{} viewer in {repository}", ada.id);
    let given = send(&service, &admin.token, Method::PUT, ROLES, &body).await;
    assert_eq!(row(&service, &given).await, by_admin("role.assigned", &described));
    let again = send(&service, &admin.token, Method::PUT, ROLES, &body).await;
    assert_eq!(rows(&service, &again).await, [], "nothing was changed");
    let taken = send(&service, &admin.token, Method::DELETE, ROLES, &body).await;
    assert_eq!(row(&service, &taken).await, by_admin("role.removed", &described));
    let body = json!({"user_id": admin.id, "role": "sysadmin", "domain": "system"});
    let kept = send(&service, &admin.token, Method::DELETE, ROLES, &body).await;
    assert_eq!((kept.status.as_u16(), rows(&service, &kept).await.len()), (409, 0), "nor was this");

    let body = json!({"name": "a key", "permissions": ["role:manage"]});
    let created = send(&service, &admin.token, Method::POST, KEYS, &body).await;
    let id = created.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(row(&service, &created).await, by_admin("api_key.created", &id));
    let key = created.json()["token"].as_str().unwrap().to_owned();
    let body = json!({"user_id": ada.id, "role": "editor", "domain": repository});
    let by_key = send(&service, &key, Method::PUT, ROLES, &body).await;
    let described = format!("{} editor in {repository}", ada.id);
    assert_eq!(row(&service, &by_key).await, done(Some(admin.id), "api_key", "role.assigned", &described));
    let request = service.request(Method::DELETE, &format!("{KEYS}/{id}")).bearer_auth(&admin.token);
    let revoked = Answer::of(request).await;
    assert_eq!(row(&service, &revoked).await, by_admin("api_key.revoked", &id));
}

#[tokio::test]
async fn a_row_names_the_credential_and_the_repository() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let (key, token) = api_key(&service, &admin, &["role:manage"]).await;
    let session: Uuid = sqlx::query_scalar("SELECT id FROM okt_system.sessions WHERE user_id = $1")
        .bind(admin.id)
        .fetch_one(&mut *service.api.app.databases().acquire_system().await.unwrap())
        .await
        .unwrap();
    let repository = repository(&service).await.uuid();
    let body = json!({"user_id": ada.id, "role": "viewer", "domain": repository});
    for (credential, id) in [(&admin.token, session), (&token, key.parse().unwrap())] {
        for method in [Method::PUT, Method::DELETE] {
            let changed = send(&service, credential, method.clone(), ROLES, &body).await;
            assert_eq!(changed.status, 204);
            let named: (Option<Uuid>, Option<Uuid>) = sqlx::query_as(
                "SELECT credential_id, repository_id FROM okt_system.audit WHERE request_id = $1",
            )
            .bind(changed.header("x-request-id"))
            .fetch_one(&mut *service.api.app.databases().acquire_system().await.unwrap())
            .await
            .unwrap();
            assert_eq!(named, (Some(id), Some(repository)), "{method}");
        }
    }
}

#[tokio::test]
async fn a_request_that_the_gate_denies_leaves_one_row() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let denied = service.get_as(&ada.token, "/api/v1/admin/users").await;
    assert_eq!(denied.status, 403);
    assert_eq!(row(&service, &denied).await, done(Some(ada.id), "session", "request.denied", "user:read"));
    let (_, key) = api_key(&service, &admin, &["source:read"]).await;
    let denied = service.get_as(&key, KEYS).await;
    assert_eq!(denied.status, 403);
    assert_eq!(row(&service, &denied).await, done(Some(admin.id), "api_key", "request.denied", "session"));
    let named = service.request(Method::GET, AUDIT).bearer_auth(&ada.token).header("x-request-id", "mine.1");
    let denied = Answer::of(named).await;
    assert_eq!(denied.header("x-request-id"), "mine.1");
    assert_eq!(row(&service, &denied).await, done(Some(ada.id), "session", "request.denied", "audit:read"));
}

#[tokio::test]
async fn a_request_that_is_denied_behind_the_gate_leaves_one_row_too() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let other = format!("/api/v1/users/{}", admin.id);
    let denied = send(&service, &ada.token, Method::PUT, &other, &json!({"name": "Mallory"})).await;
    assert_eq!(denied.status, 403);
    let (actor, kind, action, ..) = row(&service, &denied).await;
    assert_eq!((actor, kind.as_str(), action.as_str()), (Some(ada.id), "session", "request.denied"));
}

#[tokio::test]
async fn the_address_is_the_callers_and_not_the_proxys() {
    let service = TestService::product(&[("SVC__SERVER__TRUSTED_PROXIES", "127.0.0.0/8")]).await;
    let account = json!({"email": "ada@example.org", "password": "not hers"});
    let request = service.request(Method::POST, "/api/v1/auth/login").header("x-forwarded-for", "192.0.2.7");
    let failed = Answer::of(request.json(&account)).await;
    assert_eq!(row(&service, &failed).await.4.as_deref(), Some("192.0.2.7"));
}

#[tokio::test]
async fn the_audit_is_filtered_and_paged() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    sql(&service, "DELETE FROM okt_system.audit").await;
    for number in 0..9 {
        let (actor, action) = if number % 3 == 0 { (admin.id, "login") } else { (ada.id, "logout") };
        let at = JANUARY + number * 24 * 3600;
        // Ids carry the time, as those that are minted do.
        let id = Uuid::from_u128(u128::from(at * 1000) << 80);
        let object = number % 2;
        let values = format!(
            "('{id}', to_timestamp({at}), '{actor}', 'session', '{action}', 'object {object}', 'r{number}')"
        );
        let columns = "(id, at, actor_id, actor_kind, action, object, request_id)";
        sql(&service, &format!("INSERT INTO okt_system.audit {columns} VALUES {values}")).await;
    }
    let ask = async |filter: &str| service.get_as(&admin.token, &format!("{AUDIT}?{filter}")).await;
    let numbers = |page: &Value| -> Vec<u32> {
        let rows = page["data"].as_array().unwrap().iter();
        rows.map(|row| row["request_id"].as_str().unwrap()[1..].parse().unwrap()).collect()
    };
    for (filter, expected) in [
        (String::new(), &[8, 7, 6, 5, 4, 3, 2, 1, 0][..]),
        ("from=2026-01-08T00:00:00Z".to_owned(), &[8, 7]),
        ("to=2026-01-03T00:00:00Z".to_owned(), &[1, 0]),
        ("from=2026-01-02T00:00:00Z&to=2026-01-04T00:00:00Z".to_owned(), &[2, 1]),
        (format!("actor={}", admin.id), &[6, 3, 0]),
        ("action=login".to_owned(), &[6, 3, 0]),
        ("action=log".to_owned(), &[]),
        ("object=object%201".to_owned(), &[7, 5, 3, 1]),
        (format!("object=object%200&actor={}&from=2026-01-04T00:00:00Z", ada.id), &[8, 4]),
        ("actor=00000000-0000-0000-0000-000000000000".to_owned(), &[]),
    ] {
        let answer = ask(&filter).await;
        assert_eq!(answer.status, 200, "{filter}: {answer:?}");
        assert_eq!(numbers(&answer.json()), expected, "{filter}");
    }
    for wrong in ["from=yesterday", "to=2026-01-01", "actor=ada", "limit=0"] {
        let answer = ask(wrong).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{wrong}");
    }

    let first = ask("action=logout&limit=4").await.json();
    assert_eq!(
        fields(&first["data"][0]),
        [
            "action",
            "actor",
            "actor_kind",
            "address",
            "at",
            "credential_id",
            "id",
            "object",
            "repository_id",
            "request_id",
            "user_agent",
            "via"
        ]
    );
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = ask(&format!("action=logout&limit=4&cursor={cursor}")).await.json();
    assert_eq!([numbers(&first), numbers(&second)], [vec![8, 7, 5, 4], vec![2, 1]]);
    assert_eq!(second["next_cursor"], Value::Null);
    let other = ask(&format!("action=login&limit=4&cursor={cursor}")).await;
    assert_eq!((other.status.as_u16(), other.problem().as_str()), (400, "bad_cursor"));
}

/// Twice and a half as many as one statement deletes.
#[tokio::test]
async fn what_is_older_than_the_retention_is_forgotten_and_nothing_else() {
    let service = TestService::product(&[("SVC_AUDIT_RETENTION_DAYS", "7")]).await;
    let fill = "INSERT INTO okt_system.audit (id, at, actor_kind, action, object, request_id)
                SELECT gen_random_uuid(), now() - interval";
    sql(
        &service,
        &format!("{fill} '7 days 1 minute', 'service', 'old', '', '' FROM generate_series(1, 2500)"),
    )
    .await;
    sql(
        &service,
        &format!("{fill} '6 days 23 hours', 'service', 'young', '', '' FROM generate_series(1, 1500)"),
    )
    .await;
    register(&service, "ada").await;
    let retention_days = service.api.app.config().audit.retention_days;
    assert_eq!(
        delete_expired(service.api.app.databases(), Expired::Audit { retention_days }).await.unwrap(),
        2500
    );
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.audit WHERE action = 'old'").await, 0);
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.audit WHERE action = 'young'").await, 1500);
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.audit").await, 1502);
    assert_eq!(
        delete_expired(service.api.app.databases(), Expired::Audit { retention_days }).await.unwrap(),
        0
    );
}

#[tokio::test]
async fn no_row_holds_an_address_or_a_secret() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let wrong = "a wrong password";
    for email in [ada.email.as_str(), "stranger@example.org"] {
        post(&service, "/api/v1/auth/login", &json!({"email": email, "password": wrong})).await;
    }
    let next = refresh(&service, &ada.refresh).await.json();
    let next = next["refresh_token"].as_str().unwrap().to_owned();
    refresh(&service, &next).await;
    refresh(&service, &ada.refresh).await;
    let (id, key) = api_key(&service, &admin, &["source:read"]).await;
    service.get_as(&key, "/api/v1/admin/users").await;
    let own = format!("/api/v1/users/{}", admin.id);
    send(&service, &admin.token, Method::PUT, &own, &json!({"email": "changed@example.org"})).await;
    Answer::of(service.request(Method::DELETE, &format!("{KEYS}/{id}")).bearer_auth(&admin.token)).await;

    let rows = count(&service, "SELECT count(*) FROM okt_system.audit").await;
    assert!(rows >= 9, "{rows}");
    for secret in [PASSWORD, wrong, &ada.token, &ada.refresh, &next, &key, &key[12..], "@example.org"] {
        let found = tables_with(&service, secret).await;
        assert!(!found.contains(&"audit".to_owned()), "{secret}");
        assert!(secret.starts_with('@') || found.is_empty(), "{secret} is in {found:?}");
    }
}
