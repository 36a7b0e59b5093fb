//! Pages that are pictures: how one is told, what is given to tesseract, and what its words become.

use image::DynamicImage;
use pdfium_render::prelude::{PdfPage, PdfPageObject, PdfPageObjectsCommon, PdfRenderConfig};

use super::images::png;
use super::layout::median;
use super::page::{Area, Fragment, Page};

/// A page with more letters has text; with fewer, it has the stamp of a scanner or nothing.
const FEW_LETTERS: usize = 16;
/// Of the picture: letters of ten points are then forty pixels high, which tesseract was made for.
const DOTS_PER_INCH: f32 = 300.0;
const MOST_PIXELS: f32 = 4_000.0;
/// Of a hundred, over the words of a line: lines in a language that tesseract was not told of, and parts of pictures, have less
/// than fifty, lines that it can read more than eighty.
const LINE_CONFIDENCE: f32 = 65.0;
const MOST_WORDS: usize = 20_000;
/// How deep an image may be wrapped, and among how many others it is looked for.
const DEPTH: u32 = 3;
const OBJECTS: usize = 20;

/// Whether a page has a picture and next to no text.
pub fn is_scan(page: &PdfPage<'_>, text: &Page) -> bool {
    let letters =
        text.fragments.iter().flat_map(|fragment| fragment.text.chars()).filter(|c| c.is_alphanumeric());
    if letters.take(FEW_LETTERS).count() == FEW_LETTERS {
        return false;
    }
    let objects = page.objects();
    (0..objects.len().min(OBJECTS))
        .any(|index| objects.get(index).is_ok_and(|object| has_image(&object, DEPTH)))
}

/// A drawing is no scan, however much there is of it.
fn has_image(object: &PdfPageObject<'_>, depth: u32) -> bool {
    match object {
        PdfPageObject::Image(_) => true,
        PdfPageObject::XObjectForm(form) if depth > 0 => (0..form.len().min(OBJECTS))
            .any(|index| form.get(index).is_ok_and(|object| has_image(&object, depth - 1))),
        _ => false,
    }
}

/// The page in shades of grey, as PNG.
pub fn picture(page: &PdfPage<'_>) -> Option<Vec<u8>> {
    let inches = page.width().value.max(page.height().value) / 72.0;
    if !(inches > 0.0 && inches.is_finite()) {
        return None;
    }
    let dots = DOTS_PER_INCH.min(MOST_PIXELS / inches);
    let config = PdfRenderConfig::new()
        .scale_page_by_factor(dots / 72.0)
        .render_form_data(false)
        .limit_render_image_cache_size(true);
    let picture = page.render_with_config(&config).ok()?.as_image().ok()?.into_luma8();
    png(&DynamicImage::from(picture))
}

/// The lines of tesseract's TSV, with the places of their words on a page of this size.
pub fn fragments(tsv: &str, page: (f32, f32)) -> Vec<Fragment> {
    let mut scale = None;
    let mut lines: Vec<(&str, Vec<Word<'_>>)> = Vec::new();
    for row in tsv.lines().take(MOST_WORDS) {
        let Some((level, place, word)) = Word::of(row) else { continue };
        match level {
            // The page itself: its size in pixels.
            1 => scale = Some((page.0 / word.width, page.1 / word.height)),
            5 if !word.text.is_empty() => match lines.last_mut() {
                Some((last, words)) if *last == place => words.push(word),
                _ => lines.push((place, vec![word])),
            },
            _ => {}
        }
    }
    let Some(scale) = scale.filter(|(x, y)| x.is_finite() && y.is_finite()) else { return Vec::new() };
    let lines: Vec<_> = lines.into_iter().filter(|(_, words)| is_sure(words)).collect();
    let mut fragments: Vec<_> =
        lines.into_iter().filter_map(|(_, words)| fragment(&words, scale, page.1)).collect();
    even_out(&mut fragments);
    fragments
}

struct Word<'a> {
    text: &'a str,
    left: f32,
    top: f32,
    width: f32,
    height: f32,
    confidence: f32,
}

impl<'a> Word<'a> {
    /// A row: level, the numbers of its page, block, paragraph and line (together: where it belongs), its own, and the rest.
    fn of(row: &'a str) -> Option<(u32, &'a str, Self)> {
        let fields: Vec<&str> = row.splitn(12, '\t').collect();
        let number =
            |at: usize| fields.get(at)?.parse::<f32>().ok().filter(|number: &f32| number.is_finite());
        let level = fields.first()?.parse().ok()?;
        let place: usize = fields.get(..5)?.iter().map(|field| field.len() + 1).sum();
        let text = fields.get(11).map_or("", |text| text.trim());
        let text = if text.contains(char::is_control) { "" } else { text };
        let word = Self {
            text,
            left: number(6)?,
            top: number(7)?,
            width: number(8)?,
            height: number(9)?,
            confidence: number(10)?,
        };
        Some((level, row.get(..place)?, word))
    }
}

/// Words of which most can be relied on, with letters among them.
fn is_sure(words: &[Word<'_>]) -> bool {
    let (mut sum, mut count) = (0.0, 0.0);
    for word in words {
        sum += word.confidence;
        count += 1.0;
    }
    sum >= LINE_CONFIDENCE * count && words.iter().any(|word| word.text.contains(char::is_alphanumeric))
}

fn fragment(words: &[Word<'_>], (x, y): (f32, f32), height: f32) -> Option<Fragment> {
    let (mut text, mut spans) = (String::new(), Vec::new());
    let mut area: Option<Area> = None;
    for word in words {
        let own = Area {
            x0: word.left * x,
            y0: height - (word.top + word.height) * y,
            x1: (word.left + word.width) * x,
            y1: height - word.top * y,
        };
        if let Some(before) = area {
            text.push(' ');
            spans.push((before.x1.min(own.x0), before.x1.max(own.x0)));
        }
        let letters = word.text.chars().count();
        let mut at = own.x0;
        let step = own.width() / f32::from(u16::try_from(letters).ok()?);
        for letter in word.text.chars() {
            text.push(letter);
            spans.push((at, at + step));
            at += step;
        }
        area = Some(area.map_or(own, |area| area.with(own)));
    }
    let area = area.filter(|area| area.height() > 0.0 && area.width() > 0.0)?;
    Some(Fragment { text, spans, area, size: area.height(), turned: false })
}

/// A line without an `l` or a `g` is lower than others and not in smaller letters; headings stay larger.
fn even_out(fragments: &mut [Fragment]) {
    let Some(usual) = median(fragments.iter().map(|fragment| fragment.size).collect()) else { return };
    for fragment in fragments {
        if (0.6..1.35).contains(&(fragment.size / usual)) {
            fragment.size = usual;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TSV: &str = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n\
        1\t1\t0\t0\t0\t0\t0\t0\t1000\t2000\t-1\t\n\
        4\t1\t1\t1\t1\t0\t100\t200\t300\t40\t-1\t\n\
        5\t1\t1\t1\t1\t1\t100\t200\t100\t40\t96.5\tSalt\n\
        5\t1\t1\t1\t1\t2\t220\t210\t180\t30\t91\tmarshes.\n\
        5\t1\t1\t1\t2\t1\t100\t300\t100\t40\t41\t~~_/\n\
        5\t1\t1\t1\t3\t1\t100\t400\t100\t40\t12\tguess\n";

    #[test]
    fn words_become_lines_with_their_places() {
        let found = fragments(TSV, (500.0, 1000.0));
        assert_eq!(found.len(), 1, "neither guesses nor drawings");
        let line = &found[0];
        assert_eq!(line.text, "Salt marshes.");
        assert_eq!(line.spans.len(), 13);
        assert_eq!(line.spans[0], (50.0, 62.5));
        assert_eq!(line.area, Area { x0: 50.0, y0: 880.0, x1: 200.0, y1: 900.0 });
    }

    #[test]
    fn what_is_no_table_of_words_gives_none() {
        for tsv in ["", "5\t1", &TSV.replace("\t1000\t2000", "\t0\t0"), &TSV.replace("1\t1\t0", "2\t1\t0")] {
            assert!(fragments(tsv, (500.0, 1000.0)).is_empty(), "{tsv}");
        }
    }
}
