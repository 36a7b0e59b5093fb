use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use http::Method;
use okt_app::Origin;
use okt_model::JobId;
use okt_queue::{JobContext, Kinds};
use okt_store::moves;
use okt_store::outbox::{self, When};
use okt_testkit::accounts::sql;
use okt_testkit::client::{Answer, client};
use okt_testkit::wait::eventually;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::repositories::cleanup::{furnish, rows};
use crate::repositories::two_databases::{REPOSITORIES, TwoDatabases, id_of, path};

async fn move_to(fixture: &TwoDatabases, repository: &str, to: &str) -> okt_model::Result<okt_app::Moved> {
    fixture.service.api.app.move_repository(&Origin::service("test"), repository, to).await
}

/// Every table as a number of rows and a sum over them.
async fn digests(fixture: &TwoDatabases, id: Uuid, database: &str) -> Vec<(i64, String)> {
    let mut all = Vec::new();
    for table in moves::TABLES {
        let databases = fixture.service.api.app.databases();
        all.push(moves::digest(databases, id.into(), table, database).await.unwrap());
    }
    all
}

/// Each route of a repository in turn, with what it answers.
async fn all_routes(fixture: &TwoDatabases, id: Uuid) -> Vec<(String, u16)> {
    let bob = okt_testkit::accounts::register(&fixture.service, &format!("bob-{id}")).await;
    let mut answers = Vec::new();
    for (method, rest, body) in [
        ("GET", "", json!(null)),
        ("PUT", "", json!({"description": "Moved about"})),
        ("GET", "permissions", json!(null)),
        ("GET", "audit", json!(null)),
        ("PUT", "members", json!({"user_id": bob.id, "role": "viewer"})),
        ("GET", "members", json!(null)),
        ("DELETE", "members", json!({"user_id": bob.id})),
        ("GET", "settings", json!(null)),
        ("PUT", "settings/providers", json!({"provider": "web", "enabled": false})),
        ("PUT", "settings/auto-contribute", json!({"enabled": true})),
        ("PUT", "settings/registry", json!({"push_level": "facts"})),
        ("PUT", "settings/promptsets", json!({"accepted_promptset_hashes": []})),
        ("PUT", "settings/budget", json!({"monthly_usd": 1})),
        ("PUT", "settings/stages", json!({"synthesis": false})),
        ("POST", "settings/contexts", json!({"label": "Hive"})),
        ("PUT", "settings/contexts/Hive", json!({"label": "Beehive"})),
        ("POST", "settings/contexts/Beehive/migrate", json!({"target": "Animal"})),
        ("DELETE", "settings/contexts/Robot", json!(null)),
        // Nothing is fetched: the address leads inside.
        ("POST", "sources", json!({"url": "http://127.0.0.1:1/a"})),
        ("GET", "sources", json!(null)),
        ("POST", "investigations", json!({"title": "Bees"})),
        ("GET", "investigations", json!(null)),
        ("GET", "jobs", json!(null)),
        ("GET", "jobs/stats", json!(null)),
        ("POST", "settings/contribute-all", json!(null)),
        ("POST", "settings/pull-all", json!(null)),
        ("DELETE", "?dry_run=true", json!(null)),
    ] {
        let mut request = fixture
            .service
            .request(method.parse().unwrap(), &path(id, rest))
            .bearer_auth(&fixture.admin.token);
        if !body.is_null() {
            request = request.json(&body);
        }
        let answer = Answer::of(request).await;
        if let Some(job) =
            (method == "POST").then(|| answer.json()["job_id"].clone()).filter(Value::is_string)
        {
            let shown =
                fixture.get(&fixture.admin, &path(id, &format!("jobs/{}", job.as_str().unwrap()))).await;
            answers.push(("GET job".to_owned(), shown.status.as_u16()));
        }
        answers.push((format!("{method} {rest}"), answer.status.as_u16()));
    }
    let worker = fixture.worker().await;
    let database = if fixture.get(&fixture.admin, &path(id, "")).await.json()["database"] == "second" {
        "second"
    } else {
        "default"
    };
    let gone = format!(
        "SELECT count(*) FROM okt_repository.contexts WHERE repository_id = '{id}' AND label = 'Beehive'"
    );
    fixture.until(database, &gone, 0).await;
    worker.stop().await;
    answers
}

#[tokio::test]
async fn all_routes_answer_alike_wherever_a_repository_lives() {
    let fixture = TwoDatabases::new().await;
    let here = id_of(&fixture.make(&fixture.admin, &json!({"name": "Here"})).await);
    let there = id_of(&fixture.make(&fixture.admin, &json!({"name": "There", "database": "second"})).await);
    let moved = id_of(&fixture.make(&fixture.admin, &json!({"name": "Moved"})).await);
    move_to(&fixture, "moved", "second").await.unwrap();
    let (one, two, three) = (
        all_routes(&fixture, here).await,
        all_routes(&fixture, there).await,
        all_routes(&fixture, moved).await,
    );
    assert!(one.iter().all(|(_, status)| (200..300).contains(status) || *status == 503), "{one:?}");
    assert_eq!(one.iter().filter(|(_, status)| *status == 503).count(), 2, "what needs a registry: {one:?}");
    assert_eq!((&one, &one), (&two, &three));
    for id in [here, there, moved] {
        assert_eq!(fixture.delete(&fixture.admin, &path(id, "")).await.status, 204);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_keeps_every_row_and_is_read_throughout() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    furnish(&fixture, id, "default").await;
    let before = digests(&fixture, id, "default").await;
    assert!(before.iter().all(|(rows, _)| *rows > 0), "something in every table: {before:?}");
    let settings = fixture.get(&fixture.ada, &path(id, "settings")).await.json();

    let (stop, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let reader = {
        let (stop, reads, token) = (Arc::clone(&stop), Arc::clone(&reads), fixture.ada.token.clone());
        let url = format!("{}{}", fixture.service.url, path(id, "settings"));
        let expected = settings["contexts"].clone();
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let answer = Answer::of(client().get(&url).bearer_auth(&token)).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                assert_eq!(answer.json()["contexts"], expected);
                reads.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let moved = move_to(&fixture, "bees", "second").await.unwrap();
    stop.store(true, Ordering::Relaxed);
    reader.await.unwrap();
    assert!(reads.load(Ordering::Relaxed) > 20, "{reads:?}");
    assert_eq!(moved.from, "default");
    let counted: Vec<_> = moved.rows.iter().map(|(_, rows)| i64::try_from(*rows).unwrap()).collect();
    assert_eq!(counted, before.iter().map(|(rows, _)| *rows).collect::<Vec<_>>());
    assert_eq!(digests(&fixture, id, "second").await, before, "every row with its ids and numbers");

    let record = fixture.get(&fixture.ada, &path(id, "")).await.json();
    assert_eq!((&record["database"], &record["counts"]["facts"]), (&json!("second"), &json!(6_000)));
    // What comes new gets numbers of its own.
    let added = fixture
        .send(&fixture.ada, Method::POST, &path(id, "settings/contexts"), &json!({"label": "Hive"}))
        .await;
    assert_eq!(added.status, 201, "{added:?}");
    furnish(&fixture, id, "second").await;
    let distinct = "SELECT count(*) - count(DISTINCT no) FROM okt_repository.contexts";
    assert_eq!(fixture.count("second", distinct).await, 0);

    // What was left behind goes when nobody can be reading it any more, and nothing else does.
    // The worker takes entries out of the outbox there, as it should.
    let kept = async || {
        let outbox = format!("SELECT count(*) FROM okt_repository.outbox WHERE repository_id = '{id}'");
        fixture.count("second", &rows(id)).await - fixture.count("second", &outbox).await
    };
    let there = kept().await;
    sql(&fixture.service, "UPDATE okt_system.repositories SET untidy_since = now() - interval '2 minutes'")
        .await;
    sql(&fixture.service, "UPDATE okt_tasks.jobs SET scheduled_at = now()").await;
    let worker = fixture.worker().await;
    fixture.until("default", &rows(id), 0).await;
    fixture
        .until("default", "SELECT count(*) FROM okt_system.repositories WHERE untidy_since IS NOT NULL", 0)
        .await;
    worker.stop().await;
    assert_eq!(kept().await, there);

    // And back.
    let before = digests(&fixture, id, "second").await;
    move_to(&fixture, &id.to_string(), "default").await.unwrap();
    assert_eq!(digests(&fixture, id, "default").await, before);
    assert_eq!(
        fixture
            .send(&fixture.ada, Method::POST, &path(id, "settings/contexts"), &json!({"label": "Comb"}))
            .await
            .status,
        201
    );
}

/// Whoever writes while it moves is either in time or told to wait; what was acknowledged is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_acknowledged_is_lost_by_a_move() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    furnish(&fixture, id, "default").await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (stop, token) = (Arc::clone(&stop), fixture.ada.token.clone());
        let url = format!("{}{}", fixture.service.url, path(id, "settings/contexts"));
        tokio::spawn(async move {
            let (mut kept, mut told) = (Vec::new(), 0);
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let label = format!("Own {n}");
                let answer =
                    Answer::of(client().post(&url).bearer_auth(&token).json(&json!({"label": label}))).await;
                match answer.status.as_u16() {
                    201 => kept.push(label),
                    503 => {
                        assert_eq!(
                            (answer.problem().as_str(), answer.header("retry-after")),
                            ("repository_moving", "10")
                        );
                        told += 1;
                    }
                    _ => panic!("{answer:?}"),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            (kept, told)
        })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    move_to(&fixture, "bees", "second").await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    stop.store(true, Ordering::Relaxed);
    let (kept, told) = writer.await.unwrap();
    assert!(told > 10, "some were told to wait: {told}");
    let settings = fixture.get(&fixture.ada, &path(id, "settings")).await.json();
    let labels: Vec<&str> =
        settings["contexts"].as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect();
    for label in &kept {
        assert!(labels.contains(&label.as_str()), "{label} of {} is lost", kept.len());
    }
}

/// Jobs find their repository wherever it went, those that waited and those that were running.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_follow_their_repository() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Slow {}
    impl okt_model::Payload for Slow {
        const KIND: &'static str = "embed_facts";
    }
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let (runs, gate) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Semaphore::new(0)));
    let kinds = {
        let (runs, gate) = (Arc::clone(&runs), Arc::clone(&gate));
        Kinds::default().repository(move |_: Slow, ctx: JobContext| {
            let (runs, gate) = (Arc::clone(&runs), Arc::clone(&gate));
            async move {
                runs.fetch_add(1, Ordering::Relaxed);
                drop(gate.acquire().await);
                let mut tx = ctx.begin().await?;
                okt_store::counters::add(&mut tx, ctx.repository(), "done", 1).await?;
                tx.commit(None).await
            }
        })
    };
    let databases = fixture.service.api.app.databases();
    let ask = async |database: &str, delay_ms: i64| {
        let mut tx = databases.begin(database, id.into()).await.unwrap();
        outbox::push(&mut tx, id.into(), JobId::mint(), &Slow {}, When { priority: 0, delay_ms })
            .await
            .unwrap();
        tx.commit().await.unwrap();
    };
    ask("default", 0).await;
    let worker = fixture.worker_for(kinds).await;
    fixture.until("default", "SELECT count(*) FROM okt_tasks.jobs WHERE state = 'running'", 1).await;
    ask("default", 2_000).await;
    fixture.until("default", "SELECT count(*) FROM okt_tasks.jobs", 2).await;
    move_to(&fixture, "bees", "second").await.unwrap();
    gate.add_permits(100);
    // Even one who was told the old address long ago.
    ask("default", 0).await;
    let done = format!(
        "SELECT coalesce(sum(value), 0)::bigint FROM okt_repository.counters WHERE repository_id = '{id}' AND name = 'done'"
    );
    fixture.until("second", &done, 3).await;
    fixture.until("default", "SELECT count(*) FROM okt_tasks.jobs WHERE state = 'completed'", 3).await;
    worker.stop().await;
    assert_eq!(fixture.count("default", &done).await, 0);
    assert_eq!(fixture.count("second", "SELECT count(*) FROM okt_repository.outbox").await, 0);
    let attempts = fixture.count("default", "SELECT max(attempt)::bigint FROM okt_tasks.jobs").await;
    assert_eq!(attempts, 1, "waiting for a move is no attempt");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_was_cut_off_is_finished_or_given_up() {
    let fixture = TwoDatabases::new().await;
    for give_up in [false, true] {
        let name = format!("cut-{give_up}");
        let id = id_of(&fixture.make(&fixture.ada, &json!({"name": name})).await);
        furnish(&fixture, id, "default").await;
        let before = digests(&fixture, id, "default").await;
        let app = fixture.service.api.app.clone();
        let cut = tokio::spawn(async move {
            app.move_repository(&Origin::service("test"), &id.to_string(), "second").await
        });
        let closed = format!("SELECT count(*) FROM okt_repository.closed WHERE repository_id = '{id}'");
        fixture.until("default", &closed, 1).await;
        cut.abort();
        drop(cut.await);
        // It can be read, and not written to; who asks is told why.
        assert_eq!(fixture.get(&fixture.ada, &path(id, "settings")).await.status, 200);
        let refused = fixture
            .send(&fixture.ada, Method::POST, &path(id, "settings/contexts"), &json!({"label": "Hive"}))
            .await;
        assert_eq!(refused.problem(), "repository_moving");
        assert_eq!(fixture.delete(&fixture.ada, &path(id, "")).await.problem(), "repository_moving");
        let to = if give_up { "default" } else { "second" };
        move_again(&fixture, &name, to).await;
        assert_eq!(digests(&fixture, id, to).await, before);
        let added = fixture
            .send(&fixture.ada, Method::POST, &path(id, "settings/contexts"), &json!({"label": "Hive"}))
            .await;
        assert_eq!(added.status, 201, "{added:?}");
        let seen = fixture.get(&fixture.ada, &format!("{REPOSITORIES}/{name}")).await.json();
        assert_eq!(seen["database"], to);
    }
}

/// The one who was cut off may hold its lock for a moment longer.
async fn move_again(fixture: &TwoDatabases, name: &str, to: &str) {
    let moved = eventually(Duration::from_secs(10), "the lock is given back", async || {
        match move_to(fixture, name, to).await {
            Err(error) if error.to_string().contains("right now") => Err(error),
            moved => Ok(moved),
        }
    });
    moved.await.unwrap();
}

/// Whatever goes wrong on the way, the repository is as it was.
#[tokio::test]
async fn a_move_that_fails_leaves_the_repository_open() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    furnish(&fixture, id, "default").await;
    let before = digests(&fixture, id, "default").await;
    let mut second = fixture.second().connect().await;
    okt_testkit::db::run(&mut second, "ALTER TABLE okt_repository.concepts ADD COLUMN novelty text").await;
    let refused = move_to(&fixture, "bees", "second").await.unwrap_err().to_string();
    assert!(refused.contains("okt migrate"), "{refused}");
    assert_eq!(digests(&fixture, id, "default").await, before);
    let added = fixture
        .send(&fixture.ada, Method::POST, &path(id, "settings/contexts"), &json!({"label": "Hive"}))
        .await;
    assert_eq!(added.status, 201, "{added:?}");

    // The other place is gone altogether: what was begun can still be given up.
    okt_testkit::db::run(&mut second, "ALTER TABLE okt_repository.concepts DROP COLUMN novelty").await;
    let app = fixture.service.api.app.clone();
    let cut =
        tokio::spawn(async move { app.move_repository(&Origin::service("test"), "bees", "second").await });
    fixture.until("default", "SELECT count(*) FROM okt_repository.closed", 1).await;
    cut.abort();
    drop(cut.await);
    okt_testkit::db::run(&mut second, "ALTER TABLE okt_repository.closed RENAME TO away").await;
    move_again(&fixture, "bees", "default").await;
    let added = fixture
        .send(&fixture.ada, Method::POST, &path(id, "settings/contexts"), &json!({"label": "Comb"}))
        .await;
    assert_eq!(added.status, 201, "{added:?}");
}

/// Whoever removes what was left behind and whoever moves it once more keep out of each other's way.
#[tokio::test]
async fn nobody_moves_what_is_being_cleaned_up_and_nobody_removes_what_lives() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let databases = fixture.service.api.app.databases();
    let alone = databases.take_alone(id.into()).await.unwrap().unwrap();
    let refused = move_to(&fixture, "bees", "second").await.unwrap_err().to_string();
    assert!(refused.contains("another process"), "{refused}");
    drop(alone);
    move_again(&fixture, "bees", "second").await;
    for table in moves::TABLES {
        assert_eq!(moves::remove(databases, id.into(), table, "second", 100).await.unwrap(), 0);
    }
    assert!(fixture.count("second", &rows(id)).await > 90);
    let contexts = moves::TABLES.into_iter().find(|table| table.name == "contexts").unwrap();
    assert_eq!(
        moves::remove(databases, id.into(), contexts, "default", 100).await.unwrap(),
        100,
        "it has moved away from there"
    );
}

/// By whatever address: what is copied from a place to itself would be removed.
#[tokio::test]
async fn two_names_with_addresses_of_one_database_are_refused() {
    let database = okt_testkit::db::TestDatabase::migrated().await;
    let twin = database.url().replace("127.0.0.1", "localhost");
    let config = database.config(&[("SVC__DATABASES__TWIN__URL", &twin)]);
    let refused =
        okt_store::Databases::open(&config, &[okt_store::Purpose::Api]).await.err().unwrap().to_string();
    assert!(refused.contains("are the same database"), "{refused}");
}

#[tokio::test]
async fn a_move_goes_only_where_repositories_may_live() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    for (name, to, message) in [
        ("bees", "tasks", "tasks is not a database"),
        ("bees", "nowhere", "nowhere is not a database"),
        ("wasps", "second", "repository not found"),
    ] {
        let refused = move_to(&fixture, name, to).await.unwrap_err().to_string();
        assert!(refused.contains(message), "{refused}");
    }
    // Another name for the same place: nothing is copied.
    let renamed = move_to(&fixture, "bees", "alias").await.unwrap();
    assert_eq!(renamed.rows, []);
    let record: Value = fixture.get(&fixture.ada, &path(id, "")).await.json();
    assert_eq!(record["database"], "alias");
    assert_eq!(
        fixture
            .send(&fixture.ada, Method::POST, &path(id, "settings/contexts"), &json!({"label": "Hive"}))
            .await
            .status,
        201
    );
    let rows = fixture.count("default", &rows(id)).await;
    assert!(rows > 90, "{rows}");
}

/// The list of what is moved and removed is the list of what there is, but for what stays where it was written.
#[tokio::test]
async fn every_table_with_rows_of_repositories_is_moved() {
    let fixture = TwoDatabases::new().await;
    let mut conn = fixture.service.database.connect().await;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT c.oid::regclass::text FROM pg_class c
           JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'repository_id'
          WHERE c.relnamespace IN ('okt_repository'::regnamespace, 'okt_vectors'::regnamespace)
            AND c.relkind IN ('r', 'p') AND NOT c.relispartition
            AND c.relname NOT IN ('closed', 'audit_outbox') ORDER BY 1",
    )
    .fetch_all(&mut conn)
    .await
    .unwrap();
    let mut listed = moves::TABLES.map(moves::Table::path);
    listed.sort();
    assert_eq!(tables, listed);
}
