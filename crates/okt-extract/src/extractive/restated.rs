//! A sentence as it reads outside of its text: who is named by the family name alone gets the whole name, and what only
//! ties it to the sentence before is left out: a first `But`, a loose `also`. Nothing else is changed, and nothing is added
//! that the text does not say.

use std::collections::{HashMap, HashSet};

use super::english::is_verb;
use super::lists::Lists;
use super::words::Seen;
use crate::chunks::Text;
use crate::reason::Reason;

/// The persons whom a text names in full, by family name.
#[derive(Debug, Default)]
pub struct Persons(HashMap<String, Known>);

/// What a text tells about who bears a family name.
#[derive(Debug)]
enum Known {
    /// One person of this name, as it was first written.
    One(String),
    /// Several of them.
    Several,
    /// It was used before anybody's whole name, or is part of another name: `Ford`, `Ford Motor`.
    Other,
}

/// A word with what is written around it.
struct Token<'a> {
    lead: &'a str,
    core: &'a str,
    tail: &'a str,
}

/// Behind a given name so many words at the most, the family name among them.
const LONGEST: usize = 4;

const NUMERALS: [&str; 10] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "XIV", "XVI"];

const SUFFIXES: [&str; 5] = ["jr", "sr", "ii", "iii", "iv"];

impl Persons {
    pub fn of(text: &Text, lists: &Lists, seen: &Seen) -> Self {
        let mut persons = Self::default();
        if !lists.lists("given") {
            return persons;
        }
        let tokens =
            |no: usize| -> Vec<Token> { text.sentence(no).split_whitespace().map(Token::of).collect() };
        let mut telling = Telling { lists, seen, speakers: HashSet::new() };
        for no in 0..text.len() {
            telling.listen(&tokens(no));
        }
        for no in 0..text.len() {
            persons.gather(&tokens(no), &telling);
        }
        persons
    }

    fn gather(&mut self, tokens: &[Token], telling: &Telling) {
        let mut at = 0;
        while at < tokens.len() {
            let end = end_of_name(tokens, at, telling.lists);
            if end == at {
                at += 1;
                continue;
            }
            match telling.whole_name(tokens, at, end) {
                Some((from, family)) => self.meet_whole(&tokens[at + from..end], family),
                // One word stands for whoever bears the name; more are another name that has this word in it.
                None => tokens[at..end].iter().for_each(|token| self.meet_part(token, end - at > 1)),
            }
            at = end;
        }
    }

    fn meet_whole(&mut self, name: &[Token], family: &Token) {
        let words: Vec<String> = name.iter().map(Token::written).collect();
        let whole = words.join(" ");
        let known = self.0.entry(family.core.to_owned()).or_insert_with(|| Known::One(whole.clone()));
        if let Known::One(first) = known
            && !same_given(first, &whole)
        {
            *known = Known::Several;
        }
    }

    fn meet_part(&mut self, token: &Token, of_another: bool) {
        let known = self.0.entry(token.core.to_owned()).or_insert(Known::Other);
        if of_another && matches!(known, Known::One(_)) {
            *known = Known::Other;
        }
    }

    /// The sentence with whole names; an error where a name may be that of several persons, or is a given name alone.
    pub fn restate(&self, sentence: &str, lists: &Lists, seen: &Seen) -> Result<String, Reason> {
        if !lists.lists("given") {
            return Ok(sentence.to_owned());
        }
        let sentence = without_opener(sentence, lists, seen);
        let line: Vec<&str> = sentence.split(' ').collect();
        let tokens: Vec<Token> = line.iter().map(|word| Token::of(word)).collect();
        let mut words: Vec<String> = Vec::with_capacity(line.len());
        let mut named: Vec<&str> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let end = end_of_name(&tokens, at, lists);
            if end > at + 1 {
                // The name of somebody or something: whoever is named alike behind it is known.
                named.extend(tokens[at..end].iter().map(|token| token.core));
                words.extend(line[at..end].iter().map(|word| (*word).to_owned()));
                at = end;
                continue;
            }
            let token = &tokens[at];
            let family = end == at + 1 && !named.contains(&token.core) && is_bare(&tokens, at, lists, seen);
            match self.0.get(token.core).filter(|_| family) {
                Some(Known::Several) => return Err(Reason::UnnamedSubject),
                Some(Known::One(whole)) => {
                    named.push(token.core);
                    words.push(format!("{}{whole}{}", token.lead, token.tail));
                }
                _ if family && lists.has("given", &token.small()) && !is_where(&tokens, at) => {
                    return Err(Reason::UnnamedSubject);
                }
                _ if is_loose_also(&tokens, at, lists) => {}
                _ => words.push(line[at].to_owned()),
            }
            at += 1;
        }
        Ok(words.join(" "))
    }
}

/// `in Brittany`, `near Florence`: places are called like persons.
fn is_where(tokens: &[Token], at: usize) -> bool {
    at > 0 && matches!(&*tokens[at - 1].small(), "in" | "near" | "outside" | "across" | "throughout")
}

impl<'a> Token<'a> {
    fn of(word: &'a str) -> Self {
        let core = word.trim_matches(|c: char| !c.is_alphanumeric());
        let start = word.find(core).unwrap_or(0);
        let (lead, rest) = word.split_at(start);
        let core = core.strip_suffix("'s").or_else(|| core.strip_suffix("’s")).unwrap_or(core);
        Self { lead, core, tail: &rest[core.len()..] }
    }

    fn small(&self) -> String {
        self.core.to_lowercase()
    }

    fn is_initial(&self) -> bool {
        self.tail == "." && self.core.chars().count() == 1 && self.core.starts_with(char::is_uppercase)
    }

    /// `Tremblay`, `Bankman-Fried`, `McDonald`, `J.`; not `NASA` or `2023`.
    fn is_like_name(&self, lists: &Lists) -> bool {
        let small = self.small();
        self.core.starts_with(char::is_uppercase)
            && (self.core.contains(char::is_lowercase) || self.is_initial())
            && !self.core.contains(char::is_numeric)
            && !["function", "openers", "calendar"].iter().any(|kind| lists.has(kind, &small))
    }

    /// As it is written inside of a name: without its apostrophe and comma.
    fn written(&self) -> String {
        let dot = self.tail.starts_with('.') && (self.is_initial() || SUFFIXES.contains(&&*self.small()));
        format!("{}{}", self.core, if dot { "." } else { "" })
    }

    fn goes_on(&self) -> bool {
        self.tail.is_empty() || self.is_initial()
    }
}

/// Where the name that begins here ends: words with a capital and nothing between them, and small ones such as `van`.
fn end_of_name(tokens: &[Token], start: usize, lists: &Lists) -> usize {
    if !tokens[start].is_like_name(lists) {
        return start;
    }
    let mut end = start + 1;
    let mut ahead = end;
    while ahead < tokens.len() && tokens[ahead - 1].goes_on() && tokens[ahead].lead.is_empty() {
        let like_name = tokens[ahead].is_like_name(lists);
        if !like_name && !lists.has("particles", tokens[ahead].core) {
            break;
        }
        ahead += 1;
        // No name ends with a small word.
        if like_name {
            end = ahead;
        }
    }
    end
}

/// What tells that a name is a person's.
struct Telling<'a> {
    lists: &'a Lists,
    seen: &'a Seen,
    /// The last words of names that `said` or `argued` follows.
    speakers: HashSet<String>,
}

impl Telling<'_> {
    fn listen(&mut self, tokens: &[Token]) {
        for pair in tokens.windows(2) {
            let speaks = pair[0].tail.is_empty() && self.lists.has("speech", pair[1].core);
            if speaks && pair[0].is_like_name(self.lists) {
                self.speakers.insert(pair[0].core.to_owned());
            }
        }
    }

    /// Where in the name `at..end` the whole name of a person begins, and the family name.
    fn whole_name<'t>(&self, tokens: &'t [Token], at: usize, end: usize) -> Option<(usize, &'t Token<'t>)> {
        let (run, lists) = (&tokens[at..end], self.lists);
        let suffix = run.last().is_some_and(|last| SUFFIXES.contains(&&*last.small()));
        let family = run.len().checked_sub(1 + usize::from(suffix))?;
        let given = |from: usize| lists.has("given", &run[from].small());
        let from =
            (0..family).find(|from| given(*from)).or_else(|| self.is_told(tokens, at, end).then_some(0))?;
        let whole = family > from
            && family - from < LONGEST
            && !run[family].is_initial()
            && !lists.has("no_family", &run[family].small());
        whole.then(|| (from, &run[family]))
    }

    /// Two words of which the first is no given name that is known: `quarterback Zorbo Quill`, `Zorbo Quill, who …`, and
    /// `Quill said` somewhere in the text.
    fn is_told(&self, tokens: &[Token], at: usize, end: usize) -> bool {
        let (first, lists) = (tokens[at].small(), self.lists);
        let before = at.checked_sub(1).map_or("", |before| tokens[before].core);
        let behind = tokens.get(end).map_or("", |behind| behind.core);
        let other = lists.has("titles", &first)
            || lists.has("no_given", &first)
            || (at == 0 && self.seen.is_ever_small(&first))
            || matches!(before, "the" | "The" | "a" | "an");
        let told = lists.has("occupations", before) || behind == "who";
        end == at + 2 && !other && (told || self.speakers.contains(tokens[end - 1].core))
    }
}

/// `Sam Bankman-Fried` and `Samuel Bankman-Fried`, `Joe Biden` and `Joe R. Biden` are one.
fn same_given(one: &str, other: &str) -> bool {
    let given = |name: &str| name.split(' ').next().unwrap_or_default().to_owned();
    let junior = |name: &str| name.split(' ').next_back().is_some_and(|last| last.starts_with("Jr"));
    let (a, b) = (given(one), given(other));
    (a.starts_with(&b) || b.starts_with(&a)) && junior(one) == junior(other)
}

/// Whether a name stands by itself: behind no article and no title, and no word that only begins a sentence.
fn is_bare(tokens: &[Token], at: usize, lists: &Lists, seen: &Seen) -> bool {
    // `Charles I`
    if tokens.get(at + 1).is_some_and(|next| NUMERALS.contains(&next.core)) {
        return false;
    }
    let Some(before) = at.checked_sub(1).map(|before| &tokens[before]) else {
        return !seen.is_ever_small(&tokens[at].small());
    };
    let small = before.small();
    let titled = lists.has("titles", &small) || matches!(&*small, "the" | "a" | "an" | "this" | "that");
    !(titled && tokens[at].lead.is_empty())
}

/// `But Ada wrote …`, `However, the Royal Society …`: behind the connective stands a name.
fn without_opener<'a>(sentence: &'a str, lists: &Lists, seen: &Seen) -> &'a str {
    let small = sentence.to_lowercase();
    let opener = lists
        .phrases("loose_openers")
        .find(|opener| small.strip_prefix(*opener).is_some_and(|rest| rest.starts_with([' ', ','])));
    // Small letters of ASCII are as long as their capitals.
    let Some(rest) = opener.and_then(|opener| sentence.get(opener.len()..)) else { return sentence };
    let rest = rest.trim_start_matches([',', ' ']);
    let first = Token::of(rest.split(' ').next().unwrap_or_default());
    let named = first.core.starts_with(char::is_uppercase)
        && !["function", "openers", "calendar"].iter().any(|kind| lists.has(kind, &first.small()))
        && !seen.is_ever_small(&first.small());
    if named { rest } else { sentence }
}

/// `Ada also wrote …`, `Ada has also written …`; not `but also`, `also known as`.
fn is_loose_also(tokens: &[Token], at: usize, lists: &Lists) -> bool {
    if at == 0 || at + 1 >= tokens.len() {
        return false;
    }
    let (before, also, next) = (&tokens[at - 1], &tokens[at], &tokens[at + 1]);
    let (before_small, next_small) = (before.small(), next.small());
    let alone = also.core == "also" && also.lead.is_empty() && also.tail.is_empty() && before.tail.is_empty();
    let auxiliary = lists.has("auxiliaries", &before_small) || lists.has("modals", &before_small);
    let verb = is_verb(&next_small, lists) && !lists.has("function", &before_small);
    alone
        && next.lead.is_empty()
        && (auxiliary || verb)
        && !matches!(&*next_small, "known" | "called" | "named")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restated(sentences: &[&str]) -> Vec<Option<String>> {
        let (mut text, mut offsets) = (String::new(), Vec::new());
        let points = |text: &str| i32::try_from(text.chars().count()).unwrap();
        for sentence in sentences {
            let start = points(&text);
            text.push_str(sentence);
            offsets.push((start, points(&text)));
            text.push(' ');
        }
        let (lists, text) = (Lists::of("en"), Text::new(&text, &offsets));
        let seen = Seen::of(&text);
        let persons = Persons::of(&text, lists, &seen);
        sentences.iter().map(|sentence| persons.restate(sentence, lists, &seen).ok()).collect()
    }

    fn second(first: &str, second: &str) -> Option<String> {
        restated(&[first, second]).pop().unwrap()
    }

    #[test]
    fn a_family_name_becomes_the_whole_name_that_the_text_has_given_before() {
        for (first, then, whole) in [
            ("The owner is Dan Tremblay.", "Tremblay bought it in 2001.", "Dan Tremblay bought it in 2001."),
            (
                "Sam Bankman-Fried ran FTX.",
                "FTX made Bankman-Fried’s fortune.",
                "FTX made Sam Bankman-Fried’s fortune.",
            ),
            (
                "It is run by Maria de la Cruz.",
                "Few knew Cruz, a baker.",
                "Few knew Maria de la Cruz, a baker.",
            ),
            ("The quarterback Zorbo Quill left.", "Quill has won.", "Zorbo Quill has won."),
            ("A play by Zorbo Quill, who is Greek, ran.", "“Quill has won.”", "“Zorbo Quill has won.”"),
            ("It was Zorbo Quill.", "Quill said so.", "Zorbo Quill said so."),
            ("Robert Downey Jr. came.", "Downey won.", "Robert Downey Jr. won."),
            ("President Joe R. Biden came.", "In May Biden left.", "In May Joe R. Biden left."),
        ] {
            assert_eq!(second(first, then).as_deref(), Some(whole));
        }
    }

    #[test]
    fn a_name_that_may_mean_something_else_stays_as_it_is() {
        for (first, then) in [
            // Named before anybody of that name was.
            ("Ford was founded by Henry Ford.", "Ford sold a million cars."),
            ("Henry Ford was born in 1863.", "The Ford Motor Company was late, and Ford was rich."),
            ("The owner is Dan Tremblay.", "The Tremblay house burnt."),
            ("The owner is Dan Tremblay.", "Mrs Tremblay laughed."),
            ("The owner is Dan Tremblay.", "Dan Tremblay said that Tremblay was no name."),
            ("The owner is Dan Tremblay.", "Jane Tremblay said so."),
            ("The receiver Dan Young runs with young men.", "Young men run."),
            ("It is in Port Arden.", "Arden is small."),
            ("South Africa said so.", "Africa is large."),
            ("President Quill came.", "Quill said so."),
        ] {
            assert_eq!(second(first, then).as_deref(), Some(then));
        }
    }

    #[test]
    fn a_family_name_of_two_persons_is_refused() {
        let said = restated(&["Dan Tremblay met Jane Tremblay.", "Tremblay left.", "Dan Tremblay left."]);
        assert_eq!(said[1], None);
        assert!(said[2].is_some());
    }

    #[test]
    fn a_given_name_alone_is_refused() {
        let said =
            restated(&["William sang in 1990.", "William I sang in 1990.", "Prince William sang in 1990."]);
        assert_eq!(said.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn a_connective_before_a_name_is_left_out() {
        for (sentence, without) in [
            ("But Curie found radium.", "Curie found radium."),
            ("However, Curie found radium.", "Curie found radium."),
            ("But he found radium.", "But he found radium."),
            ("But radium was found.", "But radium was found."),
            ("Butter was found.", "Butter was found."),
        ] {
            assert_eq!(restated(&[sentence])[0].as_deref(), Some(without));
        }
    }

    #[test]
    fn an_also_that_ties_sentences_together_is_left_out() {
        for (sentence, without) in [
            ("Curie also found radium.", "Curie found radium."),
            ("Curie has also found radium.", "Curie has found radium."),
            ("Curie was also a teacher.", "Curie was a teacher."),
            ("Not only gold but also silver was found.", "Not only gold but also silver was found."),
            (
                "Istanbul, also known as Constantinople, grew.",
                "Istanbul, also known as Constantinople, grew.",
            ),
            ("Curie found gold and also silver.", "Curie found gold and also silver."),
        ] {
            assert_eq!(restated(&[sentence])[0].as_deref(), Some(without));
        }
    }
}
