//! The functions on packages of registries, for `isolation.rs`.

use okt_model::{
    ContentHash, Extraction, FactKind, FactStatus, ImportKind, JobId, RegistryOrigin, RepositoryId, Revoked,
    SourceId, content_hash,
};
use okt_store::imports::{self, Part, Revocable, Withdrawal};
use okt_store::packages::{self, About, Import, ImportedConcept, ImportedFact};
use okt_store::{Connection, facts};
use uuid::Uuid;

use crate::repositories::isolation::Call;

/// A package with one fact about one concept.
pub(crate) fn import(source: SourceId, job: JobId, text: &str, id: Uuid) -> Import {
    let origin = RegistryOrigin {
        registry: "default".to_owned(),
        source_id: "s".to_owned(),
        package_sha256: ContentHash([7; 32]).to_string(),
        has_concepts: true,
        ..RegistryOrigin::default()
    };
    Import {
        source,
        job,
        about: About::default(),
        extraction: Extraction { model: "m".to_owned(), registry: Some(origin), ..Extraction::default() },
        registry_source: "s".to_owned(),
        cost: None,
        promptset: None,
        text: "A quote.".to_owned(),
        sentences: vec![(0, 8)],
        segmenter: "registry".to_owned(),
        facts: vec![ImportedFact {
            id,
            text: text.to_owned(),
            hash: content_hash(text),
            kind: FactKind::Text,
            sentences: vec![0],
            concepts: vec![0],
        }],
        concepts: vec![ImportedConcept {
            id,
            name: "Imported".to_owned(),
            context: "Imported".to_owned(),
            unmapped_label: None,
            aliases: vec!["Brought along".to_owned()],
            vector: None,
        }],
        summaries: Vec::new(),
        contexts: vec![("Imported".to_owned(), None)],
        status: FactStatus::Stable,
        reader: Some(1),
        space: None,
    }
}

/// A source that a registry had.
pub(crate) async fn plant(conn: &mut Connection, repository: RepositoryId, source: SourceId, job: JobId) {
    let text = format!("What {source} says.");
    let ready = "UPDATE okt_repository.sources SET status = 'fetching', job_id = $3 WHERE repository_id = $1 AND id = $2";
    let ready = sqlx::query(ready).bind(repository.uuid()).bind(source.uuid()).bind(job.uuid());
    ready.execute(&mut *conn).await.unwrap();
    let import = import(source, job, &text, source.uuid());
    packages::import(conn, repository, &import).await.unwrap().unwrap();
}

/// That a source came from a registry.
pub(crate) async fn plant_row(conn: &mut Connection, repository: RepositoryId, source: i64) {
    let planted = "INSERT INTO okt_repository.imports
               (repository_id, no, kind, job_id, registry, registry_item, model, sha256, key_id, facts)
         VALUES ($1, 77, 'package', gen_random_uuid(), 'default', 's', 'm', sha256('x'), 'k', 1)";
    sqlx::query(planted).bind(repository.uuid()).execute(&mut *conn).await.unwrap();
    let marked = "UPDATE okt_repository.sources SET import_no = 77 WHERE repository_id = $1 AND no = $2";
    sqlx::query(marked).bind(repository.uuid()).bind(source).execute(conn).await.unwrap();
}

pub(crate) const CALLS: &[(&str, Call)] = &[
    ("packages::import", |conn, repository, theirs| {
        Box::pin(async move {
            let ready = "UPDATE okt_repository.sources SET status = 'fetching', fact_count = 0 WHERE id = $1 AND repository_id = $2";
            sqlx::query(ready).bind(theirs.source.uuid()).bind(repository.uuid()).execute(&mut *conn).await?;
            // Called as a fact of theirs.
            let import = import(theirs.source, theirs.job, "Nobody says so.", theirs.fact.uuid());
            Ok(packages::import(conn, repository, &import).await?.is_some())
        })
    }),
    ("packages::list_taken", |conn, repository, theirs| {
        Box::pin(async move {
            let wanted = [(theirs.fact.uuid(), content_hash("Nobody says so."))];
            Ok(!packages::list_taken(conn, repository, &wanted).await?.is_empty())
        })
    }),
    ("packages::read", |conn, repository, theirs| {
        Box::pin(async move { Ok(packages::read(conn, repository, theirs.source).await?.is_some()) })
    }),
    ("packages::list_shareable", |conn, repository, theirs| {
        Box::pin(async move {
            let done = "UPDATE okt_repository.sources SET status = 'processed', fact_count = 1 WHERE id = $1 AND repository_id = $2";
            sqlx::query(done).bind(theirs.source.uuid()).bind(repository.uuid()).execute(&mut *conn).await?;
            let found = packages::list_shareable(conn, repository, None, 100).await?;
            Ok(found.contains(&theirs.source))
        })
    }),
    ("packages::list_missing", |conn, repository, theirs| {
        Box::pin(async move {
            let failed = "UPDATE okt_repository.sources
                             SET status = 'failed', failure = '{}', fact_count = 0, body_sha256 = NULL, body_size = NULL WHERE id = $1 AND repository_id = $2";
            sqlx::query(failed)
                .bind(theirs.source.uuid())
                .bind(repository.uuid())
                .execute(&mut *conn)
                .await?;
            let found = packages::list_missing(conn, repository, None, 100).await?;
            Ok(found.contains(&theirs.source))
        })
    }),
    ("imports::find_of_source", |conn, repository, theirs| {
        Box::pin(async move { Ok(imports::find_of_source(conn, repository, theirs.source).await?.is_some()) })
    }),
    ("imports::mark_withdrawn", |conn, repository, _| {
        Box::pin(async move {
            let sha256: ContentHash =
                "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881".parse().unwrap();
            let at = chrono::DateTime::UNIX_EPOCH;
            let (item, model) = ("s".to_owned(), Some("m".to_owned()));
            let withdrawn = [Withdrawal { item, model, sha256, at, why: "it is wrong".to_owned() }];
            Ok(imports::mark_withdrawn(conn, repository, "default", &withdrawn).await? > 0)
        })
    }),
    ("imports::list_of_key", |conn, repository, _| {
        Box::pin(async move { Ok(!imports::list_of_key(conn, repository, "k").await?.is_empty()) })
    }),
    ("imports::revoke", |conn, repository, _| {
        Box::pin(async move {
            let import = Revocable { no: 77, kind: ImportKind::Package };
            let (revoked, _) = imports::revoke(conn, repository, &[import], Part::Sources, 10).await?;
            Ok(revoked != Revoked::default())
        })
    }),
    ("facts::forget_links", |conn, repository, theirs| {
        Box::pin(async move {
            Ok(facts::forget_links(conn, repository, theirs.source, &[theirs.fact_no]).await? > 0)
        })
    }),
    ("packages::sum_saved", |conn, repository, _| {
        Box::pin(async move {
            let day = |year| chrono::NaiveDate::from_ymd_opt(year, 1, 1).unwrap();
            let days = (day(2000), day(3000));
            Ok(packages::sum_saved(conn, repository, days).await?.sources > 0)
        })
    }),
];
