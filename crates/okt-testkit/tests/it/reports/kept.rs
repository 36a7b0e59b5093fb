//! Reports stay checked when facts come, change and go.

use okt_model::{CheckReports, JobId, MergedBy};
use okt_store::fact_merges::{self, Merge};
use okt_store::outbox::When;
use okt_testkit::jobs;
use serde_json::json;

use super::{HEIGHT, MITE, SUN, health, sentences, source, started, write};

#[tokio::test]
async fn a_fact_that_comes_and_goes_is_told_with_its_source() {
    let app = started().await;
    let report = write(&app, "Bees", &format!("{SUN} {HEIGHT}")).await;
    health(&app, &report, "nothing is known", |counts| counts["unsupported"] == 2).await;
    let other = write(&app, "Mites", MITE).await;
    health(&app, &other, "nothing is known", |counts| counts["unsupported"] == 1).await;

    let bees = source(&app, "bees.txt", SUN).await;
    let seen = health(&app, &report, "the new fact supports it", |counts| counts["supported"] == 1).await;
    let change = &seen["changes"][0];
    assert_eq!(
        (&change["before"], &change["after"], &change["cause"], &change["source_id"]),
        (&json!("unsupported"), &json!("supported"), &json!("fact_added"), &json!(bees)),
        "{seen:#}"
    );
    assert_eq!(change["sentence"], json!(SUN));
    let apart = health(&app, &other, "the other report is as it was", |_| true).await;
    assert_eq!(apart["changes"].as_array().unwrap().len(), 1, "{apart:#}");

    assert_eq!(app.delete(&format!("/sources/{bees}")).await.status, 204);
    // Whoever reads sees it at once; the history says why.
    assert_eq!(sentences(&app, &report).await[0].1, "unsupported");
    super::eventually(super::Duration::from_mins(1), "it is told that the fact is gone", async || {
        let seen = app.read(&format!("/reports/{report}/health")).await;
        let change = &seen["changes"][0];
        let told = change["cause"] == "fact_removed" && change["fact_id"].is_null();
        // What the source was called is known for good.
        if told && change["source_title"].is_string() { Ok(()) } else { Err(seen) }
    })
    .await;
    let kept = app.count("SELECT count(*) FROM okt_repository.report_annotations a WHERE NOT EXISTS (SELECT FROM okt_repository.facts f WHERE f.no = a.fact_no)").await;
    assert_eq!(kept, 0, "nothing is kept of facts that are gone");
}

#[tokio::test]
async fn a_retracted_source_changes_the_reports_that_rest_on_it_and_back() {
    let app = started().await;
    let bees = source(&app, "bees.txt", SUN).await;
    source(&app, "mites.txt", MITE).await;
    let (one, other) = (write(&app, "Bees", SUN).await, write(&app, "Mites", MITE).await);
    health(&app, &one, "it is supported", |counts| counts["supported"] == 1).await;
    let before = health(&app, &other, "it is supported", |counts| counts["supported"] == 1).await;

    let marked = app.put(&format!("/sources/{bees}/mark"), &json!({"kind": "retracted"})).await;
    assert_eq!(marked.status, 200, "{marked:?}");
    // Whoever reads sees it at once.
    assert_eq!(sentences(&app, &one).await[0].1, "unsupported");
    let seen = health(&app, &one, "it is told", |counts| counts["unsupported"] == 1).await;
    let rows = app.read(&format!("/reports/{one}/annotations")).await;
    assert_eq!(
        (&rows["data"][0]["retracted"], &rows["data"][0]["posture"]),
        (&json!(true), &json!("supports"))
    );
    super::eventually(super::Duration::from_mins(1), "the change is in the history", async || {
        let seen = app.read(&format!("/reports/{one}/health")).await;
        let change = &seen["changes"][0];
        let told = change["cause"] == "source_marked" && change["source_id"] == json!(bees);
        if told { Ok(()) } else { Err(seen) }
    })
    .await;
    assert_eq!(seen["counts"]["supported"], 0);
    assert_eq!(app.delete(&format!("/sources/{bees}/mark")).await.status, 204);
    super::eventually(super::Duration::from_mins(1), "and back", async || {
        let seen = app.read(&format!("/reports/{one}/health")).await;
        let change = &seen["changes"][0];
        let told = change["cause"] == "source_marked" && change["after"] == "supported";
        if told { Ok(()) } else { Err(seen) }
    })
    .await;
    let after = health(&app, &other, "it is supported", |counts| counts["supported"] == 1).await;
    assert_eq!(before["changes"], after["changes"], "no other report has changed");
}

#[tokio::test]
async fn only_the_last_of_two_sources_that_is_retracted_changes_a_report() {
    let app = started().await;
    let one = source(&app, "one.txt", SUN).await;
    source(&app, "other.txt", &format!("{SUN} {HEIGHT}")).await;
    let report = write(&app, "Bees", SUN).await;
    let before = health(&app, &report, "it is supported", |counts| counts["supported"] == 1).await;
    let marked = app.put(&format!("/sources/{one}/mark"), &json!({"kind": "retracted"})).await;
    assert_eq!(marked.status, 200, "{marked:?}");
    let after = health(&app, &report, "it is supported still", |counts| counts["supported"] == 1).await;
    assert_eq!(before["changes"], after["changes"]);
    // The other one is in the public list.
    app.sql(&format!("UPDATE okt_repository.sources SET doi = '10.1000/a' WHERE id <> '{one}'")).await;
    let list = okt_testkit::multipart::form(&[], "retractions.csv", "text/csv", b"doi\n10.1000/a\n");
    let marked = app.send_form("/sources/marks", list).await;
    assert_eq!((marked.status.as_u16(), &marked.json()["marked"]), (200, &json!(1)), "{marked:?}");
    health(&app, &report, "nothing supports it", |counts| counts["unsupported"] == 1).await;
}

#[tokio::test]
async fn a_report_that_was_written_while_a_source_was_retracted_gains_it_back() {
    let app = started().await;
    let bees = source(&app, "bees.txt", SUN).await;
    assert_eq!(app.put(&format!("/sources/{bees}/mark"), &json!({"kind": "retracted"})).await.status, 200);
    let report = write(&app, "Bees", SUN).await;
    health(&app, &report, "nothing supports it", |counts| counts["unsupported"] == 1).await;
    assert_eq!(app.delete(&format!("/sources/{bees}/mark")).await.status, 204);
    health(&app, &report, "it is supported", |counts| counts["supported"] == 1).await;
}

#[tokio::test]
async fn what_another_source_says_in_its_own_words_holds_a_report_up_as_long_as_it_is_there() {
    let app = started().await;
    let bees = source(&app, "bees.txt", SUN).await;
    let report = write(&app, "Bees", SUN).await;
    health(&app, &report, "it is supported", |counts| counts["supported"] == 1).await;
    assert_eq!(app.put(&format!("/sources/{bees}/mark"), &json!({"kind": "retracted"})).await.status, 200);
    health(&app, &report, "nothing supports it", |counts| counts["unsupported"] == 1).await;

    let other = source(&app, "other.txt", MITE).await;
    let number = async |text: &str| {
        app.count(&format!("SELECT no FROM okt_repository.facts WHERE text = '{text}'")).await
    };
    let (canonical, duplicate) = (number(SUN).await, number(MITE).await);
    let databases = app.service.api.app.databases();
    let mut tx = databases.begin("default", app.repository).await.unwrap();
    let merge = Merge { fact: duplicate, into: canonical, cosine: 0.97, by: MergedBy::Cosine };
    fact_merges::merge(&mut tx, app.repository, &[merge], JobId::mint()).await.unwrap();
    tx.commit().await.unwrap();
    jobs::push(databases, app.repository, &CheckReports {}, When::default()).await;
    let told = async |after: &str| {
        super::eventually(super::Duration::from_mins(1), "the history says so", async || {
            let seen = app.read(&format!("/reports/{report}/health")).await;
            if seen["changes"][0]["after"] == after { Ok(()) } else { Err(seen) }
        })
        .await;
    };
    told("supported").await;
    assert_eq!(app.delete(&format!("/sources/{other}")).await.status, 204);
    told("unsupported").await;
}

#[tokio::test]
async fn a_superseded_source_is_shown_and_counts_all_the_same() {
    let app = started().await;
    let bees = source(&app, "bees.txt", SUN).await;
    let report = write(&app, "Bees", SUN).await;
    health(&app, &report, "it is supported", |counts| counts["supported"] == 1).await;
    let marked = app.put(&format!("/sources/{bees}/mark"), &json!({"kind": "superseded"})).await;
    assert_eq!(marked.status, 200, "{marked:?}");
    let rows = app.read(&format!("/reports/{report}/annotations")).await;
    let row = &rows["data"][0];
    assert_eq!((&row["superseded"], &row["retracted"]), (&json!(true), &json!(false)), "{rows:#}");
    assert_eq!(sentences(&app, &report).await[0].1, "supported");
    let found = app.post("/evidence", &json!({"claim": SUN})).await.json();
    assert_eq!((&found["facts"][0]["superseded"], &found["state"]), (&json!(true), &json!("supported")));
    let printed = app.get(&format!("/reports/{report}/export?format=md")).await;
    assert!(printed.text.contains("all its sources are superseded"), "{printed:?}");
}

#[tokio::test]
async fn a_rejected_fact_supports_nothing_and_a_restored_one_does_again() {
    let app = started().await;
    source(&app, "bees.txt", SUN).await;
    let report = write(&app, "Bees", SUN).await;
    health(&app, &report, "it is supported", |counts| counts["supported"] == 1).await;
    let rows = app.read(&format!("/reports/{report}/annotations")).await;
    let fact = rows["data"][0]["fact_id"].as_str().unwrap().to_owned();
    let rejected = app.put(&format!("/facts/{fact}"), &json!({"status": "rejected"})).await;
    assert!(rejected.status.is_success(), "{rejected:?}");
    assert_eq!(sentences(&app, &report).await[0].1, "unsupported", "at once");
    super::eventually(super::Duration::from_mins(1), "it is told", async || {
        let seen = app.read(&format!("/reports/{report}/health")).await;
        if seen["changes"][0]["cause"] == "fact_removed" { Ok(()) } else { Err(seen) }
    })
    .await;
    let restored = app.put(&format!("/facts/{fact}"), &json!({"status": "stable"})).await;
    assert!(restored.status.is_success(), "{restored:?}");
    let seen = health(&app, &report, "it is supported again", |counts| counts["supported"] == 1).await;
    assert_eq!(seen["changes"][0]["after"], "supported", "{seen:#}");
}

#[tokio::test]
async fn what_was_checked_bit_by_bit_is_as_if_it_were_checked_at_once() {
    let app = started().await;
    let texts = [
        SUN,
        MITE,
        HEIGHT,
        "The tallest hive in the valley of Arn is 310 centimetres high.",
        "Varroa mites killed 12 percent of all honey bee colonies in Norway in 2006.",
        "Honey bees never find the way back to their hive by the position of the sun.",
    ];
    let body = texts.map(str::to_owned).join(" ");
    let report = write(&app, "Bees", &body).await;
    let names: Vec<String> = (0..texts.len()).map(|at| format!("source-{at}.txt")).collect();
    for (name, text) in names.iter().zip(texts) {
        source(&app, name, text).await;
    }
    health(&app, &report, "every sentence has a fact", |counts| counts["unsupported"] == 0).await;
    let read = async |id: &str| {
        let rows = app.read(&format!("/reports/{id}/annotations?limit=200")).await;
        let key = |row: &serde_json::Value| {
            [&row["sentence"], &row["fact_id"], &row["posture"]].map(ToString::to_string).join(" ")
        };
        let mut rows: Vec<String> = rows["data"].as_array().unwrap().iter().map(key).collect();
        rows.sort();
        rows
    };
    let whole = write(&app, "The same", &body).await;
    health(&app, &whole, "every sentence has a fact", |counts| counts["unsupported"] == 0).await;
    assert_eq!(read(&report).await, read(&whole).await);
}
