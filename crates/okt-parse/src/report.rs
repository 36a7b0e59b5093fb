//! The sentences of a report that somebody wrote in Markdown, with their places in it, and which of them claim something.
//!
//! Within a block of the Markdown the words are cut by [`sentences`], as those of sources are. What is a block, and what of
//! it are words, is decided here.

use std::ops::Range;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

use crate::html;
use crate::sentences::sentences;

/// A sentence of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportSentence {
    /// From the first of its words, in Unicode code points over the Markdown.
    pub start: usize,
    /// To behind the last of them.
    pub end: usize,
    /// Its words without Markdown, on one line.
    pub text: String,
    /// Whether it says that something is so. Headings, code, tables, HTML, links by themselves, footnotes and questions do not.
    pub is_claim: bool,
}

/// The sentences of a report, in order and without overlap. None of them goes beyond its block: a paragraph, an item of a
/// list, a row of a table.
pub fn report_sentences(markdown: &str, language: Option<&str>) -> Vec<ReportSentence> {
    let mut reader = Reader {
        markdown,
        language,
        at: (0, 0),
        block: Block::default(),
        apart: 0,
        images: 0,
        link: None,
        found: Vec::new(),
    };
    // Of the older footnotes, also those are told that nobody has defined.
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_OLD_FOOTNOTES
        | Options::ENABLE_TASKLISTS;
    for (event, range) in Parser::new_ext(markdown, options).into_offset_iter() {
        reader.take(event, range);
    }
    reader.close();
    reader.found
}

/// The words of a block as far as it is read, and where they come from.
#[derive(Default)]
struct Block {
    text: String,
    pieces: Vec<Piece>,
    /// It is not cut: a row of a table, a block of code.
    whole: bool,
}

/// Words that stand together in the Markdown.
struct Piece {
    /// Bytes of the text of the block.
    start: usize,
    /// Bytes of the Markdown.
    source: Range<usize>,
    /// Written there as it is read, so that each byte has its place.
    verbatim: bool,
    /// Words that claim nothing by themselves: those of links and code. What links to a fact is a statement that cites it.
    bare: bool,
}

struct Reader<'a> {
    markdown: &'a str,
    language: Option<&'a str>,
    /// How far bytes were counted as code points; it only goes forward.
    at: (usize, usize),
    block: Block,
    /// In so many blocks that claim nothing.
    apart: usize,
    images: usize,
    /// Links do not nest.
    link: Option<Link>,
    found: Vec<ReportSentence>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Citation,
    Other,
}

/// How the address of a citation begins: `[statement](<fact:ID>)`.
const FACT: &str = "fact:";

const fn is_superscript(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹')
}

impl Reader<'_> {
    fn take(&mut self, event: Event, range: Range<usize>) {
        match event {
            Event::Start(Tag::Image { .. }) => self.images += 1,
            Event::End(TagEnd::Image) => self.images -= 1,
            Event::Start(Tag::Link { dest_url, .. }) => {
                self.link = Some(if dest_url.starts_with(FACT) { Link::Citation } else { Link::Other });
            }
            Event::End(TagEnd::Link) => self.link = None,
            Event::Start(tag) if is_inline(&tag) => {}
            Event::Start(Tag::TableCell) | Event::End(TagEnd::TableCell) | Event::SoftBreak => {
                self.space(" ");
            }
            Event::Start(Tag::HtmlBlock) => {
                self.close();
                self.apart += 1;
                self.block.whole = true;
                let words = html::words(&self.markdown[range.clone()]);
                self.words(&words, range, false);
            }
            Event::Start(tag) => {
                self.close();
                self.apart += usize::from(is_apart_at(&tag));
                self.block.whole = matches!(tag, Tag::TableHead | Tag::TableRow | Tag::CodeBlock(_));
            }
            Event::End(tag) if !matches!(tag, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough) => {
                self.close();
                self.apart -= usize::from(is_apart(tag));
            }
            Event::Text(text) => self.text(&text, range),
            Event::Code(text) => self.code(&text, &range),
            Event::HardBreak => self.space("\n"),
            Event::Rule => self.close(),
            // Tags are no words, and what stands between them is told as text; the words of HTML blocks were told at once.
            Event::End(_)
            | Event::Html(_)
            | Event::InlineHtml(_)
            | Event::FootnoteReference(_)
            | Event::TaskListMarker(_)
            | Event::InlineMath(_)
            | Event::DisplayMath(_) => {}
        }
    }

    fn text(&mut self, text: &CowStr, range: Range<usize>) {
        // The number of a further citation is no word.
        if self.link == Some(Link::Citation) && text.chars().all(is_superscript) {
            return;
        }
        self.words(text, range, self.link == Some(Link::Other));
    }

    /// Without the backticks.
    fn code(&mut self, text: &CowStr, range: &Range<usize>) {
        let inside = self.markdown[range.clone()].find(&**text).map(|at| range.start + at);
        let place = inside.map_or(range.clone(), |start| start..start + text.len());
        self.words(text, place, true);
    }

    fn words(&mut self, text: &str, source: Range<usize>, bare: bool) {
        if self.images > 0 || text.is_empty() {
            return;
        }
        let verbatim = self.markdown[source.clone()] == *text;
        self.block.pieces.push(Piece { start: self.block.text.len(), source, verbatim, bare });
        self.block.text.push_str(text);
    }

    fn space(&mut self, space: &str) {
        self.block.text.push_str(space);
    }

    /// Cuts the words that were read since the last block began.
    fn close(&mut self) {
        let block = std::mem::take(&mut self.block);
        if !block.text.contains(char::is_alphanumeric) {
            return;
        }
        let mut place = Place { text: &block.text, byte: 0, point: 0, piece: 0 };
        let cut = if block.whole { vec![whole(&block.text)] } else { sentences(&block.text, self.language) };
        for (start, end) in cut {
            let (start, end) = (place.byte(start), place.byte(end));
            self.push(&block, &mut place, start..end);
        }
    }

    fn push(&mut self, block: &Block, place: &mut Place, part: Range<usize>) {
        let words = &block.text[part.clone()];
        let text: Vec<&str> = words.split_whitespace().collect();
        let (Some(first), true) = (place.piece(block, part.start), words.contains(char::is_alphanumeric))
        else {
            return;
        };
        let claims =
            self.apart == 0 && !is_question(words) && !is_address(&text) && says(block, first, &part);
        let start = block.pieces[first].source_of(part.start).start;
        let Some(last) = place.piece(block, part.end - 1) else { return };
        let end = block.pieces[last].source_of(part.end - 1).end;
        let (start, end) = (self.point(start), self.point(end));
        // Code of several sentences that is written otherwise than it is read has one place.
        if start == end {
            return;
        }
        self.found.push(ReportSentence { start, end, text: text.join(" "), is_claim: claims });
    }

    fn point(&mut self, byte: usize) -> usize {
        // What is read of one entity may be cut in two.
        if byte > self.at.0 {
            let byte = self.markdown.ceil_char_boundary(byte);
            self.at = (byte, self.at.1 + self.markdown[self.at.0..byte].chars().count());
        }
        self.at.1
    }
}

impl Piece {
    /// Where a byte of the block's text stands in the Markdown.
    fn source_of(&self, byte: usize) -> Range<usize> {
        if self.verbatim {
            let at = self.source.start + (byte - self.start).min(self.source.len() - 1);
            at..at + 1
        } else {
            self.source.clone()
        }
    }
}

/// Walks through the text of a block, only forward.
struct Place<'a> {
    text: &'a str,
    byte: usize,
    point: u32,
    piece: usize,
}

impl Place<'_> {
    /// The byte at a code point.
    fn byte(&mut self, point: u32) -> usize {
        let ahead = usize::try_from(point.saturating_sub(self.point)).unwrap_or(usize::MAX);
        let rest = &self.text[self.byte..];
        self.byte += rest.char_indices().nth(ahead).map_or(rest.len(), |(at, _)| at);
        self.point = point;
        self.byte
    }

    /// The piece that a byte is in, or the next one before it.
    fn piece(&mut self, block: &Block, byte: usize) -> Option<usize> {
        while block.pieces.get(self.piece + 1).is_some_and(|next| next.start <= byte) {
            self.piece += 1;
        }
        (self.piece < block.pieces.len()).then_some(self.piece)
    }
}

/// A text without the white space around it, in code points.
fn whole(text: &str) -> (u32, u32) {
    let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    let trimmed = text.trim_start();
    let start = count(&text[..text.len() - trimmed.len()]);
    (start, start.saturating_add(count(trimmed.trim_end())))
}

const fn is_inline(tag: &Tag) -> bool {
    matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough)
}

/// Blocks of which nothing is a claim.
const fn is_apart(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Heading(_)
            | TagEnd::CodeBlock
            | TagEnd::Table
            | TagEnd::HtmlBlock
            | TagEnd::FootnoteDefinition
    )
}

fn is_apart_at(tag: &Tag) -> bool {
    is_apart(tag.to_end())
}

/// Whether there are words besides those of links and code.
fn says(block: &Block, first: usize, part: &Range<usize>) -> bool {
    let pieces = block.pieces[first..].iter().take_while(|piece| piece.start < part.end);
    let ends = block.pieces[first..].iter().skip(1).map(|piece| piece.start).chain([block.text.len()]);
    pieces.zip(ends).filter(|(piece, _)| !piece.bare).any(|(piece, end)| {
        block.text[piece.start.max(part.start)..end.min(part.end)].contains(char::is_alphabetic)
    })
}

/// An address by itself that nobody has made a link of.
fn is_address(words: &[&str]) -> bool {
    matches!(words, [word] if word.contains("://") || word.starts_with("www."))
}

fn is_question(sentence: &str) -> bool {
    const MARKS: [char; 6] = ['?', '？', '؟', '\u{37e}', '⸮', '՞'];
    let closes = |c: char| !c.is_alphanumeric() && c != '.' && !MARKS.contains(&c);
    sentence.trim_end_matches(closes).ends_with(MARKS)
}

#[cfg(test)]
mod tests;
