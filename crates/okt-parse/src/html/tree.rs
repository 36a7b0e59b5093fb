//! The tree of a page, built in time that grows with its size and with nothing else.
//!
//! The tokens come from a browser's tokenizer; the tree does not. A browser moves and copies elements to mend bad markup,
//! and a few kilobytes written for the purpose keep it busy for minutes. Here every token does one bounded thing, no
//! element is ever moved, and beyond [`DEEPEST`] nothing gets deeper. What is lost is where exactly a tag closes that was
//! never closed, and no reader of the text sees that.

use std::cell::RefCell;
use std::collections::HashMap;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, CharacterTokens, Tag, TagKind, TagToken, Token, TokenSink, TokenSinkResult, Tokenizer,
    TokenizerOpts,
};
use html5ever::{Attribute, LocalName, local_name};

use super::names::{KEPT, is_inline, is_scope, is_void};

/// Walks of the tree recurse, so this bounds their stack.
const DEEPEST: usize = 256;
/// Then only text is taken in. A page of a hundred thousand words has a tenth of it.
const MOST_NODES: usize = 1_000_000;

/// The index of a node. Children come after their parents.
pub type Id = usize;

pub const BODY: Id = 0;

pub struct Node {
    /// Of an element; empty for a piece of text.
    pub name: LocalName,
    pub text: StrTendril,
    attributes: Vec<Attribute>,
    pub parent: Id,
    first: Option<Id>,
    last: Option<Id>,
    next: Option<Id>,
}

impl Node {
    fn new(name: LocalName, text: StrTendril, attributes: Vec<Attribute>, parent: Id) -> Self {
        Self { name, text, attributes, parent, first: None, last: None, next: None }
    }

    pub fn is_text(&self) -> bool {
        self.name.is_empty()
    }

    pub fn attribute(&self, name: &str) -> Option<&str> {
        attribute(&self.attributes, name)
    }
}

fn attribute<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    attributes.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
}

/// A `meta`, `link` or `base`, wherever it stood.
pub struct Head {
    pub name: LocalName,
    attributes: Vec<Attribute>,
}

impl Head {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        attribute(&self.attributes, name)
    }
}

pub struct Tree {
    pub nodes: Vec<Node>,
    pub heads: Vec<Head>,
    pub title: Option<String>,
    pub language: Option<String>,
    /// JSON-LD, as written.
    pub data: Vec<String>,
}

impl Tree {
    pub fn parse(html: &str) -> Self {
        let tokenizer = Tokenizer::new(Sink(RefCell::new(Builder::new())), TokenizerOpts::default());
        let input = BufferQueue::default();
        input.push_back(StrTendril::from_slice(html));
        // It would stop only for somebody who runs scripts.
        let _done = tokenizer.feed(&input);
        tokenizer.end();
        tokenizer.sink.0.into_inner().tree
    }

    pub fn children(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        std::iter::successors(self.nodes[id].first, |child| self.nodes[*child].next)
    }

    /// A node and all below it.
    pub fn below(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        let end = self.end(id);
        id..end
    }

    /// Nodes are in the order of the document, so that a subtree is a range.
    pub fn end(&self, id: Id) -> Id {
        let mut at = id;
        loop {
            if let Some(next) = self.nodes[at].next {
                return next;
            }
            if at == BODY {
                return self.nodes.len();
            }
            at = self.nodes[at].parent;
        }
    }

    /// The nodes above, nearest first.
    pub fn above(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        std::iter::successors(Some(id).filter(|id| *id != BODY), |id| {
            Some(self.nodes[*id].parent).filter(|id| *id != BODY)
        })
        .skip(1)
    }

    pub fn text_of(&self, id: Id) -> String {
        let mut out = String::new();
        for node in self.below(id).map(|id| &self.nodes[id]) {
            if node.is_text() {
                out.push_str(&node.text);
            } else if !is_inline(&node.name) {
                out.push(' ');
            }
        }
        out
    }
}

struct Sink(RefCell<Builder>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut builder = self.0.borrow_mut();
        match token {
            TagToken(tag) if tag.kind == TagKind::StartTag => return builder.start(tag),
            TagToken(tag) => builder.end(&tag.name),
            CharacterTokens(text) => builder.text(text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// What is done with the text of an element that holds nothing but text.
#[derive(Clone, Copy, PartialEq)]
enum Raw {
    Drop,
    Title,
    Data,
}

struct Builder {
    tree: Tree,
    open: Vec<Id>,
    /// How many of each name are open, so that nobody looks for what is not there.
    counts: HashMap<LocalName, u32>,
    /// Elements that were opened too deep to be kept.
    over: usize,
    raw: Option<Raw>,
}

impl Builder {
    fn new() -> Self {
        let body = Node::new(LocalName::from("body"), StrTendril::new(), Vec::new(), BODY);
        let tree =
            Tree { nodes: vec![body], heads: Vec::new(), title: None, language: None, data: Vec::new() };
        Self { tree, open: vec![BODY], counts: HashMap::new(), over: 0, raw: None }
    }

    fn start(&mut self, mut tag: Tag) -> TokenSinkResult<()> {
        tag.attrs.retain(|attribute| KEPT.contains(&&*attribute.name.local));
        match &*tag.name {
            "html" | "body" => {
                let language = attribute(&tag.attrs, "lang").or_else(|| attribute(&tag.attrs, "xml:lang"));
                self.tree.language = self.tree.language.take().or_else(|| language.map(str::to_owned));
                if &*tag.name == "body" {
                    self.tree.nodes[BODY].attributes = tag.attrs;
                }
                return TokenSinkResult::Continue;
            }
            "head" => return TokenSinkResult::Continue,
            "meta" | "link" | "base" => {
                // Inside an element they may say something of that element alone.
                if self.tree.heads.len() < 10_000 {
                    self.tree.heads.push(Head { name: tag.name.clone(), attributes: tag.attrs.clone() });
                }
                if attribute(&tag.attrs, "itemprop").is_some() {
                    self.push(tag.name, tag.attrs);
                }
                return TokenSinkResult::Continue;
            }
            "title" if !self.is_open(&local_name!("svg")) => {
                self.raw = Some(Raw::Title);
                return TokenSinkResult::RawData(RawKind::Rcdata);
            }
            "textarea" => {
                self.raw = Some(Raw::Drop);
                return TokenSinkResult::RawData(RawKind::Rcdata);
            }
            "script" => {
                let kind = attribute(&tag.attrs, "type").unwrap_or_default();
                let data = kind.trim().eq_ignore_ascii_case("application/ld+json");
                self.raw = Some(if data { Raw::Data } else { Raw::Drop });
                if data {
                    self.tree.data.push(String::new());
                }
                return TokenSinkResult::RawData(RawKind::ScriptData);
            }
            "style" | "xmp" | "iframe" | "noembed" | "noframes" | "noscript" => {
                self.raw = Some(Raw::Drop);
                return TokenSinkResult::RawData(RawKind::Rawtext);
            }
            _ => {}
        }
        self.close_implied(&tag.name);
        let void = is_void(&tag.name) || (tag.self_closing && self.is_open(&local_name!("svg")));
        match self.push(tag.name, tag.attrs) {
            Some(id) if !void => {
                *self.counts.entry(self.tree.nodes[id].name.clone()).or_default() += 1;
                self.open.push(id);
            }
            None if !void => self.over += 1,
            _ => {}
        }
        TokenSinkResult::Continue
    }

    fn push(&mut self, name: LocalName, attributes: Vec<Attribute>) -> Option<Id> {
        if self.open.len() >= DEEPEST || self.tree.nodes.len() >= MOST_NODES {
            return None;
        }
        Some(self.append(name, StrTendril::new(), attributes))
    }

    fn append(&mut self, name: LocalName, text: StrTendril, attributes: Vec<Attribute>) -> Id {
        let parent = self.open.last().copied().unwrap_or(BODY);
        let id = self.tree.nodes.len();
        self.tree.nodes.push(Node::new(name, text, attributes, parent));
        match self.tree.nodes[parent].last.replace(id) {
            Some(before) => self.tree.nodes[before].next = Some(id),
            None => self.tree.nodes[parent].first = Some(id),
        }
        id
    }

    fn text(&mut self, text: StrTendril) {
        match self.raw {
            Some(Raw::Title) => {
                self.tree.title.get_or_insert_default().push_str(&text);
                return;
            }
            Some(Raw::Data) => {
                if let Some(data) = self.tree.data.last_mut() {
                    data.push_str(&text);
                }
                return;
            }
            Some(Raw::Drop) => return,
            None => {}
        }
        let parent = self.open.last().copied().unwrap_or(BODY);
        // Text after text is one text; the tokenizer gives each entity alone.
        if let Some(last) = self.tree.nodes[parent].last
            && self.tree.nodes[last].is_text()
            && last + 1 == self.tree.nodes.len()
        {
            self.tree.nodes[last].text.push_tendril(&text);
        } else {
            self.append(LocalName::from(""), text, Vec::new());
        }
    }

    fn end(&mut self, name: &LocalName) {
        if self.raw.take().is_some() {
            return;
        }
        match &**name {
            "br" => {
                self.push(name.clone(), Vec::new());
                return;
            }
            "html" | "body" | "head" => return,
            _ if self.over > 0 => {
                self.over -= 1;
                return;
            }
            _ => {}
        }
        if !self.is_open(name) {
            return;
        }
        let inline = is_inline(name) && &**name != "a";
        for at in (1..self.open.len()).rev() {
            let open = &self.tree.nodes[self.open[at]].name;
            if open == name {
                self.close_from(at);
                return;
            }
            // A stray end tag in a cell does not close what is around the table, nor a bold word the paragraph.
            if (inline && !is_inline(open)) || (is_scope(open) && &**name != "table") {
                return;
            }
        }
    }

    fn is_open(&self, name: &LocalName) -> bool {
        self.counts.get(name).is_some_and(|count| *count > 0)
    }

    fn close_from(&mut self, at: usize) {
        for id in self.open.drain(at..) {
            if let Some(count) = self.counts.get_mut(&self.tree.nodes[id].name) {
                *count -= 1;
            }
        }
    }

    /// Closes what nobody closes by hand.
    fn close_implied(&mut self, name: &LocalName) {
        const HEADINGS: [LocalName; 6] = [
            local_name!("h1"),
            local_name!("h2"),
            local_name!("h3"),
            local_name!("h4"),
            local_name!("h5"),
            local_name!("h6"),
        ];
        const CELLS: [LocalName; 2] = [local_name!("td"), local_name!("th")];
        const ENTRIES: [LocalName; 2] = [local_name!("dd"), local_name!("dt")];
        const PARTS: [LocalName; 3] = [local_name!("thead"), local_name!("tbody"), local_name!("tfoot")];
        match &**name {
            "li" => self.close_within(&[local_name!("li")], &["ul", "ol", "menu"]),
            "dd" | "dt" => self.close_within(&ENTRIES, &["dl"]),
            "option" => self.close_within(&[local_name!("option")], &["select", "datalist"]),
            "tr" => self.close_within(&[local_name!("tr")], &["table"]),
            "td" | "th" => self.close_within(&CELLS, &["tr", "table"]),
            "thead" | "tbody" | "tfoot" => self.close_within(&PARTS, &["table"]),
            "a" => self.close_within(&[local_name!("a")], &["div", "section", "article", "li", "p"]),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.close_within(&HEADINGS, &["div", "section", "article", "li"]);
            }
            _ => {}
        }
        if !is_inline(name)
            && !matches!(&**name, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot" | "caption")
        {
            self.close_within(&[local_name!("p"), local_name!("svg")], &["button", "li"]);
        }
    }

    /// Closes the innermost open element of these names, unless one of the others or a cell is around it first.
    fn close_within(&mut self, names: &[LocalName], stops: &[&str]) {
        if !names.iter().any(|name| self.is_open(name)) {
            return;
        }
        let rows = names.contains(&local_name!("tr")) || names.contains(&local_name!("tbody"));
        for at in (1..self.open.len()).rev() {
            let open = &self.tree.nodes[self.open[at]].name;
            if names.contains(open) {
                self.close_from(at);
                return;
            }
            if stops.contains(&&**open) || (!rows && matches!(&**open, "td" | "th" | "table")) {
                return;
            }
        }
    }
}
