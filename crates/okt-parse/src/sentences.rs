//! Where the sentences of a text begin and end.
//!
//! Facts point at sentences by their offsets, so the same text must be cut the same way everywhere and always. The
//! library decides within a paragraph; what is a paragraph, and how long anything may be, is decided here.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

/// Name and version of what cuts. The first part is ours: raise it when a rule of this file changes.
pub const SEGMENTER: &str = "okt-2/sentencex-0.1.33";

/// No sentence is longer, in code points, and no more than this is looked at in one go: the library may take time that
/// grows faster than its input.
const LONGEST: usize = 4_000;

/// Texts on which a change of the library would show: abbreviations, quotes, numbers and the full stops of many scripts.
const PROBE: [(&str, &str); 9] = [
    (
        "en",
        "See Fig. 3 of Smith et al. (2020). The U.S. rate was 3.5 p.m. \"Why?\" he asked. Mr. A. Lee left.",
    ),
    (
        "en",
        "One... two! Three?! (Four.) Five: e.g. six, i.e. seven; no. 8. See vol. 2.\nFig. 1. A plan.\n- a list. With two\n- Items",
    ),
    ("de", "Das gilt z. B. am 3. Mai 2020. Dr. Weber kam."),
    ("fr", "M. Dupont est parti. « Vraiment ? » dit-elle."),
    ("ru", "Это было в 1990 г. в Москве. Он ушёл. А. С. Пушкин писал."),
    ("zh", "他说：“你好。”然后离开了。这是第二句！真的吗？"),
    ("ja", "今日は晴れです。「明日は雨だ。」と言った。"),
    ("ar", "ذهب إلى المدرسة. هل عاد؟ نعم."),
    ("hi", "यह पहला वाक्य है। यह दूसरा है।"),
];

/// Hex SHA-256 of the version and of what it makes of a few texts, so that a changed library is noticed even if it
/// forgot to change its number.
pub fn segmenter_hash() -> String {
    static HASH: LazyLock<String> = LazyLock::new(|| {
        let mut hash = Sha256::new();
        hash.update(SEGMENTER);
        for (language, text) in PROBE {
            for (start, end) in sentences(text, Some(language)) {
                hash.update(start.to_le_bytes());
                hash.update(end.to_le_bytes());
            }
            hash.update([0xff]);
        }
        hex::encode(hash.finalize())
    });
    HASH.clone()
}

/// The sentences of a text: half-open, in code points, in order, without overlap and without white space at their ends.
/// Everything that is not white space is in exactly one of them.
pub fn sentences(text: &str, language: Option<&str>) -> Vec<(u32, u32)> {
    let language = primary(language);
    let mut found = Found { text, byte: 0, point: 0, sentences: Vec::new() };
    for block in blocks(text) {
        cut(text, block, &language, &mut found);
    }
    found.sentences
}

/// `en` of `en-GB`; English rules where nothing is known, as the library does itself.
fn primary(language: Option<&str>) -> String {
    let code = language.unwrap_or("en").split(['-', '_']).next().unwrap_or("en").to_ascii_lowercase();
    if !((2..=3).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_lowercase())) {
        return "en".into();
    }
    // For these the library makes a pattern anew at every full stop, and so takes seconds where it should take none: their
    // neighbours have rules that are nearly the same.
    match &*code {
        "ca" | "oc" => "es".into(),
        "da" | "jut" | "kl" => "de".into(),
        _ => code,
    }
}

/// Turns bytes into code points on the way, which is why it only goes forward.
struct Found<'a> {
    text: &'a str,
    byte: usize,
    point: u32,
    sentences: Vec<(u32, u32)>,
}

impl Found<'_> {
    fn point(&mut self, byte: usize) -> u32 {
        let passed = self.text[self.byte..byte].chars().count();
        self.point = self.point.saturating_add(u32::try_from(passed).unwrap_or(u32::MAX));
        self.byte = byte;
        self.point
    }

    fn push(&mut self, start: usize, end: usize) {
        let part = &self.text[start..end];
        let trimmed = part.trim_start();
        let start = end - trimmed.len();
        let end = start + trimmed.trim_end().len();
        if start < end {
            let pair = (self.point(start), self.point(end));
            self.sentences.push(pair);
        }
    }
}

/// Cuts one block (bytes) into sentences. The last sentence of each look may go on beyond it, so it is looked at again.
fn cut(text: &str, (mut start, end): (usize, usize), language: &str, found: &mut Found) {
    while start < end {
        let window = window(&text[start..end]);
        let parts = library(language, window);
        let whole = start + window.len() == end;
        let kept = if whole || parts.len() == 1 { parts.len() } else { parts.len() - 1 };
        for &(from, to) in &parts[..kept] {
            found.push(start + from, start + to);
        }
        start += parts[kept - 1].1;
    }
}

/// At most [`LONGEST`] code points from the start of a text, to a white space where there is one in the second half.
fn window(text: &str) -> &str {
    let Some((limit, _)) = text.char_indices().nth(LONGEST) else { return text };
    let at = text[..limit].rfind(char::is_whitespace).filter(|at| *at > limit / 2).unwrap_or(limit);
    &text[..at]
}

/// What the library says, made whole: the parts follow each other without a gap, the number of an item stays with the
/// item, what has neither letter nor digit stays with what is before it, and abbreviations that it does not know are no
/// end.
fn library(language: &str, text: &str) -> Vec<(usize, usize)> {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    let mut joins_next = false;
    for boundary in sentencex::get_sentence_boundaries(language, text) {
        let end = boundary.end_byte.min(text.len());
        if end <= at || !text.is_char_boundary(end) {
            continue;
        }
        let part = text[at..end].trim();
        let bare = !part.chars().any(char::is_alphanumeric);
        match parts.last_mut() {
            Some(last) if bare || joins_next || is_torn(&text[last.0..last.1], part) => last.1 = end,
            _ => parts.push((at, end)),
        }
        joins_next = is_number(part) || is_label(part) || (bare && (joins_next || parts.len() == 1));
        at = end;
    }
    match parts.last_mut() {
        Some(last) => last.1 = text.len(),
        None => parts.push((0, text.len())),
    }
    parts
}

/// Words before a number that end with a full stop.
const SHORT: &str = " abb app approx art bd ca cf ch chap col ed eq eqs fig figs no nos nr op p para pp pt ref refs s sec \
                     sect tab vgl vol vols vs гл рис с см стр табл ";

/// Whether two parts are one sentence after all: nothing begins with a small letter after a full stop, and after
/// `vol.` comes the number of it.
fn is_torn(before: &str, after: &str) -> bool {
    let Some(head) = before.trim_end().strip_suffix('.').filter(|head| !head.ends_with('.')) else {
        return false;
    };
    let first = after.chars().next().unwrap_or(' ');
    if first.is_lowercase() {
        return true;
    }
    let word = head.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
    first.is_ascii_digit() && !word.is_empty() && SHORT.contains(&format!(" {word} "))
}

/// `Fig. 3.` before what the figure shows.
fn is_label(part: &str) -> bool {
    let Some((word, number)) = part.trim_end_matches(['.', ':']).split_once(' ') else { return false };
    let word = word.trim_end_matches('.').to_lowercase();
    let known = matches!(
        word.as_str(),
        "fig"
            | "figure"
            | "tab"
            | "table"
            | "abb"
            | "abbildung"
            | "tabelle"
            | "box"
            | "scheme"
            | "рис"
            | "табл"
    );
    known && number.len() <= 6 && number.starts_with(|c: char| c.is_ascii_digit())
}

/// The parts of a text (bytes) that no sentence crosses: paragraphs, headings and items of lists.
fn blocks(text: &str) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut paragraph: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let span = (at, at + line.len());
        at = span.1;
        if line.trim().is_empty() {
            close(text, &mut paragraph, &mut blocks);
        } else {
            paragraph.push(span);
        }
    }
    close(text, &mut paragraph, &mut blocks);
    blocks
}

/// A paragraph is one block unless its line breaks mean something.
fn close(text: &str, lines: &mut Vec<(usize, usize)>, blocks: &mut Vec<(usize, usize)>) {
    let width = lines.iter().map(|(start, end)| text[*start..*end].trim().chars().count()).max().unwrap_or(0);
    let mut open: Option<(usize, usize)> = None;
    for (start, end) in lines.drain(..) {
        open = Some(match open {
            None => (start, end),
            Some((first, last)) if breaks(text[first..last].trim_end(), text[start..end].trim(), width) => {
                blocks.push((first, last));
                (start, end)
            }
            Some((first, _)) => (first, end),
        });
    }
    blocks.extend(open);
}

/// Whether a line break ends a sentence: before an item of a list, after a heading of Markdown, and where the writer
/// broke the line although the next word would have fitted easily.
fn breaks(before: &str, next: &str, width: usize) -> bool {
    let line = before.rsplit('\n').next().unwrap_or(before).trim();
    if is_item(next) || next.starts_with('#') || line.starts_with('#') {
        return true;
    }
    let continues =
        next.starts_with(char::is_lowercase) || line.ends_with([',', ';', '-', '–', '—', '(', '、', '，']);
    if continues {
        return false;
    }
    let word = next.split(char::is_whitespace).next().map_or(0, |word| word.chars().take(20).count());
    (line.chars().take(width).count() + 1 + word) * 10 <= width * 7
}

/// `- item`, `• item`, `3. item`, `b) item`.
fn is_item(line: &str) -> bool {
    let Some((mark, rest)) = line.split_once([' ', '\t']) else { return false };
    if rest.trim().is_empty() {
        return false;
    }
    if matches!(mark, "-" | "*" | "+" | "•" | "·" | "‣" | "◦" | "–" | "—") {
        return true;
    }
    is_number(mark)
}

/// `12.`, `3)` or `b)`.
fn is_number(mark: &str) -> bool {
    let Some(number) = mark.strip_suffix(['.', ')']) else { return false };
    let digits = !number.is_empty() && number.len() <= 3 && number.bytes().all(|b| b.is_ascii_digit());
    digits || (mark.ends_with(')') && number.len() == 1 && number.bytes().all(|b| b.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests;
