//! A client that asks people for an authorization, and the browser in which they answer: over HTTP, by the pages.

use http::Method;
use serde_json::{Value, json};
use url::Url;

use crate::accounts::{PASSWORD, post};
use crate::client::Answer;
use crate::served::TestService;

/// Where our pages and routes are.
pub const AUTHORIZE: &str = "/api/v1/oauth/authorize";
pub const SIGN_IN: &str = "/api/v1/oauth/authorize/login";
pub const TOKEN: &str = "/api/v1/oauth/token";
pub const REVOKE: &str = "/api/v1/oauth/revoke";
pub const REGISTER: &str = "/api/v1/oauth/register";

/// RFC 7636, appendix B.
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
/// Where clients here want their answers. Nothing listens there; tests look at where they would be sent.
pub const CALLBACK: &str = "http://127.0.0.1/callback";

/// Registers a public client that may refresh; returns its id.
pub async fn client(service: &TestService) -> String {
    let document = json!({
        "client_name": "Ada's Agent",
        "redirect_uris": [CALLBACK],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
    });
    let answer = post(service, REGISTER, &document).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["client_id"].as_str().expect("an id").to_owned()
}

/// What a well-behaved client sends a person to us with.
pub fn request(client: &str, scope: &str) -> Vec<(&'static str, String)> {
    [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", CALLBACK),
        ("scope", scope),
        ("state", "a state & more"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

/// A browser: it keeps the cookie that it was given, and sends forms as pages have them.
#[derive(Clone, Debug, Default)]
pub struct Browser {
    pub cookie: Option<String>,
}

/// The form of a page.
#[derive(Clone, Debug)]
pub struct PageForm {
    pub flow: String,
    pub token: String,
}

impl PageForm {
    /// Of a page that has one.
    pub fn of(page: &Answer) -> Self {
        let field = |name: &str| {
            let start = format!("name=\"{name}\" value=\"");
            let (_, rest) = page.text.split_once(&start).unwrap_or_else(|| panic!("no {name} in {page:?}"));
            rest.split('"').next().expect("its end").to_owned()
        };
        Self { flow: field("flow"), token: field("token") }
    }
}

impl Browser {
    /// Opens a page and keeps its cookie.
    pub async fn open(&mut self, service: &TestService, address: &str) -> Answer {
        let path = address.strip_prefix(&service.url).unwrap_or(address);
        let answer = Answer::of(self.dressed(service.request(Method::GET, path))).await;
        self.keep(answer)
    }

    /// Comes from a client.
    pub async fn ask(&mut self, service: &TestService, request: &[(&'static str, String)]) -> Answer {
        let query = query(request);
        self.open(service, &format!("{AUTHORIZE}?{query}")).await
    }

    /// Sends a form, and keeps the cookie of the answer.
    pub async fn send(&mut self, service: &TestService, path: &str, form: &[(&str, &str)]) -> Answer {
        let answer = Answer::of(self.dressed(form_request(service, path, form))).await;
        self.keep(answer)
    }

    /// Signs in on the page, with everybody's password.
    pub async fn sign_in(&mut self, service: &TestService, page: &Answer, email: &str) -> Answer {
        let form = PageForm::of(page);
        let fields =
            [("flow", &*form.flow), ("token", &form.token), ("email", email), ("password", PASSWORD)];
        let answer = self.send(service, SIGN_IN, &fields).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        let next = answer.header("location").to_owned();
        self.open(service, &next).await
    }

    /// Decides on the page, for all repositories; returns where the answer goes.
    pub async fn decide(&mut self, service: &TestService, page: &Answer, decision: &str) -> Url {
        let form = PageForm::of(page);
        let fields =
            [("flow", &*form.flow), ("token", &form.token), ("decision", decision), ("repositories", "all")];
        let answer = self.send(service, AUTHORIZE, &fields).await;
        assert_eq!(answer.status, 303, "{answer:?}");
        answer.header("location").parse().expect("an address")
    }

    pub fn dressed(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match &self.cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        }
    }

    fn keep(&mut self, answer: Answer) -> Answer {
        if let Some(cookie) = answer.header("set-cookie").split(';').next().filter(|text| !text.is_empty()) {
            self.cookie = Some(cookie.to_owned());
        }
        answer
    }
}

/// A parameter of an address.
pub fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(of, _)| of == name).map(|(_, value)| value.into_owned())
}

/// The whole way to a code, in a browser of its own.
pub async fn code(service: &TestService, client: &str, email: &str, scope: &str) -> String {
    let mut browser = Browser::default();
    let page = browser.ask(service, &request(client, scope)).await;
    assert_eq!(page.status, 200, "{page:?}");
    let page = browser.sign_in(service, &page, email).await;
    let answer = browser.decide(service, &page, "allow").await;
    parameter(&answer, "code").unwrap_or_else(|| panic!("no code in {answer}"))
}

/// Exchanges a code, as the client that it was given to.
pub async fn exchange(service: &TestService, client: &str, code: &str) -> Answer {
    let form = [
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("code_verifier", VERIFIER),
        ("redirect_uri", CALLBACK),
    ];
    Answer::of(form_request(service, TOKEN, &form)).await
}

/// The whole way to tokens.
pub async fn tokens(service: &TestService, client: &str, email: &str, scope: &str) -> Value {
    let code = code(service, client, email, scope).await;
    let answer = exchange(service, client, &code).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Exchanges a refresh token.
pub async fn refresh(service: &TestService, client: &str, token: &str) -> Answer {
    let form = [("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)];
    Answer::of(form_request(service, TOKEN, &form)).await
}

/// Checks that it is an error in OAuth's own form, and returns its word.
pub fn error(answer: &Answer) -> String {
    let body = answer.json();
    assert_eq!(answer.header("content-type"), "application/json", "{answer:?}");
    assert!(!body["error_description"].as_str().expect("a description").is_empty());
    body["error"].as_str().expect("an error").to_owned()
}

/// A form on its way.
pub fn form_request(service: &TestService, path: &str, form: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let body = query(form);
    let request = service.request(Method::POST, path);
    request.header("content-type", "application/x-www-form-urlencoded").body(body)
}

/// Written as forms and queries are.
pub fn query<N: AsRef<str>, V: AsRef<str>>(pairs: &[(N, V)]) -> String {
    let mut text = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        text.append_pair(name.as_ref(), value.as_ref());
    }
    text.finish()
}
