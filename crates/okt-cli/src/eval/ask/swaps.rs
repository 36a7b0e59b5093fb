//! Sentences that say another thing than the one that they were made from: one number, one name, or one "not" is another, or what is said
//! of one thing goes on with what is said of another. What is put in comes from another sentence where there is one, which is cited as
//! well: then nothing in the sentence is new, and only what belongs to what is wrong.

/// What was swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Swap {
    Number,
    Negation,
    Name,
    Join,
}

impl Swap {
    pub const ALL: [Self; 4] = [Self::Number, Self::Negation, Self::Name, Self::Join];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Negation => "negation",
            Self::Name => "name",
            Self::Join => "join",
        }
    }
}

/// Names that are in no text of the sets.
const NAMES: [&str; 4] = ["Kowalczewski", "Brindlemere", "Zatopkova", "Oyelarande"];

/// The sentence with one thing swapped, if it has such a thing, and the sentence that the other thing is from.
pub fn swapped<'o>(sentence: &str, swap: Swap, others: &[&'o str]) -> Option<(String, Option<&'o str>)> {
    match swap {
        Swap::Number => number(sentence, others),
        Swap::Negation => negation(sentence).map(|swapped| (swapped, None)),
        Swap::Name => name(sentence, others),
        Swap::Join => join(sentence, others).map(|(joined, other)| (joined, Some(other))),
    }
}

/// The digits of a word that is a number: not one inside of a word, nor a single digit, which may be the mark of a list.
fn digits(word: &str) -> Option<&str> {
    let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
    let plain = digits.len() > 1 && digits.bytes().all(|byte| byte.is_ascii_digit());
    (plain && !word.contains(char::is_alphabetic)).then_some(digits)
}

fn number<'o>(sentence: &str, others: &[&'o str]) -> Option<(String, Option<&'o str>)> {
    let found = sentence.split_whitespace().find_map(digits)?;
    let at = sentence.find(found)?;
    let with = |number: &str| format!("{}{number}{}", &sentence[..at], &sentence[at + found.len()..]);
    let other = others.iter().find_map(|other| {
        let number = other.split_whitespace().filter_map(digits).find(|number| !sentence.contains(number))?;
        Some((with(number), Some(*other)))
    });
    other.or_else(|| {
        let last = found.bytes().last()?;
        let digit = char::from(b'0' + (last - b'0' + 3) % 10);
        Some((with(&format!("{}{digit}", &found[..found.len() - 1])), None))
    })
}

fn negation(sentence: &str) -> Option<String> {
    if let Some(at) = sentence.find(" not ") {
        return Some(format!("{}{}", &sentence[..at], &sentence[at + 4..]));
    }
    [" is ", " was ", " are ", " were ", " has been ", " can ", " will "].iter().find_map(|verb| {
        let at = sentence.find(verb)?;
        let helper = verb.trim_end().split(' ').nth(1)?;
        let end = at + 1 + helper.len();
        Some(format!("{} not{}", &sentence[..end], &sentence[end..]))
    })
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

fn is_name(word: &str) -> bool {
    let letters = word.chars().all(char::is_alphabetic) && word.chars().count() > 3;
    letters && word.starts_with(char::is_uppercase) && word.chars().skip(1).all(char::is_lowercase)
}

/// The names of a sentence but for its first word, with their places.
fn names(sentence: &str) -> impl Iterator<Item = (usize, &str)> {
    sentence.split(' ').map(bare).enumerate().skip(1).filter(|(_, word)| is_name(word))
}

fn name<'o>(sentence: &str, others: &[&'o str]) -> Option<(String, Option<&'o str>)> {
    let (at, found) = names(sentence).next()?;
    let with = |name: &str| {
        let words = sentence.split(' ').enumerate();
        let words =
            words.map(|(place, word)| if place == at { word.replace(found, name) } else { word.to_owned() });
        words.collect::<Vec<_>>().join(" ")
    };
    let other = others.iter().find_map(|other| {
        let (_, name) = names(other).find(|(_, name)| !sentence.contains(name))?;
        Some((with(name), Some(*other)))
    });
    Some(other.unwrap_or_else(|| (with(NAMES[at % NAMES.len()]), None)))
}

/// What a sentence says of something that it begins with by name, as far as there is so much of it.
fn subject_and_rest(sentence: &str) -> Option<(Vec<&str>, String)> {
    let mut words = sentence.split(' ').peekable();
    words.next_if(|word| *word == "The");
    let mut subject = Vec::new();
    while let Some(word) = words.next_if(|word| word.starts_with(char::is_uppercase)) {
        subject.push(bare(word));
    }
    let rest: Vec<&str> = words.collect();
    (!subject.is_empty() && rest.len() > 2).then(|| (subject, rest.join(" ")))
}

fn join<'o>(sentence: &str, others: &[&'o str]) -> Option<(String, &'o str)> {
    let (own, _) = subject_and_rest(sentence)?;
    others.iter().find_map(|other| {
        let (subject, rest) = subject_and_rest(other)?;
        let is_another = subject.iter().all(|name| !sentence.contains(name)) && own != subject;
        is_another.then(|| (format!("{} and {rest}", sentence.trim_end_matches('.')), *other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_another() {
        let sentence = "The bridge of Aldra was opened in 1962.";
        let alone = |sentence: &str, swap| swapped(sentence, swap, &[]).map(|(swapped, _)| swapped);
        assert_eq!(alone(sentence, Swap::Number).unwrap(), "The bridge of Aldra was opened in 1965.");
        assert_eq!(alone(sentence, Swap::Negation).unwrap(), "The bridge of Aldra was not opened in 1962.");
        assert_eq!(alone("It was not opened.", Swap::Negation).unwrap(), "It was opened.");
        let named = alone(sentence, Swap::Name).unwrap();
        assert!(!named.contains("Aldra") && named.starts_with("The bridge of "), "{named}");
        for swap in Swap::ALL {
            assert_eq!(swapped("bees dance", swap, &[]), None);
        }
    }

    #[test]
    fn what_is_put_in_is_from_another_sentence() {
        let sentence = "Aldra has a bridge that was opened near Kirkwall in 1962.";
        let other = "Skomer was left by all of its people for Tenby in 1980.";
        let with = |swap| swapped(sentence, swap, &["It rains.", other]).unwrap();
        assert_eq!(
            with(Swap::Number),
            ("Aldra has a bridge that was opened near Kirkwall in 1980.".to_owned(), Some(other))
        );
        assert_eq!(
            with(Swap::Name),
            ("Aldra has a bridge that was opened near Tenby in 1962.".to_owned(), Some(other))
        );
        assert_eq!(
            with(Swap::Join),
            (
                "Aldra has a bridge that was opened near Kirkwall in 1962 and was left by all of its people for Tenby in 1980."
                    .to_owned(),
                Some(other)
            )
        );
    }
}
