//! A report as Markdown: its text as it was written, with footnotes.

use std::fmt::Write;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::{Placed, PrintedReport, Standing, explained, relation};
use crate::exports::Citation;
use crate::exports::line;

/// The text of the report with a footnote behind each claim, and the sources at its end.
pub fn markdown(report: &PrintedReport) -> String {
    let placed = report.placed();
    let mut out = String::with_capacity(report.body.len() * 2);
    if !report.is_titled() {
        let _ = writeln!(out, "# {}\n", escaped(&report.title));
    }
    let (mut written, mut unbroken) = (0, unbroken(&report.body).into_iter().peekable());
    for one in &placed {
        while unbroken.peek().is_some_and(|range| range.end <= one.end) {
            unbroken.next();
        }
        let within = unbroken.peek().filter(|range| range.start < one.end);
        let end = within.map_or(one.end, |range| range.end);
        out.push_str(&report.body[written..end]);
        let _ = write!(out, "[^{}]", label(one));
        written = end;
    }
    out.push_str(report.body[written..].trim_end());
    if let Some(closing) = closing(&report.body) {
        let _ = write!(out, "\n{closing}");
    }
    let _ = writeln!(out, "\n\n---\n\n{}\n", report.summary());
    for one in &placed {
        if one.note.is_some() {
            note(one, &mut out);
        }
    }
    for standing in Standing::ALL {
        if placed.iter().any(|one| one.note.is_none() && one.claim.standing == standing) {
            let _ = writeln!(out, "[^{}]: {}\n", shared(standing), explained(standing));
        }
    }
    if !report.sources.is_empty() {
        out.push_str("## Sources\n\n");
        for (at, source) in report.sources.iter().enumerate() {
            let _ = writeln!(out, "{}. {}", at + 1, reference(source));
        }
    }
    out
}

/// What a footnote can't stand within: code, links, images and tags, in order. What is inside of another one of them is a part of
/// that.
fn unbroken(body: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (event, range) in Parser::new(body).into_offset_iter() {
        let is_one = matches!(
            event,
            Event::Code(_) | Event::InlineHtml(_) | Event::Start(Tag::Link { .. } | Tag::Image { .. })
        );
        if is_one && found.last().is_none_or(|last| last.end <= range.start) {
            found.push(range);
        }
    }
    found
}

/// What ends a block that would go on to the end of the file, and swallow what comes after the body.
fn closing(body: &str) -> Option<String> {
    let (mut depth, mut last) = (0, None);
    for (event, range) in Parser::new(body).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                // What is in a list or a quotation ends with it.
                if depth == 0 {
                    last = Some((tag, range));
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    let (tag, range) = last.filter(|(_, range)| range.end >= body.trim_end().len())?;
    if !matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_)) | Tag::HtmlBlock) {
        return None;
    }
    let block = body[range].trim();
    if tag != Tag::HtmlBlock {
        let mark = block.chars().next()?;
        let fence: String = block.chars().take_while(|c| *c == mark).collect();
        let last = block.lines().last().unwrap_or_default().trim();
        let is_closed =
            block.lines().count() > 1 && last.starts_with(&fence) && last.chars().all(|c| c == mark);
        return (!is_closed).then_some(fence);
    }
    let text = block.to_lowercase();
    let ends = [
        ("<!--", "-->"),
        ("<?", "?>"),
        ("<![cdata[", "]]>"),
        ("<script", "</script>"),
        ("<pre", "</pre>"),
        ("<style", "</style>"),
        ("<textarea", "</textarea>"),
        ("<!", ">"),
    ];
    let (_, end) = ends.into_iter().find(|(begin, _)| text.starts_with(begin))?;
    (!text.contains(end)).then(|| end.to_owned())
}

/// The name of a footnote. The body may have footnotes of its own, whose names are others.
fn label(one: &Placed<'_>) -> String {
    one.note.map_or_else(|| shared(one.claim.standing).to_owned(), |number| format!("okt-{number}"))
}

/// The footnote of all claims that stand so and have nothing else to say.
const fn shared(standing: Standing) -> &'static str {
    match standing {
        Standing::Supported => "okt-supported",
        Standing::Contradicted => "okt-contradicted",
        Standing::Unsupported => "okt-unsupported",
        Standing::Unchecked => "okt-unchecked",
    }
}

fn note(one: &Placed<'_>, out: &mut String) {
    let word = one.claim.standing.word();
    let _ = writeln!(out, "[^{}]: **{}{}**\n", label(one), word[..1].to_uppercase(), &word[1..]);
    for evidence in &one.claim.evidence {
        let text = escaped(&evidence.text);
        let fact = evidence.fact;
        let _ = write!(out, "    - {}: [{text}](<fact:{fact}>)", relation(evidence.posture));
        if !evidence.sources.is_empty() {
            let numbers: Vec<String> = evidence.sources.iter().map(ToString::to_string).collect();
            let _ = write!(out, " (sources: {})", numbers.join(", "));
        }
        if let Some(warning) = evidence.warning() {
            let _ = write!(out, " **{warning}**");
        }
        out.push('\n');
    }
    out.push('\n');
}

fn reference(source: &Citation) -> String {
    let mut out = String::new();
    if !source.authors.is_empty() {
        let _ = write!(out, "{}. ", escaped(&source.authors.join("; ")));
    }
    let _ = write!(out, "*{}*.", escaped(&source.title));
    if let Some(site) = &source.site {
        let _ = write!(out, " {}.", escaped(site));
    }
    if let Some(date) = source.published_text() {
        let _ = write!(out, " {date}.");
    }
    if let Some(url) = source.link() {
        let _ = write!(out, " <{url}>");
    }
    if let Some(note) = &source.note {
        let _ = write!(out, " **{}**", escaped(note));
    }
    out
}

/// A text that is nothing but text in Markdown, on one line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in line(text).chars() {
        if c.is_ascii_punctuation()
            && !matches!(c, '.' | ',' | ';' | '?' | '(' | ')' | '/' | '%' | '\'' | '"')
        {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use okt_model::Posture;
    use pulldown_cmark::{Options, TagEnd};

    use super::super::tests::{claim, evidence, report, source};
    use super::*;
    use crate::exports::citation::tests::HOSTILE;

    #[test]
    fn each_claim_has_its_footnote() {
        let body = "# On bees\n\nBees *dance*. They swim. They sleep.\n";
        let mut claims = vec![
            claim(body, "Bees *dance*.", Standing::Supported),
            claim(body, "They swim.", Standing::Contradicted),
            claim(body, "They sleep.", Standing::Unsupported),
        ];
        claims[0].evidence.push(evidence(Posture::Supports, "Honey bees dance.", &[1]));
        claims[0].evidence.push(evidence(Posture::Supports, "All bees dance.", &[2]));
        claims[0].evidence[1].superseded = true;
        claims[1].evidence.push(evidence(Posture::Contradicts, "No bee swims.", &[1, 2]));
        claims[1].evidence[0].retracted = true;
        let mut printed = report(body, claims);
        printed.sources = vec![source("Dances"), source("Waters")];
        printed.sources[1].note = Some("Retracted: made up".to_owned());
        let text = markdown(&printed);
        let fact = "00000000-0000-0000-0000-000000000009";
        for expected in [
            "# On bees\n\nBees *dance*.[^okt-1] They swim.[^okt-2] They sleep.[^okt-unsupported]\n",
            "Not checked as a whole yet: 3 claims, of these 1 supported, 1 contradicted, 1 unsupported.\n",
            &format!(
                "[^okt-1]: **Supported**\n\n    - supports it: [Honey bees dance.](<fact:{fact}>) (sources: 1)\n"
            ),
            &format!("[All bees dance.](<fact:{fact}>) (sources: 2) **all its sources are superseded**\n"),
            &format!("[No bee swims.](<fact:{fact}>) (sources: 1, 2) **all its sources were retracted**\n"),
            "[^okt-unsupported]: No fact of the repository supports or contradicts it.\n",
            "1. Moss, Ada. *Dances*. Journal of Bees. <https://doi.org/10.1000/182>\n",
            "2. Moss, Ada. *Waters*. Journal of Bees. <https://doi.org/10.1000/182> **Retracted\\: made up**\n",
        ] {
            assert!(text.contains(expected), "{expected}\n---\n{text}");
        }
        assert_eq!(text.matches("# On bees").count(), 1);
    }

    #[test]
    fn a_footnote_stands_behind_code_and_links_and_not_within() {
        // The last character of each claim is the one before the mark |.
        for (body, expected) in [
            ("The mean is `0.7|`.", "The mean is `0.7`[^okt-unsupported]."),
            ("It is at <https://x.org|>.", "It is at <https://x.org>[^okt-unsupported]."),
            ("It is [known|](https://x.org). Yes", "It is [known](https://x.org)[^okt-unsupported]. Yes"),
            ("It is **bold|**.", "It is **bold[^okt-unsupported]**."),
        ] {
            let (text, plain) = (body.split('|').next().unwrap(), body.replace('|', ""));
            let printed = markdown(&report(&plain, vec![claim(&plain, text, Standing::Unsupported)]));
            assert!(printed.contains(expected), "{printed}");
        }
        let body = "See [bees dance. Bees swim.](https://x.org)";
        let claims = ["See [bees dance.", "Bees swim."].map(|text| claim(body, text, Standing::Unsupported));
        let printed = markdown(&report(body, claims.to_vec()));
        assert!(printed.contains("(https://x.org)[^okt-unsupported][^okt-unsupported]\n"), "{printed}");
    }

    #[test]
    fn nothing_in_the_body_swallows_the_footnotes() {
        for ending in [
            "```\ncode",
            "~~~~ rust\n```",
            "<!-- hidden",
            "<script>\nx",
            "> ```\n> a",
            "- a\n\n      b",
            "<pre>",
            "``` a",
        ] {
            let body = format!("Bees dance.\n\n{ending}");
            let text = markdown(&report(&body, vec![claim(&body, "Bees dance.", Standing::Unsupported)]));
            let options = Options::ENABLE_FOOTNOTES;
            let defined = Parser::new_ext(&text, options)
                .any(|event| matches!(event, Event::Start(Tag::FootnoteDefinition(_))));
            assert!(defined, "{ending}\n---\n{text}");
        }
        assert_eq!(closing("```\ncode\n```\n"), None);
        assert_eq!(closing("<!-- a -->\n\nb"), None);
    }

    #[test]
    fn texts_of_others_are_text() {
        for hostile in HOSTILE {
            let body = "Bees dance.";
            let mut claims = vec![claim(body, body, Standing::Supported)];
            claims[0].evidence.push(evidence(Posture::Supports, hostile, &[1]));
            let mut printed = report(body, claims);
            printed.sources = vec![source(hostile)];
            let text = markdown(&printed);
            let (mut found, mut inside) = (Vec::new(), None::<String>);
            let unlike = Options::ENABLE_SMART_PUNCTUATION | Options::ENABLE_OLD_FOOTNOTES;
            let options = Options::all().difference(unlike).union(Options::ENABLE_FOOTNOTES);
            for event in Parser::new_ext(&text, options) {
                match event {
                    Event::Start(Tag::Link { dest_url, .. }) if dest_url.starts_with("fact:") => {
                        inside = Some(String::new());
                    }
                    Event::Start(Tag::Emphasis) => inside = Some(String::new()),
                    Event::End(TagEnd::Link | TagEnd::Emphasis) => found.extend(inside.take()),
                    Event::Text(part) => {
                        if let Some(inside) = &mut inside {
                            inside.push_str(&part);
                        }
                    }
                    Event::Html(_) | Event::InlineHtml(_) | Event::Code(_) => panic!("{hostile}: {event:?}"),
                    _ => {}
                }
            }
            assert_eq!(found, [line(hostile), line(hostile)], "{text}");
        }
    }
}
