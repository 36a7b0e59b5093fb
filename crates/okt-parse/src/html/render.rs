//! The content of a page as text and as Markdown, block by block.

use url::Url;

use super::content::Content;
use super::line::Line;
use super::names::is_inline;
use super::tree::{Id, Tree};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Heading(u8),
    Paragraph,
    /// How deep the list is.
    Item(u8),
    Code,
    Row,
}

#[derive(Debug)]
pub struct Block {
    pub kind: Kind,
    pub text: String,
    pub markdown: String,
    /// Nearly all of it is links.
    pub linky: bool,
}

pub fn blocks(tree: &Tree, content: &Content, base: Option<&Url>) -> Vec<Block> {
    let mut render = Render {
        tree,
        content,
        base,
        blocks: Vec::new(),
        line: Line::default(),
        link: None,
        lists: Vec::new(),
        quote: 0,
    };
    render.element(content.root);
    render.flush(Kind::Paragraph);
    render.blocks
}

/// The blocks as one text, each after an empty line.
pub fn text(blocks: &[Block]) -> String {
    blocks.iter().map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n\n")
}

/// The blocks as Markdown, in which items of a list and rows of a table follow each other without an empty line.
pub fn markdown(blocks: &[Block]) -> String {
    let mut out = String::new();
    let mut before: Option<Kind> = None;
    for block in blocks {
        let tight = matches!(
            (before, block.kind),
            (Some(Kind::Item(_)), Kind::Item(_)) | (Some(Kind::Row), Kind::Row)
        );
        if !out.is_empty() {
            out.push_str(if tight { "\n" } else { "\n\n" });
        }
        match block.kind {
            Kind::Heading(level) => {
                out.push_str(&"#".repeat(usize::from(level)));
                out.push(' ');
                out.push_str(&block.markdown.replace('\n', " "));
            }
            Kind::Item(depth) => {
                out.push_str(&"  ".repeat(usize::from(depth.saturating_sub(1))));
                out.push_str(&block.markdown.replace('\n', " "));
            }
            Kind::Row => {
                out.push_str(&block.markdown);
                if before != Some(Kind::Row) {
                    let cells = block.text.matches(" | ").count() + 1;
                    out.push_str("\n|");
                    out.push_str(&" --- |".repeat(cells));
                }
            }
            Kind::Paragraph | Kind::Code => out.push_str(&block.markdown),
        }
        before = Some(block.kind);
    }
    out
}

struct OpenLink {
    address: Option<String>,
}

struct Render<'a> {
    tree: &'a Tree,
    content: &'a Content,
    base: Option<&'a Url>,
    blocks: Vec<Block>,
    line: Line,
    /// The link that is open. Blocks within a link are links, each for itself.
    link: Option<OpenLink>,
    /// For each open list the number of its next item, if it has numbers.
    lists: Vec<Option<u32>>,
    quote: usize,
}

impl Render<'_> {
    fn element(&mut self, id: Id) {
        if self.content.dropped[id] {
            return;
        }
        let node = &self.tree.nodes[id];
        if node.is_text() {
            self.line.text(&node.text);
            return;
        }
        match &*node.name {
            "br" => {
                // Two of them are how some people end a paragraph.
                if self.line.new_line() {
                    self.flush(Kind::Paragraph);
                }
            }
            "wbr" | "img" | "hr" | "meta" | "link" => {
                if &*node.name == "hr" {
                    self.flush(Kind::Paragraph);
                }
            }
            "h1" => self.block(id, Kind::Heading(1)),
            "h2" => self.block(id, Kind::Heading(2)),
            "h3" => self.block(id, Kind::Heading(3)),
            "h4" => self.block(id, Kind::Heading(4)),
            "h5" => self.block(id, Kind::Heading(5)),
            "h6" => self.block(id, Kind::Heading(6)),
            "ul" | "ol" | "menu" => self.list(id),
            "li" => self.item(id),
            "pre" | "listing" => self.code(id),
            "table" if is_data(self.tree, id) => self.table(id),
            "blockquote" => {
                self.flush(Kind::Paragraph);
                self.quote += 1;
                self.children(id);
                self.flush(Kind::Paragraph);
                self.quote -= 1;
            }
            name if is_inline(name) => self.inline(id),
            _ => self.block(id, Kind::Paragraph),
        }
    }

    fn children(&mut self, id: Id) {
        let tree = self.tree;
        for child in tree.children(id) {
            self.element(child);
        }
    }

    /// Ends what is open and makes one block of the element, or more if there are blocks in it.
    fn block(&mut self, id: Id, kind: Kind) {
        let outer = self.outer_kind();
        self.flush(outer);
        self.children(id);
        self.flush(if kind == Kind::Paragraph { outer } else { kind });
    }

    /// A paragraph in an item of a list is that item.
    fn outer_kind(&self) -> Kind {
        if self.lists.is_empty() { Kind::Paragraph } else { Kind::Item(depth(self.lists.len())) }
    }

    fn inline(&mut self, id: Id) {
        let node = &self.tree.nodes[id];
        let mark = match &*node.name {
            "b" | "strong" => "**",
            "i" | "em" => "*",
            "code" | "kbd" | "samp" | "tt" => "`",
            "a" => {
                let address = node.attribute("href").and_then(|href| address(href, self.base));
                let outer = self.link.replace(OpenLink { address });
                self.line.open_link();
                self.children(id);
                let own = std::mem::replace(&mut self.link, outer);
                self.line.close_link(own.and_then(|link| link.address).as_deref());
                return;
            }
            "q" => {
                self.line.text("“");
                self.children(id);
                self.line.text("”");
                return;
            }
            // Reading aids go into brackets, as where they can't be shown.
            "rt" => {
                self.line.text("(");
                self.children(id);
                self.line.text(")");
                return;
            }
            _ => "",
        };
        self.line.open(mark);
        self.children(id);
        self.line.close(mark);
    }

    fn list(&mut self, id: Id) {
        self.flush(self.outer_kind());
        let ordered = &*self.tree.nodes[id].name == "ol";
        let start = self.tree.nodes[id].attribute("start").and_then(|start| start.parse().ok()).unwrap_or(1);
        self.lists.push(ordered.then_some(start));
        self.children(id);
        self.flush(self.outer_kind());
        self.lists.pop();
    }

    fn item(&mut self, id: Id) {
        self.flush(self.outer_kind());
        let stray = self.lists.is_empty();
        if stray {
            self.lists.push(None);
        }
        self.children(id);
        self.flush(self.outer_kind());
        if stray {
            self.lists.pop();
        }
    }

    fn code(&mut self, id: Id) {
        self.flush(self.outer_kind());
        let tree = self.tree;
        let mut text = String::new();
        for node in tree.below(id).filter(|id| !self.content.dropped[*id]).map(|id| &tree.nodes[id]) {
            if node.is_text() {
                text.push_str(&node.text);
            } else if &*node.name == "br" {
                text.push('\n');
            }
        }
        let text = text.replace("\r\n", "\n");
        let text = text.trim_matches('\n').trim_end();
        if text.trim().is_empty() {
            return;
        }
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        let markdown = format!("{fence}\n{text}\n{fence}");
        self.blocks.push(Block { kind: Kind::Code, text: text.to_owned(), markdown, linky: false });
    }

    /// One block for each row.
    fn table(&mut self, id: Id) {
        self.flush(self.outer_kind());
        let tree = self.tree;
        let mut end = id;
        for row in tree.below(id) {
            match &*tree.nodes[row].name {
                "caption" if row >= end => {
                    self.children(row);
                    self.flush(Kind::Paragraph);
                    end = tree.end(row);
                }
                "tr" if row >= end => {
                    self.row(row);
                    end = tree.end(row);
                }
                _ => {}
            }
        }
    }

    fn row(&mut self, id: Id) {
        let mut block = Block { kind: Kind::Row, text: String::new(), markdown: "|".into(), linky: true };
        let tree = self.tree;
        for cell in tree.children(id).filter(|cell| matches!(&*tree.nodes[*cell].name, "td" | "th")) {
            self.children(cell);
            let line = std::mem::take(&mut self.line);
            let linky = line.is_linky();
            let (text, markdown) = line.finish();
            if !block.text.is_empty() || block.markdown.len() > 1 {
                block.text.push_str(" | ");
            }
            // A bar within a cell would be a border of it.
            block.text.push_str(&text.replace('\n', " ").replace(" | ", " / "));
            for piece in [" ", &markdown.replace('\n', " "), " |"] {
                block.markdown.push_str(piece);
            }
            block.linky &= linky || text.is_empty();
        }
        if block.text.chars().any(char::is_alphanumeric) {
            let text = block.text.trim().to_owned();
            self.blocks.push(Block { text, ..block });
        }
    }

    fn flush(&mut self, kind: Kind) {
        let mut line = std::mem::take(&mut self.line);
        if let Some(link) = &self.link {
            line.close_link(link.address.as_deref());
            self.line.open_link();
        }
        let linky = line.is_linky();
        let away = line.leads.as_deref().is_some_and(|leads| self.leads_away(leads));
        let (text, mut markdown) = line.finish();
        // Marks and ornaments alone say nothing.
        if !text.contains(char::is_alphanumeric) {
            return;
        }
        if matches!(kind, Kind::Item(_)) {
            let number = self.lists.last_mut().and_then(Option::as_mut).map(|next| {
                *next = next.saturating_add(1);
                *next - 1
            });
            markdown.insert_str(0, &number.map_or_else(|| "- ".to_owned(), |number| format!("{number}. ")));
        }
        if self.quote > 0 && kind == Kind::Paragraph {
            markdown = markdown.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n");
        }
        // A heading may be a link to its own page.
        let linky = linky && (away || !matches!(kind, Kind::Heading(_)));
        self.blocks.push(Block { kind, text, markdown, linky });
    }

    /// Whether an address is another page's.
    fn leads_away(&self, address: &str) -> bool {
        let page =
            |address: &str| address.split('#').next().unwrap_or_default().trim_end_matches('/').to_owned();
        self.base.is_some_and(|base| page(base.as_str()) != page(address))
    }
}

fn depth(lists: usize) -> u8 {
    u8::try_from(lists).unwrap_or(u8::MAX).min(8)
}

/// An absolute web address without white space.
pub fn address(href: &str, base: Option<&Url>) -> Option<String> {
    let href = href.trim();
    if href.is_empty() || href.starts_with('#') || href.len() > 2_000 {
        return None;
    }
    let url = match base {
        Some(base) => base.join(href).ok()?,
        None => Url::parse(href).ok()?,
    };
    matches!(url.scheme(), "http" | "https").then(|| url.into())
}

/// Whether a table is one, and not a way to put boxes side by side.
fn is_data(tree: &Tree, id: Id) -> bool {
    let mut cells = 0;
    let mut rows = 0;
    for below in tree.below(id).skip(1) {
        match &*tree.nodes[below].name {
            "table" | "h1" | "h2" | "h3" | "pre" | "article" | "form" => return false,
            "td" | "th" => {
                cells += 1;
                let blocks = tree
                    .children(below)
                    .filter(|child| matches!(&*tree.nodes[*child].name, "p" | "div" | "ul"));
                if blocks.count() > 1 {
                    return false;
                }
            }
            "tr" => rows += 1,
            _ => {}
        }
    }
    rows > 0 && cells > rows && !(rows == 1 && cells < 4)
}
