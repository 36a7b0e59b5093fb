//! Comparing takes its time, and nobody waits for it.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use http::Method;
use okt_model::{DeduplicateFacts, EMBEDDING_MODEL, JobId, SpaceKind};
use okt_store::outbox::{self, When};
use okt_store::{embedding_spaces, fact_vectors};
use okt_testkit::jobs::TestWorker;
use okt_vectors::{Point, Tenant, Vectors};
use serde_json::json;

use crate::dedup::planted_facts::Dice;
use crate::dedup::stored_facts::StoredFacts;

/// As many facts near each other, each as long as a fact may be. One batch has room for all of them.
const FACTS: usize = 128;
const WORDS: usize = 280;

#[tokio::test]
async fn a_person_who_rejects_a_fact_does_not_wait_until_others_are_compared() {
    let fixture = StoredFacts::open(&[("SVC__PROVIDERS__EMBEDDING__MODEL", EMBEDDING_MODEL)]).await;
    let config = fixture.service.api.app.config().clone();
    let tools = okt_testkit::jobs::tools(&config, &fixture.databases).await;
    okt_jobs::spaces::start(&fixture.databases, &tools).await.unwrap();
    let mut dice = Dice(12);
    let texts: Vec<String> = (0..FACTS).map(|_| long_text(&mut dice)).collect();
    fixture.say(&texts).await;
    place(&fixture, &mut dice).await;

    let job = JobId::mint();
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    let payload = DeduplicateFacts { source: None };
    outbox::push(&mut tx, fixture.repository, job, &payload, When::default()).await.unwrap();
    tx.commit().await.unwrap();
    let _worker = TestWorker::start(&config, Vec::new()).await;
    let state = async || fixture.get(&format!("/jobs/{job}")).await.json();
    while state().await["state"] != "running" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let begun = Instant::now();
    let ids: Vec<uuid::Uuid> =
        sqlx::query_scalar("SELECT id FROM okt_repository.facts ORDER BY no DESC LIMIT 4")
            .fetch_all(&mut fixture.service.database.connect().await)
            .await
            .unwrap();
    let mut slowest = Duration::ZERO;
    for id in ids {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let asked = Instant::now();
        let changed = fixture.ask(Method::PUT, &format!("/facts/{id}"), &json!({"status": "rejected"})).await;
        assert_eq!(changed.status, 200, "{changed:?}");
        slowest = slowest.max(asked.elapsed());
    }
    let still = state().await["state"] == "running";
    assert!(slowest < Duration::from_millis(2_500), "{slowest:?}");
    while state().await["finished_at"].is_null() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("the slowest change of a status took {slowest:?}, comparing {:?}", begun.elapsed());
    assert!(still, "it was compared too quickly to say anything");
    let ended = state().await;
    assert_eq!(ended["state"], "completed", "{ended:#}");
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT status, count(*) FROM okt_repository.facts GROUP BY status ORDER BY status")
            .fetch_all(&mut fixture.service.database.connect().await)
            .await
            .unwrap();
    assert_eq!(rows, [("rejected".to_owned(), 4), ("stable".to_owned(), 124)]);
}

fn long_text(dice: &mut Dice) -> String {
    let mut text = String::from("The keepers");
    for _ in 0..WORDS {
        let number = dice.number().abs() * 400.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 400")]
        let number = number as usize;
        let letter = |at: usize| char::from(b'a' + u8::try_from(at % 26).unwrap());
        let _ = write!(text, " {}{}o{}en", letter(number), letter(number / 7), letter(number / 26));
    }
    text.push('.');
    text
}

/// Vectors beside one another.
async fn place(fixture: &StoredFacts, dice: &mut Dice) {
    let vectors =
        Vectors::open(fixture.service.api.app.config(), &fixture.databases).await.unwrap().expect("a store");
    let mut conn = fixture.databases.acquire_system().await.unwrap();
    let space = embedding_spaces::find_current(&mut conn, SpaceKind::Facts).await.unwrap().unwrap();
    drop(conn);
    let rows: Vec<(uuid::Uuid, i64)> = sqlx::query_as("SELECT id, no FROM okt_repository.facts")
        .fetch_all(&mut fixture.service.database.connect().await)
        .await
        .unwrap();
    let centre = dice.vector();
    let points: Vec<Point> =
        rows.iter().map(|(id, _)| Point { id: *id, vector: dice.beside(&centre, 0.99) }).collect();
    let tenant = Tenant::new(fixture.repository, "default");
    vectors.store().upsert(&tenant, &vectors.space(&space), &points).await.unwrap();
    let numbers: Vec<i64> = rows.iter().map(|(_, no)| *no).collect();
    let mut tx = fixture.databases.begin("default", fixture.repository).await.unwrap();
    fact_vectors::mark(&mut tx, fixture.repository, &numbers, Some(space.no)).await.unwrap();
    tx.commit().await.unwrap();
}
