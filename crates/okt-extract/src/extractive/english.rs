//! English alone: whether a sentence has a verb, is no request, and says which one it speaks of.

use super::lists::Lists;
use super::wording::Wording;
use super::words::Word;
use crate::reason::Reason;

/// So many words from `both` stands what it means.
const BOTH: usize = 8;

/// In words.
const SHORT: usize = 16;

impl Wording<'_> {
    pub(super) fn check_english(&self) -> Result<(), Reason> {
        if !self.lists.lists("verbs") {
            return Ok(());
        }
        let refuse = |refused: bool, reason: Reason| if refused { Err(reason) } else { Ok(()) };
        refuse(self.is_request(), Reason::Instruction)?;
        let verb = (1..self.words.len()).find(|at| self.is_main_verb(*at)).ok_or(Reason::NotASentence)?;
        refuse(self.is_only_a_clause(), Reason::NotASentence)?;
        refuse(self.announces() || self.counts_nothing(verb), Reason::Connective)?;
        refuse(self.breaks_off(), Reason::NotASentence)?;
        refuse(self.is_spoken_by_nobody(), Reason::Quotation)?;
        refuse(self.points_at_such() || self.ends_with_pronoun(), Reason::Pronoun)?;
        refuse(self.adds_to_something(), Reason::Connective)?;
        refuse(self.is_of_a_season(), Reason::RelativeTime)?;
        refuse(self.says_too_little() || self.is_bare_product(), Reason::UnnamedSubject)?;
        refuse(self.names_a_part(), Reason::UnnamedSubject)?;
        refuse(
            (0..self.words.len()).any(|at| self.word(at) == "the" && self.is_open(at)),
            Reason::UnnamedSubject,
        )?;
        refuse(!self.names_its_subject(verb), Reason::UnnamedSubject)
    }

    pub(super) fn is_verb(&self, at: usize) -> bool {
        // `co-founded`, but not `gold-plated`.
        let apart = !self.words[at].tied || matches!(self.before(at), "co" | "re");
        let after_noun_mark = self.follows(at, "noun_marks");
        let verb = is_verb(self.word(at), self.lists) || self.takes_an_object(at);
        !self.words[at].capital && apart && !after_noun_mark && verb
    }

    /// `squeezes a screen`, `surprises her`: hardly a noun has an article right behind it.
    fn takes_an_object(&self, at: usize) -> bool {
        let word = self.word(at);
        let object = self.words.get(at + 1).is_some_and(|next| !next.paused && !next.tied && !next.capital)
            && matches!(self.word(at + 1), "a" | "an" | "its" | "his" | "her" | "their" | "him" | "them");
        word.len() > 4 && word.ends_with('s') && !word.ends_with("ss") && object && !self.is_function_word(at)
    }

    /// Not what is told of something on the way: `a maker that sells …`, `a car built by …`, `X, which makes …, …`.
    fn is_main_verb(&self, at: usize) -> bool {
        let built_by = is_past(self.word(at), self.lists)
            && self.word(at + 1) == "by"
            && !self.follows(at, "auxiliaries");
        let pause = (1..=at).rev().find(|at| self.words[*at].paused);
        let aside = pause.is_some_and(|at| matches!(self.word(at), "which" | "who" | "whose" | "where"));
        self.is_verb(at) && !self.follows(at, "relatives") && !built_by && !aside
    }

    /// `Fry the onion …`, and what begins with a participle: `Built in 1911, …`
    fn is_request(&self) -> bool {
        let first = self.word(0);
        // `Founded by X, the firm Y has …` goes on with a name behind its comma.
        let taken_up = (2..self.words.len())
            .find(|at| self.words[*at].paused)
            .is_some_and(|at| self.is_name(at) || (self.is(at, "articles") && self.is_name(at + 1)));
        let named = taken_up || self.words.get(1).is_some_and(|word| word.capital);
        let has_object = matches!(self.word(1), "the" | "a" | "an" | "it" | "them" | "all" | "each");
        let told_to = self.word(0) == "to"
            && (2..self.words.len())
                .find(|at| self.words[*at].paused)
                .is_some_and(|at| self.is(at, "imperatives"));
        told_to
            || (self.is(0, "imperatives") && !self.seen.is_name(first))
            || (is_verb(first, self.lists) && !is_past(first, self.lists) && has_object)
            || (is_past(first, self.lists) && !named && !self.words[0].shouted)
    }

    /// `While others wait, including …`: what it leads to is missing.
    fn is_only_a_clause(&self) -> bool {
        let goes_on = |at: usize| self.words[at].paused && !self.is(at, "continues");
        matches!(self.word(0), "while" | "although" | "though" | "because" | "whereas")
            && !(2..self.words.len()).any(goes_on)
    }

    /// `Three things keep water in place.`
    fn announces(&self) -> bool {
        self.is(0, "numbers") && self.is(1, "stubs")
    }

    /// `Both are found in Europe.`
    fn counts_nothing(&self, verb: usize) -> bool {
        self.is(0, "quantifiers") && verb == 1
    }

    /// Also at `… and 01.`, of the company 01.AI.
    fn breaks_off(&self) -> bool {
        let last = self.words.len().saturating_sub(1);
        self.before(last) == "how" || (self.before(last) == "and" && self.word(last).starts_with('0'))
    }

    /// `thought about it.`
    fn ends_with_pronoun(&self) -> bool {
        matches!(self.word(self.words.len() - 1), "it" | "him" | "them" | "her")
    }

    /// `There’s also …`, `…, too, with …`; not `but also`, `also known as`.
    fn adds_to_something(&self) -> bool {
        (1..self.words.len()).any(|at| match self.word(at) {
            "also" => {
                !matches!(self.before(at), "but" | "and" | "or")
                    && !matches!(self.word(at + 1), "known" | "called" | "named")
                    && !self.words[at].paused
            }
            "too" => self.words[at].paused && self.words.get(at + 1).is_none_or(|next| next.paused),
            _ => false,
        })
    }

    /// In news, a few words about one name are mostly the end of a story: `Google argues that it’s just doing business.` What
    /// something is may be said in as few.
    fn says_too_little(&self) -> bool {
        let defines = (1..self.words.len()).any(|at| {
            matches!(self.before(at), "is" | "are" | "was" | "were")
                && matches!(self.word(at), "a" | "an" | "the" | "one")
        });
        self.seen.is_about_names()
            && self.words.len() < SHORT
            && self.names_before(self.words.len()) < 2
            && !self.has_year()
            && !defines
    }

    /// `The T7 Shield comes with …`: of what kind, and by whom?
    fn is_bare_product(&self) -> bool {
        let name = |at: &usize| self.words.get(*at).is_some_and(|word| word.capital || word.has_digit());
        let end = (1..self.words.len()).take_while(name).last().map_or(1, |last| last + 1);
        let numbered = self.words.get(1..end).is_some_and(|words| words.iter().any(Word::has_digit));
        self.word(0) == "the" && name(&1) && numbered && (self.is_verb(end) || self.is_function_word(end))
    }

    /// `scored a touchdown`, `Week 10`: of a year that is not told.
    fn is_of_a_season(&self) -> bool {
        let week = |at: usize| self.word(at) == "week" && self.words.get(at + 1).is_some_and(Word::has_digit);
        let versus =
            |at: usize| self.word(at) == "vs" && (self.word(at + 1) == "the" || self.is_name(at + 1));
        !self.has_year() && (0..self.words.len()).any(|at| self.is(at, "seasonal") || week(at) || versus(at))
    }

    /// `Bridget Gregory (Linda Fiorentino) schemes …`: a part and who plays it, in what?
    fn names_a_part(&self) -> bool {
        self.sentence.split('(').skip(1).filter_map(|rest| rest.split_once(')')).any(|(inside, _)| {
            let words: Vec<&str> = inside.split(' ').collect();
            let name = |word: &&str| {
                word.starts_with(char::is_uppercase) && word.chars().skip(1).any(char::is_lowercase)
            };
            (2..=3).contains(&words.len()) && words.iter().all(name)
        })
    }

    /// `…,” he said`: who, another sentence has said.
    fn is_spoken_by_nobody(&self) -> bool {
        let said = |at: usize| self.is(at, "speech");
        (1..self.words.len()).any(|at| {
            // `…, said he was` is no speech, nor is `as she recalled`.
            let before = self.words[at].paused && said(at + 1);
            let behind = self.words[at - 1].paused && said(at - 1) && !self.tells(at + 1);
            self.is(at, "subjects") && (before || behind)
        })
    }

    fn tells(&self, at: usize) -> bool {
        is_verb(self.word(at), self.lists) || self.words.get(at).is_some_and(|word| word.tied)
    }

    /// `such a ruling`, `that September`, `both companies`, `the same day`, `there`.
    fn points_at_such(&self) -> bool {
        (0..self.words.len()).any(|at| match self.word(at) {
            "ones" => true,
            // `one that …, and another that …`
            "another" => !self.words[..at].iter().any(|word| word.text == "one"),
            "such" => self.word(at + 1) != "as",
            "there" => !self.is_expletive(at),
            // `noted that, so long as …,`
            "that" if self.words.get(at + 1).is_none_or(|next| next.paused) => {
                !self.follows(at, "saying") || at + 1 == self.words.len()
            }
            "that" => at > 0 && self.is_pointing_that(at),
            "one" => self.follows(at, "ranks") || self.before(at).ends_with("est"),
            "both" => {
                let joined = |words: &[Word]| words.iter().any(|word| word.text == "and");
                // `A and B both pleaded guilty`
                let taken_up = joined(&self.words[at.saturating_sub(BOTH)..at]) && self.tells(at + 1);
                !joined(&self.words[at + 1..(at + 1 + BOTH).min(self.words.len())]) && !taken_up
            }
            // `same-game parlays`
            "same" => {
                let compound = self.words.get(at + 1).is_some_and(|next| next.tied);
                !compound
                    && !self.words[at].capital
                    && !self.words[at + 1..].iter().any(|word| word.text == "as")
            }
            "as" => self.is(at + 1, "degrees") && at + 2 >= self.words.len() && self.word(at + 1) != "well",
            _ => false,
        })
    }

    /// `there is`, but not `the crisis there is dragging on`.
    fn is_expletive(&self, there: usize) -> bool {
        let verb = is_verb(self.word(there + 1), self.lists) || self.word(there + 1) == "s";
        let begins = there == 0
            || self.words[there].paused
            || self.is_function_word(there - 1)
            || is_verb(self.before(there), self.lists);
        verb && begins
    }

    /// `after that`, `that September`, `repeat that feat`; not `in that they …`, `rules that fall under …`, `said that …`.
    fn is_pointing_that(&self, that: usize) -> bool {
        let next = that + 1;
        let clause = self.before(that) == "in" && (self.is(next, "subjects") || self.is(next, "articles"));
        let verb = self.words[next].tied
            || (self.is(next, "lead_ins") || self.is(that + 2, "lead_ins")) && self.is(next, "verbs");
        let one = self.is_that_one(that) && !self.follows(that, "saying");
        !clause && !verb && (self.follows(that, "before_that") || self.is(next, "times") || one)
    }

    /// `repeat that feat.`, not `said that sellers pay`: behind the noun comes no verb.
    fn is_that_one(&self, that: usize) -> bool {
        let noun =
            self.words.get(that + 1).is_some_and(|word| !word.capital && !word.paused && !word.has_digit());
        let ends = self.words.get(that + 2).is_none_or(|word| word.paused)
            || matches!(
                self.word(that + 2),
                "and" | "or" | "but" | "in" | "on" | "at" | "with" | "by" | "as"
            );
        noun && ends && !self.is_function_word(that + 1) && !is_verb(self.word(that + 1), self.lists)
    }

    /// `The suit, filed by X, …`
    pub(super) fn is_named_behind_pause(&self, end: usize) -> bool {
        let next = (end + 1..self.words.len()).find(|at| self.words[*at].paused).unwrap_or(self.words.len());
        is_past(self.word(end), self.lists) && (end + 1..next.min(end + 8)).any(|at| self.is_name(at))
    }

    /// Whether `the` begins something that only what was said before makes known. A name, a number, `of …` or `who …` says
    /// which; of some things there is only one.
    fn is_open(&self, the: usize) -> bool {
        if self.words[the].shouted
            || self.is_idiom(the)
            || (the > 0 && self.words[the].capital && self.is_name(the + 1))
        {
            return false;
        }
        let mut end = the + 1;
        while end < self.words.len() && end < the + 7 && !self.ends_phrase(end, the) {
            end += 1;
        }
        let phrase = the + 1..end;
        if phrase.is_empty() {
            return true;
        }
        let any = |test: &dyn Fn(usize) -> bool| phrase.clone().any(test);
        if any(&|at| self.is_name(at) || self.words[at].has_digit()) {
            let goes_on = self.words.get(end).is_some_and(|word| !word.paused) && self.is(end, "which_one");
            let heads = self.is(end - 1, "roles");
            return (heads || self.is_of_sort(the, end)) && !self.is_name(end) && !goes_on;
        }
        let owned = self.words.get(end).is_some_and(|word| word.tied && word.text == "s");
        if owned && !self.is(end - 1, "known") && self.names_before(the) < 2 {
            return true;
        }
        let paused = self.words.get(end).is_some_and(|word| word.paused);
        let said_which = !paused && self.is(end, "which_one");
        // `The most immediate is …`: the most immediate what?
        let headless = self.word(the + 1) == "most" && self.is(end, "auxiliaries");
        let ranked = !headless
            && any(&|at| self.is(at, "ranks") || (self.word(at).ends_with("est") && self.word(at).len() > 4));
        // `the products sold on …`, but not `the firm said on …`, which has a subject.
        let after_clause =
            the == 0 || self.follows(the, "speech") || self.follows(the, "links") || self.words[the].paused;
        let participle =
            !paused && !after_clause && is_past(self.word(end), self.lists) && self.is(end + 1, "lead_ins");
        let tells = end > the + 2 && is_verb(self.word(the + 2), self.lists);
        let known = phrase.clone().all(|at| self.is(at, "known")) || (self.is(the + 1, "known") && tells);
        let field = phrase.len() > 1 && any(&|at| at > the + 1 && self.is(at, "fields"));
        let before = any(&|at| {
            (0..the)
                .any(|earlier| earlier > 0 && self.word(earlier) == self.word(at) && self.word(at).len() > 3)
        });
        // Two names before it leave little doubt: `Microsoft, which put billions into OpenAI, says that the start-up …`
        // and so do a name and a year.
        let (names, role) = (self.names_before(the), self.is(end - 1, "roles"));
        let introduced =
            (names >= 2 || (names == 1 && self.has_year() && !role)) && !self.is(end - 1, "episodes");
        // `the control room in Port Arden`
        let place = !paused
            && !role
            && matches!(self.word(end), "in" | "at" | "on" | "from")
            && (self.is_name(end + 1) || (self.word(end + 1) == "the" && self.is_name(end + 2)));
        let named_behind = paused && self.is_named_behind_pause(end);
        !(introduced
            || place
            || named_behind
            || said_which
            || (ranked && phrase.len() > 1)
            || participle
            || known
            || field
            || before)
    }

    /// `took the stand`, `on the surface`.
    fn is_idiom(&self, the: usize) -> bool {
        self.lists.phrases("idioms").any(|idiom| {
            let words: Vec<&str> = idiom.split(' ').collect();
            let within = words.iter().position(|word| *word == "the").unwrap_or(0);
            let first = the.checked_sub(within);
            first.is_some_and(|first| {
                words.iter().enumerate().all(|(at, word)| self.word(first + at) == *word)
            })
        })
    }

    /// `The OLED panel`, `The new APU`: letters that say of what sort it is, not which one.
    fn is_of_sort(&self, the: usize, end: usize) -> bool {
        let words = &self.words[the + 1..end];
        let number = |word: &Word| word.text.bytes().all(|byte| byte.is_ascii_digit());
        // `The EU’s objections`
        let owned = words.iter().any(|word| word.tied && word.text == "s");
        let mixed =
            words.iter().any(|word| !word.capital) && words.iter().all(|word| word.shouted || !word.capital);
        the == 0 && mixed && !owned && !words.iter().any(number)
    }

    /// At a word that holds sentences together, behind a possessive, and where a verb seems to begin.
    fn ends_phrase(&self, at: usize, the: usize) -> bool {
        let word = &self.words[at];
        let owner = word.tied && word.text == "s" && !(the + 1..at).any(|at| self.is_name(at));
        let small = !word.capital && at > the + 1;
        let before_name = self.words.get(at + 1).is_some_and(|next| next.capital && !next.tied);
        let verb = small
            && !word.tied
            && (is_past(&word.text, self.lists)
                || (before_name && word.text.ends_with('s'))
                || word.text.ends_with("ly"));
        // `the lead-up`, `the then-Prince`
        let compound = word.tied || self.words.get(at + 1).is_some_and(|next| next.tied && next.text != "s");
        let holds = self.is(at, "function") && !word.capital && !compound && !self.is(at, "inside");
        (at > the + 1 && word.paused) || owner || verb || holds
    }

    /// Without a name and a year it has to be true of all of a kind, and is told in the present. Letters are a name only
    /// where the subject stands.
    fn names_its_subject(&self, verb: usize) -> bool {
        let named =
            (0..self.words.len()).any(|at| self.is_name(at) && (at < verb || !self.words[at].shouted));
        // `There are two USB-C ports`, but also `There are four chambers in the human heart`.
        let placed = |at: usize| {
            (self.is_name(at) && !self.words[at].shouted && self.word(at).len() > 1) || self.is(at, "known")
        };
        if self.word(0) == "there" && !(1..self.words.len()).any(placed) {
            return false;
        }
        let told = is_past(self.word(verb), self.lists) || self.is(verb, "modals");
        let counted = self.words.iter().any(Word::has_digit);
        if self.seen.is_about_names() {
            return named || (!told && counted) || (self.has_year() && !told);
        }
        named || self.has_year() || !told
    }
}

/// One of the list, in one of its regular forms, or a word with the ending of the past.
pub fn is_verb(word: &str, lists: &Lists) -> bool {
    let base = |end: &str, with: &str| {
        word.strip_suffix(end).is_some_and(|stem| lists.has("verbs", &format!("{stem}{with}")))
    };
    base("", "") || base("s", "") || base("es", "") || base("ies", "y") || is_past(word, lists)
}

pub fn is_past(word: &str, lists: &Lists) -> bool {
    lists.has("past", word) || (word.len() > 4 && word.ends_with("ed"))
}
