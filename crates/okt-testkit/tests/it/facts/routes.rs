//! The routes of facts and of what models cost.

use std::time::Duration;

use http::Method;
use okt_testkit::accounts::{give, register, send};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};

use crate::facts::{essay, test_app};

#[tokio::test]
async fn facts_are_found_by_what_they_say_and_where_they_come_from() {
    let mut app = test_app(&[]).await;
    app.work().await;
    let (one, two) = (app.add_text("1.txt", &essay(1, 30)).await, app.add_text("2.txt", &essay(2, 25)).await);
    app.settled(&one).await;
    app.settled(&two).await;
    let count = async |rest: &str| {
        app.read(&format!("/facts?limit=200{rest}")).await["data"].as_array().unwrap().len()
    };
    assert_eq!(count("").await, 55);
    // Words are looked up in their lists, which are written a moment later.
    eventually(Duration::from_mins(1), "the words of all facts are listed", async || {
        let found = count("&q=KEEPER%20bee").await;
        if found == 55 { Ok(()) } else { Err(found) }
    })
    .await;
    assert_eq!(count("&q=apiary%20200").await, 10, "the last word may be a beginning");
    assert_eq!(count("&q=apiary%20200%20").await, 0, "unless it has ended");
    assert_eq!(count("&q=apiary%20submarine").await, 0, "all words are asked for");
    assert_eq!(count("&q=%25%20-%20%22").await, 0, "there is no word");
    assert_eq!(count(&format!("&source_id={one}")).await, 30);
    assert_eq!(count(&format!("&source_id={one}&q=hives%201011.")).await, 1);
    assert_eq!(count(&format!("&source_id={two}&q=hives%201011.")).await, 0);
    assert_eq!(count("&kind=image").await, 0);
    assert_eq!(count("&status=rejected").await, 0);
    assert_eq!(count(&format!("&concept_id={one}")).await, 0, "no such concept");

    for (order, q) in
        [("newest", ""), ("source_count", ""), ("newest", "&q=bees"), ("source_count", "&q=bees")]
    {
        let order = format!("{order}{q}");
        let (mut seen, mut next) = (Vec::new(), format!("/facts?limit=20&sort={order}"));
        loop {
            let page = app.read(&next).await;
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
        let refused = app.service.get_as(&app.owner.token, &app.path(&format!("/facts?{query}"))).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["errors"][0]["field"]),
            (422, &json!(field)),
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_curator_rejects_a_fact_and_takes_it_back() {
    let mut app = test_app(&[]).await;
    app.work().await;
    let id = app.add_text("1.txt", &essay(1, 5)).await;
    app.settled(&id).await;
    let fact = app.facts(&id).await[0]["id"].as_str().unwrap().to_owned();
    let (curator, viewer) = (register(&app.service, "curator").await, register(&app.service, "viewer").await);
    give(&app.service, curator.id, &app.repository.to_string(), "curator").await;
    give(&app.service, viewer.id, &app.repository.to_string(), "viewer").await;
    let path = app.path(&format!("/facts/{fact}"));
    let set_status = async |token: &str, status: &str| {
        send(&app.service, token, Method::PUT, &path, &json!({"status": status})).await
    };
    assert_eq!(set_status(&viewer.token, "rejected").await.status, 403);
    assert_eq!(set_status(&curator.token, "wrong").await.status, 422);
    let rejected = set_status(&curator.token, "rejected").await;
    assert_eq!(rejected.json()["status"], "rejected", "{rejected:?}");
    assert_eq!(set_status(&curator.token, "rejected").await.status, 200, "it is so already");
    assert_eq!(app.read("/facts?status=rejected").await["data"].as_array().unwrap().len(), 1);
    // The same source, taken apart again, does not bring it back.
    app.ask(Method::POST, &format!("/sources/{id}/process"), &Value::Null).await;
    app.until(&id, |seen| seen["status"] == "processed").await;
    assert_eq!(app.read(&format!("/facts/{fact}")).await["status"], "rejected");
    assert_eq!(set_status(&curator.token, "stable").await.json()["status"], "stable");
    let audit = app.read("/audit?action=fact.rejected").await;
    assert_eq!(audit["data"][0]["object"], json!(fact));
}

#[tokio::test]
async fn what_models_cost_is_for_those_who_run_the_repository_or_the_installation() {
    let mut app = test_app(&[]).await;
    app.work().await;
    let id = app.add_text("1.txt", &essay(1, 5)).await;
    app.settled(&id).await;
    let editor = register(&app.service, "editor").await;
    give(&app.service, editor.id, &app.repository.to_string(), "editor").await;
    assert_eq!(app.service.get_as(&editor.token, &app.path("/ai/usage")).await.status, 403);
    assert_eq!(app.service.get_as(&editor.token, "/api/v1/ai/usage").await.status, 403);
    let all = app.service.get_as(&app.owner.token, "/api/v1/ai/usage?group_by=model").await.json();
    assert_eq!(all["data"][0]["calls"], 1, "{all:#}");
    let before = app.read("/ai/usage?from=2020-01-01&to=2020-02-01").await;
    assert_eq!((&before["data"], &before["total"]["calls"]), (&json!([]), &json!(0)));
    for query in ["group_by=odd", "from=2020-01-01", "from=2026-02-01&to=2026-01-01"] {
        let refused = app.service.get_as(&app.owner.token, &app.path(&format!("/ai/usage?{query}"))).await;
        assert_eq!(refused.status, 422, "{query}: {refused:?}");
    }
}
