//! Plain text and Markdown.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::{Read, clean, html};

mod front;

/// Plain text, as it is.
pub fn plain(text: &str) -> Read {
    let text = clean::paragraphs(&clean::characters(text));
    Read { markdown: escape(&text), text, ..Read::default() }
}

/// Markdown, with what its front matter says. Its text is what a reader would see.
pub fn markdown(source: &str) -> Read {
    let source = clean::characters(source);
    let (front, body) = front::split(&source);
    let mut read = Read { text: rendered(body), markdown: without_html(body), ..Read::default() };
    front::apply(front, &mut read);
    if read.title.is_none() {
        read.title = first_heading(body);
    }
    read
}

fn options() -> Options {
    Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS
}

/// The text that a reader would see: paragraphs, headings, items of lists and rows of tables, each after an empty line.
fn rendered(body: &str) -> String {
    let mut out = String::with_capacity(body.len());
    let mut cell = false;
    for (event, range) in Parser::new_ext(body, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::HtmlBlock) => {
                out.push_str("\n\n");
                out.push_str(&html::words(&body[range]));
                out.push_str("\n\n");
            }
            Event::Text(text) | Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                out.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => out.push('\n'),
            Event::InlineHtml(tag) if tag.starts_with("<br") => out.push('\n'),
            Event::Start(Tag::TableCell) => {
                if cell {
                    out.push_str(" | ");
                }
                cell = true;
            }
            Event::Start(Tag::TableRow | Tag::TableHead) => cell = false,
            Event::Start(tag) if is_block(&tag) => out.push_str("\n\n"),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::CodeBlock
                | TagEnd::TableRow
                | TagEnd::TableHead
                | TagEnd::FootnoteDefinition,
            ) => out.push_str("\n\n"),
            _ => {}
        }
    }
    clean::paragraphs(out.trim())
}

fn is_block(tag: &Tag) -> bool {
    matches!(
        tag,
        Tag::Paragraph
            | Tag::Heading { .. }
            | Tag::Item
            | Tag::CodeBlock(_)
            | Tag::BlockQuote(_)
            | Tag::List(_)
    )
}

fn first_heading(body: &str) -> Option<String> {
    let mut inside = false;
    let mut title = String::new();
    for event in Parser::new_ext(body, options()) {
        match event {
            Event::Start(Tag::Heading { .. }) => inside = true,
            Event::End(TagEnd::Heading(_)) => break,
            Event::Text(text) | Event::Code(text) if inside => title.push_str(&text),
            Event::Start(Tag::Paragraph | Tag::List(_)) if !inside => return None,
            _ => {}
        }
    }
    clean::line(&title, 500)
}

/// The source as it was written, but for raw HTML, of which the words stay, and for links that are not to be followed.
fn without_html(body: &str) -> String {
    let mut out = body.to_owned();
    // What was taken out may have left something that reads as a tag now, but not for ever.
    for pass in 0..4 {
        match taken_out(&out, pass == 0) {
            None => break,
            Some(rest) => out = rest,
        }
    }
    let clean = clean::paragraphs(&out);
    // Whoever shows it may read another dialect than we do: what is no tag inside of a table is one where there are none.
    let dialects = [Options::empty(), options()];
    if dialects.into_iter().all(|dialect| is_harmless(&clean, dialect)) {
        clean
    } else {
        escape(&visible(&out))
    }
}

fn is_harmless(markdown: &str, dialect: Options) -> bool {
    Parser::new_ext(markdown, dialect).all(|event| match event {
        Event::Html(_) | Event::InlineHtml(_) => false,
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => is_safe(&dest_url),
        _ => true,
    })
}

/// The source without what must not be in it, or nothing if it has none of it. At first tags go; later they are shown.
fn taken_out(body: &str, first: bool) -> Option<String> {
    let mut out = String::with_capacity(body.len());
    let mut at = 0;
    for (event, range) in Parser::new_ext(body, options()).into_offset_iter() {
        let source = &body[range.clone()];
        let instead = match &event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) if !is_safe(dest_url) => {
                escape(&visible(source))
            }
            Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_) if !first => source.replace('<', "\\<"),
            Event::Start(Tag::HtmlBlock) => format!("{}\n\n", escape(&html::words(source))),
            Event::InlineHtml(_) => String::new(),
            _ => continue,
        };
        if range.start >= at {
            out.push_str(&body[at..range.start]);
            out.push_str(&instead);
            at = range.end;
        }
    }
    out.push_str(&body[at..]);
    (at > 0).then_some(out)
}

/// The words of a piece of Markdown.
fn visible(source: &str) -> String {
    Parser::new_ext(source, options())
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.into_string()),
            Event::SoftBreak | Event::HardBreak => Some(" ".to_owned()),
            _ => None,
        })
        .collect()
}

/// Web, mail, or a place in the same site.
pub fn is_safe(address: &str) -> bool {
    let plain: String = address.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    let Some((scheme, _)) = plain.split_once(':') else { return true };
    let scheme = scheme.to_ascii_lowercase();
    matches!(scheme.as_str(), "http" | "https" | "mailto") || scheme.contains(['/', '?', '#'])
}

/// Text that Markdown shows as it is.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut line_start = true;
    for c in text.chars() {
        let special = matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '|' | '~');
        if special || (line_start && matches!(c, '#' | '+' | '-' | '=')) {
            out.push('\\');
        }
        out.push(c);
        line_start = c == '\n' || (line_start && c == ' ');
    }
    out
}

#[cfg(test)]
mod tests;
