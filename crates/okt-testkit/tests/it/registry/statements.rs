use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use okt_model::{JobId, RepositoryId, SourceId, SourceStatus, content_hash};
use okt_store::packages::{self, Import, ImportedConcept, ImportedFact, ImportedSummary};
use okt_store::sources::{self, NewSource};
use okt_store::{Databases, Purpose};
use okt_testkit::db::TestDatabase;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use uuid::Uuid;

use crate::repositories::isolation_packages;

/// Counts the statements that are sent to PostgreSQL, as the driver logs them.
#[derive(Clone, Default)]
struct Statements(Arc<AtomicUsize>);

/// Of the import alone: others share the thread.
impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for Statements {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut spans = context.event_scope(event).into_iter().flatten();
        if event.metadata().target() == "sqlx::query" && spans.any(|span| span.name() == "db.packages.import")
        {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// So many facts, a fifth as many concepts with aliases, and a slice for each; every second fact is the one of another run.
fn large(source: SourceId, job: JobId, facts: usize, run: usize) -> Import {
    let concepts = facts / 5;
    let mut import = isolation_packages::import(source, job, "Gulls nest.", Uuid::from_u128(1));
    let id = |kind: u128, at: usize| Uuid::from_u128((kind << 64) + ((run as u128) << 32) + at as u128);
    import.facts = (0..facts)
        .map(|at| {
            let text =
                if at % 2 == 0 { format!("Gull {at} nests.") } else { format!("Gull {at} flies {run} km.") };
            let hash = content_hash(&text);
            let concepts = vec![at % concepts, (at + 1) % concepts];
            ImportedFact { id: id(1, at), text, hash, concepts, ..import.facts[0].clone() }
        })
        .collect();
    import.concepts = (0..concepts)
        .map(|at| ImportedConcept {
            id: id(2, at),
            name: format!("Gull {}", if at % 2 == 0 { at } else { at + 1_000 * run }),
            aliases: vec![format!("Bird {at}"), format!("Bird {at} of {run}")],
            ..import.concepts[0].clone()
        })
        .collect();
    import.summaries = (0..concepts)
        .map(|at| ImportedSummary {
            id: id(3, at),
            concept: at,
            content: format!("[So.](<fact:{}>)", id(1, at)),
            facts: vec![id(1, at)],
        })
        .collect();
    import
}

/// On one thread, so that all of it logs to this test's subscriber.
#[tokio::test]
async fn a_package_is_imported_by_twelve_statements_whatever_its_size() {
    let statements = Statements::default();
    let _logging = tracing::subscriber::set_default(tracing_subscriber::registry().with(statements.clone()));
    let database = TestDatabase::migrated().await;
    let databases = Databases::open(&database.config(&[]), &[Purpose::Worker]).await.unwrap().remove(0);
    let repository = RepositoryId::mint();
    let mut counts = Vec::new();
    for (run, facts) in [20, 200, 2_000, 200].into_iter().enumerate() {
        let (id, job) = (SourceId::mint(), JobId::mint());
        let mut tx = databases.begin("default", repository).await.unwrap();
        let new = NewSource {
            locator: Some(id.to_string()),
            ..NewSource::new(id, job, "https://example.org".to_owned())
        };
        assert!(sources::insert(&mut tx, repository, &new).await.unwrap());
        assert!(sources::mark(&mut tx, repository, id, job, SourceStatus::Fetching).await.unwrap());
        let import = large(id, job, facts, run);
        let before = statements.0.load(Ordering::Relaxed);
        let imported = packages::import(&mut tx, repository, &import).await.unwrap().unwrap();
        counts.push(statements.0.load(Ordering::Relaxed) - before);
        tx.commit().await.unwrap();
        assert_eq!(imported.facts_new + imported.facts_linked, i64::try_from(facts).unwrap());
        assert!(imported.links > 0 && imported.summaries > 0, "{imported:?}");
    }
    assert!(counts.iter().all(|count| (8..=12).contains(count)), "{counts:?}");
    let mut owner = database.connect().await;
    // What is counted is what is there.
    for (what, wrong) in [
        (
            "facts",
            "SELECT count(*) FROM okt_repository.facts f WHERE source_count <>
                     (SELECT count(*) FROM okt_repository.fact_sources l WHERE l.fact_no = f.no)",
        ),
        (
            "sources",
            "SELECT count(*) FROM okt_repository.sources s WHERE fact_count <>
                     (SELECT count(*) FROM okt_repository.fact_sources l WHERE l.source_no = s.no)",
        ),
        (
            "contexts",
            "SELECT count(*) FROM okt_repository.contexts x WHERE concept_count <>
                     (SELECT count(*) FROM okt_repository.concepts c WHERE c.context_no = x.no)",
        ),
        (
            "counters",
            "SELECT count(*) FROM okt_repository.counters WHERE value <> CASE name
                     WHEN 'facts' THEN (SELECT count(*) FROM okt_repository.facts)
                     WHEN 'concepts' THEN (SELECT count(*) FROM okt_repository.concepts) END",
        ),
    ] {
        assert_eq!(okt_testkit::app::count(&mut owner, wrong).await, 0, "{what}");
    }
}
