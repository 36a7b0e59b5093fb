//! Whether the words of a sentence lean on what was said before.

use super::english::is_past;
use super::lists::{ALL, Lists};
use super::words::{Seen, Word, words};
use crate::reason::Reason;

/// A sentence as its words, with what is known about them.
pub struct Wording<'a> {
    pub sentence: &'a str,
    pub words: Vec<Word>,
    pub lists: &'a Lists,
    pub seen: &'a Seen,
    /// All words with a space around each, so that phrases can be looked for.
    line: String,
}

/// A heading below which references, notes or thanks follow.
pub fn is_ending(sentence: &str) -> bool {
    let line = line(&words(sentence));
    let heading = line.trim().trim_start_matches(|c: char| c.is_numeric() || c == ' ');
    ALL.has("endings", heading)
}

/// `Figure 3`, at the start.
pub fn is_label(sentence: &str) -> bool {
    let words = words(sentence);
    words.first().is_some_and(|word| ALL.has("labels", &word.text))
        && words.get(1).is_some_and(Word::has_digit)
}

/// Who took a picture.
pub fn is_credit(sentence: &str) -> bool {
    holds(&line(&words(sentence)), &ALL, "credits")
}

fn line(words: &[Word]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.text.as_str()).collect();
    format!(" {} ", words.join(" "))
}

/// Whether one of the phrases stands in a line.
fn holds(line: &str, lists: &Lists, kind: &str) -> bool {
    lists.phrases(kind).any(|phrase| {
        let mut found = line.match_indices(phrase);
        found.any(|(at, _)| line[..at].ends_with(' ') && line[at + phrase.len()..].starts_with(' '))
    })
}

impl<'a> Wording<'a> {
    pub fn of(sentence: &'a str, lists: &'a Lists, seen: &'a Seen) -> Self {
        let words = words(sentence);
        let line = line(&words);
        Self { sentence, words, lists, seen, line }
    }

    /// Whether nothing in it points out of it, as far as the lists know.
    pub fn check(&self) -> Result<(), Reason> {
        let refuse = |refused: bool, reason: Reason| if refused { Err(reason) } else { Ok(()) };
        refuse(self.is_notice(), Reason::Boilerplate)?;
        refuse(!self.lists.lists_anything() && !self.carries_a_subject(), Reason::NoLanguageRules)?;
        refuse(self.speaks_to_somebody(), Reason::FirstOrSecondPerson)?;
        refuse(self.points_back(), Reason::Connective)?;
        refuse(self.has_relative_time(), Reason::RelativeTime)?;
        refuse(self.has_open_pronoun(), Reason::Pronoun)?;
        refuse(self.has_unnamed_subject(), Reason::UnnamedSubject)?;
        refuse(self.is_run_together(), Reason::RunTogether)?;
        self.check_english()
    }

    pub fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| word.text.as_str())
    }

    /// The word before another; none before the first.
    pub fn before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |at| self.word(at))
    }

    /// Whether the word before another is in a list.
    pub fn follows(&self, at: usize, kind: &str) -> bool {
        self.lists.has(kind, self.before(at))
    }

    pub fn is(&self, at: usize, kind: &str) -> bool {
        self.lists.has(kind, self.word(at))
    }

    pub fn holds(&self, kind: &str) -> bool {
        holds(&self.line, self.lists, kind)
    }

    /// A word that holds sentences together and names nothing.
    pub fn is_function_word(&self, at: usize) -> bool {
        ["function", "openers", "persons", "links", "lead_ins", "articles", "quantifiers", "numbers"]
            .iter()
            .any(|kind| self.is(at, kind))
    }

    /// A capital that nothing but a name asks for. The first word of a sentence has one anyway, so there something else has
    /// to speak for a name: a second capital, or how the word is written elsewhere in the text.
    pub fn is_name(&self, at: usize) -> bool {
        let Some(word) = self.words.get(at) else { return false };
        if !word.capital || self.is(at, "calendar") || (!word.shouted && self.is_function_word(at)) {
            return false;
        }
        if at > 0 && !word.begins {
            return true;
        }
        let next = self.words.get(at + 1).is_some_and(|next| next.capital && !next.begins);
        let shouted = word.shouted || word.has_digit();
        shouted || (next && !self.is_function_word(at + 1)) || self.seen.is_name(&word.text)
    }

    /// How many names stand before a word; `New York` is one.
    pub fn names_before(&self, at: usize) -> usize {
        let begins =
            |at: &usize| self.is_name(*at) && !(*at > 0 && self.is_name(at - 1) && !self.words[*at].paused);
        (0..at).filter(begins).count()
    }

    pub fn has_year(&self) -> bool {
        self.words.iter().any(Word::is_year)
    }

    fn is_notice(&self) -> bool {
        ALL.has("notices", self.word(0))
            || holds(&self.line, &ALL, "boilerplate")
            || self.holds("offers")
            || self.sentence.contains("% off")
    }

    fn begins_with(&self, kind: &str) -> bool {
        self.lists.phrases(kind).any(|phrase| {
            let rest = self.line[1..].strip_prefix(phrase);
            rest.is_some_and(|rest| rest.starts_with(' '))
        })
    }

    /// For a language without lists: a name beyond the first word, or a number, which most scripts show.
    fn carries_a_subject(&self) -> bool {
        (1..self.words.len()).any(|at| self.is_name(at)) || self.words.iter().any(Word::has_digit)
    }

    /// The first or the second person. `US` is none of them, nor is the king in `Charles I`.
    fn speaks_to_somebody(&self) -> bool {
        (0..self.words.len()).any(|at| {
            let word = &self.words[at];
            let after_name = at > 0 && self.words[at - 1].capital && !self.is_function_word(at - 1);
            let is_numeral = word.text == "i" && after_name && !word.paused;
            self.is(at, "persons") && !word.shouted && !is_numeral
        })
    }

    /// It begins with a pronoun, with a connective, or with `the effect` of something.
    fn points_back(&self) -> bool {
        // `Within three, …`: three of what was said before.
        let is_number =
            self.is(1, "numbers") || (self.word(1).len() < 4 && self.word(1).parse::<u16>().is_ok());
        let bare_number =
            self.is(0, "lead_ins") && is_number && self.words.get(2).is_some_and(|word| word.paused);
        let opens = self.is(0, "openers") && !self.words[0].shouted;
        // `Inside, every wall …`: inside of what was spoken of.
        let bare_place = self.is(0, "lead_ins") && self.words.get(1).is_some_and(|word| word.paused);
        opens
            || bare_number
            || bare_place
            || self.begins_with("opening_phrases")
            || self.lists.phrases("starts").any(|start| self.sentence.starts_with(start))
            || self.begins_with_verb()
    }

    /// `Nació en Sevilla.`: where a language drops its pronouns, the ending of a first word shows that one is missing.
    fn begins_with_verb(&self) -> bool {
        let is_verb = |at: usize| {
            let word = self.word(at);
            self.lists.phrases("verb_endings").any(|end| word.len() > end.len() + 1 && word.ends_with(end))
        };
        let dated = self.is(0, "lead_ins") && self.words.get(1).is_some_and(Word::has_digit);
        let follows = |at: usize| self.words.get(at).is_some_and(|word| word.capital);
        is_verb(0) || (dated && is_verb(2) && !follows(3))
    }

    /// A day, a month without its year, or a time or place that only the reader of the whole knows.
    fn has_relative_time(&self) -> bool {
        let dated = self.has_year();
        let last = self.words.len().saturating_sub(1);
        (0..self.words.len()).any(|at| {
            // `Mar-a-Lago`
            let tied = |at: usize| self.words.get(at).is_some_and(|word| word.tied && word.text != "s");
            // `Black Friday`, `Monday Night Football`.
            let beside = |at: usize| !self.words[at].paused;
            let named =
                at > 0 && ((self.is_name(at - 1) && beside(at)) || (self.is_name(at + 1) && beside(at + 1)));
            self.is(at, "pointing")
                || (!dated && !named && !tied(at + 1) && self.words[at].capital && self.is(at, "calendar"))
                || (!dated && self.is(at, "days") && !named)
        }) || self.is(last, "trailing")
            || (!dated && self.tells_of_a_day())
            || self.holds("pointing_phrases")
            || self.lists.phrases("holds").any(|part| self.sentence.contains(part))
    }

    /// `Shares of X fell 2 per cent`: on which day?
    fn tells_of_a_day(&self) -> bool {
        let share = self.sentence.contains('%')
            || self.words.iter().any(|word| matches!(&*word.text, "percent" | "cent" | "points"));
        share && (0..self.words.len()).any(|at| self.is(at, "moves"))
    }

    /// A pronoun takes up what the sentence itself has named before it, or something else.
    fn has_open_pronoun(&self) -> bool {
        (0..self.words.len()).any(|at| {
            if self.names_for(at) {
                return self.is(at, "anaphors") && (self.may_mean_all(at) || self.is_another(at));
            }
            let linked = at > 0 && (self.words[at].paused || self.follows(at, "links"));
            let open_subject = at > 0 && self.is(at, "subjects") && (self.is_led_in() || !linked);
            let excused = (at > 2 && self.is_of_kind(at)) || self.is_named_behind(at);
            open_subject || (self.is(at, "anaphors") && !excused)
        })
    }

    /// `Poyer researched it`: the one who does it is not the one to whom it is done.
    fn is_another(&self, at: usize) -> bool {
        let object = matches!(self.word(at), "it" | "him" | "them") && at > 1 && self.is_verb(at - 1);
        let ends = at + 1 == self.words.len();
        (object && ends)
            || (object && at > 1 && self.word(at - 2) != "to" || ends && self.lists.lists("verbs"))
                && self.names_before(at) < 2
    }

    /// Whether something before a pronoun may be what it stands for. What leads in to the subject is not: `According to
    /// Robert Lacey, she …`; a clause of its own may be: `While Valve has …, it …`.
    fn names_for(&self, at: usize) -> bool {
        let subject = self.is(at, "subjects");
        let pause = (1..=at).find(|at| self.words[*at].paused).unwrap_or(0);
        let from = if subject && self.is_led_in() && !(self.is(0, "clauses") && self.names_early()) {
            pause
        } else {
            0
        };
        let person = self.is(at, "persons_only");
        (from..at).any(|at| self.is_name(at) && !(person && self.words[at].shouted))
    }

    /// `During her first year, Marie Curie …`
    fn is_named_behind(&self, at: usize) -> bool {
        let pause = (at + 1..self.words.len()).find(|at| self.words[*at].paused);
        self.is_led_in() && !self.is(at, "subjects") && pause.is_some_and(|at| self.is_name(at))
    }

    /// A name stands where the subject of a first clause stands.
    fn names_early(&self) -> bool {
        (1..4).take_while(|at| !self.word(*at).ends_with("ing")).any(|at| self.is_name(at))
    }

    /// The subject is still to come.
    pub fn is_led_in(&self) -> bool {
        let first = self.word(0);
        let adverb =
            self.is(1, "lead_ins") && matches!(first, "even" | "back" | "just" | "only" | "shortly" | "soon");
        let participle = first.len() > 5 && first.ends_with("ing") || is_past(first, self.lists);
        self.is(0, "lead_ins") || adverb || (self.lists.lists("verbs") && participle)
    }

    /// `X said it was a mistake`: not X was.
    fn may_mean_all(&self, at: usize) -> bool {
        self.word(at) == "it"
            && (self.follows(at, "speech") || matches!(self.before(at), "hope" | "hopes" | "hoped"))
            && matches!(self.word(at + 1), "is" | "was" | "s" | "would")
    }

    /// `A black hole bends the light in its way`: said of all of a kind, so that the kind itself is named.
    fn is_of_kind(&self, at: usize) -> bool {
        let first = !self.is(0, "articles") && !self.is(0, "lead_ins");
        let told = !self.lists.lists("verbs") || (1..at).any(|at| self.is_verb(at));
        self.is(at, "kind_anaphors") && first && told
    }

    /// `The company`, `the two`: one of those words that name what was spoken of, without anything that says which.
    fn has_unnamed_subject(&self) -> bool {
        // `The effect of caffeine` and `the first king of France` say which.
        let behind = self.words.get(2).is_some_and(|word| word.paused)
            && self.lists.lists("verbs")
            && self.is_named_behind_pause(2);
        let named = (2..5).any(|at| self.is(at, "of")) || behind;
        // `The company Siemens` as well.
        let vague = self.is(0, "articles") && self.is(1, "vague") && !named && !self.is_name(2);
        // A mark without which a subject is left out.
        let left_out = self.lists.lists("needs")
            && !self.lists.phrases("needs").any(|mark| self.sentence.contains(mark));
        vague || left_out
    }

    /// `Vermont Bonus Pros Vermont Bonus Cons Thousands …`: the same word twice in one row of capitals.
    fn repeats_a_heading(&self) -> bool {
        let row = |from: usize| {
            let end = (from..self.words.len()).find(|at| {
                let word = &self.words[*at];
                !word.capital || (*at > from && (word.paused || word.tied || word.begins))
            });
            &self.words[from..end.unwrap_or(self.words.len())]
        };
        (0..self.words.len()).any(|from| {
            let row = row(from);
            row.len() > 3 && row[2..].iter().any(|word| word.text == row[0].text)
        })
    }

    /// `How it works The feature lets …`, `The laggards Casino operator …`: a capital in the middle that begins something.
    fn is_run_together(&self) -> bool {
        let headed = self.words[0].shouted && ALL.has("heads", self.word(0)) || self.repeats_a_heading();
        if headed || !self.lists.lists("function") {
            return headed;
        }
        (1..self.words.len()).any(|at| {
            let (before, word) = (&self.words[at - 1], &self.words[at]);
            let next_is_small = self
                .words
                .get(at + 1)
                .is_some_and(|next| !next.capital && !next.tied && !next.paused && !next.has_digit());
            let free = word.capital && !word.shouted && !word.begins && !word.paused && !word.tied;
            let after_word = !before.has_digit() && before.text.len() > 1 && !before.capital;
            let starts = ["openers", "lead_ins", "articles"].iter().any(|kind| self.is(at, kind));
            let common = self.seen.is_common(&word.text) && !self.is_function_word(at - 1);
            let headed = at == 2
                && before.text.ends_with('s')
                && self.is(0, "articles")
                && !self.is_function_word(3)
                && !self.is_verb(3);
            free && after_word && next_is_small && (starts || common || headed)
        })
    }
}
