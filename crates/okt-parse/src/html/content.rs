//! Which part of a page is what it is about.
//!
//! First everything goes that is marked as something else, by its tag, its role or its class. Then the part that holds
//! most of what is left is looked for, from the outside in. Marks lie, so nothing goes that holds much of the page, and if
//! hardly anything is left, less is believed.

use super::names::is_inline;
use super::tree::{BODY, Id, Tree};
use super::words::{BOILERPLATE, LABELS, has_word};

/// The part that counts, and for every node of the tree whether it goes.
pub struct Content {
    pub root: Id,
    pub dropped: Vec<bool>,
}

/// How much of the marks is believed.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Belief {
    Tags,
    Classes,
}

/// Less is too little for a page that has much more.
const ENOUGH: u32 = 250;

pub fn find(tree: &Tree, forum: bool) -> Content {
    let all = Sums::of(tree, &invisible(tree));
    let strict = attempt(tree, Belief::Classes, forum, &all);
    if strict.1 >= ENOUGH || strict.1 * 2 > all.text[BODY] {
        return strict.0;
    }
    let loose = attempt(tree, Belief::Tags, forum, &all);
    if loose.1 > strict.1.saturating_mul(2) { loose.0 } else { strict.0 }
}

fn attempt(tree: &Tree, belief: Belief, forum: bool, all: &Sums) -> (Content, u32) {
    let mut dropped = invisible(tree);
    let page = all.text[BODY];
    for id in 1..tree.nodes.len() {
        if dropped[tree.nodes[id].parent] {
            dropped[id] = true;
        } else if !dropped[id] && all.text[id] * 5 <= page * 2 {
            dropped[id] = is_boilerplate(tree, id, belief, forum, all);
        }
    }
    let sums = Sums::of(tree, &dropped);
    drop_link_boxes(tree, &sums, &mut dropped);
    let sums = Sums::of(tree, &dropped);
    let root = root(tree, &sums, &dropped);
    let text = sums.text[root];
    (Content { root, dropped }, text)
}

/// Characters of text, of text in links, and of text in blocks long enough to be prose; each for a node and all below it.
struct Sums {
    text: Vec<u32>,
    links: Vec<u32>,
    prose: Vec<u32>,
}

/// What a block must be longer than to count as prose, and how much of it does not count.
const PROSE: u32 = 40;

impl Sums {
    fn of(tree: &Tree, dropped: &[bool]) -> Self {
        let count = tree.nodes.len();
        let mut sums = Self { text: vec![0; count], links: vec![0; count], prose: vec![0; count] };
        // Of the block that a text stands in: its text outside links.
        let mut own = vec![0_u32; count];
        for id in (0..count).rev() {
            let node = &tree.nodes[id];
            if dropped[id] {
                continue;
            }
            if node.is_text() {
                let length = node.text.chars().filter(|c| !c.is_whitespace()).map(weight).sum();
                sums.text[id] = length;
                own[id] = length;
            }
            if &*node.name == "a" {
                sums.links[id] = sums.text[id];
                own[id] = 0;
            }
            let inline = is_inline(&node.name);
            if !inline {
                sums.prose[id] += own[id].saturating_sub(PROSE);
            }
            if id != BODY {
                sums.text[node.parent] += sums.text[id];
                sums.links[node.parent] += sums.links[id];
                sums.prose[node.parent] += sums.prose[id];
                if inline {
                    own[node.parent] += own[id];
                }
            }
        }
        sums
    }

    /// Whether most of it is links.
    fn is_linky(&self, id: Id) -> bool {
        self.links[id] * 10 > self.text[id] * 6
    }
}

/// A character of Chinese says as much as three of a script with letters.
fn weight(c: char) -> u32 {
    if matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3ffff}') {
        3
    } else {
        1
    }
}

/// What no reader sees.
fn invisible(tree: &Tree) -> Vec<bool> {
    let mut dropped = vec![false; tree.nodes.len()];
    for id in 1..tree.nodes.len() {
        let node = &tree.nodes[id];
        dropped[id] = dropped[node.parent]
            || matches!(
                &*node.name,
                "template"
                    | "svg"
                    | "canvas"
                    | "object"
                    | "embed"
                    | "video"
                    | "audio"
                    | "map"
                    | "select"
                    | "datalist"
                    | "input"
                    | "progress"
                    | "meter"
                    | "annotation"
                    | "annotation-xml"
                    | "rp"
            )
            || node.attribute("hidden").is_some()
            || is_pointer(tree, id)
            || node.attribute("style").is_some_and(hides);
    }
    dropped
}

/// The mark of a footnote, or the sign beside a heading that links to itself.
fn is_pointer(tree: &Tree, id: Id) -> bool {
    let node = &tree.nodes[id];
    if &*node.name == "a" {
        let silent = !tree.below(id).any(|id| tree.nodes[id].text.contains(char::is_alphanumeric));
        return silent && !tree.below(id).any(|id| &*tree.nodes[id].name == "img");
    }
    let within = |id: Id| {
        &*tree.nodes[id].name == "a" && tree.nodes[id].attribute("href").is_some_and(|to| to.contains('#'))
    };
    &*node.name == "sup" && tree.below(id).take(8).any(within) && tree.text_of(id).trim().chars().count() <= 6
}

fn hides(style: &str) -> bool {
    let style: String =
        style.chars().filter(|c| !c.is_whitespace()).take(400).collect::<String>().to_ascii_lowercase();
    style.contains("display:none") || style.contains("visibility:hidden")
}

/// Whether an element belongs to the site and not to the page.
fn is_boilerplate(tree: &Tree, id: Id, belief: Belief, forum: bool, all: &Sums) -> bool {
    let node = &tree.nodes[id];
    if node.is_text() {
        return false;
    }
    match &*node.name {
        "nav" | "menu" | "dialog" | "button" | "form" | "fieldset" => return true,
        "footer" => return !named(tree, id, &["footnotes", "footnote", "references", "citation"]),
        "aside" => return !is_within_article(tree, id) || all.is_linky(id) || !named(tree, id, ASIDES),
        "figcaption" => return all.text[id] <= CAPTION && !is_numbered(&tree.text_of(id)),
        "header" if !is_within_article(tree, id) => {
            return !tree.below(id).any(|below| &*tree.nodes[below].name == "h1");
        }
        _ => {}
    }
    let role = node.attribute("role").unwrap_or_default();
    if matches!(
        role,
        "navigation"
            | "banner"
            | "contentinfo"
            | "complementary"
            | "search"
            | "dialog"
            | "alertdialog"
            | "menu"
            | "menubar"
            | "toolbar"
            | "tooltip"
    ) || node.attribute("aria-hidden") == Some("true")
        || node.attribute("aria-modal") == Some("true")
    {
        return true;
    }
    if belief < Belief::Classes || matches!(&*node.name, "article" | "main" | "h1" | "html") {
        return false;
    }
    let bad = |word: &str| {
        BOILERPLATE.binary_search(&word).is_ok() && !(forum && matches!(word, "comment" | "comments"))
    };
    let small = |word: &str| LABELS.binary_search(&word).is_ok();
    let label =
        all.text[id] <= LABEL && !tree.below(id).any(|id| matches!(&*tree.nodes[id].name, "img" | "h1"));
    let marks =
        ["class", "id", "data-component", "data-testid"].into_iter().filter_map(|name| node.attribute(name));
    marks.into_iter().any(|mark| has_word(mark, bad) || (label && has_word(mark, small)))
}

/// Longer text is none of the short pieces that [`LABELS`] names.
const LABEL: u32 = 250;

/// A longer caption is the text of a gallery.
const CAPTION: u32 = 400;

/// Captions with numbers are referred to by the text and belong to it; others say what the picture shows.
fn is_numbered(caption: &str) -> bool {
    let mut words = caption.split_whitespace();
    let first = words.next().unwrap_or_default();
    let number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    number(first)
        || (first.chars().count() <= 12 && first.chars().next().is_some_and(char::is_alphabetic))
            && words.next().is_some_and(|word| number(word) && word.len() <= 5)
}

fn is_within_article(tree: &Tree, id: Id) -> bool {
    tree.above(id).any(|above| {
        let node = &tree.nodes[above];
        matches!(&*node.name, "article" | "main") || node.attribute("role") == Some("main")
    })
}

fn named(tree: &Tree, id: Id, words: &[&str]) -> bool {
    let node = &tree.nodes[id];
    ["class", "id", "role"]
        .into_iter()
        .filter_map(|name| node.attribute(name))
        .any(|mark| has_word(mark, |w| words.contains(&w)))
}

const ASIDES: &[&str] = &[
    "note",
    "notes",
    "warning",
    "tip",
    "hint",
    "caution",
    "important",
    "callout",
    "admonition",
    "info",
    "footnote",
];

/// Boxes that are mostly links go, unless a good part of the page is in them.
fn drop_link_boxes(tree: &Tree, sums: &Sums, dropped: &mut [bool]) {
    let page = sums.text[BODY];
    for id in 1..tree.nodes.len() {
        let node = &tree.nodes[id];
        if dropped[node.parent] {
            dropped[id] = true;
            continue;
        }
        // Lists within the content are judged by what is around them, later.
        let container = matches!(&*node.name, "div" | "section" | "table" | "center");
        let small = sums.text[id] * 5 <= page * 2;
        if container && small && sums.text[id] > 0 && sums.is_linky(id) && sums.prose[id] * 4 < sums.text[id]
        {
            dropped[id] = true;
        }
    }
}

/// From the outside in, as long as one part holds nearly all of the prose; then out again as far as the headline.
fn root(tree: &Tree, sums: &Sums, dropped: &[bool]) -> Id {
    let mut at = marked(tree, sums).unwrap_or(BODY);
    while let Some(child) = tree
        .children(at)
        .filter(|child| is_container(&tree.nodes[*child].name))
        .max_by_key(|id| sums.prose[*id])
        .filter(|id| sums.prose[*id] > 0 && share(sums.prose[*id], sums.prose[at]) >= 85)
        // What is left out must not be much either, prose or not.
        .filter(|id| share(sums.text[*id], sums.text[at]) >= 65)
    {
        at = child;
    }
    with_headline(tree, sums, dropped, at)
}

/// In percent.
fn share(part: u32, whole: u32) -> u64 {
    u64::from(part) * 100 / u64::from(whole).max(1)
}

/// The smallest part around the content that has a headline before it, if there is little else in that part.
fn with_headline(tree: &Tree, sums: &Sums, dropped: &[bool], root: Id) -> Id {
    let is_headline = |id: Id| &*tree.nodes[id].name == "h1" && !dropped[id];
    if tree.below(root).any(is_headline) {
        return root;
    }
    tree.above(root)
        .take_while(|around| share(sums.text[*around], sums.text[root]) <= 135)
        .find(|around| (*around..root).any(is_headline))
        .unwrap_or(root)
}

fn is_container(name: &str) -> bool {
    matches!(
        name,
        "div"
            | "section"
            | "article"
            | "main"
            | "center"
            | "table"
            | "tbody"
            | "tr"
            | "td"
            | "form"
            | "span"
            | "font"
    ) || name.contains('-')
}

/// The innermost element that says it is the content and holds most of the prose.
fn marked(tree: &Tree, sums: &Sums) -> Option<Id> {
    let mut best: Option<(u32, Id)> = None;
    for id in 1..tree.nodes.len() {
        if sums.prose[id] == 0 || tree.nodes[id].is_text() {
            continue;
        }
        let Some((rank, least)) = claim(tree, id) else { continue };
        if share(sums.prose[id], sums.prose[BODY]) < least {
            continue;
        }
        // Of the same rank the larger one, of which the other may be a part.
        let better = best.is_none_or(|(known, other)| {
            rank > known || (rank == known && sums.prose[id] > sums.prose[other])
        });
        if better {
            best = Some((rank, id));
        }
    }
    best.map(|(_, id)| id)
}

/// How strongly an element says that it is the content, and the share of the prose in percent that makes it believable.
fn claim(tree: &Tree, id: Id) -> Option<(u32, u64)> {
    let node = &tree.nodes[id];
    if node.attribute("itemprop").is_some_and(|prop| prop.contains("articleBody")) {
        return Some((3, 40));
    }
    let marks = [node.attribute("class"), node.attribute("id")];
    let bodies = [
        "articlebody",
        "postcontent",
        "entrycontent",
        "articlecontent",
        "postbody",
        "storybody",
        "markdownbody",
    ];
    let named = marks.into_iter().flatten().flat_map(str::split_whitespace).any(|mark| {
        let plain: String = mark.chars().take(40).filter(char::is_ascii_alphanumeric).collect();
        bodies.contains(&plain.to_ascii_lowercase().as_str())
    });
    if named {
        return Some((3, 50));
    }
    match &*node.name {
        "article" => Some((2, 40)),
        "main" => Some((1, 40)),
        _ if node.attribute("role") == Some("main") => Some((1, 40)),
        _ if node.attribute("role") == Some("article") => Some((2, 40)),
        _ => None,
    }
}
