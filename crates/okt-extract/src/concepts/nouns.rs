//! The noun table: what a word or phrase of English is, and which context it belongs to.
//!
//! `nouns/nouns.zz` is packed text: a line with the labels, the words in their order (each begins with how many letters it
//! shares with the one before), an empty line, and for each word what is known of it: a letter for its context as a common
//! noun, one for that as a name, flags, and what it is another spelling of. `examples/noun_table` writes it.

use std::io::Read;
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;

/// What a noun is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Could stand in any text: a measure, a time, a part. Never a concept.
    Never,
    /// Of no context: a concept only with other words before it.
    Untyped,
    /// The label of a built-in context.
    Label(&'static str),
}

impl Class {
    pub const fn label(self) -> Option<&'static str> {
        match self {
            Self::Label(label) => Some(label),
            Self::Never | Self::Untyped => None,
        }
    }
}

/// What is known of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that a rule looks at")]
pub struct Noun {
    pub common: Option<Class>,
    pub name: Option<Class>,
    /// Mostly a verb.
    pub verb: bool,
    /// Often a verb.
    pub verb_too: bool,
    /// Mostly an adjective or an adverb.
    pub adjective: bool,
    /// An adjective that says what something belongs to: `tidal`.
    pub relational: bool,
    /// A given name of people.
    pub given: bool,
    /// No concept as a word alone.
    pub general: bool,
    /// What it is another spelling, an abbreviation or the plural of.
    pub means: Option<&'static str>,
}

/// What is known of a word or of words with one space between them, in small letters.
pub fn find(words: &str) -> Option<Noun> {
    let table = &*TABLE;
    let at = table.words.partition_point(|(start, end)| &table.text[*start as usize..*end as usize] < words);
    let (start, end) = *table.words.get(at)?;
    if &table.text[start as usize..end as usize] != words {
        return None;
    }
    Some(table.notes[at])
}

/// Whether something longer begins with these words.
pub fn goes_on(words: &str) -> bool {
    let table = &*TABLE;
    let at = table.words.partition_point(|(start, end)| &table.text[*start as usize..*end as usize] <= words);
    let next = table.words.get(at).map(|(start, end)| &table.text[*start as usize..*end as usize]);
    // A space sorts before all that stands in words, so the next entry tells.
    next.is_some_and(|next| next.strip_prefix(words).is_some_and(|rest| rest.starts_with(' ')))
}

static PACKED: &[u8] = include_bytes!("../../nouns/nouns.zz");
static UNPACKED: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    ZlibDecoder::new(PACKED).read_to_string(&mut text).expect("the table is part of the binary");
    text
});
static TABLE: LazyLock<Table> = LazyLock::new(|| Table::of(&UNPACKED));

struct Table {
    text: String,
    /// Where in the text each word begins and ends.
    words: Vec<(u32, u32)>,
    notes: Vec<Noun>,
}

impl Table {
    fn of(unpacked: &'static str) -> Self {
        let mut lines = unpacked.lines();
        let labels: Vec<&'static str> = lines.next().unwrap_or_default().split('\t').collect();
        let mut table = Self { text: String::new(), words: Vec::new(), notes: Vec::new() };
        let mut before = String::new();
        let place = |text: &String| u32::try_from(text.len()).unwrap_or(u32::MAX);
        for line in lines.by_ref().take_while(|line| !line.is_empty()) {
            let shared = line.as_bytes().first().map_or(0, |first| usize::from(first - b'!'));
            before.truncate(shared);
            before.push_str(line.get(1..).unwrap_or_default());
            let start = place(&table.text);
            table.text.push_str(&before);
            table.words.push((start, place(&table.text)));
        }
        table.notes.extend(lines.map(|line| note(line, &labels)));
        table
    }
}

fn note(line: &'static str, labels: &[&'static str]) -> Noun {
    let (codes, means) = line.split_once('\t').map_or((line, None), |(codes, means)| (codes, Some(means)));
    let mut codes = codes.chars();
    let mut class = || match codes.next()? {
        ' ' => None,
        '-' => Some(Class::Never),
        '.' => Some(Class::Untyped),
        code => labels.get(code as usize - '0' as usize).map(|label| Class::Label(label)),
    };
    let (common, name) = (class(), class());
    let flags = codes.as_str();
    let has = |flag: char| flags.contains(flag);
    Noun {
        common,
        name,
        verb: has('v'),
        verb_too: has('v') || has('w'),
        adjective: has('a'),
        relational: has('r'),
        given: has('g'),
        general: has('n'),
        means,
    }
}

/// A common noun in the singular, where the table knows it: the word itself or its plural.
pub fn singular(word: &str) -> Option<(String, Noun)> {
    let known = |one: String| {
        let noun = find(&one)?;
        match noun.means {
            Some(means) => find(&means.to_lowercase())
                .filter(|noun| noun.common.is_some())
                .map(|noun| (means.to_owned(), noun)),
            None => noun.common.is_some().then_some((one, noun)),
        }
    };
    let own = known(word.to_owned());
    let one = || regular(word).into_iter().find_map(known);
    // `parts` is a word of its own too, but what it mostly is could stand in any text.
    if word.ends_with('s')
        && let Some(never) = one().filter(|(_, noun)| noun.common == Some(Class::Never) && own.is_some())
    {
        return Some(never);
    }
    // `stairs` and `species` are words of their own; `tides` is not.
    let of_its_own = [
        "stairs",
        "species",
        "news",
        "clothes",
        "goods",
        "glasses",
        "series",
        "arms",
        "customs",
        "headquarters",
        "means",
        "works",
        "premises",
    ];
    if !word.ends_with('s') || word.ends_with("ics") || of_its_own.contains(&word) {
        return own;
    }
    one().or(own)
}

/// What the singular of a regular plural may be, the likeliest first.
fn regular(word: &str) -> Vec<String> {
    let mut forms = Vec::new();
    let mut put = |end: &str, with: &str| {
        if let Some(stem) = word.strip_suffix(end).filter(|stem| stem.len() > 1) {
            forms.push(format!("{stem}{with}"));
        }
    };
    put("ies", "y");
    for end in ["ses", "xes", "zes", "ches", "shes", "oes"] {
        put(end, &end[..end.len() - 2]);
    }
    if !word.ends_with("ss") && !word.ends_with("us") && !word.ends_with("is") {
        put("s", "");
    }
    put("ves", "f");
    put("ves", "fe");
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(words: &str) -> Option<&'static str> {
        find(words)?.common?.label()
    }

    #[test]
    fn the_table_is_small_and_whole() {
        assert!(PACKED.len() <= 400_000, "{}", PACKED.len());
        let table = &*TABLE;
        assert_eq!(table.words.len(), table.notes.len());
        assert!(table.words.len() > 75_000);
        let word = |(start, end): &(u32, u32)| &table.text[*start as usize..*end as usize];
        assert!(table.words.windows(2).all(|pair| word(&pair[0]) < word(&pair[1])));
    }

    #[test]
    fn nouns_have_the_context_of_what_they_are_a_kind_of() {
        for (noun, expected) in [
            ("honey", "Food"),
            ("granite", "Mineral"),
            ("invertase", "Enzyme"),
            ("spring tide", "Natural event"),
            ("diabetes", "Disease"),
            ("barque", "Means of transportation"),
            ("smartphone", "Device"),
        ] {
            assert_eq!(label(noun), Some(expected), "{noun}");
        }
        assert_eq!(find("isaac newton").unwrap().name, Some(Class::Label("Scientist")));
        assert_eq!(find("paris").unwrap().name, Some(Class::Label("Settlement")));
        assert_eq!(find("year").unwrap().common, Some(Class::Never));
        assert!(
            find("tidal").unwrap().relational && find("show").unwrap().verb && find("thomas").unwrap().given
        );
        assert_eq!(find("qwertz"), None);
    }

    #[test]
    fn longer_phrases_are_announced() {
        assert!(goes_on("spring") && goes_on("center of") && !goes_on("spring tide") && !goes_on("qwertz"));
    }

    #[test]
    fn plurals_and_spellings_are_one_word() {
        for (word, expected) in [
            ("tides", "tide"),
            ("glands", "gland"),
            ("cities", "city"),
            ("boxes", "box"),
            ("mice", "mouse"),
            ("wolves", "wolf"),
            ("viruses", "virus"),
            ("species", "species"),
            ("stairs", "stairs"),
            ("gas", "gas"),
            ("bus", "bus"),
            ("colours", "color"),
            ("harbour", "harbor"),
            ("bacteria", "bacteria"),
        ] {
            assert_eq!(singular(word).map(|(one, _)| one).as_deref(), Some(expected), "{word}");
        }
        assert_eq!(singular("qwertzes"), None);
    }
}
