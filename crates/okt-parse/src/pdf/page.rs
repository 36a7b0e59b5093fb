//! What stands on a page: pieces of lines, with the place of each character.

use super::right_to_left::{self, is_right_to_left};
use pdfium_render::prelude::{PdfPage, PdfPageRenderRotation, PdfPageTextChar, PdfPageTextChars, PdfRect};

/// The text of a page, with places in points from the lower left corner of the page as it is shown: turned and cropped.
pub struct Page {
    pub number: u32,
    pub height: f32,
    /// By how many degrees it is turned to be shown.
    pub rotation: u16,
    pub fragments: Vec<Fragment>,
}

/// Characters that follow each other on one line, without a gap as wide as a letter is high.
pub struct Fragment {
    pub text: String,
    /// Left and right of each character of `text`.
    pub spans: Vec<(f32, f32)>,
    pub area: Area,
    /// Of the font, in points.
    pub size: f32,
    /// Text that runs up or down the page, such as a stamp in the margin.
    pub turned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    pub x0: f32,
    pub y0: f32,
    pub x1: f32,
    pub y1: f32,
}

impl Area {
    pub fn width(self) -> f32 {
        self.x1 - self.x0
    }

    pub fn height(self) -> f32 {
        self.y1 - self.y0
    }

    pub fn middle(self) -> f32 {
        f32::midpoint(self.y0, self.y1)
    }

    pub fn with(self, other: Self) -> Self {
        Self {
            x0: self.x0.min(other.x0),
            y0: self.y0.min(other.y0),
            x1: self.x1.max(other.x1),
            y1: self.y1.max(other.y1),
        }
    }

    /// Superscripts and other fonts of a line sit a little higher or lower; the next line sits at least a letter away.
    pub fn same_line(self, other: Self) -> bool {
        (self.middle() - other.middle()).abs() < 0.4 * self.height().max(other.height())
    }
}

/// A page whose text can't be read is a page without text.
pub fn read(page: &PdfPage<'_>, number: u32) -> Page {
    let view = View::of(page);
    let mut reader = Reader { turn: view.turn, fragments: Vec::new(), open: None, right_to_left: false };
    if let Ok(text) = page.text() {
        let chars = text.chars();
        for (index, char) in chars.iter().enumerate() {
            reader.take(&chars, index, &char, &view);
        }
        reader.close(&chars);
    }
    if reader.right_to_left {
        right_to_left::reorder(&mut reader.fragments);
    }
    Page { number, height: page.height().value, rotation: view.turn.degrees(), fragments: reader.fragments }
}

struct Reader {
    turn: Turn,
    fragments: Vec<Fragment>,
    open: Option<Open>,
    right_to_left: bool,
}

struct Open {
    fragment: Fragment,
    /// The last character that is not a space.
    last: Area,
    /// A space has been seen since.
    space: bool,
    /// It has a letter or a digit. The signs of formulas come in boxes that reach far above or below their line, so letters
    /// say how high it is.
    letters: bool,
    /// The highest character, and how high: its font is the line's, not that of a superscript.
    tallest: (usize, f32),
}

impl Reader {
    fn take(&mut self, chars: &PdfPageTextChars<'_>, index: usize, char: &PdfPageTextChar<'_>, view: &View) {
        let value = match char::from_u32(char.unicode_value()) {
            Some(value) if value.is_whitespace() => {
                if let Some(open) = &mut self.open {
                    open.space = true;
                }
                return;
            }
            // The engine's own sign for a hyphen at the end of a line.
            Some('\u{2}' | '\u{ad}' | '\u{fffe}') => '\u{ad}',
            Some(value) if is_text(value) => value,
            _ => return,
        };
        let Some(area) = char.loose_bounds().ok().and_then(|bounds| view.area(bounds)) else { return };
        if !self.open.as_ref().is_some_and(|open| open.goes_on(value, area)) {
            self.close(chars);
            self.open = Some(Open::new(index, area, self.turn.is_across(char)));
        }
        self.right_to_left |= is_right_to_left(value);
        if let Some(open) = &mut self.open {
            open.push(index, value, area);
        }
    }

    fn close(&mut self, chars: &PdfPageTextChars<'_>) {
        let Some(Open { mut fragment, tallest, .. }) = self.open.take() else { return };
        fragment.size =
            chars.get(tallest.0).ok().and_then(|char| font_size(&char)).unwrap_or(fragment.area.height());
        self.fragments.push(fragment);
    }
}

impl Open {
    fn new(index: usize, area: Area, turned: bool) -> Self {
        let fragment = Fragment { text: String::new(), spans: Vec::new(), area, size: 0.0, turned };
        Self { fragment, last: area, space: false, letters: false, tallest: (index, area.height()) }
    }

    fn goes_on(&self, value: char, next: Area) -> bool {
        if self.fragment.turned {
            let shared = self.fragment.area.x1.min(next.x1) - self.fragment.area.x0.max(next.x0);
            let gap = (next.y0 - self.last.y1).max(self.last.y0 - next.y1);
            return shared > 0.5 * next.width() && gap < next.width();
        }
        // In either direction: scripts that run to the left come in the order in which they are read.
        let gap = (next.x0 - self.last.x1).max(self.last.x0 - next.x1);
        // The number of a note is not part of the word before it.
        let note =
            next.height() < 0.8 * self.last.height() && (value.is_ascii_digit() || "*†‡§".contains(value));
        self.last.same_line(next) && gap < self.last.height().min(next.height()) && !note
    }

    fn push(&mut self, index: usize, value: char, area: Area) {
        let fragment = &mut self.fragment;
        if std::mem::take(&mut self.space) && !fragment.text.is_empty() {
            fragment.text.push(' ');
            fragment.spans.push((self.last.x1.min(area.x0), self.last.x1.max(area.x0)));
        }
        if let Some(letters) = ligature(value) {
            fragment.text.push_str(letters);
            fragment.spans.extend(letters.chars().map(|_| (area.x0, area.x1)));
        } else {
            fragment.text.push(value);
            fragment.spans.push((area.x0, area.x1));
        }
        let is_letter = value.is_alphanumeric();
        let height = |of: Area| (of.y0, of.y1);
        let whole = fragment.area.with(area);
        let (y0, y1) = match (self.letters, is_letter) {
            (true, false) => height(fragment.area),
            (false, true) => height(area),
            _ => height(whole),
        };
        fragment.area = Area { y0, y1, ..whole };
        self.last = area;
        if self.letters == is_letter && area.height() > self.tallest.1 || is_letter && !self.letters {
            self.tallest = (index, area.height());
        }
        self.letters |= is_letter;
    }
}

/// Neither a control character nor one that means nothing outside its font.
fn is_text(value: char) -> bool {
    !value.is_control()
        && !matches!(value, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'.. | '\u{feff}' | '\u{fff0}'..='\u{fffd}' | '\u{ffff}')
}

fn ligature(value: char) -> Option<&'static str> {
    Some(match value {
        '\u{fb00}' => "ff",
        '\u{fb01}' => "fi",
        '\u{fb02}' => "fl",
        '\u{fb03}' => "ffi",
        '\u{fb04}' => "ffl",
        '\u{fb05}' | '\u{fb06}' => "st",
        _ => return None,
    })
}

fn font_size(char: &PdfPageTextChar<'_>) -> Option<f32> {
    let matrix = char.matrix().ok()?;
    let size = char.unscaled_font_size().value * matrix.c().hypot(matrix.d());
    (size.is_finite() && size > 0.0).then_some(size)
}

/// By how much a page is turned clockwise before it is shown.
#[derive(Clone, Copy)]
enum Turn {
    None,
    Quarter,
    Half,
    ThreeQuarters,
}

impl Turn {
    const fn degrees(self) -> u16 {
        match self {
            Self::None => 0,
            Self::Quarter => 90,
            Self::Half => 180,
            Self::ThreeQuarters => 270,
        }
    }

    /// Whether the character stands across the lines of the page as it is shown.
    fn is_across(self, char: &PdfPageTextChar<'_>) -> bool {
        let Ok(angle) = char.angle_radians() else { return false };
        match self {
            Self::None | Self::Half => angle.sin().abs() > 0.3,
            Self::Quarter | Self::ThreeQuarters => angle.cos().abs() > 0.3,
        }
    }
}

/// From the coordinates of the file to those of the page as it is shown.
struct View {
    turn: Turn,
    left: f32,
    bottom: f32,
    /// Before it is turned.
    width: f32,
    height: f32,
}

impl View {
    fn of(page: &PdfPage<'_>) -> Self {
        let turn = match page.rotation() {
            Ok(PdfPageRenderRotation::Degrees90) => Turn::Quarter,
            Ok(PdfPageRenderRotation::Degrees180) => Turn::Half,
            Ok(PdfPageRenderRotation::Degrees270) => Turn::ThreeQuarters,
            _ => Turn::None,
        };
        let (left, bottom) = page
            .boundaries()
            .bounding()
            .map_or((0.0, 0.0), |boundary| (boundary.bounds.left().value, boundary.bounds.bottom().value));
        let (width, height) = match turn {
            Turn::None | Turn::Half => (page.width().value, page.height().value),
            Turn::Quarter | Turn::ThreeQuarters => (page.height().value, page.width().value),
        };
        Self { turn, left, bottom, width, height }
    }

    fn area(&self, rect: PdfRect) -> Option<Area> {
        let (x0, x1) = (rect.left().value - self.left, rect.right().value - self.left);
        let (y0, y1) = (rect.bottom().value - self.bottom, rect.top().value - self.bottom);
        let (x0, x1, y0, y1) = match self.turn {
            Turn::None => (x0, x1, y0, y1),
            Turn::Quarter => (y0, y1, self.width - x1, self.width - x0),
            Turn::Half => (self.width - x1, self.width - x0, self.height - y1, self.height - y0),
            Turn::ThreeQuarters => (self.height - y1, self.height - y0, x0, x1),
        };
        let area = Area { x0: x0.min(x1), y0: y0.min(y1), x1: x0.max(x1), y1: y0.max(y1) };
        (x0.is_finite() && x1.is_finite() && y0.is_finite() && y1.is_finite() && area.height() > 0.0)
            .then_some(area)
    }
}
