//! How many of the candidates have each concept, context, source, language, year and kind.

use std::collections::{BTreeMap, BTreeSet};

use chrono::Datelike as _;
use okt_model::SearchType;
use okt_search::language_code;

use super::Candidate;
use super::filters::Described;

/// Values of a facet that are shown.
const MOST: usize = 20;

/// What candidates have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    /// How many candidates were counted.
    pub of: usize,
    pub concept: Vec<FacetValue>,
    pub context: Vec<FacetValue>,
    pub source: Vec<FacetValue>,
    pub language: Vec<FacetValue>,
    pub year: Vec<FacetValue>,
    pub kind: Vec<FacetValue>,
}

/// How many candidates have a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetValue {
    /// What a filter is given: of concepts and sources their ids.
    pub value: String,
    /// The name of a concept, the title of a source.
    pub label: Option<String>,
    pub count: usize,
}

/// Counts, for each value, with its label.
type Counts = BTreeMap<String, (Option<String>, usize)>;

impl Facets {
    /// Of concepts that fewer facts than so many speak of, only where there are no others.
    pub(super) fn of(
        candidates: &[Candidate],
        known: &Described,
        (concepts, sources): (bool, bool),
        floor: i64,
    ) -> Self {
        let mut counts: [Counts; 6] = Default::default();
        let [concept, context, source, language, year, kind] = &mut counts;
        let mut small = Counts::new();
        for candidate in candidates {
            let itself = [candidate.no];
            let spoken_of: &[i64] = match candidate.kind {
                SearchType::Concepts => &itself,
                SearchType::Facts => known.concepts_of(candidate.no),
                SearchType::Passages | SearchType::Sources | SearchType::Reports => &[],
            };
            let spoken_of = spoken_of.iter().filter(|_| concepts).filter_map(|no| known.concept(*no));
            let mut contexts = BTreeSet::new();
            for one in spoken_of {
                contexts.insert(&one.context);
                let counts = if one.fact_count < floor { &mut small } else { &mut *concept };
                count(counts, one.id.to_string(), Some(&one.canonical_name));
            }
            for label in contexts {
                count(context, label.clone(), None);
            }
            let (mut languages, mut years, mut kinds) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            for one in known.sources_of(candidate).filter(|_| sources) {
                count(source, one.id.to_string(), one.title.as_ref());
                languages.extend(one.language.as_deref().map(language_code));
                years.extend(one.published_at.map(|day| day.year().to_string()));
                kinds.extend(one.kind.clone());
            }
            for (counts, values) in [(&mut *language, languages), (&mut *year, years), (&mut *kind, kinds)] {
                for value in values {
                    count(counts, value, None);
                }
            }
        }
        if concept.is_empty() {
            *concept = small;
        }
        let [concept, context, source, language, year, kind] = counts.map(most);
        Self { of: candidates.len(), concept, context, source, language, year, kind }
    }
}

fn count(counts: &mut Counts, value: String, label: Option<&String>) {
    counts.entry(value).or_insert_with(|| (label.cloned(), 0)).1 += 1;
}

fn most(counts: Counts) -> Vec<FacetValue> {
    let values = counts.into_iter().map(|(value, (label, count))| FacetValue { value, label, count });
    let mut values: Vec<FacetValue> = values.collect();
    // Values with equal counts stay in their order.
    values.sort_by_key(|value| std::cmp::Reverse(value.count));
    values.truncate(MOST);
    values
}
