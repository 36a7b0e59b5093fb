//! One text per name over all contexts of a concept: the question, and what is kept of the answer.

use std::collections::HashMap;
use std::fmt::Write;

use okt_model::{FactId, ImageId};

use super::claims::claims;
use super::kept::{Given, read};
use super::slice::{TOKENS_PER_SENTENCE, line};
use super::{Attempt, Known, Written};
use crate::answer::Misfit;
use crate::line::shown;
use crate::promptset::{Phase, Promptset};
use crate::question::{ILLUSTRATED, Prompt, Question, SECTIONS};

/// More of a related text is not shown, in characters.
const LONGEST_EXCERPT: usize = 600;
/// More of the description of an image is neither shown nor written.
const LONGEST_DESCRIPTION: usize = 200;
const MOST_SENTENCES: u32 = 40;
/// Pairs that a complaint names.
const NAMED_PAIRS: usize = 8;

/// All that a synthesis is written from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Material<'m> {
    pub name: &'m str,
    pub contexts: &'m [InContext<'m>],
    /// The facts that may be cited: those that the texts cite, and both sides of each contradiction.
    pub facts: &'m [Known<'m>],
    pub related: &'m [Related<'m>],
    pub syntheses: &'m [RelatedSynthesis<'m>],
    /// Pairs of facts that contradict each other, as places in `facts`.
    pub contradictions: &'m [(usize, usize)],
    pub images: &'m [Offered<'m>],
}

/// What is known in one context.
#[derive(Clone, Copy, Debug)]
pub struct InContext<'c> {
    pub context: &'c str,
    /// Markdown with citations: slices as they are stored, or, where there are none, what [`super::outline_text`] makes of the
    /// facts. A sentence that cites no fact given is not shown.
    pub texts: &'c [&'c str],
}

/// A concept that shares facts with this one.
#[derive(Clone, Copy, Debug)]
pub struct Related<'r> {
    pub name: &'r str,
    pub context: &'r str,
    pub shared_facts: u32,
}

/// What is written about a related concept; only its beginning is shown, without citations.
#[derive(Clone, Copy, Debug)]
pub struct RelatedSynthesis<'r> {
    pub name: &'r str,
    pub content: &'r str,
}

/// An image that may be shown. Its description is written as its caption.
#[derive(Clone, Copy, Debug)]
pub struct Offered<'i> {
    pub id: ImageId,
    pub description: &'i str,
}

/// Asks for one text about a name, from what is written about it in each context.
pub fn synthesis_question(promptset: &Promptset, material: &Material, max_tokens: u32) -> Question {
    let form = if material.images.is_empty() { &SECTIONS } else { &ILLUSTRATED };
    let user = asked(material, max_tokens);
    Prompt::with_max_tokens(promptset.text(Phase::Synthesis), form, max_tokens).ask(user)
}

fn asked(material: &Material, max_tokens: u32) -> String {
    let places: HashMap<FactId, usize> =
        material.facts.iter().enumerate().map(|(at, fact)| (fact.id, at)).collect();
    let mut user = format!("Concept: {}\n", shown(material.name));
    for part in material.contexts {
        // Writing to a string does not fail.
        let _ = writeln!(user, "In the context {}:", shown(part.context));
        for claim in part.texts.iter().flat_map(|text| claims(text)) {
            let cited: Vec<usize> = claim.facts.iter().filter_map(|fact| places.get(fact).copied()).collect();
            if !cited.is_empty() {
                let _ = writeln!(user, "- {} {}", shown(&claim.text), marks(&cited));
            }
        }
    }
    if !material.contradictions.is_empty() {
        user.push_str("These contradict each other; present both sides or neither:\n");
        for (one, other) in material.contradictions {
            for at in [one, other] {
                user.extend(material.facts.get(*at).map(|fact| line(*at, fact)));
            }
            user.push_str("--\n");
        }
    }
    if !material.related.is_empty() {
        let name = |related: &Related| {
            format!(
                "{} ({}; {} shared facts)",
                shown(related.name),
                shown(related.context),
                related.shared_facts
            )
        };
        let names: Vec<String> = material.related.iter().map(name).collect();
        let _ = writeln!(user, "Related concepts: {}", names.join(", "));
    }
    for other in material.syntheses {
        let _ = writeln!(user, "About {}, not to be cited: {}", shown(other.name), excerpt(other.content));
    }
    for (at, image) in material.images.iter().enumerate() {
        let _ = writeln!(user, "Image {}: {}", at + 1, shown(described(image)));
    }
    let most = (max_tokens / TOKENS_PER_SENTENCE).clamp(1, MOST_SENTENCES);
    let _ = writeln!(user, "Write at most {most} sentences.");
    user
}

fn marks(cited: &[usize]) -> String {
    let numbers: Vec<String> = cited.iter().map(|at| (at + 1).to_string()).collect();
    format!("[{}]", numbers.join(", "))
}

/// The first claims of a text, as many as fit.
fn excerpt(markdown: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for claim in claims(markdown) {
        let text = shown(&claim.text);
        length += text.chars().count() + 1;
        if length > LONGEST_EXCERPT {
            break;
        }
        out.extend([text.as_str(), " "]);
    }
    out.trim_end().to_owned()
}

fn described<'i>(image: &Offered<'i>) -> &'i str {
    let end = image.description.char_indices().nth(LONGEST_DESCRIPTION).map(|(at, _)| at);
    &image.description[..end.unwrap_or(image.description.len())]
}

/// Reads the answer to [`synthesis_question`]: as [`super::read_slice`] does, with headings and the images offered. A text that
/// cites one side of a contradiction only is refused, also the last.
pub fn read_synthesis(answer: &str, material: &Material, attempt: Attempt) -> Result<Written, Misfit> {
    let form = if material.images.is_empty() { &SECTIONS } else { &ILLUSTRATED };
    let contexts = material.contexts.iter().map(|part| part.context);
    let related = material.related.iter().flat_map(|related| [related.name, related.context]);
    let about: Vec<&str> = [material.name].into_iter().chain(contexts).chain(related).collect();
    let images: Vec<(ImageId, &str)> =
        material.images.iter().map(|image| (image.id, described(image))).collect();
    let written =
        read(answer, form, &Given { facts: material.facts, about: &about, images: &images }, attempt)?;
    let pairs = one_sided(material.contradictions, &written.cited);
    if pairs.is_empty() { Ok(written) } else { Err(complaint(&pairs)) }
}

/// The contradictions of which a text cites one side only.
pub fn one_sided(contradictions: &[(usize, usize)], cited: &[usize]) -> Vec<(usize, usize)> {
    let is_cited = |at: &usize| cited.contains(at);
    contradictions.iter().filter(|(one, other)| is_cited(one) != is_cited(other)).copied().collect()
}

fn complaint(pairs: &[(usize, usize)]) -> Misfit {
    let named = pairs.iter().take(NAMED_PAIRS).map(|(one, other)| format!("{} and {}", one + 1, other + 1));
    let named: Vec<String> = named.collect();
    Misfit::OneSided(format!(
        "Facts that contradict each other are cited on one side only: {}. Say that sources disagree and cite both facts of each \
         pair, or cite neither.",
        named.join("; ")
    ))
}
