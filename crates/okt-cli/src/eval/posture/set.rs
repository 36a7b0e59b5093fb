//! Reads the claims of a data set, told by its files.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use flate2::read::GzDecoder;
use okt_model::Posture;
use serde_json::Value;

use super::Part;

pub struct Set {
    pub name: String,
    pub cases: Vec<Case>,
}

/// A claim and the sentences of one text.
pub struct Case {
    pub claim: String,
    pub facts: Vec<String>,
    /// `None` where the text says nothing of it.
    pub gold: Option<Posture>,
}

impl Set {
    /// So many of them, evenly spaced.
    pub fn sample(&mut self, most: Option<u32>) {
        let all = self.cases.len();
        let Some(most) = most.and_then(|most| usize::try_from(most).ok()).filter(|most| *most < all) else {
            return;
        };
        let kept: HashSet<usize> = (0..most).map(|at| at * all / most).collect();
        let mut at = 0;
        self.cases.retain(|_| {
            at += 1;
            kept.contains(&(at - 1))
        });
    }
}

impl Case {
    /// Only the sentences that share most words with the claim, in their order.
    pub fn nearest(&mut self, most: Option<u32>) {
        let Some(most) = most.and_then(|most| usize::try_from(most).ok()) else { return };
        let claim = words(&self.claim);
        let mut shared: Vec<(usize, usize)> =
            self.facts.iter().map(|fact| words(fact).intersection(&claim).count()).enumerate().collect();
        shared.sort_by_key(|(at, count)| (std::cmp::Reverse(*count), *at));
        let kept: HashSet<usize> = shared.into_iter().take(most).map(|(at, _)| at).collect();
        let mut at = 0;
        self.facts.retain(|_| {
            at += 1;
            kept.contains(&(at - 1))
        });
    }
}

fn words(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 2);
    words.map(str::to_lowercase).collect()
}

/// The sets of a folder. Figures are reported for `dev` of `SciFact`, whose test has no judgements, and for `test` of others.
pub fn read(folder: &Path, part: Option<Part>) -> anyhow::Result<Vec<Set>> {
    let mut sets = Vec::new();
    let part_or = |default: Part| part.unwrap_or(default).as_str();
    if folder.join("corpus.jsonl").is_file() {
        let part = part_or(Part::Dev);
        let corpus = lines(&folder.join("corpus.jsonl"))?;
        let claims = lines(&folder.join(format!("claims_{part}.jsonl")))?;
        sets.push(Set { name: format!("SciFact {part}"), cases: scifact(&corpus, &claims)? });
    }
    let part = part_or(Part::Test);
    let symmetric = folder.join(format!("fever_symmetric/v0.2_fever_symmetric_{part}.jsonl"));
    if symmetric.is_file() {
        let cases = lines(&symmetric)?.iter().map(fever).collect::<anyhow::Result<_>>()?;
        sets.push(Set { name: format!("FEVER-Symmetric {part}"), cases });
    }
    let fooled = folder.join(format!("fm2_{part}.jsonl.gz"));
    if fooled.is_file() {
        let cases = lines(&fooled)?.iter().map(fm2).collect::<anyhow::Result<_>>()?;
        sets.push(Set { name: format!("FM2 {part}"), cases });
    }
    if sets.is_empty() {
        bail!("{} has no claims: name the folder of SciFact, FEVER-Symmetric or FM2", folder.display());
    }
    Ok(sets)
}

fn lines(path: &Path) -> anyhow::Result<Vec<Value>> {
    let bytes = fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    let mut text = String::new();
    if path.extension().is_some_and(|end| end == "gz") {
        GzDecoder::new(&*bytes)
            .read_to_string(&mut text)
            .with_context(|| format!("can't unpack {}", path.display()))?;
    } else {
        text = String::from_utf8(bytes).with_context(|| format!("{} is no text", path.display()))?;
    }
    let read = |line| {
        serde_json::from_str(line).with_context(|| format!("{} has a line that is no JSON", path.display()))
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(read).collect()
}

/// Each claim with each abstract that it cites or is judged by.
fn scifact(corpus: &[Value], claims: &[Value]) -> anyhow::Result<Vec<Case>> {
    let mut abstracts: HashMap<u64, Vec<String>> = HashMap::new();
    for document in corpus {
        let id = document["doc_id"].as_u64().context("a document has no doc_id")?;
        abstracts.insert(id, texts(&document["abstract"], serde_json::Value::as_str)?);
    }
    let mut cases = Vec::new();
    for claim in claims {
        let evidence = claim["evidence"].as_object().context("a claim has no evidence")?;
        let judged = evidence.keys().filter_map(|id| id.parse().ok());
        let cited = claim["cited_doc_ids"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        let mut seen = HashSet::new();
        for id in judged.chain(cited).filter(|id| seen.insert(*id)) {
            let facts = abstracts.get(&id).with_context(|| format!("no document {id}"))?.clone();
            let label = evidence.get(&id.to_string()).and_then(|sets| sets[0]["label"].as_str());
            cases.push(Case { claim: text(claim, "claim")?, facts, gold: label.map(posture).transpose()? });
        }
    }
    Ok(cases)
}

fn fever(line: &Value) -> anyhow::Result<Case> {
    let gold = Some(posture(line["gold_label"].as_str().context("a claim has no gold_label")?)?);
    Ok(Case { claim: text(line, "claim")?, facts: vec![text(line, "evidence")?], gold })
}

fn fm2(line: &Value) -> anyhow::Result<Case> {
    let facts = texts(&line["gold_evidence"], |evidence| evidence["text"].as_str())?;
    let gold = Some(posture(line["label"].as_str().context("a claim has no label")?)?);
    Ok(Case { claim: text(line, "text")?, facts, gold })
}

fn posture(label: &str) -> anyhow::Result<Posture> {
    match label {
        "SUPPORT" | "SUPPORTS" => Ok(Posture::Supports),
        "CONTRADICT" | "REFUTES" => Ok(Posture::Contradicts),
        other => bail!("{other} is no label"),
    }
}

fn text(line: &Value, name: &str) -> anyhow::Result<String> {
    let text = line[name].as_str().with_context(|| format!("a claim has no {name}"))?;
    Ok(plain(text))
}

fn texts(list: &Value, text: impl Fn(&Value) -> Option<&str>) -> anyhow::Result<Vec<String>> {
    let list = list.as_array().context("a list of sentences is missing")?;
    list.iter().map(|entry| text(entry).map(plain).context("a sentence is missing")).collect()
}

/// As it was written, where words and signs were set apart.
fn plain(text: &str) -> String {
    let mut text = text.trim().to_owned();
    for (apart, together) in [
        ("-LRB- ", "("),
        (" -RRB-", ")"),
        ("-LSB- ", "["),
        (" -RSB-", "]"),
        ("`` ", "\""),
        (" ''", "\""),
        (" .", "."),
        (" ,", ","),
        (" ;", ";"),
        (" 's", "'s"),
        (" n't", "n't"),
        (" %", "%"),
        (" -- ", " – "),
    ] {
        text = text.replace(apart, together);
    }
    text
}
