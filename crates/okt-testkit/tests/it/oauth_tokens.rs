//! Tokens of clients: how they are had, what they are good for, and how they end.
pub(crate) mod access;
mod beside;
mod exchange;
mod faults;
mod proof;
mod races;
mod refresh;
mod revoke;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use okt_auth::opaque::{self, Prefix};
use okt_model::{GrantId, RepositoryId, Scope, SessionId};
use okt_store::oauth_grants::{self, NewGrant};
use okt_store::sessions;
use okt_testkit::accounts::{Barrier, Person, count, post, register};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{CALLBACK, CHALLENGE, REGISTER, TOKEN, VERIFIER, client, error, form_request};
use okt_testkit::served::TestService;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

const ME: &str = "/api/v1/users/me";

/// Who asks often, in one test more often than a client may in a minute.
const UNLIMITED: (&str, &str) = ("SVC__RATE_LIMITS__OAUTH_TOKEN_PER_MINUTE", "0");

/// A service behind an address that is not its own, as behind a balancer, so that another one beside it is known by the
/// same. With an issuer, limits by address count for this machine too. Many come at once, and all of them wait for their
/// turn, on a server that has connections for other tests as well.
const BALANCED: [(&str, &str); 11] = [
    ("SVC_OAUTH_ISSUER", "http://127.0.0.1:9"),
    ("SVC__RATE_LIMITS__API_PER_MINUTE", "0"),
    ("SVC__RATE_LIMITS__ANONYMOUS_PER_MINUTE", "0"),
    ("SVC__RATE_LIMITS__REGISTER_PER_HOUR", "0"),
    ("SVC__RATE_LIMITS__OAUTH_REGISTER_PER_HOUR", "0"),
    ("SVC__DATABASES__DEFAULT__MAX_CONNS", "20"),
    ("SVC__DATABASES__DEFAULT__ACQUIRE_TIMEOUT", "20s"),
    Barrier::PATIENT[0],
    Barrier::PATIENT[1],
    Barrier::PATIENT[2],
    UNLIMITED,
];

/// A service, a person, and a public client that they may let in.
struct Scene {
    service: TestService,
    ada: Person,
    client: String,
}

impl Scene {
    async fn new() -> Self {
        Self::with(&[UNLIMITED]).await
    }

    async fn with(settings: &[(&str, &str)]) -> Self {
        let service = TestService::product(settings).await;
        let ada = register(&service, "ada").await;
        let client = client(&service).await;
        Self { service, ada, client }
    }

    /// A code for all that there is to read.
    async fn code(&self) -> String {
        code(&self.service, &self.client, self.ada.id, &Given::default()).await
    }

    async fn exchange(&self, code: &str) -> Answer {
        ask(&self.service, &code_form(&self.client, code)).await
    }

    async fn refresh(&self, token: &str) -> Answer {
        ask(&self.service, &refresh_form(&self.client, token)).await
    }

    /// The tokens of another grant.
    async fn pair(&self) -> Pair {
        Pair::of(&self.exchange(&self.code().await).await)
    }
}

/// What a person gives to a client.
#[derive(Clone, Copy, Default)]
struct Given<'a> {
    /// All that there is to read.
    scope: Option<&'a str>,
    /// The service itself.
    resource: Option<&'a str>,
    /// All repositories.
    repositories: Option<&'a [RepositoryId]>,
}

/// A code as somebody's consent gives it, without the pages: no password is hashed, so there can be as many as one
/// likes.
async fn code(service: &TestService, client: &str, user: Uuid, given: &Given<'_>) -> String {
    let (code, hash) = opaque::mint(Prefix::Code).unwrap();
    let (grant, ttl) = (GrantId::mint(), Duration::from_mins(10));
    let scope = Scope::parse(given.scope.unwrap_or("read")).unwrap().words();
    let issuer = issuer(service);
    let new = NewGrant {
        id: grant,
        client_id: client,
        scope: &scope,
        resource: given.resource.unwrap_or(&issuer),
        repositories: given.repositories,
    };
    let mut tx = service.api.app.databases().begin_system().await.unwrap();
    let (session, device) = (SessionId::from(grant.uuid()), sessions::Device::default());
    sessions::insert(&mut tx, session, user.into(), ttl, device).await.unwrap();
    oauth_grants::insert(&mut tx, &new).await.unwrap();
    oauth_grants::insert_code(&mut tx, hash.as_bytes(), grant, CALLBACK, CHALLENGE, ttl).await.unwrap();
    tx.commit().await.unwrap();
    code.expose().to_owned()
}

fn issuer(service: &TestService) -> String {
    let issuer = service.api.app.config().oauth.issuer.as_ref();
    issuer.map_or_else(|| service.url.clone(), |url| url.as_str().trim_end_matches('/').to_owned())
}

/// Registers a client that differs from the usual public one in these fields; returns what it is told.
async fn registered(service: &TestService, changes: Value) -> Value {
    let mut document = json!({
        "client_name": "Ada's Agent",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
    });
    let Value::Object(changes) = changes else { panic!("fields") };
    document.as_object_mut().unwrap().extend(changes);
    let answer = post(service, REGISTER, &document).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

/// A client with a secret, by how it shows it; returns both.
async fn confidential(service: &TestService, method: &str) -> (String, String) {
    let client = registered(service, json!({"token_endpoint_auth_method": method})).await;
    (text(&client, "client_id"), text(&client, "client_secret"))
}

type Fields<'a> = Vec<(&'a str, &'a str)>;

/// What a public client sends to exchange a code.
fn code_form<'a>(client: &'a str, code: &'a str) -> Fields<'a> {
    vec![
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("code_verifier", VERIFIER),
        ("redirect_uri", CALLBACK),
    ]
}

fn refresh_form<'a>(client: &'a str, token: &'a str) -> Fields<'a> {
    vec![("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)]
}

/// The same form with another value of a field.
fn with<'a>(form: &Fields<'a>, name: &'a str, value: &'a str) -> Fields<'a> {
    let mut form = without(form, name);
    form.push((name, value));
    form
}

fn without<'a>(form: &Fields<'a>, name: &str) -> Fields<'a> {
    form.iter().copied().filter(|(of, _)| *of != name).collect()
}

/// Asks for tokens.
async fn ask(service: &TestService, form: &[(&str, &str)]) -> Answer {
    Answer::of(form_request(service, TOKEN, form)).await
}

/// Checks that it is a refusal with this word, and nothing else.
#[track_caller]
fn refused(answer: &Answer, word: &str) {
    let status = if word == "invalid_client" { 401 } else { 400 };
    assert_eq!((answer.status.as_u16(), error(answer).as_str()), (status, word), "{answer:?}");
    assert_eq!(fields(&answer.json()), ["error", "error_description"]);
    assert_eq!(answer.header("cache-control"), "no-store", "{answer:?}");
}

/// What a client holds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    access: String,
    refresh: String,
}

impl Pair {
    #[track_caller]
    fn of(answer: &Answer) -> Self {
        assert_eq!(answer.status, 200, "{answer:?}");
        let body = answer.json();
        Self { access: text(&body, "access_token"), refresh: text(&body, "refresh_token") }
    }
}

/// The status that a request with this token gets.
async fn me(service: &TestService, token: &str) -> u16 {
    service.get_as(token, ME).await.status.as_u16()
}

fn text(object: &Value, name: &str) -> String {
    object[name].as_str().unwrap_or_else(|| panic!("no {name} in {object}")).to_owned()
}

/// The names of an object's fields, in alphabetical order.
fn fields(object: &Value) -> Vec<&str> {
    let mut fields: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

/// All rows of all tables of the system schema, as text. When it is the same before and after, nothing happened.
async fn state(service: &TestService) -> BTreeMap<String, String> {
    let mut conn = service.database.connect().await;
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'okt_system'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut conn).await.unwrap();
    let mut state = BTreeMap::new();
    for table in tables {
        let rows = format!(
            "SELECT coalesce(string_agg(t::text, E'\n' ORDER BY t::text), '') FROM okt_system.{table} t"
        );
        let rows: String = sqlx::query_scalar(AssertSqlSafe(rows)).fetch_one(&mut conn).await.unwrap();
        state.insert(table, rows);
    }
    assert!(state.len() > 5 && !state["users"].is_empty(), "{state:?}");
    state
}

/// Checks that nothing happened since.
async fn unchanged(service: &TestService, before: &BTreeMap<String, String>, case: impl Display) {
    for (table, rows) in state(service).await {
        assert_eq!(rows, before[&table], "{table} changed: {case}");
    }
}

/// How often something is in the audit.
async fn audited(service: &TestService, action: &str) -> i64 {
    let number = format!("SELECT count(*) FROM okt_system.audit WHERE action = '{action}'");
    count(service, &number).await
}
