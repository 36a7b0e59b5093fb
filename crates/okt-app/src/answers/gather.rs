//! What an answer is made from: the facts that search finds, with the words of their sources. No model is asked but the one that turns the
//! question into a vector, so it is there while somebody waits.

use std::collections::{BTreeSet, HashMap, HashSet};

use okt_auth::permissions::{ConceptRead, FactRead, SourceRead};
use okt_auth::{RepoAccess, RepoScope};
use okt_extract::answers::keys;
use okt_model::{
    AnswerFilters, ConceptId, Evidence, EvidenceKind, EvidenceSource, EvidenceVia, MarkKind, NamedConcept,
    Result, SearchMode, SearchType, SourceId, name_key,
};
use okt_search::{Field, Filter};
use okt_store::answers::{self, FactQuote};
use okt_store::{concept_aliases, concepts, search_filters, search_hits, source_marks};

use crate::App;
use crate::search::{SearchHit, SearchRequest};

/// So many facts are looked at, and as many parts of sources.
const CANDIDATES: usize = 60;
/// So many parts of sources are shown: they are longer than facts.
const PASSAGES: usize = 8;
/// Of one source not more than so many of all, in tenths, while there are others.
const OF_ONE_SOURCE: usize = 4;
/// Concepts that a question names.
const LINKED: usize = 8;
/// Words of a name.
const NAME_WORDS: usize = 6;
/// Where nothing else speaks for it, what is less near than this has nothing to do with the question.
const UNRELATED: f64 = 0.25;
/// Shown where nothing answers the question.
const NEAR: usize = 3;
/// A quote of fewer words is understood by its neighbours.
const SHORT_QUOTE: usize = 12;
/// A passage with no more than this that no fact quotes adds nothing: bytes, less than a sentence.
const UNSAID: usize = 40;
/// Characters of a quote and of a passage, which has about 120 words and ends with a sentence.
const LONGEST: usize = 1_600;
/// What is searched for at most, in bytes.
const LONGEST_QUESTION: usize = 1_000;
/// Concepts of the last answer that a follow-up is searched with.
const FROM_BEFORE: usize = 3;
/// A question of no more words that names nothing goes on with what was asked before.
const SHORT_QUESTION: usize = 5;
/// Words that stand for what was spoken of before.
const POINTERS: [&str; 36] = [
    "it", "its", "he", "him", "his", "she", "her", "they", "them", "their", "this", "these", "those", "same",
    "former", "latter", "er", "es", "sie", "ihn", "ihm", "ihr", "ihre", "sein", "seine", "dort", "dieser",
    "diese", "dieses", "il", "elle", "ils", "elles", "ella", "ellos", "su",
];

/// What was found for a question.
pub(super) struct Gathered {
    /// As facts were looked for.
    pub searched: String,
    /// What the question names.
    pub concepts: Vec<NamedConcept>,
    pub evidence: Vec<Evidence>,
    /// They are near the question, and no answer.
    pub near_only: bool,
    pub degraded: Option<&'static str>,
}

impl App {
    /// Looks for evidence. `before` are the concepts of the last answer of a conversation.
    pub(super) async fn gather(
        &self,
        scope: &RepoScope<FactRead>,
        question: &str,
        filters: &AnswerFilters,
        before: &[NamedConcept],
    ) -> Result<Gathered> {
        let concepts = self.linked(scope, question).await?;
        let searched = self_contained(question, &concepts, before);
        let words = plain_words(&searched);
        let given = search_filters_of(filters);
        let most = usize::try_from(self.config().ask.evidence).unwrap_or(usize::MAX);
        // Not every document has a fact: what it says is found by its own words as well.
        let types: &[SearchType] = if scope.also::<SourceRead>().is_ok() {
            &[SearchType::Facts, SearchType::Passages]
        } else {
            &[SearchType::Facts]
        };
        let request = SearchRequest {
            q: &words,
            types: Some(types),
            mode: SearchMode::Deep,
            prefix: false,
            grouped: true,
            filters: &given,
            facets: false,
        };
        let found = self.search(scope, &request, None, CANDIDATES * types.len()).await?;
        let degraded = found.degraded;
        let hits: Vec<SearchHit> = found.hits.into_iter().filter(|hit| !hit.retracted).collect();
        let unrelated = concepts.is_empty()
            && hits.iter().all(|hit| hit.ranks.lexical.is_none())
            && hits.iter().filter_map(|hit| hit.ranks.vector).all(|(_, cosine)| cosine < UNRELATED);
        let (facts, passages): (Vec<SearchHit>, Vec<SearchHit>) =
            hits.into_iter().partition(|hit| hit.place.kind == SearchType::Facts);
        let mut evidence = self.evidence_of(scope, &facts, filters).await?;
        let passages = self.passages(scope, passages, &evidence[..most.min(evidence.len())]).await?;
        evidence.extend(passages);
        evidence.sort_by(|one, other| other.score.total_cmp(&one.score));
        let mut evidence = fair(evidence, most);
        if unrelated {
            evidence.truncate(NEAR);
        }
        give_keys(question, &mut evidence);
        let near_only = unrelated || evidence.is_empty();
        Ok(Gathered { searched, concepts, evidence, near_only, degraded })
    }

    /// Parts of sources, but for those that facts say already.
    async fn passages(
        &self,
        scope: &RepoAccess,
        mut hits: Vec<SearchHit>,
        known: &[Evidence],
    ) -> Result<Vec<Evidence>> {
        let quotes: Vec<&str> = known.iter().filter_map(|one| one.quote.as_deref()).collect();
        hits.retain(|hit| {
            let text = one_line(&hit.text);
            let parts =
                quotes.iter().map(|quote| quote.trim_end_matches('…')).filter(|quote| !quote.is_empty());
            let said: usize = parts.filter(|quote| text.contains(quote)).map(str::len).sum();
            said + UNSAID < text.len()
        });
        hits.truncate(PASSAGES);
        let numbers: Vec<SourceId> = hits.iter().map(|hit| SourceId::from(hit.id)).collect();
        let mut tx = self.databases().begin_to_read(scope.database(), scope.repository()).await?;
        let numbers = search_filters::number_sources(&mut tx, scope.repository(), &numbers).await?;
        let numbers: Vec<i64> = numbers.into_iter().collect();
        let sources = search_hits::get_sources(&mut tx, scope.repository(), &numbers).await?;
        tx.commit().await?;
        let evidence = hits.into_iter().map(|hit| {
            let source = sources.values().find(|source| source.id.uuid() == hit.id);
            let text = cut(&hit.text);
            Evidence {
                key: String::new(),
                kind: EvidenceKind::Passage,
                fact: None,
                fact_no: None,
                quote: Some(text.clone()),
                around: None,
                text,
                source: Some(EvidenceSource {
                    id: hit.id.into(),
                    title: hit.title,
                    published_at: source.and_then(|source| source.published_at),
                    page: None,
                }),
                score: hit.place.score,
                found_by: hit.found_by,
                via: hit.via.map(|via| EvidenceVia { concept: via.concept, name: via.name }),
                superseded: false,
                concepts: Vec::new(),
                language: source.and_then(|source| source.language.clone()),
            }
        });
        Ok(evidence.collect())
    }

    /// Facts that were found, with what their sources say.
    async fn evidence_of(
        &self,
        scope: &RepoAccess,
        hits: &[SearchHit],
        filters: &AnswerFilters,
    ) -> Result<Vec<Evidence>> {
        let numbers: Vec<i64> = hits.iter().map(|hit| hit.place.no).collect();
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        // What was found may be a duplicate, by its own number.
        let facts = search_hits::get_facts(&mut tx, repository, &numbers).await?;
        let own: Vec<i64> = facts.values().map(|fact| fact.no).collect::<BTreeSet<_>>().into_iter().collect();
        let quotes = answers::quote_facts(&mut tx, repository, &own, filters).await?;
        let marked = source_marks::list_marked_facts(&mut tx, repository, &own).await?;
        let mut spoken_of: HashMap<i64, Vec<i64>> = HashMap::new();
        if scope.also::<ConceptRead>().is_ok() {
            for (fact, concept) in search_filters::list_concepts(&mut tx, repository, &own).await? {
                spoken_of.entry(fact).or_default().push(concept);
            }
        }
        let named: BTreeSet<i64> = spoken_of.values().flatten().copied().collect();
        let named: Vec<i64> = named.into_iter().collect();
        let mut named = concepts::list_numbered(&mut tx, repository, &named).await?;
        tx.commit().await?;
        named.sort_by_key(|concept| std::cmp::Reverse((concept.fact_count, concept.no)));
        let evidence = hits.iter().filter_map(|hit| {
            let fact = facts.get(&hit.place.no)?;
            let quote = quotes.get(&fact.no);
            let of_fact = spoken_of.get(&fact.no).map(Vec::as_slice).unwrap_or_default();
            let concepts = named.iter().filter(|concept| of_fact.contains(&concept.no));
            let mark = marked.get(&fact.no);
            let (own, around) = quote.map(words_of).unwrap_or_default();
            (mark != Some(&MarkKind::Retracted)).then(|| Evidence {
                key: String::new(),
                kind: EvidenceKind::Fact,
                fact: Some(fact.id),
                fact_no: Some(fact.no),
                text: fact.text.clone(),
                quote: own,
                around,
                source: quote.map(|quote| EvidenceSource {
                    id: quote.source,
                    title: quote.title.clone(),
                    published_at: quote.published_at,
                    page: quote.page,
                }),
                score: hit.place.score,
                found_by: hit.found_by.clone(),
                via: hit.via.clone().map(|via| EvidenceVia { concept: via.concept, name: via.name }),
                superseded: mark == Some(&MarkKind::Superseded),
                concepts: concepts
                    .take(LINKED)
                    .map(|concept| NamedConcept { id: concept.id, name: concept.canonical_name.clone() })
                    .collect(),
                language: quote.and_then(|quote| quote.language.clone()),
            })
        });
        let mut seen = HashSet::new();
        Ok(evidence.filter(|one| seen.insert(one.fact)).collect())
    }

    /// The concepts that a question names, the longest names first.
    async fn linked(&self, scope: &RepoAccess, question: &str) -> Result<Vec<NamedConcept>> {
        if scope.also::<ConceptRead>().is_err() {
            return Ok(Vec::new());
        }
        let words: Vec<&str> = question
            .split_whitespace()
            .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
            .map(|word| word.trim_end_matches("'s").trim_end_matches("’s"))
            .collect();
        let mut grams: Vec<(usize, usize, String)> = Vec::new();
        for length in (1..=NAME_WORDS.min(words.len())).rev() {
            for start in 0..=words.len() - length {
                let gram = words[start..start + length].join(" ");
                // A short word is a name only if it is written like one.
                if length > 1 || gram.chars().count() > 3 || gram.starts_with(char::is_uppercase) {
                    grams.push((start, length, name_key(&gram)));
                }
            }
        }
        let written: BTreeSet<&str> = grams.iter().map(|(_, _, key)| key.as_str()).collect();
        let written: Vec<&str> = written.into_iter().filter(|key| !key.is_empty()).collect();
        let repository = scope.repository();
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let aliases = concept_aliases::list_names(&mut tx, repository, &written).await?;
        let aliases: HashMap<String, String> =
            aliases.iter().map(|(name, alias)| (name_key(alias), name_key(name))).collect();
        let keys: BTreeSet<String> =
            written.iter().map(|key| (*key).to_owned()).chain(aliases.values().cloned()).collect();
        let keys: Vec<String> = keys.into_iter().collect();
        let known = concepts::list_contexts(&mut tx, repository, &keys, 1).await?;
        let of = |key: &String| known.get(key).and_then(|contexts| contexts.first()).map(|one| one.id);
        let (mut taken, mut found): (Vec<bool>, Vec<ConceptId>) = (vec![false; words.len()], Vec::new());
        for (start, length, key) in grams {
            let Some(id) = of(&key).or_else(|| of(aliases.get(&key)?)) else { continue };
            let place = &mut taken[start..start + length];
            if !place.iter().any(|taken| *taken) && !found.contains(&id) && found.len() < LINKED {
                place.fill(true);
                found.push(id);
            }
        }
        let names: HashMap<ConceptId, String> =
            search_hits::name_concepts(&mut tx, repository, &found).await?.into_iter().collect();
        tx.commit().await?;
        let of_question =
            found.into_iter().filter_map(|id| Some(NamedConcept { id, name: names.get(&id)?.clone() }));
        Ok(of_question.collect())
    }
}

/// A follow-up is about what the last answer was about; a new subject is not.
fn self_contained(question: &str, linked: &[NamedConcept], before: &[NamedConcept]) -> String {
    let missing = before.iter().filter(|concept| !linked.contains(concept)).take(FROM_BEFORE);
    if linked.len() > 1 || !follows_up(question) {
        return question.to_owned();
    }
    let mut searched = question.to_owned();
    for concept in missing {
        searched.extend([" ", &concept.name]);
    }
    searched
}

/// Whether a question leaves open what it is about: it points back, or it is short and names nothing.
fn follows_up(question: &str) -> bool {
    let words: Vec<&str> =
        question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let points = words.iter().any(|word| POINTERS.contains(&word.to_lowercase().as_str()));
    let names = words.iter().skip(1).any(|word| word.starts_with(char::is_uppercase) && *word != "I");
    points || (words.len() <= SHORT_QUESTION && !names)
}

/// Without what a search box would read as an order: phrases, words that must not occur, filters.
fn plain_words(question: &str) -> String {
    let mut words = String::new();
    for word in question.split_whitespace() {
        let word = word.trim_start_matches('-').replace(['"', '“', '”', '„', ':'], " ");
        let word = word.trim();
        if words.len() + word.len() >= LONGEST_QUESTION {
            break;
        }
        if !word.is_empty() {
            words.extend([word, " "]);
        }
    }
    words.trim_end().to_owned()
}

fn search_filters_of(filters: &AnswerFilters) -> Vec<Filter> {
    let of = |field: Field, value: String| Filter { field, value };
    let mut all: Vec<Filter> =
        filters.source_ids.iter().map(|id| of(Field::Source, id.to_string())).collect();
    all.extend(filters.concept_ids.iter().map(|id| of(Field::Concept, id.to_string())));
    all.extend(filters.context.clone().map(|context| of(Field::Context, context)));
    if filters.published_from.is_some() || filters.published_to.is_some() {
        let year = |year: Option<i32>| year.map(|year| year.to_string()).unwrap_or_default();
        let years = format!("{}..{}", year(filters.published_from), year(filters.published_to));
        all.push(of(Field::Year, years));
    }
    all
}

/// The first of them, of one source not too many while there are others.
fn fair(evidence: Vec<Evidence>, most: usize) -> Vec<Evidence> {
    let limit = (most * OF_ONE_SOURCE / 10).max(1);
    let mut of_source: HashMap<Option<SourceId>, usize> = HashMap::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for one in evidence {
        let source = one.source.as_ref().map(|source| source.id);
        let count = of_source.entry(source).or_default();
        *count += 1;
        if *count <= limit { first.push(one) } else { rest.push(one) }
    }
    first.extend(rest);
    first.truncate(most);
    first
}

fn give_keys(question: &str, evidence: &mut [Evidence]) {
    let texts: Vec<&str> = evidence.iter().map(|one| one.text.as_str()).collect();
    let keys = keys(question, &texts);
    for (one, key) in evidence.iter_mut().zip(keys) {
        one.key = key;
    }
}

/// The words that a fact rests on, and where these are few, with their neighbours.
fn words_of(quote: &FactQuote) -> (Option<String>, Option<String>) {
    let shown = |text: &str| cut(&one_line(text));
    let Some(own) = quote.quote.as_deref().filter(|text| !text.trim().is_empty()) else {
        return (None, None);
    };
    let short = own.split_whitespace().count() < SHORT_QUOTE;
    let around = quote.around.as_deref().filter(|around| short && around.contains(own) && *around != own);
    (Some(shown(own)), around.map(shown))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concept(name: &str) -> NamedConcept {
        NamedConcept { id: ConceptId::mint(), name: name.to_owned() }
    }

    #[test]
    fn a_question_is_words_whatever_it_looks_like() {
        assert_eq!(
            plain_words("Is \"dark matter\" -lensing? source:x year:2019"),
            "Is dark matter lensing? source x year 2019"
        );
        assert!(plain_words(&"x".repeat(5_000)).len() <= LONGEST_QUESTION);
    }

    #[test]
    fn a_follow_up_is_about_what_the_last_answer_was_about() {
        let (fundy, tides, rance) = (concept("Bay of Fundy"), concept("tide"), concept("Rance"));
        let before = [fundy.clone(), tides.clone()];
        assert_eq!(self_contained("And in winter?", &[], &before), "And in winter? Bay of Fundy tide");
        assert_eq!(
            self_contained("And the tide?", std::slice::from_ref(&tides), &before),
            "And the tide? Bay of Fundy"
        );
        assert_eq!(self_contained("Rance tides?", &[tides, rance], &before), "Rance tides?");
        assert_eq!(self_contained("Why?", &[], &[]), "Why?");
        for new in ["Why did copper become so expensive on the markets?", "Who founded Zurich?"] {
            assert_eq!(self_contained(new, &[], &before), new, "another subject");
        }
        assert_eq!(
            self_contained("How high does the water rise when it comes in?", &[], &before),
            "How high does the water rise when it comes in? Bay of Fundy tide"
        );
    }

    #[test]
    fn no_source_takes_more_than_its_share_while_there_are_others() {
        let of = |source: SourceId, text: &str| Evidence {
            key: String::new(),
            kind: EvidenceKind::Fact,
            fact: None,
            fact_no: None,
            text: text.to_owned(),
            quote: None,
            around: None,
            source: Some(EvidenceSource { id: source, title: None, published_at: None, page: None }),
            score: 0.0,
            found_by: Vec::new(),
            via: None,
            superseded: false,
            concepts: Vec::new(),
            language: None,
        };
        let (a, b) = (SourceId::mint(), SourceId::mint());
        let all = vec![of(a, "1"), of(a, "2"), of(a, "3"), of(b, "4"), of(b, "5")];
        let texts = |most| fair(all.clone(), most).into_iter().map(|one| one.text).collect::<String>();
        assert_eq!(texts(5), "12453", "two of five");
        assert_eq!(texts(3), "142");
    }
}
