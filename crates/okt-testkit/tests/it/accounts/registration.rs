//! Who may make an account, and who becomes the first sysadmin.

use http::Method;
use okt_testkit::accounts::{PASSWORD, Person, count, post, register, sql};
use okt_testkit::client::Answer;
use okt_testkit::served::TestService;
use serde_json::{Value, json};

use crate::accounts::fields;

const REGISTER: &str = "/api/v1/auth/register";
const SETUP: &str = "/api/v1/setup";
const CODE: (&str, &str) = ("SVC__BOOTSTRAP__SETUP_CODE", "open sesame please");
const PRODUCTION: [(&str, &str); 2] =
    [("SVC__MODE", "production"), ("AUTH_JWTSECRET", "hk3Qz8vN1pXw6rTy0bLm5sJd9gFc2aEu")];
const SYSADMINS: &str = "SELECT count(*) FROM okt_system.role_assignments WHERE role = 'sysadmin'";
const USERS: &str = "SELECT count(*) FROM okt_system.users";

fn account(name: &str) -> Value {
    json!({"email": format!("{name}@example.org"), "password": PASSWORD})
}

fn with_code(name: &str, code: &str) -> Value {
    let mut account = account(name);
    account["setup_code"] = json!(code);
    account
}

/// As a proxy hands it on.
async fn from_afar(service: &TestService, body: &Value) -> Answer {
    let request = service.request(Method::POST, REGISTER).header("x-forwarded-for", "192.0.2.1");
    Answer::of(request.json(body)).await
}

fn refused(answer: &Answer, code: &str) {
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (403, code), "{answer:?}");
}

async fn roles(service: &TestService, answer: &Answer) -> Value {
    let person = Person::of(answer);
    service.get_as(&person.token, "/api/v1/users/me").await.json()["system_roles"].clone()
}

async fn needs_admin(service: &TestService) -> bool {
    service.get(SETUP).await.json()["needs_admin"].as_bool().unwrap()
}

#[tokio::test]
async fn where_registration_is_not_open_the_first_account_is_the_last() {
    for (registration, hint) in [("invite", "invitation"), ("closed", "administrator")] {
        let service = TestService::product(&[("SVC__AUTH__REGISTRATION", registration)]).await;
        let first = post(&service, REGISTER, &account("first")).await;
        assert_eq!(roles(&service, &first).await, json!(["sysadmin", "user"]), "{registration}");
        let second = post(&service, REGISTER, &account("second")).await;
        refused(&second, "registration_closed");
        let detail = second.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(hint), "{registration}: {detail}");
        assert_eq!(count(&service, USERS).await, 1);
        let again = json!({"email": "first@example.org", "password": PASSWORD});
        assert_eq!(post(&service, "/api/v1/auth/login", &again).await.status, 200, "who has one signs in");
    }
}

#[tokio::test]
async fn where_registration_is_closed_and_nobody_is_promoted_nobody_is_the_first() {
    let settings = [("SVC__AUTH__REGISTRATION", "closed"), ("SVC_BOOTSTRAP_AUTO_PROMOTE", "false")];
    let service = TestService::product(&settings).await;
    refused(&post(&service, REGISTER, &account("first")).await, "registration_closed");
    assert_eq!(count(&service, USERS).await, 0);
}

#[tokio::test]
async fn from_another_machine_the_first_account_takes_the_setup_code() {
    let service = TestService::product(&[CODE]).await;
    assert!(needs_admin(&service).await);
    refused(&from_afar(&service, &account("stranger")).await, "setup_code_needed");
    for wrong in ["", "open sesame", "open sesame please!", "OPEN SESAME PLEASE"] {
        refused(&from_afar(&service, &with_code("stranger", wrong)).await, "setup_code_needed");
    }
    for header in ["forwarded", "via", "x-forwarded-proto", "x-real-ip"] {
        let request = service.request(Method::POST, REGISTER).header(header, "127.0.0.1");
        refused(&Answer::of(request.json(&account("stranger"))).await, "setup_code_needed");
    }
    // A browser on this machine sends it, for a page whose name now leads to this machine.
    let rebound = service.request(Method::POST, REGISTER).header("host", "attacker.example:8080");
    refused(&Answer::of(rebound.json(&account("stranger"))).await, "setup_code_needed");
    assert_eq!(count(&service, USERS).await, 0, "nobody came before the owner");

    let owner = from_afar(&service, &with_code("owner", CODE.1)).await;
    assert_eq!(roles(&service, &owner).await, json!(["sysadmin", "user"]));
    assert!(!needs_admin(&service).await);
    let second = from_afar(&service, &account("second")).await;
    assert_eq!(roles(&service, &second).await, json!(["user"]), "later ones need none");
    let third = from_afar(&service, &with_code("third", CODE.1)).await;
    assert_eq!(roles(&service, &third).await, json!(["user"]), "and it is worth nothing any more");
}

#[tokio::test]
async fn wrong_setup_codes_are_limited_like_registering() {
    let settings = [CODE, ("SVC__SERVER__TRUSTED_PROXIES", "127.0.0.0/8")];
    let service = TestService::product(&settings).await;
    let mut statuses = Vec::new();
    for number in 0..6 {
        statuses.push(
            from_afar(&service, &with_code("stranger", &format!("guess {number}"))).await.status.as_u16(),
        );
    }
    assert_eq!(statuses, [403, 403, 403, 403, 403, 429]);
}

/// Without one in the configuration there is one nonetheless, the same in every process with the same secret.
#[tokio::test]
async fn a_setup_code_that_nobody_chose_is_the_same_everywhere_and_can_not_be_guessed() {
    let service = TestService::product(&[]).await;
    let beside = service.beside().await;
    let code = service.api.app.setup_code().expose().to_owned();
    assert_eq!(code, beside.api.app.setup_code().expose());
    assert_eq!(code.chars().filter(char::is_ascii_alphanumeric).count(), 24, "{code}");
    refused(&from_afar(&service, &with_code("stranger", "")).await, "setup_code_needed");
    assert_eq!(from_afar(&beside, &with_code("owner", &format!(" {code}\n"))).await.status, 201);
}

#[tokio::test]
async fn many_first_registrations_at_once_with_the_code_make_one_sysadmin() {
    let service = TestService::product(&[CODE]).await;
    let people =
        (0..20).map(async |number| from_afar(&service, &with_code(&format!("p{number}"), CODE.1)).await);
    for answer in futures_util::future::join_all(people).await {
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    assert_eq!((count(&service, USERS).await, count(&service, SYSADMINS).await), (20, 1));
}

#[tokio::test]
async fn production_promotes_the_first_user_only_where_it_is_told_to() {
    let service = TestService::product(&PRODUCTION).await;
    assert!(!needs_admin(&service).await);
    let first = post(&service, REGISTER, &account("first")).await;
    assert_eq!(roles(&service, &first).await, json!(["user"]));

    for told in
        [("SVC_BOOTSTRAP_AUTO_PROMOTE", "true"), ("okt.toml", "bootstrap.auto_promote_first_user = true")]
    {
        let service = TestService::product(&[&PRODUCTION[..], &[told]].concat()).await;
        assert!(needs_admin(&service).await);
        let first = post(&service, REGISTER, &account("first")).await;
        assert_eq!(roles(&service, &first).await, json!(["sysadmin", "user"]), "{told:?}");
    }
}

#[tokio::test]
async fn everybody_may_see_how_the_installation_stands() {
    let service = TestService::product(&[]).await;
    let setup = service.get(SETUP).await.json();
    assert_eq!(fields(&setup), ["https", "mode", "needs_admin", "registration", "version"]);
    let expected = json!({"https": false, "mode": "development", "needs_admin": true, "registration": "open",
                          "version": env!("CARGO_PKG_VERSION")});
    assert_eq!(setup, expected);
    register(&service, "first").await;
    assert!(!needs_admin(&service).await);
    sql(&service, "DELETE FROM okt_system.users").await;
    assert!(needs_admin(&service).await);

    let settings = [("SVC_OAUTH_ISSUER", "https://okt.example"), ("SVC__AUTH__REGISTRATION", "invite")];
    let setup = TestService::product(&[&PRODUCTION[..], &settings].concat()).await.get(SETUP).await.json();
    assert_eq!((&setup["https"], &setup["mode"]), (&json!(true), &json!("production")));
    assert_eq!((&setup["registration"], &setup["needs_admin"]), (&json!("invite"), &json!(false)));
}
