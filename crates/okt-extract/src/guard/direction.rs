//! Words that pull apart: up and down, before and after, for and against.

use std::collections::HashMap;

use super::Reading;
use super::tables::{End, common};
use super::words::{Kind, Token};

/// An opposition in which two texts stand at different ends.
pub struct Conflict {
    pub axis: usize,
    /// Where the words stand that differ.
    pub at: (usize, usize),
}

/// Where one text has turned to the other end.
pub fn conflicts(a: &Reading, b: &Reading) -> Vec<Conflict> {
    let (ends_a, ends_b) = (ends(&a.tokens), ends(&b.tokens));
    let mut axes: Vec<usize> = ends_a.keys().filter(|axis| ends_b.contains_key(axis)).copied().collect();
    axes.sort_unstable();
    let mut conflicts = Vec::new();
    for axis in axes {
        let (one, other) = (&ends_a[&axis], &ends_b[&axis]);
        let more = |x: &[Vec<usize>; 2], y: &[Vec<usize>; 2], end: usize| x[end].len() > y[end].len();
        for (high, low) in [(0, 1), (1, 0)] {
            if more(one, other, high) && more(other, one, low) {
                conflicts.push(Conflict { axis, at: (one[high][0], other[low][0]) });
            }
        }
    }
    conflicts
}

/// Whether a comparative is one of more or of less.
pub fn degree(token: &Token) -> Option<bool> {
    look_up(token).first().map(|end| end.high)
}

/// Which ends words stand at, and where; less turns what it stands before.
fn ends(tokens: &[Token]) -> HashMap<usize, [Vec<usize>; 2]> {
    let mut found: HashMap<usize, [Vec<usize>; 2]> = HashMap::new();
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).map_or(&[][..], look_up);
        if matches!(token.text.as_str(), "less" | "least") && !next.is_empty() {
            continue;
        }
        let before = at.checked_sub(1).map_or("", |before| tokens[before].text.as_str());
        // Who is given something receives it.
        let given = token.is("given") && !matches!(before, "has" | "have" | "had");
        let turned = given || matches!(before, "less" | "least");
        for end in look_up(token) {
            found.entry(end.axis).or_default()[usize::from(end.high == turned)].push(at);
        }
    }
    found
}

/// The ends that a word stands at.
pub fn look_up(token: &Token) -> &'static [End] {
    // In the middle of a sentence a capital makes a name: North Korea, New York.
    if token.kind != Kind::Word || (token.capital && !token.opens) {
        return &[];
    }
    let ends = &common().ends;
    if let Some(found) = ends.get(&token.stem) {
        return found;
    }
    let text = token.text.as_str();
    for (end, put) in [("ier", "y"), ("iest", "y"), ("er", ""), ("est", "")] {
        let Some(front) = text.strip_suffix(end).filter(|front| front.len() >= 3 && front.is_ascii()) else {
            continue;
        };
        let doubled = front.as_bytes()[front.len() - 1] == front.as_bytes()[front.len() - 2];
        let front = if doubled { &front[..front.len() - 1] } else { front };
        if let Some(found) = ends.get(&format!("{front}{put}")) {
            return found;
        }
    }
    &[]
}

/// Beginnings and endings that make opposites of what is otherwise one word.
const BEGINNINGS: [(&str, &str); 32] = [
    ("hyper", "hypo"),
    ("pre", "post"),
    ("over", "under"),
    ("intra", "inter"),
    ("intra", "extra"),
    ("endo", "exo"),
    ("endo", "ecto"),
    ("macro", "micro"),
    ("anti", "pro"),
    ("up", "down"),
    ("in", "ex"),
    ("in", "out"),
    ("im", "ex"),
    ("im", "em"),
    ("en", "de"),
    ("in", "de"),
    ("ante", "post"),
    ("homo", "hetero"),
    ("mono", "poly"),
    ("mono", "bi"),
    ("mono", "di"),
    ("di", "tri"),
    ("uni", "bi"),
    ("uni", "multi"),
    ("super", "sub"),
    ("ab", "ad"),
    ("north", "south"),
    ("east", "west"),
    ("max", "min"),
    ("photo", "chemo"),
    ("de", "re"),
    ("thermo", "electro"),
];
const ENDINGS: [(&str, &str); 9] = [
    ("ful", "less"),
    ("philic", "phobic"),
    ("phile", "phobe"),
    ("er", "ee"),
    ("or", "ee"),
    ("ate", "ite"),
    ("ide", "ate"),
    ("ose", "ase"),
    ("ous", "ic"),
];

/// `hypertension` and `hypotension`, `employer` and `employee`.
pub fn are_made_opposite(a: &str, b: &str) -> bool {
    let (x, y) = (a.as_bytes(), b.as_bytes());
    let alike = x.get(..3) == y.get(..3) || x.iter().rev().take(3).eq(y.iter().rev().take(3));
    if !alike {
        return false;
    }
    let rest = |front: &str| front.len() >= 3;
    let begins = |x: &str, y: &str| {
        BEGINNINGS.iter().any(|(one, other)| {
            x.strip_prefix(one).zip(y.strip_prefix(other)).is_some_and(|(x, y)| x == y && rest(x))
        })
    };
    let ends = |x: &str, y: &str| {
        ENDINGS.iter().any(|(one, other)| {
            x.strip_suffix(one).zip(y.strip_suffix(other)).is_some_and(|(x, y)| x == y && rest(x))
        })
    };
    begins(a, b) || begins(b, a) || ends(a, b) || ends(b, a)
}
