use http::Method;
use okt_model::{PermissionSet, RepositoryId, Role};
use okt_testkit::accounts::{
    PASSWORD, Person, api_key, api_key_in, give, post, register, repository, send, sql,
};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::{Value, json};

use crate::accounts::fields;

const PERMISSIONS: &str = "/api/v1/permissions";

fn of(person: &Person) -> String {
    format!("/api/v1/users/{}", person.id)
}

async fn update(service: &TestService, by: &Person, of: &Person, body: &Value) -> Answer {
    send(service, &by.token, Method::PUT, &self::of(of), body).await
}

/// `object:action` of a domain of `GET /permissions`.
fn pairs(domain: &Value) -> Vec<String> {
    assert_eq!(fields(domain), ["domain", "permissions", "roles"]);
    let pairs = domain["permissions"].as_array().unwrap().iter().map(|pair| {
        assert_eq!(fields(pair), ["action", "object"]);
        format!("{}:{}", pair["object"].as_str().unwrap(), pair["action"].as_str().unwrap())
    });
    pairs.collect()
}

fn held(permissions: PermissionSet) -> Vec<String> {
    permissions.iter().map(|permission| permission.to_string()).collect()
}

#[tokio::test]
async fn others_see_id_and_name_unless_they_may_read_users() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let bob = register(&service, "bob").await;
    let (_, reader) = api_key(&service, &admin, &["user:read"]).await;
    let (_, narrow) = api_key(&service, &admin, &["source:read"]).await;
    let whole = ["created_at", "email", "id", "name", "system_roles"];
    for (who, token, expected) in [
        ("ada", &ada.token, &whole[..]),
        ("admin", &admin.token, &whole[..]),
        ("the admin's key for users", &reader, &whole[..]),
        ("bob", &bob.token, &["id", "name"]),
        ("the admin's key for sources", &narrow, &["id", "name"]),
    ] {
        let profile = service.get_as(token, &of(&ada)).await.json();
        assert_eq!(fields(&profile), expected, "{who}");
        assert_eq!((&profile["id"], &profile["name"]), (&json!(ada.id), &json!("ada")), "{who}");
    }
    let seen = service.get_as(&admin.token, &of(&ada)).await.json();
    assert_eq!((&seen["email"], &seen["system_roles"]), (&json!(ada.email), &json!(["user"])));
    for nobody in [RepositoryId::mint().to_string(), "ada".to_owned(), ada.email.clone()] {
        let answer = service.get_as(&admin.token, &format!("/api/v1/users/{nobody}")).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (404, "not_found"), "{nobody}");
    }
}

#[tokio::test]
async fn a_profile_is_changed_by_its_user_or_a_sysadmin() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let bob = register(&service, "bob").await;
    give(&service, bob.id, &RepositoryId::mint().to_string(), "repoadmin").await;
    let refused = update(&service, &bob, &ada, &json!({"name": "Mallory"})).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (403, "forbidden"));

    let own = update(&service, &ada, &ada, &json!({"name": " Countess ", "email": "New@Example.org"})).await;
    assert_eq!(own.status, 200);
    let profile = own.json();
    assert_eq!(fields(&profile), ["created_at", "email", "id", "name", "system_roles"]);
    assert_eq!((&profile["name"], &profile["email"]), (&json!("Countess"), &json!("New@Example.org")));
    assert_eq!(service.get_as(&ada.token, "/api/v1/users/me").await.json(), profile);

    let by_admin = update(&service, &admin, &ada, &json!({"name": "Lovelace"})).await;
    assert_eq!((by_admin.status.as_u16(), &by_admin.json()["email"]), (200, &json!("New@Example.org")));
    assert_eq!(update(&service, &ada, &ada, &json!({})).await.json()["name"], "Lovelace", "nothing changed");
    let nobody = format!("/api/v1/users/{}", RepositoryId::mint());
    assert_eq!(send(&service, &admin.token, Method::PUT, &nobody, &json!({})).await.status, 404);
}

#[tokio::test]
async fn a_changed_profile_is_as_sound_as_a_new_one() {
    let service = TestService::product(&[]).await;
    let (ada, bob) = (register(&service, "ada").await, register(&service, "bob").await);
    for taken in ["ada@example.org", " ADA@Example.org"] {
        let answer = update(&service, &bob, &bob, &json!({"email": taken})).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (409, "already_exists"), "{taken}");
    }
    let own = update(&service, &ada, &ada, &json!({"email": "ADA@example.org"})).await;
    assert_eq!(own.status, 200, "one's own address in another case is no conflict");
    for (field, value) in
        [("email", "nonsense".to_owned()), ("name", "n".repeat(201)), ("name", "a\nb".to_owned())]
    {
        let mut body = json!({});
        body[field] = json!(value);
        let answer = update(&service, &bob, &bob, &body).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{value}");
        assert_eq!(answer.json()["errors"][0]["field"], field);
    }
    assert_eq!(update(&service, &bob, &bob, &json!({"name": "ñ".repeat(200)})).await.status, 200);
    let bob_now = service.get_as(&bob.token, "/api/v1/users/me").await.json();
    assert_eq!(bob_now["email"], "bob@example.org");
}

#[tokio::test]
async fn a_session_may_do_what_its_users_roles_add_up_to() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let repository = repository(&service).await.to_string();
    give(&service, ada.id, &repository, "viewer").await;
    give(&service, ada.id, &repository, "curator").await;

    let answer = service.get_as(&ada.token, PERMISSIONS).await.json();
    assert_eq!(fields(&answer), ["domains", "system_admin", "user_id"]);
    assert_eq!((&answer["user_id"], &answer["system_admin"]), (&json!(ada.id), &json!(false)));
    let mut domains = answer["domains"].as_array().unwrap().clone();
    domains.sort_by_key(|domain| domain["domain"] != "system");
    assert_eq!(domains.len(), 2);
    assert_eq!((&domains[0]["domain"], &domains[0]["roles"]), (&json!("system"), &json!(["user"])));
    assert_eq!(pairs(&domains[0]), held(Role::User.permissions(true)));
    assert_eq!(domains[1]["domain"], repository);
    assert_eq!(domains[1]["roles"], json!(["curator", "viewer"]));
    assert_eq!(pairs(&domains[1]), held(Role::Curator.permissions(true)));

    let answer = service.get_as(&admin.token, PERMISSIONS).await.json();
    assert_eq!(answer["system_admin"], true);
    assert_eq!(pairs(&answer["domains"][0]), held(PermissionSet::ALL));
}

#[tokio::test]
async fn users_may_create_repositories_unless_the_operator_says_no() {
    let service = TestService::product(&[("SVC__RBAC__USERS_MAY_CREATE_REPOSITORIES", "false")]).await;
    register(&service, "admin").await;
    let ada = register(&service, "ada").await;
    let answer = service.get_as(&ada.token, PERMISSIONS).await.json();
    assert_eq!(pairs(&answer["domains"][0]), held(Role::User.permissions(false)));
}

#[tokio::test]
async fn a_key_is_told_what_the_key_may_do_and_not_its_owner() {
    let service = TestService::product(&[]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let (here, elsewhere) = (repository(&service).await, repository(&service).await);
    give(&service, ada.id, &here.to_string(), "editor").await;
    give(&service, ada.id, &elsewhere.to_string(), "viewer").await;
    let ask = async |key: &str| {
        let answer = service.get_as(key, PERMISSIONS).await.json();
        assert_eq!(answer["system_admin"], false);
        assert!(
            answer["domains"].as_array().unwrap().iter().all(|row| row["roles"] == json!([])),
            "{answer}"
        );
        let rows = answer["domains"].as_array().unwrap().iter();
        let mut rows: Vec<_> =
            rows.map(|row| (row["domain"].as_str().unwrap().to_owned(), pairs(row))).collect();
        rows.sort();
        rows
    };
    let row = |domain: RepositoryId, permissions: &[&str]| {
        (domain.to_string(), permissions.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    };

    let (_, wide) = api_key(&service, &ada, &["source:read", "source:write", "role:manage"]).await;
    let mut expected = [row(here, &["source:read", "source:write"]), row(elsewhere, &["source:read"])];
    expected.sort();
    assert_eq!(ask(&wide).await, expected, "what its owner does not have is not there");
    let (_, bound) = api_key_in(&service, &ada, &["source:read", "source:write"], here.uuid()).await;
    assert_eq!(ask(&bound).await, [row(here, &["source:read", "source:write"])]);
    sql(&service, "UPDATE okt_system.role_assignments SET role = 'viewer' WHERE role = 'editor'").await;
    assert_eq!(ask(&bound).await, [row(here, &["source:read"])], "nor is what its owner lost");

    let (_, narrow) = api_key(&service, &admin, &["source:read"]).await;
    assert_eq!(ask(&narrow).await, [("system".to_owned(), vec!["source:read".to_owned()])]);
}

/// A sysadmin may do everything everywhere, so a key of theirs for one repository may do its part there.
#[tokio::test]
async fn a_sysadmins_key_for_one_repository_is_told_of_that_repository() {
    let service = TestService::product(&[]).await;
    let admin = register(&service, "admin").await;
    let here = repository(&service).await;
    let (_, key) = api_key_in(&service, &admin, &["source:read"], here.uuid()).await;
    let answer = service.get_as(&key, PERMISSIONS).await.json();
    let domains = answer["domains"].as_array().unwrap();
    assert_eq!(domains.len(), 1, "{answer}");
    assert_eq!((&domains[0]["domain"], pairs(&domains[0])), (&json!(here), vec!["source:read".to_owned()]));
}

/// Whoever has somebody's open session for a moment must not be able to take the account along.
#[tokio::test]
async fn on_a_public_installation_a_new_address_needs_the_password() {
    let service = TestService::product(&[("SVC_OAUTH_ISSUER", "https://okt.example")]).await;
    let (admin, ada) = (register(&service, "admin").await, register(&service, "ada").await);
    let new = "ada@elsewhere.example";
    for wrong in [json!({"email": new}), json!({"email": new, "password": "not hers"})] {
        let answer = update(&service, &ada, &ada, &wrong).await;
        assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (422, "invalid"), "{wrong}");
        assert_eq!(answer.json()["errors"][0]["field"], "password");
    }
    assert_eq!(update(&service, &ada, &ada, &json!({"name": "Ada"})).await.status, 200, "a name does not");
    let right = json!({"email": new, "password": PASSWORD});
    assert_eq!(update(&service, &ada, &ada, &right).await.json()["email"], new);
    let by_admin = json!({"email": "ada@third.example"});
    assert_eq!(update(&service, &admin, &ada, &by_admin).await.status, 200, "an administrator is not asked");
}

#[tokio::test]
async fn on_a_public_installation_a_password_that_everybody_has_is_refused() {
    let account = json!({"email": "ada@example.org", "password": "Password1"});
    let public = TestService::product(&[("SVC_OAUTH_ISSUER", "https://okt.example")]).await;
    let refused = post(&public, "/api/v1/auth/register", &account).await;
    assert_eq!((refused.status.as_u16(), refused.problem().as_str()), (422, "invalid"));
    assert_eq!(refused.json()["errors"][0]["field"], "password");
    let private = TestService::product(&[]).await;
    assert_eq!(post(&private, "/api/v1/auth/register", &account).await.status, 201);
}
