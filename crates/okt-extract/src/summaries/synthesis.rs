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
use crate::question::{ILLUSTRATED, Prompt, Question, SENTENCES};

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
    let form = if material.images.is_empty() { &SENTENCES } else { &ILLUSTRATED };
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

/// Reads the answer to [`synthesis_question`]: as [`super::read_slice`] does, with the images offered. A text that
/// cites one side of a contradiction only is refused, also the last.
pub fn read_synthesis(answer: &str, material: &Material, attempt: Attempt) -> Result<Written, Misfit> {
    let form = if material.images.is_empty() { &SENTENCES } else { &ILLUSTRATED };
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

#[cfg(test)]
mod tests {
    use super::super::citations::cite;
    use super::super::tests::{FACTS, id, known};
    use super::*;

    fn image(no: u8) -> ImageId {
        format!("0197a3c0-0000-7000-8000-0000000001{no:02x}").parse().unwrap()
    }

    fn answer(sentences: &[(&str, &str, &str, u8)]) -> String {
        let sentence = |(heading, text, facts, image): &(&str, &str, &str, u8)| {
            format!(r#"{{"heading":"{heading}","text":"{text}","facts":{facts},"image":{image}}}"#)
        };
        format!(r#"{{"sentences":[{}]}}"#, sentences.iter().map(sentence).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn slices_are_shown_with_the_numbers_of_their_facts() {
        let slices = [
            format!(
                "{} Nobody cites this. {}",
                cite("Piers [9] moved.", &[id(1), id(77)]),
                cite("Unknown fact.", &[id(77)])
            ),
            cite("It is closed.", &[id(0), id(3)]),
        ];
        let texts: Vec<&str> = slices.iter().map(String::as_str).collect();
        let about =
            format!("{} {}", cite("Trade is done [1].", &[id(5)]), cite(&"long ".repeat(200), &[id(5)]));
        let facts = known();
        let material = Material {
            name: "Harbour Bridge",
            contexts: &[
                InContext { context: "Bridge", texts: &texts },
                InContext { context: "Road", texts: &[] },
            ],
            facts: &facts,
            related: &[Related { name: "Pier", context: "Building", shared_facts: 3 }],
            syntheses: &[RelatedSynthesis { name: "Trade", content: &about }],
            contradictions: &[(2, 4)],
            images: &[Offered { id: image(1), description: "The bridge\n[4] at low tide" }],
        };
        let question = synthesis_question(&Promptset::builtin(), &material, 10_000);
        assert_eq!(
            question.user,
            format!(
                "Concept: Harbour Bridge\nIn the context Bridge:\n- Piers (9) moved. [2]\n- It is closed. [1, 4]\nIn the context \
                 Road:\nThese contradict each other; present both sides or neither:\n[3] (3 sources) {}\n[5] {}\n--\nRelated \
                 concepts: Pier (Building; 3 shared facts)\nAbout Trade, not to be cited: Trade is done (1).\nImage 1: The \
                 bridge (4) at low tide\nWrite at most 40 sentences.\n",
                FACTS[2], FACTS[4]
            )
        );
        assert!(question.schema.contains(r#""image""#) && question.max_tokens == 10_000);
        let plain = synthesis_question(&Promptset::builtin(), &Material { images: &[], ..material }, 10_000);
        assert!(!plain.schema.contains(r#""image""#));
        let thought = plain.clone().thinking("high");
        assert_eq!(thought.thinking, Some("high"));
        assert_ne!(thought.key("m"), plain.key("m"), "another time to think is another question");
    }

    #[test]
    fn a_text_has_paragraphs_and_the_images_offered_and_no_headings() {
        let facts = known();
        let images = [
            Offered { id: image(1), description: "Low *tide*" },
            Offered { id: image(2), description: "Plan" },
        ];
        let material =
            Material { name: "Harbour Bridge", facts: &facts, images: &images, ..Material::default() };
        let said = answer(&[
            ("", "It is closed.", "[1]", 2),
            ("## Repair <b>", "It costs money.", "[3]", 0),
            ("Mayor Lee stole money", "Buses cross.", "[4]", 2),
            ("Nothing below", "Invented.", "[]", 1),
            ("", "Shops fear for their trade.", "[6]", 9),
        ]);
        let written = read_synthesis(&said, &material, Attempt::Last).unwrap();
        assert_eq!(
            written.content,
            format!(
                "[It is closed.](<fact:{}>)\n\n![Plan](<image:{}>)\n\n[It costs money.](<fact:{}>) [Buses \
                 cross.](<fact:{}>) [Shops fear for their trade.](<fact:{}>)",
                id(0),
                image(2),
                id(2),
                id(3),
                id(5)
            )
        );
        assert_eq!((written.images, written.dropped_sentences), (vec![1], 1));
        let texts: Vec<String> = ('a'..='l').map(|letter| format!("It is closed {letter}.")).collect();
        let long = answer(&texts.iter().map(|text| ("", text.as_str(), "[1]", 0)).collect::<Vec<_>>());
        let written = read_synthesis(&long, &material, Attempt::First).unwrap();
        assert_eq!(written.content.split("\n\n").count(), 3, "paragraphs of five");
    }

    #[test]
    fn a_contradiction_is_cited_on_both_sides_or_on_none() {
        assert_eq!(one_sided(&[(0, 1), (2, 3), (4, 5)], &[1, 2, 3]), [(0, 1)]);
        let facts = known();
        let pairs = [(2, 4), (0, 1)];
        let material =
            Material { name: "Harbour Bridge", facts: &facts, contradictions: &pairs, ..Material::default() };
        let one = answer(&[("", "The repair costs 41 million.", "[3]", 0)]);
        for attempt in [Attempt::First, Attempt::Last] {
            let Err(misfit) = read_synthesis(&one, &material, attempt) else { panic!("only one side") };
            assert_eq!(misfit.code(), Misfit::ONE_SIDED);
            assert!(misfit.to_string().contains("only: 3 and 5."), "{misfit}");
        }
        let both = answer(&[("", "The repair costs 41 million or 55 million.", "[3,5]", 0)]);
        assert!(read_synthesis(&both, &material, Attempt::First).is_ok());
        let neither = answer(&[("", "Shops fear for their trade.", "[6]", 0)]);
        assert!(read_synthesis(&neither, &material, Attempt::First).is_ok());
        // The other side was dropped with its sentence.
        let lost =
            answer(&[("", "The repair costs 41 million.", "[3]", 0), ("", "Or 56 million.", "[5]", 0)]);
        assert!(matches!(read_synthesis(&lost, &material, Attempt::Last), Err(Misfit::OneSided(_))));
        let many: Vec<(usize, usize)> = (0..50).map(|at| (at + 1_000, at + 2_000)).collect();
        assert!(complaint(&many).to_string().chars().count() <= 300);
    }
}
