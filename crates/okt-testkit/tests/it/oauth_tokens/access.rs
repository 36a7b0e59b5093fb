use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Method;
use okt_auth::NewAccess;
use okt_http::Guard;
use okt_model::{GrantId, RepositoryId, TokenId};
use okt_testkit::accounts::{
    KEYS, PASSWORD, count, give, post, register, repository, send, tables_with, take,
};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{AUTHORIZE, Browser, PageForm, client, parameter, request, tokens};
use okt_testkit::served::TestService;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::oauth_tokens::{
    Given, ME, Pair, Scene, ask, code, code_form, fields, issuer, me, refused, registered, text, with,
};

const PERMISSIONS: &str = "/api/v1/permissions";
pub(crate) const USERS: &str = "/api/v1/admin/users";
const AUDIT: &str = "/api/v1/admin/audit";

/// What a service under test signs with.
pub(crate) const SECRET: &[u8] = b"a secret that is long enough for tests";

pub(crate) fn part(token: &str, at: usize) -> String {
    let part = token.split('.').nth(at).unwrap();
    String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

pub(crate) fn claims(token: &str) -> Value {
    serde_json::from_str(&part(token, 1)).unwrap()
}

/// The tokens of a grant that was given so.
pub(super) async fn given(scene: &Scene, user: Uuid, given: &Given<'_>) -> Pair {
    let code = code(&scene.service, &scene.client, user, given).await;
    Pair::of(&scene.exchange(&code).await)
}

#[track_caller]
fn invalid_token(answer: &Answer) {
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (401, "unauthenticated"), "{answer:?}");
    let challenge = answer.header("www-authenticate");
    assert!(challenge.starts_with("Bearer error=\"invalid_token\", "), "{challenge}");
}

#[tokio::test]
async fn an_access_token_has_the_header_and_the_claims_that_are_documented() {
    let scene = Scene::new().await;
    let (first, second) = (scene.pair().await, scene.pair().await);
    let header: Value = serde_json::from_str(&part(&first.access, 0)).unwrap();
    assert_eq!(fields(&header), ["alg", "kid", "typ"]);
    assert_eq!((&header["alg"], &header["typ"]), (&json!("HS256"), &json!("at+jwt")));
    let said = claims(&first.access);
    assert_eq!(fields(&said), ["aud", "client_id", "exp", "grant", "iat", "iss", "jti", "scope", "sub"]);
    assert_eq!((&said["iss"], &said["aud"]), (&json!(scene.service.url), &json!(scene.service.url)));
    assert_eq!((&said["sub"], &said["client_id"]), (&json!(scene.ada.id), &json!(scene.client)));
    assert_eq!(said["scope"], "read");
    assert_eq!(said["exp"].as_u64().unwrap() - said["iat"].as_u64().unwrap(), 900);
    assert_ne!(said["jti"], claims(&second.access)["jti"]);
    for id in ["jti", "grant", "sub"] {
        assert!(text(&said, id).parse::<Uuid>().is_ok(), "{id}");
    }
}

/// A token as somebody with the secret would write it by hand. HMAC is two hashes, and PostgreSQL has them.
pub(crate) async fn forged(service: &TestService, header: &str, claims: &str, secret: &[u8]) -> String {
    let [header, claims] = [header, claims].map(|text| BASE64_URL_SAFE_NO_PAD.encode(text));
    let message = format!("{header}.{claims}");
    let padded = |byte: u8| {
        let mut key = vec![byte; 64];
        key.iter_mut().zip(secret).for_each(|(padding, byte)| *padding ^= byte);
        key
    };
    let signature: Vec<u8> = sqlx::query_scalar("SELECT sha256($1 || sha256($2))")
        .bind(padded(0x5c))
        .bind([padded(0x36), message.clone().into_bytes()].concat())
        .fetch_one(&mut *service.api.app.databases().acquire_system().await.unwrap())
        .await
        .unwrap();
    format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

#[tokio::test]
async fn a_token_with_any_other_header_or_claim_is_refused() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let pair = scene.pair().await;
    let (header, said) = (part(&pair.access, 0), part(&pair.access, 1));
    let right = forged(service, &header, &said, SECRET).await;
    assert_eq!(right, pair.access, "the forger knows how");

    let mut wrong = Vec::new();
    let algorithms =
        ["none", "None", "hs256", "HS384", "HS512", "RS256", "ES256", ""].map(|alg| ("HS256", alg));
    let types = ["JWT", "jwt", "session+jwt", "AT+JWT", "application/at+jwt", ""].map(|typ| ("at+jwt", typ));
    for (from, to) in [algorithms.as_slice(), &types].concat() {
        wrong.push((
            format!("{from} → {to}"),
            header.replace(&format!("\"{from}\""), &format!("\"{to}\"")),
            said.clone(),
        ));
    }
    for more in [
        "crit\":[\"exp\"]",
        "jku\":\"http://127.0.0.1/\"",
        "jwk\":{}",
        "x5u\":\"\"",
        "b64\":false",
        "cty\":\"JWT\"",
    ] {
        wrong.push((more.to_owned(), header.replace('{', &format!("{{\"{more},")), said.clone()));
    }
    let mut without: Value = serde_json::from_str(&header).unwrap();
    for name in ["typ", "kid", "alg"] {
        let removed = without.as_object_mut().unwrap().remove(name);
        wrong.push((format!("no {name}"), without.to_string(), said.clone()));
        without[name] = removed.unwrap();
    }
    let said: Value = serde_json::from_str(&said).unwrap();
    let iat = said["iat"].as_u64().unwrap();
    let (slash, mcp) = (format!("{}/", service.url), format!("{}/mcp", service.url));
    for (name, value) in [
        ("iss", json!("https://elsewhere.example")),
        ("iss", json!(slash)),
        ("iss", json!("okt")),
        ("iss", json!([service.url])),
        ("aud", json!("https://elsewhere.example")),
        ("aud", json!(slash)),
        ("aud", json!(mcp)),
        ("aud", json!("okt:session")),
        ("aud", json!([service.url])),
        ("aud", json!("")),
        ("exp", json!(iat - 60)),
        ("exp", json!("never")),
        ("iat", json!(iat + 3600)),
        ("sub", json!(register(service, "bob").await.id)),
        ("sub", json!("nobody")),
        ("client_id", json!("client_of_nobody")),
        ("client_id", json!(okt_testkit::oauth::client(service).await)),
        ("grant", json!(GrantId::mint())),
        ("scope", json!(["read"])),
    ] {
        let mut other = said.clone();
        other[name] = value.clone();
        wrong.push((format!("{name} = {value}"), header.clone(), other.to_string()));
    }
    for name in fields(&said) {
        let mut other = said.clone();
        other.as_object_mut().unwrap().remove(name);
        wrong.push((format!("no {name}"), header.clone(), other.to_string()));
    }
    for (what, header, claims) in &wrong {
        assert!(*header != part(&right, 0) || *claims != part(&right, 1), "{what} is another token");
        let token = forged(service, header, claims, SECRET).await;
        let answer = service.get_as(&token, ME).await;
        assert_eq!(answer.status, 401, "{what}");
        invalid_token(&answer);
    }
    println!("{} other headers and claims, properly signed: none gets in", wrong.len());

    let (message, signature) = right.rsplit_once('.').unwrap();
    let other_secret =
        forged(service, &header, &said.to_string(), b"another secret, as long as the right one").await;
    let empty_secret = forged(service, &header, &said.to_string(), b"").await;
    let unsigned = forged(service, &header.replace("HS256", "none"), &said.to_string(), SECRET).await;
    let (unsigned, _) = unsigned.rsplit_once('.').unwrap();
    for token in [
        &other_secret,
        &empty_secret,
        &format!("{unsigned}."),
        unsigned,
        &format!("{message}."),
        message,
        &format!("{right}.{signature}"),
        &format!("{right}="),
        &format!("{message}.{}", signature.to_lowercase()),
        &right.replace('.', ".."),
        &format!("{right}{}", "x".repeat(5000)),
    ] {
        invalid_token(&service.get_as(token, ME).await);
    }
    assert_eq!(me(service, &right).await, 200);
}

#[tokio::test]
async fn a_token_of_another_issuer_or_for_another_audience_is_refused() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let said = claims(&scene.pair().await.access);
    let grant: Uuid = text(&said, "grant").parse().unwrap();
    let sign = |issuer: &str, audience: &str| {
        let (user, grant, id) = (scene.ada.id.into(), grant.into(), TokenId::mint());
        let new = NewAccess { issuer, user, audience, client: &scene.client, scope: "read", grant, id };
        service.api.app.auth().sign_access(&new, Duration::from_mins(5)).expose().to_owned()
    };
    let ours = issuer(service);
    assert_eq!(me(service, &sign(&ours, &ours)).await, 200);
    let localhost = ours.replace("127.0.0.1", "localhost");
    for (issuer, audience) in [
        ("https://elsewhere.example", ours.as_str()),
        (&ours, "https://elsewhere.example"),
        (&ours, &format!("{ours}/mcp")),
        (&ours, &localhost),
        (&localhost, &ours),
        ("okt", &ours),
        (&ours, "okt:session"),
    ] {
        invalid_token(&service.get_as(&sign(issuer, audience), ME).await);
    }
}

#[tokio::test]
async fn a_token_counts_in_one_header_and_nowhere_else() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let Pair { access, .. } = scene.pair().await;
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        let header = format!("{scheme} {access}");
        let answer = Answer::of(service.request(Method::GET, ME).header("authorization", header)).await;
        assert_eq!(answer.status, 200, "{scheme}");
    }
    for name in ["access_token", "token", "bearer_token"] {
        let answer = service.get(&format!("{ME}?{name}={access}")).await;
        assert_eq!(answer.status, 401, "{name}");
        assert!(!answer.header("www-authenticate").contains("error="), "as if nothing had been sent");
    }
    let both = service.get_as(&access, &format!("{ME}?a=1&access_token={access}")).await;
    assert_eq!((both.status.as_u16(), both.problem().as_str()), (400, "malformed"));
    assert!(!both.text.contains(&access));
    let both = service.get_as(&access, &format!("{ME}?access_token=")).await;
    assert_eq!(both.status, 400);
    let request = service.request(Method::GET, ME).bearer_auth(&access).bearer_auth(&access);
    assert_eq!(Answer::of(request).await.status, 400);
    let cookie = service.request(Method::GET, ME).header("cookie", format!("access_token={access}"));
    assert_eq!(Answer::of(cookie).await.status, 401);
    let body = service.request(Method::POST, "/api/v1/auth/logout").json(&json!({"access_token": access}));
    assert_eq!(Answer::of(body).await.status, 401);
    for header in
        [access.clone(), format!("Token {access}"), format!("Basic {access}"), format!("Bearer{access}")]
    {
        let answer = Answer::of(service.request(Method::GET, ME).header("authorization", header)).await;
        assert_eq!(answer.status, 401);
    }
}

#[tokio::test]
async fn a_token_does_what_its_scope_says_and_nothing_else() {
    let service = TestService::product(&[]).await;
    let admin = register(&service, "ada").await;
    let client = okt_testkit::oauth::client(&service).await;
    let tokens = tokens(&service, &client, &admin.email, "user:read").await;
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(service.get_as(access, USERS).await.status, 200);
    let answer = service.get_as(access, AUDIT).await;
    assert_eq!((answer.status.as_u16(), answer.problem().as_str()), (403, "forbidden"));
    let challenge = answer.header("www-authenticate");
    assert!(
        challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"audit:read\""),
        "{challenge}"
    );
}

#[tokio::test]
async fn a_scope_gives_nothing_that_the_person_may_not_do_right_now() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let bob = register(service, "bob").await;
    let every = Given { scope: Some("read user:read role:manage"), ..Given::default() };
    let pair = given(&scene, bob.id, &every).await;
    assert_eq!(service.get_as(&pair.access, USERS).await.status, 403, "bob never could");
    give(service, bob.id, "system", "sysadmin").await;
    assert_eq!(service.get_as(&pair.access, USERS).await.status, 200);
    assert_eq!(service.get_as(&pair.access, AUDIT).await.status, 200);
    take(service, bob.id, "system", "sysadmin").await;
    assert_eq!(service.get_as(&pair.access, USERS).await.status, 403, "nor can he now");
    let next = Pair::of(&scene.refresh(&pair.refresh).await);
    assert_eq!(service.get_as(&next.access, USERS).await.status, 403);
}

/// Domain by domain, what the caller may do.
async fn permissions(service: &TestService, token: &str) -> Vec<(String, Vec<String>)> {
    let answer = service.get_as(token, PERMISSIONS).await.json();
    assert_eq!(answer["system_admin"], false, "no client is a sysadmin");
    let domains = answer["domains"].as_array().unwrap().iter().map(|domain| {
        assert_eq!(domain["roles"], json!([]), "roles are the person's");
        let pairs = domain["permissions"].as_array().unwrap().iter();
        let pairs = pairs.map(|pair| format!("{}:{}", text(pair, "object"), text(pair, "action")));
        (text(domain, "domain"), pairs.collect())
    });
    let mut domains: Vec<_> = domains.collect();
    domains.sort();
    domains
}

#[tokio::test]
async fn rights_are_what_scope_repositories_and_roles_have_in_common() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let bob = register(service, "bob").await;
    let ids: Vec<_> = (0..4).map(|_| RepositoryId::mint()).collect();
    let names: Vec<_> = ids.iter().map(ToString::to_string).collect();
    let [edited, read, left_out, foreign] = &names[..] else { panic!("four") };
    give(service, bob.id, edited, "editor").await;
    give(service, bob.id, read, "viewer").await;
    give(service, bob.id, left_out, "repoadmin").await;
    let chosen = [ids[0], ids[1], ids[3]];
    let given_so =
        Given { scope: Some("source:read source:write"), repositories: Some(&chosen), ..Given::default() };
    let Pair { access, .. } = given(&scene, bob.id, &given_so).await;
    let row =
        |domain: &str, pairs: &[&str]| (domain.to_owned(), pairs.iter().map(ToString::to_string).collect());
    let sorted = |mut rows: Vec<(String, Vec<String>)>| {
        rows.sort();
        rows
    };
    let expected = vec![row(edited, &["source:read", "source:write"]), row(read, &["source:read"])];
    assert_eq!(permissions(service, &access).await, sorted(expected));

    give(service, bob.id, foreign, "editor").await;
    take(service, bob.id, edited, "editor").await;
    let expected = vec![row(read, &["source:read"]), row(foreign, &["source:read", "source:write"])];
    assert_eq!(permissions(service, &access).await, sorted(expected), "roles count as they are now");

    let everywhere = Given { scope: Some("source:write"), ..Given::default() };
    let Pair { access, .. } = given(&scene, bob.id, &everywhere).await;
    let expected = vec![row(left_out, &["source:write"]), row(foreign, &["source:write"])];
    assert_eq!(permissions(service, &access).await, sorted(expected));
    let later = repository(service).await.to_string();
    give(service, bob.id, &later, "editor").await;
    assert_eq!(permissions(service, &access).await.len(), 3, "all repositories are also later ones");
    let Pair { access, .. } = given(&scene, bob.id, &Given { scope: Some("mcp"), ..Given::default() }).await;
    assert_eq!(permissions(service, &access).await, [], "mcp alone is a way in and no right");
}

#[tokio::test]
async fn a_person_who_chooses_some_repositories_lets_the_client_into_those_alone() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let (chosen, other) = (repository(service).await.to_string(), repository(service).await.to_string());
    for repository in [&chosen, &other] {
        give(service, scene.ada.id, repository, "editor").await;
    }
    let mut browser = Browser::default();
    let page = browser.ask(service, &request(&scene.client, "source:read user:read")).await;
    let page = browser.sign_in(service, &page, &scene.ada.email).await;
    assert!(page.text.contains(&chosen) && page.text.contains(&other), "{}", page.text);
    let form = PageForm::of(&page);
    let fields = [
        ("flow", &*form.flow),
        ("token", &form.token),
        ("decision", "allow"),
        ("repositories", "some"),
        ("repository", &chosen),
    ];
    let answer = browser.send(service, AUTHORIZE, &fields).await;
    let code = parameter(&answer.header("location").parse().unwrap(), "code").unwrap();
    let pair = Pair::of(&scene.exchange(&code).await);
    let expected = [(chosen.clone(), vec!["source:read".to_owned(), "user:read".to_owned()])];
    assert_eq!(
        permissions(service, &pair.access).await,
        expected,
        "although a sysadmin may do it everywhere"
    );
    assert_eq!(
        service.get_as(&pair.access, USERS).await.status,
        403,
        "the whole installation is no repository"
    );
    let next = Pair::of(&scene.refresh(&pair.refresh).await);
    assert_eq!(permissions(service, &next.access).await, expected);
    let grants = service.get_as(&scene.ada.token, "/api/v1/users/me/grants").await.json();
    assert_eq!(grants["data"][0]["repository_ids"], json!([chosen]));
}

#[tokio::test]
async fn what_needs_a_persons_session_answers_401_to_a_client() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let all = "read mcp role:manage user:read user:update user:write user:delete user:manage";
    let all: Vec<_> = all.split(' ').filter(|word| okt_model::Scope::parse(word).is_ok()).collect();
    let scope = all.join(" ");
    let Pair { access, .. } =
        given(&scene, scene.ada.id, &Given { scope: Some(&scope), ..Given::default() }).await;
    let routes = okt_api::table(&service.api);
    let lines: Vec<_> = routes.lines().iter().filter(|line| matches!(line.guard, Guard::Session)).collect();
    assert!(lines.len() >= 5, "{}", lines.len());
    for line in lines {
        let path = line.path.replace("{userID}", &scene.ada.id.to_string());
        let path = ["{keyID}", "{grantID}"]
            .iter()
            .fold(path, |path, name| path.replace(name, &Uuid::nil().to_string()));
        let method = line.method.clone().unwrap_or(Method::POST);
        let request = service.request(method.clone(), &path).bearer_auth(&access);
        let answer = Answer::of(if method == Method::GET { request } else { request.json(&json!({})) }).await;
        assert_eq!(answer.status, 401, "{method} {path}");
        invalid_token(&answer);
    }
    assert_eq!(me(service, &scene.ada.token).await, 200, "nobody was signed out");
}

#[tokio::test]
async fn a_client_can_not_make_itself_an_api_key() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let Pair { access, .. } = scene.pair().await;
    let body = json!({"name": "a key", "permissions": ["source:read"]});
    invalid_token(&send(service, &access, Method::POST, KEYS, &body).await);
    assert_eq!(count(service, "SELECT count(*) FROM okt_system.api_keys").await, 0);
    assert_eq!(send(service, &scene.ada.token, Method::POST, KEYS, &body).await.status, 201);
}

#[tokio::test]
async fn no_secret_that_was_issued_can_be_read_in_the_database() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let client = registered(service, json!({"token_endpoint_auth_method": "client_secret_post"})).await;
    let (id, secret) = (text(&client, "client_id"), text(&client, "client_secret"));
    let mut browser = Browser::default();
    let mut secrets = vec![secret.clone(), text(&client, "registration_access_token"), PASSWORD.to_owned()];
    let page = browser.ask(service, &request(&id, "read")).await;
    secrets.extend([browser.cookie.clone().unwrap(), PageForm::of(&page).token]);
    let page = browser.sign_in(service, &page, &scene.ada.email).await;
    secrets.extend([browser.cookie.clone().unwrap(), PageForm::of(&page).token]);
    let answer = browser.decide(service, &page, "allow").await;
    let code = parameter(&answer, "code").unwrap();
    let pair = Pair::of(&ask(service, &with(&code_form(&id, &code), "client_secret", &secret)).await);
    let form = with(&crate::oauth_tokens::refresh_form(&id, &pair.refresh), "client_secret", &secret);
    let lost = Pair::of(&ask(service, &form).await);
    let next = Pair::of(&ask(service, &form).await);
    let other = scene.pair().await;
    refused(&ask(service, &with(&code_form(&id, &code), "client_secret", &secret)).await, "invalid_grant");
    let management = text(&client, "registration_access_token");
    let read = Answer::of(
        service.request(Method::GET, &format!("/api/v1/oauth/register/{id}")).bearer_auth(&management),
    )
    .await;
    secrets.extend([code, text(&read.json(), "registration_access_token")]);
    for pair in [&pair, &lost, &next, &other] {
        assert_eq!(me(service, &pair.access).await, if *pair == other { 200 } else { 401 });
        secrets.extend([pair.refresh.clone(), pair.access.clone()]);
        secrets.extend(pair.access.split('.').skip(1).map(str::to_owned));
    }
    let again = post(service, "/api/v1/auth/login", &json!({"email": scene.ada.email, "password": PASSWORD}))
        .await
        .json();
    secrets.extend([text(&again, "token"), text(&again, "refresh_token")]);
    assert!(secrets.len() >= 25, "{}", secrets.len());
    for secret in &secrets {
        let bare = secret.split_once('=').map_or(secret.as_str(), |(_, value)| value);
        assert_eq!(tables_with(service, bare).await, [""; 0], "{bare}");
    }
    println!("{} secrets issued, none of them in any table", secrets.len());
    assert!(!tables_with(service, &id).await.is_empty(), "the search finds what is there");
}

/// The page says what a client may see; an address is not part of `fact:read`.
#[tokio::test]
async fn a_client_sees_its_persons_account_only_if_that_was_given() {
    let service = TestService::product(&[]).await;
    let ada = register(&service, "ada").await;
    let client = client(&service).await;
    for (scope, sees) in [("fact:read", false), ("mcp", false), ("user:read", true), ("read", true)] {
        let tokens = tokens(&service, &client, &ada.email, scope).await;
        for path in ["/api/v1/users/me".to_owned(), format!("/api/v1/users/{}", ada.id)] {
            let profile = service.get_as(tokens["access_token"].as_str().unwrap(), &path).await.json();
            assert_eq!(profile["id"], ada.id.to_string(), "{scope}");
            assert_eq!(profile.get("email").is_some(), sees, "{scope} {profile}");
            assert_eq!(profile.get("system_roles").is_some(), sees, "{scope} {profile}");
        }
    }
}

/// Told to ask for a scope that it has, a client would ask its person again and again.
#[tokio::test]
async fn a_person_who_may_not_is_no_matter_of_scope() {
    let service = TestService::product(&[]).await;
    register(&service, "admin").await;
    let bob = register(&service, "bob").await;
    let client = client(&service).await;
    for (scope, challenged) in [("fact:read", true), ("user:read", false)] {
        let tokens = tokens(&service, &client, &bob.email, scope).await;
        let refused = service.get_as(tokens["access_token"].as_str().unwrap(), "/api/v1/admin/users").await;
        assert_eq!(refused.status, 403);
        assert_eq!(refused.header("www-authenticate").contains("insufficient_scope"), challenged, "{scope}");
    }
}
