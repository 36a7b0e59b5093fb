//! How a package becomes rows: what the repository has already of it, and how it files what it has not.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use okt_extract::{Promptset, concepts};
use okt_interchange::package::Package;
use okt_model::{
    CATCH_ALL_CONTEXT, ConceptExtraction, ContentHash, EmbeddingSpace, Error, Extraction, FactKind,
    FactStatus, MOST_CONTEXTS, Result, Source, SourceText, UnmappedContexts, content_hash, name_key,
    parse_date,
};
use okt_parse::Kind;
use okt_providers::registry::RegistrySource;
use okt_queue::{JobContext, JobError};
use okt_store::packages::{self, About, Import, ImportedConcept, ImportedFact, ImportedSummary};
use okt_store::{concepts as stored_concepts, contexts, promptsets, repository_settings, source_texts};
use okt_vectors::Vectors;
use uuid::Uuid;

use super::Hit;
use super::quotes::Quotes;
use crate::Tools;
use crate::embed_facts::current;

/// What the repository has already of a package, and how it files what it has not.
pub(super) struct Places {
    /// Labels of its contexts, by the keys that names are compared by.
    contexts: BTreeMap<String, String>,
    unmapped: UnmappedContexts,
    reader: i64,
    /// Facts whose ids or texts are there.
    pub(super) taken: HashSet<Uuid>,
    /// Concepts that are there, by their place in the package.
    pub(super) known: Vec<bool>,
    /// What was read of the source here: then quotes are looked for in it.
    text: Option<SourceText>,
    pub(super) space: Option<(EmbeddingSpace, Vectors)>,
}

impl Places {
    pub(super) async fn read(
        ctx: &JobContext,
        tools: &Tools,
        source: &Source,
        package: &Package,
    ) -> Result<Self, JobError> {
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
        let text = match source.body {
            Some(_) => source_texts::find(&mut tx, ctx.repository(), source.id).await?,
            None => None,
        };
        tx.commit().await?;
        Ok(Self {
            contexts: labels.into_iter().map(|context| (name_key(&context.label), context.label)).collect(),
            unmapped: settings.unmapped_contexts,
            reader: concepts::reader(model, hash),
            taken: taken.into_iter().collect(),
            known: known.iter().map(Option::is_some).collect(),
            text,
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

    pub(super) fn import(&self, ctx: &JobContext, source: &Source, hit: &Hit) -> Import {
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
        let mut quotes = self.text.as_ref().map(Quotes::of).unwrap_or_default();
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
        let cited: BTreeSet<i32> = facts.iter().flat_map(|fact| fact.sentences.iter().copied()).collect();
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
                sentences: number(
                    self.text.as_ref().map_or(quotes.places.len(), |text| text.sentences.len()),
                ),
                cited_sentences: number(cited.len()),
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
