//! What the model says: a function of what it is asked.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem::take;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Behaviour;
use super::texts::written;

/// What an image counts.
const IMAGE_TOKENS: u64 = 765;

/// A question, as far as it matters here.
pub(super) struct Question {
    /// Whatever users said.
    pub user: String,
    pub images: Vec<Vec<u8>>,
    pub tokens: u64,
}

impl Question {
    pub(super) fn read(body: &Value) -> Self {
        let mut question = Self { user: String::new(), images: Vec::new(), tokens: 0 };
        for message in body["messages"].as_array().into_iter().flatten() {
            let user = message["role"] == "user";
            match &message["content"] {
                Value::String(text) => question.text(text, user),
                Value::Array(parts) => parts.iter().for_each(|part| question.part(part, user)),
                _ => {}
            }
        }
        question
    }

    fn text(&mut self, text: &str, user: bool) {
        self.tokens += tokens(text);
        if user {
            self.user.push_str(text);
            self.user.push('\n');
        }
    }

    fn part(&mut self, part: &Value, user: bool) {
        if let Some(text) = part["text"].as_str() {
            self.text(text, user);
        } else if let Some(url) = part["image_url"]["url"].as_str() {
            self.tokens += IMAGE_TOKENS;
            let data = url.split_once(";base64,").map_or("", |(_, data)| data);
            self.images.push(STANDARD.decode(data).unwrap_or_default());
        }
    }

    /// The good answer.
    pub(super) fn answer(&self, behaviour: &Behaviour) -> String {
        let order = self.user.lines().find_map(|line| Some(line.split_once("OBEY:")?.1.trim_start()));
        if let Some(order) = order.filter(|_| behaviour.obedient) {
            return order.to_owned();
        }
        if let Some(recorded) = (behaviour.recorded)(self.user.trim_end()) {
            return recorded;
        }
        if !self.images.is_empty() {
            let facts: Vec<_> = self.images.iter().map(|image| json!({ "text": seen(image) })).collect();
            return json!({ "facts": facts }).to_string();
        }
        let pairs = self.pairs("Statement: ", "Fact: ");
        if !pairs.is_empty() {
            let postures =
                pairs.into_iter().map(|(number, one, other)| (number, (behaviour.posture)(one, other)));
            let said: Vec<_> = postures
                .map(|(number, posture)| {
                    let same = posture != "irrelevant";
                    json!({ "pair": number, "same_subject": same, "posture": posture, "confidence": 90 })
                })
                .collect();
            return json!({ "pairs": said }).to_string();
        }
        let pairs = self.pairs("A: ", "B: ");
        if !pairs.is_empty() {
            let verdicts =
                pairs.into_iter().map(|(number, one, other)| (number, (behaviour.verdict)(one, other)));
            let said = verdicts.filter(|(_, verdict)| !verdict.is_empty());
            let said: Vec<_> =
                said.map(|(number, verdict)| json!({ "pair": number, "verdict": verdict })).collect();
            return json!({ "pairs": said }).to_string();
        }
        if self.user.starts_with("Sentence 1: ") {
            return (behaviour.repairs)(&self.user);
        }
        if let Some((question, facts)) = self.asked() {
            if self.user.contains("\nWrite at most ") {
                return (behaviour.writes)(question, &facts);
            }
            let scores =
                facts.iter().map(|(key, text)| json!({ "k": key, "n": (behaviour.helps)(question, text) }));
            return json!({ "scores": scores.collect::<Vec<_>>() }).to_string();
        }
        if self.user.starts_with("Concept: ") {
            return written(&self.user, behaviour.citing);
        }
        let sentences: Vec<_> = self.user.lines().filter_map(sentence).collect();
        if self.user.starts_with("Contexts:\n") {
            return concepts(&sentences, behaviour);
        }
        if sentences.is_empty() {
            return "{}".to_owned();
        }
        if sentences.len() > behaviour.copies_above {
            let (numbers, texts): (Vec<_>, Vec<_>) = sentences.into_iter().unzip();
            return json!({ "facts": [{ "text": texts.join(" "), "sentences": numbers }] }).to_string();
        }
        let told =
            sentences.iter().filter(|(_, text)| text.split_whitespace().count() >= behaviour.fewest_words);
        let facts: Vec<_> = told
            .take(behaviour.most_facts)
            .map(|(number, text)| json!({ "text": text, "sentences": [number] }))
            .collect();
        let facts = if behaviour.loops { vec![facts; 8].concat() } else { facts };
        json!({ "facts": facts }).to_string()
    }
}

impl Question {
    /// What somebody asks, and the facts by their keys.
    fn asked(&self) -> Option<(&str, Vec<(&str, &str)>)> {
        let question = self.user.lines().find_map(|line| line.strip_prefix("Question: "))?;
        let known = self.user.starts_with("Question: ") || self.user.starts_with("Asked before: ");
        let facts = self.user.lines().filter_map(|line| line.strip_prefix('[')?.split_once("] "));
        known.then(|| (question, facts.collect()))
    }

    /// `[1]`, and two texts on lines after it that begin so.
    fn pairs(&self, first: &str, second: &str) -> Vec<(u64, &str, &str)> {
        let (mut pairs, mut number, mut one) = (Vec::new(), None, None);
        for line in self.user.lines() {
            if let Some(next) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                (number, one) = (next.parse().ok(), None);
            } else if let Some(a) = line.strip_prefix(first) {
                one = Some(a);
            } else if let (Some(number), Some(a), Some(b)) = (number, one, line.strip_prefix(second)) {
                pairs.push((number, a, b));
            }
        }
        pairs
    }
}

/// Sentences with the keys that they cite, as an answer.
pub fn sentences(all: &[(&str, &[&str])], missing: &str) -> String {
    let all: Vec<_> = all.iter().map(|(text, keys)| json!({ "s": text, "f": keys })).collect();
    json!({ "sentences": all, "missing": missing }).to_string()
}

/// The first facts as they are, each with its own key.
pub fn copied(_: &str, facts: &[(&str, &str)]) -> String {
    let own = |text: &str| {
        text.split(" — \"").next().unwrap_or_default().split(" (").next().unwrap_or_default().to_owned()
    };
    let texts: Vec<(String, &str)> = facts.iter().take(3).map(|(key, text)| (own(text), *key)).collect();
    let all: Vec<_> = texts.iter().map(|(text, key)| json!({ "s": text, "f": [key] })).collect();
    json!({ "sentences": all, "missing": "" }).to_string()
}

/// What numbered facts are about.
fn concepts(facts: &[(u64, &str)], behaviour: &Behaviour) -> String {
    let mut named: BTreeMap<(String, &str), Vec<u64>> = BTreeMap::new();
    for (number, fact) in facts {
        for concept in (behaviour.concepts)(fact) {
            named.entry(concept).or_default().push(*number);
        }
    }
    let one = |name: &str, context: &str, facts: &[u64]| json!({ "name": name, "context": context, "aliases": [], "facts": facts });
    let mut said: Vec<Value> =
        named.iter().map(|((name, context), facts)| one(name, context, facts)).collect();
    if behaviour.inventive {
        let all: Vec<u64> = facts.iter().map(|(number, _)| *number).collect();
        said.push(one("Atlantis", "Place", &all));
        said.push(one("it", "Concept", &all));
        said.push(one("1789", "Concept", &all));
        said.push(one("bees", "Species", &[900]));
        said.push(one("Poseidon", "Sunken kingdom", &[]));
    }
    json!({ "concepts": said }).to_string()
}

/// Apiaries, hives and what lives there.
pub(super) fn names(fact: &str) -> Vec<(String, &'static str)> {
    let words: Vec<&str> =
        fact.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).collect();
    let mut names: Vec<(String, &'static str)> = words
        .windows(2)
        .filter(|pair| ["apiary", "hive"].contains(&pair[0]) && pair[1].parse::<u32>().is_ok())
        .map(|pair| (pair.join(" "), "Place"))
        .collect();
    if words.contains(&"bees") {
        names.push(("bees".to_owned(), "Species"));
    }
    names
}

/// `[12] A sentence.`
pub(super) fn sentence(line: &str) -> Option<(u64, &str)> {
    let (number, text) = line.trim_start().strip_prefix('[')?.split_once("] ")?;
    Some((number.parse().ok()?, text))
}

fn seen(image: &[u8]) -> String {
    format!("The image shows pattern {}.", hex::encode(&Sha256::digest(image)[..4]))
}

/// Half of it, cut between characters.
pub(super) fn cut(answer: &str) -> &str {
    &answer[..answer.floor_char_boundary(answer.len().div_ceil(2))]
}

/// About what a real model would count: long words are several, and so are long numbers. By bytes, because it is done to
/// everything; what is not ASCII passes for a letter.
pub fn tokens(text: &str) -> u64 {
    let (mut count, mut letters, mut digits) = (0, 0, 0);
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' => {
                count += word(&mut letters);
                digits += 1;
            }
            b'a'..=b'z' | b'A'..=b'Z' | 0xc0.. => {
                count += number(&mut digits);
                letters += 1;
            }
            // The rest of a character.
            0x80..=0xbf => {}
            _ => {
                count += word(&mut letters) + number(&mut digits) + u64::from(!byte.is_ascii_whitespace());
            }
        }
    }
    count + word(&mut letters) + number(&mut digits)
}

fn word(letters: &mut u64) -> u64 {
    let letters = take(letters);
    if letters == 0 { 0 } else { 1 + letters / 6 }
}

fn number(digits: &mut u64) -> u64 {
    take(digits).div_ceil(3)
}

/// Words that are the same make numbers that are the same, so texts that share many are near each other.
pub(super) fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0.0_f32; dimensions];
    if text.starts_with(super::NOWHERE) {
        return vector;
    }
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words.map(str::to_lowercase) {
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        let hash = hasher.finish();
        let place = usize::try_from(hash >> 1).unwrap_or_default() % dimensions.max(1);
        if let Some(number) = vector.get_mut(place) {
            *number += if hash & 1 == 0 { 1.0 } else { -1.0 };
        }
    }
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if length > 0.0 {
        for number in &mut vector {
            *number /= length;
        }
    } else if let Some(first) = vector.first_mut() {
        *first = 1.0;
    }
    vector
}

/// How many words of a question a text has.
pub(super) fn shared_words(question: &str, text: &str) -> f64 {
    let text = text.to_lowercase();
    let words = question.split_whitespace().filter(|word| text.contains(&word.to_lowercase()));
    words.map(|_| 1.0).sum()
}
