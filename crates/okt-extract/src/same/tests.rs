//! Facts that must stay two, and texts that are one fact.

mod one_change;

use std::collections::HashSet;

use super::*;

/// Kind, one fact, the other. They differ.
const DIFFER: &str = include_str!("tests/differ.tsv");
/// Written to attack the permitted differences. They differ.
const ATTACKS: &str = include_str!("tests/attacks.tsv");
/// A permitted difference, and two texts that say the same.
const SAME: &str = include_str!("tests/same.tsv");

fn pairs(table: &'static str) -> impl Iterator<Item = [&'static str; 3]> {
    table.lines().map(|line| {
        let parts: Vec<&str> = line.split('\t').collect();
        parts.try_into().unwrap_or_else(|parts| panic!("{parts:?}"))
    })
}

#[test]
fn what_differs_stays_two() {
    let merged: Vec<String> = pairs(DIFFER)
        .chain(pairs(ATTACKS))
        .filter_map(|[kind, a, b]| same_fact(a, b).map(|by| format!("{kind} {by:?}: {a} | {b}")))
        .collect();
    assert!(merged.is_empty(), "{} would be merged:\n{}", merged.len(), merged.join("\n"));
    assert!(pairs(DIFFER).count() >= 176 && pairs(ATTACKS).count() >= 180);
}

#[test]
fn the_rule_stands_without_the_guard() {
    // Pairs that only the guard keeps apart are few, so that neither of the two is there for nothing.
    let merged: Vec<String> = pairs(DIFFER)
        .filter_map(|[kind, a, b]| permitted(a, b).map(|by| format!("{kind} {by:?}: {a} | {b}")))
        .collect();
    assert!(merged.is_empty(), "{} would be merged:\n{}", merged.len(), merged.join("\n"));
}

#[test]
fn what_is_written_in_two_ways_is_one_fact_by_the_permitted_difference_that_is_meant() {
    for [expected, a, b] in pairs(SAME) {
        let by = same_fact(a, b).unwrap_or_else(|| panic!("{expected}: {a} | {b}"));
        assert!(by.iter().any(|by| by.as_str() == expected), "{expected}, but {by:?}: {a} | {b}");
    }
}

#[test]
fn every_permitted_difference_has_an_example() {
    let used: HashSet<&str> = pairs(SAME).map(|[difference, ..]| difference).collect();
    for difference in PermittedDifference::ALL {
        assert!(used.contains(difference.as_str()), "{difference:?}");
    }
}

#[test]
fn it_does_not_matter_which_fact_comes_first() {
    for [_, a, b] in pairs(DIFFER).chain(pairs(ATTACKS)).chain(pairs(SAME)) {
        assert_eq!(same_fact(a, b), same_fact(b, a), "{a} | {b}");
        assert_eq!(same_fact(a, a), Some(Vec::new()), "{a}");
    }
}

#[test]
fn one_word_more_is_not_the_same_fact() {
    let words = [
        "not",
        "never",
        "allegedly",
        "almost",
        "only",
        "no",
        "if",
        "former",
        "nearly",
        "probably",
        "without",
    ];
    for [_, a, b] in pairs(SAME) {
        for text in [a, b] {
            let pieces: Vec<&str> = text.split(' ').collect();
            for at in 0..pieces.len() {
                for word in words {
                    let longer = [&pieces[..at], &[word], &pieces[at..]].concat().join(" ");
                    assert_eq!(same_fact(text, &longer), None, "{longer}");
                }
            }
        }
    }
}

#[test]
fn one_word_less_is_the_same_fact_only_where_it_is_permitted() {
    let free =
        ["the", "The", "also", "that", "located", "in", "of", "and", "however,", "which", "was", "has", "is"];
    let mut wrong = Vec::new();
    for [_, a, b] in pairs(SAME).chain(pairs(DIFFER)) {
        for text in [a, b] {
            let pieces: Vec<&str> = text.split(' ').collect();
            for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| !free.contains(piece)) {
                let shorter = [&pieces[..at], &pieces[at + 1..]].concat().join(" ");
                if same_fact(text, &shorter).is_some() {
                    wrong.push(format!("{text} without {piece}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_languages_and_scripts_are_left_alone() {
    for (a, b) in [
        ("東京は日本の首都です。", "東京は日本の首都です"),
        ("서울은 한국의 수도이다.", "서울은 한국의 수도이다"),
        ("Москва является столицей.", "Москва является столицей"),
        ("Der Minister hat 12 Punkte.", "Der Minister hat zwölf Punkte."),
        ("Das Werk wurde am 5. Mai 2021 eröffnet.", "Das Werk wurde am 2021-05-05 eröffnet."),
    ] {
        assert_eq!(same_fact(a, b), None, "{a}");
        assert_eq!(same_fact(a, a), Some(Vec::new()));
    }
}

/// A small generator of our own; the same texts every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn text(&mut self, pieces: &[&str]) -> String {
        let mut text = String::from("the ");
        for _ in 0..self.roll(16) {
            match self.roll(12) {
                0 => text.extend(char::from_u32(u32::try_from(self.roll(0x11_0000)).unwrap())),
                1 => text.extend(char::from_u32(u32::try_from(self.roll(0x250)).unwrap())),
                _ => text.push_str(pieces[self.roll(pieces.len())]),
            }
            if self.roll(4) > 0 {
                text.push(' ');
            }
        }
        text
    }
}

#[test]
fn any_two_texts_can_be_compared_either_way_round() {
    let mut pieces: Vec<&str> = "the|a|and|or|,|.|'s|'|\"|``|''|-|–|—|(|)|5|May|2021|1,200|1.5|million|hundred|twenty|first|2nd|$|%|km|\
        per|cent|8|pm|20:15|2021-05-05|1990s|who|which|that|was|were|has|been|said|River|Exe|province|of|mayor|Lyon|also|however|\
        in|on|by|is|located|lies|town|released|opened|Ann|Bob|between|it|don't|can't|cannot|No.|U.S.|É|ß|İ|ﬁ|\u{301}|\u{200b}|½|²"
        .split('|')
        .collect();
    pieces.extend(SAME.split_whitespace());
    let mut dice = Dice(7);
    for _ in 0..20_000 {
        let (a, b) = (dice.text(&pieces), dice.text(&pieces));
        assert_eq!(same_fact(&a, &b), same_fact(&b, &a), "{a:?} {b:?}");
        // The same with a piece put in or taken away.
        let at = dice.roll(a.len() + 1);
        if a.is_char_boundary(at) {
            let longer = format!("{}{}{}", &a[..at], pieces[dice.roll(pieces.len())], &a[at..]);
            assert_eq!(same_fact(&a, &longer), same_fact(&longer, &a), "{a:?} {longer:?}");
        }
    }
}

#[test]
fn hostile_texts_are_refused_in_no_time() {
    let begin = std::time::Instant::now();
    for piece in [
        "the ",
        "Ann and ",
        "Ann, ",
        "the mayor of ",
        "which was ",
        "five hundred and ",
        "also ",
        "in early ",
        "1,",
        "'s ",
        "é",
    ] {
        let (a, b) = (piece.repeat(100_000), piece.repeat(99_999));
        assert_eq!(same_fact(&a, &b), None, "{piece}");
        let (a, b) = (piece.repeat(60), piece.repeat(59));
        same_fact(&a, &b);
    }
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
}

#[test]
fn judged_pairs_are_counted_by_kind() {
    let lines = r#"{"a": "The bridge was built in 1932.", "b": "The bridge was constructed in 1932.", "merge": 1, "kind": "word"}
        {"a": "The bridge was built in 1932.", "b": "The bridge was built in 1933.", "merge": 0, "kind": "number", "src": "x"}"#;
    let measured = measure(lines).unwrap();
    let of = |same: bool, kind: &str| {
        let measured = &measured[&(same, kind.to_owned())];
        (measured.pairs, measured.merged.len())
    };
    assert_eq!((of(true, "word"), of(false, "number")), ((1, 1), (1, 0)));
    assert!(measure("{}").is_err());
}
