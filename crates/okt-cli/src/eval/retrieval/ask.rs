//! Questions, and what is found for them.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use super::load::Listed;
use super::set::{Measure, Question, Set};
use crate::client::Client;

/// A list that never ends is not read to its end.
const PAGES: usize = 50;

/// The documents that the repository has.
pub struct Known {
    /// The document of a source, by the index of the first with its text.
    places: HashMap<String, usize>,
    /// Documents without a processed source.
    pub missing: usize,
    /// Sources of the repository that are no documents of the set. They count as wrong where they are found.
    pub others: usize,
}

/// What one question found in one mode.
#[derive(Default)]
pub struct Found {
    /// Sources in the order in which rows name them first.
    pub sources: Vec<Source>,
    /// Texts of rows; only for [`Measure::Evidence`].
    pub texts: Vec<String>,
    /// Of the first page.
    pub took: Duration,
    /// The mode that the service says it searched in, and why it is another one.
    pub mode: String,
    pub reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Document(usize),
    /// Not of the set: its id, and the title of the row.
    Other(String, String),
}

impl Known {
    pub fn of(set: &Set, listed: &[Listed]) -> anyhow::Result<Self> {
        let names: HashMap<String, usize> =
            set.documents.iter().map(|document| (set.file_name(document), document.same)).collect();
        let (mut places, mut processed) = (HashMap::new(), HashSet::new());
        for source in listed {
            let Some(place) = source.file_name.as_deref().and_then(|name| names.get(name)) else { continue };
            places.insert(source.id.clone(), *place);
            if source.status == "processed" {
                processed.insert(*place);
            }
        }
        if processed.is_empty() {
            bail!("the repository has no document of {}; run without --ask-only", set.title);
        }
        let missing = set.distinct().filter(|(at, _)| !processed.contains(at)).count();
        Ok(Self { missing, others: listed.len() - places.len(), places })
    }
}

/// Asks until as many sources are known as the figures need, or the service has no more.
pub async fn ask(
    client: &Client,
    set: &Set,
    known: &Known,
    question: &Question,
    mode: &str,
    types: &str,
) -> anyhow::Result<Found> {
    let mut found = Found::default();
    let mut cursor: Option<String> = None;
    // A question is a text: its quotes do not ask for a phrase.
    let text = question.text.replace(['"', '“', '”', '„'], " ");
    for page in 0..PAGES {
        let mut query = vec![("q", &*text), ("mode", mode), ("types", types), ("limit", "100")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = client.get("/search", &query).await?;
        if page == 0 {
            let text = |name: &str| answer.body[name].as_str().map(str::to_owned);
            found.took = answer.took;
            found.mode = text("search_mode").context("the answer has no search_mode")?;
            found.reason = text("degraded_reason");
        }
        found.take(set, known, &answer.body)?;
        cursor = answer.body["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() || found.sources.len() >= depth(set.measure) {
            break;
        }
    }
    Ok(found)
}

/// The sources that the figures look at.
const fn depth(measure: Measure) -> usize {
    match measure {
        Measure::Ranking => 100,
        Measure::Recall => 20,
        Measure::Evidence => 10,
    }
}

impl Found {
    /// The rows of a page: each counts for its sources, in its order, and a source once.
    pub fn take(&mut self, set: &Set, known: &Known, page: &Value) -> anyhow::Result<()> {
        for row in page["data"].as_array().context("the answer has no data")? {
            for id in sources(row)? {
                let source = known.places.get(id).map_or_else(
                    || Source::Other(id.to_owned(), row["title"].as_str().unwrap_or_default().to_owned()),
                    |place| Source::Document(*place),
                );
                if !self.sources.iter().any(|have| have.is(&source)) {
                    self.sources.push(source);
                }
            }
            if set.measure == Measure::Evidence {
                self.texts.push(row["text"].as_str().context("a row has no text")?.to_owned());
            }
        }
        Ok(())
    }
}

impl Source {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Document(one), Self::Document(other)) => one == other,
            (Self::Other(one, _), Self::Other(other, _)) => one == other,
            _ => false,
        }
    }

    pub fn title<'a>(&'a self, set: &'a Set) -> &'a str {
        match self {
            Self::Document(at) => set.documents.get(*at).map_or("", |document| &document.title),
            Self::Other(id, title) => {
                if title.is_empty() {
                    id
                } else {
                    title
                }
            }
        }
    }
}

fn sources(row: &Value) -> anyhow::Result<Vec<&str>> {
    let mut ids: Vec<&str> = row["source_id"].as_str().into_iter().collect();
    ids.extend(row["source_ids"].as_array().into_iter().flatten().filter_map(Value::as_str));
    let kind = row["type"].as_str().context("a row has no type")?;
    if ids.is_empty() && matches!(kind, "source" | "sources") {
        ids.extend(row["id"].as_str());
    }
    if ids.is_empty() {
        bail!("a row of type {kind} has neither source_id nor source_ids");
    }
    Ok(ids)
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::eval::retrieval::set::Document;

    /// Documents A to F; E has the text of B.
    pub fn set(measure: Measure) -> Set {
        let document = |(at, title): (usize, &str)| Document {
            id: at.to_string(),
            title: title.to_owned(),
            text: format!("Text {at}."),
            same: if at == 4 { 1 } else { at },
        };
        let documents = ["A", "B", "C", "D", "E", "F"].into_iter().enumerate().map(document).collect();
        let question = |text: &str, gold: [usize; 2], evidence: &[&str]| Question {
            text: text.to_owned(),
            gold: BTreeSet::from(gold),
            evidence: evidence.iter().map(|fact| (*fact).to_owned()).collect(),
        };
        let questions = vec![
            question("Who danced?", [0, 1], &["Beesdance.", "Antsdonot."]),
            question("Who sang?", [2, 3], &["Birdssing."]),
        ];
        Set { name: "trial", title: "Trial", measure, documents, questions, left_out: 1 }
    }

    pub fn known(set: &Set) -> Known {
        let listed: Vec<Listed> = ["A", "B", "C", "D"]
            .iter()
            .enumerate()
            .map(|(at, id)| listed(id, &format!("trial-{at}.txt"), "processed"))
            .chain([listed("F", "trial-5.txt", "failed"), listed("X", "notes.txt", "processed")])
            .collect();
        Known::of(set, &listed).unwrap()
    }

    fn listed(id: &str, file_name: &str, status: &str) -> Listed {
        Listed::of(&json!({ "id": id, "file_name": file_name, "status": status })).unwrap()
    }

    #[test]
    fn documents_of_one_text_are_one_source_and_failed_ones_are_missing() {
        let set = set(Measure::Recall);
        let known = known(&set);
        assert_eq!((known.missing, known.others), (1, 1));
        assert_eq!(known.places.get("B"), Some(&1));
        // Whichever of the two files was there first.
        let other = Known::of(&set, &[listed("E", "trial-4.txt", "processed")]).unwrap();
        assert_eq!((other.places.get("E"), other.missing), (Some(&1), 4));
        assert!(Known::of(&set, &[listed("X", "notes.txt", "processed")]).is_err());
    }

    #[test]
    fn a_row_counts_for_each_of_its_sources_once_and_in_order() {
        let set = set(Measure::Recall);
        let known = known(&set);
        let mut found = Found::default();
        let page = json!({ "data": [
            { "type": "fact", "id": "f1", "title": "C", "text": "t", "source_id": "C" },
            { "type": "fact", "id": "f2", "title": "A", "text": "t", "source_id": "A", "source_ids": ["A", "C", "X"] },
            { "type": "passage", "id": "p1", "title": "C", "text": "t", "source_id": "C" },
        ] });
        found.take(&set, &known, &page).unwrap();
        let next = json!({ "data": [
            { "type": "source", "id": "B", "title": "B", "text": "t" },
            { "type": "fact", "id": "f3", "title": "another title", "text": "t", "source_ids": ["X", "D"] },
        ] });
        found.take(&set, &known, &next).unwrap();
        let titles: Vec<&str> = found.sources.iter().map(|source| source.title(&set)).collect();
        assert_eq!(titles, ["C", "A", "A", "B", "D"], "{:?}", found.sources);
        assert_eq!(found.sources[2], Source::Other("X".to_owned(), "A".to_owned()));
        let without = json!({ "data": [{ "type": "fact", "id": "f4", "text": "t" }] });
        assert!(found.take(&set, &known, &without).is_err());
    }
}
