//! A report as a page that needs nothing but itself: no script, no request, and print is no afterthought.
//!
//! The body is Markdown of somebody. Of what it makes only text, structure and links to the web come through: HTML in it is
//! shown as text, images are named, and nothing of it becomes an attribute but an address that was checked.

use std::fmt::Write;
use std::ops::Range;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use sha2::{Digest, Sha256};

use super::{Placed, PrintedReport, Standing, explained, relation};
use crate::exports::citation::{address, is_web};
use crate::exports::{Citation, is_control};

const STYLE: &str = include_str!("report.css");

/// Quotations in quotations, and so on. What is deeper is shown without them.
const DEEPEST: usize = 32;

/// What the page may do, for the header of the answer: show its own style, and nothing else.
pub fn html_policy() -> String {
    format!("sandbox; {}; frame-ancestors 'none'", policy())
}

fn policy() -> String {
    let style = BASE64_STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'")
}

/// The page.
pub fn html(report: &PrintedReport) -> String {
    let placed = report.placed();
    let language = report.language.as_deref().filter(|code| {
        code.len() <= 35 && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    });
    let mut out = String::with_capacity(report.body.len() * 2 + STYLE.len());
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n",
        language.unwrap_or("und"),
        policy(),
        escaped(&report.title),
    );
    let _ = writeln!(out, "<h1>{}</h1>", escaped(&report.title));
    let _ = writeln!(out, "<p class=\"summary\">{}</p>\n<ul class=\"legend\">", escaped(&report.summary()));
    for standing in Standing::ALL {
        if placed.iter().any(|one| one.claim.standing == standing) {
            let (class, word) = (class(standing), standing.word());
            let _ = writeln!(
                out,
                "<li><span class=\"claim {class}\">{word}</span>: {}</li>",
                escaped(explained(standing))
            );
        }
    }
    out.push_str("</ul>\n</header>\n<main>\n");
    Page::new(&report.body, &placed, &mut out).write(report.is_titled());
    out.push_str("</main>\n");
    notes(&placed, report.sources.len(), &mut out);
    sources(&report.sources, &mut out);
    out.push_str("</body>\n</html>\n");
    out
}

fn notes(placed: &[Placed<'_>], sources: usize, out: &mut String) {
    if placed.iter().all(|one| one.note.is_none()) {
        return;
    }
    out.push_str("<section class=\"notes\">\n<h2>Evidence</h2>\n<ol>\n");
    for one in placed {
        let Some(note) = one.note else { continue };
        let (class, word) = (class(one.claim.standing), one.claim.standing.word());
        let _ =
            write!(out, "<li id=\"n{note}\"><a class=\"mark {class}\" href=\"#c{note}\">{word}</a>\n<ul>\n");
        for evidence in &one.claim.evidence {
            let _ = write!(
                out,
                "<li data-fact=\"{}\"><b>{}:</b> <q>{}</q>",
                evidence.fact,
                relation(evidence.posture),
                escaped(&evidence.text)
            );
            for (at, number) in evidence.sources.iter().enumerate() {
                out.push_str(if at == 0 { " " } else { ", " });
                // A number without a source is no link.
                let _ = if (1..=sources).contains(number) {
                    write!(out, "<a href=\"#s{number}\">[{number}]</a>")
                } else {
                    write!(out, "[{number}]")
                };
            }
            if let Some(warning) = evidence.warning() {
                let _ = write!(out, " <strong class=\"warning\">{warning}</strong>");
            }
            out.push_str("</li>\n");
        }
        out.push_str("</ul></li>\n");
    }
    out.push_str("</ol>\n</section>\n");
}

fn sources(sources: &[Citation], out: &mut String) {
    if sources.is_empty() {
        return;
    }
    out.push_str("<section class=\"sources\">\n<h2>Sources</h2>\n<ol>\n");
    for (at, source) in sources.iter().enumerate() {
        let _ = write!(out, "<li id=\"s{}\">", at + 1);
        if !source.authors.is_empty() {
            let _ = write!(out, "{}. ", escaped(&source.authors.join("; ")));
        }
        let _ = write!(out, "<cite>{}</cite>.", escaped(&source.title));
        for part in [source.site.clone(), source.published_text()].into_iter().flatten() {
            let _ = write!(out, " {}.", escaped(&part));
        }
        if let Some(link) = source.link() {
            let link = escaped(&link);
            let _ = write!(out, " <a rel=\"noreferrer\" href=\"{link}\">{link}</a>");
        }
        if let Some(accessed) = source.accessed {
            let _ = write!(out, " (accessed {accessed})");
        }
        if let Some(note) = &source.note {
            let _ = write!(out, " <strong class=\"warning\">{}</strong>", escaped(note));
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ol>\n</section>\n");
}

/// The body while it is written.
struct Page<'a> {
    body: &'a str,
    claims: &'a [Placed<'a>],
    out: &'a mut String,
    /// What ends what is open.
    open: Vec<&'static str>,
    depth: usize,
    /// Code and HTML: no claim is in them.
    verbatim: bool,
    /// Links can't be in links.
    links: usize,
    columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
    /// Claims that were written while their mark is missing: the last one, and in a link all that end in it.
    unmarked: Vec<usize>,
    /// How many claims have their mark. One that goes on in another block has it once.
    marked: usize,
}

impl<'a> Page<'a> {
    fn new(body: &'a str, claims: &'a [Placed<'a>], out: &'a mut String) -> Self {
        let (open, columns, unmarked) = (Vec::new(), Vec::new(), Vec::new());
        let (depth, links, column, marked) = (0, 0, 0, 0);
        let (verbatim, in_head) = (false, false);
        Self { body, claims, out, open, depth, verbatim, links, columns, column, in_head, unmarked, marked }
    }

    /// The first heading is left out where it is the title, which stands above already.
    fn write(mut self, is_titled: bool) {
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_FOOTNOTES;
        let mut events = Parser::new_ext(self.body, options).into_offset_iter();
        if is_titled {
            events.find(|(event, _)| matches!(event, Event::End(TagEnd::Heading(_))));
        }
        for (event, range) in events {
            match event {
                Event::Start(tag) => self.start(tag),
                Event::End(tag) => self.end(tag, &range),
                Event::Text(text) => self.text(&text, &range),
                Event::Code(code) => self.whole(("<code>", "</code>"), &code, &range),
                // Shown as it was written.
                Event::Html(html) => self.out.push_str(&escaped(&html)),
                Event::InlineHtml(html) => self.whole(("<code>", "</code>"), &html, &range),
                Event::FootnoteReference(name) => {
                    let _ = write!(self.out, "<sup>[{}]</sup>", escaped(&name));
                }
                Event::SoftBreak => self.out.push('\n'),
                Event::HardBreak => self.out.push_str("<br>\n"),
                Event::Rule => self.out.push_str("<hr>\n"),
                Event::TaskListMarker(done) => self.out.push_str(if done { "☑ " } else { "☐ " }),
                Event::InlineMath(_) | Event::DisplayMath(_) => {}
            }
        }
        self.mark();
    }

    fn start(&mut self, tag: Tag<'_>) {
        if is_block(&tag) {
            self.mark();
        }
        let (begin, end): (String, &'static str) = match tag {
            Tag::Paragraph => ("<p>".to_owned(), "</p>\n"),
            Tag::Heading { level, .. } => heading(level),
            Tag::BlockQuote(_) => ("<blockquote>\n".to_owned(), "</blockquote>\n"),
            Tag::CodeBlock(kind) => {
                self.verbatim = true;
                let language = match &kind {
                    CodeBlockKind::Fenced(name) if !name.is_empty() => {
                        format!("<span class=\"language\">{}</span>\n", escaped(name))
                    }
                    _ => String::new(),
                };
                (format!("<pre>{language}<code>"), "</code></pre>\n")
            }
            Tag::HtmlBlock => {
                self.verbatim = true;
                ("<pre><code>".to_owned(), "</code></pre>\n")
            }
            Tag::List(None) => ("<ul>\n".to_owned(), "</ul>\n"),
            Tag::List(Some(first)) => (format!("<ol start=\"{first}\">\n"), "</ol>\n"),
            Tag::Item => ("<li>".to_owned(), "</li>\n"),
            Tag::FootnoteDefinition(name) => {
                (format!("<div class=\"footnote\"><sup>[{}]</sup> ", escaped(&name)), "</div>\n")
            }
            Tag::Table(columns) => {
                self.columns = columns;
                ("<div class=\"table\"><table>\n".to_owned(), "</tbody>\n</table></div>\n")
            }
            Tag::TableHead => {
                (self.column, self.in_head) = (0, true);
                ("<thead><tr>".to_owned(), "</tr></thead>\n<tbody>\n")
            }
            Tag::TableRow => {
                self.column = 0;
                ("<tr>".to_owned(), "</tr>\n")
            }
            Tag::TableCell => self.cell(),
            Tag::Emphasis => ("<em>".to_owned(), "</em>"),
            Tag::Strong => ("<strong>".to_owned(), "</strong>"),
            Tag::Strikethrough => ("<del>".to_owned(), "</del>"),
            Tag::Link { dest_url, .. } => self.link(&dest_url, "", ""),
            Tag::Image { dest_url, .. } => self.link(&dest_url, "[image: ", "]"),
            _ => (String::new(), ""),
        };
        if is_nested(end) && self.depth >= DEEPEST {
            self.open.push("");
        } else {
            self.depth += usize::from(is_nested(end));
            self.out.push_str(&begin);
            self.open.push(end);
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::CodeBlock | TagEnd::HtmlBlock => self.verbatim = false,
            TagEnd::TableHead => self.in_head = false,
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {}
            TagEnd::Link | TagEnd::Image => {
                let end = self.open.pop().unwrap_or_default();
                self.out.push_str(end);
                self.links -= usize::from(end.ends_with("</a>"));
                let goes_on = |at: &usize| self.claims.get(*at).is_some_and(|one| one.end > range.end);
                let current = self.unmarked.pop_if(|at| goes_on(at));
                self.mark();
                self.unmarked.extend(current);
                return;
            }
            _ => self.mark(),
        }
        let end = self.open.pop().unwrap_or_default();
        self.depth -= usize::from(is_nested(end));
        self.out.push_str(end);
    }

    fn cell(&mut self) -> (String, &'static str) {
        let (name, end) = if self.in_head { ("th", "</th>") } else { ("td", "</td>") };
        let class = match self.columns.get(self.column) {
            Some(Alignment::Right) => " class=\"right\"",
            Some(Alignment::Center) => " class=\"center\"",
            _ => "",
        };
        self.column += 1;
        (format!("<{name}{class}>"), end)
    }

    /// Of the web, or nothing but its text.
    fn link(&mut self, url: &str, before: &str, after: &'static str) -> (String, &'static str) {
        if self.links > 0 || !is_web(url.trim()) {
            let end = if after.is_empty() { "</span>" } else { "]</span>" };
            return (format!("<span>{before}"), end);
        }
        self.links += 1;
        let end = if after.is_empty() { "</a>" } else { "]</a>" };
        (format!("<a rel=\"noreferrer\" href=\"{}\">{before}", escaped(&address(url.trim()))), end)
    }

    /// Text, divided where claims begin and end.
    fn text(&mut self, text: &str, range: &Range<usize>) {
        if self.verbatim {
            self.out.push_str(&escaped(text));
            return;
        }
        // An escaped character or an entity is another text than it was written as, and is not divided.
        if self.body.get(range.clone()) != Some(text) {
            return self.whole(("", ""), text, range);
        }
        let mut at = range.start;
        while at < range.end {
            let next = self.claims.partition_point(|one| one.end <= at);
            let (inside, until) = match self.claims.get(next) {
                Some(one) if one.start <= at => (true, one.end.min(range.end)),
                Some(one) => (false, one.start.min(range.end)),
                None => (false, range.end),
            };
            let part = self.body.get(at..until).unwrap_or_default();
            self.part(inside.then_some(next), ("", ""), part, until);
            at = until;
        }
    }

    /// A text that is not divided: it belongs to the claim in which it begins.
    fn whole(&mut self, around: (&str, &str), text: &str, range: &Range<usize>) {
        let next = self.claims.partition_point(|one| one.end <= range.start);
        let inside = self.claims.get(next).filter(|one| one.start <= range.start);
        self.part(inside.map(|_| next), around, text, range.end);
    }

    fn part(&mut self, claim: Option<usize>, (begin, end): (&str, &str), text: &str, until: usize) {
        if self.unmarked.last().copied() != claim {
            self.mark();
        }
        let Some((at, one)) = claim.and_then(|at| Some((at, self.claims.get(at)?))) else {
            let _ = write!(self.out, "{begin}{}{end}", escaped(text));
            return;
        };
        let class = class(one.claim.standing);
        let _ = write!(self.out, "<span class=\"claim {class}\">{begin}{}{end}</span>", escaped(text));
        if self.unmarked.last() != Some(&at) {
            self.unmarked.push(at);
        }
        if until >= one.end {
            self.mark();
        }
    }

    /// Says behind claims how they stand; behind the link, where they are in one.
    fn mark(&mut self) {
        if self.links > 0 {
            return;
        }
        for at in std::mem::take(&mut self.unmarked) {
            let Some(one) = self.claims.get(at).filter(|_| at >= self.marked) else { continue };
            self.marked = at + 1;
            let (class, word) = (class(one.claim.standing), one.claim.standing.word());
            let _ = match one.note {
                Some(note) => write!(
                    self.out,
                    "<a class=\"mark {class}\" id=\"c{note}\" href=\"#n{note}\">{word} {note}</a>"
                ),
                None => write!(self.out, "<span class=\"mark {class}\">{word}</span>"),
            };
        }
    }
}

const fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. })
}

fn is_nested(end: &str) -> bool {
    matches!(end, "</blockquote>\n" | "</ul>\n" | "</ol>\n" | "</li>\n" | "</em>" | "</strong>" | "</del>")
}

/// Below the title of the page.
fn heading(level: HeadingLevel) -> (String, &'static str) {
    let (name, end) = match level {
        HeadingLevel::H1 => ("h1", "</h1>\n"),
        HeadingLevel::H2 => ("h2", "</h2>\n"),
        HeadingLevel::H3 => ("h3", "</h3>\n"),
        HeadingLevel::H4 => ("h4", "</h4>\n"),
        HeadingLevel::H5 => ("h5", "</h5>\n"),
        HeadingLevel::H6 => ("h6", "</h6>\n"),
    };
    (format!("<{name}>"), end)
}

const fn class(standing: Standing) -> &'static str {
    match standing {
        Standing::Supported => "supported",
        Standing::Contradicted => "contradicted",
        Standing::Unsupported => "unsupported",
        Standing::Unchecked => "unchecked",
    }
}

/// A text that is nothing but text, between tags and in attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if is_control(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
