//! The store of vectors dies while people search, and comes back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use okt_testkit::app::TestApp;
use okt_testkit::qdrant::QdrantServer;
use okt_testkit::wait::eventually;
use serde_json::json;

use super::{add, rows, search, settled};

const CLIENTS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_store_of_vectors_is_killed_every_answer_is_given_and_says_why_it_is_lexical() {
    let mut qdrant = QdrantServer::start();
    let port = qdrant.config().port.to_string();
    let store = [("VECTOR_STORE_HOST", "127.0.0.1"), ("VECTOR_STORE_PORT", port.as_str())];
    let free = [("SVC__RATE_LIMITS__API_PER_MINUTE", "0")];
    let mut app = TestApp::builder().vectors().settings(&store).settings(&free).start().await;
    app.work().await;
    let id = add(&app, "one", "Tides", "The Moon causes the tides of the oceans on Earth.").await;
    settled(&app, std::slice::from_ref(&id)).await;
    eventually(Duration::from_secs(30), "hybrid search", async || {
        let found = search(&app, "tides", "&types=facts").await;
        if found["search_mode"] == "hybrid" { Ok(()) } else { Err(found) }
    })
    .await;

    let app = Arc::new(app);
    let began = Instant::now();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let (app, stopped) = (Arc::clone(&app), stopped.clone());
        clients.spawn(async move {
            let mut seen = Vec::new();
            let mut number = 0;
            while !*stopped.borrow() {
                number += 1;
                // Another question each time: what was embedded and found before is not asked for again.
                let at = began.elapsed();
                let answer = app.get(&format!("/search?q=tides+{client}x{number}&types=facts")).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                let found = answer.json();
                assert_eq!(rows(&found).len(), 1, "{found:#}");
                seen.push((at, found["search_mode"].clone(), found["degraded_reason"].clone()));
            }
            seen
        });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let killed = began.elapsed();
    qdrant.kill();
    tokio::time::sleep(Duration::from_secs(4)).await;
    qdrant.restart();
    let back = began.elapsed();
    tokio::time::sleep(Duration::from_secs(11)).await;
    stop.send(true).unwrap();
    let mut seen: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    seen.sort_by_key(|(at, _, _)| *at);

    for (at, mode, reason) in &seen {
        if *mode == "hybrid" {
            assert_eq!(*reason, json!(null), "{at:?}");
        } else {
            assert_eq!((mode, reason), (&json!("lexical"), &json!("vectors_away")), "{at:?}");
        }
    }
    let is_hybrid = |seen: &&(Duration, serde_json::Value, serde_json::Value)| seen.1 == "hybrid";
    assert!(seen.iter().filter(is_hybrid).any(|(at, _, _)| *at < killed), "hybrid before");
    let away = seen.iter().filter(|(at, _, _)| *at > killed + Duration::from_secs(2) && *at < back);
    assert!(away.clone().count() > 10 && away.clone().all(|seen| !is_hybrid(&seen)), "lexical meanwhile");
    let late = seen.iter().filter(|(at, _, _)| *at > back + Duration::from_secs(10));
    assert!(late.clone().count() > 10 && late.clone().all(|seen| is_hybrid(&seen)), "hybrid again in time");
}
