//! What a definition of a name is made of, and what is asked about it: for whoever writes it, and whoever estimates the cost.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use okt_config::{Config, Synthesis};
use okt_extract::summaries::{
    Candidate, InContext, Known, Material, Offered, Related, RelatedSynthesis, citations, only_citing,
    picker_question, synthesis_question,
};
use okt_extract::{Phase, Promptset, Question};
use okt_model::{
    Concept, ConceptId, ContentHash, FactId, ImageId, Relation, RelationBands, RepositoryId, Result,
    SourceId, name_key,
};
use okt_store::concept_relations::{self, STRONGEST};
use okt_store::concept_summaries::{self, NamedSlice, SliceFact};
use okt_store::concept_syntheses::{self, CoveredImage};
use okt_store::{Connection, fact_contradictions};
use sha2::{Digest, Sha256};

/// Slices that are read at most: those whose facts have the most sources.
const MOST_SLICES: i64 = 60;
/// Contradictions that are shown at most. Facts of others can't be cited.
const MOST_PAIRS: usize = 40;

/// Everything that a definition of a name may be made of.
pub struct Gathered {
    pub slices: Vec<NamedSlice>,
    /// That may be cited: those that a slice cites, and both sides of each contradiction that is shown.
    facts: Vec<SliceFact>,
    /// As places in `facts`.
    contradictions: Vec<(usize, usize)>,
    pub images: Vec<CoveredImage>,
    related: Vec<Relation>,
    /// Of related names, the strongest first.
    syntheses: Vec<(String, String)>,
}

impl Gathered {
    pub async fn read(
        conn: &mut Connection,
        config: &Config,
        repository: RepositoryId,
        concept: &Concept,
    ) -> Result<Self> {
        let settings = &config.providers.synthesis;
        let slices = concept_summaries::list_named(conn, repository, &concept.name_key, MOST_SLICES).await?;
        let slices = holding(slices);
        let covered: BTreeMap<i64, &SliceFact> =
            slices.iter().flat_map(|slice| &slice.facts).map(|fact| (fact.no, fact)).collect();
        let numbers: Vec<i64> = covered.keys().copied().collect();
        let pairs = fact_contradictions::list_among(conn, repository, &numbers).await?;
        let (pairs, hidden) = shown(pairs, MOST_PAIRS);
        let cited: BTreeSet<FactId> =
            slices.iter().flat_map(|slice| citations(&slice.content)).map(|citation| citation.fact).collect();
        let paired: BTreeSet<i64> = pairs.iter().flat_map(|(one, other)| [*one, *other]).collect();
        let facts: Vec<SliceFact> = covered
            .into_values()
            .filter(|fact| cited.contains(&fact.id) || paired.contains(&fact.no))
            .filter(|fact| !hidden.contains(&fact.no))
            .cloned()
            .collect();
        let place = |no: i64| facts.iter().position(|fact| fact.no == no);
        let contradictions =
            pairs.iter().filter_map(|(one, other)| Some((place(*one)?, place(*other)?))).collect();
        let images = if settings.max_images == 0 {
            Vec::new()
        } else {
            let most = i64::from(settings.max_image_candidates);
            concept_syntheses::list_images(conn, repository, &numbers, most).await?
        };
        let limits = &config.concepts;
        let bands = RelationBands {
            weak: i64::from(limits.min_shared_fact_count),
            stable: i64::from(limits.stable_shared_fact_count),
        };
        // One of the same name is not another thing.
        let most = i64::from(settings.max_related_concepts);
        let least = (bands.weak.max(1), 0);
        let mut related =
            concept_relations::list(conn, repository, concept.no, bands, least, STRONGEST, most).await?;
        related.retain(|other| name_key(&other.canonical_name) != concept.name_key);
        let names: Vec<String> = related.iter().map(|other| name_key(&other.canonical_name)).collect();
        let mut latest = concept_syntheses::list_latest(conn, repository, &names).await?;
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
    pub fn hash(&self, concept: &Concept, model: &str, promptset: &Promptset) -> ContentHash {
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

    /// Asks which of its images show a concept best; `None` if all of them may be shown.
    pub fn picking(&self, promptset: &Promptset, name: &str, most: usize) -> Option<Question> {
        let candidates: Vec<Candidate<'_>> = self
            .images
            .iter()
            .map(|image| Candidate { fact: &image.fact_text, caption: image.alt_text.as_deref() })
            .collect();
        (candidates.len() > most).then(|| picker_question(promptset, name, &candidates, most))
    }

    /// Keeps these, in this order.
    pub fn keep_images(&mut self, picked: &[usize]) {
        self.images = picked.iter().filter_map(|at| self.images.get(*at).cloned()).collect();
    }

    pub fn image(&self, at: usize) -> (SourceId, ImageId) {
        (self.images[at].source, self.images[at].image)
    }

    /// The concepts whose slices are read, each once.
    pub fn concepts(&self) -> Vec<ConceptId> {
        let all: BTreeSet<ConceptId> = self.slices.iter().map(|slice| slice.concept).collect();
        all.into_iter().collect()
    }

    pub fn parts(&self) -> Parts<'_> {
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
pub struct Parts<'g> {
    texts: Vec<(&'g str, Vec<&'g str>)>,
    known: Vec<Known<'g>>,
    contradictions: &'g [(usize, usize)],
    related: Vec<Related<'g>>,
    syntheses: Vec<RelatedSynthesis<'g>>,
    images: Vec<Offered<'g>>,
}

impl Parts<'_> {
    /// Asks for the definition.
    pub fn question(&self, promptset: &Promptset, name: &str, settings: &Synthesis) -> Question {
        let contexts = self.contexts();
        let question = synthesis_question(promptset, &self.material(name, &contexts), settings.max_tokens);
        question.thinking(settings.thinking_level.as_str())
    }

    pub fn contexts(&self) -> Vec<InContext<'_>> {
        self.texts.iter().map(|(context, texts)| InContext { context, texts }).collect()
    }

    pub fn material<'m>(&'m self, name: &'m str, contexts: &'m [InContext<'m>]) -> Material<'m> {
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

/// The contradictions that are shown, and the facts of all others. What hangs together by contradictions is shown as a whole or
/// not at all: a fact that may be cited never lacks its other side.
fn shown(pairs: Vec<(i64, i64)>, most: usize) -> (Vec<(i64, i64)>, BTreeSet<i64>) {
    let mut others: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (one, other) in &pairs {
        others.entry(*one).or_default().push(*other);
        others.entry(*other).or_default().push(*one);
    }
    let (mut kept, mut hidden, mut seen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut count = 0;
    for first in others.keys() {
        let (mut whole, mut open) = (BTreeSet::new(), vec![*first]);
        while let Some(fact) = open.pop() {
            if seen.insert(fact) {
                whole.insert(fact);
                open.extend(others.get(&fact).into_iter().flatten());
            }
        }
        let inside = pairs.iter().filter(|(one, _)| whole.contains(one)).count();
        if count + inside <= most {
            count += inside;
            kept.extend(whole);
        } else {
            hidden.extend(whole);
        }
    }
    let pairs = pairs.into_iter().filter(|(one, _)| kept.contains(one)).collect();
    (pairs, hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_together_is_shown_as_a_whole_or_not_at_all() {
        let pairs = vec![(1, 2), (2, 3), (4, 5), (6, 7), (7, 8)];
        assert_eq!(shown(pairs.clone(), 5), (pairs.clone(), BTreeSet::new()));
        assert_eq!(shown(pairs.clone(), 3), (pairs[..3].to_vec(), BTreeSet::from([6, 7, 8])));
        // One that is small fits where a large one did not.
        assert_eq!(shown(pairs.clone(), 1), (vec![(4, 5)], BTreeSet::from([1, 2, 3, 6, 7, 8])));
        assert_eq!(shown(pairs, 0).1.len(), 8);
        assert_eq!(shown(Vec::new(), 9), (Vec::new(), BTreeSet::new()));
    }
}
