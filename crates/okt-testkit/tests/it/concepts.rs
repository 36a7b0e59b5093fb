//! Concepts: from facts to what they are about, and as people read them: lists, a concept with its facts and relations, and
//! the graph.

mod extraction;
mod faults;
mod graph;
mod lists;
mod refinement;
mod relations;
mod vectors;

use std::collections::BTreeSet;

use okt_model::{ConceptId, ConceptMergedBy, FactStatus, NewConceptMerge, RepositoryId};
use okt_store::concept_relations::{self, Folded};
use okt_store::contexts::{self, NewContext};
use okt_store::{Databases, Tx, concept_merges};
use okt_testkit::accounts::{give, register, repository, sql};
use okt_testkit::app::TestApp;
use okt_testkit::client::Answer;
use okt_testkit::concepts::{file_concept, link_facts};
use okt_testkit::facts::{insert_source, new_fact, replace_facts};
use okt_testkit::served::TestService;
use serde_json::Value;

/// A service with a repository and somebody who may read it.
pub(crate) struct Library {
    service: TestService,
    repository: RepositoryId,
    viewer: String,
}

impl Library {
    async fn open(settings: &[(&str, &str)]) -> Self {
        let service = TestService::product(settings).await;
        let viewer = register(&service, "viewer").await;
        let mut library = Self { repository: repository(&service).await, service, viewer: viewer.token };
        // The first one on a service is its sysadmin, who may read everything.
        let viewer = register(&library.service, "second").await;
        give(&library.service, viewer.id, &library.repository.to_string(), "viewer").await;
        library.viewer = viewer.token;
        let new = [("Animal", Some("dbo:Animal")), ("Disease", None), ("Concept", None)];
        let new = new.map(|(label, class)| NewContext {
            label: label.to_owned(),
            description: String::new(),
            ontology_class: class.map(str::to_owned),
        });
        let mut tx = library.begin().await;
        contexts::insert(&mut tx, library.repository, &new).await.unwrap();
        tx.commit().await.unwrap();
        library
    }

    fn databases(&self) -> &Databases {
        self.service.api.app.databases()
    }

    async fn begin(&self) -> Tx {
        self.databases().begin("default", self.repository).await.unwrap()
    }

    /// So many facts of a new source that was published then; their numbers.
    async fn facts(&self, count: usize, published: Option<&str>) -> Vec<i64> {
        let source = insert_source(self.databases(), self.repository).await;
        let new: Vec<_> = (0..count).map(|at| new_fact(&format!("Fact {at} of {source}."))).collect();
        replace_facts(self.databases(), self.repository, source, &new, FactStatus::Stable).await;
        if let Some(date) = published {
            let dated =
                format!("UPDATE okt_repository.sources SET published_at = '{date}' WHERE id = '{source}'");
            sql(&self.service, &dated).await;
        }
        sqlx::query_scalar(
            "SELECT f.no FROM okt_repository.facts f
               JOIN okt_repository.fact_sources l ON l.fact_no = f.no
               JOIN okt_repository.sources s ON s.no = l.source_no AND s.id = $1 ORDER BY f.no",
        )
        .bind(source.uuid())
        .fetch_all(&mut self.service.database.connect().await)
        .await
        .unwrap()
    }

    /// A concept that these facts speak of.
    async fn concept(&self, name: &str, context: &str, facts: &[i64]) -> ConceptId {
        let mut tx = self.begin().await;
        let concept = file_concept(&mut tx, self.repository, name, context).await.unwrap();
        link_facts(&mut tx, self.repository, concept, facts).await.unwrap();
        while concept_relations::fold(&mut tx, self.repository, 100).await.unwrap() != Folded::default() {}
        tx.commit().await.unwrap();
        concept
    }

    async fn merge(&self, concept: ConceptId, into: ConceptId) {
        let by = ConceptMergedBy::Rule;
        let merge = NewConceptMerge { concept, into, by, job: None, person: None, reason: None };
        let mut tx = self.begin().await;
        concept_merges::insert(&mut tx, self.repository, &merge).await.unwrap().unwrap();
        while concept_relations::fold(&mut tx, self.repository, 100).await.unwrap() != Folded::default() {}
        tx.commit().await.unwrap();
    }

    async fn get(&self, path: &str) -> Answer {
        let path = format!("/api/v1/repositories/{}{path}", self.repository);
        self.service.get_as(&self.viewer, &path).await
    }

    async fn read(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    /// A field of all rows of a list, page by page.
    async fn all(&self, path: &str, limit: usize, field: &str) -> Vec<String> {
        let question = if path.contains('?') { '&' } else { '?' };
        let (mut found, mut next) = (Vec::new(), format!("{path}{question}limit={limit}"));
        loop {
            let page = self.read(&next).await;
            let rows = page["data"].as_array().unwrap();
            assert!(rows.len() <= limit);
            found.extend(texts(rows, field));
            let Some(cursor) = page["next_cursor"].as_str() else { return found };
            next = format!("{path}{question}limit={limit}&cursor={cursor}");
        }
    }
}

/// A field of rows, as text; `/` leads into objects.
fn texts(rows: &[Value], field: &str) -> Vec<String> {
    let field = format!("/{field}");
    rows.iter().map(|row| row.pointer(&field).and_then(Value::as_str).unwrap().to_owned()).collect()
}

/// A source whose facts were read for concepts.
async fn read_for_concepts(app: &TestApp, source: &str) -> Value {
    app.until(source, |seen| !seen["extraction"]["concepts"].is_null()).await
}

/// What a fact mentions: names and contexts.
async fn mentioned(app: &TestApp, fact: &Value) -> BTreeSet<(String, String)> {
    let seen = app.read(&format!("/facts/{}", fact["id"].as_str().unwrap())).await;
    let concepts = seen["concepts"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    concepts.iter().map(|one| (text(&one["canonical_name"]), text(&one["context"]))).collect()
}
