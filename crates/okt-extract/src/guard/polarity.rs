//! Whether a text says that something is so, or that it is not.

use std::collections::HashSet;

use super::Reading;
use super::direction::look_up;
use super::tables::{Language, common, list};
use super::words::{Kind, Token};

/// What is denied.
pub struct Negations {
    /// How often, after those that cancel each other.
    pub count: usize,
    /// Denies several things at once: neither and nor, not this or that.
    list: bool,
    /// The segments of the text in which something is denied.
    segments: HashSet<usize>,
}

impl Negations {
    pub fn of(text: &Reading, other: &Reading, language: &Language) -> Self {
        let mut found = Self { count: 0, list: false, segments: HashSet::new() };
        let mut last: Option<(usize, usize)> = None;
        let neither = text.has("neither") || text.has("weder");
        for (at, token) in text.tokens.iter().enumerate() {
            let or = token.is("or")
                || (token.is("and") && text.tokens.get(at + 1).is_some_and(|next| next.is("not")));
            found.list |= found.count > 0 && or;
            if !is_negation(text, at, other, language) {
                continue;
            }
            if neither && (token.is("nor") || token.is("noch")) {
                found.list = true;
                continue;
            }
            let segment = text.segments[at];
            match last {
                Some((_, before)) if before == segment && language.concord => {}
                // Not impossible, never without.
                Some((place, before)) if before == segment && at - place <= 4 => {
                    found.count -= 1;
                    found.segments.remove(&segment);
                    last = None;
                }
                _ => {
                    found.count += 1;
                    found.segments.insert(segment);
                    last = Some((at, segment));
                }
            }
        }
        found
    }

    /// Whether both deny as much.
    pub fn fits(&self, other: &Self) -> bool {
        self.count == other.count || (self.count > 0 && other.count > 0 && (self.list || other.list))
    }
}

/// Whether one denies what the other says, and says what the other denies.
pub fn deny_different_things(a: &Reading, b: &Reading, denied: (&Negations, &Negations)) -> bool {
    if denied.0.segments.is_empty() || denied.0.list || denied.1.list {
        return false;
    }
    let mut moved = [false; 2];
    for &(one, other) in &a.shared(b) {
        let (in_a, in_b) =
            (denied.0.segments.contains(&a.segments[one]), denied.1.segments.contains(&b.segments[other]));
        if in_a != in_b {
            moved[usize::from(in_a)] = true;
        }
    }
    moved[0] && moved[1]
}

pub fn is_negation(text: &Reading, at: usize, other: &Reading, language: &Language) -> bool {
    let token = &text.tokens[at];
    if token.kind != Kind::Word && !language.has(list::HALF_NOT, &token.text) {
        return false;
    }
    if language.has(list::NEGATIONS, &token.text) {
        // No. 5
        let numbered = token.is("no")
            && matches!(text.tokens.get(at + 1), Some(next) if next.is("."))
            && matches!(
                text.tokens.get(at + 2).map(|next| &next.kind),
                Some(Kind::Amount(_) | Kind::Date(_))
            );
        return !numbered && !is_compared(text, at, language);
    }
    let before = |within: usize, list: u32| {
        let near = text.tokens[at.saturating_sub(within)..at].iter();
        near.rev().take_while(|token| !token.is(",")).any(|token| language.has(list, &token.text))
    };
    // It is no longer so.
    if language.has(list::HALF_NOT, &token.text) && before(4, list::BEFORE_NOT) {
        return true;
    }
    if token.is("free") && token.glued {
        return true;
    }
    is_declined(text, at, other) || is_made_negative(token, text, other, language)
}

/// Who avoids paying, or declines to pay, does not pay. But prices that decline to record lows fall to them.
fn is_declined(text: &Reading, at: usize, other: &Reading) -> bool {
    let next = |ahead: usize| text.tokens.get(at + ahead);
    if text.tokens[at].stem == "avoid" {
        return next(1).is_some_and(|next| next.text.ends_with("ing"));
    }
    if text.tokens[at].stem != "declin" || !next(1).is_some_and(|next| next.is("to")) {
        return false;
    }
    let Some(deed) =
        next(2).filter(|deed| deed.is_word() && !matches!(deed.text.as_str(), "a" | "an" | "the"))
    else {
        return false;
    };
    let falls = other.tokens.windows(3).any(|words| {
        let amount = look_up(&words[0]).iter().any(|end| end.axis == 0);
        amount && words[1].is("to") && words[2].stem == deed.stem
    });
    !falls
}

/// More than any other, which some languages say as more than no other.
fn is_compared(text: &Reading, at: usize, language: &Language) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| text.tokens[before].text.as_str()) else {
        return false;
    };
    let than = matches!(before, "que" | "qu" | "che" | "di" | "do" | "d" | "de");
    let degree =
        text.tokens[at.saturating_sub(8)..at].iter().any(|token| language.has(list::DEGREES, &token.text));
    // More than ever; but later he said that never again.
    let next = text.tokens.get(at + 1);
    let ends = next.is_none_or(|next| next.kind == Kind::Mark);
    let other = next.is_some_and(|next| {
        matches!(next.text.as_str(), "otro" | "otra" | "autre" | "altro" | "altra" | "outro" | "outra")
    });
    language.concord && than && degree && (ends || other)
}

/// `ineffective` where the other text has `effective`, `painless` where it has `pain`.
pub fn is_made_negative(token: &Token, text: &Reading, other: &Reading, language: &Language) -> bool {
    if other.has_stem(&token.stem) || common().ends.contains_key(&token.stem) {
        return false;
    }
    let elsewhere = |rest: &str| {
        let stem = super::words::stem(rest, language);
        rest.len() >= 3 && other.has_stem(&stem) && !text.has_stem(&stem)
    };
    let word = token.text.as_str();
    ["un", "in", "im", "il", "ir", "non", "dis", "a", "an", "de"]
        .iter()
        .filter_map(|prefix| word.strip_prefix(prefix))
        .any(elsewhere)
        || word.strip_suffix("less").is_some_and(elsewhere)
        || is_quality_denied(word, text, other)
        || word.strip_prefix("un").is_some_and(|rest| {
            let root = super::words::stem(rest, language);
            word.ends_with("ed")
                && root.len() >= 4
                && other.tokens.iter().any(|token| is_noun_of(&root, token))
        })
}

/// `intolerant` where the other text has `tolerate`, `incurable` where it has `cured`.
fn is_quality_denied(word: &str, text: &Reading, other: &Reading) -> bool {
    if word.starts_with("important") || word.starts_with("immigrant") {
        return false;
    }
    let rests = ["un", "in", "im", "il", "ir"].iter().filter_map(|prefix| word.strip_prefix(prefix));
    let endings = ["able", "ible", "ant", "ent", "ive"];
    rests.flat_map(|rest| endings.iter().filter_map(|end| rest.strip_suffix(end))).any(|root| {
        let is = |stem: &str| other.has_stem(stem) && !text.has_stem(stem);
        root.len() >= 3 && (is(root) || is(&format!("{root}at")))
    })
}

/// `signature` of `sign`.
fn is_noun_of(root: &str, token: &Token) -> bool {
    const ENDINGS: [&str; 10] = ["atur", "ation", "ition", "ion", "ment", "al", "ur", "anc", "enc", "or"];
    // Registration of register.
    let shorter = root.strip_suffix("er").map(|front| format!("{front}r"));
    let ends = |root: &str| token.stem.strip_prefix(root).is_some_and(|end| ENDINGS.contains(&end));
    token.is_word() && (ends(root) || shorter.is_some_and(|root| ends(&root)))
}

/// Marks of negation in scripts that put no spaces between words, or none around them.
const MARKERS: [&str; 17] = [
    "不",
    "没",
    "沒",
    "無",
    "无",
    "非",
    "未",
    "別",
    "别",
    "ない",
    "なかっ",
    "ません",
    "않",
    "안 ",
    "못",
    "없",
    "아니",
];

/// How often something is denied, as far as it can be seen.
pub fn markers(text: &str) -> usize {
    if text.is_ascii() {
        return 0;
    }
    let latin = text.chars().filter(|c| *c < '\u{250}').filter(|c| c.is_alphabetic()).count();
    if latin * 2 > text.chars().filter(|c| c.is_alphabetic()).count() {
        return 0;
    }
    let russian = [
        "не",
        "нет",
        "ни",
        "без",
        "никогда",
        "нельзя",
        "لا",
        "لم",
        "لن",
        "ليس",
        "ليست",
        "غير",
        "नहीं",
        "न",
        "לא",
        "אין",
        "ไม่",
        "δεν",
    ];
    let words = text
        .split(|c: char| !c.is_alphanumeric() && !unicode_normalization::char::is_combining_mark(c))
        .filter(|word| russian.contains(&word.to_lowercase().as_str()))
        .count();
    let thai = text.matches("ไม่").count();
    words + thai + MARKERS.iter().map(|marker| text.matches(marker).count()).sum::<usize>()
}
