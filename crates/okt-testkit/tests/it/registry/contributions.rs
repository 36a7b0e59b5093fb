use std::collections::BTreeSet;
use std::time::Duration;

use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::registry::{StandIn, package};
use okt_testkit::wait::eventually;
use okt_testkit::web::Page;
use serde_json::{Value, json};

use super::{FACTS, add, builder, id, is_imported, start};

/// What the registry has been given, once it has so much.
pub(super) async fn pushed(registry: &StandIn, count: usize) -> Vec<(Value, Value)> {
    eventually(Duration::from_mins(2), "packages are pushed", async || {
        let pushed = registry.pushed();
        if pushed.len() >= count { Ok(pushed) } else { Err(pushed.len()) }
    })
    .await
}

/// Facts with their quotes, each once, and the names of their concepts.
async fn said(app: &TestApp) -> BTreeSet<String> {
    let rows = "SELECT f.text || ' | ' ||
            (SELECT string_agg(DISTINCT regexp_replace(substring(t.text FROM t.sentences[2 * i + 1] + 1 FOR t.sentences[2 * i + 2] - t.sentences[2 * i + 1]), '\\s+', ' ', 'g'), ' / ')
               FROM unnest(l.sentences) AS i) || ' | ' ||
            coalesce((SELECT string_agg(c.canonical_name || ' in ' || x.label, ', ' ORDER BY c.canonical_name)
                        FROM okt_repository.fact_concepts n JOIN okt_repository.concepts c ON c.no = n.concept_no
                        JOIN okt_repository.contexts x ON x.no = c.context_no WHERE n.fact_no = f.no), '')
       FROM okt_repository.facts f JOIN okt_repository.fact_sources l ON l.fact_no = f.no
       JOIN okt_repository.sources s ON s.no = l.source_no JOIN okt_repository.source_texts t ON t.source_id = s.id";
    let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&mut app.connect().await).await.unwrap();
    rows.into_iter().collect()
}

/// What one installation has paid for, another gets for nothing, and is told what it has saved.
#[tokio::test]
async fn what_one_contributes_another_imports() {
    let registry = StandIn::start().await;
    let url = registry.url();
    registry.take(MODEL);
    let mut one = builder(&url).vectors().start().await;
    one.web.page("/gulls", Page::article("Gulls"));
    let on = one.put("/settings/auto-contribute", &json!({"enabled": true})).await;
    assert!(on.status.is_success(), "{on:?}");
    one.work().await;
    let seen = add(&one).await;
    assert!(!is_imported(&seen));
    let (source, mut package) = pushed(&registry, 1).await.remove(0);
    assert_eq!((&source["url"], &source["title"]), (&json!(one.web.url("/gulls")), &seen["parsed_title"]));
    assert_eq!((&package["model_id"], &package["schema_version"]), (&json!(MODEL), &json!(1)));
    assert_eq!(package["promptset_hash"], seen["extraction"]["promptset_hash"]);
    let facts = package["facts"].as_array().unwrap().len();
    assert!(facts > 0 && !package["concepts"].as_array().unwrap().is_empty(), "{package:#}");
    assert_eq!(package["embeddings"]["vectors"].as_object().unwrap().len(), facts);
    assert!(package["cost"]["calls"].as_i64().unwrap() > 0, "{}", package["cost"]);

    let mut other = builder(&url).vectors().start().await;
    // The same page, served at another address.
    package["source"] = json!({"url": other.web.url("/gulls")});
    registry.offer(&other.web.url("/gulls"), &package);
    other.work().await;
    assert!(is_imported(&add(&other).await));
    assert_eq!(said(&other).await, said(&one).await, "facts, quotes, concepts and links");
    let waiting = "SELECT count(*) FROM okt_repository.facts WHERE status = 'new' OR embedded_in IS NULL";
    eventually(Duration::from_mins(2), "facts are compared", async || {
        let waiting = other.count(waiting).await;
        if waiting == 0 { Ok(()) } else { Err(waiting) }
    })
    .await;
    assert_eq!(other.models.stats().requests, 0);
    assert_eq!(other.web.asked(), [""; 0]);
    assert_eq!(other.count("SELECT count(*) FROM okt_system.ai_calls").await, 0);
    let usage = other.read("/ai/usage").await;
    assert_eq!((&usage["saved"]["sources"], &usage["total"]["calls"]), (&json!(1), &json!(0)), "{usage:#}");
    assert_eq!(usage["saved"]["calls"], package["cost"]["calls"]);
    assert_eq!(usage["saved"]["usd"], package["cost"]["usd"]);
}

#[tokio::test]
async fn all_sources_are_contributed_that_were_taken_apart_here() {
    let (app, registry) = start().await;
    registry.take(MODEL);
    registry.offer(&app.web.url("/far"), &package(&FACTS));
    for path in ["/gulls", "/terns"] {
        let text = format!(
            "<p>{}</p>",
            "The old lighthouse of the island was built by many hands in the year 1851. ".repeat(8)
        );
        app.web.page(
            path,
            Page::html(format!(
                "<html lang=en><title>{path}</title><article><h1>{path}</h1>{text}</article></html>"
            )),
        );
    }
    let far = app.add_page("/far").await;
    let (one, other) = (app.add_page("/gulls").await, app.add_page("/terns").await);
    let upload = app
        .add_text("notes.txt", "Nobody else may read these private notes about the island of gulls.")
        .await;
    for source in [&far, &one, &other, &upload] {
        assert_eq!(app.settled(source).await["status"], "processed");
    }
    assert_eq!(registry.pushed(), [], "only when it is asked for");
    // Facts and their vectors alone.
    let level = app.put("/settings/registry", &json!({"push_level": "facts"})).await;
    assert!(level.status.is_success(), "{level:?}");
    let asked = app.post("/settings/contribute-all", &json!({})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let ended = app.ended(asked.json()["job_id"].as_str().unwrap()).await;
    assert_eq!(ended["output"]["sources"], 2, "{ended:#}");
    let pushed = pushed(&registry, 2).await;
    let urls: BTreeSet<&str> = pushed.iter().map(|(source, _)| source["url"].as_str().unwrap()).collect();
    assert_eq!(urls, [&*app.web.url("/gulls"), &*app.web.url("/terns")].into());
    for (_, package) in &pushed {
        assert_eq!((&package["concepts"], package.get("summaries")), (&json!([]), None));
        assert!(package["facts"].as_array().unwrap().iter().all(|fact| fact.get("concept_ids").is_none()));
    }
}

/// Whatever producers say that their packages have cost, the usage is a page with numbers.
#[tokio::test]
async fn the_usage_is_told_whatever_packages_say_that_they_cost() {
    let (app, registry) = start().await;
    let mut package = package(&FACTS);
    package["cost"] = json!({"calls": 1, "tokens_in": u64::MAX, "tokens_out": 1, "usd": 0.1});
    registry.offer(&app.web.url("/gulls"), &package);
    assert!(!is_imported(&add(&app).await), "nobody's source takes so much");
    package["cost"]["tokens_in"] = json!(1_000_000_000);
    for path in ["/one", "/other"] {
        registry.offer(&app.web.url(path), &package);
        let source = app.add_page(path).await;
        assert!(is_imported(&app.settled(&source).await), "{path}");
    }
    assert_eq!(app.read("/ai/usage").await["saved"]["tokens_in"], json!(2_000_000_000_u64));
    app.sql(
        "UPDATE okt_repository.imports SET tokens_in = 9223372036854775807, micro_usd = 9223372036854775807",
    )
    .await;
    assert_eq!(app.read("/ai/usage").await["saved"]["tokens_in"], json!(i64::MAX));
}

/// The source is what it is, and the job says what happened.
#[tokio::test]
async fn a_registry_that_refuses_or_is_away_fails_no_source() {
    let (app, registry) = start().await;
    let seen = add(&app).await;
    let refusal = json!({"detail": "promptset_hash required when validation enabled"}).to_string();
    registry.web.page("/api/v1/sources", Page::new("application/json", refusal).status(400));
    let asked = app.post("/settings/contribute-all", &json!({})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let jobs = format!("/jobs?kind=contribute_source&source_id={}", id(&seen));
    let ended = eventually(Duration::from_mins(1), "the push has ended", async || {
        let jobs = app.read(&jobs).await;
        let done =
            jobs["data"].as_array().unwrap().iter().find(|job| job["output"]["pushed"] == false).cloned();
        done.ok_or(jobs)
    })
    .await;
    assert_eq!(ended["state"], "completed");
    assert!(ended["output"]["reason"].as_str().unwrap().contains("promptset_hash required"), "{ended:#}");
    assert_eq!(app.source(&id(&seen)).await["status"], "processed");
}

/// What could not be had is taken from the registry when it has it by then; nothing is fetched.
#[tokio::test]
async fn sources_that_could_not_be_had_are_pulled_later() {
    let (app, registry) = start().await;
    for path in ["/lost", "/gone"] {
        app.web.page(path, Page::html("no").status(404));
    }
    let (lost, gone) = (app.add_page("/lost").await, app.add_page("/gone").await);
    for source in [&lost, &gone] {
        assert_eq!(app.settled(source).await["status"], "failed");
    }
    for path in ["/lost", "/gone"] {
        let unknown = json!({"found": false, "source": null, "decompositions": []}).to_string();
        registry.web.page(&StandIn::search_path(&app.web.url(path)), Page::new("application/json", unknown));
    }
    registry.offer(&app.web.url("/lost"), &package(&FACTS));
    let asked = app.web.asked().len();
    for (rest, imported) in [("?dry_run=true", 0), ("", 1), ("", 0)] {
        let pulled = app.post(&format!("/settings/pull-all{rest}"), &json!({})).await;
        assert_eq!(pulled.status, 202, "{pulled:?}");
        let ended = app.ended(pulled.json()["job_id"].as_str().unwrap()).await;
        assert_eq!(ended["state"], "completed", "{ended:#}");
        assert_eq!(ended["output"]["imported"], imported, "{ended:#}");
    }
    assert!(is_imported(&app.settled(&lost).await));
    assert_eq!(app.source(&gone).await["failure"]["code"], "not_found", "as it was");
    assert_eq!(app.web.asked().len(), asked, "nothing is fetched");
}

/// Whoever gives much is told to come again in an hour, and that for longer than a job is tried again.
#[tokio::test]
async fn what_is_more_than_a_registry_takes_in_a_day_is_given_later() {
    let (mut app, registry) = start().await;
    let seen = add(&app).await;
    app.quiet().await;
    let full = Page::new("application/json", "{}").status(429).header("retry-after", "3600");
    registry.web.page("/api/v1/sources", full);
    let asked = app.post("/settings/contribute-all", &json!({})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    registry.web.await_asked("/api/v1/sources", 1).await;
    for times in 1..=6 {
        eventually(Duration::from_mins(1), "the job waits for an hour", async || {
            let waits = "SELECT count(*) FROM okt_tasks.jobs WHERE kind = 'contribute_source' AND state = 'scheduled'
                            AND waiting_for = 'rate_limit' AND scheduled_at > clock_timestamp() + interval '50 minutes'";
            let waits = app.count(waits).await;
            if waits == 1 { Ok(()) } else { Err(waits) }
        })
        .await;
        if times == 6 {
            let asked = registry.web.asked();
            let pushes = asked.iter().filter(|path| *path == "/api/v1/sources").count();
            assert_eq!(pushes, 1, "it is known to take none: {asked:?}");
            registry.take(MODEL);
            // Who has just started does not know.
            app.work().await;
        }
        app.sql("UPDATE okt_tasks.jobs SET scheduled_at = clock_timestamp() WHERE kind = 'contribute_source' AND state = 'scheduled'")
            .await;
    }
    app.quiet().await;
    let jobs = app.read(&format!("/jobs?kind=contribute_source&source_id={}", id(&seen))).await;
    let said = jobs["data"].as_array().unwrap().iter().map(|job| &job["output"]["pushed"]);
    assert_eq!(said.filter(|pushed| **pushed == json!(true)).count(), 1, "{jobs:#}");
}

/// Much is asked for at once. What the registry has not yet would be asked for again and again if the job began anew.
#[tokio::test]
async fn a_registry_that_is_asked_too_often_is_waited_for_by_what_gives_and_what_takes() {
    let (app, registry) = start().await;
    let busy = || Page::new("application/json", "{}").status(429).header("retry-after", "1");
    let seen = add(&app).await;
    registry.web.page("/api/v1/sources", busy());
    let asked = app.post("/settings/contribute-all", &json!({})).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    registry.web.await_asked("/api/v1/sources", 6).await;
    registry.take(MODEL);
    // What was refused before was a source without a package each time.
    eventually(Duration::from_mins(1), "the package is pushed", async || {
        let asked = registry.web.asked();
        let pushes = asked.iter().filter(|path| path.contains("/decompositions/")).count();
        if pushes == 1 { Ok(()) } else { Err(asked.join(" ")) }
    })
    .await;
    app.quiet().await;
    let jobs = app.read(&format!("/jobs?kind=contribute_source&source_id={}", id(&seen))).await;
    // The automatic one has nothing to do, and the one that was asked for was not given up.
    let said = jobs["data"].as_array().unwrap().iter().map(|job| &job["output"]["pushed"]);
    let said: Vec<&Value> = said.filter(|pushed| !pushed.is_null()).collect();
    assert_eq!(said, [&json!(true)], "{jobs:#}");

    for path in ["/lost", "/gone"] {
        app.web.page(path, Page::html("no").status(404));
        let source = app.add_page(path).await;
        assert_eq!(app.settled(&source).await["status"], "failed");
    }
    let (first, second) =
        (StandIn::search_path(&app.web.url("/lost")), StandIn::search_path(&app.web.url("/gone")));
    let before = registry.web.asked().iter().filter(|path| **path == first).count();
    let unknown = json!({"found": false, "source": null, "decompositions": []}).to_string();
    registry.web.page(&first, Page::new("application/json", unknown));
    registry.web.page(&second, busy());
    let pulled = app.post("/settings/pull-all", &json!({})).await;
    registry.web.await_asked(&second, 7).await;
    registry.offer(&app.web.url("/gone"), &package(&FACTS));
    let ended = app.ended(pulled.json()["job_id"].as_str().unwrap()).await;
    assert_eq!(
        (&ended["state"], &ended["output"]["imported"]),
        (&json!("completed"), &json!(1)),
        "{ended:#}"
    );
    let after = registry.web.asked().iter().filter(|path| **path == first).count();
    assert_eq!(after, before + 1, "it went on where it was");
}

/// What would cost more than there is left is had for nothing. The text that was read stays, and quotes are found in it.
#[tokio::test]
async fn sources_that_wait_for_a_budget_are_pulled_too() {
    let registry = StandIn::start().await;
    let url = registry.url();
    let mut app = builder(&url).settings(&[("SVC__BUDGET__DEFAULT_USD", "0.0001")]).start().await;
    app.web.page("/gulls", Page::article("Gulls"));
    app.work().await;
    let source = app.add_page("/gulls").await;
    app.until(&source, |seen| seen["waiting_for"] == "budget").await;
    let text = "SELECT md5(string_agg(text || sentences::text, '')) FROM okt_repository.source_texts";
    let text =
        async || -> String { sqlx::query_scalar(text).fetch_one(&mut app.connect().await).await.unwrap() };
    let before = text().await;
    let mut package = package(&FACTS[..1]);
    let quote = "A forager that has found food tells the others by a dance on the comb.";
    package["facts"][0]["source_text"] = json!(format!("{quote}\nNobody wrote this."));
    registry.offer(&app.web.url("/gulls"), &package);
    let pulled = app.post("/settings/pull-all", &json!({})).await;
    let ended = app.ended(pulled.json()["job_id"].as_str().unwrap()).await;
    assert_eq!(ended["output"]["imported"], 1, "{ended:#}");
    let seen = app.settled(&source).await;
    assert!(is_imported(&seen) && seen["waiting_for"].is_null(), "{seen:#}");
    assert_eq!((&seen["fact_count"], &seen["extraction"]["cited_sentences"]), (&json!(1), &json!(1)));
    assert_eq!(text().await, before);
    let facts = app.facts(&source).await;
    let one = app.read(&format!("/facts/{}", facts[0]["id"].as_str().unwrap())).await;
    let sentences = one["sources"][0]["sentences"].as_array().unwrap();
    assert_eq!((sentences.len(), &sentences[0]["text"]), (1, &json!(quote)), "{one:#}");
}

/// Else the page would say what the paper says.
#[tokio::test]
async fn the_doi_that_a_page_claims_is_not_looked_up() {
    let registry = StandIn::start().await;
    let url = registry.url();
    let mut app = builder(&url).settings(&[("SVC__BUDGET__DEFAULT_USD", "0.0001")]).start().await;
    let text = "The old lighthouse of the island was built by many hands in the year 1851. ".repeat(8);
    app.web.page(
        "/claims",
        Page::html(format!(
            "<html lang=en><head><title>Claims</title><meta name=citation_doi content='10.1000/victim'></head>\
             <body><article><h1>Claims</h1><p>{text}</p></article></body></html>"
        )),
    );
    app.work().await;
    let source = app.add_page("/claims").await;
    app.until(&source, |seen| seen["waiting_for"] == "budget").await;
    let claimed = "SELECT count(*) FROM okt_repository.sources WHERE doi = '10.1000/victim'";
    assert_eq!(app.count(claimed).await, 1);
    let unknown = json!({"found": false, "source": null, "decompositions": []}).to_string();
    let path = StandIn::search_path(&app.web.url("/claims"));
    registry.web.page(&path, Page::new("application/json", unknown));
    let before = registry.web.asked().len();
    let pulled = app.post("/settings/pull-all", &json!({})).await;
    app.ended(pulled.json()["job_id"].as_str().unwrap()).await;
    assert_eq!(registry.web.asked()[before..], [path]);
}

#[tokio::test]
async fn without_a_registry_there_is_nowhere_to_contribute_to() {
    let app = builder("").start().await;
    for path in ["/settings/contribute-all", "/settings/pull-all"] {
        let refused = app.post(path, &json!({})).await;
        assert_eq!((refused.status.as_u16(), &*refused.problem()), (503, "not_configured"), "{path}");
    }
}
