//! Two clients that people let in, from the registration to the end of their tokens.

use std::fmt::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use okt_testkit::client::{Answer, client};
use okt_testkit::oauth::{
    AUTHORIZE, Browser, CALLBACK, PageForm, REGISTER, REVOKE, SIGN_IN, TOKEN, VERIFIER, parameter, query,
    request,
};
use serde_json::{Value, json};

use super::{Issued, PASSWORD, WRONG};

type Form<'a> = [(&'a str, &'a str)];

/// The service from outside, with all that it gave out and all that it refused.
pub(super) struct Flow<'a> {
    pub(super) url: &'a str,
    pub(super) issued: &'a mut Issued,
    pub(super) errors: &'a mut String,
}

/// A client as it was registered, and how it proves itself.
struct Client {
    id: String,
    authorization: Option<String>,
    registration: Value,
}

impl Flow<'_> {
    /// Every step with a public client and with a confidential one; returns their ids.
    pub(super) async fn drive(&mut self) -> [String; 2] {
        // In the right one and in the wrong one.
        self.issued.0.push(VERIFIER[1..].to_owned());
        let public = self.register("none").await;
        let confidential = self.register("client_secret_basic").await;
        for client in [&public, &confidential] {
            self.tokens_of(client).await;
            self.manage(client).await;
        }
        [public.id, confidential.id]
    }

    async fn register(&mut self, method: &str) -> Client {
        let document = json!({
            "client_name": "Ada's Agent",
            "redirect_uris": [CALLBACK],
            "token_endpoint_auth_method": method,
            "grant_types": ["authorization_code", "refresh_token"],
        });
        let answer = Answer::of(client().post(self.at(REGISTER)).json(&document)).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let registration = answer.json();
        let id = registration["client_id"].as_str().unwrap().to_owned();
        assert!(self.issued.field(&registration, "registration_access_token").starts_with("oktm_"));
        let authorization = (method != "none").then(|| {
            let secret = self.issued.field(&registration, "client_secret");
            assert!(secret.starts_with("okts_"));
            let encoded = BASE64_STANDARD.encode(format!("{id}:{secret}"));
            self.issued.0.push(encoded.clone());
            format!("Basic {encoded}")
        });
        Client { id, authorization, registration }
    }

    /// By the pages to a code, from there to tokens, and to the end of those.
    async fn tokens_of(&mut self, by: &Client) {
        let code = self.code(by).await;
        let exchange = [
            ("grant_type", "authorization_code"),
            ("code", &*code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", CALLBACK),
        ];
        let mut wrong = exchange;
        wrong[2].1 = &VERIFIER[1..];
        let refused = self.ask(by, TOKEN, &wrong).await;
        self.refused(&refused);
        let (access, first) = self.pair(by, &exchange).await;
        self.me(&access, 200).await;
        let refresh = |token| [("grant_type", "refresh_token"), ("refresh_token", token)];
        let (_, second) = self.pair(by, &refresh(&first)).await;
        let (refreshed, third) = self.pair(by, &refresh(&second)).await;
        self.me(&refreshed, 200).await;
        if by.authorization.is_some() {
            let stranger = Client { authorization: None, id: by.id.clone(), registration: Value::Null };
            for form in [&exchange[..], &refresh(&third)] {
                let refused = self.ask(&stranger, TOKEN, form).await;
                self.refused(&refused);
            }
            let revoked = self.ask(by, REVOKE, &[("token", &third)]).await;
            assert_eq!(revoked.status, 200, "{revoked:?}");
        }
        // With the public client it is the reuse that ends the grant, with the other one it has ended already.
        for form in [&refresh(&first)[..], &refresh(&third), &exchange] {
            let refused = self.ask(by, TOKEN, form).await;
            self.refused(&refused);
        }
        if by.authorization.is_none() {
            for token in [&third, &refreshed] {
                assert_eq!(self.ask(by, REVOKE, &[("token", token)]).await.status, 200);
            }
        }
        for token in [&access, &refreshed] {
            self.me(token, 401).await;
        }
        let misplaced = Answer::of(client().get(format!("{}?{}", self.at(TOKEN), query(&exchange)))).await;
        self.refused(&misplaced);
    }

    /// Asks, signs in and says yes, with a mistake at each of the forms before.
    async fn code(&mut self, by: &Client) -> String {
        let mut browser = Browser::default();
        let asked = query(&request(&by.id, "read"));
        let page = self.open(&mut browser, &format!("{}?{asked}", self.at(AUTHORIZE))).await;
        let (before, first) = (browser.cookie.clone(), self.form(&page));
        let sign_in = |form: &PageForm, password: &'static str| {
            let fields = [("flow", &*form.flow), ("token", &form.token), ("email", "ada@example.org")];
            query(&[&fields[..], &[("password", password)]].concat())
        };
        let again = self.send(&mut browser, SIGN_IN, sign_in(&first, WRONG)).await;
        assert!(again.status.is_client_error(), "{again:?}");
        let retry = self.form(&again);
        // A page has the token of its own form, and nothing else that is secret.
        writeln!(self.errors, "{}", again.text.replace(&retry.token, "").replace("ada@example.org", ""))
            .unwrap();
        let signed_in = self.send(&mut browser, SIGN_IN, sign_in(&retry, PASSWORD)).await;
        assert_eq!(signed_in.status, 303, "{signed_in:?}");
        assert_ne!(browser.cookie, before, "a sign-in gives the browser another secret");
        let page = self.open(&mut browser, signed_in.header("location")).await;
        let last = self.form(&page);
        let decide = |token: &str| {
            query(&[("flow", &*last.flow), ("token", token), ("decision", "allow"), ("repositories", "all")])
        };
        let refused = self.send(&mut browser, AUTHORIZE, decide(&first.token)).await;
        self.refused(&refused);
        let decided = self.send(&mut browser, AUTHORIZE, decide(&last.token)).await;
        assert_eq!(decided.status, 303, "{decided:?}");
        let code = parameter(&decided.header("location").parse().unwrap(), "code").unwrap();
        self.issued.0.push(code.clone());
        code
    }

    async fn manage(&mut self, by: &Client) {
        let token = by.registration["registration_access_token"].as_str().unwrap();
        let at = by.registration["registration_client_uri"].as_str().unwrap();
        let read = Answer::of(client().get(at).bearer_auth(token)).await;
        assert_eq!((read.status.as_u16(), &read.json()["client_id"]), (200, &json!(by.id)));
        let next = self.issued.field(&read.json(), "registration_access_token");
        for request in [
            client().get(at).bearer_auth(token),
            client().get(format!("{at}?access_token={next}")),
            client().put(at).bearer_auth(&next).json(&json!({"client_secret": next})),
        ] {
            let refused = Answer::of(request).await;
            self.refused(&refused);
        }
    }

    /// The tokens that come of this form.
    async fn pair(&mut self, by: &Client, form: &Form<'_>) -> (String, String) {
        let answer = self.ask(by, TOKEN, form).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let body = answer.json();
        let (access, refresh) =
            (self.issued.field(&body, "access_token"), self.issued.field(&body, "refresh_token"));
        // The rest of a JWT can be guessed; with the signature it is one.
        self.issued.0.extend(access.rsplit('.').next().map(str::to_owned));
        assert!(refresh.starts_with("okto_") && access.split('.').count() == 3);
        (access, refresh)
    }

    /// Sends a form as a client.
    async fn ask(&self, by: &Client, path: &str, form: &Form<'_>) -> Answer {
        let (request, mut form) = (client().post(self.at(path)), form.to_vec());
        let request = if let Some(authorization) = &by.authorization {
            request.header("authorization", authorization)
        } else {
            form.push(("client_id", &by.id));
            request
        };
        let kind = "application/x-www-form-urlencoded";
        Answer::of(request.header("content-type", kind).body(query(&form))).await
    }

    async fn me(&mut self, token: &str, status: u16) {
        let answer = Answer::of(client().get(self.at("/api/v1/users/me")).bearer_auth(token)).await;
        assert_eq!(answer.status, status, "{answer:?}");
        if status != 200 {
            self.refused(&answer);
        }
    }

    async fn open(&mut self, browser: &mut Browser, address: &str) -> Answer {
        let page = Answer::of(browser.dressed(client().get(address))).await;
        assert_eq!(page.status, 200, "{page:?}");
        self.keep(browser, page)
    }

    async fn send(&mut self, browser: &mut Browser, path: &str, form: String) -> Answer {
        let request =
            client().post(self.at(path)).header("content-type", "application/x-www-form-urlencoded");
        let answer = Answer::of(browser.dressed(request.body(form))).await;
        self.keep(browser, answer)
    }

    /// Keeps the cookie, if there is another one.
    fn keep(&mut self, browser: &mut Browser, answer: Answer) -> Answer {
        if let Some((cookie, _)) = answer.header("set-cookie").split_once(';') {
            let (_, secret) = cookie.split_once('=').unwrap();
            self.issued.0.push(secret.to_owned());
            browser.cookie = Some(cookie.to_owned());
        }
        answer
    }

    fn form(&mut self, page: &Answer) -> PageForm {
        let form = PageForm::of(page);
        self.issued.0.push(form.token.clone());
        form
    }

    fn refused(&mut self, answer: &Answer) {
        assert!(answer.status.is_client_error(), "{answer:?}");
        writeln!(self.errors, "{answer:?}").unwrap();
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}
