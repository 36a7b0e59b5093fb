//! Lines become paragraphs, and paragraphs the text; where each character came from is kept.

use std::collections::HashSet;

use super::layout::{self, Blocks, Line, median};
use super::page::{Area, Fragment, Page};
use super::table;
use crate::document::Rect;

pub struct Flow {
    pub text: String,
    pub markdown: String,
    /// The largest words of the first page, if they are larger than its text.
    pub title: Option<String>,
    /// The paragraphs of the first page that follow the title.
    pub below_title: Vec<String>,
    /// The text of the first page, stamps in its margins included.
    pub first_page: String,
    pub places: Places,
}

/// Where the text stands, piece by piece, in its order.
pub struct Places(Vec<Place>);

struct Place {
    /// Half-open, in code points of the text.
    start: u32,
    end: u32,
    page: usize,
    fragment: usize,
}

/// Names stand no further below a title than so many paragraphs.
const BELOW: usize = 6;

#[derive(Default)]
struct Paragraph {
    /// Page and line, each line as the fragments that it has.
    lines: Vec<(usize, Vec<usize>)>,
    size: f32,
    /// Out of the way of the text: in the margin.
    aside: bool,
    row: bool,
}

pub fn flow(pages: &[Page]) -> Flow {
    let body = body_size(pages);
    let mut paragraphs = Vec::new();
    // Notes and captions that stand in the middle of a paragraph wait for its end.
    let mut waiting = Vec::new();
    for (index, page) in pages.iter().enumerate() {
        let Blocks { text, margin, turned } = layout::blocks(&page.fragments);
        let mut found = Vec::new();
        for block in text {
            divide(&page.fragments, index, &block, false, &mut found);
        }
        for block in margin.into_iter().chain(turned) {
            divide(&page.fragments, index, &block, true, &mut found);
        }
        for paragraph in found {
            place(pages, body, paragraph, &mut paragraphs, &mut waiting);
        }
    }
    paragraphs.append(&mut waiting);
    let sizes = heading_sizes(pages, body, &paragraphs);
    let mut writer = Writer::new(pages);
    let mut title = None;
    let mut below_title = Vec::new();
    let mut first_page = String::new();
    for paragraph in &paragraphs {
        let level =
            sizes.iter().position(|size| (paragraph.size - size).abs() < 0.3).filter(|_| !paragraph.aside);
        let from = writer.text.len();
        writer.paragraph(pages, paragraph, level);
        if paragraph.lines.first().is_none_or(|(page, _)| *page != 0) {
            continue;
        }
        let text = writer.text.get(from..).unwrap_or_default().trim();
        first_page.push_str(text);
        first_page.push('\n');
        if level == Some(0) && title.is_none() {
            title = Some(text.to_owned());
        } else if title.is_some() && level != Some(0) && below_title.len() < BELOW && !paragraph.aside {
            below_title.push(text.to_owned());
        }
    }
    let title = title.filter(|title| (4..=300).contains(&title.chars().count()));
    let places = Places(writer.places);
    Flow { text: writer.text, markdown: writer.markdown, title, below_title, first_page, places }
}

/// The size that most of the text has.
fn body_size(pages: &[Page]) -> f32 {
    let mut sizes: Vec<_> = pages
        .iter()
        .flat_map(|page| &page.fragments)
        .map(|fragment| (fragment.size, fragment.spans.len()))
        .collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = sizes.iter().map(|(_, chars)| chars).sum::<usize>() / 2;
    let mut before = 0;
    for (size, chars) in sizes {
        before += chars;
        if before >= half {
            return size;
        }
    }
    0.0
}

/// The sizes of headings, the largest first: short paragraphs in letters larger than the text's.
fn heading_sizes(pages: &[Page], body: f32, paragraphs: &[Paragraph]) -> Vec<f32> {
    let mut sizes: Vec<f32> = Vec::new();
    for paragraph in paragraphs {
        let chars = paragraph.chars(pages);
        if paragraph.size > 1.12 * body && !paragraph.aside && !paragraph.row && (2..300).contains(&chars) {
            sizes.push(paragraph.size);
        }
    }
    sizes.sort_by(|a, b| b.total_cmp(a));
    sizes.dedup_by(|a, b| (*a - *b).abs() < 0.3);
    sizes.truncate(4);
    sizes
}

/// Divides a block into paragraphs.
fn divide(fragments: &[Fragment], page: usize, block: &[Line], aside: bool, into: &mut Vec<Paragraph>) {
    let Some(area) = block.iter().map(|line| line.area).reduce(Area::with) else { return };
    let steps: Vec<_> = block.windows(2).map(|pair| pair[0].area.middle() - pair[1].area.middle()).collect();
    // Of a few lines, such as a title with its names, none says what is usual.
    let step = if steps.len() < 3 { 0.0 } else { median(steps).unwrap_or(0.0) };
    let mut last: Option<&Line> = None;
    // The open paragraph is an entry of a numbered list.
    let mut is_list = false;
    let mut at = 0;
    while let Some(line) = block.get(at) {
        if let Some((lines, cells)) = table::table(fragments, &block[at..]).filter(|_| !aside) {
            let cells = cells.into_iter().map(|cells| vec![(page, cells)]);
            into.extend(cells.map(|lines| Paragraph { lines, size: line.size, aside, row: true }));
            (at, last) = (at + lines, None);
            continue;
        }
        let is_first = into.last().is_some_and(|paragraph| paragraph.lines.len() == 1);
        let fresh = last.is_none_or(|last| {
            is_break(fragments, (area, step), (last, is_first), line)
                || is_entry(fragments, line) && (is_list || last.area.x1 < area.x1 - 0.2 * area.width())
                || aside && is_item(fragments, area, last, line)
        });
        if fresh {
            is_list = is_entry(fragments, line);
            into.push(Paragraph { size: line.size, row: line.row, aside, ..Paragraph::default() });
        }
        if let Some(paragraph) = into.last_mut() {
            paragraph.lines.push((page, line.parts.clone()));
        }
        (at, last) = (at + 1, Some(line));
    }
}

/// Whether a paragraph ends between two lines of a block of this area; `is_first`: the last line is its first.
fn is_break(
    fragments: &[Fragment],
    (area, step): (Area, f32),
    (last, is_first): (&Line, bool),
    next: &Line,
) -> bool {
    let ratio = next.size / last.size;
    let away = last.area.middle() - next.area.middle();
    // A title in a block of smaller text has its own distance between lines.
    let usual = if step < last.size { 1.2 * last.size } else { step.min(1.7 * last.size) };
    if last.row || next.row || !(0.88..1.13).contains(&ratio) || away > 1.3 * usual {
        return true;
    }
    let first = next.parts.first().and_then(|&part| fragments[part].text.chars().next());
    if first.is_some_and(|char| matches!(char, '•' | '▪' | '◦' | '‣' | '●' | '■' | '–' | '∙'))
    {
        return true;
    }
    // The number of a note stands behind the end.
    let is_note = |part: &usize| fragments[*part].size < 0.8 * last.size && fragments[*part].spans.len() < 4;
    let ended =
        last.parts.iter().rev().find(|part| !is_note(part)).is_some_and(|&part| ends(&fragments[part].text));
    let short = last.area.x1 < area.x1 - 0.2 * area.width();
    // The first line of a paragraph may stand further in than the rest of it, that of a list's entry further out.
    let starts = last.parts.first().and_then(|&part| fragments[part].text.chars().next());
    let entry = starts.is_some_and(|char| char == '[' || char.is_ascii_digit());
    let indent = next.area.x0 - last.area.x0;
    let further_in = indent > 0.8 * last.size && !(is_first && entry);
    let further_out = indent < -0.8 * last.size && !is_first;
    ended && (short || further_in || further_out)
}

/// Whether a line begins as those of a numbered list do: `4. `, `12) `, `(b) `.
fn is_entry(fragments: &[Fragment], line: &Line) -> bool {
    let mut words = line.parts.iter().flat_map(|&part| fragments[part].text.split(' '));
    let (Some(first), Some(next)) = (words.next(), words.next()) else { return false };
    let Some(number) = first.strip_suffix(['.', ')']) else { return false };
    let inner = number.strip_prefix('(').unwrap_or(number);
    let counts = !inner.is_empty() && inner.len() <= 2 && inner.bytes().all(|byte| byte.is_ascii_digit())
        || inner.len() == 1 && first.ends_with(')') && inner.bytes().all(|byte| byte.is_ascii_lowercase());
    counts && next.starts_with(char::is_alphabetic)
}

/// Whether a line in the margin says something of its own: labels and dates stand there without full stops.
fn is_item(fragments: &[Fragment], area: Area, last: &Line, next: &Line) -> bool {
    let first = next.parts.first().and_then(|&part| fragments[part].text.chars().next());
    last.area.width() < 0.8 * area.width() && first.is_some_and(char::is_uppercase)
}

/// Puts a paragraph behind the others, or to one that it continues in the next column or on the next page.
fn place(
    pages: &[Page],
    body: f32,
    next: Paragraph,
    done: &mut Vec<Paragraph>,
    waiting: &mut Vec<Paragraph>,
) {
    let is_body = |paragraph: &Paragraph| {
        !paragraph.aside && !paragraph.row && (paragraph.size - body).abs() < 0.07 * body
    };
    let open =
        done.last_mut().filter(|last| is_body(last) && last.lines.len() > 1 && !ends(last.last_text(pages)));
    if let Some(open) = open {
        if is_body(&next) && continues(open.last_text(pages), next.first_text(pages)) {
            open.lines.extend(next.lines);
            return;
        }
        if next.aside || next.row || next.size < 0.93 * body {
            waiting.push(next);
            return;
        }
    }
    done.append(waiting);
    done.push(next);
}

impl Paragraph {
    fn first_text<'a>(&self, pages: &'a [Page]) -> &'a str {
        let first = self.lines.first().and_then(|(page, parts)| Some((page, parts.first()?)));
        first.map_or("", |(&page, &part)| &pages[page].fragments[part].text)
    }

    fn last_text<'a>(&self, pages: &'a [Page]) -> &'a str {
        let last = self.lines.last().and_then(|(page, parts)| Some((page, parts.last()?)));
        last.map_or("", |(&page, &part)| &pages[page].fragments[part].text)
    }

    fn chars(&self, pages: &[Page]) -> usize {
        let parts = self.lines.iter().flat_map(|(page, parts)| parts.iter().map(move |&part| (*page, part)));
        parts.map(|(page, part)| pages[page].fragments[part].spans.len()).sum()
    }
}

/// Whether a sentence can end here.
fn ends(text: &str) -> bool {
    let text = text.trim_end_matches(['"', '\'', '”', '’', '»', ')', ']', '」', '』']);
    text.ends_with(['.', '!', '?', ':', '…', '。', '！', '？', '؟', '۔', '।'])
}

/// Whether the text goes on here although a column or a page ended.
fn continues(last: &str, next: &str) -> bool {
    let first = next.chars().find(|char| !matches!(char, '(' | '"' | '“' | '‘' | '«'));
    is_hyphen(last.chars().next_back())
        || last.ends_with([',', ';', '、', '，', '،'])
        || first.is_some_and(|char| char.is_lowercase() || is_without_case(char))
}

fn is_hyphen(char: Option<char>) -> bool {
    matches!(char, Some('-' | '\u{ad}' | '\u{2010}'))
}

/// Letters of scripts that have no capitals to begin a sentence with.
fn is_without_case(char: char) -> bool {
    char.is_alphabetic() && !char.is_lowercase() && !char.is_uppercase()
}

/// Scripts without spaces between words.
fn is_unspaced(char: char) -> bool {
    matches!(char, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ff60}' | '\u{20000}'..='\u{3ffff}')
}

#[derive(Default)]
struct Writer {
    text: String,
    markdown: String,
    places: Vec<Place>,
    /// Code points of `text`.
    at: u32,
    /// Words that stand with a hyphen in the middle of a line.
    compounds: HashSet<String>,
}

impl Writer {
    fn new(pages: &[Page]) -> Self {
        let fragments = pages.iter().flat_map(|page| &page.fragments);
        let words = fragments.filter(|fragment| fragment.text.contains('-')).flat_map(|fragment| {
            fragment
                .text
                .split(|char: char| !char.is_alphanumeric() && char != '-')
                .filter(|word| word.trim_matches('-').len() == word.len() && word.contains('-'))
        });
        Self { compounds: words.map(str::to_owned).collect(), ..Self::default() }
    }

    fn paragraph(&mut self, pages: &[Page], paragraph: &Paragraph, level: Option<usize>) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
            self.at += 2;
        }
        let from = self.text.len();
        for (page, parts) in &paragraph.lines {
            for &part in parts {
                self.fragment(pages, *page, part, from);
            }
        }
        // A hyphen that nothing followed is one.
        if self.text.ends_with('\u{ad}') {
            self.text.pop();
            self.text.push('-');
        }
        if !self.markdown.is_empty() {
            self.markdown.push_str("\n\n");
        }
        if let Some(level) = level {
            self.markdown.extend(std::iter::repeat_n('#', level + 1));
            self.markdown.push(' ');
        }
        escape(&self.text[from..], &mut self.markdown);
    }

    /// Whether a word that is broken at its hyphen is written with one elsewhere, as in well-known.
    fn is_compound(&self, from: usize, next: &str) -> bool {
        let last = self.text[from..].trim_end_matches(['-', '\u{ad}', '\u{2010}']);
        let before =
            last.rfind(|char: char| !char.is_alphanumeric() && char != '-').map_or(last, |at| &last[at..]);
        let before = before.trim_start_matches(|char: char| !char.is_alphanumeric());
        let after =
            next.split(|char: char| !char.is_alphanumeric() && char != '-').next().unwrap_or_default();
        self.compounds.contains(&format!("{before}-{after}"))
    }

    /// Whether a piece stands right behind the last one, which may be all there is of the paragraph: the number of a note, a word in another font.
    fn touches(&self, pages: &[Page], page: usize, part: usize, starts: bool) -> bool {
        let Some(last) = self.places.last().filter(|last| last.page == page) else { return false };
        let (last, next) = (&pages[page].fragments[last.fragment], &pages[page].fragments[part]);
        // The number of a note before the note itself.
        if starts && last.size < 0.8 * next.size && last.text.bytes().all(|byte| byte.is_ascii_digit()) {
            return false;
        }
        let gap = (next.area.x0 - last.area.x1).max(last.area.x0 - next.area.x1);
        last.area.same_line(next.area) && gap < 0.1 * last.size.min(next.size)
    }

    /// Joins a piece to the paragraph that begins at `from`.
    fn fragment(&mut self, pages: &[Page], page: usize, part: usize, from: usize) {
        let fragment = &pages[page].fragments[part];
        let next = fragment.text.chars().next();
        let mut before = self.text[from..].chars().rev();
        let (last, last_but_one) = (before.next(), before.next());
        let starts = self.places.last().is_some_and(|place| {
            self.text.len() - from == pages[place.page].fragments[place.fragment].text.len()
        });
        let in_word = is_hyphen(last) && last_but_one.is_some_and(char::is_alphanumeric);
        if in_word && next.is_some_and(char::is_lowercase) && !self.is_compound(from, &fragment.text) {
            self.text.pop();
            self.at -= 1;
            if let Some(place) = self.places.last_mut() {
                place.end -= 1;
            }
        } else if let (Some(last), Some(next)) = (last, next) {
            if in_word {
                self.text.pop();
                self.text.push('-');
            } else if !(self.touches(pages, page, part, starts) || is_unspaced(last) && is_unspaced(next)) {
                self.text.push(' ');
                self.at += 1;
            }
        }
        let start = self.at;
        self.text.push_str(&fragment.text);
        self.at += u32::try_from(fragment.spans.len()).unwrap_or(u32::MAX);
        self.places.push(Place { start, end: self.at, page, fragment: part });
    }
}

/// Writes what means something in markdown so that it means itself.
fn escape(text: &str, into: &mut String) {
    let number = text.trim_start_matches(|char: char| char.is_ascii_digit());
    let list = text.len() != number.len() && (number.starts_with(". ") || number.starts_with(") "));
    for (at, char) in text.char_indices() {
        let leads = at == 0 && matches!(char, '#' | '>' | '-' | '+' | '=' | '~')
            || list && at == text.len() - number.len();
        if leads || matches!(char, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '|' | '&') {
            into.push('\\');
        }
        into.push(char);
    }
}

impl Places {
    /// One box for each line that a sentence covers. The sentences are in the order of the text.
    pub fn boxes(&self, pages: &[Page], sentences: &[(u32, u32)]) -> Vec<Vec<Rect>> {
        let mut first = 0;
        let mut boxes = Vec::with_capacity(sentences.len());
        for &(start, end) in sentences {
            while self.0.get(first).is_some_and(|place| place.end <= start) {
                first += 1;
            }
            let mut rects: Vec<Rect> = Vec::new();
            for place in self.0[first..].iter().take_while(|place| place.start < end) {
                let Some(rect) = place.rect(pages, start, end) else { continue };
                match rects.last_mut() {
                    Some(last) if is_one_line(last, &rect) => {
                        *last = Rect {
                            page: last.page,
                            x0: last.x0.min(rect.x0),
                            y0: last.y0.min(rect.y0),
                            x1: last.x1.max(rect.x1),
                            y1: last.y1.max(rect.y1),
                        };
                    }
                    _ => rects.push(rect),
                }
            }
            boxes.push(rects);
        }
        boxes
    }
}

impl Place {
    fn rect(&self, pages: &[Page], start: u32, end: u32) -> Option<Rect> {
        let (page, fragment) = (&pages[self.page], &pages[self.page].fragments[self.fragment]);
        let from = usize::try_from(start.saturating_sub(self.start)).ok()?;
        let to = usize::try_from(end.min(self.end) - self.start).ok()?;
        let spans = fragment.spans.get(from..to)?;
        let x0 = spans.iter().map(|span| span.0).reduce(f32::min)?;
        let x1 = spans.iter().map(|span| span.1).reduce(f32::max)?;
        Some(Rect { page: page.number, x0, y0: fragment.area.y0, x1, y1: fragment.area.y1 })
    }
}

fn is_one_line(a: &Rect, b: &Rect) -> bool {
    let height = (a.y1 - a.y0).max(b.y1 - b.y0);
    let gap = (b.x0 - a.x1).max(a.x0 - b.x1);
    a.page == b.page
        && (f32::midpoint(a.y0, a.y1) - f32::midpoint(b.y0, b.y1)).abs() < 0.4 * height
        && gap < 3.0 * height
}
