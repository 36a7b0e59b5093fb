//! What is known of concepts, in words: slices, definitions, and what stands in for both where no model has written any.

mod difference;
mod estimate;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use chrono::{DateTime, Utc};
use okt_auth::permissions::{ConceptRead, ConceptUpdate};
use okt_auth::{RepoAccess, RepoScope};
use okt_extract::summaries::{Outlined, citations, claims, only_citing, only_showing, outline, outline_text};
use okt_model::{
    Concept, ConceptId, ContentHash, Error, FactId, ImageId, JobId, Result, SourceId, SpaceKind, SummaryId,
    SynthesizeConcept, TextMethod,
};
use okt_store::concept_summaries::{self, Slice, SliceFact};
use okt_store::concept_syntheses::{self, Synthesis, SynthesisVersion};
use okt_store::outbox::{self, When};
use okt_store::{Connection, concepts, repository_settings, source_marks};
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
const NO_SUMMARIES: &str = "the concept has no summaries yet to write a definition from";
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
    /// Those that the text cites and that rest on retracted sources alone.
    pub retracted: Vec<FactId>,
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
    /// Those that the text cites and that rest on retracted sources alone.
    pub retracted: Vec<FactId>,
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
        let mut seen = self.load_slices(scope, id, after, limit).await?;
        let all: BTreeSet<FactId> = seen.iter().flat_map(|slice| cited(&slice.content)).collect();
        let retracted = self.retracted(scope, all).await?;
        for slice in &mut seen {
            slice.retracted = cited(&slice.content).into_iter().filter(|id| retracted.contains(id)).collect();
        }
        Ok(seen)
    }

    async fn load_slices(
        &self,
        scope: &RepoAccess,
        id: ConceptId,
        after: Option<i32>,
        limit: i64,
    ) -> Result<Vec<SeenSlice>> {
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let concept = get(&mut tx, scope, id).await?;
        let slices =
            concept_summaries::list(&mut tx, repository, concept.no, after.unwrap_or(0), limit).await?;
        if slices.is_empty() && after.is_none() {
            let facts = concepts::list_strongest_facts(&mut tx, repository, concept.no, WEIGHED).await?;
            tx.commit().await?;
            return if facts.is_empty() {
                Ok(Vec::new())
            } else {
                Ok(vec![self.extracted(scope, &concept, facts).await?])
            };
        }
        // Those that say nothing yet are shown by their facts, which are read for all of them at once.
        let contents: Vec<String> = slices.iter().map(holding).collect();
        let silent = || slices.iter().zip(&contents).filter(|(_, content)| content.is_empty());
        let wanted: Vec<FactId> = silent().flat_map(|(slice, _)| slice.facts.iter().copied()).collect();
        let facts = if wanted.is_empty() {
            Vec::new()
        } else {
            concept_syntheses::list_facts(&mut tx, repository, &wanted).await?
        };
        tx.commit().await?;
        let parts = silent().map(|(slice, _)| {
            let own: BTreeSet<FactId> = slice.facts.iter().copied().collect();
            facts.iter().filter(|fact| own.contains(&fact.id)).cloned().collect()
        });
        let mut outlined = self.outlined(scope, &concept, parts.collect()).await?.into_iter();
        let seen = slices.into_iter().zip(contents).map(|(slice, content)| {
            if content.is_empty() {
                seen_slice(slice, outlined.next().unwrap_or_default(), TextMethod::Extractive)
            } else {
                seen_slice(slice, content, TextMethod::Model)
            }
        });
        Ok(seen.collect())
    }

    async fn extracted(&self, scope: &RepoAccess, of: &Concept, facts: Vec<SliceFact>) -> Result<SeenSlice> {
        let content = self.outlined(scope, of, vec![facts]).await?.remove(0);
        Ok(SeenSlice {
            id: None,
            number: 1,
            is_open: true,
            facts: cited(&content),
            retracted: Vec::new(),
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
        // Boxed, because it is large.
        let mut seen = Box::pin(self.load_definition(scope, id, version, diff)).await?;
        let retracted = self.retracted(scope, cited(&seen.content).into_iter().collect()).await?;
        seen.retracted = retracted.into_iter().collect();
        Ok(seen)
    }

    /// Those of these facts that rest on retracted sources alone.
    async fn retracted(&self, scope: &RepoAccess, facts: BTreeSet<FactId>) -> Result<BTreeSet<FactId>> {
        if facts.is_empty() {
            return Ok(facts);
        }
        let facts: Vec<FactId> = facts.into_iter().collect();
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let retracted = source_marks::list_retracted(&mut tx, scope.repository(), &facts).await?;
        tx.commit().await?;
        Ok(retracted.into_iter().collect())
    }

    async fn load_definition(
        &self,
        scope: &RepoAccess,
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
            return self.extracted_definition(scope, concept, facts, Vec::new()).await;
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
        let texts: HashMap<FactId, String> = there.into_iter().map(|fact| (fact.id, fact.text)).collect();
        let content = still_true(&found, &texts);
        if version.is_none() && diff.is_none() && claims(&content).is_empty() {
            // Nothing of it holds any more, and the next one is not written yet.
            let facts = of_name(&mut tx, scope, name).await?;
            tx.commit().await?;
            return self.extracted_definition(scope, concept, facts, versions).await;
        }
        tx.commit().await?;
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
        let retracted = Vec::new();
        Ok(SeenDefinition { concept, content, method, written, facts, retracted, versions, diff })
    }

    async fn extracted_definition(
        &self,
        scope: &RepoAccess,
        concept: Concept,
        facts: Vec<SliceFact>,
        versions: Vec<SynthesisVersion>,
    ) -> Result<SeenDefinition> {
        let content = self.outlined(scope, &concept, vec![facts.clone()]).await?.remove(0);
        let shown: BTreeSet<FactId> = cited(&content).into_iter().collect();
        let facts = facts.into_iter().filter(|fact| shown.contains(&fact.id));
        Ok(SeenDefinition {
            facts: facts.map(|fact| (fact.id, fact.text)).collect(),
            retracted: Vec::new(),
            concept,
            content,
            method: TextMethod::Extractive,
            written: None,
            versions,
            diff: None,
        })
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
        if !concept_summaries::is_named_covered(&mut tx, repository, &concept.name_key, true).await? {
            return Err(Error::Conflict(NO_SUMMARIES));
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

    /// Texts about a concept, each of the facts that say most of some. Their vectors are asked for all at once.
    async fn outlined(
        &self,
        scope: &RepoAccess,
        of: &Concept,
        parts: Vec<Vec<SliceFact>>,
    ) -> Result<Vec<String>> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let vectors = self.vectors_of(scope, parts.iter().flatten()).await;
        let name = of.canonical_name.clone();
        let made = tokio::task::spawn_blocking(move || {
            let text = |facts: Vec<SliceFact>| {
                let weighed: Vec<Outlined<'_>> = facts
                    .iter()
                    .map(|fact| Outlined {
                        id: fact.id,
                        text: &fact.text,
                        sources: u32::try_from(fact.source_count).unwrap_or(0),
                        vector: vectors.get(&fact.id.uuid()).map(Vec::as_slice),
                    })
                    .collect();
                outline_text(&weighed, &outline(&name, &weighed, SHOWN))
            };
            parts.into_iter().map(text).collect()
        });
        made.await.map_err(Error::internal)
    }

    /// As far as they are there and come in time.
    async fn vectors_of(
        &self,
        scope: &RepoAccess,
        facts: impl Iterator<Item = &SliceFact>,
    ) -> HashMap<Uuid, Vec<f32>> {
        let Some(vectors) = self.vectors() else { return HashMap::new() };
        let Ok(Some(space)) = self.ai().current_space(SpaceKind::Facts).await else { return HashMap::new() };
        let ids: Vec<Uuid> = facts.map(|fact| fact.id.uuid()).collect();
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

/// What the text of a slice says of facts that it has now.
fn holding(slice: &Slice) -> String {
    if slice.is_current {
        return slice.content.clone();
    }
    let facts: BTreeSet<FactId> = slice.facts.iter().copied().collect();
    only_citing(&slice.content, |fact| facts.contains(&fact))
}

fn seen_slice(slice: Slice, content: String, method: TextMethod) -> SeenSlice {
    SeenSlice {
        id: Some(slice.id),
        number: slice.number,
        is_open: slice.is_open,
        content,
        method,
        facts: slice.facts,
        retracted: Vec::new(),
        is_current: slice.is_current,
        dropped: slice.dropped,
        model: slice.model,
        promptset_hash: slice.promptset_hash,
        written_at: slice.written_at,
        failure: slice.failure,
    }
}

/// The facts of all concepts of a name that the most sources state, as many of each, each once.
async fn of_name(conn: &mut Connection, scope: &RepoAccess, name: &str) -> Result<Vec<SliceFact>> {
    let names = [name.to_owned()];
    let mut contexts = concepts::list_contexts(conn, scope.repository(), &names, CONTEXTS).await?;
    let contexts = contexts.remove(name).unwrap_or_default();
    let each = WEIGHED / i64::try_from(contexts.len()).unwrap_or(1).max(1);
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for context in contexts {
        let Some(concept) = concepts::get(conn, scope.repository(), context.id).await? else { continue };
        let facts = concepts::list_strongest_facts(conn, scope.repository(), concept.no, each).await?;
        found.extend(facts.into_iter().filter(|fact| seen.insert(fact.no)));
    }
    Ok(found)
}
