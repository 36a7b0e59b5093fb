//! Who and what a text speaks of, as far as that can be told from how it is written.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Reading;
use super::tables::{Language, common, list};
use super::words::{Kind, Token};

/// Whether both speak of the same.
pub fn fit(a: &Reading, b: &Reading, language: &Language) -> bool {
    if a.is_titled() || b.is_titled() {
        return !(codes_differ(a, b) || kinds_differ(a, b));
    }
    let (of_a, of_b) = (strangers(a, b, language), strangers(b, a, language));
    let lone = |strangers: &[Stranger]| strangers.iter().any(|stranger| !stranger.attached);
    if !of_a.is_empty() && !of_b.is_empty() || lone(&of_a) || lone(&of_b) {
        return false;
    }
    !(codes_differ(a, b) || kinds_differ(a, b))
}

/// A name that the other text does not have.
struct Stranger {
    /// Beside a name that it has: the first name of somebody.
    attached: bool,
}

/// Whether a name stands at a place that the other text does not have, nor one beside it.
pub fn is_lone(text: &Reading, at: usize, other: &Reading, language: &Language) -> bool {
    // The first word of a sentence has a capital, too: in Norway.
    let beside = |place: usize| {
        let token = text.tokens.get(place);
        token.is_some_and(|token| token.capital && token.is_word() && !language.has(list::SMALL, &token.text))
            && is_known(text, place, other, language)
    };
    is_name(&text.tokens[at], language)
        && !is_known(text, at, other, language)
        && !beside(at + 1)
        && !at.checked_sub(1).is_some_and(beside)
}

/// Whether letters with digits stand in a text that the other does not have.
pub fn has_new_code(text: &Reading, other: &Reading) -> bool {
    text.tokens.iter().any(|token| token.kind == Kind::Code && !has_code(other, token))
}

static ALIASES: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let lines = include_str!("../../guard/aliases.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .enumerate()
        .flat_map(|(group, line)| line.split_whitespace().map(move |name| (name, group)))
        .collect()
});

const TITLES: [&str; 38] = [
    "president",
    "king",
    "queen",
    "dr",
    "mr",
    "mrs",
    "ms",
    "sir",
    "professor",
    "prof",
    "general",
    "saint",
    "st",
    "lord",
    "lady",
    "emperor",
    "pope",
    "prime",
    "minister",
    "chancellor",
    "senator",
    "judge",
    "justice",
    "captain",
    "colonel",
    "prince",
    "princess",
    "duke",
    "inc",
    "ltd",
    "corp",
    "corporation",
    "company",
    "city",
    "river",
    "mount",
    "lake",
    "republic",
];

fn strangers(text: &Reading, other: &Reading, language: &Language) -> Vec<Stranger> {
    (0..text.tokens.len())
        .filter(|at| is_name(&text.tokens[*at], language) && !is_known(text, *at, other, language))
        .map(|at| Stranger { attached: is_beside_known(text, at, other, language) })
        .collect()
}

fn is_beside_known(text: &Reading, at: usize, other: &Reading, language: &Language) -> bool {
    let near = |place: usize| {
        text.tokens.get(place).is_some_and(|token| token.capital && token.kind == Kind::Word)
            && is_known(text, place, other, language)
    };
    near(at + 1) || at.checked_sub(1).is_some_and(near)
}

/// Written with a capital where no sentence begins.
fn is_name(token: &Token, language: &Language) -> bool {
    let letters = token.raw.len() > 1 || !matches!(token.raw.as_str(), "I" | "A");
    token.kind == Kind::Word
        && token.capital
        && !token.opens
        && letters
        && !language.has(list::SMALL, &token.text)
        && !TITLES.contains(&token.text.as_str())
}

fn is_known(text: &Reading, at: usize, other: &Reading, language: &Language) -> bool {
    let token = &text.tokens[at];
    if other.has_stem(&token.stem)
        || other.has(&token.text)
        || is_short_for(&token.text, &token.raw, other, language)
    {
        return true;
    }
    // Spelled out in the same text: the name is there twice.
    if is_short_for(&token.text, &token.raw, text, language) {
        return true;
    }
    let group = ALIASES.get(token.text.as_str());
    other.tokens.iter().any(|theirs| {
        let initial = |short: &Token, long: &Token| {
            short.raw.len() == 1 && long.capital && long.raw.len() > 1 && long.raw.starts_with(&short.raw)
        };
        theirs.kind == Kind::Word
            && ((group.is_some() && ALIASES.get(theirs.text.as_str()) == group)
                || (!language.english && is_from(&token.text, theirs))
                || (theirs.capital
                    && (is_cut_short(&token.text, &theirs.text)
                        || is_cut_short(&theirs.text, &token.text)
                        || are_of_one_place(&token.text, &theirs.text)
                        || initial(token, theirs)
                        || initial(theirs, token)
                        || is_long_for(text, at, theirs, language))))
    })
}

/// Names of one thing.
pub fn are_aliases(a: &str, b: &str) -> bool {
    let group = ALIASES.get(a);
    group.is_some() && group == ALIASES.get(b)
}

/// `argentino` of Argentina, `japonaise` of Japon: what is written small where English has capitals.
fn is_from(name: &str, theirs: &Token) -> bool {
    const ENDINGS: [&str; 20] = [
        "an", "ain", "ien", "ienn", "in", "es", "ens", "iens", "ais", "ois", "isch", "ian", "en", "eo", "ee",
        "ean", "o", "a", "n", "s",
    ];
    let common = name.chars().zip(theirs.text.chars()).take_while(|(one, other)| one == other).count();
    let rest: String = theirs.text.chars().skip(common).collect();
    // `-o`, `-a`, `-os`, `-e`, `-es`, `-en`.
    let cut = rest.trim_end_matches('s').trim_end_matches(['o', 'a', 'e', 'i']);
    let cut = if rest.contains("isch") { "isch" } else { cut };
    let fits = |end: &str| ENDINGS.contains(&end) || end.is_empty();
    !theirs.capital
        && common >= 4
        && name.chars().count() <= common + 3
        && rest.chars().count() <= 6
        && (fits(&rest) || fits(cut) || fits(&format!("{cut}s")))
}

/// `Fed` where the other text has `Federal`.
fn is_cut_short(short: &str, long: &str) -> bool {
    (3..=4).contains(&short.len()) && long.len() > short.len() && long.starts_with(short)
}

/// `WHO` where the other text has `World Health Organization`.
fn is_short_for(short: &str, raw: &str, other: &Reading, language: &Language) -> bool {
    let capitals = raw.len() >= 2 && raw.len() <= 7 && raw.chars().filter(|c| c.is_uppercase()).count() >= 2;
    capitals && other.initials(language).iter().any(|initials| initials.contains(short))
}

/// One of the words that a short name of the other text stands for.
fn is_long_for(text: &Reading, at: usize, theirs: &Token, language: &Language) -> bool {
    let first = text.tokens[at].text.chars().next();
    first.is_some_and(|first| theirs.text.contains(first))
        && is_short_for(&theirs.text, &theirs.raw, text, language)
}

/// `Italy` and `Italian`, `Japan` and `Japanese`.
pub fn are_of_one_place(a: &str, b: &str) -> bool {
    let root = |name: &str| {
        ["ians", "ian", "eans", "ean", "ese", "ans", "an", "ish", "i", "ia", "y", "a", "o"].iter().find_map(
            |end| {
                name.strip_suffix(end).filter(|front| front.len() >= 3).map(|front| (front.to_owned(), *end))
            },
        )
    };
    let people = |end: &str| !matches!(end, "ia" | "y" | "a" | "o");
    let (root_a, root_b) = (root(a), root(b));
    let whole = |root: &Option<(String, &str)>, name: &str| {
        root.as_ref().is_some_and(|(front, end)| front == name && (people(end) || *end == "y"))
    };
    let both =
        root_a.as_ref().zip(root_b.as_ref()).is_some_and(|(a, b)| a.0 == b.0 && people(a.1) != people(b.1));
    both || whole(&root_a, b) || whole(&root_b, a)
}

/// Letters with digits are exact: `IL-6` is not `IL-10`.
fn codes_differ(a: &Reading, b: &Reading) -> bool {
    has_new_code(a, b) || has_new_code(b, a)
}

fn has_code(text: &Reading, code: &Token) -> bool {
    let alias = ALIASES.get(code.text.as_str());
    text.has(&code.text)
        || text.tokens.iter().any(|theirs| alias.is_some() && ALIASES.get(theirs.text.as_str()) == alias)
}

/// One of a kind for another: liver and kidney, copper and zinc, or what ends like a substance or a disease.
fn kinds_differ(a: &Reading, b: &Reading) -> bool {
    let (only_a, only_b) = (a.only(b), b.only(a));
    let groups = |token: &Token| common().kinds.get(&token.stem);
    only_a.iter().any(|one| {
        only_b.iter().any(|other| {
            let listed = groups(one)
                .zip(groups(other))
                .is_some_and(|(one, other)| one.iter().any(|group| other.contains(group)));
            listed || (is_substance(&one.text) && is_substance(&other.text))
        })
    })
}

/// By its ending, with the most common words that end so left out.
fn is_substance(word: &str) -> bool {
    const ENDINGS: [&str; 32] = [
        "itis", "osis", "emia", "oma", "pathy", "mycin", "cillin", "statin", "pril", "sartan", "olol",
        "azole", "idine", "umab", "imab", "tinib", "vir", "caine", "amine", "ium", "ase", "ose", "ene",
        "ane", "formin", "ylline", "ide", "ulin", "kine", "globin", "virus", "azepam",
    ];
    const COMMON: [&str; 40] = [
        "phase",
        "increase",
        "decrease",
        "case",
        "base",
        "disease",
        "release",
        "purchase",
        "lease",
        "those",
        "whose",
        "purpose",
        "expose",
        "propose",
        "suppose",
        "close",
        "dose",
        "lose",
        "choose",
        "compose",
        "diagnose",
        "scene",
        "gene",
        "plane",
        "hurricane",
        "medium",
        "provide",
        "side",
        "wide",
        "worldwide",
        "divide",
        "decide",
        "include",
        "guide",
        "inside",
        "outside",
        "coincide",
        "reside",
        "oppose",
        "impose",
    ];
    let plain = word.strip_suffix('s').unwrap_or(word);
    let ends = |word: &str| ENDINGS.iter().any(|end| word.len() > end.len() + 2 && word.ends_with(end));
    (ends(word) || ends(plain)) && !COMMON.contains(&word) && !COMMON.contains(&plain) && word.len() > 5
}
