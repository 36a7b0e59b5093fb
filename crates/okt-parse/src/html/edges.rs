//! What stands around the text within the content of a page, and is none of it: the headline, which is the title, lines with
//! dates, names and credits, links that lead away, and what follows a heading such as “About the author”.

use super::phrases;
use super::render::{Block, Kind};

/// Of a title and a headline, in percent of the shorter one.
const SAME: usize = 60;
/// More words than that are a statement, whatever they begin with.
const LABEL: usize = 14;
/// A paragraph of so many words is text and no label.
const PROSE: usize = 15;

/// The blocks that are text. If nothing of that kind is there, what there is.
pub fn trim(mut blocks: Vec<Block>, title: Option<&str>) -> Vec<Block> {
    let goes = links(&blocks);
    remove(&mut blocks, &goes);
    let goes = sections(&blocks);
    remove(&mut blocks, &goes);
    let goes = labels(&blocks, title);
    remove(&mut blocks, &goes);
    while blocks.len() > 1 && blocks.last().is_some_and(is_heading) {
        blocks.pop();
    }
    blocks
}

/// Removes what goes, unless nothing but headings would be left.
fn remove(blocks: &mut Vec<Block>, goes: &[bool]) {
    if blocks.iter().zip(goes).any(|(block, goes)| !goes && !is_heading(block)) {
        let mut goes = goes.iter();
        blocks.retain(|_| !goes.next().is_some_and(|goes| *goes));
    }
}

fn is_heading(block: &Block) -> bool {
    matches!(block.kind, Kind::Heading(_))
}

fn is_prose(block: &Block) -> bool {
    block.kind == Kind::Code
        || block.kind == Kind::Row
        || (!is_heading(block) && !block.linky && words(&block.text) >= PROSE && !has_date(block))
}

/// Words, or what would be words in a script without spaces.
fn words(text: &str) -> usize {
    let dense =
        text.chars().filter(|c| matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')).count();
    text.split_whitespace().count() + dense / 2
}

/// Links at both ends go. Within the text a paragraph that is nothing but a link invites to leave, and so does a list of
/// nothing but links with the label before it; where such lists are much of the text they are the text.
fn links(blocks: &[Block]) -> Vec<bool> {
    let all: usize = blocks.iter().map(|block| block.text.len()).sum();
    let lists: usize = blocks.iter().filter(|block| is_link_item(block)).map(|block| block.text.len()).sum();
    let lists_go = lists * 4 < all;
    let mut goes = vec![false; blocks.len()];
    for at in (0..blocks.len()).rev() {
        let block = &blocks[at];
        let followed = goes.get(at + 1).copied().unwrap_or(true);
        goes[at] = match block.kind {
            Kind::Paragraph if block.linky => true,
            // A mixed list stays whole.
            Kind::Item(_) if block.linky => {
                (lists_go && !is_mixed(blocks, at)) || followed && at + 1 == blocks.len()
            }
            Kind::Heading(level) => followed && (block.linky || ends(blocks, at, level)),
            _ => followed && at + 1 < blocks.len() && is_lead_in(block),
        };
    }
    goes
}

fn is_link_item(block: &Block) -> bool {
    block.linky && matches!(block.kind, Kind::Item(_))
}

/// Whether the list that an item is in has items that are no links.
fn is_mixed(blocks: &[Block], at: usize) -> bool {
    let item = |block: &&Block| matches!(block.kind, Kind::Item(_));
    blocks[at..]
        .iter()
        .take_while(item)
        .chain(blocks[..at].iter().rev().take_while(item))
        .any(|block| !block.linky)
}

/// Whether nothing but what goes stands between a heading and the next one of its rank.
fn ends(blocks: &[Block], at: usize, level: u8) -> bool {
    blocks[at + 1..]
        .iter()
        .find(|block| !block.linky)
        .is_none_or(|block| matches!(block.kind, Kind::Heading(next) if next <= level))
}

/// `More on this:` before links.
fn is_lead_in(block: &Block) -> bool {
    block.kind == Kind::Paragraph && words(&block.text) <= 6 && block.text.trim_end().ends_with([':', '…'])
}

/// From a heading such as “Related” to the next one of its rank, in the second half of the text.
fn sections(blocks: &[Block]) -> Vec<bool> {
    let all: usize = blocks.iter().map(|block| block.text.len()).sum();
    let mut before = 0;
    let mut open: Option<u8> = None;
    let goes = |block: &Block| {
        before += block.text.len();
        if let Kind::Heading(level) = block.kind {
            if open.is_some_and(|rank| level <= rank) {
                open = None;
            }
            if before * 2 > all && phrases::begins_foreign(&block.text) {
                open = open.or(Some(level));
            }
        }
        open.is_some()
    };
    blocks.iter().map(goes).collect()
}

/// The headline, labels before and after the text, and notices anywhere.
fn labels(blocks: &[Block], title: Option<&str>) -> Vec<bool> {
    let first = blocks.iter().position(is_prose).unwrap_or(blocks.len());
    let last = blocks.iter().rposition(is_prose).unwrap_or(0);
    let prose = first < blocks.len();
    let goes = |(at, block): (usize, &Block)| {
        let headline = at < first.max(1) && title.is_some_and(|title| is_headline(block, title));
        let edge = prose && (at < first || at > last) && is_label(block);
        headline || edge || (prose && is_notice(block))
    };
    blocks.iter().enumerate().map(goes).collect()
}

/// Whether a block before the text is the title once more.
fn is_headline(block: &Block, title: &str) -> bool {
    let main = matches!(block.kind, Kind::Heading(1));
    let fold = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let (one, other) = (fold(&block.text), fold(title));
    if one.is_empty() || other.is_empty() || one.len() > 60 {
        return false;
    }
    if one == other {
        return true;
    }
    // A first sentence has the words of the title too, among others.
    if !main && (one.len() * 10 < other.len() * 7 || one.len() * 7 > other.len() * 10) {
        return false;
    }
    let shared = one.iter().filter(|word| other.contains(word)).count();
    shared * 100 >= one.len().min(other.len()) * if main { SAME } else { 85 }
}

/// A line with a date, a name or a credit, and not a sentence.
fn is_label(block: &Block) -> bool {
    if block.kind != Kind::Paragraph && !matches!(block.kind, Kind::Item(_)) {
        return false;
    }
    let count = words(&block.text);
    let sentence = block
        .text
        .trim_end()
        .ends_with(['.', '!', '?', '…', ':', '"', '”', '»', '。', '！', '？', ')', '।', '؟']);
    (count <= LABEL && has_date(block)) || (block.kind == Kind::Paragraph && count <= 4 && !sentence)
}

/// A line that the site adds to every text, wherever it stands.
fn is_notice(block: &Block) -> bool {
    matches!(block.kind, Kind::Paragraph | Kind::Item(_) | Kind::Heading(_))
        && words(&block.text) <= 40
        && phrases::is_notice(&block.text, words(&block.text))
}

/// Whether a short line tells a day: a year or a clock beside another number or the name of a month.
fn has_date(block: &Block) -> bool {
    words(&block.text) <= LABEL + 4 && phrases::has_date(&block.text)
}
