//! What is known of concepts, in words: slices, definitions, and what stands in for both where no model has written any.

mod difference;
mod estimate;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use chrono::{DateTime, Utc};
use okt_auth::permissions::{ConceptRead, ConceptUpdate};
use okt_auth::{RepoAccess, RepoScope};
use okt_extract::summaries::{Outlined, citations, only_citing, only_showing, outline, outline_text};
use okt_model::{
    Concept, ConceptId, ContentHash, Error, FactId, ImageId, JobId, Result, SourceId, SpaceKind, SummaryId,
    SynthesizeConcept, TextMethod,
};
use okt_store::concept_summaries::{self, Slice, SliceFact};
use okt_store::concept_syntheses::{self, Synthesis, SynthesisVersion};
use okt_store::outbox::{self, When};
use okt_store::{Connection, concepts, repository_settings};
use okt_vectors::Tenant;
use uuid::Uuid;

use crate::App;
use crate::concepts::get;

pub use difference::{Changed, DefinitionDiff};
pub use estimate::SynthesisEstimate;

/// Facts that an extractive text is made of at most, and that it shows.
const WEIGHED: i64 = 200;
const SHOWN: usize = 12;
/// Contexts of a name whose facts an extractive definition is made of.
const CONTEXTS: i64 = 10;
/// How long vectors are waited for; without them facts are compared by their words.
const PATIENCE: Duration = Duration::from_secs(2);

/// A slice as it is shown.
pub struct SeenSlice {
    /// `None` for what is not stored.
    pub id: Option<SummaryId>,
    pub number: i32,
    pub is_open: bool,
    pub content: String,
    pub method: TextMethod,
    pub facts: Vec<FactId>,
    /// Whether the text is about all these facts and no others.
    pub is_current: bool,
    pub dropped: i32,
    pub model: Option<String>,
    pub promptset_hash: Option<ContentHash>,
    pub written_at: Option<DateTime<Utc>>,
    pub failure: Option<String>,
}

/// What a name means.
pub struct SeenDefinition {
    pub concept: Concept,
    pub content: String,
    pub method: TextMethod,
    /// What a model has written; nothing of that is known of an extractive text.
    pub written: Option<SeenSynthesis>,
    /// The facts that the text cites, with what they say.
    pub facts: Vec<(FactId, String)>,
    /// The latest first.
    pub versions: Vec<SynthesisVersion>,
    pub diff: Option<DefinitionDiff>,
}

/// A version of a definition.
pub struct SeenSynthesis {
    pub version: i32,
    pub model: String,
    pub promptset_hash: ContentHash,
    pub created_at: DateTime<Utc>,
    /// Whether it is the latest, and nothing that it covers has changed since.
    pub is_current: bool,
    pub dropped: i32,
    pub concepts: Vec<ConceptId>,
    pub summaries: Vec<SummaryId>,
    pub images: Vec<(SourceId, ImageId)>,
}

impl App {
    /// The slices of a concept, from after one on. Without any, one that is made of the facts that say most and kept nowhere.
    pub async fn list_concept_summaries(
        &self,
        scope: &RepoScope<ConceptRead>,
        id: ConceptId,
        after: Option<i32>,
        limit: i64,
    ) -> Result<Vec<SeenSlice>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        let slices =
            concept_summaries::list(&mut tx, repository, concept.no, after.unwrap_or(0), limit).await?;
        let mut facts = Vec::new();
        if slices.is_empty() && after.is_none() {
            facts = newest(&mut tx, scope, concept.no).await?;
        }
        tx.commit().await?;
        if !facts.is_empty() {
            return Ok(vec![self.extracted(scope, facts).await?]);
        }
        let mut seen = Vec::with_capacity(slices.len());
        for slice in slices {
            seen.push(self.seen_slice(scope, slice).await?);
        }
        Ok(seen)
    }

    /// A slice that says nothing yet is shown by its facts; one that is about others than it has now, by what still holds.
    async fn seen_slice(&self, scope: &RepoAccess, slice: Slice) -> Result<SeenSlice> {
        let facts: BTreeSet<FactId> = slice.facts.iter().copied().collect();
        let content = if slice.is_current {
            slice.content
        } else {
            only_citing(&slice.content, |fact| facts.contains(&fact))
        };
        let (content, method) = if content.is_empty() {
            let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
            let facts = concept_syntheses::list_facts(&mut tx, scope.repository(), &slice.facts).await?;
            tx.commit().await?;
            (self.outlined(scope, facts).await?, TextMethod::Extractive)
        } else {
            (content, TextMethod::Model)
        };
        Ok(SeenSlice {
            id: Some(slice.id),
            number: slice.number,
            is_open: slice.is_open,
            content,
            method,
            facts: slice.facts,
            is_current: slice.is_current,
            dropped: slice.dropped,
            model: slice.model,
            promptset_hash: slice.promptset_hash,
            written_at: slice.written_at,
            failure: slice.failure,
        })
    }

    async fn extracted(&self, scope: &RepoAccess, facts: Vec<SliceFact>) -> Result<SeenSlice> {
        let content = self.outlined(scope, facts).await?;
        Ok(SeenSlice {
            id: None,
            number: 1,
            is_open: true,
            facts: cited(&content),
            content,
            method: TextMethod::Extractive,
            is_current: true,
            dropped: 0,
            model: None,
            promptset_hash: None,
            written_at: None,
            failure: None,
        })
    }

    /// The definition of a concept's name: the latest version, or another one, compared with a third if that is wanted. Where
    /// none was written, an extractive text.
    pub async fn find_concept_definition(
        &self,
        scope: &RepoScope<ConceptRead>,
        id: ConceptId,
        version: Option<i32>,
        diff: Option<i32>,
    ) -> Result<SeenDefinition> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        let name = concept.name_key.as_str();
        let found = concept_syntheses::find(&mut tx, repository, name, version).await?;
        let Some(found) = found else {
            if version.is_some() || diff.is_some() {
                return Err(Error::NotFound("version"));
            }
            let facts = of_name(&mut tx, scope, name).await?;
            tx.commit().await?;
            let content = self.outlined(scope, facts.clone()).await?;
            let shown: BTreeSet<FactId> = cited(&content).into_iter().collect();
            let facts = facts.into_iter().filter(|fact| shown.contains(&fact.id));
            return Ok(SeenDefinition {
                facts: facts.map(|fact| (fact.id, fact.text)).collect(),
                concept,
                content,
                method: TextMethod::Extractive,
                written: None,
                versions: Vec::new(),
                diff: None,
            });
        };
        let versions = concept_syntheses::list_versions(&mut tx, repository, name).await?;
        let older = match diff {
            Some(diff) => {
                let older = concept_syntheses::find(&mut tx, repository, name, Some(diff)).await?;
                Some(older.ok_or(Error::NotFound("version"))?)
            }
            None => None,
        };
        let all: BTreeSet<FactId> =
            found.facts.iter().chain(older.iter().flat_map(|older| &older.facts)).copied().collect();
        let all: Vec<FactId> = all.into_iter().collect();
        let there = concept_syntheses::list_facts(&mut tx, repository, &all).await?;
        let latest = versions.first().is_none_or(|latest| latest.version == found.version);
        let stale = concept_syntheses::is_stale(&mut tx, repository, name, found.checked_at).await?;
        tx.commit().await?;
        let texts: HashMap<FactId, String> = there.into_iter().map(|fact| (fact.id, fact.text)).collect();
        let content = still_true(&found, &texts);
        let is_current = latest && !stale && found.facts.iter().all(|fact| texts.contains_key(fact));
        let diff = older.map(|older| {
            let before = still_true(&older, &texts);
            DefinitionDiff::new((&older, &before), (&found, &content), &texts)
        });
        let facts = found.facts.iter().filter_map(|fact| Some((*fact, texts.get(fact)?.clone()))).collect();
        let Synthesis {
            version,
            model,
            promptset_hash,
            created_at,
            dropped,
            concepts,
            summaries,
            images,
            ..
        } = found;
        let written = SeenSynthesis {
            version,
            model,
            promptset_hash,
            created_at,
            is_current,
            dropped,
            concepts,
            summaries,
            images,
        };
        let (method, written) = (TextMethod::Model, Some(written));
        Ok(SeenDefinition { concept, content, method, written, facts, versions, diff })
    }

    /// Has the definition of a concept's name written anew; the job that does it.
    pub async fn resynthesize_concept(
        &self,
        scope: &RepoScope<ConceptUpdate>,
        id: ConceptId,
    ) -> Result<JobId> {
        let repository = scope.repository();
        // Whether it is here is said first.
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        tx.commit().await?;
        self.check_synthesis(scope).await?;
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        if concept_summaries::list_named(&mut tx, repository, &concept.name_key).await?.is_empty() {
            return Err(Error::Conflict("the concept has no summaries yet to write a definition from"));
        }
        let first = concept_summaries::find_first_named(&mut tx, repository, concept.no).await?;
        let payload = SynthesizeConcept { concept: first.unwrap_or(concept.id), again: true };
        let job = JobId::mint();
        outbox::push(&mut tx, repository, job, &payload, When::default()).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Whether definitions are written here.
    async fn check_synthesis(&self, scope: &RepoAccess) -> Result<()> {
        let settings = &self.config().providers.synthesis;
        if settings.model.is_empty() {
            return Err(Error::NotConfigured(
                "no model writes definitions here; an operator has to set providers.synthesis.model",
            ));
        }
        let mut conn = self.databases().acquire_system().await?;
        let chosen = repository_settings::find(&mut conn, scope.repository()).await?.unwrap_or_default();
        if settings.is_on(chosen.stages.synthesis) {
            Ok(())
        } else {
            Err(Error::Conflict("the stage synthesis is off; turn it on in the settings first"))
        }
    }

    /// A text of the facts that say most.
    async fn outlined(&self, scope: &RepoAccess, facts: Vec<SliceFact>) -> Result<String> {
        let vectors = self.vectors_of(scope, &facts).await;
        let made = tokio::task::spawn_blocking(move || {
            let weighed: Vec<Outlined<'_>> = facts
                .iter()
                .map(|fact| Outlined {
                    id: fact.id,
                    text: &fact.text,
                    sources: u32::try_from(fact.source_count).unwrap_or(0),
                    vector: vectors.get(&fact.id.uuid()).map(Vec::as_slice),
                })
                .collect();
            outline_text(&weighed, &outline(&weighed, SHOWN))
        });
        made.await.map_err(Error::internal)
    }

    /// As far as they are there and come in time.
    async fn vectors_of(&self, scope: &RepoAccess, facts: &[SliceFact]) -> HashMap<Uuid, Vec<f32>> {
        let Some(vectors) = self.vectors() else { return HashMap::new() };
        let Ok(Some(space)) = self.ai().current_space(SpaceKind::Facts).await else { return HashMap::new() };
        let ids: Vec<Uuid> = facts.iter().map(|fact| fact.id.uuid()).collect();
        let (tenant, place) = (Tenant::new(scope.repository(), scope.database()), vectors.space(&space));
        match tokio::time::timeout(PATIENCE, vectors.store().find(&tenant, &place, &ids)).await {
            Ok(Ok(points)) => points.into_iter().map(|point| (point.id, point.vector)).collect(),
            _ => HashMap::new(),
        }
    }
}

/// What a version says of facts that are there, with the images that are.
fn still_true(version: &Synthesis, texts: &HashMap<FactId, String>) -> String {
    let content = only_citing(&version.content, |fact| texts.contains_key(&fact));
    only_showing(&content, |image| version.images.iter().any(|(_, there)| *there == image))
}

fn cited(content: &str) -> Vec<FactId> {
    let all: BTreeSet<FactId> = citations(content).into_iter().map(|citation| citation.fact).collect();
    all.into_iter().collect()
}

/// The newest facts of a concept.
async fn newest(conn: &mut Connection, scope: &RepoAccess, concept: i64) -> Result<Vec<SliceFact>> {
    let facts = concepts::list_facts(conn, scope.repository(), concept, i64::MAX, WEIGHED).await?;
    let facts = facts.into_iter().map(|(_, fact)| SliceFact {
        no: fact.no,
        id: fact.id,
        text: fact.text,
        source_count: fact.source_count,
    });
    Ok(facts.collect())
}

/// The newest facts of all concepts of a name, each once.
async fn of_name(conn: &mut Connection, scope: &RepoAccess, name: &str) -> Result<Vec<SliceFact>> {
    let names = [name.to_owned()];
    let mut contexts = concepts::list_contexts(conn, scope.repository(), &names, CONTEXTS).await?;
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for context in contexts.remove(name).unwrap_or_default() {
        let Some(concept) = concepts::get(conn, scope.repository(), context.id).await? else { continue };
        let facts = newest(conn, scope, concept.no).await?;
        found.extend(facts.into_iter().filter(|fact| seen.insert(fact.no)));
    }
    found.truncate(usize::try_from(WEIGHED).unwrap_or(usize::MAX));
    Ok(found)
}
