//! Data sets: documents, and questions with the documents that answer them.
//!
//! Reading is strict: a figure over half of a file would look like one over all of it. What a folder is, is told by its files:
//!
//! | files | set |
//! |---|---|
//! | `qrels/test.tsv`, `queries.jsonl`, `corpus.jsonl` or `corpus.jsonl.gz`, also in a folder `beir` | `SciFact`, as BEIR has it |
//! | `dev200_corpus.jsonl`, `dev200_questions.jsonl` | `MuSiQue` |
//! | `corpus.json`, `queries_covered.json` | MultiHop-RAG |
//! | `corpus.json`, `questions.jsonl` | 2WikiMultihopQA, as `HippoRAG` has it |
//! | `corpus.jsonl`, `questions.jsonl` | `HotpotQA` |
//!
//! To add a set: a line in [`read`] and a function beside the others.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Which figures are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// One document answers, more or less: its rank counts.
    Ranking,
    /// Several documents answer together: how many of them are there counts.
    Recall,
    /// Sentences answer together: what is found is a row that has such a sentence, whatever document it is from.
    Evidence,
}

#[derive(Debug)]
pub struct Set {
    /// A word, for names of files and of the repository.
    pub name: &'static str,
    pub title: &'static str,
    pub measure: Measure,
    pub documents: Vec<Document>,
    pub questions: Vec<Question>,
    /// Questions of which no documents are known.
    pub left_out: usize,
}

#[derive(Debug)]
pub struct Document {
    /// In the data set, or its number there if it has none.
    pub id: String,
    pub title: String,
    pub text: String,
    /// The first document with this text, by its index: a repository has equal files once.
    pub same: usize,
}

#[derive(Debug)]
pub struct Question {
    pub text: String,
    /// By the index of the document; of documents with one text, the first.
    pub gold: BTreeSet<usize>,
    /// Sentences that answer it, without blanks; only for [`Measure::Evidence`].
    pub evidence: Vec<String>,
}

impl Set {
    /// The name of a document's file in the repository. It names the set, so that two sets never meet.
    pub fn file_name(&self, document: &Document) -> String {
        format!("{}-{}.txt", self.name, document.id)
    }

    /// The documents that are uploaded: each text once.
    pub fn distinct(&self) -> impl Iterator<Item = (usize, &Document)> {
        self.documents.iter().enumerate().filter(|(at, document)| *at == document.same)
    }

    /// Leaves at most so many documents and so many questions, all of whose documents are there. Documents of the first
    /// questions come first, then the others as the set has them.
    pub fn limit(&mut self, most: usize) {
        let mut kept = BTreeSet::new();
        for question in self.questions.iter().take(most) {
            let more: BTreeSet<usize> = kept.union(&question.gold).copied().collect();
            if more.len() <= most {
                kept = more;
            }
        }
        for at in self.distinct().map(|(at, _)| at).collect::<Vec<_>>() {
            if kept.len() < most {
                kept.insert(at);
            }
        }
        self.questions.retain(|question| question.gold.is_subset(&kept));
        self.questions.truncate(most);
        let places: HashMap<usize, usize> = kept.iter().enumerate().map(|(to, from)| (*from, to)).collect();
        let mut at = 0;
        self.documents.retain(|_| {
            at += 1;
            kept.contains(&(at - 1))
        });
        for (at, document) in self.documents.iter_mut().enumerate() {
            document.same = at;
        }
        for question in &mut self.questions {
            question.gold = question.gold.iter().filter_map(|at| places.get(at).copied()).collect();
        }
    }
}

/// Texts are compared without blanks.
pub fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

pub fn read(folder: &Path) -> anyhow::Result<Set> {
    let has = |name: &str| folder.join(name).is_file();
    let set = if has("beir/qrels/test.tsv") {
        beir(&folder.join("beir"))?
    } else if has("qrels/test.tsv") {
        beir(folder)?
    } else if has("dev200_corpus.jsonl") {
        musique(folder)?
    } else if has("corpus.json") && has("queries_covered.json") {
        news(folder)?
    } else if has("corpus.json") && has("questions.jsonl") {
        two_wiki(folder)?
    } else if has("corpus.jsonl") && has("questions.jsonl") {
        hotpot(folder)?
    } else {
        bail!(
            "{} has no data set: name a folder with beir/qrels/test.tsv (SciFact), dev200_corpus.jsonl (MuSiQue), corpus.json \
             and queries_covered.json (MultiHop-RAG), corpus.json and questions.jsonl (2Wiki), or corpus.jsonl and \
             questions.jsonl (HotpotQA)",
            folder.display()
        )
    };
    if set.questions.is_empty() {
        bail!("{} has no question with a known document", folder.display());
    }
    Ok(set)
}

fn beir(folder: &Path) -> anyhow::Result<Set> {
    #[derive(Deserialize)]
    struct Line {
        #[serde(rename = "_id")]
        id: String,
        #[serde(default)]
        title: String,
        text: String,
    }
    let packed = folder.join("corpus.jsonl.gz");
    let corpus = if packed.is_file() { packed } else { folder.join("corpus.jsonl") };
    let mut corpus = Corpus::new(corpus);
    for (line, Line { id, title, text }) in lines::<Line>(&corpus.path)? {
        corpus.add(line, id.clone(), id, &title, &text)?;
    }
    let path = folder.join("queries.jsonl");
    let mut texts = HashMap::new();
    for (line, Line { id, text, .. }) in lines::<Line>(&path)? {
        if texts.insert(id.clone(), text).is_some() {
            return Err(at(&path, line, anyhow!("{id} is there twice")));
        }
    }
    let path = folder.join("qrels/test.tsv");
    let mut asked: Vec<(String, BTreeSet<usize>)> = Vec::new();
    let mut places = HashMap::new();
    for (line, text) in content(&path)?.lines().enumerate().skip(1) {
        let mut judged = || -> anyhow::Result<()> {
            let columns: Vec<&str> = text.split('\t').collect();
            let [query, document, score] = columns[..] else { bail!("not three columns") };
            let score: i32 = score.trim().parse().context("the score is no number")?;
            if !texts.contains_key(query) {
                bail!("queries.jsonl has no query {query}");
            }
            let place = *places.entry(query.to_owned()).or_insert_with(|| {
                asked.push((query.to_owned(), BTreeSet::new()));
                asked.len() - 1
            });
            if score > 0 {
                let gold = corpus.find(document)?;
                asked[place].1.insert(gold);
            }
            Ok(())
        };
        judged().map_err(|error| at(&path, line + 1, error))?;
    }
    let known = |(id, gold): (String, BTreeSet<usize>)| {
        let text = texts.get(&id).cloned().unwrap_or_default();
        Question { text, gold, evidence: Vec::new() }
    };
    Ok(corpus.set("scifact", "SciFact", Measure::Ranking, asked.into_iter().map(known).collect()))
}

fn musique(folder: &Path) -> anyhow::Result<Set> {
    #[derive(Deserialize)]
    struct Passage {
        pid: u64,
        title: String,
        text: String,
    }
    #[derive(Deserialize)]
    struct Line {
        question: String,
        gold_pids: Vec<u64>,
    }
    let mut corpus = Corpus::new(folder.join("dev200_corpus.jsonl"));
    for (line, Passage { pid, title, text }) in lines::<Passage>(&corpus.path)? {
        corpus.add(line, pid.to_string(), pid.to_string(), &title, &text)?;
    }
    let path = folder.join("dev200_questions.jsonl");
    let mut questions = Vec::new();
    for (line, Line { question, gold_pids }) in lines::<Line>(&path)? {
        let gold = corpus.gold(gold_pids.iter().map(ToString::to_string));
        questions.push(question_of(question, gold.map_err(|error| at(&path, line, error))?));
    }
    Ok(corpus.set("musique", "MuSiQue", Measure::Recall, questions))
}

fn news(folder: &Path) -> anyhow::Result<Set> {
    #[derive(Deserialize)]
    struct Article {
        title: String,
        url: String,
        body: String,
    }
    #[derive(Deserialize)]
    struct Entry {
        query: String,
        evidence_list: Vec<Evidence>,
    }
    #[derive(Deserialize)]
    struct Evidence {
        url: String,
        fact: String,
    }
    let mut corpus = Corpus::new(folder.join("corpus.json"));
    for (number, Article { title, url, body }) in entries::<Article>(&corpus.path)? {
        // An article that is there twice is one source.
        let key = if corpus.places.contains_key(&url) { format!("{url}#{number}") } else { url };
        corpus.add(number, number.to_string(), key, &title, &body)?;
    }
    let path = folder.join("queries_covered.json");
    let mut questions = Vec::new();
    for (number, Entry { query, evidence_list }) in entries::<Entry>(&path)? {
        let gold = corpus.gold(evidence_list.iter().map(|evidence| evidence.url.clone()));
        let gold = gold.map_err(|error| at(&path, number, error))?;
        let evidence = evidence_list.iter().map(|evidence| without_blanks(&evidence.fact)).collect();
        questions.push(Question { evidence, ..question_of(query, gold) });
    }
    Ok(corpus.set("multihop-rag", "MultiHop-RAG", Measure::Evidence, questions))
}

fn two_wiki(folder: &Path) -> anyhow::Result<Set> {
    #[derive(Deserialize)]
    struct Passage {
        title: String,
        text: String,
    }
    #[derive(Deserialize)]
    struct Line {
        question: String,
        /// Null where it is not known which passages answer it.
        gold_titles: Option<Vec<String>>,
    }
    let mut corpus = Corpus::new(folder.join("corpus.json"));
    for (number, Passage { title, text }) in entries::<Passage>(&corpus.path)? {
        corpus.add(number, number.to_string(), title.clone(), &title, &text)?;
    }
    let path = folder.join("questions.jsonl");
    let mut questions = Vec::new();
    for (line, Line { question, gold_titles }) in lines::<Line>(&path)? {
        let gold = corpus.gold(gold_titles.into_iter().flatten());
        questions.push(question_of(question, gold.map_err(|error| at(&path, line, error))?));
    }
    Ok(corpus.set("2wiki", "2WikiMultihopQA", Measure::Recall, questions))
}

fn hotpot(folder: &Path) -> anyhow::Result<Set> {
    #[derive(Deserialize)]
    struct Passage {
        title: String,
        sentences: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Line {
        question: String,
        /// The title of a passage, and the number of a sentence.
        supporting_facts: Vec<(String, u32)>,
    }
    let mut corpus = Corpus::new(folder.join("corpus.jsonl"));
    for (line, Passage { title, sentences }) in lines::<Passage>(&corpus.path)? {
        // A sentence has the blank before it.
        corpus.add(line, line.to_string(), title.clone(), &title, &sentences.concat())?;
    }
    let path = folder.join("questions.jsonl");
    let mut questions = Vec::new();
    for (line, Line { question, supporting_facts }) in lines::<Line>(&path)? {
        let gold = corpus.gold(supporting_facts.into_iter().map(|(title, _)| title));
        questions.push(question_of(question, gold.map_err(|error| at(&path, line, error))?));
    }
    Ok(corpus.set("hotpotqa", "HotpotQA", Measure::Recall, questions))
}

const fn question_of(text: String, gold: BTreeSet<usize>) -> Question {
    Question { text, gold, evidence: Vec::new() }
}

/// Documents while they are read.
struct Corpus {
    path: PathBuf,
    documents: Vec<Document>,
    ids: HashSet<String>,
    /// By what questions call them.
    places: HashMap<String, usize>,
    texts: HashMap<String, usize>,
}

impl Corpus {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            documents: Vec::new(),
            ids: HashSet::new(),
            places: HashMap::new(),
            texts: HashMap::new(),
        }
    }

    fn add(&mut self, line: usize, id: String, key: String, title: &str, text: &str) -> anyhow::Result<()> {
        let (place, text) = (self.documents.len(), text.trim().to_owned());
        if text.is_empty() {
            return Err(at(&self.path, line, anyhow!("the text is empty")));
        }
        if id.contains(|c: char| c.is_control() || matches!(c, '"' | '/' | '\\')) {
            return Err(at(&self.path, line, anyhow!("no file can have the name {id:?}")));
        }
        if !self.ids.insert(id.clone()) || self.places.contains_key(&key) {
            return Err(at(&self.path, line, anyhow!("{key} is there twice")));
        }
        self.places.insert(key, place);
        let same = *self.texts.entry(text.clone()).or_insert(place);
        self.documents.push(Document { id, title: title.trim().to_owned(), text, same });
        Ok(())
    }

    fn find(&self, key: &str) -> anyhow::Result<usize> {
        let place = self.places.get(key).and_then(|place| self.documents.get(*place));
        place.map(|document| document.same).with_context(|| format!("{} has no {key}", self.path.display()))
    }

    fn gold(&self, keys: impl Iterator<Item = String>) -> anyhow::Result<BTreeSet<usize>> {
        keys.map(|key| self.find(&key)).collect()
    }

    fn set(
        self,
        name: &'static str,
        title: &'static str,
        measure: Measure,
        mut questions: Vec<Question>,
    ) -> Set {
        let all = questions.len();
        questions.retain(|question| !question.gold.is_empty());
        let left_out = all - questions.len();
        Set { name, title, measure, documents: self.documents, questions, left_out }
    }
}

fn content(path: &Path) -> anyhow::Result<String> {
    let read = || -> std::io::Result<String> {
        if path.extension().is_some_and(|end| end == "gz") {
            let mut text = String::new();
            GzDecoder::new(File::open(path)?).read_to_string(&mut text)?;
            return Ok(text);
        }
        fs::read_to_string(path)
    };
    read().with_context(|| format!("can't read {}", path.display()))
}

/// Each line with its number.
fn lines<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<(usize, T)>> {
    let read = |(line, text): (usize, &str)| match serde_json::from_str(text) {
        Ok(read) => Ok((line + 1, read)),
        Err(error) => Err(at(path, line + 1, error.into())),
    };
    content(path)?.lines().enumerate().map(read).collect()
}

/// Each entry of a list with its number, from 1. An error of the reader has the line.
fn entries<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<(usize, T)>> {
    let entries: Vec<T> =
        serde_json::from_str(&content(path)?).map_err(|error| at(path, error.line(), error.into()))?;
    Ok((1..).zip(entries).collect())
}

fn at(path: &Path, line: usize, error: anyhow::Error) -> anyhow::Error {
    error.context(format!("{}:{line}", path.display()))
}

#[cfg(test)]
mod tests;
