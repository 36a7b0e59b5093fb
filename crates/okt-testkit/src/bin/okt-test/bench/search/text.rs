//! Texts that are made up: few words are in many of them, names lead from one source to others, and each source has a subject.

use std::collections::BTreeMap;

use okt_testkit::soak::Dice;

const WORDS: u64 = 200_000;
const SUBJECTS: usize = 512;
/// Words that belong to a subject.
const OF_SUBJECT: u64 = 400;
const NAMES: u64 = 20_000;

/// A fact of a source about a subject: ten to thirty words, of which a quarter belong to the subject, and often a name.
pub fn fact(dice: &mut Dice, subject: usize) -> String {
    let count = 10 + dice.below(21);
    let mut words: Vec<String> = (0..count).map(|_| word(dice, subject)).collect();
    if dice.below(3) == 0 {
        let at = dice.index(words.len());
        words.insert(at.max(1), name(dice));
    }
    format!("{}.", words.join(" "))
}

pub fn title(dice: &mut Dice, subject: usize) -> String {
    format!("{} {}", name(dice), word(dice, subject))
}

/// Two to six words, as somebody asks about a fact; sometimes with a name.
pub fn question(dice: &mut Dice) -> String {
    let subject = dice.index(SUBJECTS);
    let count = 2 + dice.below(5);
    let mut words: Vec<String> = (0..count).map(|_| word(dice, subject)).collect();
    if dice.below(2) == 0 {
        words.push(name(dice));
    }
    words.join(" ")
}

pub fn subject(dice: &mut Dice) -> usize {
    dice.index(SUBJECTS)
}

fn word(dice: &mut Dice, subject: usize) -> String {
    let number = if dice.below(4) == 0 {
        let first = u64::try_from(subject).unwrap_or(0) * OF_SUBJECT;
        (first + few(dice, OF_SUBJECT)) % WORDS
    } else {
        few(dice, WORDS)
    };
    spelled(number)
}

fn name(dice: &mut Dice) -> String {
    let number = few(dice, NAMES);
    let part = |number: u64| {
        let word = spelled(WORDS + number);
        let (first, rest) = word.split_at(1);
        format!("{}{rest}", first.to_uppercase())
    };
    format!("{} {}", part(number % 997), part(number))
}

/// A number below a limit: the first is drawn most often, the n-th one n-th as often.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "any number below the limit will do"
)]
fn few(dice: &mut Dice, limit: u64) -> u64 {
    let share = dice.below(1 << 40) as f64 / (1_u64 << 40) as f64;
    ((limit as f64).powf(share) as u64 - 1).min(limit - 1)
}

/// A word that can be spoken, another one for each number.
fn spelled(mut number: u64) -> String {
    const CONSONANTS: &[u8; 16] = b"bdfgklmnprstvwzh";
    const VOWELS: &[u8; 4] = b"aeou";
    let mut word = String::new();
    loop {
        let (consonant, vowel) = (number % 16, number / 16 % 4);
        word.push(char::from(CONSONANTS[usize::try_from(consonant).unwrap_or(0)]));
        word.push(char::from(VOWELS[usize::try_from(vowel).unwrap_or(0)]));
        number /= 64;
        if number == 0 {
            // An ending that no stemmer takes away.
            word.push('k');
            return word;
        }
    }
}

/// The words of a text as lists have them.
pub fn counted(text: &str) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for word in okt_search::words(text, Some("en")) {
        *counts.entry(word.lexeme).or_default() += 1;
    }
    counts
}
