//! What is left when a write fails: nothing issued, nothing used up, and the same try succeeds once things work again.

use std::collections::BTreeSet;

use okt_testkit::accounts::sql;
use okt_testkit::client::Answer;
use okt_testkit::oauth::{AUTHORIZE, Browser, PageForm, REVOKE, exchange, form_request, parameter, request};
use okt_testkit::served::TestService;

use crate::oauth_tokens::{Pair, Scene, ask, code_form, me, refresh_form, refused, state, unchanged};

/// A write that a request does.
type Write = (&'static str, &'static str);

/// What consent writes.
const CONSENT: [Write; 6] = [
    ("oauth_requests", "UPDATE"),
    ("sessions", "INSERT"),
    ("oauth_clients", "UPDATE"),
    ("oauth_grants", "INSERT"),
    ("oauth_codes", "INSERT"),
    ("audit", "INSERT"),
];
const EXCHANGE: [Write; 4] =
    [("oauth_codes", "UPDATE"), ("sessions", "UPDATE"), ("refresh_tokens", "INSERT"), ("audit", "INSERT")];
const REFRESH: [Write; 3] =
    [("refresh_tokens", "UPDATE"), ("sessions", "UPDATE"), ("refresh_tokens", "INSERT")];
/// What ending a grant writes, be it because a token came again or because the client asks for it.
const END: [Write; 2] = [("sessions", "UPDATE"), ("audit", "INSERT")];

/// Lets each write fail, at once and at the commit, and expects of the request that it says so and changes nothing.
/// Then it must succeed, and have written to these tables and no others.
async fn fails_whole<R: Future<Output = Answer>>(
    service: &TestService,
    writes: &[Write],
    request: impl Fn() -> R,
) -> Answer {
    let before = state(service).await;
    for (table, operation) in writes {
        for at_commit in [false, true] {
            break_write(service, table, operation, at_commit).await;
            let answer = request().await;
            let case = format!("{operation} {table}, at commit: {at_commit}: {answer:?}");
            assert_eq!(answer.status, 500, "{case}");
            for secret in ["oktc_", "okto_", "access_token", "deliberate"] {
                assert!(!answer.text.contains(secret), "{case}");
            }
            assert_eq!(answer.header("location"), "", "{case}");
            unchanged(service, &before, case).await;
            sql(service, &format!("DROP TRIGGER broken ON okt_system.{table}")).await;
        }
    }
    let answer = request().await;
    let after = state(service).await;
    let changed: BTreeSet<_> = after.keys().filter(|table| after[*table] != before[*table]).collect();
    let broken: BTreeSet<_> = writes.iter().map(|(table, _)| *table).collect();
    assert_eq!(
        changed.iter().map(|table| table.as_str()).collect::<Vec<_>>(),
        broken.into_iter().collect::<Vec<_>>(),
        "every write was tried"
    );
    answer
}

async fn break_write(service: &TestService, table: &str, operation: &str, at_commit: bool) {
    let raise = "CREATE OR REPLACE FUNCTION okt_system.broken() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'deliberate'; END $$";
    let (kind, when) = if at_commit {
        (format!("CONSTRAINT TRIGGER broken AFTER {operation}"), "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW")
    } else {
        (format!("TRIGGER broken BEFORE {operation}"), "FOR EACH ROW")
    };
    let trigger = format!("CREATE {kind} ON okt_system.{table} {when} EXECUTE FUNCTION okt_system.broken()");
    sql(service, &format!("{raise}; {trigger}")).await;
}

#[tokio::test]
async fn an_exchange_that_fails_at_any_write_or_at_the_commit_leaves_the_code_as_it_was() {
    let scene = Scene::new().await;
    let code = scene.code().await;
    let form = code_form(&scene.client, &code);
    let answer = fails_whole(&scene.service, &EXCHANGE, || ask(&scene.service, &form)).await;
    assert_eq!(me(&scene.service, &Pair::of(&answer).access).await, 200);
    assert_eq!(scene.refresh(&Pair::of(&answer).refresh).await.status, 200);
}

#[tokio::test]
async fn a_refresh_that_fails_at_any_write_or_at_the_commit_leaves_the_token_as_it_was() {
    let scene = Scene::new().await;
    let first = scene.pair().await;
    let form = refresh_form(&scene.client, &first.refresh);
    let answer = fails_whole(&scene.service, &REFRESH, || ask(&scene.service, &form)).await;
    let second = Pair::of(&answer);
    assert_eq!(
        [me(&scene.service, &first.access).await, me(&scene.service, &second.access).await],
        [200, 200]
    );
    assert_eq!(scene.refresh(&second.refresh).await.status, 200);
}

#[tokio::test]
async fn a_refresh_after_a_lost_reply_that_fails_leaves_the_lost_token_as_it_was() {
    let scene = Scene::new().await;
    let first = scene.pair().await;
    let lost = Pair::of(&scene.refresh(&first.refresh).await);
    let form = refresh_form(&scene.client, &first.refresh);
    let answer = fails_whole(&scene.service, &REFRESH, || ask(&scene.service, &form)).await;
    let second = Pair::of(&answer);
    assert_ne!(lost, second);
    assert_eq!(scene.refresh(&second.refresh).await.status, 200);
}

#[tokio::test]
async fn a_code_or_token_that_comes_again_is_noticed_next_time_if_ending_its_grant_fails() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let code = scene.code().await;
    let pair = Pair::of(&scene.exchange(&code).await);
    let form = code_form(&scene.client, &code);
    refused(&fails_whole(service, &END, || ask(service, &form)).await, "invalid_grant");
    assert_eq!(me(service, &pair.access).await, 401);

    let first = scene.pair().await;
    let second = Pair::of(&scene.refresh(&first.refresh).await);
    let third = Pair::of(&scene.refresh(&second.refresh).await);
    let form = refresh_form(&scene.client, &first.refresh);
    refused(&fails_whole(service, &END, || ask(service, &form)).await, "invalid_grant");
    assert_eq!(me(service, &third.access).await, 401);
}

#[tokio::test]
async fn a_revocation_that_fails_says_so_and_succeeds_next_time() {
    let scene = Scene::new().await;
    let pair = scene.pair().await;
    let form = [("client_id", scene.client.as_str()), ("token", &pair.refresh)];
    let answer =
        fails_whole(&scene.service, &END, || Answer::of(form_request(&scene.service, REVOKE, &form))).await;
    assert_eq!(answer.status, 200);
    assert_eq!(me(&scene.service, &pair.access).await, 401);
}

#[tokio::test]
async fn consent_that_fails_at_any_write_or_at_the_commit_leaves_the_question_open() {
    let scene = Scene::new().await;
    let service = &scene.service;
    let mut browser = Browser::default();
    let page = browser.ask(service, &request(&scene.client, "read")).await;
    let page = browser.sign_in(service, &page, &scene.ada.email).await;
    let form = PageForm::of(&page);
    let fields =
        [("flow", &*form.flow), ("token", &form.token), ("decision", "allow"), ("repositories", "all")];
    let decide = || Answer::of(browser.dressed(form_request(service, AUTHORIZE, &fields)));
    let answer = fails_whole(service, &CONSENT, decide).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    let code = parameter(&answer.header("location").parse().unwrap(), "code").unwrap();
    assert_eq!(exchange(service, &scene.client, &code).await.status, 200);
}
