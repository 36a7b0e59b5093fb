use std::time::Duration;

use http::Method;
use okt_jobs::CleanupExpired;
use okt_model::{
    AliasBy, CleanupRepository, ConceptId, ConceptMergedBy, Decided, FactFilter, JobId, NewConceptMerge,
    UserId,
};
use okt_queue::jobs;
use okt_store::concept_aliases::{self, NewAlias};
use okt_store::outbox::{self, When};
use okt_store::{
    Blobs, Connection, concept_merges, concept_relations, concept_twins, concept_vectors, concepts, contexts,
    counters, curation, facts,
};
use okt_testkit::accounts::{api_key_in, count, sql};
use okt_testkit::concepts::{file_concept, link_facts};
use serde_json::json;
use uuid::Uuid;

use crate::repositories::two_databases::{REPOSITORIES, TwoDatabases, id_of, path};
use crate::repositories::{
    isolation_answers, isolation_facts, isolation_investigations, isolation_judgements, isolation_packages,
    isolation_reports, isolation_search, isolation_sources, isolation_summaries, isolation_webhooks,
};

/// Rows of a repository in every table of its home.
pub fn rows(id: Uuid) -> String {
    let counts = okt_store::moves::TABLES
        .map(|table| format!("(SELECT count(*) FROM {} WHERE repository_id = '{id}')", table.path()));
    format!("SELECT {}", counts.join(" + "))
}

/// Something in every table.
pub async fn furnish(fixture: &TwoDatabases, id: Uuid, database: &str) {
    let mut tx = fixture.service.api.app.databases().begin(database, id.into()).await.unwrap();
    // Beside the three that are planted below.
    counters::add(&mut tx, id.into(), "facts", 5_996).await.unwrap();
    let job = JobId::mint();
    let (source, _) = isolation_sources::plant(&mut tx, id.into(), job, &job.to_string()).await;
    let (other, _) = isolation_sources::plant(&mut tx, id.into(), job, &format!("{job} imported")).await;
    isolation_packages::plant(&mut tx, id.into(), other, job).await;
    let (fact_id, fact, _) = isolation_facts::plant(&mut tx, id.into(), source).await;
    furnish_concepts(&mut tx, id, fact).await;
    isolation_search::plant(&mut tx, id.into(), fact).await;
    let concepts = concept_vectors::list(&mut tx, id.into(), 0, 2).await.unwrap();
    let facts = (fact_id, fact, fact + 1_000_000);
    isolation_summaries::plant(&mut tx, id.into(), (concepts[0], concepts[1]), facts, job).await;
    isolation_investigations::plant(&mut tx, id.into(), source).await;
    let number = "SELECT no FROM okt_repository.sources WHERE repository_id = $1 AND id = $2";
    let number = sqlx::query_scalar(number).bind(id).bind(source.uuid()).fetch_one(&mut *tx).await.unwrap();
    isolation_reports::plant(&mut tx, id.into(), fact, number).await;
    isolation_answers::plant(&mut tx, id.into(), fact_id, fact).await;
    isolation_judgements::plant_for(&mut tx, id.into(), fact).await;
    isolation_webhooks::plant(&mut tx, id.into()).await;
    let decided = "INSERT INTO okt_repository.contradiction_states (repository_id, content_hash, other_hash, state, person)
                   VALUES ($1, decode(repeat('00', 32), 'hex'), decode(repeat('01', 32), 'hex'), 'real', $1)
                   ON CONFLICT DO NOTHING";
    sqlx::query(decided).bind(id).execute(&mut *tx).await.unwrap();
    let payload = CleanupRepository { repository: id.into() };
    // Of a kind that nobody here runs for a repository.
    outbox::push(&mut tx, id.into(), JobId::mint(), &payload, When { priority: 0, delay_ms: 3_600_000 })
        .await
        .unwrap();
    sqlx::query("INSERT INTO okt_vectors.points VALUES ($1, 'okt_facts/3', $2, '[0.6,0.8,0]')")
        .bind(id)
        .bind(source.uuid())
        .execute(&mut *tx)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let mut file = blobs(fixture).begin(id.into(), source);
    file.write(b"an original".as_slice().into()).await.unwrap();
    file.finish().await.unwrap();
}

/// Concepts with aliases, merges and relations, and changes that are not counted yet.
async fn furnish_concepts(conn: &mut Connection, id: Uuid, fact: i64) {
    let mut made = Vec::new();
    for name in ["Varroosis", "Varroatosis", "Nosemosis"] {
        made.push(file_concept(conn, id.into(), name, "Disease").await.unwrap());
        link_facts(conn, id.into(), made[made.len() - 1], &[fact]).await.unwrap();
    }
    let alias = NewAlias { concept: made[0], text: "Varroa disease".to_owned(), by: AliasBy::Model };
    concept_aliases::insert(conn, id.into(), &[alias]).await.unwrap();
    let merge = NewConceptMerge {
        concept: made[1],
        into: made[0],
        by: ConceptMergedBy::Judge,
        job: Some(JobId::mint()),
        person: None,
        reason: None,
    };
    concept_merges::insert(conn, id.into(), &merge).await.unwrap();
    let pair = concept_vectors::list(conn, id.into(), 0, 2).await.unwrap();
    concept_twins::insert_verdicts(conn, id.into(), &[((pair[0], pair[1]), "unsure")], 1).await.unwrap();
    curate(conn, id, made[0]).await;
    concept_relations::fold(conn, id.into(), 100).await.unwrap();
    // More than are removed at once.
    let many = "WITH links AS (
             INSERT INTO okt_repository.fact_concepts (repository_id, concept_no, fact_no)
             SELECT repository_id, no, n FROM okt_repository.concepts, generate_series(1, 6000) AS n
              WHERE repository_id = $1 AND id = $2
             ON CONFLICT DO NOTHING
             RETURNING repository_id, fact_no),
         readings AS (
             INSERT INTO okt_repository.concept_readings (repository_id, fact_no, reader, batch, done)
             SELECT repository_id, fact_no, 1, fact_no, true FROM links
             ON CONFLICT DO NOTHING)
         INSERT INTO okt_repository.relation_changes (repository_id, fact_no) SELECT repository_id, fact_no FROM links";
    sqlx::query(many).bind(id).bind(made[0].uuid()).execute(conn).await.unwrap();
}

/// Steps of a person that leave a row in every table of curation.
async fn curate(conn: &mut Connection, id: Uuid, concept: ConceptId) {
    let (repository, decided) = (id.into(), Decided { person: UserId::mint(), reason: Some("why") });
    // Furnishing twice leaves it at one time.
    if !curation::list(conn, repository, None, i64::MAX, 1).await.unwrap().is_empty() {
        return;
    }
    let no = concepts::get(conn, repository, concept).await.unwrap().unwrap().no;
    let facts = concepts::list_facts(conn, repository, no, i64::MAX, 1).await.unwrap();
    let fact = facts[0].1.id;
    let all = facts::list(conn, repository, &FactFilter::default(), false, None, 10).await.unwrap();
    let other = all.iter().find(|other| other.id != fact).unwrap().id;
    let context = contexts::find(conn, repository, "Disease").await.unwrap().unwrap().no;
    curation::split(conn, repository, decided, concept, ("Split off", context), &[fact]).await.unwrap();
    curation::rename(conn, repository, decided, concept, Some("Renamed"), None).await.unwrap();
    curation::remove_alias(conn, repository, decided, concept, "Varroa disease").await.unwrap().unwrap();
    curation::add_alias(conn, repository, decided, concept, "Varroa").await.unwrap().unwrap();
    curation::mark_fact(conn, repository, decided, other, true).await.unwrap().unwrap();
}

fn blobs(fixture: &TwoDatabases) -> Blobs {
    Blobs::open(&fixture.service.api.app.config().providers.storage).unwrap()
}

#[tokio::test]
async fn a_deleted_repository_is_hidden_at_once_and_cleaned_up_behind_the_scenes() {
    let fixture = TwoDatabases::new().await;
    let (id, kept) = (fixture.repository().await, fixture.repository().await);
    for one in [id, kept] {
        furnish(&fixture, one, "default").await;
    }
    let (_, key) = api_key_in(&fixture.service, &fixture.ada, &["repository:read"], id).await;
    let other = fixture.service.beside().await;
    let preview = fixture.delete(&fixture.ada, &path(id, "?dry_run=true")).await;
    assert_eq!(preview.json()["counts"]["facts"], 6_000, "{preview:?}");
    for who in [&fixture.ada, &fixture.admin] {
        assert_eq!(other.get_as(&who.token, &path(id, "")).await.status, 200);
    }
    let before = fixture.count("default", &rows(kept)).await;
    assert_eq!(fixture.delete(&fixture.ada, &path(id, "")).await.status, 204);

    assert_eq!(other.get_as(&fixture.ada.token, &path(id, "")).await.status, 404, "on every process");
    assert_eq!(fixture.get(&fixture.admin, &path(id, "")).await.status, 404);
    assert_eq!(fixture.service.get_as(&key, &path(id, "")).await.status, 401, "its keys are over");
    assert_eq!(fixture.delete(&fixture.ada, &path(id, "")).await.status, 404);
    // Whoever may do everything hears of it from another process within a second.
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    assert_eq!(other.get_as(&fixture.admin.token, &path(id, "")).await.status, 404);

    assert!(fixture.count("default", &rows(id)).await > 6_000);
    let worker = fixture.worker().await;
    fixture.until("default", &rows(id), 0).await;
    let tidy = format!(
        "SELECT count(*) FROM okt_system.repositories WHERE id = '{id}' AND untidy_since IS NULL AND name = '' AND owner_id IS NULL"
    );
    fixture.until("default", &tidy, 1).await;
    worker.stop().await;
    assert_eq!(fixture.count("default", &rows(kept)).await, before, "nobody else's");
    // Nobody writes there any more, however long ago they asked where it lives.
    let refused = fixture.service.api.app.databases().begin("default", id.into()).await.err().unwrap();
    assert_eq!(refused.to_string(), "repository not found");
    let waiting =
        format!("SELECT count(*) FROM okt_tasks.jobs WHERE repository_id = '{id}' AND finished_at IS NULL");
    assert_eq!(fixture.count("default", &waiting).await, 0, "its jobs are over");
    assert_eq!(
        blobs(&fixture).repositories().await.unwrap(),
        [kept.into()],
        "and its files, and nobody else's"
    );
}

#[tokio::test]
async fn a_clean_up_that_was_cut_off_or_never_asked_for_is_done_again() {
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    furnish(&fixture, id, "default").await;
    assert_eq!(fixture.delete(&fixture.ada, &path(id, "")).await.status, 204);
    // The one that was asked for is lost, and so is a part of the work.
    sql(&fixture.service, "DELETE FROM okt_tasks.jobs").await;
    sql(
        &fixture.service,
        &format!("DELETE FROM okt_repository.fact_concepts WHERE repository_id = '{id}' AND fact_no < 3000"),
    )
    .await;
    // One that was never finished, an hour ago.
    let half = fixture.repository().await;
    sql(
        &fixture.service,
        &format!("UPDATE okt_system.repositories SET state = 'creating' WHERE id = '{half}'"),
    )
    .await;
    sql(&fixture.service, "UPDATE okt_system.repositories SET untidy_since = now() - interval '2 hours' WHERE state <> 'active'").await;
    let databases = fixture.service.api.app.databases();
    let worker = fixture.worker().await;
    jobs::push(databases, &CleanupExpired {}, Duration::ZERO).await.unwrap();
    for one in [id, half] {
        fixture.until("default", &rows(one), 0).await;
    }
    fixture
        .until("default", "SELECT count(*) FROM okt_system.repositories WHERE untidy_since IS NOT NULL", 0)
        .await;
    worker.stop().await;
    let deleted = "SELECT count(*) FROM okt_system.repositories WHERE state = 'deleted'";
    let all = "SELECT count(*) FROM okt_system.repositories";
    assert_eq!((count(&fixture.service, deleted).await, count(&fixture.service, all).await), (1, 1));
    let settings = "SELECT count(*) FROM okt_system.repository_settings";
    assert_eq!(count(&fixture.service, settings).await, 0, "only the id is left");
}

/// Whoever makes and deletes all day leaves nothing but ids.
#[tokio::test]
async fn a_repository_that_lives_elsewhere_is_cleaned_up_there() {
    let fixture = TwoDatabases::new().await;
    let made = fixture.make(&fixture.admin, &json!({"name": "There", "database": "second"})).await;
    furnish(&fixture, id_of(&made), "second").await;
    let worker = fixture.worker().await;
    assert_eq!(
        fixture
            .send(&fixture.admin, Method::DELETE, &format!("{REPOSITORIES}/there"), &json!({}))
            .await
            .status,
        204
    );
    fixture.until("second", &rows(id_of(&made)), 0).await;
    worker.stop().await;
}

/// Taking fifty thousand roles changes fifty thousand accounts, which is nothing to wait for in a request.
#[tokio::test]
async fn a_repository_with_many_members_is_deleted_as_quickly_as_any() {
    const MEMBERS: i64 = 50_000;
    let fixture = TwoDatabases::new().await;
    let id = fixture.repository().await;
    let members = format!(
        "WITH people AS (
             INSERT INTO okt_system.users (id, email, email_key, name, password_hash)
             SELECT gen_random_uuid(), n || '@many.example', n || '@many.example', '', ''
               FROM generate_series(1, {MEMBERS}) n RETURNING id)
         INSERT INTO okt_system.role_assignments (user_id, domain, role) SELECT id, '{id}', 'viewer' FROM people"
    );
    sql(&fixture.service, &members).await;
    let roles = format!("SELECT count(*) FROM okt_system.role_assignments WHERE domain = '{id}'");
    let begun = std::time::Instant::now();
    assert_eq!(fixture.delete(&fixture.ada, &path(id, "")).await.status, 204);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(fixture.get(&fixture.admin, &path(id, "")).await.status, 404);
    assert!(fixture.count("default", &roles).await > MEMBERS / 2, "they are left for the job");
    let worker = fixture.worker().await;
    fixture.until("default", &roles, 0).await;
    worker.stop().await;
}
