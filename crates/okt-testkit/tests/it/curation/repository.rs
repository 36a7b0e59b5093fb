//! A small repository as a machine leaves it, what the machine found, and everything that is in it as text.

use okt_model::{
    AliasBy, ConceptId, ConceptMergedBy, CurationId, Decided, Error, FactId, FactStatus, FoundBy, JobId,
    MergedBy, NewConcept, NewConceptMerge, NewFact, RepositoryId, SourceId, UserId,
};
use okt_store::concept_aliases::{self, NewAlias};
use okt_store::concept_relations::{self, Folded, Recomputed};
use okt_store::concepts::{self, NewLink};
use okt_store::contexts::{self, NewContext};
use okt_store::curation::{self, Undone};
use okt_store::fact_merges::{self, Merge};
use okt_store::{Databases, Purpose, Tx};
use okt_testkit::db::TestDatabase;
use okt_testkit::facts::{insert_source, new_fact, replace_facts};
use okt_testkit::soak::Dice;
use uuid::Uuid;

pub(crate) const CONTEXTS: [&str; 3] = ["Animal", "Disease", "Concept"];

/// What a machine says: a fact speaks of a concept, which may have another name.
#[derive(Clone)]
pub(crate) struct Found {
    name: String,
    context: &'static str,
    text: String,
    alias: Option<String>,
}

pub(crate) struct Repository {
    pub database: TestDatabase,
    pub databases: Databases,
    pub id: RepositoryId,
    pub person: UserId,
    pub sources: Vec<SourceId>,
    pub found: Vec<Found>,
}

impl Repository {
    /// With contexts and nothing else.
    pub(crate) async fn empty() -> Self {
        let database = TestDatabase::migrated().await;
        let databases = Databases::open(&database.config(&[]), &[Purpose::Worker]).await.unwrap().remove(0);
        let (id, person) = (RepositoryId::mint(), UserId::mint());
        let repository = Self { database, databases, id, person, sources: Vec::new(), found: Vec::new() };
        let mut tx = repository.begin().await;
        let new = CONTEXTS.map(|label| NewContext {
            label: label.to_owned(),
            description: String::new(),
            ontology_class: None,
        });
        contexts::insert(&mut tx, id, &new).await.unwrap();
        tx.commit().await.unwrap();
        repository
    }

    /// With facts that say the same, concepts with aliases, and some that a machine merged.
    pub(crate) async fn filled(dice: &mut Dice) -> Self {
        let mut repository = Self::empty().await;
        for at in 0..48 {
            if at % 8 == 0 {
                let texts: Vec<String> = (at..at + 8).map(|at| format!("Fact {at}.")).collect();
                repository.say(&texts).await;
            }
            for _ in 0..3 {
                let name = dice.index(24);
                repository.found.push(Found {
                    name: format!("Name {name}"),
                    context: CONTEXTS[name % 3],
                    text: format!("Fact {at}."),
                    alias: (dice.below(4) == 0).then(|| format!("Alias {name}")),
                });
            }
        }
        repository.run_machine().await;
        let facts: Vec<i64> = repository.numbers("SELECT no FROM okt_repository.facts ORDER BY no").await;
        let mut tx = repository.begin().await;
        let merges = [(7, 1), (9, 1), (20, 3)].map(|(fact, into)| Merge {
            fact: facts[fact],
            into: facts[into],
            cosine: 0.99,
            by: MergedBy::Cosine,
        });
        fact_merges::merge(&mut tx, repository.id, &merges, JobId::mint()).await.unwrap();
        tx.commit().await.unwrap();
        for (concept, into) in [(3, 0), (6, 3), (4, 1)] {
            let merge = NewConceptMerge {
                concept: repository.concept(&format!("Name {concept}"), CONTEXTS[concept % 3]).await,
                into: repository.concept(&format!("Name {into}"), CONTEXTS[into % 3]).await,
                by: ConceptMergedBy::Rule,
                job: Some(JobId::mint()),
                person: None,
                reason: None,
            };
            let mut tx = repository.begin().await;
            curation::merge(&mut tx, repository.id, &merge).await.unwrap().unwrap();
            tx.commit().await.unwrap();
        }
        repository
    }

    pub(crate) async fn begin(&self) -> Tx {
        self.databases.begin("default", self.id).await.unwrap()
    }

    pub(crate) const fn decided(&self) -> Decided<'static> {
        Decided { person: self.person, reason: Some("why") }
    }

    /// One more source that makes these facts.
    pub(crate) async fn say(&mut self, texts: &[String]) -> SourceId {
        let source = insert_source(&self.databases, self.id).await;
        self.say_anew(source, texts).await;
        self.sources.push(source);
        source
    }

    pub(crate) async fn say_anew(&self, source: SourceId, texts: &[String]) {
        let facts: Vec<NewFact> = texts.iter().map(|text| new_fact(text)).collect();
        replace_facts(&self.databases, self.id, source, &facts, FactStatus::Stable).await;
    }

    pub(crate) fn find(&mut self, name: &str, context: &'static str, text: &str, alias: Option<&str>) {
        let (name, text, alias) = (name.to_owned(), text.to_owned(), alias.map(str::to_owned));
        self.found.push(Found { name, context, text, alias });
    }

    /// Files and links everything that was found, as the job does, and says whether anything is new.
    pub(crate) async fn run_machine(&self) -> (u64, u64) {
        let mut new = (0, 0);
        for batch in self.found.chunks(20) {
            let mut tx = self.begin().await;
            let named: Vec<NewConcept> =
                batch.iter().map(|found| NewConcept::new(&found.name, found.context)).collect();
            let filed = concepts::file(&mut tx, self.id, &named).await.unwrap();
            let mut links = Vec::new();
            let mut aliases = Vec::new();
            for (found, concept) in batch.iter().zip(filed.concepts.iter().copied()) {
                let fact = self.fact(&found.text).await;
                links.extend(fact.map(|(fact, _)| NewLink { concept, fact, found_by: FoundBy::Name }));
                aliases.extend(found.alias.clone().map(|text| NewAlias {
                    concept,
                    text,
                    by: AliasBy::Model,
                }));
            }
            new.0 += concepts::link(&mut tx, self.id, &links).await.unwrap();
            new.1 += concept_aliases::insert(&mut tx, self.id, &aliases).await.unwrap();
            filed.count(&mut tx, self.id).await.unwrap();
            tx.commit().await.unwrap();
        }
        new
    }

    /// The number and the id of a fact.
    pub(crate) async fn fact(&self, text: &str) -> Option<(i64, FactId)> {
        let found: Option<(i64, Uuid)> =
            sqlx::query_as("SELECT no, id FROM okt_repository.facts WHERE text = $1")
                .bind(text)
                .fetch_optional(&mut self.database.connect().await)
                .await
                .unwrap();
        found.map(|(no, id)| (no, id.into()))
    }

    pub(crate) async fn fact_id(&self, text: &str) -> FactId {
        self.fact(text).await.unwrap().1
    }

    /// The concept that a machine would file this under; there has to be one.
    pub(crate) async fn concept(&self, name: &str, context: &str) -> ConceptId {
        let mut tx = self.begin().await;
        let found = concepts::find(&mut tx, self.id, &[(name, context)]).await.unwrap();
        found[0].unwrap_or_else(|| panic!("no concept {name} in {context}"))
    }

    pub(crate) async fn numbers(&self, query: &'static str) -> Vec<i64> {
        sqlx::query_scalar(query).fetch_all(&mut self.database.connect().await).await.unwrap()
    }

    pub(crate) async fn undo(&self, step: CurationId) -> Result<Undone, Error> {
        let mut tx = self.begin().await;
        let undone =
            curation::undo(&mut tx, self.id, step, self.person).await?.expect("there is such a step");
        tx.commit().await?;
        Ok(undone)
    }

    /// Counts what changed; counting anew finds nothing more.
    pub(crate) async fn fold(&self) {
        let mut tx = self.begin().await;
        while concept_relations::fold(&mut tx, self.id, 100).await.unwrap() != Folded::default() {}
        let wrong = concept_relations::recompute(&mut tx, self.id).await.unwrap();
        assert_eq!(wrong, Recomputed::default());
        tx.commit().await.unwrap();
    }

    /// Everything that is known of concepts and facts, once it is counted: a line for each row, in order.
    pub(crate) async fn dump(&self) -> Vec<String> {
        self.fold().await;
        sqlx::query_scalar(DUMP).fetch_all(&mut self.database.connect().await).await.unwrap()
    }
}

const DUMP: &str = "
WITH c AS (SELECT no, id::text AS id FROM okt_repository.concepts),
     f AS (SELECT no, encode(content_hash, 'hex') AS id FROM okt_repository.facts)
SELECT line FROM (
    SELECT format('concept %s %s %s in %s part of %s with %s', p.id, p.canonical_name, p.name_key, x.label,
                  (SELECT id FROM c WHERE no = p.merged_into), p.fact_count) AS line
      FROM okt_repository.concepts p JOIN okt_repository.contexts x ON x.no = p.context_no
     UNION ALL
    SELECT format('alias %s %s %s by %s', c.id, alias_key, alias, added_by)
      FROM okt_repository.concept_aliases a JOIN c ON c.no = a.concept_no
     UNION ALL
    SELECT format('link %s %s by %s', c.id, f.id, found_by)
      FROM okt_repository.fact_concepts l JOIN c ON c.no = l.concept_no JOIN f ON f.no = l.fact_no
     UNION ALL
    SELECT format('fact %s %s %s part of %s', g.id, g.text, g.status, (SELECT id FROM f WHERE no = g.merged_into))
      FROM okt_repository.facts g
     UNION ALL
    SELECT format('relation %s %s of %s', c.id, o.id, shared_fact_count)
      FROM okt_repository.concept_relations r JOIN c ON c.no = r.concept_no JOIN c o ON o.no = r.other_no
     UNION ALL
    SELECT format('rejected link %s %s instead %s', concept_no, encode(content_hash, 'hex'), instead_no)
      FROM okt_repository.rejected_links
     UNION ALL
    SELECT format('rejected alias %s %s', concept_no, alias_key) FROM okt_repository.rejected_aliases
     UNION ALL
    SELECT format('rejected fact %s', encode(content_hash, 'hex')) FROM okt_repository.rejected_facts
     UNION ALL
    SELECT format('contradiction %s %s %s %s by %s at %s', encode(content_hash, 'hex'), encode(other_hash, 'hex'), state, note,
                  person, decided_at)
      FROM okt_repository.contradiction_states
     UNION ALL
    SELECT format('parted %s %s', concept_no, other_no) FROM okt_repository.parted_concepts
     UNION ALL
    SELECT format('formerly %s in %s: %s', name_key, x.label, f.concept_no)
      FROM okt_repository.former_names f JOIN okt_repository.contexts x ON x.no = f.context_no
     UNION ALL
    SELECT format('context %s with %s', label, concept_count) FROM okt_repository.contexts
     UNION ALL
    SELECT format('counter %s %s', name, value) FROM okt_repository.counters) AS all_of_it
ORDER BY line COLLATE \"C\"";
