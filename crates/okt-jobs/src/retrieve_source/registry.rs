//! What a registry has of a source, taken in place of fetching the source and of asking a model.
//!
//! A source never fails for a registry: whatever is wrong with one or with its package is logged, and the source is fetched.

mod vectors;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use okt_extract::{Promptset, concepts};
use okt_interchange::package::Package;
use okt_model::{
    CATCH_ALL_CONTEXT, CleanupFacts, ConceptExtraction, ContentHash, EmbedConcepts, EmbedFacts,
    EmbeddingSpace, Error, ExtractConcepts, Extraction, FactKind, FactStatus, IndexSource, JobId,
    MOST_CONTEXTS, Payload, Progress, RefreshConceptRelations, RegistryOrigin, RepositorySettings, Result,
    Source, SourceStatus, UnmappedContexts, content_hash, name_key, parse_date,
};
use okt_parse::Kind;
use okt_providers::registry::{Admission, Names, Registry, RegistryError, RegistrySource};
use okt_queue::{Finished, JobContext, JobError};
use okt_store::outbox::{self, When};
use okt_store::packages::{self, About, Import, ImportedConcept, ImportedFact, ImportedSummary};
use okt_store::{
    Connection, concepts as stored_concepts, contexts, promptsets, registry_trust, repository_settings,
    search_units, sources,
};
use okt_vectors::Vectors;
use uuid::Uuid;

use crate::Tools;
use crate::deduplicate_facts::CLEANUP_MS;
use crate::embed_facts::current;
use crate::registries::storable;
use vectors::{Kept, keep};

/// A package that is right, and is admitted.
pub(crate) struct Hit {
    package: Package,
    about: RegistrySource,
    origin: RegistryOrigin,
}

/// Asks the registry that the repository uses.
pub(super) async fn look_up(ctx: &JobContext, tools: &Tools, source: &Source) -> Result<Option<Hit>> {
    let Some(registries) = tools.registries() else { return Ok(None) };
    let mut conn = ctx.databases().acquire_system().await?;
    let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
    let revoked = registry_trust::list_revoked(&mut conn).await?;
    drop(conn);
    let Some(registry) = registries.get(settings.registry_id.as_deref()) else { return Ok(None) };
    ctx.progress(Progress { stage: "registry".to_owned(), ..Progress::default() });
    let asking = Asking { registry, settings: &settings, revoked: &revoked };
    match asking.ask(tools, source).await {
        Ok(hit) => Ok(hit),
        Err(error) => {
            let is_resting = matches!(error, RegistryError::Resting { .. } | RegistryError::Unwanted { .. });
            let (registry, error) = (registry.id(), &error as &dyn std::error::Error);
            if is_resting {
                tracing::debug!(registry, error, "the registry is not asked; the source is fetched");
            } else {
                tracing::warn!(registry, error, "failed to use the registry; the source is fetched");
            }
            Ok(None)
        }
    }
}

/// Who is asked, and for whom.
pub(crate) struct Asking<'a> {
    pub registry: &'a Registry,
    pub settings: &'a RepositorySettings,
    pub revoked: &'a [String],
}

impl Asking<'_> {
    pub(crate) async fn ask(&self, tools: &Tools, source: &Source) -> Result<Option<Hit>, RegistryError> {
        let registry = self.registry;
        let names = Names { url: Some(source.url.clone()), doi: source.doi.clone(), sha256: None };
        let default = Promptset::builtin().registry_hash().to_string();
        let admission = Admission::new(registry, self.settings, &default, self.revoked);
        let model = tools.ai().current_space(okt_model::SpaceKind::Facts).await.ok().flatten();
        let model = model.map(|space| space.model);
        let pulled = registry.look_up(&names, |found| admission.choose(found, model.as_deref()).cloned());
        let Some(pulled) = pulled.await? else { return Ok(None) };
        let unwanted = |reason| RegistryError::Unwanted { registry: registry.id().to_owned(), reason };
        if let Some(reason) = admission.refuses_origin(pulled.key_id.as_deref(), pulled.pushed_by.as_deref())
        {
            return Err(unwanted(reason));
        }
        let refused = |refused| RegistryError::Package { registry: registry.id().to_owned(), refused };
        let body = pulled.body;
        let parsed = tokio::task::spawn_blocking(move || Package::parse(&body)).await;
        let package = parsed
            .map_err(|error| RegistryError::Failed {
                registry: registry.id().to_owned(),
                cause: error.into(),
            })?
            .map_err(refused)?;
        // What the list says of a package need not be what the package says.
        if let Some(reason) = admission.refuses(&package.model_id, &package.promptset_hash) {
            return Err(unwanted(reason));
        }
        // One without facts saves nobody anything.
        if package.facts.is_empty() {
            return Err(unwanted("it has no facts"));
        }
        let origin = RegistryOrigin {
            registry: registry.id().to_owned(),
            source_id: storable(&pulled.source.source_id),
            decomposed_by: package.decomposed_by.clone(),
            decomposed_at: package.decomposed_at.clone(),
            package_sha256: ContentHash(pulled.sha256).to_string(),
            key_id: pulled.key_id,
            pushed_by: pulled.pushed_by.as_deref().map(storable),
            has_concepts: !package.concepts.is_empty(),
        };
        Ok(Some(Hit { package, about: pulled.source, origin }))
    }
}

/// Takes it in. `None` where the source is to be fetched after all.
pub(super) async fn import(
    ctx: &JobContext,
    tools: &Tools,
    source: &Source,
    hit: &Hit,
) -> Result<Option<Finished>, JobError> {
    let ready = Ready::of(ctx, tools, source, hit).await?;
    let mut tx = ctx.begin().await?;
    let Some(output) = ready.apply(&mut tx, ctx, tools, hit).await? else {
        drop(tx);
        return Ok(None);
    };
    Ok(Some(tx.commit(Some(output)).await?))
}

/// Takes it in for a source that another job has given up; false if the source is being worked on, or gone.
pub(crate) async fn import_failed(
    ctx: &JobContext,
    tools: &Tools,
    source: &Source,
    hit: &Hit,
) -> Result<bool, JobError> {
    let ready = Ready::of(ctx, tools, source, hit).await?;
    let mut tx = ctx.checkpoint().await?;
    let held = sources::hold(&mut tx, ctx.repository(), source.id).await?;
    if held.is_none_or(|(status, _)| status != SourceStatus::Failed)
        || !sources::hand_over(&mut tx, ctx.repository(), source.id, ctx.id(), SourceStatus::Fetching).await?
        || ready.apply(&mut tx, ctx, tools, hit).await?.is_none()
    {
        return Ok(false);
    }
    tx.commit().await?;
    Ok(true)
}

/// A package whose vectors are stored, and whose rows can be.
struct Ready {
    import: Import,
    vectors: Kept,
}

impl Ready {
    async fn of(ctx: &JobContext, tools: &Tools, source: &Source, hit: &Hit) -> Result<Self, JobError> {
        let places = Places::read(ctx, tools, &hit.package).await?;
        let mut import = places.import(ctx, source, hit);
        import.status = if tools.vectors().is_some() { FactStatus::New } else { FactStatus::Stable };
        let vectors = keep(ctx, &places, &hit.package, &mut import).await;
        Ok(Self { import, vectors })
    }

    /// The rows, and the jobs that go on with them; what came of it. `None` if the source is not ours.
    async fn apply(
        &self,
        conn: &mut Connection,
        ctx: &JobContext,
        tools: &Tools,
        hit: &Hit,
    ) -> Result<Option<serde_json::Value>, JobError> {
        let (repository, id, vectors) = (ctx.repository(), self.import.source, &self.vectors);
        let Some(imported) = packages::import(conn, repository, &self.import).await? else { return Ok(None) };
        search_units::note_unread(conn, repository, id).await?;
        push(conn, ctx, &IndexSource::of(id), 0).await?;
        if tools.vectors().is_some() {
            // It finds the vectors that came along, and asks for the others.
            push(conn, ctx, &EmbedFacts { source: Some(id) }, 0).await?;
            push(conn, ctx, &CleanupFacts { soon: false }, CLEANUP_MS).await?;
        } else if !hit.origin.has_concepts
            && tools.config().providers.decomposition.concept_extraction.is_on()
        {
            push(conn, ctx, &ExtractConcepts { source: id }, 0).await?;
        }
        if hit.origin.has_concepts {
            push(conn, ctx, &RefreshConceptRelations {}, 0).await?;
            if tools.vectors().is_some() && !vectors.all_concepts {
                push(conn, ctx, &EmbedConcepts { source: Some(id), concepts: Vec::new() }, 0).await?;
            }
        }
        Ok(Some(serde_json::json!({
            "status": "processed", "registry": hit.origin.registry, "model": hit.package.model_id,
            "facts": imported.facts_new, "facts_linked": imported.facts_linked, "concepts": imported.concepts_new,
            "links": imported.links, "summaries": imported.summaries,
            "vectors": { "facts": vectors.facts, "concepts": vectors.concepts },
        })))
    }
}

async fn push<P: Payload>(
    conn: &mut Connection,
    ctx: &JobContext,
    payload: &P,
    delay_ms: i64,
) -> Result<(), JobError> {
    let when = When { delay_ms, ..When::default() };
    outbox::push_after(conn, ctx.repository(), JobId::mint(), payload, when, Some(ctx.id())).await?;
    Ok(())
}

/// What the repository has already of a package, and how it files what it has not.
struct Places {
    /// Labels of its contexts, by the keys that names are compared by.
    contexts: BTreeMap<String, String>,
    unmapped: UnmappedContexts,
    reader: i64,
    /// Facts whose ids or texts are there.
    taken: HashSet<Uuid>,
    /// Concepts that are there, by their place in the package.
    known: Vec<bool>,
    space: Option<(EmbeddingSpace, Vectors)>,
}

impl Places {
    async fn read(ctx: &JobContext, tools: &Tools, package: &Package) -> Result<Self, JobError> {
        let mut conn = ctx.databases().acquire_system().await?;
        let settings = repository_settings::find(&mut conn, ctx.repository()).await?.unwrap_or_default();
        let used = promptsets::find_used(&mut conn, ctx.repository()).await?;
        drop(conn);
        let promptset = Promptset::of(used.as_ref()).map_err(Error::internal)?;
        let model = &tools.config().providers.decomposition.concept_extraction.model;
        let own = model == concepts::MODEL;
        let hash = if own { concepts::promptset_hash() } else { promptset.registry_hash() };
        let mut tx = ctx.read().await?;
        let labels = contexts::list(&mut tx, ctx.repository()).await?;
        let facts: Vec<(Uuid, ContentHash)> =
            package.facts.iter().map(|fact| (fact.id, content_hash(&fact.content))).collect();
        let taken = packages::list_taken(&mut tx, ctx.repository(), &facts).await?;
        let names: Vec<(&str, &str)> =
            package.concepts.iter().map(|one| (one.canonical_name.as_str(), one.context.as_str())).collect();
        let known = stored_concepts::find(&mut tx, ctx.repository(), &names).await?;
        tx.commit().await?;
        Ok(Self {
            contexts: labels.into_iter().map(|context| (name_key(&context.label), context.label)).collect(),
            unmapped: settings.unmapped_contexts,
            reader: concepts::reader(model, hash),
            taken: taken.into_iter().collect(),
            known: known.iter().map(Option::is_some).collect(),
            space: current(tools).await?,
        })
    }

    /// The label under which a concept is filed, and whether that is another one than its own. `None` where the repository wants
    /// none of such a label.
    fn label(
        &self,
        label: &str,
        added: &mut BTreeMap<String, (String, Option<String>)>,
        class: &str,
    ) -> Option<(String, bool)> {
        let key = name_key(label);
        if let Some(label) = self.contexts.get(&key) {
            return Some((label.clone(), false));
        }
        let most = usize::try_from(MOST_CONTEXTS).unwrap_or(usize::MAX);
        let is_free = added.contains_key(&key) || self.contexts.len() + added.len() < most;
        let (key, label, class, is_other) = match self.unmapped {
            UnmappedContexts::Skip => return None,
            UnmappedContexts::Add if is_free => (key, label.trim(), class, false),
            UnmappedContexts::Add | UnmappedContexts::CatchAll => {
                let key = name_key(CATCH_ALL_CONTEXT);
                if let Some(label) = self.contexts.get(&key) {
                    return Some((label.clone(), true));
                }
                (key, CATCH_ALL_CONTEXT, "", true)
            }
        };
        let class = Some(class.to_owned()).filter(|class| !class.is_empty());
        let (label, _) = added.entry(key).or_insert_with(|| (label.to_owned(), class));
        Some((label.clone(), is_other))
    }

    fn import(&self, ctx: &JobContext, source: &Source, hit: &Hit) -> Import {
        let package = &hit.package;
        let mut added = BTreeMap::new();
        let (mut kept, mut place_of) = (Vec::new(), HashMap::new());
        for concept in &package.concepts {
            let Some((context, is_other)) = self.label(&concept.context, &mut added, &concept.ontology_class)
            else {
                continue;
            };
            place_of.insert(concept.id, kept.len());
            kept.push(ImportedConcept {
                id: concept.id,
                name: concept.canonical_name.clone(),
                context,
                unmapped_label: is_other.then(|| concept.context.clone()),
                aliases: concept.aliases.clone(),
                vector: None,
            });
        }
        let mut quotes = Quotes::default();
        let mut facts: BTreeMap<ContentHash, ImportedFact> = BTreeMap::new();
        let mut order = Vec::new();
        for fact in &package.facts {
            let hash = content_hash(&fact.content);
            let sentences = quotes.add(&fact.source_text);
            let concepts = fact.concept_ids.iter().filter_map(|id| place_of.get(id).copied());
            // Two of one hash are one fact.
            if let Some(same) = facts.get_mut(&hash) {
                same.concepts.extend(concepts);
                same.sentences.extend(sentences);
                continue;
            }
            order.push(hash);
            let kind = if fact.image_id.is_empty() { FactKind::Text } else { FactKind::Image };
            let (id, text) = (fact.id, fact.content.clone());
            facts
                .insert(hash, ImportedFact { id, text, hash, kind, sentences, concepts: concepts.collect() });
        }
        let mut facts: Vec<ImportedFact> = order.iter().filter_map(|hash| facts.remove(hash)).collect();
        for fact in &mut facts {
            fact.sentences.sort_unstable();
            fact.sentences.dedup();
        }
        let summaries = package.summaries().iter().filter_map(|summary| {
            Some(ImportedSummary {
                id: summary.id,
                concept: *place_of.get(&summary.concept_id)?,
                content: summary.content.clone(),
                facts: summary.fact_ids.clone(),
            })
        });
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let sentences = number(quotes.places.len());
        let links = number(facts.iter().map(|fact| fact.concepts.len()).sum());
        let concepts = hit.origin.has_concepts.then(|| ConceptExtraction {
            model: package.model_id.clone(),
            promptset_hash: package.promptset_hash.clone(),
            facts: number(facts.len()),
            links,
            skipped: BTreeMap::new(),
            failed: 0,
            failure: None,
        });
        Import {
            source: source.id,
            job: ctx.id(),
            about: about(&hit.about),
            extraction: Extraction {
                model: package.model_id.clone(),
                promptset_hash: package.promptset_hash.to_lowercase(),
                sentences,
                cited_sentences: sentences,
                concepts,
                registry: Some(hit.origin.clone()),
                ..Extraction::default()
            },
            registry_source: hit.origin.source_id.clone(),
            cost: package.cost,
            promptset: package.promptset_hash.to_lowercase().parse().ok(),
            summaries: summaries.collect(),
            text: quotes.text,
            sentences: quotes.places,
            segmenter: "registry".to_owned(),
            concepts: kept,
            facts,
            contexts: added.into_values().collect(),
            status: FactStatus::New,
            reader: hit.origin.has_concepts.then_some(self.reader),
            space: None,
        }
    }
}

/// What a registry says of a source, as far as it can be stored.
fn about(told: &RegistrySource) -> About {
    let filled = |text: &Option<String>, most: usize| {
        let text = text.as_deref()?.replace('\0', "");
        let text: String = text.trim().chars().take(most).collect();
        Some(text).filter(|text| !text.is_empty())
    };
    About {
        title: filled(&told.title, 500),
        author: filled(&told.author, 500),
        kind: told.kind.clone().filter(|kind| Kind::READ.iter().any(|read| read.as_str() == kind)),
        language: filled(&told.language, 20),
        published_at: told.published_at.as_deref().and_then(parse_date),
    }
}

/// The quoted sentences of a source as a text of their own: one on each line, each once.
#[derive(Default)]
struct Quotes {
    text: String,
    /// In code points.
    length: i32,
    places: Vec<(i32, i32)>,
    known: HashMap<String, i32>,
}

impl Quotes {
    /// The places of these lines.
    fn add(&mut self, lines: &str) -> Vec<i32> {
        let sentences: BTreeSet<i32> = lines
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| self.place(line))
            .collect();
        sentences.into_iter().collect()
    }

    fn place(&mut self, sentence: &str) -> i32 {
        if let Some(place) = self.known.get(sentence) {
            return *place;
        }
        let place = i32::try_from(self.places.len()).unwrap_or(i32::MAX);
        if place > 0 {
            self.text.push('\n');
            self.length += 1;
        }
        let start = self.length;
        self.text.push_str(sentence);
        self.length += i32::try_from(sentence.chars().count()).unwrap_or(i32::MAX);
        self.places.push((start, self.length));
        self.known.insert(sentence.to_owned(), place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_sentences_become_a_text_with_each_of_them_once() {
        let mut quotes = Quotes::default();
        assert_eq!(quotes.add("Möwen nisten.\n Terns too. \n"), [0, 1]);
        assert_eq!(quotes.add("Terns too.\n\nBoth fly."), [1, 2]);
        assert_eq!(quotes.add(""), [] as [i32; 0]);
        assert_eq!(quotes.text, "Möwen nisten.\nTerns too.\nBoth fly.");
        assert_eq!(quotes.places, [(0, 13), (14, 24), (25, 34)]);
    }
}
