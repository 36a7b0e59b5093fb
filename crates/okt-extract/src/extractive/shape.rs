//! Whether a sentence looks like a statement, in any language.

use super::lists::ALL;
use crate::answer::LONGEST_FACT;
use crate::ground::is_unspaced;

/// Whether it has the length, the beginning, the end and the characters of a whole statement.
pub fn is_statement(sentence: &str) -> bool {
    has_length(sentence)
        && begins(sentence)
        && ends(sentence)
        && is_balanced(sentence)
        && is_prose(sentence)
        && !is_glued(sentence)
        && !is_reference(sentence)
}

/// 5 to 60 words, or 10 to 200 characters where no spaces stand between words; no more than a fact may have in any case.
fn has_length(sentence: &str) -> bool {
    if sentence.chars().nth(LONGEST_FACT).is_some() {
        return false;
    }
    let letters = sentence.chars().filter(|c| c.is_alphabetic()).count();
    let unspaced = sentence.chars().filter(|c| is_unspaced(*c)).count();
    if unspaced * 2 > letters {
        return (10..=200).contains(&sentence.chars().count());
    }
    let words = sentence.split(' ').filter(|word| word.contains(char::is_alphanumeric)).count();
    (5..=60).contains(&words)
}

/// With a capital, a digit or a letter that knows no case; not with a bullet, the number of an item, or a label.
fn begins(sentence: &str) -> bool {
    let Some(first) = sentence.chars().next() else { return false };
    if is_quote(first) {
        return quotes_a_name(sentence);
    }
    let mut words = sentence.split(' ');
    let word = words.next().unwrap_or_default();
    let next_is_capital = words.next().is_some_and(|next| next.starts_with(char::is_uppercase));
    let bare = word.trim_end_matches(['.', ')', ':']);
    let number = bare.len() <= 3 && bare.bytes().all(|byte| byte.is_ascii_digit());
    let is_item = (bare != word && (number || bare.len() == 1)) || (number && next_is_capital);
    let is_labelled = sentence.split(' ').take(2).any(|word| word.ends_with([':', '：']));
    (first.is_numeric() || (first.is_alphabetic() && !first.is_lowercase())) && !is_item && !is_labelled
}

/// `“Macbeth” is a play …`, but no speech.
fn quotes_a_name(sentence: &str) -> bool {
    let mut chars = sentence.char_indices().skip(1);
    let Some((end, _)) = chars.find(|(_, c)| is_quote(*c)) else { return false };
    let (name, rest) = sentence.split_at(end);
    let rest = rest.trim_start_matches(is_quote);
    name.split(' ').count() <= 5
        && !name.ends_with(['.', ',', '!', '?'])
        && rest.starts_with(' ')
        && ends(rest)
}

/// With the full stop of some script, and without dots that leave something out.
fn ends(sentence: &str) -> bool {
    let bare = sentence.trim_end_matches(|c| is_quote(c) || matches!(c, ')' | ']' | '）' | '」' | '』'));
    bare.ends_with(['.', '。', '．', '｡', '।', '۔', '።', '။', '։'])
        && !sentence.contains("..")
        && !sentence.contains('…')
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '‟' | '«' | '»' | '‹' | '›' | '‘' | '‚')
}

/// Brackets close what they opened, and quotes come in pairs.
fn is_balanced(sentence: &str) -> bool {
    let mut open = Vec::new();
    for c in sentence.chars() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            '（' => open.push('）'),
            '「' => open.push('」'),
            '『' => open.push('』'),
            '《' => open.push('》'),
            ')' | ']' | '}' | '）' | '」' | '』' | '》' if open.pop() != Some(c) => return false,
            _ => {}
        }
    }
    let paired = |marks: &[char]| sentence.chars().filter(|c| marks.contains(c)).count() % 2 == 0;
    open.is_empty()
        && paired(&['"'])
        && paired(&['“', '”', '„', '‟'])
        && paired(&['«', '»'])
        && paired(&['‹', '›'])
}

/// Mostly letters, not mostly capitals, no question, nothing to click on.
fn is_prose(sentence: &str) -> bool {
    let count = |is: fn(char) -> bool| sentence.chars().filter(|c| is(*c)).count();
    let (letters, shown) = (count(char::is_alphabetic), count(|c| !c.is_whitespace()));
    let (capitals, small) = (count(char::is_uppercase), count(char::is_lowercase));
    let links =
        sentence.split(' ').filter(|word| is_link(word)).map(|word| word.chars().count()).sum::<usize>();
    letters * 10 >= shown * 6
        && (small == 0 && capitals == 0 || capitals < small)
        && links * 3 <= shown
        && !sentence.contains(['?', '？', '؟', '!', '！', '|', '©', '@', '→', '\u{fffd}'].as_slice())
}

fn is_link(word: &str) -> bool {
    word.contains("://") || word.contains("www.") || word.contains("doi:") || word.contains("doi.org")
}

/// Two sentences that nobody has cut: a full stop that is none of an abbreviation, and a capital after it.
fn is_glued(sentence: &str) -> bool {
    let inner = |mark: char| sentence.trim_end_matches(|c: char| !c.is_alphanumeric()).contains(mark);
    if inner('。') || inner('।') {
        return true;
    }
    sentence.match_indices(". ").any(|(at, _)| {
        let after = sentence[at + 2..].trim_start_matches(is_quote);
        let before = sentence[..at].rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let is_initial = before.chars().count() == 1 && before.starts_with(char::is_uppercase);
        let is_ordinal = before.len() <= 2 && before.bytes().all(|byte| byte.is_ascii_digit());
        after.starts_with(char::is_uppercase)
            && !is_initial
            && !is_ordinal
            && !ALL.has("abbreviations", &before.to_lowercase())
    })
}

/// `Ito, K. & Brown, J. (2004) …`
fn is_reference(sentence: &str) -> bool {
    let mut words = sentence.split(' ');
    let (Some(name), Some(initial)) = (words.next(), words.next()) else { return false };
    let initial = initial.trim_end_matches([',', ';', '&']);
    let is_initial = initial.ends_with('.')
        && initial.split('.').all(|part| part.chars().count() <= 1 || part.contains('-'));
    name.ends_with(',') && is_initial
}
