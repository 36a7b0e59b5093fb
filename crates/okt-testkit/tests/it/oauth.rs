//! Clients and the pages on which people let them in.
mod abuse;
mod authorization;
mod discovery;
mod documents;
mod forms;
mod management;
mod pages;
mod promises;
mod registration;

use okt_testkit::accounts::{PASSWORD, count};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{Browser, PageForm, client, request};
use okt_testkit::served::TestService;
use serde_json::Value;
use url::Url;

/// The parameters of an authorization request.
type Request = Vec<(&'static str, String)>;

/// A service with a public address. Limits per address apply to loopback there.
const PUBLIC: (&str, &str) = ("SVC_OAUTH_ISSUER", "https://okt.example");

const GRANTS: &str = "/api/v1/users/me/grants";
const SIGNED_IN: &str = "SELECT count(*) FROM okt_system.oauth_browsers";

/// The names of an object's fields, in alphabetical order.
fn fields(object: &Value) -> Vec<&str> {
    let mut fields: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    fields
}

/// The request with another value of a parameter, or without it.
fn changed(request: &Request, name: &'static str, value: Option<&str>) -> Request {
    let mut changed: Request = request.iter().filter(|(of, _)| *of != name).cloned().collect();
    changed.extend(value.map(|value| (name, value.to_owned())));
    changed
}

/// The request with one more parameter.
fn more(request: &Request, name: &'static str, value: &str) -> Request {
    let mut more = request.clone();
    more.push((name, value.to_owned()));
    more
}

/// Where the browser is sent.
fn sent_to(answer: &Answer) -> Url {
    assert_eq!(answer.status, 303, "{answer:?}");
    answer.header("location").parse().unwrap()
}

/// Where a page offers to go back to the app, which is not the same as being sent there.
fn offered(answer: &Answer) -> Url {
    stays(answer, 400);
    let (_, link) = answer.text.split_once("<a href=\"").expect("a link");
    let link = link.split('"').next().unwrap();
    link.replace("&#x2f;", "/").replace("&amp;", "&").parse().unwrap()
}

/// Checks that this is a page that sends nobody anywhere.
fn stays(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("location"), "", "{answer:?}");
    assert_eq!(answer.header("refresh"), "", "{answer:?}");
    assert!(answer.header("content-type").starts_with("text/html"), "{answer:?}");
    assert!(!answer.text.to_lowercase().contains("http-equiv"), "{answer:?}");
}

/// The fields of the form to sign in with.
fn sign_in_fields<'a>(form: &'a PageForm, email: &'a str) -> [(&'static str, &'a str); 4] {
    [("flow", &form.flow), ("token", &form.token), ("email", email), ("password", PASSWORD)]
}

/// The fields of the form to decide with.
fn allow_fields(form: &PageForm) -> [(&'static str, &str); 4] {
    [("flow", &form.flow), ("token", &form.token), ("decision", "allow"), ("repositories", "all")]
}

/// A browser in which this person has just signed in.
async fn signed_in(service: &TestService, email: &str) -> Browser {
    let mut browser = Browser::default();
    let page = browser.ask(service, &request(&client(service).await, "read")).await;
    assert_eq!(browser.sign_in(service, &page, email).await.status, 200);
    browser
}

/// Everything that comes of a decision: grants and codes.
async fn given(service: &TestService) -> (i64, i64) {
    let rows = async |table: &str| count(service, &format!("SELECT count(*) FROM okt_system.{table}")).await;
    (rows("oauth_grants").await, rows("oauth_codes").await)
}
