//! The order in which a person reads a page: columns one after the other, lines from top to bottom.

use super::page::{Area, Fragment};
use super::right_to_left::is_right_to_left;

/// One line of one column.
#[derive(Debug)]
pub struct Line {
    /// Fragments of the page, in the order in which they are read.
    pub parts: Vec<usize>,
    pub area: Area,
    /// Of the font that most of it has, in points.
    pub size: f32,
    /// Cells of a table, not words of a sentence: there are wide gaps in it.
    pub row: bool,
}

/// Lines that stand under each other: a column, or what stands between columns.
pub type Block = Vec<Line>;

/// How often a page is split into columns of columns, at most.
const DEPTH: u32 = 6;
/// Lines that each of two columns has at least beside the other; less is a table or an accident.
const COLUMN_LINES: usize = 3;
/// From one line to the next of the same column, in sizes of its letters; cells of a table stand further apart.
const LINE_STEP: f32 = 2.5;
/// What is wider than that share of the text beside it is not its margin.
const MARGIN_WIDTH: f32 = 0.45;
/// Narrower than so many letters, nothing is a column of text.
const COLUMN_LETTERS: f32 = 8.0;

/// What stands on a page, block by block.
pub struct Blocks {
    /// The text, in the order in which it is read.
    pub text: Vec<Block>,
    /// A narrow column in small letters beside the text, such as where a publisher says what a paper is.
    pub margin: Vec<Block>,
    /// Text that runs up or down the page.
    pub turned: Vec<Block>,
}

pub fn blocks(fragments: &[Fragment]) -> Blocks {
    let (turned, upright): (Vec<_>, Vec<_>) =
        (0..fragments.len()).partition(|&index| fragments[index].turned);
    let mut leaves = Leaves::default();
    split(fragments, upright, DEPTH, &mut leaves);
    let blocks = |leaves: Vec<Vec<usize>>| leaves.iter().map(|leaf| lines(fragments, leaf)).collect();
    Blocks {
        text: blocks(leaves.text),
        margin: blocks(leaves.margin),
        turned: turned.into_iter().map(|index| lines(fragments, &[index])).collect(),
    }
}

#[derive(Default)]
struct Leaves {
    text: Vec<Vec<usize>>,
    margin: Vec<Vec<usize>>,
}

fn split(fragments: &[Fragment], mut region: Vec<usize>, depth: u32, leaves: &mut Leaves) {
    if region.is_empty() {
        return;
    }
    region.sort_by(|&a, &b| fragments[b].area.middle().total_cmp(&fragments[a].area.middle()));
    let bands =
        if depth == 0 { None } else { gutter(fragments, &region).map(|at| bands(fragments, &region, at)) };
    let Some(bands) = bands.filter(|bands| bands.iter().any(|band| band.is_columns(fragments))) else {
        leaves.text.push(region);
        return;
    };
    let right_first = runs_left(fragments, &region);
    let side = |of: fn(Band) -> Vec<usize>| bands.iter().cloned().flat_map(of).collect::<Vec<_>>();
    let (left, right) = (side(|band| band.left), side(|band| band.right));
    if depth == DEPTH && is_margin(fragments, &left, &right) {
        leaves.margin.push(left);
        let rest = bands.into_iter().flat_map(|Band { across, right, .. }| across.into_iter().chain(right));
        return split(fragments, rest.collect(), depth - 1, leaves);
    }
    if depth == DEPTH && is_margin(fragments, &right, &left) {
        leaves.margin.push(right);
        let rest = bands.into_iter().flat_map(|Band { across, left, .. }| across.into_iter().chain(left));
        return split(fragments, rest.collect(), depth - 1, leaves);
    }
    for Band { across, left, right } in bands {
        if !across.is_empty() {
            leaves.text.push(across);
        }
        let (first, second) = if right_first { (right, left) } else { (left, right) };
        split(fragments, first, depth - 1, leaves);
        split(fragments, second, depth - 1, leaves);
    }
}

/// Whether one column is narrow and in smaller letters than the other, and shorter.
fn is_margin(fragments: &[Fragment], side: &[usize], text: &[usize]) -> bool {
    // Width, size of letters, number of pieces.
    let measured = |side: &[usize]| {
        let area = side.iter().map(|&index| fragments[index].area).reduce(Area::with)?;
        Some((area.width(), median(side.iter().map(|&index| fragments[index].size).collect())?, side.len()))
    };
    let (Some(margin), Some(body)) = (measured(side), measured(text)) else { return false };
    margin.0 < MARGIN_WIDTH * body.0 && margin.1 < 0.95 * body.1 && margin.2 < body.2
}

/// Where the fewest pieces of text stand in the middle of the region: from, to.
fn gutter(fragments: &[Fragment], region: &[usize]) -> Option<(f32, f32)> {
    let area = region.iter().map(|&index| fragments[index].area).reduce(Area::with)?;
    let size = median(region.iter().map(|&index| fragments[index].size).collect())?;
    let (from, to) = (area.x0 + 0.15 * area.width(), area.x1 - 0.15 * area.width());
    let mut edges = Vec::with_capacity(region.len() * 2);
    for &index in region {
        let area = fragments[index].area;
        // A page's number stands where the gutter is.
        if area.width() < 1.5 * size {
            continue;
        }
        edges.push((area.x0, 1_i32));
        edges.push((area.x1, -1));
    }
    edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut best: Option<(i32, f32, f32)> = None;
    let mut over = 0;
    for pair in edges.windows(2) {
        over += pair[0].1;
        let (x0, x1) = (pair[0].0.max(from), pair[1].0.min(to));
        if x1 - x0 < 0.7 * size {
            continue;
        }
        if best.is_none_or(|(fewest, b0, b1)| over < fewest || (over == fewest && x1 - x0 > b1 - b0)) {
            best = Some((over, x0, x1));
        }
    }
    best.map(|(_, x0, x1)| (x0, x1))
}

/// A part of a region from top to bottom: first what crosses the gutter, then what stands beside it.
#[derive(Clone, Default)]
struct Band {
    across: Vec<usize>,
    left: Vec<usize>,
    right: Vec<usize>,
}

impl Band {
    /// Whether it is two columns of text, rather than cells or a line with a gap: each has lines that fill it, among
    /// lines that stand close to each other.
    fn is_columns(&self, fragments: &[Fragment]) -> bool {
        [&self.left, &self.right].into_iter().all(|side| {
            let Some(area) = side.iter().map(|&index| fragments[index].area).reduce(Area::with) else {
                return false;
            };
            let (mut run, mut last) = (0, f32::INFINITY);
            side.iter().any(|&index| {
                let Fragment { area: own, size, .. } = &fragments[index];
                if last - own.middle() > LINE_STEP * size {
                    run = 0;
                }
                last = own.middle();
                run += usize::from(own.width() > 0.5 * area.width() && own.width() > COLUMN_LETTERS * size);
                run >= COLUMN_LINES
            })
        })
    }
}

/// The region is sorted from top to bottom.
fn bands(fragments: &[Fragment], region: &[usize], (from, to): (f32, f32)) -> Vec<Band> {
    let crosses = |area: Area| area.x0 < from && area.x1 > to;
    let mut bands = vec![Band::default()];
    let mut last_across: Option<Area> = None;
    for (at, &index) in region.iter().enumerate() {
        let area = fragments[index].area;
        // What stands on one line with something that crosses belongs to it.
        let next_across = region[at..]
            .iter()
            .map(|&index| fragments[index].area)
            .take_while(|next| area.middle() - next.middle() < area.height())
            .find(|next| crosses(*next));
        let across = crosses(area)
            || last_across.is_some_and(|other| other.same_line(area))
            || last_across.is_some_and(|other| is_last_line(fragments, region, other, index))
            || next_across.is_some_and(|other| other.same_line(area));
        let fresh = bands.last().is_some_and(|band| !band.left.is_empty() || !band.right.is_empty());
        if across && fresh {
            bands.push(Band::default());
        }
        let Some(band) = bands.last_mut() else { break };
        if across {
            // The last line of a caption is not followed by another.
            last_across = crosses(area).then_some(area).or(last_across);
            band.across.push(index);
        } else if f32::midpoint(area.x0, area.x1) < f32::midpoint(from, to) {
            band.left.push(index);
        } else {
            band.right.push(index);
        }
    }
    bands
}

/// Whether a short line is the end of what crosses the gutter above it: close, at the same edge, with nothing beside it.
fn is_last_line(fragments: &[Fragment], region: &[usize], above: Area, index: usize) -> bool {
    let own = fragments[index].area;
    (above.x0 - own.x0).abs() < 1.0
        && (above.height() - own.height()).abs() < 0.5
        && above.middle() - own.middle() < 1.4 * own.height()
        && !region.iter().any(|&other| other != index && fragments[other].area.same_line(own))
}

fn lines(fragments: &[Fragment], leaf: &[usize]) -> Block {
    let mut leaf = leaf.to_vec();
    leaf.sort_by(|&a, &b| fragments[b].area.middle().total_cmp(&fragments[a].area.middle()));
    let mut lines: Vec<Line> = Vec::new();
    for index in leaf {
        let Fragment { area, size, .. } = fragments[index];
        match lines.last_mut() {
            Some(line) if line.area.same_line(area) => {
                line.parts.push(index);
                // A superscript neither raises the line nor makes it small.
                if size >= line.size {
                    line.size = size;
                }
                line.area = line.area.with(area);
            }
            _ => lines.push(Line { parts: vec![index], area, size, row: false }),
        }
    }
    for line in &mut lines {
        let right_to_left = runs_left(fragments, &line.parts);
        line.parts.sort_by(|&a, &b| fragments[a].area.x0.total_cmp(&fragments[b].area.x0));
        let wide =
            |pair: &&[usize]| fragments[pair[1]].area.x0 - fragments[pair[0]].area.x1 > 1.8 * line.size;
        line.row = line.parts.windows(2).filter(wide).count() > 0;
        if right_to_left {
            line.parts.reverse();
        }
    }
    lines
}

fn runs_left(fragments: &[Fragment], parts: &[usize]) -> bool {
    let (mut right_to_left, mut all) = (0_usize, 0_usize);
    for char in
        parts.iter().flat_map(|&index| fragments[index].text.chars()).filter(|char| char.is_alphabetic())
    {
        all += 1;
        right_to_left += usize::from(is_right_to_left(char));
    }
    right_to_left * 2 > all
}

pub fn median(mut values: Vec<f32>) -> Option<f32> {
    values.sort_by(f32::total_cmp);
    values.get(values.len() / 2).copied()
}
