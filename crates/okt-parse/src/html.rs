//! Web pages.

use url::Url;

use crate::{Hint, Limits, ParseError, Read, clean};

mod content;
mod edges;
mod guard;
mod images;
mod line;
mod meta;
mod names;
mod phrases;
mod render;
mod tree;
mod words;

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
    let mut read = meta::read(&tree, base.as_ref());
    let blocks = edges::trim(render::blocks(&tree, &content, base.as_ref()), read.title.as_deref());
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

#[cfg(test)]
mod tests;
