//! Many at once, over two services on one database, as a balancer would spread them.

use std::time::Instant;

use http::Method;
use okt_auth::opaque::{self, Prefix};
use okt_testkit::accounts::{count, session};
use okt_testkit::client::Answer;
use okt_testkit::oauth::{REVOKE, TOKEN, error, form_request};
use okt_testkit::served::TestService;
use tokio::task::JoinSet;

use crate::oauth_tokens::{
    BALANCED, Given, Pair, Scene, audited, code, code_form, me, refresh_form, refused,
};

const REDEEMERS: usize = 20;

/// As many as are named by `OKT_OAUTH_CODES`, such as 1000; by default what is soon done.
fn how_many_codes() -> usize {
    std::env::var("OKT_OAUTH_CODES").map_or(100, |number| number.parse().expect("a number of codes"))
}

/// How many codes are raced for at the same time.
const ABREAST: usize = 2;

/// Lets everybody redeem each of the codes at once; returns how many succeeded with each.
async fn race<F, R>(codes: &[String], redeem: F) -> Vec<usize>
where
    F: Fn(&str, usize) -> R,
    R: Future<Output = bool> + Send + 'static,
{
    let mut issued = vec![0; codes.len()];
    let numbered: Vec<_> = codes.iter().enumerate().collect();
    for some in numbered.chunks(ABREAST) {
        let mut racers = JoinSet::new();
        for redeemer in 0..REDEEMERS {
            for (number, code) in some {
                let (number, done) = (*number, redeem(code, redeemer));
                racers.spawn(async move { (number, done.await) });
            }
        }
        for (number, success) in racers.join_all().await {
            issued[number] += usize::from(success);
        }
    }
    issued
}

async fn codes(scene: &Scene, many: usize) -> Vec<String> {
    let mut codes = Vec::with_capacity(many);
    for _ in 0..many {
        codes.push(code(&scene.service, &scene.client, scene.ada.id, &Given::default()).await);
    }
    codes
}

/// A request for tokens on its way, to one service or the other.
fn asking(services: [&TestService; 2], number: usize, form: &[(&str, &str)]) -> reqwest::RequestBuilder {
    form_request(services[number % 2], TOKEN, form)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_who_redeem_a_code_at_once_one_gets_a_pair() {
    let scene = Scene::with(&BALANCED).await;
    let (service, beside) = (&scene.service, scene.service.beside().await);
    let codes = codes(&scene, how_many_codes()).await;
    let began = Instant::now();
    let issued = race(&codes, |code, redeemer| {
        let request = asking([service, &beside], redeemer, &code_form(&scene.client, code));
        async move {
            let answer = Answer::of(request).await;
            if answer.status == 200 {
                return true;
            }
            assert_eq!(
                (answer.status.as_u16(), error(&answer).as_str()),
                (400, "invalid_grant"),
                "{answer:?}"
            );
            false
        }
    })
    .await;
    let pairs: usize = issued.iter().sum();
    let many = codes.len();
    println!("{many} codes, {REDEEMERS} redeemers each: {pairs} pairs in {:.1?}", began.elapsed());
    assert!(issued.iter().all(|pairs| *pairs == 1), "{issued:?}");
    for (what, rows) in [
        (
            "tokens",
            "SELECT count(*) FROM okt_system.refresh_tokens t JOIN okt_system.oauth_grants g ON g.id = t.session_id",
        ),
        ("used codes", "SELECT count(*) FROM okt_system.oauth_codes WHERE used_at IS NOT NULL"),
        ("records of it", "SELECT count(*) FROM okt_system.audit WHERE action = 'grant.token_issued'"),
        (
            "grants that the other nineteen ended",
            "SELECT count(*) FROM okt_system.sessions WHERE revoked_at IS NOT NULL",
        ),
    ] {
        assert_eq!(count(service, rows).await, i64::try_from(many).unwrap(), "{what}");
    }
}

/// What the race above would find in a service that looks first and writes then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_race_against_look_first_then_delete_gives_more_pairs_than_codes() {
    let scene = Scene::with(&BALANCED).await;
    let codes = codes(&scene, 50).await;
    let issued = race(&codes, |code, _| {
        let (databases, code) = (scene.service.api.app.databases().clone(), code.to_owned());
        async move {
            let hash = opaque::parse(Prefix::Code, &code).unwrap();
            let mut tx = databases.begin_system().await.unwrap();
            let there: bool =
                sqlx::query_scalar("SELECT EXISTS (SELECT FROM okt_system.oauth_codes WHERE hash = $1)")
                    .bind(hash.as_bytes().as_slice())
                    .fetch_one(&mut *tx)
                    .await
                    .unwrap();
            if there {
                let gone = "DELETE FROM okt_system.oauth_codes WHERE hash = $1";
                sqlx::query(gone).bind(hash.as_bytes().as_slice()).execute(&mut *tx).await.unwrap();
            }
            tx.commit().await.unwrap();
            there
        }
    })
    .await;
    let (pairs, doubled) = (issued.iter().sum::<usize>(), issued.iter().filter(|pairs| **pairs > 1).count());
    println!(
        "look first, then delete: {pairs} pairs for 50 codes, {doubled} of them redeemed more than once"
    );
    assert!(pairs > 50 && doubled > 0, "{issued:?}");
}

#[tokio::test]
async fn fifty_refreshes_of_one_token_at_once_leave_one_live_chain() {
    let scene = Scene::with(&BALANCED).await;
    let (service, beside) = (&scene.service, scene.service.beside().await);
    let first = scene.pair().await;
    let mut racers = JoinSet::new();
    for number in 0..50 {
        let form = refresh_form(&scene.client, &first.refresh);
        racers.spawn(Answer::of(asking([service, &beside], number, &form)));
    }
    let pairs: Vec<_> = racers.join_all().await.iter().map(Pair::of).collect();
    let unused = "SELECT count(*) FROM okt_system.refresh_tokens t JOIN okt_system.oauth_grants g ON g.id = t.session_id
                   WHERE used_at IS NULL AND superseded_at IS NULL";
    assert_eq!(count(service, unused).await, 1);

    let (mut alive, mut dead) = (Vec::new(), Vec::new());
    for pair in &pairs {
        assert_eq!(me(service, &pair.access).await, 200, "they are all of the same grant");
        let is_live = format!("{unused} AND hash = sha256('{}'::bytea)", pair.refresh);
        if count(service, &is_live).await == 1 { &mut alive } else { &mut dead }.push(pair);
    }
    println!("50 refreshes at once: {} live, {} dead", alive.len(), dead.len());
    assert_eq!((alive.len(), dead.len()), (1, 49));
    let next = Pair::of(
        &Answer::of(asking([service, &beside], 1, &refresh_form(&scene.client, &alive[0].refresh))).await,
    );
    let last = Pair::of(&scene.refresh(&next.refresh).await);
    assert_eq!((count(service, unused).await, me(&beside, &last.access).await), (1, 200));

    refused(&scene.refresh(&dead[0].refresh).await, "invalid_grant");
    assert_eq!([me(service, &last.access).await, me(&beside, &last.access).await], [401, 401]);
    refused(&scene.refresh(&last.refresh).await, "invalid_grant");
    assert_eq!(audited(service, "grant.token_reused").await, 1);
}

#[tokio::test]
async fn revoking_wins_over_a_refresh_at_the_same_time() {
    let scene = Scene::with(&BALANCED).await;
    let (service, beside) = (&scene.service, scene.service.beside().await);
    for round in 0..10 {
        let pair = scene.pair().await;
        let revoke = [("client_id", scene.client.as_str()), ("token", &pair.refresh)];
        let revoke = Answer::of(form_request(service, REVOKE, &revoke));
        let form = refresh_form(&scene.client, &pair.refresh);
        let (revoked, next) = tokio::join!(revoke, Answer::of(asking([service, &beside], 1, &form)));
        assert_eq!(revoked.status, 200, "round {round}");
        assert_eq!(me(&beside, &pair.access).await, 401, "round {round}");
        if next.status == 200 {
            let next = Pair::of(&next);
            assert_eq!(me(&beside, &next.access).await, 401, "round {round}");
            refused(&scene.refresh(&next.refresh).await, "invalid_grant");
        } else {
            refused(&next, "invalid_grant");
        }
    }
}

#[tokio::test]
async fn taking_back_a_grant_wins_over_the_exchange_of_its_code_at_the_same_time() {
    let scene = Scene::with(&BALANCED).await;
    let (service, beside) = (&scene.service, scene.service.beside().await);
    let person = session(service, scene.ada.id).await;
    for round in 0..10 {
        let code = scene.code().await;
        let grants = service.get_as(&person, "/api/v1/users/me/grants").await.json();
        assert_eq!(grants["data"].as_array().unwrap().len(), 1, "{grants}");
        let path = format!("/api/v1/users/me/grants/{}", grants["data"][0]["id"].as_str().unwrap());
        let taken = Answer::of(service.request(Method::DELETE, &path).bearer_auth(&person));
        let exchange = Answer::of(asking([service, &beside], 1, &code_form(&scene.client, &code)));
        let (taken, pair) = tokio::join!(taken, exchange);
        assert_eq!(taken.status, 204, "round {round}");
        if pair.status == 200 {
            let pair = Pair::of(&pair);
            assert_eq!(me(&beside, &pair.access).await, 401, "round {round}");
            refused(&scene.refresh(&pair.refresh).await, "invalid_grant");
        } else {
            refused(&pair, "invalid_grant");
        }
    }
    assert_eq!(audited(service, "grant.code_reused").await, 0, "nobody used a code twice");
}
