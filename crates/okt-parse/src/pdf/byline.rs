//! Who wrote a paper: the names that stand below its title.
//!
//! A line of capitalised words can be anything, so names need a witness: marks of affiliations behind them, more than one
//! name, the word “by”, or an affiliation, an address of mail or a date in the lines that follow.

use super::dates;

/// A name has fewer letters than that.
const LONGEST: usize = 60;
const MOST_NAMES: usize = 100;

/// The names in the paragraphs that stand below a title, in their order; none if they are not surely names.
pub fn names(below: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut witness = false;
    for (at, paragraph) in below.iter().enumerate() {
        let found = line(paragraph);
        let Some(Byline { names: more, marked }) = found else {
            // A subtitle may stand between the title and the names.
            if names.is_empty() && at == 0 && !is_affiliation(paragraph) {
                continue;
            }
            witness |= is_affiliation(paragraph) || dates::line(paragraph).is_some();
            break;
        };
        witness |= marked || more.len() > 1 || !names.is_empty();
        names.extend(more);
    }
    names.truncate(MOST_NAMES);
    if witness { names } else { Vec::new() }
}

struct Byline {
    names: Vec<String>,
    marked: bool,
}

/// The names of a line that has nothing but names, marks and what stands between them.
fn line(paragraph: &str) -> Option<Byline> {
    let by = ["by ", "By ", "BY ", "von ", "Von ", "par ", "Par ", "por ", "Por "]
        .iter()
        .find_map(|by| paragraph.strip_prefix(by));
    let text = by.unwrap_or(paragraph);
    if is_affiliation(text) || text.chars().count() > 3_000 {
        return None;
    }
    let mut marked = by.is_some();
    // Marks are cut out, and a comma takes their place: some papers have nothing else between two names.
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let mark =
            c.is_numeric() || matches!(c, '*' | '∗' | '†' | '‡' | '§' | '¶' | '#' | '⋆' | '✉' | '∥' | '‖');
        marked |= mark;
        plain.push(if mark { ',' } else { c });
    }
    let pieces = plain.replace(" and ", ",").replace(" und ", ",").replace(" et ", ",").replace(" y ", ",");
    let mut names = Vec::new();
    for piece in pieces.split([',', ';', '&', '·', '•', '|']) {
        let piece = piece.trim().trim_start_matches("and ").trim_end_matches(" and").trim();
        if piece.is_empty()
            || matches!(piece, "and" | "und" | "et" | "y" | "Jr." | "Sr." | "II" | "III" | "PhD" | "MD")
        {
            continue;
        }
        if !is_name(piece) {
            return None;
        }
        names.push(piece.to_owned());
    }
    (!names.is_empty()).then_some(Byline { names, marked })
}

/// Two to six words, capitalised but for particles, of letters alone.
fn is_name(piece: &str) -> bool {
    let words: Vec<_> = piece.split_whitespace().collect();
    let particle = |word: &str| {
        matches!(
            word,
            "van"
                | "von"
                | "de"
                | "der"
                | "den"
                | "da"
                | "das"
                | "do"
                | "dos"
                | "di"
                | "del"
                | "della"
                | "du"
                | "la"
                | "le"
                | "ter"
                | "ten"
                | "zu"
                | "zur"
                | "bin"
                | "ibn"
                | "al"
                | "el"
                | "y"
                | "e"
                | "af"
                | "av"
                | "op"
                | "te"
                | "i"
        )
    };
    let letters = |word: &str| {
        word.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | '-' | '\'' | '’' | '‐' | '‑'))
            && word.chars().any(char::is_alphabetic)
    };
    let capital = |word: &str| {
        word.chars().next().is_some_and(|c| c.is_uppercase() || !(c.is_lowercase() || c.is_uppercase()))
    };
    piece.chars().count() <= LONGEST
        && (2..=6).contains(&words.len())
        && words.iter().all(|word| letters(word) && (capital(word) || particle(word) || word.contains(['\'', '’'])))
        && capital(words[words.len() - 1])
        && words.iter().filter(|word| capital(word)).count() >= 2
        // An initial alone is no family name.
        && words.last().is_some_and(|word| word.chars().filter(|c| c.is_alphabetic()).count() > 1)
        && !words.iter().any(|word| is_institution(word))
}

/// Whether a line says where somebody works.
fn is_affiliation(text: &str) -> bool {
    text.contains('@') || text.split(|c: char| !c.is_alphanumeric()).any(is_institution)
}

fn is_institution(word: &str) -> bool {
    const PARTS: [&str; 30] = [
        "universi",
        "institut",
        "departm",
        "department",
        "college",
        "facult",
        "fakult",
        "laborator",
        "school",
        "centre",
        "center",
        "academ",
        "hospital",
        "research",
        "ministr",
        "corporation",
        "company",
        "gmbh",
        "abstract",
        "journal",
        "summary",
        "introduction",
        "keywords",
        "consult",
        "technolog",
        "science",
        "zentrum",
        "hochschule",
        "version",
        "volume",
    ];
    let word = word.to_lowercase();
    PARTS.iter().any(|part| word.starts_with(part))
}

/// Whether what the file names as its author can be a person's name, or several, and not that of an account.
pub fn is_author(said: &str) -> bool {
    let lower = said.to_lowercase();
    let account =
        ["user", "admin", "owner", "unknown", "anonymous", "microsoft", "author", "default", "windows"];
    said.chars().filter(|c| c.is_alphabetic()).count() > 2
        && !said.contains(['@', '\\', '/'])
        && !account.iter().any(|word| lower.split(|c: char| !c.is_alphanumeric()).any(|own| own == *word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(below: &[&str]) -> Vec<String> {
        names(&below.iter().map(|&line| line.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_below_a_title_are_found_with_their_marks_gone() {
        for (below, found) in [
            (
                &["Ada Moss 1,2¶ , Ben van der Ode2 , and Zoë O’Hara 3", "1 University of Salt"][..],
                vec!["Ada Moss", "Ben van der Ode", "Zoë O’Hara"],
            ),
            (&["Ada Moss∗ Ben Ode†"], vec!["Ada Moss", "Ben Ode"]),
            (
                &["A study of salt marshes in the north", "Ada B. Moss and Ben Ode"],
                vec!["Ada B. Moss", "Ben Ode"],
            ),
            (&["Ada Moss", "Department of Botany, Salt College"], vec!["Ada Moss"]),
            (&["By Ada Moss"], vec!["Ada Moss"]),
            (&["Ada Moss", "March 2024"], vec!["Ada Moss"]),
            (&["Ada Moss", "Ben Ode", "ada@salt.example"], vec!["Ada Moss", "Ben Ode"]),
        ] {
            assert_eq!(of(below), found, "{below:?}");
        }
    }

    #[test]
    fn words_that_are_no_names_are_not_taken_for_names() {
        for below in [
            &["Annual Report"][..],
            &["University of Salt and College of Sand"],
            &["Summary", "We present a course."],
            &["The council met on Monday, and nobody spoke."],
            &["Ada Moss"],
        ] {
            assert_eq!(of(below), Vec::<String>::new(), "{below:?}");
        }
    }

    #[test]
    fn an_account_is_no_author() {
        assert!(is_author("Ada Moss") && is_author("World Salt Union"));
        for said in ["Microsoft Office User", "admin", "ada@salt.example", "DOMAIN\\ada", "12"] {
            assert!(!is_author(said), "{said}");
        }
    }
}
