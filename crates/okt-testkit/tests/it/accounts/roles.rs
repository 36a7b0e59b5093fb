use std::time::{Duration, Instant};

use http::Method;
use okt_model::RepositoryId;
use okt_testkit::accounts::{self, Person, api_key, count, give, register, repository, send, sql, take};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::json;
use uuid::Uuid;

use crate::accounts::fields;

const ROLES: &str = "/api/v1/admin/users/roles";
const USERS: &str = "/api/v1/admin/users";
const SYSADMINS: &str =
    "SELECT count(*) FROM okt_system.role_assignments WHERE domain = 'system' AND role = 'sysadmin'";

async fn change(
    service: &TestService,
    by: &Person,
    method: Method,
    user: Uuid,
    role: &str,
    domain: &str,
) -> Answer {
    let body = json!({"user_id": user, "role": role, "domain": domain});
    send(service, &by.token, method, ROLES, &body).await
}

async fn assign(service: &TestService, by: &Person, user: Uuid, role: &str, domain: &str) -> Answer {
    change(service, by, Method::PUT, user, role, domain).await
}

async fn remove(service: &TestService, by: &Person, user: Uuid, role: &str, domain: &str) -> Answer {
    change(service, by, Method::DELETE, user, role, domain).await
}

async fn lists_users(service: &TestService, token: &str) -> u16 {
    service.get_as(token, USERS).await.status.as_u16()
}

#[tokio::test]
async fn a_role_is_given_and_taken_and_is_in_force_at_once() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    assert_eq!(lists_users(&service, &ada.token).await, 403);
    for _ in 0..2 {
        let answer = assign(&service, &admin, ada.id, "sysadmin", "system").await;
        assert_eq!(
            (answer.status.as_u16(), answer.text.as_str()),
            (204, ""),
            "giving it twice is no mistake"
        );
        assert_eq!(lists_users(&service, &ada.token).await, 200);
    }
    assert_eq!(count(&service, SYSADMINS).await, 2);
    let answer = remove(&service, &admin, ada.id, "sysadmin", "system").await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));
    assert_eq!(lists_users(&service, &ada.token).await, 403);
    let again = remove(&service, &admin, ada.id, "sysadmin", "system").await;
    assert_eq!((again.status.as_u16(), again.problem().as_str()), (404, "not_found"));

    let repository = repository(&service).await.to_string();
    assert_eq!(assign(&service, &admin, ada.id, "editor", &repository).await.status, 204);
    let domains = service.get_as(&ada.token, "/api/v1/permissions").await.json()["domains"].clone();
    let here = domains.as_array().unwrap().iter().find(|row| row["domain"] == repository).unwrap();
    assert_eq!(here["roles"], json!(["editor"]));
}

#[tokio::test]
async fn a_role_that_can_not_be_is_refused() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let repository = repository(&service).await.to_string();
    for (role, domain, field) in [
        ("viewer", "system", "role"),
        ("curator", "system", "role"),
        ("editor", "system", "role"),
        ("repoadmin", "system", "role"),
        ("sysadmin", repository.as_str(), "role"),
        ("user", repository.as_str(), "role"),
        ("owner", "system", "role"),
        ("Sysadmin", "system", "role"),
        ("", "system", "role"),
        ("viewer", "", "domain"),
        ("viewer", "System", "domain"),
        ("viewer", "my-repository", "domain"),
    ] {
        for method in [Method::PUT, Method::DELETE] {
            let answer = change(&service, &admin, method, ada.id, role, domain).await;
            assert_eq!(
                (answer.status.as_u16(), answer.problem().as_str()),
                (422, "invalid"),
                "{role} {domain}"
            );
            assert_eq!(answer.json()["errors"][0]["field"], field, "{role} {domain}");
        }
    }
    let nobody = RepositoryId::mint().uuid();
    for method in [Method::PUT, Method::DELETE] {
        let answer = change(&service, &admin, method, nobody, "sysadmin", "system").await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (404, "not_found"));
    }
    assert_eq!(count(&service, "SELECT count(*) FROM okt_system.role_assignments").await, 3, "as before");
}

#[tokio::test]
async fn the_last_sysadmin_stays() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let own = remove(&service, &admin, admin.id, "sysadmin", "system").await;
    assert_eq!((own.status.as_u16(), own.problem().as_str()), (409, "conflict"));
    assert_eq!(remove(&service, &admin, ada.id, "sysadmin", "system").await.status, 404, "ada is none");
    assert_eq!(lists_users(&service, &admin.token).await, 200);

    assert_eq!(assign(&service, &admin, ada.id, "sysadmin", "system").await.status, 204);
    assert_eq!(remove(&service, &admin, admin.id, "sysadmin", "system").await.status, 204);
    assert_eq!(lists_users(&service, &admin.token).await, 403);
    assert_eq!(remove(&service, &ada, ada.id, "sysadmin", "system").await.status, 409);
    assert_eq!(remove(&service, &ada, admin.id, "user", "system").await.status, 204, "others go freely");
}

#[tokio::test]
async fn when_two_sysadmins_remove_each_other_one_stays() {
    let service = TestService::product(&[]).await;
    let beside = service.beside().await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    for round in 0..20 {
        give(&service, ada.id, "system", "sysadmin").await;
        give(&service, bob.id, "system", "sysadmin").await;
        let (one, other) = tokio::join!(
            remove(&service, &ada, bob.id, "sysadmin", "system"),
            remove(&beside, &bob, ada.id, "sysadmin", "system"),
        );
        let mut statuses = [one.status.as_u16(), other.status.as_u16()];
        statuses.sort_unstable();
        // Who comes second finds themselves the last one, or is none any more.
        assert!(matches!(statuses, [204, 403 | 409]), "round {round}: {one:?} {other:?}");
        assert_eq!(count(&service, SYSADMINS).await, 1, "round {round}");
    }
}

/// Asks until it is refused, which has to be within a second.
async fn await_refusal(ask: impl AsyncFn() -> u16, refusal: u16) {
    let changed = Instant::now();
    loop {
        let status = ask().await;
        if status == refusal {
            return;
        }
        assert_eq!(status, 200);
        assert!(changed.elapsed() < Duration::from_secs(1), "it still goes through");
    }
}

#[tokio::test]
async fn what_one_process_takes_away_another_refuses_within_a_second() {
    let here = TestService::product(&[]).await;
    let there = here.beside().await;
    let admin = register(&here, "admin").await;
    for round in 0..5 {
        let bob = register(&here, &format!("bob{round}")).await;
        let (id, key) = api_key(&here, &bob, &["user:read"]).await;
        let me = async |token: &str| there.get_as(token, "/api/v1/users/me").await.status.as_u16();

        assert_eq!(assign(&here, &admin, bob.id, "sysadmin", "system").await.status, 204);
        // What a process remembers is remembered now.
        assert_eq!([lists_users(&there, &bob.token).await, lists_users(&there, &key).await], [200, 200]);
        assert_eq!(remove(&here, &admin, bob.id, "sysadmin", "system").await.status, 204);
        await_refusal(async || lists_users(&there, &bob.token).await, 403).await;
        await_refusal(async || lists_users(&there, &key).await, 403).await;

        assert_eq!([me(&bob.token).await, me(&key).await], [200, 200]);
        let revoked = format!("{}/{id}", accounts::KEYS);
        let revoked = Answer::of(here.request(Method::DELETE, &revoked).bearer_auth(&bob.token)).await;
        assert_eq!(revoked.status, 204);
        await_refusal(async || me(&key).await, 401).await;
        let out = Answer::of(here.request(Method::POST, "/api/v1/auth/logout").bearer_auth(&bob.token)).await;
        assert_eq!(out.status, 204);
        await_refusal(async || me(&bob.token).await, 401).await;
    }
}

#[tokio::test]
async fn what_is_changed_by_sql_is_in_force_at_the_next_request_everywhere() {
    let here = TestService::product(&[]).await;
    let there = here.beside().await;
    register(&here, "admin").await;
    let (ada, bob) = (register(&here, "ada").await, register(&here, "bob").await);
    let both = async |person: &Person| {
        [lists_users(&here, &person.token).await, lists_users(&there, &person.token).await]
    };
    assert_eq!((both(&ada).await, both(&bob).await), ([403, 403], [403, 403]));
    give(&here, ada.id, "system", "sysadmin").await;
    assert_eq!((both(&ada).await, both(&bob).await), ([200, 200], [403, 403]));
    let moved = format!(
        "UPDATE okt_system.role_assignments SET user_id = '{}' WHERE user_id = '{}' AND role = 'sysadmin'",
        bob.id, ada.id
    );
    sql(&here, &moved).await;
    assert_eq!((both(&ada).await, both(&bob).await), ([403, 403], [200, 200]));
    take(&here, bob.id, "system", "sysadmin").await;
    assert_eq!(both(&bob).await, [403, 403]);
    let both_again = format!(
        "INSERT INTO okt_system.role_assignments (user_id, domain, role)
         VALUES ('{}', 'system', 'sysadmin'), ('{}', 'system', 'sysadmin')",
        ada.id, bob.id
    );
    sql(&here, &both_again).await;
    assert_eq!((both(&ada).await, both(&bob).await), ([200, 200], [200, 200]), "in one statement");
    sql(&here, "TRUNCATE okt_system.role_assignments").await;
    assert_eq!((both(&ada).await, both(&bob).await), ([403, 403], [403, 403]));
    sql(&here, "UPDATE okt_system.sessions SET revoked_at = now()").await;
    assert_eq!((both(&ada).await, both(&bob).await), ([401, 401], [401, 401]));
}

#[tokio::test]
async fn a_role_that_does_not_fit_its_domain_gives_nothing_whoever_wrote_it() {
    let service = TestService::product(&[]).await;
    register(&service, "admin").await;
    let ada = register(&service, "ada").await;
    for (domain, role) in [
        (RepositoryId::mint().to_string().as_str(), "sysadmin"),
        ("nonsense", "sysadmin"),
        ("system", "repoadmin"),
        ("system", "root"),
    ] {
        give(&service, ada.id, domain, role).await;
        assert_eq!(lists_users(&service, &ada.token).await, 403, "{role} in {domain}");
    }
    let seen = service.get_as(&ada.token, "/api/v1/permissions").await.json();
    assert_eq!(
        (&seen["system_admin"], seen["domains"].as_array().unwrap().len()),
        (&json!(false), 1),
        "{seen}"
    );
}

#[tokio::test]
async fn administrators_see_all_users_and_what_each_role_may_do() {
    let service = TestService::product(&[]).await;
    let admin = register(&service, "admin").await;
    for number in 0..4 {
        register(&service, &format!("p{number}")).await;
    }
    let first = service.get_as(&admin.token, "/api/v1/admin/users?limit=3").await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = service.get_as(&admin.token, &format!("/api/v1/admin/users?limit=3&cursor={cursor}")).await;
    let users = [&first, &second.json()].map(|page| page["data"].as_array().unwrap().clone()).concat();
    let emails: Vec<_> = users.iter().map(|user| user["email"].as_str().unwrap()).collect();
    let expected = ["admin", "p0", "p1", "p2", "p3"].map(|name| format!("{name}@example.org"));
    assert_eq!(emails, expected, "oldest first");
    assert_eq!(fields(&users[0]), ["created_at", "email", "id", "name", "status"]);

    let known = service.get_as(&admin.token, "/api/v1/admin/permissions").await.json();
    assert_eq!(fields(&known["data"][0]), ["action", "object", "roles"]);
    let roles = |object: &str, action: &str| {
        let mut rows = known["data"].as_array().unwrap().iter();
        rows.find(|row| row["object"] == object && row["action"] == action).unwrap()["roles"].clone()
    };
    assert_eq!(roles("role", "manage"), json!(["sysadmin"]));
    assert_eq!(roles("source", "write"), json!(["sysadmin", "repoadmin", "editor"]));
    assert_eq!(roles("repository", "write"), json!(["sysadmin", "user"]));
}
