//! Two instances and a registry, each as it is run.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use okt_testkit::app::{MODEL, TestApp};
use okt_testkit::client::{Answer, client};
use okt_testkit::db::TestDatabase;
use okt_testkit::jobs::program;
use okt_testkit::process::Process;
use okt_testkit::wait::eventually;
use okt_testkit::web::Page;
use serde_json::{Value, json};
use tokio::process::Command;

use super::builder;
use crate::load::open_loop;

/// Sources that go from one to the other; `OKT_REGISTRY_SOURCES` for more.
fn sources() -> usize {
    std::env::var("OKT_REGISTRY_SOURCES").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// A page with facts of its own, and one that all of them share.
fn page(at: usize) -> Page {
    let paragraph = |n: usize| {
        let (workers, year) = (n + 3, 1850 + at % 100 + n);
        format!(
            "<p>The lighthouse of island number {at} was repaired by {workers} workers in the year {year}.</p>"
        )
    };
    let paragraphs = [0, 1, 2, 3].map(paragraph).concat();
    Page::html(format!(
        "<html lang=en><title>Island {at}</title><article><h1>Island {at}</h1>{paragraphs}<p>Every lighthouse on the coast of \
         Norway was automated before the year 2003 by the Coastal Administration.</p></article></html>"
    ))
}

struct Service {
    process: Process,
    database: TestDatabase,
    folder: tempfile::TempDir,
    settings: Vec<(&'static str, String)>,
}

impl Service {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    async fn start_with(more: &[(&'static str, &str)]) -> Self {
        let database = TestDatabase::empty().await;
        let folder = tempfile::tempdir().unwrap();
        let mut settings = vec![
            ("SVC__DATABASES__DEFAULT__URL", database.url().to_owned()),
            ("SVC__REGISTRY__STORAGE__ROOT", folder.path().join("files").display().to_string()),
            ("SVC__REGISTRY__PORT", "0".to_owned()),
            ("SVC__RATE_LIMITS__API_PER_MINUTE", "0".to_owned()),
            ("AUTH_JWTSECRET", "a secret that is long enough for tests".to_owned()),
        ];
        settings.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let shown: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, &**value)).collect();
        let process = Process::registry(program(), &shown);
        Self { process, database, folder, settings }
    }

    /// What an operator does at the keyboard.
    async fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(program());
        command.arg("registry").args(arguments).env_clear().current_dir(self.folder.path());
        let done =
            command.envs(self.settings.iter().map(|(name, value)| (*name, value))).output().await.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }
}

/// Facts, quotes, concepts and citations of a repository, without what differs from one to the other.
async fn known(app: &TestApp) -> BTreeSet<String> {
    let rows = "SELECT f.text || ' | ' || f.content_hash::text || ' | ' ||
            (SELECT string_agg(s.url || ':' || coalesce(array_length(l.sentences, 1), 0), ', ' ORDER BY s.url)
               FROM okt_repository.fact_sources l JOIN okt_repository.sources s ON s.no = l.source_no WHERE l.fact_no = f.no) || ' | ' ||
            coalesce((SELECT string_agg(c.canonical_name || ' in ' || x.label, ', ' ORDER BY c.canonical_name, x.label)
                        FROM okt_repository.fact_concepts n JOIN okt_repository.concepts c ON c.no = n.concept_no
                        JOIN okt_repository.contexts x ON x.no = c.context_no WHERE n.fact_no = f.no), '')
       FROM okt_repository.facts f WHERE f.status IN ('new', 'stable')";
    let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&mut app.connect().await).await.unwrap();
    rows.into_iter().collect()
}

/// As the API says it.
async fn read(app: &TestApp, process: &Process, rest: &str) -> Value {
    let request = client().get(format!("{}{}", process.url, app.path(rest))).bearer_auth(&app.owner.token);
    let answer = Answer::of(request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn add(app: &TestApp, process: &Process, urls: &[String]) -> Vec<String> {
    let mut ids = Vec::new();
    for url in urls {
        let request = client().request(Method::POST, format!("{}{}", process.url, app.path("/sources")));
        let answer = Answer::of(request.bearer_auth(&app.owner.token).json(&json!({"url": url}))).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        ids.push(answer.json()["source_id"].as_str().unwrap().to_owned());
    }
    let wanted = ids.len();
    eventually(Duration::from_mins(10), "all sources are processed", async || {
        let done = app.count("SELECT count(*) FROM okt_repository.sources WHERE status = 'processed'").await;
        if usize::try_from(done) == Ok(wanted) { Ok(()) } else { Err(done) }
    })
    .await;
    ids
}

#[tokio::test]
async fn what_one_instance_paid_for_another_gets_for_nothing() {
    let registry = Service::start().await;
    registry.process.await_ready().await;
    let (writer, reader) = (
        registry.run(&["keys", "create", "One", "--write"]).await,
        registry.run(&["keys", "create", "Other"]).await,
    );
    let url = registry.process.url.clone();
    // Nothing is to be fetched for a machine that is busy.
    let patient = ("SVC__PROVIDERS__REGISTRY__TIMEOUT", "15s");
    let auth = [
        ("REGISTRY_AUTH_MODE", "hmac"),
        ("REGISTRY_API_KEY", &*writer),
        ("REGISTRY_READ_API_KEY", &*reader),
        patient,
    ];
    let one = builder(&url).vectors().settings(&auth).start().await;
    // Whoever only reads has no other key.
    let only = [("REGISTRY_AUTH_MODE", "hmac"), ("REGISTRY_READ_API_KEY", &*reader), patient];
    let other = builder(&url).vectors().settings(&only).start().await;
    let urls: Vec<String> = (0..sources()).map(|at| one.web.url(&format!("/island-{at}"))).collect();
    for at in 0..sources() {
        one.web.page(&format!("/island-{at}"), page(at));
    }
    let on = one.put("/settings/auto-contribute", &json!({"enabled": true})).await;
    assert!(on.status.is_success(), "{on:?}");
    let first = Process::serve_as(program(), &[], &one.process_settings());
    add(&one, &first, &urls).await;
    let mut packages = registry.database.connect().await;
    eventually(Duration::from_mins(10), "all sources are contributed", async || {
        let count =
            okt_testkit::app::count(&mut packages, "SELECT count(*) FROM okt_registry.decompositions").await;
        if usize::try_from(count) == Ok(urls.len()) { Ok(()) } else { Err(count) }
    })
    .await;
    one.quiet().await;
    let paid = read(&one, &first, "/ai/usage").await;
    assert!(paid["total"]["calls"].as_i64().unwrap() > 0, "{paid}");

    let fetched = one.web.asked().len();
    let second = Process::serve_as(program(), &[], &other.process_settings());
    let ids = add(&other, &second, &urls).await;
    other.quiet().await;
    assert_eq!(one.web.asked().len(), fetched, "nothing is fetched again");
    assert_eq!((other.web.asked().len(), other.models.stats().requests), (0, 0), "nobody is asked");
    assert_eq!(other.count("SELECT count(*) FROM okt_system.ai_calls").await, 0);
    assert_eq!(known(&other).await, known(&one).await, "facts, sentences, concepts and links");
    let without = "SELECT count(*) FROM okt_repository.facts WHERE embedded_in IS NULL AND status = 'stable'";
    assert_eq!(other.count(without).await, 0, "vectors came along");
    let usage = read(&other, &second, "/ai/usage").await;
    assert_eq!(
        (&usage["saved"]["sources"], &usage["total"]["calls"]),
        (&json!(urls.len()), &json!(0)),
        "{usage:#}"
    );
    assert!(usage["saved"]["usd"].as_f64().unwrap() > 0.0, "{usage:#}");
    let seen = read(&other, &second, &format!("/sources/{}", ids[0])).await;
    assert_eq!((&seen["origin"]["kind"], &seen["extraction"]["model"]), (&json!("package"), &json!(MODEL)));
    let references = read(&other, &second, &format!("/sources/{}/references", ids[0])).await;
    assert!(!references["data"].as_array().unwrap().is_empty(), "{references:#}");

    // A registry that is gone is not missed.
    drop(registry);
    other.web.page("/later", page(9_999));
    let later = add_one(&other, &second, "/later").await;
    assert_eq!(later["origin"], Value::Null, "{later:#}");
}

async fn add_one(app: &TestApp, process: &Process, path: &str) -> Value {
    let request = client().request(Method::POST, format!("{}{}", process.url, app.path("/sources")));
    let answer =
        Answer::of(request.bearer_auth(&app.owner.token).json(&json!({"url": app.web.url(path)}))).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    app.settled(answer.json()["source_id"].as_str().unwrap()).await
}

/// Asked to stop, it finishes what it does; started again, it has what it had.
#[tokio::test]
async fn a_registry_that_is_stopped_and_killed_loses_nothing() {
    let mut registry = Service::start().await;
    registry.process.await_ready().await;
    let key = registry.run(&["keys", "create", "One", "--write"]).await;
    let shown: Vec<(&str, String)> = registry.settings.clone();
    let shown: Vec<(&str, &str)> = shown.iter().map(|(name, value)| (*name, &**value)).collect();
    let mut known = Vec::new();
    for round in 0..4 {
        let url = registry.process.url.clone();
        let pushing = {
            let key = key.clone();
            async move {
                let mut pushed = Vec::new();
                for at in 0..200 {
                    let source = json!({"url": format!("https://example.org/{round}/{at}")});
                    let request =
                        client().post(format!("{url}/api/v1/sources")).bearer_auth(&key).json(&source);
                    match Answer::try_of(request).await {
                        Ok(answer) if answer.status == 201 => pushed.push(answer.json()["source_id"].clone()),
                        _ => break,
                    }
                }
                pushed
            }
        };
        let pushing = tokio::spawn(pushing);
        tokio::time::sleep(Duration::from_millis(300)).await;
        if round % 2 == 0 {
            registry.process.terminate();
            assert!(registry.process.wait().success());
        }
        // Dropped, it is killed.
        registry.process = Process::registry(program(), &shown);
        registry.process.await_ready().await;
        known.extend(pushing.await.unwrap());
        assert!(!known.is_empty());
    }
    for id in known {
        let url = format!("{}/api/v1/sources/{}", registry.process.url, id.as_str().unwrap());
        assert_eq!(Answer::of(client().get(url).bearer_auth(&key)).await.status, 200, "{id}");
    }
}

/// As the service: what is too much is refused at once, and the rest is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_under_too_much_load_refuses_politely() {
    let service = Service::start_with(&[
        ("SVC__REGISTRY__ACCESS", "open"),
        ("SVC__DATABASES__DEFAULT__MAX_CONNS", "2"),
        ("SVC__SERVER__MAX_IN_FLIGHT", "4"),
        ("SVC__RATE_LIMITS__ANONYMOUS_PER_MINUTE", "0"),
    ])
    .await;
    service.process.await_ready().await;
    let url = format!("{}/api/v1/search?url=https://example.org/gulls", service.process.url);
    open_loop(url.clone(), 1_000, Duration::from_secs(2)).await;
    let before = service.process.memory();
    let shots = open_loop(url.clone(), 1_500, Duration::from_secs(4)).await;
    let after = service.process.memory();
    let answered = shots.iter().filter(|shot| shot.status() == 200).count();
    let refused: Vec<_> = shots.iter().filter(|shot| shot.status() == 503).collect();
    assert_eq!(answered + refused.len(), shots.len(), "nothing but an answer or a refusal");
    assert!(answered > 100, "{answered} of {} were answered", shots.len());
    for shot in &refused {
        let answer = shot.answer.as_ref().unwrap();
        assert_eq!((answer.problem().as_str(), answer.header("retry-after")), ("overloaded", "1"));
    }
    assert!(after < before + before / 5 + 8 * 1024, "memory grew from {before} to {after} KiB");
    assert_eq!(Answer::of(client().get(url)).await.status, 200, "and then as before");
}
