use std::time::Duration;

use okt_store::idempotency::{Answer, Claim, claim, delete_expired, finish, release};
use okt_testkit::db::{TestDatabase, run};

const LEASE: Duration = Duration::from_secs(20);
const ASKED: &[u8; 32] = &[1; 32];
const OTHER: &[u8; 32] = &[2; 32];

fn answer() -> Answer {
    Answer {
        status: 201,
        content_type: Some("application/json".into()),
        location: Some("/a/1".into()),
        body: b"{}".to_vec(),
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
    assert!(finish(conn, id, "ada", "key", &answer()).await.unwrap());
    assert_eq!(claim(conn, "ada", "key", ASKED, LEASE).await.unwrap(), Claim::Answered(answer()));
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
async fn a_dead_claim_is_taken_over_by_the_same_request_and_can_then_not_be_finished() {
    let database = TestDatabase::migrated().await;
    let conn = &mut database.connect().await;
    let dead = ours(conn, "ada").await;
    run(conn, "UPDATE okt_system.idempotency_keys SET claimed_at = claimed_at - interval '1 minute'").await;
    assert_eq!(claim(conn, "ada", "key", OTHER, LEASE).await.unwrap(), Claim::Mismatch);
    let live = ours(conn, "ada").await;
    assert!(!finish(conn, dead, "ada", "key", &answer()).await.unwrap());
    release(conn, dead, "ada", "key").await.unwrap();
    assert!(finish(conn, live, "ada", "key", &answer()).await.unwrap());
}

#[tokio::test]
async fn released_and_expired_keys_are_free_again() {
    let database = TestDatabase::migrated().await;
    let conn = &mut database.connect().await;
    let id = ours(conn, "ada").await;
    release(conn, id, "ada", "key").await.unwrap();

    let id = ours(conn, "ada").await;
    assert!(finish(conn, id, "ada", "key", &answer()).await.unwrap());
    release(conn, id, "ada", "key").await.unwrap();
    assert_eq!(
        claim(conn, "ada", "key", ASKED, LEASE).await.unwrap(),
        Claim::Answered(answer()),
        "an answer stays"
    );

    run(conn, "UPDATE okt_system.idempotency_keys SET claimed_at = claimed_at - interval '25 hours'").await;
    assert!(matches!(claim(conn, "ada", "key", OTHER, LEASE).await.unwrap(), Claim::Ours(_)));

    run(conn, "UPDATE okt_system.idempotency_keys SET claimed_at = claimed_at - interval '25 hours'").await;
    ours(conn, "bob").await;
    assert_eq!(delete_expired(conn, 10).await.unwrap(), 1);
    assert_eq!(delete_expired(conn, 10).await.unwrap(), 0);
}
