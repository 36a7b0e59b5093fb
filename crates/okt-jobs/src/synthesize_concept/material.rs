//! What a definition is made of.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use okt_extract::summaries::{
    Candidate, InContext, Known, Material, Offered, Related, RelatedSynthesis, citations, only_citing,
};
use okt_extract::{Phase, Promptset};
use okt_model::{
    Concept, ConceptId, ContentHash, FactId, ImageId, Relation, RelationBands, SourceId, name_key,
};
use okt_queue::{JobContext, JobError};
use okt_store::concept_relations::{self, STRONGEST};
use okt_store::concept_summaries::{self, NamedSlice, SliceFact};
use okt_store::concept_syntheses::{self, CoveredImage};
use okt_store::fact_contradictions;
use sha2::{Digest, Sha256};

use crate::Tools;

/// Slices that are read at most: those whose facts have the most sources.
const MOST_SLICES: usize = 60;
/// Contradictions that are shown at most.
const MOST_PAIRS: usize = 40;

/// Everything that a definition of a name may be made of.
pub(super) struct Gathered {
    pub(super) slices: Vec<NamedSlice>,
    /// That may be cited: those that a slice cites, and both sides of each contradiction.
    facts: Vec<SliceFact>,
    /// As places in `facts`.
    contradictions: Vec<(usize, usize)>,
    pub(super) images: Vec<CoveredImage>,
    related: Vec<Relation>,
    /// Of related names, the strongest first.
    syntheses: Vec<(String, String)>,
}

impl Gathered {
    pub(super) async fn read(ctx: &JobContext, tools: &Tools, concept: &Concept) -> Result<Self, JobError> {
        let (repository, settings) = (ctx.repository(), &tools.config().providers.synthesis);
        let mut tx = ctx.checkpoint().await?;
        let slices = concept_summaries::list_named(&mut tx, repository, &concept.name_key).await?;
        let slices = strongest(holding(slices));
        let covered: BTreeMap<i64, &SliceFact> =
            slices.iter().flat_map(|slice| &slice.facts).map(|fact| (fact.no, fact)).collect();
        let numbers: Vec<i64> = covered.keys().copied().collect();
        let mut pairs = fact_contradictions::list_among(&mut tx, repository, &numbers).await?;
        pairs.truncate(MOST_PAIRS);
        let cited: BTreeSet<FactId> =
            slices.iter().flat_map(|slice| citations(&slice.content)).map(|citation| citation.fact).collect();
        let paired: BTreeSet<i64> = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
        let facts: Vec<SliceFact> = covered
            .into_values()
            .filter(|fact| cited.contains(&fact.id) || paired.contains(&fact.no))
            .cloned()
            .collect();
        let place = |no: i64| facts.iter().position(|fact| fact.no == no);
        let contradictions =
            pairs.iter().filter_map(|(one, other)| Some((place(*one)?, place(*other)?))).collect();
        let images = if settings.max_images == 0 {
            Vec::new()
        } else {
            let most = i64::from(settings.max_image_candidates);
            concept_syntheses::list_images(&mut tx, repository, &numbers, most).await?
        };
        let limits = &tools.config().concepts;
        let bands = RelationBands {
            weak: i64::from(limits.min_shared_fact_count),
            stable: i64::from(limits.stable_shared_fact_count),
        };
        // One of the same name is not another thing.
        let most = i64::from(settings.max_related_concepts);
        let least = (bands.weak.max(1), 0);
        let mut related =
            concept_relations::list(&mut tx, repository, concept.no, bands, least, STRONGEST, most).await?;
        related.retain(|other| name_key(&other.canonical_name) != concept.name_key);
        let names: Vec<String> = related.iter().map(|other| name_key(&other.canonical_name)).collect();
        let mut latest = concept_syntheses::list_latest(&mut tx, repository, &names).await?;
        tx.commit().await?;
        let most = usize::try_from(settings.max_related_syntheses).unwrap_or(usize::MAX);
        let syntheses = related
            .iter()
            .filter_map(|other| {
                let text = latest.remove(&name_key(&other.canonical_name))?;
                Some((other.canonical_name.clone(), text))
            })
            .take(most)
            .collect();
        Ok(Self { slices, facts, contradictions, images, related, syntheses })
    }

    /// Of what it covers. What is said of related concepts is not in it: one text would change the next one, and so on.
    pub(super) fn hash(&self, concept: &Concept, model: &str, promptset: &Promptset) -> ContentHash {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        };
        add(concept.canonical_name.as_bytes());
        add(model.as_bytes());
        add(promptset.text(Phase::Synthesis).as_bytes());
        for slice in &self.slices {
            add(slice.context.as_bytes());
            add(slice.content.as_bytes());
        }
        for (one, other) in &self.contradictions {
            add(self.facts[*one].id.uuid().as_bytes());
            add(self.facts[*other].id.uuid().as_bytes());
        }
        for image in &self.images {
            add(image.image.uuid().as_bytes());
        }
        ContentHash(hash.finalize().into())
    }

    pub(super) fn candidates(&self) -> Vec<Candidate<'_>> {
        let all = self.images.iter();
        all.map(|image| Candidate { fact: &image.fact_text, caption: image.alt_text.as_deref() }).collect()
    }

    /// Keeps these, in this order.
    pub(super) fn keep_images(&mut self, picked: &[usize]) {
        self.images = picked.iter().filter_map(|at| self.images.get(*at).cloned()).collect();
    }

    pub(super) fn image(&self, at: usize) -> (SourceId, ImageId) {
        (self.images[at].source, self.images[at].image)
    }

    /// The concepts whose slices are read, each once.
    pub(super) fn concepts(&self) -> Vec<ConceptId> {
        let all: BTreeSet<ConceptId> = self.slices.iter().map(|slice| slice.concept).collect();
        all.into_iter().collect()
    }

    pub(super) fn parts(&self) -> Parts<'_> {
        let mut texts: Vec<(&str, Vec<&str>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for slice in &self.slices {
            let at = *places.entry(&slice.context).or_insert_with(|| {
                texts.push((&slice.context, Vec::new()));
                texts.len() - 1
            });
            texts[at].1.push(&slice.content);
        }
        let known = self.facts.iter().map(|fact| Known {
            id: fact.id,
            text: &fact.text,
            sources: u32::try_from(fact.source_count).unwrap_or(0),
        });
        let related = self.related.iter().map(|other| Related {
            name: &other.canonical_name,
            context: &other.context,
            shared_facts: u32::try_from(other.shared_fact_count).unwrap_or(u32::MAX),
        });
        let syntheses = self.syntheses.iter().map(|(name, content)| RelatedSynthesis { name, content });
        let images = self.images.iter().map(|image| Offered {
            id: image.image,
            description: image
                .alt_text
                .as_deref()
                .filter(|text| !text.is_empty())
                .unwrap_or(&image.fact_text),
        });
        Parts {
            texts,
            known: known.collect(),
            contradictions: &self.contradictions,
            related: related.collect(),
            syntheses: syntheses.collect(),
            images: images.collect(),
        }
    }
}

/// The same as it is shown to a model.
pub(super) struct Parts<'g> {
    texts: Vec<(&'g str, Vec<&'g str>)>,
    known: Vec<Known<'g>>,
    contradictions: &'g [(usize, usize)],
    related: Vec<Related<'g>>,
    syntheses: Vec<RelatedSynthesis<'g>>,
    images: Vec<Offered<'g>>,
}

impl Parts<'_> {
    pub(super) fn contexts(&self) -> Vec<InContext<'_>> {
        self.texts.iter().map(|(context, texts)| InContext { context, texts }).collect()
    }

    pub(super) fn material<'m>(&'m self, name: &'m str, contexts: &'m [InContext<'m>]) -> Material<'m> {
        Material {
            name,
            contexts,
            facts: &self.known,
            related: &self.related,
            syntheses: &self.syntheses,
            contradictions: self.contradictions,
            images: &self.images,
        }
    }
}

/// What their texts say of facts that they still have; without those that say nothing.
fn holding(mut slices: Vec<NamedSlice>) -> Vec<NamedSlice> {
    for slice in &mut slices {
        slice.content = only_citing(&slice.content, |id| slice.facts.iter().any(|fact| fact.id == id));
    }
    slices.retain(|slice| !slice.content.is_empty());
    slices
}

/// Those whose facts have the most sources, in the order in which they were.
fn strongest(slices: Vec<NamedSlice>) -> Vec<NamedSlice> {
    let weight =
        |slice: &NamedSlice| slice.facts.iter().map(|fact| i64::from(fact.source_count)).sum::<i64>();
    let mut order: Vec<usize> = (0..slices.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(weight(&slices[*at])), *at));
    let kept: BTreeSet<usize> = order.into_iter().take(MOST_SLICES).collect();
    slices.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, slice)| slice).collect()
}
