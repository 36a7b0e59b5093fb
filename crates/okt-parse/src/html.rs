//! Web pages.

use url::Url;

use crate::{Hint, Limits, ParseError, Read, clean};

mod content;
mod guard;
mod images;
mod line;
mod meta;
mod names;
mod render;
mod tree;
mod words;

use render::{Block, Kind};
use tree::Tree;

/// More is no page that somebody wrote.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// The content of a page, and what it says of itself.
pub fn read(html: &str, hint: &Hint, limits: &Limits) -> Result<Read, ParseError> {
    if html.len() > MOST_BYTES {
        return Err(ParseError::TooMuch(format!("a page of more than {} MiB", MOST_BYTES >> 20)));
    }
    if guard::is_hostile(html) {
        return Err(ParseError::TooMuch("tags with tens of thousands of attributes".to_owned()));
    }
    let tree = Tree::parse(html);
    let base = base(&tree, hint);
    let content = content::find(&tree, meta::is_forum(&tree));
    let blocks = trim(render::blocks(&tree, &content, base.as_ref()));
    let mut read = meta::read(&tree, base.as_ref());
    read.text = render::text(&blocks);
    read.markdown = render::markdown(&blocks);
    read.images = images::find(&tree, &content, base.as_ref(), limits);
    Ok(read)
}

/// All words of a piece of markup.
pub fn words(html: &str) -> String {
    clean::line(&Tree::parse(html).text_of(tree::BODY), html.len()).unwrap_or_default()
}

/// What addresses in the page are relative to.
fn base(tree: &Tree, hint: &Hint) -> Option<Url> {
    let own = hint.url.as_deref().and_then(|url| Url::parse(url).ok());
    let said = tree.heads.iter().find(|head| &*head.name == "base").and_then(|head| head.attribute("href"));
    match (said, own) {
        (Some(said), Some(own)) => own.join(said).ok().or(Some(own)),
        (Some(said), None) => Url::parse(said).ok(),
        (None, own) => own,
    }
}

/// Without the links around the content, and without headings that have nothing below them any more.
fn trim(mut blocks: Vec<Block>) -> Vec<Block> {
    let good = |block: &Block| !block.linky;
    if !blocks.iter().any(good) {
        return blocks;
    }
    while blocks.last().is_some_and(|block| block.linky || matches!(block.kind, Kind::Heading(_))) {
        blocks.pop();
    }
    let is_heading = |block: &Block| matches!(block.kind, Kind::Heading(_));
    let mut first = blocks.iter().position(|block| good(block) && !is_heading(block)).unwrap_or(0);
    while first > 0 && is_heading(&blocks[first - 1]) {
        first -= 1;
    }
    blocks.drain(..first);
    // Within the content lists of links are part of it; a paragraph that is nothing but a link invites to leave.
    blocks.retain(|block| !(block.linky && block.kind == Kind::Paragraph));
    blocks
}

#[cfg(test)]
mod tests;
