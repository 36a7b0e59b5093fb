//! Whether a sentence looks like a statement, in any language.

use super::lists::ALL;
use crate::atomic::LONGEST_FACT;
use crate::ground::is_unspaced;
use crate::reason::Reason;

/// Whether it has the length, the beginning, the end and the characters of a whole statement.
pub fn check(sentence: &str) -> Result<(), Reason> {
    let must = |holds: bool, reason: Reason| if holds { Ok(()) } else { Err(reason) };
    must(!is_question(sentence), Reason::Question)?;
    must(!is_reference(sentence), Reason::Reference)?;
    must(!is_ticker(sentence), Reason::Boilerplate)?;
    must(!is_speech(sentence), Reason::Quotation)?;
    must(has_length(sentence) && begins(sentence) && ends(sentence), Reason::NotASentence)?;
    must(is_balanced(sentence) && is_prose(sentence), Reason::NotASentence)?;
    must(!is_glued(sentence) && !is_dated(sentence) && !is_headed(sentence), Reason::RunTogether)
}

/// 5 to 75 words, or 10 to 200 characters where no spaces stand between words; no more than a fact may have in any case.
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
    (5..=75).contains(&words)
}

/// In words.
const HEADLINE: usize = 14;

/// A colon so near to the beginning ends a label.
const LABEL: usize = 4;

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
    let is_labelled = sentence.split(' ').take(LABEL).any(|word| word.ends_with([':', '：']));
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
        && !sentence.contains(MARKS.as_slice())
        && !sentence.contains("__")
        && !sentence.contains(" / ")
}

/// What stands in calls, menus, code, templates, formulas and tables, and hardly in prose.
const MARKS: [char; 32] = [
    '!', '！', '|', '©', '®', '™', '@', '→', '←', '⇒', '⇔', '\u{fffd}', '{', '}', '<', '>', '\\', '•', '▪',
    '■', '►', '★', '✓', '^', '∈', '∩', '∪', '∀', '∃', '∅', '∑', '∫',
];

fn is_question(sentence: &str) -> bool {
    sentence.contains(['?', '？', '؟'].as_slice())
}

/// `9:04 p.m. — …`, `0:37: …`, `[12:05] …`
pub fn is_ticker(sentence: &str) -> bool {
    let first =
        sentence.trim_start_matches(['[', '(']).split([' ', ']', ')', ',']).next().unwrap_or_default();
    let mut parts = first.trim_end_matches(':').split(':');
    let short = |part: Option<&str>| {
        part.is_some_and(|part| matches!(part.len(), 1 | 2) && part.bytes().all(|b| b.is_ascii_digit()))
    };
    (short(parts.next()) && short(parts.next())) || sentence.contains("{{") || sentence.contains("}}")
}

/// Speech with nobody to speak it: all of it, or the first of its sentences, is between quotes.
fn is_speech(sentence: &str) -> bool {
    sentence.starts_with(is_quote) && !quotes_a_name(sentence)
}

/// `What we saw in Berlin: The house …`: a headline, its colon, and a whole sentence.
fn is_headed(sentence: &str) -> bool {
    let mut words = sentence.split(' ').take(HEADLINE).skip_while(|word| !word.ends_with(':'));
    words.next().is_some() && words.next().is_some_and(|word| word.starts_with(char::is_uppercase))
}

/// `LONDON (AP) — …`, `BERLIN, Sept 3 – …`, `(Reuters) - …`
fn is_dated(sentence: &str) -> bool {
    let dash = |mark: &&str| matches!(*mark, "—" | "–" | "-" | "--");
    let Some(at) = sentence.split(' ').take(9).position(|word| dash(&word)) else { return false };
    let head: Vec<&str> = sentence.split(' ').take(at).collect();
    let letters = |word: &str| word.chars().filter(|c| c.is_alphabetic()).count();
    let shouted = head.first().is_some_and(|word| letters(word) > 3 && !word.contains(char::is_lowercase));
    shouted || head.last().is_some_and(|word| word.starts_with('(') && word.ends_with(')') && at <= 4)
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

/// `Ito, K. & Brown, J. (2004) …`, `[12] …`
fn is_reference(sentence: &str) -> bool {
    let mut words = sentence.split(' ');
    let (Some(name), Some(initial)) = (words.next(), words.next()) else { return false };
    let initial = initial.trim_end_matches([',', ';', '&']);
    let is_initial = initial.ends_with('.')
        && initial.split('.').all(|part| part.chars().count() <= 1 || part.contains('-'));
    let is_mark = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    (name.ends_with(',') && is_initial)
        || is_mark.is_some_and(|mark| mark.len() <= 3 && mark.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether it may be a part of an entry of a list of references: most of them have a year in brackets, an address, pages,
/// or initials.
pub fn is_like_reference(sentence: &str) -> bool {
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let has_year = sentence.split(' ').any(|word| {
        let year = bare(word);
        word.starts_with('(') && year.len() >= 4 && year.as_bytes()[..4].iter().all(u8::is_ascii_digit)
    });
    let has_initial = sentence
        .split(' ')
        .any(|word| word.len() == 2 && word.ends_with('.') && word.starts_with(char::is_uppercase));
    let has_pages = sentence.split(' ').any(|word| {
        let parts: Vec<_> = word.trim_matches(|c: char| !c.is_alphanumeric()).split(['–', '-']).collect();
        parts.len() == 2
            && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    });
    has_year || has_initial || has_pages || is_reference(sentence) || sentence.split(' ').any(is_link)
}
