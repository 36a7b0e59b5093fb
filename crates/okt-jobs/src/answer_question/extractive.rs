//! An answer without a model: the facts nearest to the question. And what says otherwise than the facts that are cited.

use std::collections::{BTreeMap, HashMap};

use chrono::Datelike as _;
use okt_check::{Candidates, Pair, Searching, Sentence};
use okt_extract::answers::{Candidate, extractive, is_near_question};
use okt_model::{
    AnswerEvent, AnswerSentence, CheckMethod, ConceptId, ContradictionState, DisagreeingFact, Evidence,
    EvidenceKind, EvidenceSource, FactId, FoundThrough, NamedConcept, Posture, Verdict, WhyExtractive,
};
use okt_store::answers::{self, FactQuote};
use okt_store::{fact_contradictions, fact_merges, source_marks};

use super::settled::Ending;
use super::{Answering, Stop};
use crate::embed_facts::current;

/// As many facts are shown.
const SHOWN: usize = 6;
/// Of a fact that is cited so many that are near it are held against the sentence.
const NEAR: usize = 5;
/// Facts that are shown beside a sentence because they say otherwise.
const MOST_DISAGREEING: usize = 5;
/// Candidate contradictions of a fact, and facts merged into it.
const CONTRADICTIONS: i64 = 20;
const MERGED: i64 = 100;

impl Answering<'_> {
    /// The facts that say most about the question and least twice, in groups.
    pub(super) async fn extractive(&self, why: Option<WhyExtractive>) -> Result<Ending, Stop> {
        let facts: Vec<&Evidence> = self
            .evidence
            .iter()
            .filter(|one| one.kind == EvidenceKind::Fact)
            .filter(|one| {
                let quote = one.around.as_deref().or(one.quote.as_deref()).unwrap_or_default();
                let title =
                    one.source.as_ref().and_then(|source| source.title.as_deref()).unwrap_or_default();
                // By what was asked: names of a conversation that were searched for as well are no question.
                is_near_question(&self.answer.question, &format!("{} {quote} {title}", one.text))
            })
            .collect();
        let candidates: Vec<Candidate<'_>> = facts
            .iter()
            .map(|one| Candidate {
                text: &one.text,
                score: one.score,
                source: one.source.as_ref().map(|source| source.id),
            })
            .collect();
        let group_of = |one: &Evidence| one.concepts.first().map(|concept| concept.id);
        let groups: Vec<Option<ConceptId>> = facts.iter().map(|one| group_of(one)).collect();
        let years: Vec<Option<i32>> = facts
            .iter()
            .map(|one| one.source.as_ref().and_then(|source| source.published_at).map(|day| day.year()))
            .collect();
        let shown = extractive(&candidates, &groups, &years, SHOWN);
        // An earlier run may have had other facts: what it has shown is known by its key.
        let before: Vec<String> = self.written.lock().await.iter().filter_map(keys_shown).collect();
        let next = u32::try_from(before.len()).unwrap_or(u32::MAX);
        let new = shown.iter().map(|at| facts[*at]).filter(|one| !before.contains(&one.key));
        for (index, one) in (next..).zip(new.take(SHOWN.saturating_sub(before.len()))) {
            let sentence = AnswerSentence {
                index,
                line: index,
                text: one.text.clone(),
                keys: vec![one.key.clone()],
                facts: one.fact.into_iter().collect(),
                verdict: Verdict::Supported,
                confidence: 1.0,
                method: CheckMethod::Rule,
                group: one.concepts.first().cloned(),
                instead_of: None,
            };
            self.tell(AnswerEvent::Sentence(sentence)).await?;
        }
        self.disagreeing().await?;
        Ok(Ending { missing: None, why_extractive: why, by_model: false, abstain: false, broken: false })
    }

    /// Tells beside each sentence what says otherwise: known contradictions of the facts that it cites, and facts near these.
    pub(super) async fn disagreeing(&self) -> Result<(), Stop> {
        let events = self.written.lock().await.clone();
        let told: Vec<u32> = events
            .iter()
            .filter_map(|event| match event {
                AnswerEvent::Disagreeing { index, .. } => Some(*index),
                _ => None,
            })
            .collect();
        let sentences: Vec<AnswerSentence> = events
            .into_iter()
            .filter_map(|event| match event {
                AnswerEvent::Sentence(sentence) if !told.contains(&sentence.index) => Some(sentence),
                _ => None,
            })
            .collect();
        for sentence in sentences {
            let found = self.against(&sentence).await?;
            if !found.is_empty() {
                self.tell(AnswerEvent::Disagreeing { index: sentence.index, facts: found }).await?;
            }
        }
        Ok(())
    }

    async fn against(&self, sentence: &AnswerSentence) -> Result<Vec<DisagreeingFact>, Stop> {
        let cited: Vec<&Evidence> = sentence.keys.iter().filter_map(|key| self.find(key)).collect();
        let mut others: BTreeMap<i64, Other> = BTreeMap::new();
        for one in &cited {
            let (Some(fact), Some(no)) = (one.fact, one.fact_no) else { continue };
            for other in self.known_against(no).await? {
                others.entry(other.no).or_insert(Other { against: fact, ..other });
            }
            for other in self.near(one).await? {
                others.entry(other.no).or_insert(Other { against: fact, ..other });
            }
        }
        others.retain(|no, _| !cited.iter().any(|one| one.fact_no == Some(*no)));
        let others: Vec<Other> = others.into_values().collect();
        let language = self.language();
        let pairs: Vec<Pair<'_>> = others
            .iter()
            .filter(|other| !other.real)
            .map(|other| Pair {
                sentence: &sentence.text,
                fact: &other.text,
                cosine: None,
                language: other.language.as_deref().or(language.as_deref()),
            })
            .collect();
        let mut said = self.postures(&pairs).await?.into_iter();
        let mut against: Vec<(Other, f32, String)> = Vec::new();
        for other in others {
            // What a person has said needs no model.
            if other.real {
                against.push((other, 1.0, "person".to_owned()));
            } else if let Some(said) = said.next()
                && said.posture == Some(Posture::Contradicts)
            {
                against.push((other, said.confidence, said.by));
            }
        }
        against.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.no.cmp(&other.0.no)));
        against.truncate(MOST_DISAGREEING);
        self.shown(against).await
    }

    /// Candidate contradictions of a fact that nobody has called none.
    async fn known_against(&self, fact: i64) -> Result<Vec<Other>, Stop> {
        let repository = self.ctx.repository();
        let mut tx = self.ctx.read().await?;
        let merged = fact_merges::list(&mut tx, repository, fact, MERGED).await?;
        let all: Vec<i64> = std::iter::once(fact).chain(merged.into_iter().map(|(no, _)| no)).collect();
        let found = fact_contradictions::list(&mut tx, repository, fact, &all, CONTRADICTIONS).await?;
        let ids: Vec<FactId> = found.iter().map(|one| one.fact).collect();
        let retracted = source_marks::list_retracted(&mut tx, repository, &ids).await?;
        let known = okt_store::facts::get(&mut tx, repository, &ids).await?;
        tx.commit().await?;
        let others = found.into_iter().filter(|one| !retracted.contains(&one.fact)).filter_map(|one| {
            let fact = known.get(&one.fact)?;
            Some(Other {
                no: fact.no,
                id: fact.id,
                text: fact.text.clone(),
                language: None,
                real: one.state == ContradictionState::Real,
                against: fact.id,
            })
        });
        Ok(others.collect())
    }

    /// The facts nearest to one that is cited, by vectors and words.
    async fn near(&self, one: &Evidence) -> Result<Vec<Other>, Stop> {
        // Without vectors words do; where these are away for a moment, too.
        let place = current(self.tools).await?;
        let searching = Searching {
            config: self.tools.config(),
            databases: self.ctx.databases(),
            repository: self.ctx.repository(),
            database: self.ctx.database(),
            vectors: None,
            language: one.language.as_deref(),
            turns: None,
        };
        let sentence = [Sentence { text: &one.text, vector: None }];
        let mut found = vec![Candidates::new()];
        if let Some((space, vectors)) = &place
            && let Some(fact) = one.fact
        {
            let tenant = okt_vectors::Tenant::new(self.ctx.repository(), self.ctx.database());
            let space_of = vectors.space(space);
            let points = vectors.store().find(&tenant, &space_of, &[fact.uuid()]).await.unwrap_or_default();
            let vector = points.into_iter().next().map(|point| point.vector);
            let by_vectors = Searching { vectors: Some((vectors, space)), ..searching };
            let with = [Sentence { text: &one.text, vector: vector.as_deref() }];
            if let Ok(near) = by_vectors.by_vectors(&with).await {
                found = near;
            }
        }
        searching.by_words(&sentence, &mut found).await?;
        let near = searching.near(&sentence, found).await?.into_iter().flatten();
        let others = near.filter(|near| Some(near.id) != one.fact).take(NEAR).map(|near| Other {
            no: near.no,
            id: near.id,
            text: near.text,
            language: near.language,
            real: false,
            against: near.id,
        });
        Ok(others.collect())
    }

    /// Facts as they are shown, with the words of their sources.
    async fn shown(&self, against: Vec<(Other, f32, String)>) -> Result<Vec<DisagreeingFact>, Stop> {
        if against.is_empty() {
            return Ok(Vec::new());
        }
        let numbers: Vec<i64> = against.iter().map(|(other, ..)| other.no).collect();
        let mut tx = self.ctx.read().await?;
        let quotes: HashMap<i64, FactQuote> =
            answers::quote_facts(&mut tx, self.ctx.repository(), &numbers, &self.answer.filters).await?;
        let retracted = source_marks::list_retracted_facts(&mut tx, self.ctx.repository(), &numbers).await?;
        tx.commit().await?;
        let shown = against.into_iter().filter(|(other, ..)| !retracted.contains(&other.no));
        let shown = shown.map(|(other, confidence, judged_by)| {
            let quote = quotes.get(&other.no);
            let evidence = Evidence {
                key: String::new(),
                kind: EvidenceKind::Fact,
                fact: Some(other.id),
                fact_no: Some(other.no),
                text: other.text,
                quote: quote.and_then(|quote| quote.quote.clone()),
                around: None,
                source: quote.map(|quote| EvidenceSource {
                    id: quote.source,
                    title: quote.title.clone(),
                    published_at: quote.published_at,
                    page: quote.page,
                }),
                score: 0.0,
                found_by: Vec::<FoundThrough>::new(),
                via: None,
                superseded: false,
                concepts: Vec::<NamedConcept>::new(),
                language: quote.and_then(|quote| quote.language.clone()),
            };
            DisagreeingFact { evidence, against: other.against, confidence, judged_by }
        });
        Ok(shown.collect())
    }
}

/// Of an extractive sentence: the key of the fact that it is.
fn keys_shown(event: &AnswerEvent) -> Option<String> {
    match event {
        AnswerEvent::Sentence(sentence) => sentence.keys.first().cloned(),
        _ => None,
    }
}

/// A fact that may say otherwise.
struct Other {
    no: i64,
    id: FactId,
    text: String,
    language: Option<String>,
    /// A person says that it does.
    real: bool,
    /// The fact that is cited.
    against: FactId,
}
