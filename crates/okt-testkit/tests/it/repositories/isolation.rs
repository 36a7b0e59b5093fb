//! Every function that reads or writes rows of repositories, called by one tenant on another's.
//!
//! Two things keep tenants apart: each statement names its repository, and the database knows whose transaction it is. Each
//! has to hold alone. So every function is called three times: as it is meant to be; with the statement naming the
//! other's repository, which leaves the database alone in the way; and past row-level security, which leaves the statement
//! alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use okt_model::{
    AuditId, CurationId, FactId, ImageId, InvestigationId, JobId, MigrateContext, NewAuditEntry,
    Payload as _, RepositoryId, SourceId,
};
use okt_pg::Result;
use okt_store::contexts::NewContext;
use okt_store::outbox::{self, When};
use okt_store::{Connection, audit_outbox, contexts, counters};
use okt_testkit::db::run;
use uuid::Uuid;

use crate::repositories::two_databases::TwoDatabases;
use crate::repositories::{
    isolation_answers, isolation_bundles, isolation_concepts, isolation_curation, isolation_exports,
    isolation_facts, isolation_investigations, isolation_judgements, isolation_packages, isolation_passages,
    isolation_reports, isolation_search, isolation_sources, isolation_summaries, isolation_webhooks,
};

/// What the other tenant has, by the names under which one could ask for it.
#[derive(Clone, Copy)]
pub(crate) struct Theirs {
    pub concepts: &'static isolation_concepts::Concepts,
    /// A step of curation.
    pub step: CurationId,
    pub fact: FactId,
    pub fact_no: i64,
    /// A duplicate of the fact.
    pub duplicate: FactId,
    pub job: JobId,
    pub source: SourceId,
    /// Its number, and the vector of its passage.
    pub source_no: i64,
    pub passage: Uuid,
    pub image: ImageId,
    /// An investigation with the source, and its number.
    pub investigation: &'static (InvestigationId, i64),
    pub report: &'static isolation_reports::Report,
    pub webhook: &'static isolation_webhooks::Planted,
    pub answer: &'static isolation_answers::Planted,
    /// Two of their contexts.
    pub context: i64,
    pub target: i64,
}

/// Calls a function for a repository with the other tenant's ids; says whether anything was found or changed.
pub(crate) type Call = for<'a> fn(&'a mut Connection, RepositoryId, Theirs) -> BoxFuture<'a, Result<bool>>;

/// Every function that works on a connection and a repository. What it finds of its own does not count, so each asks for
/// what only the other one has.
const CALLS: &[(&str, Call)] = &[
    ("audit_outbox::insert", |conn, repository, _| {
        let entry = NewAuditEntry {
            id: AuditId::mint(),
            actor: None,
            actor_kind: "service",
            credential: None,
            action: "context.added",
            object: "Planted",
            repository: Some(repository),
            address: None,
            agent: None,
            via: None,
            request_id: "test",
        };
        Box::pin(async move {
            audit_outbox::insert(conn, repository, &entry).await?;
            Ok(false)
        })
    }),
    ("contexts::insert", |conn, repository, _| {
        let new =
            NewContext { label: "Planted".to_owned(), description: String::new(), ontology_class: None };
        Box::pin(async move {
            contexts::insert(conn, repository, &[new]).await?;
            Ok(false)
        })
    }),
    ("contexts::list", |conn, repository, _| {
        Box::pin(async move {
            Ok(contexts::list(conn, repository).await?.iter().any(|one| one.label == "Plague"))
        })
    }),
    ("contexts::count", |conn, repository, _| {
        Box::pin(async move { Ok(contexts::count(conn, repository).await? > 5) })
    }),
    ("contexts::find", |conn, repository, _| {
        Box::pin(async move { Ok(contexts::find(conn, repository, "Plague").await?.is_some()) })
    }),
    ("contexts::hold", |conn, repository, _| {
        Box::pin(async move {
            contexts::hold(conn, repository, &["Plague"]).await?;
            Ok(false)
        })
    }),
    ("contexts::size", |conn, repository, theirs| {
        Box::pin(async move { Ok(contexts::size(conn, repository, theirs.context).await?.is_some()) })
    }),
    ("contexts::update", |conn, repository, theirs| {
        Box::pin(async move { contexts::update(conn, repository, theirs.context, None, Some("mine")).await })
    }),
    ("contexts::mark_merging", |conn, repository, theirs| {
        Box::pin(async move { contexts::mark_merging(conn, repository, theirs.context, theirs.target).await })
    }),
    ("contexts::delete", |conn, repository, theirs| {
        Box::pin(async move { contexts::delete(conn, repository, theirs.target).await })
    }),
    ("counters::add", |conn, repository, _| {
        Box::pin(async move {
            counters::add(conn, repository, "planted", 1).await?;
            Ok(false)
        })
    }),
    ("counters::list", |conn, repository, _| {
        Box::pin(async move {
            Ok(counters::list(conn, repository).await?.iter().any(|(name, _)| name == "secrets"))
        })
    }),
    ("outbox::take", |conn, repository, theirs| {
        Box::pin(async move { outbox::take(conn, repository, theirs.job).await })
    }),
    ("outbox::is_there", |conn, repository, theirs| {
        Box::pin(async move { outbox::is_there(conn, repository, theirs.job).await })
    }),
    ("outbox::is_younger", |conn, repository, theirs| {
        Box::pin(async move {
            outbox::is_younger(conn, repository, theirs.job, std::time::Duration::from_hours(24)).await
        })
    }),
    ("outbox::find", |conn, repository, theirs| {
        Box::pin(async move { Ok(outbox::find(conn, repository, theirs.job).await?.is_some()) })
    }),
    ("outbox::hold", |conn, repository, theirs| {
        Box::pin(async move { outbox::hold(conn, repository, theirs.job).await })
    }),
    ("outbox::list_caused", |conn, repository, theirs| {
        Box::pin(async move { Ok(!outbox::list_caused(conn, repository, &[theirs.job]).await?.is_empty()) })
    }),
    ("outbox::list_unsent", |conn, repository, _| {
        Box::pin(
            async move { Ok(!outbox::list_unsent(conn, repository, MigrateContext::KIND).await?.is_empty()) },
        )
    }),
    ("outbox::list_open", |conn, repository, _| {
        Box::pin(
            async move { Ok(!outbox::list_open(conn, repository, MigrateContext::KIND).await?.is_empty()) },
        )
    }),
    // The last ones, because they leave a note of one's own under the other's number.
    ("outbox::push_after", |conn, repository, theirs| {
        Box::pin(async move {
            let payload = MigrateContext { source: 1, target: 2 };
            let cause = Some(theirs.job);
            outbox::push_after(conn, repository, theirs.job, &payload, When::default(), cause).await?;
            Ok(false)
        })
    }),
    ("outbox::push", |conn, repository, theirs| {
        Box::pin(async move {
            outbox::push(
                conn,
                repository,
                theirs.job,
                &MigrateContext { source: 1, target: 2 },
                When::default(),
            )
            .await?;
            Ok(false)
        })
    }),
];

/// What the relay calls for all tenants. In anybody else's transaction they see that one's rows.
const RELAYS: &[(&str, Call)] = &[
    ("outbox::take_up", |conn, other, _| {
        Box::pin(async move {
            let nil = RepositoryId::from(uuid::Uuid::nil());
            let taken = outbox::take_up(conn, "default", nil, 10).await?;
            Ok(taken.iter().any(|job| job.repository == Some(other)))
        })
    }),
    ("outbox::mark_arrived", |conn, other, theirs| {
        Box::pin(async move {
            outbox::mark_arrived(conn, &[(other, theirs.job)]).await?;
            Ok(false)
        })
    }),
    ("outbox::put_down", |conn, other, theirs| {
        Box::pin(async move {
            outbox::put_down(conn, &[(other, theirs.job)]).await?;
            Ok(false)
        })
    }),
    ("outbox::delete", |conn, other, theirs| {
        Box::pin(async move {
            outbox::delete(conn, &[(other, theirs.job)]).await?;
            Ok(false)
        })
    }),
    ("outbox::list_arrived", |conn, other, _| {
        Box::pin(async move {
            let found = outbox::list_arrived(conn, (uuid::Uuid::nil(), uuid::Uuid::nil()), -1.0, 10).await?;
            Ok(found.iter().any(|(repository, _)| *repository == other))
        })
    }),
];

/// These take no transaction of a caller's: they begin their own, in the name of the repository that they are given.
const BEGIN_THEIR_OWN: &[&str] = &[
    "audit_outbox::carry",
    "counters::list_of",
    "imports::revoke_all",
    "write_fence::close",
    "write_fence::open",
    "write_fence::forward",
    "moves::clear",
    "moves::copy",
    "moves::digest",
    "moves::remove",
];

fn all() -> impl Iterator<Item = &'static (&'static str, Call)> {
    CALLS
        .iter()
        .chain(isolation_concepts::CALLS)
        .chain(isolation_curation::CALLS)
        .chain(isolation_sources::CALLS)
        .chain(isolation_facts::CALLS)
        .chain(isolation_passages::CALLS)
        .chain(isolation_search::CALLS)
        .chain(isolation_summaries::CALLS)
        .chain(isolation_investigations::CALLS)
        .chain(isolation_exports::CALLS)
        .chain(isolation_bundles::CALLS)
        .chain(isolation_judgements::CALLS)
        .chain(isolation_packages::CALLS)
        .chain(isolation_reports::CALLS)
        .chain(isolation_webhooks::CALLS)
        .chain(isolation_answers::CALLS)
}

async fn tenants(fixture: &TwoDatabases) -> (RepositoryId, RepositoryId, Theirs) {
    let (one, two) = (RepositoryId::mint(), RepositoryId::mint());
    let databases = fixture.service.api.app.databases();
    let mut tx = databases.begin("default", one).await.unwrap();
    let context = |label: &str| NewContext {
        label: label.to_owned(),
        description: String::new(),
        ontology_class: None,
    };
    contexts::insert(&mut tx, one, &["Plague", "Pest", "A", "B", "C", "D", "E"].map(context)).await.unwrap();
    counters::add(&mut tx, one, "secrets", 3).await.unwrap();
    let job = JobId::mint();
    let payload = MigrateContext { source: 1, target: 2 };
    outbox::push_after(&mut tx, one, job, &payload, When::default(), Some(job)).await.unwrap();
    let (source, image) = isolation_sources::plant(&mut tx, one, job, isolation_sources::THEIRS).await;
    let (fact, fact_no, duplicate) = isolation_facts::plant(&mut tx, one, source).await;
    let concepts = isolation_concepts::plant(&mut tx, one, fact_no).await;
    isolation_search::plant(&mut tx, one, fact_no).await;
    let (source_no, passage) = isolation_passages::plant(&mut tx, one, source).await;
    let step = isolation_curation::plant(&mut tx, one, concepts).await;
    isolation_summaries::plant_for(&mut tx, one, concepts, (fact, fact_no), job).await;
    isolation_judgements::plant_for(&mut tx, one, fact_no).await;
    isolation_packages::plant_row(&mut tx, one, source_no).await;
    let investigation = isolation_investigations::plant(&mut tx, one, source).await;
    let investigation = &*Box::leak(Box::new(investigation));
    let report = isolation_reports::plant(&mut tx, one, fact_no, source_no).await;
    // Small, so that all of them can be handed on by value.
    let report = &*Box::leak(Box::new(report));
    let webhook = isolation_webhooks::plant(&mut tx, one).await;
    let webhook = &*Box::leak(Box::new(webhook));
    let answer = isolation_answers::plant(&mut tx, one, fact, fact_no).await;
    let answer = &*Box::leak(Box::new(answer));
    let concepts = &*Box::leak(Box::new(concepts));
    let held = contexts::find(&mut tx, one, "Plague").await.unwrap().unwrap();
    let target = contexts::find(&mut tx, one, "Pest").await.unwrap().unwrap();
    tx.commit().await.unwrap();
    let mut tx = databases.begin("default", two).await.unwrap();
    contexts::insert(&mut tx, two, &[context("Own")]).await.unwrap();
    tx.commit().await.unwrap();
    (
        one,
        two,
        Theirs {
            concepts,
            step,
            fact,
            fact_no,
            duplicate,
            job,
            source,
            source_no,
            passage,
            image,
            investigation,
            report,
            webhook,
            answer,
            context: held.no,
            target: target.no,
        },
    )
}

/// All rows of a tenant, as they are.
async fn rows(conn: &mut Connection, repository: RepositoryId) -> Vec<String> {
    let mut all = Vec::new();
    let tables = okt_store::moves::TABLES.iter().map(|table| table.path());
    for table in tables.chain(["closed", "audit_outbox"].map(|name| format!("okt_repository.{name}"))) {
        let select = format!("SELECT t::text FROM {table} t WHERE repository_id = '{repository}' ORDER BY 1");
        let found: Vec<String> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(select)).fetch_all(&mut *conn).await.unwrap();
        all.extend(found.into_iter().map(|row| format!("{table} {row}")));
    }
    all
}

#[tokio::test]
async fn nobody_reads_or_changes_what_another_tenant_has() {
    let fixture = TwoDatabases::new().await;
    let (one, two, theirs) = tenants(&fixture).await;
    let databases = fixture.service.api.app.databases();
    let mut owner = fixture.service.database.connect().await;
    let before = rows(&mut owner, one).await;
    assert!(before.len() >= 8, "{before:?}");
    for (name, call) in all() {
        // As it is meant to be: in one's own transaction, with one's own repository, and somebody else's ids.
        let mut tx = databases.begin("default", two).await.unwrap();
        let found = call(&mut tx, two, theirs).await;
        assert!(!matches!(found, Ok(true)), "{name} found another tenant's rows");
        tx.commit().await.unwrap();
        assert_eq!(rows(&mut owner, one).await, before, "{name} changed another tenant's rows");

        // The statement names the other's repository: only row-level security is in the way.
        let mut tx = databases.begin("default", two).await.unwrap();
        let found = call(&mut tx, one, theirs).await;
        assert!(!matches!(found, Ok(true)), "{name} found another tenant's rows past its own condition");
        drop(tx.commit().await);
        assert_eq!(
            rows(&mut owner, one).await,
            before,
            "{name} changed another tenant's rows past its own condition"
        );

        // A superuser is not held back by row-level security: only the statement's own condition is in the way.
        run(&mut owner, &format!("BEGIN; SET LOCAL okt.repository = '{two}'")).await;
        let found = call(&mut owner, two, theirs).await;
        run(&mut owner, "COMMIT").await;
        assert!(!matches!(found, Ok(true)), "{name} found another tenant's rows past row-level security");
        assert_eq!(
            rows(&mut owner, one).await,
            before,
            "{name} changed another tenant's rows past row-level security"
        );
    }
    for (name, call) in RELAYS {
        let mut tx = databases.begin("default", two).await.unwrap();
        assert!(!call(&mut tx, one, theirs).await.unwrap(), "{name} found another tenant's rows");
        tx.commit().await.unwrap();
        assert_eq!(rows(&mut owner, one).await, before, "{name} changed another tenant's rows");
    }
    // The calls do find what they ask for, where it is one's own.
    let mut seen = BTreeSet::new();
    for (name, call) in all() {
        let mut tx = databases.begin("default", one).await.unwrap();
        if call(&mut tx, one, theirs).await.unwrap() {
            seen.insert(*name);
        }
        // Not later: what is still locked would be passed over by the next one.
        run(&mut tx, "ROLLBACK").await;
    }
    let writes = [
        "audit_outbox::insert",
        "contexts::insert",
        "contexts::hold",
        "counters::add",
        "outbox::push",
        "outbox::push_after",
        "search_units::put",
        "search_units::try_hold",
    ];
    let writes = writes
        .into_iter()
        .chain(isolation_sources::WRITES)
        .chain(isolation_facts::WRITES)
        .chain(isolation_summaries::WRITES)
        .chain(isolation_investigations::WRITES)
        .chain(isolation_judgements::WRITES)
        .chain(isolation_reports::WRITES)
        .chain(isolation_webhooks::WRITES)
        .chain(isolation_answers::WRITES)
        .collect::<BTreeSet<_>>();
    let calls = all().map(|(name, _)| *name);
    let silent: BTreeSet<_> = calls.filter(|name| !seen.contains(name)).collect();
    assert_eq!(silent, writes, "a call that never finds anything proves nothing");
}

/// A function that is not called above fails here.
#[test]
fn every_function_on_rows_of_repositories_is_called() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../okt-store/src");
    let mut found = BTreeSet::new();
    for file in files(&sources) {
        // A file in the folder of a module is a part of it.
        let parent = file.parent().filter(|folder| *folder != sources);
        let module = parent.unwrap_or(&file).file_stem().and_then(|name| name.to_str()).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        if ["databases", "migrate", "lib"].contains(&module) || !text.contains("okt_repository.") {
            continue;
        }
        let public = text.split("\npub async fn ").skip(1);
        found.extend(public.map(|rest| {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            format!("{module}::{name}")
        }));
    }
    let called: BTreeSet<String> = all()
        .map(|(name, _)| *name)
        .chain(RELAYS.iter().map(|(name, _)| *name))
        .chain(BEGIN_THEIR_OWN.iter().copied())
        .map(str::to_owned)
        .collect();
    assert_eq!(found, called);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found
}
