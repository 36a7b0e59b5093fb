//! What kind of thing a name is the name of.

use std::ops::Range;

use super::evidence;
use super::names::written;
use super::nouns::{self, Class};
use super::tokens::{Gap, Token};

/// The context of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub class: Option<Class>,
    /// The name itself tells, or the table knows it; not the words around it.
    pub sure: bool,
}

pub const PERSON: Class = Class::Label("Person");

/// What stands before the name of a person and is no part of it.
pub fn title(word: &str) -> Option<Class> {
    let word = word.trim_end_matches('.');
    match word {
        "mr" | "mrs" | "ms" | "miss" | "dr" | "prof" | "professor" | "sir" | "dame" | "captain"
        | "colonel" | "gen" | "general" | "judge" | "justice" | "sergeant" | "lieutenant" | "rev"
        | "reverend" | "councillor" | "councilor" | "president" | "senator" | "sen" | "governor" | "gov"
        | "mayor" | "minister" | "congressman" | "congresswoman" | "rep" | "chancellor" => Some(PERSON),
        _ => None,
    }
}

/// What stands before the names of nobles and clerics and is a part of them: `King Henry VIII`.
fn is_rank(word: &str) -> bool {
    matches!(
        word,
        "king"
            | "queen"
            | "prince"
            | "princess"
            | "emperor"
            | "empress"
            | "pope"
            | "duke"
            | "duchess"
            | "count"
            | "countess"
            | "baron"
            | "baroness"
            | "lord"
            | "lady"
            | "sultan"
            | "tsar"
            | "bishop"
            | "archbishop"
            | "cardinal"
    )
}

/// The last word of what people are called in their office: `Chief Science Officer`.
pub fn is_office(word: &str) -> bool {
    matches!(
        word,
        "officer"
            | "director"
            | "minister"
            | "secretary"
            | "manager"
            | "editor"
            | "chairman"
            | "chairwoman"
            | "chair"
            | "founder"
            | "co-founder"
            | "coach"
            | "ceo"
            | "cto"
            | "cfo"
            | "president"
            | "producer"
            | "attorney"
            | "general"
            | "analyst"
    )
}

/// What the names of companies end with.
pub fn is_company_ending(word: &str) -> bool {
    matches!(
        word.trim_end_matches('.'),
        "inc" | "corp" | "corporation" | "ltd" | "llc" | "gmbh" | "plc" | "co" | "ag" | "limited"
    )
}

pub fn is_person(class: Class) -> bool {
    matches!(class, Class::Label("Person" | "Scientist" | "Artist" | "Politician" | "Profession"))
}

/// Things that are called by a name and what they are: `the Rance tidal power station`.
pub fn takes_in(class: Class) -> bool {
    matches!(
        class,
        Class::Label(
            "Power station"
                | "Building"
                | "Infrastructure"
                | "Body of water"
                | "Natural place"
                | "Protected area"
                | "Educational institution"
                | "Military conflict"
                | "Treaty"
                | "Space mission"
                | "Spacecraft"
        )
    )
}

/// Places and bodies whose names end with what they are, also where a given name begins them: `Victoria Bridge`.
fn ends_names(class: Class) -> bool {
    takes_in(class)
        || matches!(
            class,
            Class::Label(
                "Government agency"
                    | "Company"
                    | "Organisation"
                    | "Settlement"
                    | "Region"
                    | "Award"
                    | "Law"
                    | "Disease"
                    | "Election"
                    | "Sport"
            )
        )
}

/// Things whose names often end with what they are.
fn names_a_thing(class: Class) -> bool {
    matches!(
        class,
        Class::Label(
            "Natural event"
                | "Musical work"
                | "Vaccine"
                | "Galaxy"
                | "Star"
                | "Planet"
                | "Celestial body"
                | "Political party"
                | "Species"
                | "Battery"
                | "Algorithm"
                | "Historical period"
                | "Geological period"
                | "Academic conference"
                | "Outbreak"
                | "Ideology"
                | "International organisation"
                | "Non-profit organisation"
                | "Historic place"
                | "Legal case"
                | "Scientific concept"
        )
    )
}

/// What firms call themselves by, beside `Inc` and the like.
const COMPANIES: [&str; 16] = [
    "airways",
    "airlines",
    "bank",
    "motors",
    "technologies",
    "holdings",
    "partners",
    "capital",
    "ventures",
    "studios",
    "pictures",
    "entertainment",
    "systems",
    "industries",
    "pharmaceuticals",
    "therapeutics",
];

/// The context of a name, from its own words and from those beside it.
pub fn of_name(tokens: &[Token<'_>], range: &Range<usize>) -> Kind {
    let sure = |class: Class| Kind { class: Some(class), sure: true };
    let known = known(&written(tokens, range).to_lowercase());
    // `The barque Helena` is no town: who says what it is means another one.
    let article =
        range.start.checked_sub(2).is_some_and(|at| matches!(tokens[at].lower.as_str(), "the" | "a" | "an"));
    let called = beside(tokens, range).filter(|class| article && !is_person(*class) && range.len() == 1);
    if let Some(class) = known.map(|known| called.unwrap_or(known)) {
        return sure(class);
    }
    let words = &tokens[range.clone()];
    if let Some(of) = words.iter().position(|token| token.lower == "of").filter(|of| *of > 0)
        && let Some(class) = common(&words[of - 1].lower)
    {
        // `Duke of Lennox` is what somebody is.
        return sure(if is_person(class) { Class::Label("Profession") } else { class });
    }
    if words.len() > 1 {
        let (first, last) = (&words[0], &words[words.len() - 1]);
        let leading = ["lake", "mount", "cape", "port", "river", "fort", "isle", "gulf", "bay"]
            .contains(&first.lower.as_str());
        let head = common(&last.lower);
        let given = first.is_initial() || nouns::find(&first.lower).is_some_and(|noun| noun.given);
        if COMPANIES.contains(&last.lower.as_str()) || words.iter().any(|token| token.lower == "&") {
            return sure(Class::Label("Company"));
        }
        if let Some(class) = head.filter(|class| ends_names(*class)) {
            return sure(class);
        }
        if leading && let Some(class) = common(&first.lower) {
            return sure(if first.lower == "port" { Class::Label("Settlement") } else { class });
        }
        if is_rank(&first.lower) && common(&words[1].lower).is_none() {
            return sure(PERSON);
        }
        // `Helena World Chronicle` is nobody.
        let plain = words[1..].iter().filter(|token| nouns::singular(&token.lower).is_some());
        let ordinary = plain.count() > 1;
        if given && words.len() <= 4 && !ordinary && !words.iter().any(Token::has_digit) {
            return sure(PERSON);
        }
        if let Some(class) = beside(tokens, range) {
            return Kind { class: Some(class), sure: false };
        }
        let speaks = tokens.get(range.end).is_some_and(|next| {
            ["said", "says", "wrote", "told", "argues", "argued", "explained", "explains", "died", "married"]
                .contains(&next.lower.as_str())
        });
        if speaks && words.len() < 4 && head.is_none() {
            return Kind { class: Some(PERSON), sure: false };
        }
        if ["times", "news", "post", "journal", "herald", "tribune", "gazette", "magazine", "chronicle"]
            .contains(&last.lower.as_str())
        {
            return sure(Class::Label("Periodical literature"));
        }
        let class = head.filter(|class| names_a_thing(*class));
        return Kind { class, sure: class.is_some() };
    }
    let given = nouns::find(&words[0].lower).is_some_and(|noun| noun.given && noun.common.is_none());
    if given {
        return Kind { class: Some(PERSON), sure: false };
    }
    // What a common noun is says nothing about what is named after it; nor are all makers and developers people.
    Kind { class: beside(tokens, range).filter(|class| !is_person(*class)), sure: false }
}

/// What the table knows of a name.
fn known(name: &str) -> Option<Class> {
    let noun = nouns::find(name)?;
    let meant = noun.means.and_then(|means| nouns::find(&means.to_lowercase()));
    // An abbreviation is what it stands for, and that may be a common noun: `AI`.
    let class = meant
        .map_or(noun.name, |meant| meant.name.or(meant.common))
        .filter(|class| class.label().is_some())?;
    // Whoever is named is a person, whatever they do: another text may not say what that is.
    Some(if is_person(class) { PERSON } else { class })
}

/// The singular of a name in the plural, with its context: `Americans`, `iPhones`.
pub fn one_of(word: &str) -> Option<(&str, Class)> {
    let one = word.strip_suffix('s').filter(|one| one.len() > 3 && !one.contains(' '))?;
    let class = known(&one.to_lowercase()).filter(|class| !is_person(*class))?;
    known(&word.to_lowercase()).is_none().then_some((one, class))
}

fn common(word: &str) -> Option<Class> {
    let (_, noun) = nouns::singular(word)?;
    noun.common.filter(|class| class.label().is_some())
}

/// The context of things that are called by a common noun; none where such things have no names of their own.
pub fn called(word: &str) -> Option<Class> {
    let (one, noun) = nouns::singular(word).filter(|(_, noun)| !noun.verb)?;
    // What is no concept as a word alone tells the kind of a thing all the same.
    let class = match one.as_str() {
        "company" | "firm" | "brand" => Class::Label("Company"),
        "town" | "capital" => Class::Label("Settlement"),
        "organization" | "team" => Class::Label("Organisation"),
        "road" | "street" => Class::Label("Infrastructure"),
        _ => noun.common.filter(|class| class.label().is_some())?,
    };
    let person = is_person(class);
    let general = noun.general && !person && !is_named(class);
    (!general && has_names(class)).then_some(if person { PERSON } else { class })
}

/// Things that mostly have names of their own: the common noun alone does not tell which one is meant.
pub fn is_named(class: Class) -> bool {
    matches!(
        class,
        Class::Label(
            "Settlement"
                | "Country"
                | "Region"
                | "Natural place"
                | "Body of water"
                | "Planet"
                | "Star"
                | "Celestial body"
                | "Galaxy"
                | "Film"
                | "Book"
                | "Musical work"
                | "Periodical literature"
                | "Company"
                | "Organisation"
                | "Political party"
                | "Government agency"
                | "Educational institution"
                | "Award"
        )
    )
}

/// Whether single things of a context have names: substances and processes have not.
pub fn has_names(class: Class) -> bool {
    !matches!(
        class,
        Class::Label(
            "Chemical substance"
                | "Food"
                | "Anatomical structure"
                | "Natural event"
                | "Scientific concept"
                | "Mathematical concept"
                | "Lipid"
                | "Activity"
                | "Statistic"
                | "Place"
                | "Event"
                | "Work"
                | "Standard"
        )
    )
}

/// What the words beside a name call it: `the barque Helena`, `Thomas Pell, a retired pilot`.
pub fn beside(tokens: &[Token<'_>], range: &Range<usize>) -> Option<Class> {
    let before = range.start.checked_sub(1).map(|at| &tokens[at]).filter(|before| {
        tokens[range.start].gap == Gap::None
            && !before.possessive
            && !before.is_capital()
            && !before.is_stop()
            && nouns::singular(&before.lower).is_some_and(|(one, _)| one == before.lower)
    });
    before.and_then(|before| called(&before.lower)).or_else(|| after(tokens, range))
}

/// `Thomas Pell, a retired pilot`.
pub fn after(tokens: &[Token<'_>], range: &Range<usize>) -> Option<Class> {
    let article =
        |after: &&Token<'_>| after.gap == Gap::Comma && ["a", "an", "the"].contains(&after.lower.as_str());
    tokens.get(range.end).filter(article)?;
    evidence::head(tokens, range.end + 1)
}
