//! The routes of facts and of what models cost.

use http::Method;
use okt_testkit::accounts::{give, register, send};
use serde_json::{Value, json};

use crate::desk::{Desk, essay};

#[tokio::test]
async fn facts_are_found_by_what_they_say_and_where_they_come_from() {
    let mut desk = Desk::open(&[]).await;
    desk.work().await;
    let (one, two) = (desk.add("1.txt", &essay(1, 30)).await, desk.add("2.txt", &essay(2, 25)).await);
    desk.settled(&one).await;
    desk.settled(&two).await;
    let count = async |rest: &str| {
        desk.get(&format!("/facts?limit=200{rest}")).await["data"].as_array().unwrap().len()
    };
    assert_eq!(count("").await, 55);
    assert_eq!(count("&q=APIARY%202").await, 25);
    assert_eq!(count(&format!("&source_id={one}")).await, 30);
    assert_eq!(count(&format!("&source_id={one}&q=hive%2011.")).await, 1);
    assert_eq!(count("&kind=image").await, 0);
    assert_eq!(count("&status=rejected").await, 0);
    assert_eq!(count(&format!("&concept_id={one}")).await, 0, "no such concept");

    for order in ["newest", "source_count"] {
        let (mut seen, mut next) = (Vec::new(), format!("/facts?limit=20&sort={order}"));
        loop {
            let page = desk.get(&next).await;
            let rows = page["data"].as_array().unwrap();
            seen.extend(rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            next = format!("/facts?limit=20&sort={order}&cursor={cursor}");
        }
        let distinct: std::collections::BTreeSet<_> = seen.iter().collect();
        assert_eq!((seen.len(), distinct.len()), (55, 55), "{order}");
    }
    for (query, field) in
        [("status=odd", "status"), ("kind=odd", "kind"), ("sort=odd", "sort"), ("concepts=x", "concepts")]
    {
        let refused = desk.service.get_as(&desk.owner.token, &desk.path(&format!("/facts?{query}"))).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["errors"][0]["field"]),
            (422, &json!(field)),
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_curator_rejects_a_fact_and_takes_it_back() {
    let mut desk = Desk::open(&[]).await;
    desk.work().await;
    let id = desk.add("1.txt", &essay(1, 5)).await;
    desk.settled(&id).await;
    let fact = desk.facts(&id).await[0]["id"].as_str().unwrap().to_owned();
    let (curator, viewer) =
        (register(&desk.service, "curator").await, register(&desk.service, "viewer").await);
    give(&desk.service, curator.id, &desk.repository, "curator").await;
    give(&desk.service, viewer.id, &desk.repository, "viewer").await;
    let path = desk.path(&format!("/facts/{fact}"));
    let judge = async |token: &str, status: &str| {
        send(&desk.service, token, Method::PUT, &path, &json!({"status": status})).await
    };
    assert_eq!(judge(&viewer.token, "rejected").await.status, 403);
    assert_eq!(judge(&curator.token, "wrong").await.status, 422);
    let rejected = judge(&curator.token, "rejected").await;
    assert_eq!(rejected.json()["status"], "rejected", "{rejected:?}");
    assert_eq!(judge(&curator.token, "rejected").await.status, 200, "it is so already");
    assert_eq!(desk.get("/facts?status=rejected").await["data"].as_array().unwrap().len(), 1);
    // The same source, taken apart again, does not bring it back.
    desk.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
    desk.until(&id, |seen| seen["status"] == "processed").await;
    assert_eq!(desk.get(&format!("/facts/{fact}")).await["status"], "rejected");
    assert_eq!(judge(&curator.token, "stable").await.json()["status"], "stable");
    let audit = desk.get("/audit?action=fact.rejected").await;
    assert_eq!(audit["data"][0]["object"], json!(fact));
}

#[tokio::test]
async fn what_models_cost_is_for_those_who_run_the_repository_or_the_installation() {
    let mut desk = Desk::open(&[]).await;
    desk.work().await;
    let id = desk.add("1.txt", &essay(1, 5)).await;
    desk.settled(&id).await;
    let editor = register(&desk.service, "editor").await;
    give(&desk.service, editor.id, &desk.repository, "editor").await;
    assert_eq!(desk.service.get_as(&editor.token, &desk.path("/ai/usage")).await.status, 403);
    assert_eq!(desk.service.get_as(&editor.token, "/api/v1/ai/usage").await.status, 403);
    let all = desk.service.get_as(&desk.owner.token, "/api/v1/ai/usage?group_by=model").await.json();
    assert_eq!(all["data"][0]["calls"], 1, "{all:#}");
    let before = desk.get("/ai/usage?from=2020-01-01&to=2020-02-01").await;
    assert_eq!((&before["data"], &before["total"]["calls"]), (&json!([]), &json!(0)));
    for query in ["group_by=odd", "from=2020-01-01", "from=2026-02-01&to=2026-01-01"] {
        let refused = desk.service.get_as(&desk.owner.token, &desk.path(&format!("/ai/usage?{query}"))).await;
        assert_eq!(refused.status, 422, "{query}: {refused:?}");
    }
}
