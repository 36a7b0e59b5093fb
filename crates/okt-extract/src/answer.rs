//! The answer of a model, read without trust.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use okt_model::{ContentHash, content_hash};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;
use serde_json::error::Category;

use crate::atomic::{LONGEST_FACT, is_atomic};
use crate::facts::{Extracted, Grounded};
use crate::line::one_line;
use crate::question::Form;
use crate::reason::{Counts, Dropped, Reason};

/// No more facts are taken from one answer; 2,000 characters do not hold that many.
const MOST_FACTS: usize = 200;
/// Braces in prose before the object that are tried.
const MOST_TRIES: usize = 16;

/// Why an answer can't be used, in words for the model that gave it: at most 300 characters, nothing of the answer in them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It is not the JSON that was asked for.
    #[error("{0}")]
    Form(String),
    /// It had facts, and the source bears out none of them.
    #[error("{0}")]
    Ground(String),
    /// Half of its facts or more are several claims in one.
    #[error("{0}")]
    Coarse(String),
    /// A text cites one side of a known contradiction and not the other.
    #[error("{0}")]
    OneSided(String),
}

/// What becomes of an answer of which half or more are several claims in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coarse {
    /// It is asked for again in smaller pieces.
    Refused,
    /// The rest of it is taken: there are no smaller pieces.
    Taken,
}

impl Misfit {
    /// The name of [`Misfit::Coarse`].
    pub const COARSE: &'static str = "too_coarse";
    /// The name of [`Misfit::OneSided`].
    pub const ONE_SIDED: &'static str = "one_sided";

    /// A name for the kind.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Form(_) | Self::Ground(_) => "misfit",
            Self::Coarse(_) => Self::COARSE,
            Self::OneSided(_) => Self::ONE_SIDED,
        }
    }
}

/// Reads an answer. `sentences` says on which sentences a fact rests, given its text and the numbers it names, or why it is
/// not believed.
pub fn read(
    answer: &str,
    form: &Form,
    coarse: Coarse,
    sentences: impl Fn(&str, &[Number]) -> Result<Vec<i32>, Reason>,
) -> Result<Extracted, Misfit> {
    let Weighed { stated: all, extracted: Extracted { facts: found, dropped } } =
        weigh(answer, form, sentences)?;
    let several: usize = dropped.iter().filter(|left| is_coarse(left.reason)).map(|left| left.count).sum();
    if several > 0 && several * 2 >= all && (coarse == Coarse::Refused || found.is_empty()) {
        return Err(too_coarse(several, all));
    }
    if found.is_empty() && all > 0 {
        return Err(ungrounded(all, &dropped));
    }
    Ok(Extracted { facts: found, dropped })
}

/// What of an answer is believed, fact by fact, before it is decided whether the answer as a whole is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weighed {
    /// How many facts it states, the repeated ones as well; not those beyond the most that are taken.
    pub stated: usize,
    pub extracted: Extracted,
}

pub fn weigh(
    answer: &str,
    form: &Form,
    sentences: impl Fn(&str, &[Number]) -> Result<Vec<i32>, Reason>,
) -> Result<Weighed, Misfit> {
    let Answer { facts: Firsts { list: facts, beyond }, truncated } = object(answer, form)?;
    let stated = facts.len();
    let mut counts = Counts::default();
    counts.add(Reason::TooMany, beyond);
    counts.add(Reason::Truncated, truncated.into());
    let mut found: Vec<Grounded> = Vec::new();
    let mut places: HashMap<ContentHash, usize> = HashMap::new();
    for claim in facts {
        let text = one_line(&claim.text);
        let believed = sized(&text).and_then(|()| sentences(&text, &claim.sentences));
        let rests_on = match believed {
            Ok(rests_on) => rests_on,
            Err(reason) => {
                counts.add(reason, 1);
                continue;
            }
        };
        let hash = content_hash(&text);
        let place = *places.entry(hash).or_insert(found.len());
        match found.get_mut(place) {
            Some(same) => same.unite(&rests_on),
            None => found.push(Grounded { text, hash, sentences: rests_on }),
        }
    }
    Ok(Weighed { stated, extracted: Extracted { facts: found, dropped: counts.dropped() } })
}

fn sized(text: &str) -> Result<(), Reason> {
    if !text.contains(char::is_alphanumeric) {
        return Err(Reason::Empty);
    }
    is_atomic(text)
}

const fn is_coarse(reason: Reason) -> bool {
    matches!(reason, Reason::TooLong | Reason::NotAtomic)
}

#[derive(Deserialize)]
struct Answer {
    facts: Firsts<Claim>,
    /// See [`Closed`].
    #[serde(default)]
    truncated: bool,
}

#[derive(Deserialize)]
struct Claim {
    text: String,
    #[serde(default)]
    sentences: Vec<Number>,
}

impl Listed for Claim {
    const WHAT: &str = "a list of facts";
    const MOST: usize = MOST_FACTS;
}

/// What an answer lists.
pub trait Listed {
    const WHAT: &str;
    /// So many of a list are read.
    const MOST: usize;
}

/// The first of a list; the others are only counted.
pub struct Firsts<T> {
    pub list: Vec<T>,
    pub beyond: usize,
}

impl<'de, T: Listed + Deserialize<'de>> Deserialize<'de> for Firsts<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Counting<T>(PhantomData<T>);

        impl<'de, T: Listed + Deserialize<'de>> Visitor<'de> for Counting<T> {
            type Value = Firsts<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str(T::WHAT)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Firsts<T>, A::Error> {
                let mut firsts = Firsts { list: Vec::new(), beyond: 0 };
                while firsts.list.len() < T::MOST {
                    let Some(one) = list.next_element()? else { return Ok(firsts) };
                    firsts.list.push(one);
                }
                while list.next_element::<IgnoredAny>()?.is_some() {
                    firsts.beyond += 1;
                }
                Ok(firsts)
            }
        }

        deserializer.deserialize_seq(Counting(PhantomData))
    }
}

/// The one JSON object of an answer, whatever stands around it.
pub fn object<'de, T: Deserialize<'de>>(answer: &'de str, form: &Form) -> Result<T, Misfit> {
    let mut errors = Vec::new();
    for (at, _) in answer.match_indices('{').take(MOST_TRIES) {
        let mut values = serde_json::Deserializer::from_str(&answer[at..]).into_iter::<T>();
        match values.next() {
            Some(Ok(_)) if answer[at + values.byte_offset()..].contains('{') => {
                return Err(malformed("holds more than one JSON object", form));
            }
            Some(Ok(value)) => return Ok(value),
            Some(Err(error)) => errors.push(error.classify()),
            None => {}
        }
    }
    // The braces inside of an object that breaks off may well be whole, and mean nothing.
    let what = match errors.first() {
        None => "holds no JSON object",
        Some(_) if errors.contains(&Category::Eof) => "breaks off before the JSON ends; state fewer facts",
        Some(Category::Data) => "is JSON, but not of the form asked for",
        Some(_) => "is not valid JSON",
    };
    Err(malformed(what, form))
}

pub fn malformed(what: &str, form: &Form) -> Misfit {
    Misfit::Form(format!("The answer {what}. Answer with one JSON object and nothing else: {}", form.example))
}

fn too_coarse(coarse: usize, all: usize) -> Misfit {
    Misfit::Coarse(format!(
        "{coarse} of the {all} facts hold several claims. State each claim as a fact of its own: one sentence, at most \
         {LONGEST_FACT} characters. Do not copy whole paragraphs."
    ))
}

fn ungrounded(all: usize, dropped: &[Dropped]) -> Misfit {
    let whys = dropped.iter().filter_map(|Dropped { reason, count }| {
        let why = match reason {
            Reason::NoSentence => "cite no number of a sentence shown",
            Reason::NotInText => "say what the text does not say",
            Reason::NumberNotInText => "have numbers that are not in the text",
            Reason::Empty => "are empty",
            Reason::NotASentence => "only repeat the title",
            _ => return None,
        };
        Some(format!("{count} {why}"))
    });
    let whys = whys.collect::<Vec<_>>().join(", ");
    Misfit::Ground(format!(
        "None of the {all} facts can be used: {whys}. State only what is there, in its words and numbers."
    ))
}
