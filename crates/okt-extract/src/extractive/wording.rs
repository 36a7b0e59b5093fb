//! Whether the words of a sentence lean on what was said before.

use unicode_normalization::UnicodeNormalization;

use super::lists::{ALL, Lists};

/// A sentence as its words, in small letters.
pub struct Wording<'a> {
    sentence: &'a str,
    words: Vec<String>,
    /// Whether it begins with a capital.
    capitals: Vec<bool>,
    /// Whether a comma, a dash or the like stands before the word.
    paused: Vec<bool>,
    /// All words with a space around each, so that phrases can be looked for.
    line: String,
}

impl<'a> Wording<'a> {
    pub fn of(sentence: &'a str) -> Self {
        let (mut words, mut capitals, mut paused) = (Vec::<String>::new(), Vec::new(), Vec::new());
        let (mut inside, mut pause) = (false, false);
        for c in sentence.nfc() {
            if !c.is_alphanumeric() {
                inside = false;
                pause |= matches!(c, ',' | ';' | ':' | '(' | '–' | '—' | '、' | '，');
                continue;
            }
            if !inside {
                words.push(String::new());
                capitals.push(c.is_uppercase());
                paused.push(std::mem::take(&mut pause));
            }
            inside = true;
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        let line = format!(" {} ", words.join(" "));
        Self { sentence, words, capitals, paused, line }
    }

    /// A heading below which references, notes or thanks follow.
    pub fn is_ending(&self) -> bool {
        let heading = self.line.trim().trim_start_matches(|c: char| c.is_numeric() || c == ' ');
        ALL.has("endings", heading)
    }

    /// `Figure 3`, at the start.
    pub fn is_label(&self) -> bool {
        ALL.has("labels", self.word(0)) && self.word(1).starts_with(char::is_numeric)
    }

    /// Whether nothing in it points out of it, as far as the lists know.
    pub fn stands_alone(&self, lists: &Lists) -> bool {
        !self.is_label()
            && !self.is_notice()
            && !self.leans_on_what_was_before(lists)
            && !self.points_outside(lists)
            && !self.has_open_subject(lists)
            && !self.announces(lists)
            && self.is_english_statement(lists)
    }

    fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    fn is_notice(&self) -> bool {
        ALL.has("notices", self.word(0)) || self.holds(&ALL, "boilerplate")
    }

    fn begins_with(&self, lists: &Lists, kind: &str) -> bool {
        lists.phrases(kind).any(|phrase| {
            let rest = self.line[1..].strip_prefix(phrase);
            rest.is_some_and(|rest| rest.starts_with(' '))
        })
    }

    fn holds(&self, lists: &Lists, kind: &str) -> bool {
        lists.phrases(kind).any(|phrase| {
            let mut found = self.line.match_indices(phrase);
            found.any(|(at, _)| {
                self.line[..at].ends_with(' ') && self.line[at + phrase.len()..].starts_with(' ')
            })
        })
    }

    /// It begins with a pronoun, with a connective, or with `the effect` of something.
    fn leans_on_what_was_before(&self, lists: &Lists) -> bool {
        let known = |at: usize, kind: &str| lists.has(kind, self.word(at));
        // `The effect of caffeine` and `the first king of France` say which.
        let named = known(2, "of") || known(3, "of");
        let vague = known(0, "articles") && known(1, "vague") && !named;
        // `Within three, …`: three of what was said before.
        let is_number =
            known(1, "numbers") || (self.word(1).len() < 4 && self.word(1).parse::<u16>().is_ok());
        let bare_number = known(0, "lead_ins") && is_number && self.paused.get(2) == Some(&true);
        known(0, "openers")
            || vague
            || bare_number
            || self.begins_with(lists, "opening_phrases")
            || lists.phrases("starts").any(|start| self.sentence.starts_with(start))
    }

    /// Somebody speaks, or of a day or place that only the reader of the whole knows.
    fn points_outside(&self, lists: &Lists) -> bool {
        let dated = self.words.iter().any(|word| word.len() == 4 && word.parse::<u16>().is_ok());
        let points = |word: &String| {
            lists.has("persons", word) || lists.has("pointing", word) || (!dated && lists.has("days", word))
        };
        let last = self.words.last().map_or("", String::as_str);
        self.words.iter().any(points)
            || lists.has("trailing", last)
            || self.holds(lists, "pointing_phrases")
            || lists.phrases("holds").any(|part| self.sentence.contains(part))
    }

    /// A pronoun takes up what the sentence has named only behind its subject, and after a link or a pause.
    fn has_open_subject(&self, lists: &Lists) -> bool {
        let led_in = lists.has("lead_ins", self.word(0));
        (1..self.words.len()).filter(|at| lists.has("subjects", &self.words[*at])).any(|at| {
            let linked = self.paused[at] || lists.has("links", &self.words[at - 1]);
            led_in || !linked
        })
    }

    /// `Three things keep water in place.`
    fn announces(&self, lists: &Lists) -> bool {
        lists.has("numbers", self.word(0)) && lists.has("stubs", self.word(1))
    }

    /// In English alone: it has a verb, is no request, and says whom and what it speaks of.
    fn is_english_statement(&self, lists: &Lists) -> bool {
        if !lists.lists("verbs") {
            return true;
        }
        let is_verb = |at: usize| self.word(at - 1) != "to" && is_verb(self.word(at), lists);
        let Some(verb) = (1..self.words.len()).find(|at| is_verb(*at)) else { return false };
        let counts_nothing = lists.has("quantifiers", self.word(0)) && verb == 1;
        let whose = self.words[..verb].iter().any(|word| lists.has("possessives", word));
        let breaks_off = self.word(self.words.len() - 2) == "how";
        let such = |at: usize| self.word(at) == "such" && self.word(at + 1) != "as";
        let there = |at: usize| self.word(at) == "there" && !is_verb(at + 1);
        !counts_nothing
            && !whose
            && !breaks_off
            && !self.is_request(lists)
            && !self.tells_on(verb, lists)
            && !(0..self.words.len()).any(|at| such(at) || there(at))
    }

    /// `Fry the onion …`, and what begins with a participle: `Built in 1911, …`
    fn is_request(&self, lists: &Lists) -> bool {
        let first = self.word(0);
        let named = self.capitals.get(1) == Some(&true);
        let has_object = matches!(self.word(1), "the" | "a" | "an" | "it" | "them" | "all" | "each");
        lists.has("imperatives", first)
            || (lists.has("verbs", first) && has_object)
            || (is_past(first, lists) && !named)
    }

    /// `The line closed …`: what is told of the past is told of the line that was spoken of, while `The heart pumps …`
    /// may be true of all.
    fn tells_on(&self, verb: usize, lists: &Lists) -> bool {
        let bare = self.capitals[1..verb].iter().all(|capital| !capital);
        let has_digit = self.words[1..verb].iter().any(|word| word.contains(char::is_numeric));
        self.word(0) == "the" && verb <= 4 && bare && !has_digit && is_past(self.word(verb), lists)
    }
}

/// One of the list, in one of its regular forms, or a word with the ending of the past.
fn is_verb(word: &str, lists: &Lists) -> bool {
    let base = |end: &str, with: &str| {
        word.strip_suffix(end).is_some_and(|stem| lists.has("verbs", &format!("{stem}{with}")))
    };
    base("", "") || base("s", "") || base("es", "") || base("ies", "y") || is_past(word, lists)
}

fn is_past(word: &str, lists: &Lists) -> bool {
    lists.has("past", word) || (word.len() > 4 && word.ends_with("ed"))
}
