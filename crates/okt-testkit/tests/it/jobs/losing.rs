//! Streams of those who lose the right to read, by the rules as they are.

use std::time::{Duration, Instant};

use http::Method;
use okt_testkit::accounts::{api_key, send, session};
use serde_json::json;

use crate::jobs::listener::Listener;
use crate::jobs::tenants::Tenants;

/// How long something may still be told after the loss: a look at the rights counts for a second, and somebody has to send
/// and to hear it.
const TOLD: Duration = Duration::from_secs(2);
/// How long the connection may stay.
const OPEN: Duration = Duration::from_secs(6);

/// While jobs come by the dozen, counts what a stream tells after its reader lost the right.
#[tokio::test]
async fn nothing_is_told_to_who_may_not_hear_it_any_more() {
    let tenants = Tenants::new(&[("SVC__RATE_LIMITS__API_PER_MINUTE", "0")]).await;
    let (service, ours) = (&tenants.service, &tenants.ours);
    let member = format!("/api/v1/repositories/{}/members", ours.id);
    let (key_id, key) = api_key(service, &ours.person, &["job:read"]).await;
    let leaves = session(service, ours.person.id).await;
    for (case, token, by, method, path, body) in [
        ("signed out", &leaves, &leaves, Method::POST, "/api/v1/auth/logout".to_owned(), json!({})),
        (
            "key",
            &key,
            &ours.person.token,
            Method::DELETE,
            format!("/api/v1/users/me/api-keys/{key_id}"),
            json!({}),
        ),
        ("member", &ours.token, &tenants.admin, Method::DELETE, member, json!({"user_id": ours.person.id})),
    ] {
        let mut stream = Listener::open(service, token, &ours.path("events"), None).await;
        let listening = async {
            let (mut before, mut late, mut lost_at) = (0, Vec::new(), None);
            let started = Instant::now();
            loop {
                if lost_at.is_none() && started.elapsed() > Duration::from_secs(4) {
                    let lost = send(service, by, method.clone(), &path, &body).await;
                    assert_eq!(lost.status, 204, "{case}: {lost:?}");
                    lost_at = Some(Instant::now());
                }
                match tokio::time::timeout(Duration::from_millis(500), stream.job()).await {
                    Ok(Some(_)) => match lost_at {
                        None => before += 1,
                        Some(lost_at) => late.push(lost_at.elapsed()),
                    },
                    Ok(None) => return (before, late, lost_at.expect("not before the loss").elapsed()),
                    Err(_) => assert!(lost_at.is_none_or(|at| at.elapsed() < OPEN), "{case}: it stays open"),
                }
            }
        };
        let happening = async {
            loop {
                tenants.waiting(ours, 3).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let (before, late, ended) = tokio::select! {
            told = listening => told,
            () = happening => unreachable!("it goes on"),
        };
        println!(
            "{case}: {before} before, {} after, the last {:?}, ended after {ended:?}",
            late.len(),
            late.last()
        );
        assert!(before > 10, "{case}: there was something to hear: {before}");
        assert!(late.iter().all(|after| *after < TOLD), "{case}: {late:?}");
        assert!(ended < OPEN, "{case}: {ended:?}");
    }
}

/// Also when there is nothing to tell.
#[tokio::test]
async fn a_silent_stream_ends_within_seconds_of_the_loss() {
    let tenants = Tenants::new(&[]).await;
    let (service, ours) = (&tenants.service, &tenants.ours);
    let mut stream = Listener::open(service, &ours.token, &ours.path("events"), None).await;
    let out = send(service, &ours.token, Method::POST, "/api/v1/auth/logout", &json!({})).await;
    assert_eq!(out.status, 204);
    let ended = tokio::time::timeout(OPEN, stream.job()).await;
    assert_eq!(ended.expect("it ends"), None);
}

/// However many credentials they have.
#[tokio::test]
async fn one_person_has_fifty_streams() {
    let tenants = Tenants::new(&[]).await;
    let (service, ours) = (&tenants.service, &tenants.ours);
    let mut tokens = vec![ours.token.clone(), session(service, ours.person.id).await];
    for _ in 0..4 {
        tokens.push(api_key(service, &ours.person, &["job:read"]).await.1);
    }
    let (mut open, mut refused) = (Vec::new(), 0);
    for token in tokens.iter().cycle().take(60) {
        let answer = crate::jobs::listener::ask(service, token, &ours.path("events"), None).await;
        match answer.status().as_u16() {
            200 => open.push(answer),
            429 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((open.len(), refused), (50, 10));
    let theirs = &tenants.theirs;
    Listener::open(service, &theirs.token, &theirs.path("events"), None).await;
}
