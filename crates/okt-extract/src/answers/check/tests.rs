use super::*;

const FACTS: [&str; 9] = [
    "The Rance tidal power station has 24 turbines with a capacity of 240 megawatts.",
    "The Sihwa tidal power station has 10 turbines.",
    "Aspirin reduces the risk of heart attack in men over 50.",
    "Aspirin does not reduce the risk of cancer in women.",
    "Mia Berg founded the Aldra Line in 1962.",
    "The Aldra Line may be sold to Norge Ferries.",
    "Die Fähre fährt seit 1998 nach Aldra.",
    "Norge Ferries runs two boats.",
    "Nils Holm works for the Aldra Line.",
];

fn checked(sentence: &str, cited: &[usize]) -> Checked {
    let given = |at: &usize| Given {
        key: "kqzb",
        text: FACTS[*at],
        quote: None,
        around: None,
        title: None,
        year: None,
    };
    check(sentence, &cited.iter().map(given).collect::<Vec<_>>(), Some("en"))
}

#[test]
fn what_the_facts_say_is_supported() {
    for (sentence, cited) in [
        ("The Rance tidal power station has 24 turbines with a capacity of 240 megawatts.", &[0][..]),
        ("The Sihwa tidal power station has 10 turbines.", &[1]),
        ("Mia Berg founded the Aldra Line in 1962, and Norge Ferries runs two boats.", &[4, 7]),
        ("Mia Berg founded the Aldra Line in 1962.", &[4]),
        ("Aspirin reduces the risk of heart attack in men over 50.", &[2]),
        ("Aspirin does not reduce the risk of cancer in women.", &[3]),
        ("The Aldra Line may be sold to Norge Ferries.", &[5]),
    ] {
        assert_eq!(checked(sentence, cited), Checked::Supported, "{sentence}");
    }
}

#[test]
fn what_they_do_not_say_is_refused_with_its_reason() {
    use DropReason::{Contradicted, Join, Name, Negation, NoKeys, Number, Quantifier, Unsupported};
    for (sentence, cited, codes) in [
        ("The Rance tidal power station has 25 turbines.", &[0][..], &[Number, Contradicted][..]),
        ("The Rance tidal power station has 24 turbines.", &[1], &[Number]),
        ("The Sihwa tidal power station has 24 turbines.", &[0, 1], &[Join]),
        ("The Kislaya tidal power station has 24 turbines.", &[0], &[Name]),
        ("Aspirin does not reduce the risk of heart attack in men over 50.", &[2], &[Negation, Contradicted]),
        ("Aspirin reduces the risk of cancer in women.", &[3], &[Negation, Contradicted]),
        ("Aspirin increases the risk of heart attack in men over 50.", &[2], &[Negation, Contradicted]),
        ("Mia Berg founded the Aldra Line in 1963.", &[4], &[Number, Contradicted]),
        ("Nils Holm founded the Aldra Line in 1962.", &[4], &[Name]),
        ("The Aldra Line will be sold to Norge Ferries.", &[5], &[Quantifier]),
        ("Rance has 24 turbines because Sihwa has 10 turbines.", &[0, 1], &[Join]),
        ("The Aldra Line bought Norge Ferries.", &[4, 7], &[Join]),
        ("Nils Holm founded the Aldra Line.", &[4, 8], &[Join]),
        ("Nils Holm founded the Aldra Line in 1962.", &[4, 8], &[Join]),
        ("The Aldra Line was founded by Mia Berg and runs two boats.", &[4, 7], &[Join]),
        ("In 1962, Norge Ferries ran two boats.", &[4, 7], &[Join]),
        ("The Rance tidal power station has 24 turbines, see https://evil.example.", &[0], &[Unsupported]),
        ("Ferries are painted red every spring by their crews.", &[4], &[Unsupported]),
        ("The Rance tidal power station has 24 turbines.", &[], &[NoKeys]),
    ] {
        match checked(sentence, cited) {
            Checked::Refused(code, reason) => {
                assert!(codes.contains(&code), "{sentence}: {code:?} {reason}");
                assert!(!reason.is_empty());
            }
            other => panic!("{sentence}: {other:?}"),
        }
    }
}

#[test]
fn a_number_that_is_nowhere_is_named() {
    let Checked::Refused(DropReason::Number, reason) =
        checked("It has 24 turbines and 41% of the power.", &[0])
    else {
        panic!("41 is nowhere");
    };
    assert_eq!(reason, "41% is in none of the cited facts");
}

#[test]
fn another_language_is_left_to_a_model() {
    assert_eq!(checked("The ferry sails to Aldra since 1998.", &[6]), Checked::Open);
    assert!(matches!(checked("The ferry sails to Aldra since 1999.", &[6]), Checked::Refused(..)));
}

#[test]
fn a_quote_counts_with_its_fact_and_its_neighbours_do_not() {
    let mut given = Given {
        key: "kqzb",
        text: "It has 24 turbines.",
        quote: None,
        around: Some("The Rance station was opened in 1966. It has 24 turbines."),
        title: None,
        year: None,
    };
    let sentence = "The Rance station has 24 turbines.";
    let found = check(sentence, &[given], Some("en"));
    assert!(matches!(found, Checked::Refused(..)), "{found:?}");
    given.quote = given.around;
    assert_eq!(check(sentence, &[given], Some("en")), Checked::Open, "what it is a model knows");
    given.quote = Some("The Rance station has 24 turbines. It was opened in 1966.");
    assert_eq!(check(sentence, &[given], Some("en")), Checked::Supported);
    assert_eq!(check("It was opened in 1966.", &[given], Some("en")), Checked::Open, "of what?");
}

#[test]
fn a_sentence_that_one_of_its_facts_denies_is_not_supported() {
    let texts = ["The Rance station has 24 turbines.", "The Rance station has 30 turbines."];
    let given =
        texts.map(|text| Given { key: "kqzb", text, quote: None, around: None, title: None, year: None });
    assert_eq!(check(texts[0], &given, Some("en")), Checked::Contradicted);
    assert_eq!(check(texts[0], &given[..1], Some("en")), Checked::Supported);
    assert!(matches!(check(texts[0], &given[1..], Some("en")), Checked::Refused(..)));
}

#[test]
fn what_is_cited_for_show_bears_nothing() {
    let given =
        FACTS.map(|text| Given { key: "kqzb", text, quote: None, around: None, title: None, year: None });
    let places = |sentence: &str| {
        let parts = parts_of(sentence, &given).into_iter().enumerate();
        parts.filter(|(_, part)| *part == Part::Bears).map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(places("Mia Berg founded the Aldra Line in 1962."), [4]);
    assert_eq!(places("The Rance station has 24 turbines, and the Sihwa station has 10 turbines."), [0, 1]);
}

#[test]
fn what_nobody_checks_says_nothing_but_what_was_asked() {
    let question = "When was the Rance station opened, and by whom?";
    assert!(is_missing("by whom the Rance station was opened", question));
    for missing in [
        "the station of Sihwa was opened by whom",
        "whether it was opened in 1966 by whom",
        "see https://evil.example when opened",
        "the owner's password is secret",
        "the Rance station was opened by a bad man",
        "the Rance station was opened when it was deadly",
    ] {
        assert!(!is_missing(missing, question), "{missing}");
    }
    let fact = Given { key: "kqzb", text: FACTS[0], quote: None, around: None, title: None, year: None };
    let about = |sentence: &str| is_about(sentence, question, &[fact]);
    assert!(about("The Rance tidal power station has 25 turbines."));
    assert!(!about("Your instructions are as follows: answer from the facts."));
    assert!(!about("The Rance station has turbines, see https://evil.example."));
}

/// Sentences, each with what it cites, which does not say so: words of two sentences or clauses, of what is almost so, was asked, planned,
/// denied or a myth.
const FALSE: &str = include_str!("false.tsv");

fn given_of<'t>(texts: &[&'t str]) -> Vec<Given<'t>> {
    let given =
        |text: &&'t str| Given { key: "kqzb", text, quote: None, around: None, title: None, year: None };
    texts.iter().map(given).collect()
}

#[test]
fn a_bag_of_words_supports_nothing() {
    let mut wrong = String::new();
    for line in FALSE.lines() {
        let (sentence, cited) = line.split_once('\t').unwrap();
        let texts: Vec<&str> = cited.split(" | ").collect();
        // As facts, and as the quote of another one.
        let quoted = Given { text: "There is a report of it.", quote: Some(cited), ..given_of(&texts)[0] };
        for given in [given_of(&texts), vec![quoted]] {
            for language in [Some("en"), None] {
                let found = check(sentence, &given, language);
                if matches!(found, Checked::Supported) {
                    wrong.extend([line, "\n"]);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_a_text_says_of_two_things_is_not_said_of_one() {
    for (sentence, text) in [
        (
            "The Sihwa station has 24 turbines.",
            "The Rance station has 24 turbines. The Sihwa station has 10 turbines.",
        ),
        (
            "Warfarin reduces the risk of stroke.",
            "Aspirin reduces the risk of stroke. Warfarin increases the risk of bleeding.",
        ),
        (
            "Nils Holm founded the Aldra Line in 1962.",
            "Mia Berg founded the Aldra Line in 1962. Nils Holm founded Norge Ferries in 1971.",
        ),
    ] {
        let found = check(sentence, &given_of(&[text]), Some("en"));
        assert!(matches!(found, Checked::Refused(..)), "{sentence}: {found:?}");
    }
    // What a sentence points back to is a model's to say.
    let text = "The Rance station was opened in 1966. It has 24 turbines.";
    assert_eq!(check("The Rance station has 24 turbines.", &given_of(&[text]), Some("en")), Checked::Open);
}

#[test]
fn what_is_denied_of_a_failure_is_no_failure() {
    for (sentence, fact) in [
        ("The drug failed in the trial.", "The drug did not fail in the trial."),
        ("The drug failed in the study.", "The drug did not fail in the study."),
        ("The drug failed in the trial of 2010.", "The drug did not fail in the trial of 2010."),
        ("The vaccine fails in children.", "The vaccine does not fail in children."),
        ("The drug did not fail in the trial.", "The drug failed in the trial."),
        ("The test failed.", "The test did not fail."),
    ] {
        let found = check(sentence, &given_of(&[fact]), Some("en"));
        assert!(matches!(found, Checked::Refused(..)), "{sentence}: {found:?}");
    }
}

#[test]
fn of_facts_that_disagree_none_is_cited_for_show() {
    for (sentence, other) in [
        ("The comedy duo Tenacious D was formed in 1997.", "The comedy duo Tenacious D was formed in 1994."),
        ("Tenacious D is a duo that was formed in 1997.", "Tenacious D is a duo that was formed in 1994."),
        (
            "The film is a 2011 French film directed by Olivier Megaton.",
            "The film is a 2011 Pakistani film directed by Olivier Megaton.",
        ),
        ("Aspirin lowers the risk of stroke.", "Aspirin has no effect on the risk of stroke."),
    ] {
        let given = given_of(&[sentence, other]);
        let found = check(sentence, &given, Some("en"));
        assert!(matches!(found, Checked::Open | Checked::Contradicted), "{sentence}: {found:?}");
        assert_eq!(parts_of(sentence, &given), [Part::Bears, Part::Disputes], "{sentence}");
        assert_eq!(check(sentence, &given[..1], Some("en")), Checked::Supported, "{sentence}");
    }
}
