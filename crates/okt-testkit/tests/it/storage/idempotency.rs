use std::time::Duration;

use okt_store::idempotency::{Answer, Claim, claim, delete_expired, finish, release};
use okt_testkit::db::{TestDatabase, run};

const LEASE: Duration = Duration::from_secs(20);
const ASKED: &[u8; 32] = &[1; 32];
const OTHER: &[u8; 32] = &[2; 32];

fn answer(claim: uuid::Uuid) -> Answer {
    Answer {
        claim,
        status: 201,
        content_type: Some("application/json".into()),
        location: Some("/a/1".into()),
        sealed_body: b"sealed".to_vec(),
    }
}

async fn ours(conn: &mut sqlx::PgConnection, principal: &str) -> uuid::Uuid {
    match claim(conn, principal, "key", ASKED, LEASE).await.unwrap() {
        Claim::Ours(id) => id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_key_is_claimed_once_answered_again_and_bound_to_its_request_and_caller() {
    let database = TestDatabase::migrated().await;
    let conn = &mut database.connect().await;
    let id = ours(conn, "ada").await;
    assert_eq!(claim(conn, "ada", "key", ASKED, LEASE).await.unwrap(), Claim::InFlight);
    assert_eq!(claim(conn, "ada", "key", OTHER, LEASE).await.unwrap(), Claim::Mismatch);
    finish(conn, "ada", "key", &answer(id)).await.unwrap();
    assert_eq!(claim(conn, "ada", "key", ASKED, LEASE).await.unwrap(), Claim::Answered(answer(id)));
    assert_eq!(claim(conn, "ada", "key", OTHER, LEASE).await.unwrap(), Claim::Mismatch);
    ours(conn, "bob").await;
}

#[tokio::test]
async fn fifty_claims_at_once_have_one_winner() {
    let database = TestDatabase::migrated().await;
    let mut claims = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let mut conn = database.connect().await;
        claims.spawn(async move { claim(&mut conn, "ada", "key", ASKED, LEASE).await.unwrap() });
    }
    let won = claims.join_all().await.into_iter().filter(|claim| matches!(claim, Claim::Ours(_))).count();
    assert_eq!(won, 1);
}

#[tokio::test]
async fn a_claim_whose_process_died_is_lost_and_never_run_again() {
    let database = TestDatabase::migrated().await;
    let conn = &mut database.connect().await;
    let dead = ours(conn, "ada").await;
    run(conn, "UPDATE okt_system.idempotency_keys SET claimed_at = claimed_at - interval '1 minute'").await;
    assert_eq!(claim(conn, "ada", "key", ASKED, LEASE).await.unwrap(), Claim::Lost);
    assert_eq!(claim(conn, "ada", "key", OTHER, LEASE).await.unwrap(), Claim::Mismatch);
    // It was only slow.
    finish(conn, "ada", "key", &answer(dead)).await.unwrap();
    assert_eq!(claim(conn, "ada", "key", ASKED, LEASE).await.unwrap(), Claim::Answered(answer(dead)));
}

#[tokio::test]
async fn released_and_expired_keys_are_free_again() {
    let database = TestDatabase::migrated().await;
    let conn = &mut database.connect().await;
    let id = ours(conn, "ada").await;
    release(conn, id, "ada", "key").await.unwrap();

    let id = ours(conn, "ada").await;
    finish(conn, "ada", "key", &answer(id)).await.unwrap();
    release(conn, id, "ada", "key").await.unwrap();
    let kept = claim(conn, "ada", "key", ASKED, LEASE).await.unwrap();
    assert_eq!(kept, Claim::Answered(answer(id)), "an answer stays");

    run(conn, "UPDATE okt_system.idempotency_keys SET claimed_at = claimed_at - interval '25 hours'").await;
    assert!(matches!(claim(conn, "ada", "key", OTHER, LEASE).await.unwrap(), Claim::Ours(_)));
    finish(conn, "ada", "key", &answer(id)).await.unwrap();
    let stale = claim(conn, "ada", "key", OTHER, LEASE).await.unwrap();
    assert_eq!(stale, Claim::InFlight, "an old claim can't answer for a new one");

    run(conn, "UPDATE okt_system.idempotency_keys SET claimed_at = claimed_at - interval '25 hours'").await;
    ours(conn, "bob").await;
    assert_eq!(delete_expired(conn, 10).await.unwrap(), 1);
    assert_eq!(delete_expired(conn, 10).await.unwrap(), 0);
}
