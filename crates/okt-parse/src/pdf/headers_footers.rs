//! What pages repeat at their edges: running titles and page numbers.

use std::collections::HashMap;

use super::page::{Fragment, Page};

/// How much of a page, at its top and again at its bottom, can hold such things.
const EDGE: f32 = 0.13;
/// How far apart two of the same kind may stand on two pages, in points.
const SLACK: f32 = 3.0;

/// Takes out what stands at the same height on three pages (or on both, of two) with the same words, numbers aside.
pub fn remove(pages: &mut [Page]) {
    // For each shape and height: the last page that has it, and how many do.
    let mut seen: HashMap<(String, u32), (u32, u32)> = HashMap::new();
    for page in &*pages {
        let edge = Edge::of(page);
        for fragment in page.fragments.iter().filter(|fragment| edge.has(fragment)) {
            let (last, count) = seen.entry((shape(&fragment.text), step(fragment, 0.0))).or_default();
            if *last != page.number {
                (*last, *count) = (page.number, *count + 1);
            }
        }
    }
    let enough = if pages.len() == 2 { 2 } else { 3 };
    for page in pages {
        let edge = Edge::of(page);
        page.fragments.retain(|fragment| {
            if !edge.has(fragment) {
                return true;
            }
            let mut key = (shape(&fragment.text), 0);
            let mut count = 0;
            for beside in [-1.0, 0.0, 1.0] {
                key.1 = step(fragment, beside);
                count += seen.get(&key).map_or(0, |(_, count)| *count);
            }
            count < enough
        });
    }
}

/// The height on the page, in steps: two that stand closer than one are in the same or in the next.
fn step(fragment: &Fragment, beside: f32) -> u32 {
    ((fragment.area.middle() / SLACK).round() + beside).to_bits()
}

/// Above and below which a running title can stand: near the edge of the page, or as its first or last line, because margins
/// can be wide.
struct Edge {
    top: f32,
    bottom: f32,
}

impl Edge {
    fn of(page: &Page) -> Self {
        let upright = || page.fragments.iter().filter(|fragment| !fragment.turned);
        let first = upright().map(|fragment| fragment.area.middle()).fold(0.0, f32::max);
        let last = upright().map(|fragment| fragment.area.middle()).fold(page.height, f32::min);
        Self {
            top: ((1.0 - EDGE) * page.height).min(first - SLACK),
            bottom: (EDGE * page.height).max(last + SLACK),
        }
    }

    fn has(&self, fragment: &Fragment) -> bool {
        let middle = fragment.area.middle();
        middle < self.bottom || middle > self.top
    }
}

/// The words, with one sign for every number, Arabic or Roman.
fn shape(text: &str) -> String {
    let mut shape = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !shape.is_empty() {
            shape.push(' ');
        }
        if word.chars().all(|char| matches!(char, 'i' | 'v' | 'x' | 'l')) {
            shape.push('#');
            continue;
        }
        let mut number = false;
        for char in word.chars() {
            let digit = char.is_numeric();
            if !(digit && number) {
                shape.push(if digit { '#' } else { char });
            }
            number = digit;
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdf::page::Area;

    fn page(number: u32, lines: &[(&str, f32)]) -> Page {
        let fragments = lines
            .iter()
            .map(|&(text, y)| Fragment {
                text: text.to_owned(),
                spans: Vec::new(),
                area: Area { x0: 50.0, y0: y, x1: 100.0, y1: y + 10.0 },
                size: 10.0,
                turned: false,
            })
            .collect();
        Page { number, height: 800.0, rotation: 0, fragments }
    }

    #[test]
    fn running_titles_and_page_numbers_go_and_everything_else_stays() {
        let mut pages: Vec<_> = (1..=4)
            .map(|number| {
                let (foot, first) =
                    (format!("Page {number} of 4"), format!("Only on page {}", "abcd".repeat(number)));
                page(
                    u32::try_from(number).unwrap(),
                    &[
                        ("Bees and Their Year", 770.0),
                        (&first, 740.0),
                        ("The same words in the middle.", 400.0),
                        (&foot, 20.0),
                    ],
                )
            })
            .collect();
        remove(&mut pages);
        for page in &pages {
            let left: Vec<_> = page.fragments.iter().map(|fragment| fragment.text.as_str()).collect();
            assert!(
                left.len() == 2 && left[0].starts_with("Only on") && left[1].starts_with("The same"),
                "{left:?}"
            );
        }
    }

    #[test]
    fn the_same_words_at_another_height_are_not_a_header() {
        let mut pages =
            vec![page(1, &[("Notes", 770.0)]), page(2, &[("Notes", 745.0)]), page(3, &[("Notes", 720.0)])];
        remove(&mut pages);
        assert!(pages.iter().all(|page| page.fragments.len() == 1));
    }
}
