//! The sentences of a Markdown text that claim something, with the facts that they cite.
//!
//! Headings, code, tables, images and HTML are no claims, nor is what has fewer than two words. The text of a citation is not
//! cut, however many full stops it has: it is one statement. A citation without letters, such as `²`, belongs to what stands
//! before it.

use std::ops::Range;

use okt_model::FactId;
use pulldown_cmark::{Event, Tag, TagEnd};

use super::citations::{cited, parser};
use crate::ground::is_unspaced;

/// A sentence that claims something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Where it stands, in bytes, with its citations.
    pub range: Range<usize>,
    /// What it says, without Markdown.
    pub text: String,
    /// The facts that it cites, in the order of the text, each once.
    pub facts: Vec<FactId>,
}

/// The claims of a Markdown text, in its order.
pub fn claims(markdown: &str) -> Vec<Claim> {
    let mut found = Vec::new();
    let mut paragraph = Paragraph::default();
    // How deep inside of what claims nothing.
    let mut mute = 0_usize;
    // Citations do not lie in each other.
    let mut citation: Option<(FactId, Range<usize>, String)> = None;
    for (event, range) in parser(markdown).into_offset_iter() {
        match event {
            Event::Start(
                Tag::Heading { .. } | Tag::CodeBlock(_) | Tag::Table(_) | Tag::Image { .. } | Tag::HtmlBlock,
            ) => {
                mute += 1;
            }
            Event::End(
                TagEnd::Heading(_) | TagEnd::CodeBlock | TagEnd::Table | TagEnd::Image | TagEnd::HtmlBlock,
            ) => mute = mute.saturating_sub(1),
            Event::Start(Tag::Link { .. }) if mute == 0 => {
                citation = cited(markdown, &range).map(|fact| (fact, range, String::new()));
            }
            Event::End(TagEnd::Link) if mute == 0 => {
                if let Some((fact, range, text)) = citation.take() {
                    paragraph.cite(fact, range, &text);
                }
            }
            Event::Start(Tag::Paragraph | Tag::Item | Tag::BlockQuote(_))
            | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::BlockQuote(_)) => {
                found.append(&mut std::mem::take(&mut paragraph).finish());
            }
            Event::Text(text) | Event::Code(text) if mute == 0 => match &mut citation {
                Some((.., inside)) => inside.push_str(&text),
                None => paragraph.say(&text, range),
            },
            Event::SoftBreak | Event::HardBreak if mute == 0 => match &mut citation {
                Some((.., inside)) => inside.push(' '),
                None => paragraph.say(" ", range),
            },
            _ => {}
        }
    }
    found.append(&mut paragraph.finish());
    found
}

/// The claims of a text that is no Markdown.
pub(crate) fn sentences(text: &str) -> Vec<String> {
    let mut paragraph = Paragraph::default();
    paragraph.say(text, 0..text.len());
    paragraph.finish().into_iter().map(|claim| claim.text).collect()
}

#[derive(Default)]
struct Paragraph {
    done: Vec<Claim>,
    /// The sentence that goes on.
    text: String,
    range: Option<Range<usize>>,
    facts: Vec<FactId>,
    /// It is complete, but for citations that may follow.
    ended: bool,
    /// It ends with a citation so far: a further statement that is cited is one of its own.
    cited: bool,
}

impl Paragraph {
    /// Text outside of citations. It is as long as in the Markdown but for escapes and entities, so where a sentence ends inside
    /// of it is told to the byte only where there are none; a claim is never shorter than that.
    fn say(&mut self, text: &str, range: Range<usize>) {
        let exact = text.len() == range.len();
        for (at, piece) in pieces(text) {
            let stands = if exact { range.start + at..range.start + at + piece.len() } else { range.clone() };
            let blank = piece.trim().is_empty();
            if self.ended && !blank {
                // What goes on in small letters was an abbreviation.
                self.ended = !piece.starts_with(char::is_lowercase);
                if self.ended {
                    self.close();
                }
            }
            if blank && self.text.is_empty() {
                continue;
            }
            self.cited &= blank;
            self.add(piece, stands);
            self.ended |= ends(self.text.trim_end(), piece.ends_with(char::is_whitespace));
        }
    }

    fn cite(&mut self, fact: FactId, range: Range<usize>, text: &str) {
        let says = text.contains(char::is_alphabetic);
        if says && (self.ended || self.cited) {
            self.close();
        }
        self.cited = true;
        if says {
            self.add(text, range);
            self.ended = ends(text.trim_end(), true);
        } else {
            self.add("", range);
        }
        if !self.facts.contains(&fact) {
            self.facts.push(fact);
        }
    }

    fn add(&mut self, text: &str, range: Range<usize>) {
        self.text.push_str(text);
        let first = self.range.as_ref().map_or(range.start, |known| known.start);
        self.range = Some(first..range.end);
    }

    /// The sentence is complete.
    fn close(&mut self) {
        let (text, facts) = (std::mem::take(&mut self.text), std::mem::take(&mut self.facts));
        (self.ended, self.cited) = (false, false);
        let Some(range) = self.range.take() else { return };
        let text = text.trim().to_owned();
        if is_claim(&text) || !facts.is_empty() {
            self.done.push(Claim { range, text, facts });
        }
    }

    fn finish(mut self) -> Vec<Claim> {
        self.close();
        self.done
    }
}

/// At least two words, or something in a script that writes no spaces.
fn is_claim(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| word.contains(char::is_alphabetic)).count();
    words > 1 || text.chars().filter(|c| is_unspaced(*c)).count() > 3
}

/// A text in pieces, each with its place: a word with the white space behind it, or up to a full stop that needs none.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let mut last = '\0';
        let end = rest.char_indices().find(|(_, c)| {
            let before = std::mem::replace(&mut last, *c);
            (before.is_whitespace() && !c.is_whitespace()) || (is_full_stop(before) && !is_full_stop(*c))
        });
        let (piece, start) = (&rest[..end.map_or(rest.len(), |(end, _)| end)], at);
        at += piece.len();
        Some((start, piece))
    })
}

/// Those that need no space behind them.
const fn is_full_stop(c: char) -> bool {
    matches!(c, '。' | '！' | '？' | '।' | '؟' | '۔')
}

/// Whether a sentence ends with this text.
fn ends(text: &str, spaced: bool) -> bool {
    if text.ends_with(is_full_stop) {
        return true;
    }
    spaced && text.split_whitespace().next_back().is_some_and(ends_sentence)
}

/// Short words that end with a full stop and no sentence.
const SHORTENED: [&str; 10] = ["al", "ca", "cf", "ed", "eg", "ie", "no", "pp", "st", "vs"];

/// Whether a sentence may end with this word. `Dr.`, `Prof.`, `U.S.` and `J.` are short with a capital, or have a full stop
/// inside; a sentence rarely ends so.
pub(super) fn ends_sentence(word: &str) -> bool {
    let word = word.trim_end_matches(['"', '”', ')', '\'', '’', '»']);
    let Some(stem) = word.strip_suffix(['.', '!', '?', '…']) else { return false };
    if !word.ends_with('.') || stem.ends_with(|c: char| c.is_ascii_digit()) {
        return true;
    }
    let length = stem.chars().count();
    let short = length <= 1 || (length <= 4 && stem.starts_with(char::is_uppercase));
    !(short || stem.contains('.') || SHORTENED.contains(&stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0197a3c0-0000-7000-8000-00000000000a";
    const B: &str = "0197a3c0-0000-7000-8000-00000000000b";

    /// Each claim and how many facts it cites.
    fn said(markdown: &str) -> Vec<(String, usize)> {
        claims(markdown).into_iter().map(|claim| (claim.text, claim.facts.len())).collect()
    }

    fn expect(markdown: &str, expected: &[(&str, usize)]) {
        let expected: Vec<(String, usize)> =
            expected.iter().map(|(text, facts)| ((*text).to_owned(), *facts)).collect();
        assert_eq!(said(markdown), expected, "{markdown}");
    }

    #[test]
    fn a_claim_has_the_citations_that_belong_to_it() {
        expect(
            &format!("[Gulls nest.](<fact:{A}>)[²](<fact:{B}>) Terns left."),
            &[("Gulls nest.", 2), ("Terns left.", 0)],
        );
        expect(
            &format!("Gulls nest. [1](<fact:{A}>) Terns left [2](<fact:{B}>)."),
            &[("Gulls nest.", 1), ("Terns left .", 1)],
        );
        expect(
            &format!("Gulls [nest](<fact:{A}>) and [breed](<fact:{B}>) there. They left."),
            &[("Gulls nest and breed there.", 2), ("They left.", 0)],
        );
        expect(
            &format!("[Dr. Lee of the U.S. left. He came back.](<fact:{A}>)"),
            &[("Dr. Lee of the U.S. left. He came back.", 1)],
        );
        expect(
            &format!("[Gulls nest.](<fact:{A}>) [Terns\nnest.](<fact:{A}>)"),
            &[("Gulls nest.", 1), ("Terns nest.", 1)],
        );
        expect(
            &format!("[Gulls left the U.S.](<fact:{A}>)[²](<fact:{B}>) [Terns nest](<fact:{B}>)"),
            &[("Gulls left the U.S.", 2), ("Terns nest", 1)],
        );
        expect(
            &format!("[潮汐来了。](<fact:{A}>)[²](<fact:{B}>)碗倾斜了。"),
            &[("潮汐来了。", 2), ("碗倾斜了。", 0)],
        );
        expect("潮汐来了。碗倾斜了。", &[("潮汐来了。", 0), ("碗倾斜了。", 0)]);
    }

    #[test]
    fn what_is_no_claim_is_left_out() {
        expect(
            "# Gulls nest here.\n\nGulls nest there\n===\n\n```\nlet gulls = nest;\n```\n\n    gulls in code\n",
            &[],
        );
        expect("| Gulls nest | Terns left |\n|---|---|\n| on Skomer | in May |\n", &[]);
        expect(
            &format!("![Gulls nest here](<image:{A}>)\n\n<p>Gulls nest here.</p>\n\n---\n\nGulls.\n"),
            &[],
        );
        expect(
            "- Gulls nest\n- Terns left\n  1. in May they went\n\n> Auks stay there.\n",
            &[("Gulls nest", 0), ("Terns left", 0), ("in May they went", 0), ("Auks stay there.", 0)],
        );
        expect(
            &format!("`[Gulls nest.](<fact:{A}>)` they say."),
            &[(&format!("[Gulls nest.](<fact:{A}>) they say."), 0)],
        );
        expect(
            &format!(r"\[Gulls nest.](<fact:{A}>) here"),
            &[(&format!("[Gulls nest.](fact:{A}) here"), 0)],
        );
        expect("[Gulls nest.](https://example.org) Terns left.", &[("Gulls nest.", 0), ("Terns left.", 0)]);
    }

    #[test]
    fn a_text_is_cut_into_its_sentences() {
        for (text, expected) in [
            ("It stands in a line seen from the Earth. Isaac Newton explained it. He died.", 3),
            (
                "It was built in 1931. Nobody wanted it! Dr. Lee of the U.S. Navy knew, e.g. from Prof. Berg.",
                3,
            ),
            ("It weighs approx. three tons (see Fig. 3), said J. Berg.", 1),
            ("Nothing", 0),
        ] {
            assert_eq!(sentences(text).len(), expected, "{:?}", sentences(text));
        }
    }

    #[test]
    fn a_claim_stands_where_it_says() {
        let text = format!("# H\n\nÜber gulls. [Terns left.](<fact:{A}>)[²](<fact:{B}>) Auks stay.\n");
        let stands: Vec<&str> = claims(&text).into_iter().map(|claim| text[claim.range].trim()).collect();
        assert_eq!(
            stands,
            ["Über gulls.", &format!("[Terns left.](<fact:{A}>)[²](<fact:{B}>)"), "Auks stay."]
        );
    }
}
