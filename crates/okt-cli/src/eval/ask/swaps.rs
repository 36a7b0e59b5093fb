//! Sentences that say another thing than the one that they were made from: one number, one name, or one "not" is another.

/// What was swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Swap {
    Number,
    Negation,
    Name,
}

impl Swap {
    pub const ALL: [Self; 3] = [Self::Number, Self::Negation, Self::Name];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Negation => "negation",
            Self::Name => "name",
        }
    }
}

/// Names that are in no text of the sets.
const NAMES: [&str; 4] = ["Kowalczewski", "Brindlemere", "Zatopkova", "Oyelarande"];

/// The sentence with one thing swapped, if it has such a thing.
pub fn swapped(sentence: &str, swap: Swap) -> Option<String> {
    match swap {
        Swap::Number => number(sentence),
        Swap::Negation => negation(sentence),
        Swap::Name => name(sentence),
    }
}

fn number(sentence: &str) -> Option<String> {
    // Not one inside of a word, nor the whole of a list mark.
    let bare = |word: &str| {
        let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
        let plain = digits.len() > 1 && digits.bytes().all(|byte| byte.is_ascii_digit());
        (plain && !word.contains(char::is_alphabetic)).then(|| digits.to_owned())
    };
    let found = sentence.split_whitespace().find_map(bare)?;
    let last = found.bytes().last()?;
    let other = char::from(b'0' + (last - b'0' + 3) % 10);
    let swapped = format!("{}{other}", &found[..found.len() - 1]);
    let at = sentence.find(&found)?;
    Some(format!("{}{swapped}{}", &sentence[..at], &sentence[at + found.len()..]))
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

fn name(sentence: &str) -> Option<String> {
    let words: Vec<&str> = sentence.split(' ').collect();
    let at = (1..words.len()).find(|at| {
        let word = words[*at].trim_matches(|c: char| !c.is_alphanumeric());
        let letters = word.chars().all(char::is_alphabetic) && word.chars().count() > 3;
        letters && word.starts_with(char::is_uppercase) && word.chars().skip(1).all(char::is_lowercase)
    })?;
    let bare = words[at].trim_matches(|c: char| !c.is_alphanumeric());
    let other = words[at].replace(bare, NAMES[at % NAMES.len()]);
    let mut words = words;
    words[at] = &other;
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_another() {
        let sentence = "The bridge of Aldra was opened in 1962.";
        assert_eq!(swapped(sentence, Swap::Number).unwrap(), "The bridge of Aldra was opened in 1965.");
        assert_eq!(swapped(sentence, Swap::Negation).unwrap(), "The bridge of Aldra was not opened in 1962.");
        assert_eq!(swapped("It was not opened.", Swap::Negation).unwrap(), "It was opened.");
        let named = swapped(sentence, Swap::Name).unwrap();
        assert!(!named.contains("Aldra") && named.starts_with("The bridge of "), "{named}");
        for swap in Swap::ALL {
            assert_eq!(swapped("bees dance", swap), None);
        }
    }
}
